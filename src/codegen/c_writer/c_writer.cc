// KernelWriter writes one kernel of any dialect, statement by statement. Functions that the text calls, such as those
// of operations whose edges the language leaves open, are collected in Functions, which write_kernels() puts in front.
#include "codegen/c_writer/c_writer.h"

#include <fmt/format.h>
#include <array>

#include <algorithm>

#include "codegen/c_writer/assertions.h"
#include "codegen/c_writer/functions.h"
#include "codegen/c_writer/instructions.h"
#include "codegen/c_writer/literals.h"
#include "codegen/in_place.h"
#include "ir/annotations.h"
#include "ir/async_copy.h"
#include "ir/atomic_operation.h"
#include "ir/build.h"
#include "ir/dot4.h"
#include "ir/pointer_uses.h"
#include "ir/refuse_at.h"
#include "ir/substitute.h"
#include "ir/traverse.h"
#include "support/ranges.h"
#include "target/thread_axis.h"

namespace tilewright::codegen {
namespace {

constexpr int64_t kMostUnrolled = 64;

bool fits_int(const Interval& interval) { return interval.low >= INT32_MIN && interval.high <= INT32_MAX; }

class KernelWriter {
 public:
  /// `is_in_place`: parameters may be one memory.
  KernelWriter(const Dialect& dialect, Functions& functions, bool is_in_place)
      : dialect_(dialect), functions_(functions), is_in_place_(is_in_place) {}

  std::string write(const std::string& symbol, const PrimFunc& kernel) {
    symbol_ = symbol;
    instructions_.emplace(
        dialect_, functions_, kernel.body,
        Spellings{[&](const Ref<Var>& v) { return name_of(v); }, [&](const Expr& e) { return index(e); },
                  [&](const Expr& e) { return expr(e); }, [&](DataType t) { return storage(t); }});
    find_written(kernel.body);
    std::vector<std::string> parameters;
    for (const Ref<Var>& param : kernel.params) {
      const std::string name = name_of(param);
      if (param.dtype().is_handle()) {
        const PrimType* element = pointee(param);
        const DataType type = element ? element->dtype.element() : DataType::uint(8);
        pointers_[param] = storage(type);
        const char* constant = written_.contains(param) ? "" : "const ";
        // restrict would allow the compiler to ignore writes of other threads through the pointer.
        const bool is_exchanged = written_.contains(param) && read_.contains(param);
        const std::string pointer = fmt::format("{}{}{}*", dialect_.address_space("global"), constant, storage(type));
        const std::string restricted = is_exchanged || is_in_place_ ? "" : std::string(dialect_.restrict_word()) + " ";
        if (dialect_.has_addresses()) {
          parameters.push_back(fmt::format("{} {}{}", pointer, restricted, name));
        } else {
          parameters.push_back(fmt::format("{} {}{}_memory", pointer, restricted, name));
          parameters.push_back(fmt::format("{} {}_offset", dialect_.type(DataType::int_(64)), name));
          line(fmt::format("{0} {1} = ({0})(({2}{3}char*){1}_memory + {1}_offset);", pointer, name,
                           dialect_.address_space("global"), constant));
        }
        index_.define_pointer(param, type.bytes(), true);
      } else {
        // A bool is no type of an argument of a kernel.
        const DataType type = param.dtype();
        parameters.push_back(storage(type) + " " + (is_narrow(type) ? name + "_bits" : name));
        if (is_narrow(type)) line(fmt::format("const float {} = {}({}_bits);", name, functions_.load(type), name));
        index_.define(param);
      }
    }
    assertions_.emplace(dialect_, functions_, kernel.body);
    append_range(parameters, assertions_->parameters());
    for (const std::string& start : assertions_->begin()) line(start);
    std::array<int64_t, 3> threads = {1, 1, 1};
    Stmt body = kernel.body;
    while (body.is<For>() && body.as<For>()->kind == ForKind::kThreadBinding) {
      const For& loop = *body.as<For>();
      const std::string& tag = loop.thread_binding->thread_tag;
      auto axis = ThreadAxis::parse(tag);
      if (axis && axis->in_team()) {
        threads[static_cast<size_t>(axis->dimension)] = const_int(loop.extent).value_or(0);
      }
      const int64_t most = const_int(loop.extent).value_or(int64_t{INT32_MAX} + 1) - 1;
      index_.define(loop.loop_var, Interval{0, std::max<int64_t>(most, 0)});
      line(fmt::format("const {} {} = {};", dialect_.type(loop.loop_var.dtype()), name_of(loop.loop_var),
                       dialect_.thread_index(tag)));
      body = loop.body;
    }
    emit(body);
    return fmt::format("{} {{\n{}}}\n", dialect_.kernel_head(symbol, parameters, threads), text_);
  }

