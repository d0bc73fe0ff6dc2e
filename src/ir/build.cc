#include "ir/build.h"

#include <cmath>

#include "ir/fold.h"
#include "ir/numeric.h"
#include "support/diagnostic.h"

namespace tilewright {
namespace {

[[noreturn, gnu::cold]] void refuse_operands(const char* code, std::string message, std::string hint = {}) {
  throw Exception(script_error(code, std::move(message), std::move(hint)));
}

Expr spread(Expr value, DataType like) {
  if (like.is_scalar() || value.dtype().is_vector()) return value;
  Expr lanes = i32(like.lanes);
  if (like.scalable)
    lanes = make<Mul>({make<Call>({DataType::int_(32), intrinsic_op(Intrinsic::k_vscale), {}}), lanes});
  return make<Broadcast>({std::move(value), std::move(lanes)});
}

bool is_number(const Expr& e) { return e.is<IntImm>() || e.is<FloatImm>(); }

/// The common element type of two operands.
DataType meet(DataType a, DataType b) {
  if (a == b) return a;
  if (a.is_handle() || b.is_handle() || a.is_void() || b.is_void()) {
    refuse_operands("ir/dtype-mismatch", "no common type of " + a.str() + " and " + b.str(),
                    "cast one of them: x.astype(\"float32\")");
  }
  if (a.is_float() && !b.is_float()) return a;
  if (b.is_float() && !a.is_float()) return b;
  if (a.is_float()) {
    if (a.bits == b.bits) {
      refuse_operands("ir/dtype-mismatch", "no common type of " + a.str() + " and " + b.str(),
                      "cast one side with T.Cast");
    }
    return a.bits > b.bits ? a : b;
  }
  if (a.bits != b.bits) return a.bits > b.bits ? a : b;
  return a.is_int() ? b : a;  // int with uint of the same width: unsigned, as in C
}

template <class T>
Expr build(Expr a, Expr b) {
  promote(a, b);
  if (auto folded = fold_binary(KindOf<T>::kind, a, b)) return *folded;
  return make<T>({std::move(a), std::move(b)});
}

template <class T>
Expr build_logic(Expr a, Expr b) {
  if (!a.dtype().is_bool()) a = cast(DataType::bool_(a.dtype().lanes), a);
  if (!b.dtype().is_bool()) b = cast(DataType::bool_(b.dtype().lanes), b);
  a = spread(a, b.dtype());
  b = spread(b, a.dtype());
  bool neutral = KindOf<T>::kind == Kind::kAnd;  // x and True = x, x or False = x
  if (auto v = const_int(a)) return (*v != 0) == neutral ? b : a;
  if (auto v = const_int(b)) return (*v != 0) == neutral ? a : b;
  return make<T>({std::move(a), std::move(b)});
}

bool is_zero(const Expr& e) { return is_const_int(e, 0) && !e.dtype().is_float(); }
bool is_one(const Expr& e) { return is_const_int(e, 1); }
/// The exact bits of a float count: x + -0.0 is x for every x, x + 0.0 is not (x = -0.0).
bool is_float_value(const Expr& e, double value) {
  auto v = const_float(e);
  return v && *v == value && std::signbit(*v) == std::signbit(value);
}

template <class T>
Expr build_division(Expr a, Expr b) {
  promote(a, b);
  if (is_const_int(b, 0)) refuse_operands("ir/divide-by-zero", "division by zero", "the divisor is the constant 0");
  if (auto folded = fold_binary(KindOf<T>::kind, a, b)) return *folded;
  constexpr bool quotient = KindOf<T>::kind == Kind::kDiv || KindOf<T>::kind == Kind::kFloorDiv;
  if (a.dtype().is_integral()) {
    if (is_zero(a)) return a;
    if (is_one(b)) return quotient ? a : zero(a.dtype());
  }
  return make<T>({std::move(a), std::move(b)});
}

}  // namespace

// ---- constants

Ref<IntImm> int_imm(DataType dtype, int64_t value) { return make<IntImm>({dtype, value}); }
Ref<FloatImm> float_imm(DataType dtype, double value) { return make<FloatImm>({dtype, value}); }
Ref<StringImm> string_imm(std::string value) { return make<StringImm>({std::move(value)}); }

Expr constant(DataType dtype, int64_t value) {
  Expr scalar = dtype.is_float() ? Expr(float_imm(dtype.element(), static_cast<double>(value)))
                                 : Expr(int_imm(dtype.element(), value));
  return spread(std::move(scalar), dtype);
}
Expr constant(DataType dtype, double value) {
  if (!dtype.is_float())
    refuse_operands("ir/dtype-mismatch", "the constant " + std::to_string(value) + " in type " + dtype.str(),
                    "constants have an integer, boolean or floating-point type");
  return spread(float_imm(dtype.element(), value), dtype);
}
Expr min_value(DataType dtype) {
  if (dtype.is_integral()) return constant(dtype, int_min(dtype.element()));
  return constant(dtype, -float_max(dtype.element()));
}
Expr max_value(DataType dtype) {
  if (dtype.is_integral()) return constant(dtype, int_max(dtype.element()));
  return constant(dtype, float_max(dtype.element()));
}

std::optional<int64_t> const_int(const Expr& e) {
  if (const IntImm* v = e.as<IntImm>()) return v->value;
  if (const Broadcast* v = e.as<Broadcast>()) return const_int(v->value);
  return std::nullopt;
}
std::optional<double> const_float(const Expr& e) {
  if (const FloatImm* v = e.as<FloatImm>()) return v->value;
  if (const Broadcast* v = e.as<Broadcast>()) return const_float(v->value);
  return std::nullopt;
}
bool is_const_int(const Expr& e, int64_t value) {
  auto v = const_int(e);
  return v && *v == value;
}

// ---- variables and buffers

Ref<Var> var(std::string name, DataType dtype) { return make<Var>({std::move(name), make<PrimType>({dtype}), false}); }
Ref<Var> size_var(std::string name, DataType dtype) {
  return make<Var>({std::move(name), make<PrimType>({dtype}), true});
}
Ref<Var> pointer_var(std::string name, DataType element, std::string scope) {
  if (element.is_bool()) element = DataType::int_(8);  // bool is stored as one byte
  return make<Var>({std::move(name), make<PointerType>({make<PrimType>({element}), std::move(scope)}), false});
}
Ref<Buffer> decl_buffer(std::vector<Expr> shape, DataType dtype, std::string name, std::string scope) {
  Buffer buffer;
  buffer.data = pointer_var(name, dtype, std::move(scope));
  buffer.dtype = dtype;
  buffer.elem_offset = zero(shape.empty() ? DataType::int_(32) : shape[0].dtype());
  buffer.shape = std::move(shape);
  buffer.name = std::move(name);
  return make(std::move(buffer));
}
Ref<Range> range(Expr min, Expr extent) {
  promote(min, extent);
  return make<Range>({std::move(min), std::move(extent)});
}
Ref<Range> range_of(Expr extent) {
  Expr start = zero(extent.dtype());
  return make<Range>({std::move(start), std::move(extent)});
}

// ---- operators

void promote(Expr& a, Expr& b) {
  if (!a.defined() || !b.defined()) refuse_operands("ir/missing-operand", "an operator needs two operands");
  if (a.dtype() == b.dtype()) return;
  a = spread(a, b.dtype());
  b = spread(b, a.dtype());
  DataType ta = a.dtype(), tb = b.dtype();
  if (ta == tb) return;
  if (ta.lanes != tb.lanes || ta.scalable != tb.scalable) {
    refuse_operands("ir/lanes", "an operator on " + ta.str() + " and " + tb.str(),
                    "both sides need the same number of lanes");
  }
  DataType target = meet(ta.element(), tb.element());
  // A constant adopts the type of the other side when it can hold the value: x_f16 + 1.0 stays float16.
  if (is_number(a) != is_number(b)) {
    Expr& number = is_number(a) ? a : b;
    DataType other = is_number(a) ? tb.element() : ta.element();
    bool fits = number.is<FloatImm>()
                    ? other.is_float()
                    : other.is_float() || (!other.is_bool() && !number.dtype().is_bool() &&
                                           wrap_int(other, *const_int(number)) == *const_int(number) &&
                                           other.bits >= number.dtype().bits);
    if (fits) target = other;
  }
  a = cast(ta.with_element(target), a);
  b = cast(tb.with_element(target), b);
}

Expr cast(DataType dtype, Expr value) {
  DataType from = value.dtype();
  if (dtype == from) return value;
  if (dtype.lanes != from.lanes && from.is_scalar()) return spread(cast(dtype.element(), std::move(value)), dtype);
  if (from.scalable) dtype.scalable = true;
  if (dtype == from) return value;
  if (auto folded = fold_cast(dtype, value)) return *folded;
  if (const Broadcast* b = value.as<Broadcast>()) return make<Broadcast>({cast(dtype.element(), b->value), b->lanes});
  return make<Cast>({dtype, std::move(value)});
}

Expr operator+(Expr a, Expr b) {
  promote(a, b);
  if (auto folded = fold_binary(Kind::kAdd, a, b)) return *folded;
  if (is_zero(a) || is_float_value(a, -0.0)) return b;
  if (is_zero(b) || is_float_value(b, -0.0)) return a;
  return make<Add>({std::move(a), std::move(b)});
}
Expr operator-(Expr a, Expr b) {
  promote(a, b);
  if (auto folded = fold_binary(Kind::kSub, a, b)) return *folded;
  if (is_zero(b) || is_float_value(b, 0)) return a;
  return make<Sub>({std::move(a), std::move(b)});
}
Expr operator*(Expr a, Expr b) {
  promote(a, b);
  if (auto folded = fold_binary(Kind::kMul, a, b)) return *folded;
  if (is_one(a) || is_float_value(a, 1)) return b;
  if (is_one(b) || is_float_value(b, 1)) return a;
  if (is_zero(a)) return a;  // not for floats: 0 * inf is NaN
  if (is_zero(b)) return b;
  return make<Mul>({std::move(a), std::move(b)});
}
Expr operator-(Expr a) {
  if (const IntImm* v = a.as<IntImm>()) {
    if (auto folded = fold_binary(Kind::kSub, int_imm(v->dtype, 0), a)) return *folded;
  }
  if (const FloatImm* v = a.as<FloatImm>()) return float_imm(v->dtype, -v->value);
  return make<Sub>({zero(a.dtype()), a});
}
Expr operator+(Expr a, int64_t b) { return a + constant(a.dtype(), b); }
Expr operator-(Expr a, int64_t b) { return a - constant(a.dtype(), b); }
Expr operator*(Expr a, int64_t b) { return a * constant(a.dtype(), b); }

Expr div(Expr a, Expr b) {
  promote(a, b);
  if (a.dtype().is_integral()) {
    refuse_operands("ir/integer-division", "'/' of integers (" + a.dtype().str() + ") does not say how to round",
                    "use // (floor) or T.truncdiv");
  }
  return build_division<Div>(std::move(a), std::move(b));
}
Expr truncdiv(Expr a, Expr b) { return build_division<Div>(std::move(a), std::move(b)); }
Expr truncmod(Expr a, Expr b) { return build_division<Mod>(std::move(a), std::move(b)); }
Expr floordiv(Expr a, Expr b) { return build_division<FloorDiv>(std::move(a), std::move(b)); }
Expr floormod(Expr a, Expr b) { return build_division<FloorMod>(std::move(a), std::move(b)); }
Expr floordiv(Expr a, int64_t b) { return floordiv(a, constant(a.dtype(), b)); }
Expr floormod(Expr a, int64_t b) { return floormod(a, constant(a.dtype(), b)); }
Expr min(Expr a, Expr b) {
  promote(a, b);
  if (a == b) return a;
  return build<Min>(std::move(a), std::move(b));
}
Expr max(Expr a, Expr b) {
  promote(a, b);
  if (a == b) return a;
  return build<Max>(std::move(a), std::move(b));
}
Expr eq(Expr a, Expr b) {
  if (a.defined() && b.defined() && a.dtype().is_handle() && b.dtype().is_handle())
    return make<EQ>({std::move(a), std::move(b)});
  return build<EQ>(std::move(a), std::move(b));
}
Expr ne(Expr a, Expr b) {
  if (a.defined() && b.defined() && a.dtype().is_handle() && b.dtype().is_handle())
    return make<NE>({std::move(a), std::move(b)});
  return build<NE>(std::move(a), std::move(b));
}
Expr lt(Expr a, Expr b) { return build<LT>(std::move(a), std::move(b)); }
Expr le(Expr a, Expr b) { return build<LE>(std::move(a), std::move(b)); }
Expr gt(Expr a, Expr b) { return build<GT>(std::move(a), std::move(b)); }
Expr ge(Expr a, Expr b) { return build<GE>(std::move(a), std::move(b)); }
Expr eq(Expr a, int64_t b) { return eq(a, constant(a.dtype(), b)); }
Expr ne(Expr a, int64_t b) { return ne(a, constant(a.dtype(), b)); }
Expr lt(Expr a, int64_t b) { return lt(a, constant(a.dtype(), b)); }
Expr le(Expr a, int64_t b) { return le(a, constant(a.dtype(), b)); }
Expr gt(Expr a, int64_t b) { return gt(a, constant(a.dtype(), b)); }
Expr ge(Expr a, int64_t b) { return ge(a, constant(a.dtype(), b)); }
Expr logical_and(Expr a, Expr b) { return build_logic<And>(std::move(a), std::move(b)); }
Expr logical_or(Expr a, Expr b) { return build_logic<Or>(std::move(a), std::move(b)); }
Expr logical_not(Expr a) {
  if (!a.dtype().is_bool()) a = cast(DataType::bool_(a.dtype().lanes), a);
  if (auto v = const_int(a)) return constant(a.dtype(), int64_t{*v == 0});
  return make<Not>({std::move(a)});
}
Expr select(Expr condition, Expr true_value, Expr false_value) {
  promote(true_value, false_value);
  if (condition.dtype().is_scalar()) {
    if (auto v = const_int(condition)) return *v ? true_value : false_value;
  }
  return make<Select>({std::move(condition), std::move(true_value), std::move(false_value)});
}
Expr if_then_else(Expr condition, Expr true_value, Expr false_value) {
  promote(true_value, false_value);
  if (auto v = const_int(condition)) return *v ? true_value : false_value;
  if (!condition.dtype().is_bool()) {
    refuse_operands("ir/not-bool", "the condition of T.if_then_else must be bool, not " + condition.dtype().str(),
                    "compare it: x != 0");
  }
  DataType type = true_value.dtype();
  return make<Call>({type, intrinsic_op(Intrinsic::k_if_then_else), {condition, true_value, false_value}});
}
Expr ramp(Expr base, Expr stride, int lanes) {
  promote(base, stride);
  if (lanes == 1) return base;
  return make<Ramp>({std::move(base), std::move(stride), i32(lanes)});
}
Expr broadcast(Expr value, int lanes) {
  if (lanes == 1) return value;
  return make<Broadcast>({std::move(value), i32(lanes)});
}

Expr make_binary(Kind kind, Expr a, Expr b, SpanId span) {
  switch (kind) {
#define TW_CASE(Name) \
  case Kind::k##Name: \
    return make<Name>({std::move(a), std::move(b)}, span);
    TW_BINARY_KINDS(TW_CASE)
#undef TW_CASE
    default:
      TW_CHECK(false, kind_name(kind));
  }
}
Expr binary(Kind kind, Expr a, Expr b) {
  using Operator = Expr (*)(Expr, Expr);
  constexpr Operator kOperators[] = {
      operator+, operator-, operator*, truncdiv, truncmod, floordiv, floormod,    min,        max,
      eq,        ne,        lt,        le,       gt,       ge,       logical_and, logical_or,
  };
  static_assert(std::size(kOperators) == static_cast<size_t>(Kind::kOr) - static_cast<size_t>(Kind::kAdd) + 1);
  TW_CHECK(kind >= Kind::kAdd && kind <= Kind::kOr, kind_name(kind) + " is not a binary operator");
  return kOperators[static_cast<size_t>(kind) - static_cast<size_t>(Kind::kAdd)](std::move(a), std::move(b));
}

namespace {
DataType call_type(Intrinsic intrinsic, const std::vector<Expr>& args) {
  const IntrinsicRow& row = intrinsic_row(intrinsic);
  auto wrong = [&](const std::string& wanted) {
    refuse_operands("ir/intrinsic-dtype",
                    "T." + std::string(row.name) + " takes " + wanted + ", not " + args[0].dtype().str(),
                    "cast the argument: x.astype(dtype)");
  };
  if (!row.takes(args.size())) {
    refuse_operands("ir/intrinsic-arity", row.wrong_count(args.size()),
                    "the table of intrinsics in the documentation says what each takes");
  }
  switch (row.typing) {
    case Typing::kSameFloat:
      if (!args[0].dtype().is_float()) wrong("a floating-point value");
      return args[0].dtype();
    case Typing::kSameAny:
      return args[0].dtype();
    case Typing::kInteger:
      if (!args[0].dtype().is_integral()) wrong("an integer");
      return args[0].dtype();
    case Typing::kBool:
      return DataType::bool_(args[0].dtype().lanes);
    case Typing::kSecond:
      return args[1].dtype();
    case Typing::kExplicit:
      break;
  }
  refuse_operands("ir/intrinsic-dtype", "T." + std::string(row.name) + " needs the type of its result",
                  "give it first: T.reinterpret(\"int32\", x)");
}
}  // namespace

Expr call(Intrinsic intrinsic, std::vector<Expr> args) {
  DataType type = call_type(intrinsic, args);
  return make<Call>({type, intrinsic_op(intrinsic), std::vector<NodeRef>(args.begin(), args.end())});
}
Expr call(DataType dtype, std::string_view op, std::vector<NodeRef> args) {
  return make<Call>({dtype, op_named(op), std::move(args)});
}

Expr load(const Ref<Buffer>& buffer, std::vector<Expr> indices) {
  return make<BufferLoad>({buffer, std::move(indices), {}});
}
Stmt store(const Ref<Buffer>& buffer, Expr value, std::vector<Expr> indices) {
  DataType type = buffer->dtype;
  if (!indices.empty() && indices.back().dtype().is_vector()) {
    type.lanes = static_cast<uint16_t>(type.lanes * indices.back().dtype().lanes);
    type.scalable = indices.back().dtype().scalable;
  }
  value = cast(type, std::move(value));
  return make<BufferStore>({buffer, std::move(value), std::move(indices), {}});
}

// ---- statements

Stmt seq(std::vector<Stmt> stmts) {
  std::erase_if(stmts, [](const Stmt& s) { return !s.defined() || is_nop(s); });
  if (stmts.empty()) return nop();
  if (stmts.size() == 1) return stmts[0];
  return make<SeqStmt>({std::move(stmts)});
}
Ref<BlockRealize> realized(Ref<Block> block, SpanId span) {
  return make<BlockRealize>({{}, bool_imm(true), std::move(block)}, span);
}
Stmt nop() { return make<Evaluate>({i32(0)}); }
bool is_nop(const Stmt& s) {
  const Evaluate* e = s.as<Evaluate>();
  return e && e->value.is<IntImm>();
}
Stmt loop(Ref<Var> v, Expr extent, Stmt body, ForKind kind) {
  Expr start = zero(extent.dtype());
  return make<For>({std::move(v), std::move(start), std::move(extent), kind, {}, {}, std::move(body)});
}
Ref<Module> as_module(const Ref<PrimFunc>& func) {
  const NodeRef symbol = func->attrs.get("global_symbol");
  const StringImm* name = symbol.as<StringImm>();
  Module module;
  module.functions.emplace_back(name ? name->value : "main", func);
  return make(std::move(module));
}
Ref<Module> with_function(const Ref<Module>& module, const std::string& name, const Func& func) {
  Module copy = *module;
  for (auto& [key, old] : copy.functions) {
    if (key == name) {
      old = func;
      return make(std::move(copy), module.span());
    }
  }
  copy.functions.emplace_back(name, func);
  return make(std::move(copy), module.span());
}

}  // namespace tilewright