  std::optional<Diagnostic>& error() { return error_; }
  const std::string& constants() const { return constants_; }
  bool uses_double() const { return uses_double_; }

 private:
  // ---- names, types, lines

  static const PrimType* pointee(const Ref<Var>& pointer) {
    const PointerType* type = pointer->type_annotation.as<PointerType>();
    return type ? type->element_type.as<PrimType>() : nullptr;
  }

  std::string name_of(const Ref<Var>& v) {
    if (auto* found = find_value(names_, v)) return *found;
    std::string base;
    for (char c : v->name_hint) base += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
    // No name of the languages or of their libraries ends with one underscore, and none of the writer's functions
    // begins with a v.
    if (base.empty() || !std::isalpha(static_cast<unsigned char>(base[0])) || base.starts_with("tw_"))
      base = "v" + base;
    if (base.size() > 1) base += "_";
    std::string name = base;
    for (int number = 1; !taken_.insert(name).second; ++number) name = fmt::format("{}_{}", base, number);
    names_[v] = name;
    return name;
  }

  std::string type(DataType type) {
    uses_double_ |= type.is_float() && type.bits == 64;
    return dialect_.type(type);
  }
  /// In memory.
  std::string storage(DataType type) {
    if (type.is_bool()) return dialect_.type(DataType::uint(8));
    if (is_narrow(type)) {
      check_type(type);
      return dialect_.type(DataType::uint(type.bits));
    }
    return this->type(type);
  }

  void line(const std::string& text) { text_ += std::string(2 * static_cast<size_t>(depth_), ' ') + text + "\n"; }

  std::string fail(const NodeRef& node, std::string code, std::string message, std::string hint) {
    if (!error_) error_ = refuse_at(node, std::move(code), std::move(message), std::move(hint));
    return "0";
  }

  void check_type(DataType type) {
    if (type.is_vector() || (is_narrow(type) && type.bits < 8) || (type.is_float() && type.bits > 64) ||
        (type.is_integral() && type.bits > 64)) {
      if (!error_) {
        error_ = script_error("codegen/not-on-device",
                              fmt::format("there is no code for values of {} in {}", type.str(), dialect_.name()),
                              "use a type of 8 bits or more in kernels");
      }
    }
  }

  void find_written(const Stmt& body) {
    visit(
        body,
        [&](const Ref<BufferStore>& store) {
          written_.insert(store->buffer->data);
          const BufferLoad* load = store->value.as<BufferLoad>();
          if (!load || store->value.dtype().is_scalar()) return;
          vectors_.insert({store->buffer->data, load->buffer->data});
        },
        [&](const Ref<BufferLoad>& load) { read_.insert(load->buffer->data); },
        [&](const Ref<IfThenElse>& branch) { note_perhaps_written(branch); },
        [&](const Ref<For>& loop) {
          if (const_int(loop->extent).value_or(0) < 1) note_perhaps_written(loop);
        },
        [&](const Ref<Call>& call) {
          if (const BufferLoad* element = addressed_element(call)) {
            written_.insert(element->buffer->data);
            read_.insert(element->buffer->data);
          }
          if (auto copy = AsyncCopy::of(call)) read_.insert(copy->from);
          auto memory = Fragments::memory_of(call);
          if (memory && (call->args.size() < 5 || const_int(call->arg(4)).value_or(2) & 2)) {
            written_.insert(memory->data);
          }
          if (memory) read_.insert(memory->data);
        });
    for (const NodeRef& pointer : written_) {
      exchanges_global_ |= read_.contains(pointer) && scope_of(pointer.borrow<Var>()).starts_with("global");
    }
  }

  void note_perhaps_written(const Stmt& inside) {
    visit(inside, [&](const Ref<BufferStore>& store) { perhaps_written_.insert(store->buffer->data); });
  }

  // ---- expressions

  std::string floating(DataType t, double value) {
    (void)type(t);
    return float_literal(dialect_, t, value);
  }

  /// The interval of an integer, where no part of it leaves `int`.
  bool stays_in_int(const Expr& e) {
    auto interval = index_.interval_of(e);
    if (!interval || !fits_int(*interval)) return false;
    const BinaryOperands operands = binary_operands(e);
    if (operands) return stays_in_int(*operands.a) && stays_in_int(*operands.b);
    if (const Cast* cast = e.as<Cast>()) return cast->value.dtype().is_integral() && stays_in_int(cast->value);
    return true;
  }

  /// Index arithmetic: it does not overflow, so it is done in a type that holds all of it.
  std::string index(const Expr& e) {
    if (stays_in_int(e)) return arithmetic(e, DataType::int_(32));
    return arithmetic(e, DataType::int_(64));
  }

  std::string arithmetic(const Expr& e, DataType in) {
    if (auto known = const_int(e)) return integer_literal(in, *known);
    const bool is_signed = e.dtype().is_int() && (e.dtype().bits == 32 || e.dtype().bits == 64);
    const BinaryOperands operands = is_signed ? binary_operands(e) : BinaryOperands{};
    auto binary = [&](const char* op) {
      return fmt::format("({} {} {})", arithmetic(*operands.a, in), op, arithmetic(*operands.b, in));
    };
    auto called = [&](const std::string& function) {
      return fmt::format("{}({}, {})", function, arithmetic(*operands.a, in), arithmetic(*operands.b, in));
    };
    if (operands) {
      switch (e.kind()) {
        case Kind::kAdd:
          return binary("+");
        case Kind::kSub:
          return binary("-");
        case Kind::kMul:
          return binary("*");
        case Kind::kFloorDiv:
        case Kind::kFloorMod: {
          const bool divides = e.kind() == Kind::kFloorDiv;
          if (const_int(*operands.b).value_or(0) > 0 && index_.is_nonnegative(*operands.a)) {
            return binary(divides ? "/" : "%");
          }
          return called(functions_.division(divides ? "floordiv" : "floormod", in));
        }
        case Kind::kMin:
          return called(functions_.min_max(true, in));
        case Kind::kMax:
          return called(functions_.min_max(false, in));
        default:
          break;
      }
    }
    if (const Cast* cast = e.as<Cast>(); cast && is_signed && cast->value.dtype().is_int() &&
                                         cast->value.dtype().bits >= 32 &&
                                         cast->value.dtype().bits <= cast->dtype.bits) {
      return arithmetic(cast->value, in);
    }
    const std::string value = expr(e);
    return e.dtype() == in ? value : fmt::format("({}){}", dialect_.type(in), value);
  }

  std::string expr(const Expr& e) {
    const DataType t = e.dtype();
    if (!t.is_handle()) check_type(t);
    switch (e.kind()) {
      case Kind::kVar:
        return name_of(e.borrow<Var>());
      case Kind::kIntImm:
        return integer_literal(t, e.as<IntImm>()->value);
      case Kind::kFloatImm:
        return floating(t, e.as<FloatImm>()->value);
      case Kind::kCast:
        return cast(e.as<Cast>()->value, t);
      case Kind::kNot:
        return fmt::format("!{}", expr(e.as<Not>()->a));
      case Kind::kAnd:
      case Kind::kOr: {
        const auto [a, b] = binary_operands(e);
        return fmt::format("({} {} {})", expr(*a), e.is<And>() ? "&&" : "||", expr(*b));
      }
      case Kind::kSelect: {
        const Select& select = *e.as<Select>();
        return fmt::format("({} ? {} : {})", expr(select.condition), expr(select.true_value), expr(select.false_value));
      }
      case Kind::kLet: {
        const Let& let = *e.as<Let>();
        return expr(substitute(let.body, {{let.var, let.value}}));
      }
      case Kind::kBufferLoad: {
        const BufferLoad& load = *e.as<BufferLoad>();
        const std::string element = access(load.buffer, load.indices, e);
        if (t.is_bool()) return fmt::format("({} != 0)", element);
        return is_narrow(t) ? fmt::format("{}({})", functions_.load(t), element) : element;
      }
      case Kind::kCall:
        return call(e.borrow<Call>());
      default:
        break;
    }
    if (binary_operands(e)) return binary(e);
    return fail(e, "codegen/not-on-device",
                fmt::format("there is no code for a {} in {}", kind_name(e.kind()), dialect_.name()),
                "compute it without vectors, or outside of the kernel");
  }

  std::string binary(const Expr& e) {
    const BinaryOperands operands = binary_operands(e);
    const DataType t = operands.a->dtype();
    const Kind kind = e.kind();
    if (t.is_int() && t.bits == 32 && kind <= Kind::kMax && e.dtype() == t && stays_in_int(e)) {
      return arithmetic(e, t);
    }
    const std::string a = expr(*operands.a), b = expr(*operands.b);
    auto plain = [&](const char* op) { return fmt::format("({} {} {})", a, op, b); };
    auto called = [&](const std::string& function) { return fmt::format("{}({}, {})", function, a, b); };
    auto rounded = [&](std::string value) {
      return is_narrow(t) ? fmt::format("{}({})", functions_.round(t), value) : value;
    };
    switch (kind) {
      case Kind::kAdd:
      case Kind::kSub:
      case Kind::kMul: {
        const char* op = kind == Kind::kAdd ? "+" : kind == Kind::kSub ? "-" : "*";
        if (t.is_float()) return rounded(plain(op));
        if (t.is_bool()) return plain(kind == Kind::kMul ? "&&" : "!=");  // modulo 2
        // Signed overflow is undefined in C: compute in an unsigned type, at least as wide as int because of promotion.
        const std::string wide = type(DataType::uint(std::max<int>(t.bits, 32)));
        return fmt::format("(({})(({}){} {} ({}){}))", type(t), wide, a, op, wide, b);
      }
      case Kind::kDiv:
        return t.is_float() ? rounded(plain("/")) : called(functions_.division("truncdiv", t));
      case Kind::kMod:
        return called(functions_.division("truncmod", t));
      case Kind::kFloorDiv:
        if (t.is_float()) return rounded(fmt::format("{}({})", dialect_.math(Intrinsic::k_floor, t), plain("/")));
        return called(functions_.division("floordiv", t));
      case Kind::kFloorMod:
        return rounded(called(functions_.division("floormod", t)));
      case Kind::kMin:
        return called(functions_.min_max(true, t));
      case Kind::kMax:
        return called(functions_.min_max(false, t));
      case Kind::kEQ:
        return plain("==");
      case Kind::kNE:
        return plain("!=");
      case Kind::kLT:
        return plain("<");
      case Kind::kLE:
        return plain("<=");
      case Kind::kGT:
        return plain(">");
      default:
        return plain(">=");
    }
  }

  std::string cast(const Expr& value, DataType to) {
    const DataType from = value.dtype();
    std::string v = expr(value);
    if (from == to) return v;
    if (to.is_bool()) return fmt::format("({} != 0)", v);
    if (to.is_integral()) {
      return from.is_float() ? fmt::format("{}({})", functions_.to_integer(from, to), v)
                             : fmt::format("(({}){})", type(to), v);
    }
    if (is_narrow(to)) {
      const bool is_rounded = from.is_float() ? from.bits == 64 : from.bits >= 32;
      if (is_rounded) v = fmt::format("{}({})", functions_.round_to_odd(from), v);
      return fmt::format("{}((float){})", functions_.round(to), v);
    }
    return fmt::format("(({}){})", type(to), v);
  }

  std::string access(const Ref<Buffer>& buffer, const std::vector<Expr>& indices, const NodeRef& node) {
    if (indices.size() != 1 || indices[0].dtype().is_vector()) {
      return fail(node, "codegen/not-on-device",
                  "an access of a vector of '" + buffer->name + "' reached " + std::string(dialect_.name()),
                  "leave the loop around it serial");
    }
    std::string pointer = name_of(buffer->data);
    const std::string element = storage(buffer->dtype);
    auto* held = find_value(pointers_, buffer->data);
    if (!held || *held != element) {
      pointer = fmt::format("(({}{}*){})", dialect_.address_space(scope(buffer->data)), element, pointer);
    }
    return fmt::format("{}[{}]", pointer, strip(index(indices[0])));
  }

  std::string scope(const Ref<Var>& data) const {
    return spaces_.contains(data) ? spaces_.at(data) : std::string(scope_of(data));
  }

  static std::string strip(const std::string& text) { return without_parentheses(text); }

  std::string call(const Ref<Call>& call) {
    const Intrinsic intrinsic = intrinsic_of(*call);
    const DataType t = call->dtype;
    std::vector<std::string> args;
    auto arg = [&](size_t i) { return call->arg(i); };
    auto unsupported = [&]() {
      const Op* op = call->op.as<Op>();
      return fail(call, "codegen/not-on-device",
                  fmt::format("there is no code for {} in {}", op ? op->name : "a call of a function", dialect_.name()),
                  "compute it with operations that every target has, or compile for another target");
    };
    switch (intrinsic) {
      case Intrinsic::k_if_then_else:
        return fmt::format("({} ? {} : {})", expr(arg(0)), expr(arg(1)), expr(arg(2)));
      case Intrinsic::k_likely:
        return expr(arg(0));
      case Intrinsic::k_undef:
        return t.is_float() ? floating(t, 0) : integer_literal(t, 0);
      case Intrinsic::k_reinterpret: {
        const DataType from = arg(0).dtype();
        std::string bits = is_narrow(from) ? fmt::format("{}({})", functions_.store(from), expr(arg(0))) : expr(arg(0));
        if (from.is_bool() || t.is_bool()) return unsupported();
        const DataType held = is_narrow(from) ? DataType::uint(from.bits) : from;
        if (is_narrow(t)) {
          return fmt::format("{}({})", functions_.load(t), dialect_.reinterpret(held, DataType::uint(t.bits), bits));
        }
        return dialect_.reinterpret(held, t, bits);
      }
      case Intrinsic::k_large_uint_imm: {
        auto low = const_int(arg(0)), high = const_int(arg(1));
        return low && high ? integer_literal(t, *high << 32 | *low) : unsupported();
      }
      case Intrinsic::k_tvm_warp_activemask:
      case Intrinsic::k_tvm_warp_shuffle:
      case Intrinsic::k_tvm_warp_shuffle_up:
      case Intrinsic::k_tvm_warp_shuffle_down: {
        auto step = WarpShuffle::of(call);
        if (step) args = {expr(step->mask), expr(step->value), expr(step->lane), std::to_string(step->width)};
        const std::string exchange =
            step || intrinsic == Intrinsic::k_tvm_warp_activemask ? dialect_.shuffle(intrinsic, args) : "";
        if (exchange.empty()) return unsupported();
        return t.is_bool() ? fmt::format("({} != 0)", exchange) : fmt::format("(({}){})", type(t), exchange);
      }
      case Intrinsic::k_atomic_add:
      case Intrinsic::k_atomic_min:
      case Intrinsic::k_atomic_max:
      case Intrinsic::k_atomic_and:
      case Intrinsic::k_atomic_or:
      case Intrinsic::k_atomic_xor:
      case Intrinsic::k_atomic_exchange: {
        auto step = AtomicOperation::of(call);
        if (!step) return unsupported();
        const std::string function = functions_.atomic(intrinsic, t, scope(step->buffer->data));
        if (function.empty()) {
          return fail(call, "codegen/not-on-device",
                      "an atomic operation on '" + step->buffer->name + "', which each thread has for itself",
                      "update it by a store: x[0] = x[0] + value");
        }
        return fmt::format("{}(&{}, {})", function, access(step->buffer, step->indices, call), expr(step->value));
      }
      case Intrinsic::k_dp4a:
      case Intrinsic::k_call_pure_extern: {
        auto products = Dot4::of(*call);
        if (!products) return unsupported();
        return fmt::format("{}({}, {}, {})", functions_.dot4(products->left, products->right, t), word(products->a),
                           word(products->b), expr(products->sum));
      }
      case Intrinsic::k_address_of: {
        const BufferLoad* element = call->args[0].as<BufferLoad>();
        return element ? "&" + access(element->buffer, element->indices, call) : unsupported();
      }
      default:
        break;
    }
    const IntrinsicRow& row = intrinsic_row(intrinsic);
    if (!row.of_floats && !row.of_integers) return unsupported();
    for (size_t i : indices_of(call->args)) args.push_back(expr(arg(i)));
    const DataType of = arg(0).dtype();
    return of.is_float() ? float_call(intrinsic, of, t, args, arg(args.size() - 1).dtype(), unsupported)
                         : integer_call(intrinsic, of, t, args, unsupported);
  }

  /// Returns four bytes as an unsigned word. A vector of four bytes is in a register (scalarize_vectors).
  std::string word(const Expr& bytes) {
    if (bytes.dtype().is_scalar()) return fmt::format("({}){}", type(DataType::uint(32)), expr(bytes));
    const BufferLoad* load = bytes.as<BufferLoad>();
    const Ramp* ramp = load ? load->indices[0].as<Ramp>() : nullptr;
    return ramp ? dialect_.load_word("&" + access(load->buffer, {ramp->base}, bytes)) : expr(bytes);
  }

  template <class F>
  std::string float_call(Intrinsic intrinsic, DataType of, DataType result, std::vector<std::string>& args,
                         DataType last, const F& unsupported) {
    (void)type(of);
    auto rounded = [&](const std::string& value) {
      return is_narrow(result) ? fmt::format("{}({})", functions_.round(result), value) : value;
    };
    switch (intrinsic) {
      case Intrinsic::k_isnan:
        return fmt::format("({0} != {0})", args[0]);
      case Intrinsic::k_isinf:
        return fmt::format("(isinf({}) != 0)", args[0]);
      case Intrinsic::k_isfinite:
        return fmt::format("(isfinite({}) != 0)", args[0]);
      case Intrinsic::k_rsqrt:
        return rounded(fmt::format("(1 / {}({}))", dialect_.math(Intrinsic::k_sqrt, of), args[0]));
      case Intrinsic::k_sigmoid:
        return rounded(fmt::format("{}({})", functions_.sigmoid(of), args[0]));
      case Intrinsic::k_ldexp: {
        return rounded(fmt::format("{}({}, {})", dialect_.math(Intrinsic::k_ldexp, of), args[0],
                                   functions_.power_of_two(args[1], last)));
      }
      default:
        break;
    }
    const std::string name = dialect_.math(intrinsic, of);
    // nextafter of a 16-bit float is another number than nextafter of the float32 that holds its value.
    if (name.empty() || (intrinsic == Intrinsic::k_nextafter && is_narrow(of))) return unsupported();
    return rounded(fmt::format("{}({})", name, fmt::join(args, ", ")));
  }

  template <class F>
  std::string integer_call(Intrinsic intrinsic, DataType of, DataType result, const std::vector<std::string>& args,
                           const F& unsupported) {
    const std::string t = type(of), u = type(DataType::uint(of.bits));
    auto both = [&](const char* op) { return fmt::format("(({})({} {} {}))", t, args[0], op, args[1]); };
    switch (intrinsic) {
      case Intrinsic::k_bitwise_and:
        return both("&");
      case Intrinsic::k_bitwise_or:
        return both("|");
      case Intrinsic::k_bitwise_xor:
        return both("^");
      case Intrinsic::k_bitwise_not:
        return of.is_bool() ? fmt::format("!{}", args[0]) : fmt::format("(({})~{})", t, args[0]);
      case Intrinsic::k_shift_left:
      case Intrinsic::k_shift_right:
        if (of.is_bool()) return unsupported();
        return fmt::format("{}({}, {})", functions_.shift(intrinsic == Intrinsic::k_shift_left, of), args[0], args[1]);
      case Intrinsic::k_fabs:
        if (of.is_uint()) return args[0];
        return fmt::format("(({0})({1} < 0 ? 0 - ({2}){1} : ({2}){1}))", t, args[0], u);
      case Intrinsic::k_isnan:
      case Intrinsic::k_isinf:
        return "false";
      case Intrinsic::k_isfinite:
        return "true";
      default:
        break;
    }
    if (of.is_bool()) return intrinsic == Intrinsic::k_popcount ? args[0] : unsupported();
    const std::string found = call_on_integer(dialect_, intrinsic, of.bits, fmt::format("({}){}", u, args[0]));
    return found.empty() ? unsupported() : fmt::format("(({}){})", type(result), found);
  }

  // ---- statements

  void braces(const std::string& head, const Stmt& body, bool is_branch = false) {
    line(head + " {");
    ++depth_;
    emit(body);
    if (is_branch && dialect_.ends_branches_with_barriers() &&
        any_node(body, [](const Ref<Call>& call) { return intrinsic_of(*call) == Intrinsic::k_tvm_storage_sync; })) {
      line(dialect_.barrier(exchanges_global_));
    }
    --depth_;
    line("}");
  }

  void emit(const Stmt& s) {
    if (error_) return;
    switch (s.kind()) {
      case Kind::kSeqStmt:
        for (const Stmt& item : s.as<SeqStmt>()->seq) emit(item);
        return;
      case Kind::kFor:
        return emit_loop(*s.as<For>());
      case Kind::kWhile:
        return braces(fmt::format("while ({})", strip(expr(s.as<While>()->condition))), s.as<While>()->body);
      case Kind::kIfThenElse: {
        const IfThenElse& branch = *s.as<IfThenElse>();
        braces(fmt::format("if ({})", strip(expr(branch.condition))), branch.then_case, true);
        if (branch.else_case.defined()) braces("else", branch.else_case, true);
        return;
      }
      case Kind::kBufferStore: {
        const BufferStore& store = *s.as<BufferStore>();
        const DataType t = store.buffer->dtype;
        if (store.value.dtype().is_vector()) return emit_vector(store, s);
        std::string value = expr(store.value);
        if (is_narrow(t)) value = fmt::format("{}({})", functions_.store(t), value);
        line(fmt::format("{} = {};", access(store.buffer, store.indices, s), strip(value)));
        return;
      }
      case Kind::kEvaluate: {
        const Expr& value = s.as<Evaluate>()->value;
        if (is_call_to(value, Intrinsic::k_tvm_storage_sync)) return line(dialect_.barrier(exchanges_global_));
        if (Instructions::holds(value)) return emit_instruction(value.borrow<Call>());
        if (effect_of(value) == Effect::kUpdateState) line(strip(expr(value)) + ";");
        return;
      }
      case Kind::kLetStmt: {
        const LetStmt& let = *s.as<LetStmt>();
        const Ref<Var>& v = let.var;
        if (v.dtype().is_handle()) {
          emit_pointer(v, let.value);
        } else {
          std::string value = expr(let.value);
          index_.define(v, let.value);
          line(fmt::format("const {} {} = {};", type(v.dtype()), name_of(v), strip(value)));
        }
        return emit(let.body);
      }
      case Kind::kAllocate:
        return emit_allocate(*s.as<Allocate>(), s);
      case Kind::kAllocateConst:
        emit_constant(*s.as<AllocateConst>());
        return emit(s.as<AllocateConst>()->body);
      case Kind::kDeclBuffer:
        return emit(s.as<DeclBuffer>()->body);
      case Kind::kAttrStmt:
        return emit(s.as<AttrStmt>()->body);
      case Kind::kAssertStmt:
        return emit_assertion(s.borrow<AssertStmt>());
      default:
        error_ = internal_error("codegen/not-lowered", "a " + kind_name(s.kind()) + " reached code generation");
    }
  }

  void emit_assertion(const Ref<AssertStmt>& assertion) {
    const Call* parts = assertion->message.as<Call>();
    const auto [lines, head] =
        assertions_->write(assertion, strip(expr(assertion->condition)), parts ? strip(expr(parts->arg(1))) : "0");
    for (const std::string& text : lines) line(text);
    if (head.empty()) return emit(assertion->body);
    braces(head, assertion->body, true);
  }

  void emit_loop(const For& loop) {
    if (loop.kind == ForKind::kThreadBinding) {
      error_ = internal_error("codegen/not-lowered", "a bound loop inside of a kernel reached code generation");
      return;
    }
    const std::string t = type(loop.loop_var.dtype());
    const Expr past = loop.min + loop.extent;
    const std::string begin = index(loop.min);
    std::string end = index(past);
    index_.define(loop.loop_var, index_.interval_of(loop));
    const std::string name = name_of(loop.loop_var);
    if (effect_of(past) != Effect::kPure) {  // the body may write what the bound reads
      const DataType wide = DataType::int_(stays_in_int(past) ? 32 : 64);
      const std::string bound = name_of(var(loop.loop_var->name_hint + "_end", wide));
      line(fmt::format("const {} {} = {};", type(wide), bound, strip(end)));
      end = bound;
    }
    const bool is_short = const_int(loop.extent).value_or(kMostUnrolled + 1) <= kMostUnrolled;
    if (loop.kind == ForKind::kUnrolled || (is_short && instructions_->selects_registers(loop.loop_var))) {
      line("#pragma unroll");
    }
    braces(fmt::format("for ({0} {1} = {2}; {1} < {3}; ++{1})", t, name, strip(begin), strip(end)), loop.body);
  }

  void emit_pointer(const Ref<Var>& v, const Expr& value) {
    const PrimType* element = pointee(v);
    const std::string t = storage(element ? element->dtype.element() : DataType::uint(8));
    const std::string space = dialect_.address_space(scope_of(v));
    pointers_[v] = t;
    spaces_[v] = scope_of(v);
    line(fmt::format("{0}{1}* {2} = ({0}{1}*)({3});", space, t, name_of(v), expr(value)));
    index_.define_pointer(v, 1, false);
  }

  void emit_allocate(const Allocate& allocate, const Stmt& s) {
    const std::string scope = scope_of(allocate.buffer_var), name = name_of(allocate.buffer_var);
    auto count = const_int(allocate.extents[0]);
    const std::string t = storage(allocate.dtype.element());
    if (!count) {
      (void)fail(s, "codegen/not-on-device",
                 "the size of buffer '" + allocate.buffer_var->name_hint + "' of a thread is not a constant",
                 "split the loops around it, so that a thread works on a tile of constant size");
      return;
    }
    const int64_t elements = std::max<int64_t>(*count * allocate.dtype.lanes, 1);
    pointers_[allocate.buffer_var] = t;
    spaces_[allocate.buffer_var] = scope;
    index_.define_pointer(allocate.buffer_var, allocate.dtype.bytes(), true);
    if (scope.starts_with("shared")) {
      const bool is_dynamic = elements * allocate.dtype.element().bytes() > dialect_.max_static_shared_bytes();
      line(is_dynamic ? dialect_.dynamic_shared_array(t, name) : dialect_.shared_array(t, name, elements));
    } else if (scope == "local") {
      const bool is_aligned = allocate.dtype.element().bytes() < 4 || vectors_.contains(allocate.buffer_var);
      const std::string_view initializer =
          perhaps_written_.contains(allocate.buffer_var) ? dialect_.private_initializer() : "";
      line(fmt::format("{}{} {}[{}]{};", is_aligned ? dialect_.private_array_alignment() : "", t, name, elements,
                       initializer));
    } else if (auto shape = instructions_->fragments().shape_of(allocate.buffer_var);
               shape && dialect_.fragment_registers(*shape)) {
      const int64_t tiles = std::max<int64_t>(elements / (shape->rows() * shape->columns()), 1);
      line(
          fmt::format("{} {}[{}];", dialect_.fragment_type(*shape), name, tiles * dialect_.fragment_registers(*shape)));
    } else {
      (void)fail(s, "codegen/not-on-device",
                 "memory of scope \"" + scope + "\" is not there in " + std::string(dialect_.name()),
                 "use \"shared\" or \"local\"; fragments of matrices need a target with tensor cores");
      return;
    }
    emit(allocate.body);
  }

  void emit_vector(const BufferStore& store, const Stmt& s) {
    const BufferLoad* load = store.value.as<BufferLoad>();
    auto first = [&](const Ref<Buffer>& buffer, const std::vector<Expr>& indices) {
      const Ramp* ramp = indices.size() == 1 ? indices[0].as<Ramp>() : nullptr;
      return ramp ? "&" + access(buffer, {ramp->base}, s) : access(buffer, indices, s);
    };
    if (!load) return (void)expr(store.value);  // says that it is not there
    const int lanes = store.value.dtype().lanes;
    const DataType type = store.buffer->dtype;
    const auto copy = dialect_.vector_copy(storage(type), lanes, int64_t{lanes} * type.bytes(),
                                           first(store.buffer, store.indices), first(load->buffer, load->indices));
    if (!copy.name.empty()) functions_.add(copy.name, copy.text);
    line(copy.expression + ";");
  }

  void emit_instruction(const Ref<Call>& call) {
    Result<std::string> text = instructions_->statement(call);
    if (text.ok()) return line(*text);
    if (!error_) error_ = std::move(text.error());
  }

  void emit_constant(const AllocateConst& constant) {
    DataType element = constant.dtype.element();
    // NaN and infinity have no literal in all dialects, so the array holds their bits.
    const bool as_bits = element.is_float() && !is_narrow(element) && has_no_digits(constant.data->bytes, element);
    if (as_bits) element = DataType::uint(element.bits);
    const std::string t = storage(element), name = symbol_ + "_" + name_of(constant.buffer_var);
    names_[constant.buffer_var] = name;  // visible in the whole text
    const std::string& bytes = constant.data->bytes;
    std::vector<std::string> items;
    const size_t size = static_cast<size_t>(element.bytes());
    for (size_t at = 0; at + size <= bytes.size(); at += size) {
      uint64_t bits = 0;
      std::copy_n(bytes.data() + at, size, reinterpret_cast<char*>(&bits));
      if (element.is_float() && !is_narrow(element)) {
        float f = 0;
        double d = 0;
        std::copy_n(bytes.data() + at, size,
                    element.bits == 64 ? reinterpret_cast<char*>(&d) : reinterpret_cast<char*>(&f));
        items.push_back(floating(element, element.bits == 64 ? d : static_cast<double>(f)));
      } else if (element.is_int()) {
        const int shift = 64 - static_cast<int>(size) * 8;
        items.push_back(integer_literal(element, static_cast<int64_t>(bits << shift) >> shift));
      } else {
        items.push_back(integer_literal(DataType::uint(static_cast<int>(size) * 8), static_cast<int64_t>(bits)));
      }
    }
    if (items.empty()) items.emplace_back("0");
    pointers_[constant.buffer_var] = t;
    spaces_[constant.buffer_var] = "constant";
    constants_ += fmt::format("{} = {{{}}};\n", dialect_.constant_array(t, name, static_cast<int64_t>(items.size())),
                              fmt::join(items, ", "));
  }

  const Dialect& dialect_;
  Functions& functions_;
  bool is_in_place_;
  IndexAnalysis index_;
  std::optional<Instructions> instructions_;
  std::optional<Assertions> assertions_;
  std::unordered_map<NodeRef, std::string> names_, pointers_, spaces_;  ///< for pointers: element type, scope
  std::set<std::string> taken_;
  std::unordered_set<NodeRef> written_, read_, vectors_;
  std::unordered_set<NodeRef> perhaps_written_;  ///< under conditions, or in loops that may have no iteration
  bool exchanges_global_ = false, uses_double_ = false;
  std::string symbol_, text_, constants_;
  int depth_ = 1;
  std::optional<Diagnostic> error_;
};

}  // namespace

Result<std::string> write_kernels(const Ref<Module>& lowered, const Dialect& dialect) {
  Functions functions(dialect);
  std::string text;
  bool is_double = false;
  const std::set<std::string> in_place = kernels_in_place(lowered);
  for (const auto& [name, func] : lowered->functions) {
    const PrimFunc* kernel = func.as<PrimFunc>();
    if (!kernel || !is_kernel(*kernel)) continue;
    KernelWriter writer(dialect, functions, in_place.contains(name));
    std::string one = writer.write(kernel_symbol(name), *kernel);
    if (writer.error()) return *writer.error();
    text += writer.constants() + one + "\n";
    is_double |= writer.uses_double();
  }
  return dialect.prelude(is_double) + functions.all_text() + text;
}

}  // namespace tilewright::codegen
