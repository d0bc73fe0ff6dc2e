#include "ir/literal.h"

#include <charconv>
#include <cmath>
#include <string>

#include "ir/numeric.h"
#include "support/diagnostic.h"

namespace tilewright {
namespace {

constexpr DataType kFloat32 = DataType::float_(32);
constexpr DataType kFloat64 = DataType::float_(64);

[[noreturn, gnu::cold]] void refuse(std::string message, std::string hint) {
  throw Exception(script_error("ir/literal", std::move(message), std::move(hint)));
}

/// The shortest text that is read back as the same number.
std::string text_of(double value) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

std::string text_of(const Operand& number) {
  if (const IntImm* v = number.node.as<IntImm>()) {
    bool big = v->dtype.is_uint() && v->value < 0;
    return big ? std::to_string(static_cast<uint64_t>(v->value)) : std::to_string(v->value);
  }
  const FloatImm* v = number.node.as<FloatImm>();
  return v ? text_of(v->value) : "a number";
}

/// A FloatImm as the rest of the compiler knows it; messages show the `number`, where it is one.
Expr rounded(DataType type, double value, const Operand* number = nullptr) {
  double result = round_float(type, value);
  bool saturates = std::isfinite(round_float(type, HUGE_VAL));
  bool is_beyond = !std::isfinite(result) || (saturates && std::fabs(value) > float_max(type));
  if (std::isfinite(value) && is_beyond) {
    std::string text = number ? text_of(*number) : text_of(value);
    refuse(text + " is beyond the range of " + type.str() + ", which ends at " + text_of(float_max(type)),
           type.bits == 64
               ? "no type has a larger range; T.infinity(\"float64\") is infinity"
               : "give it a wider type, as in T.float64(" + text + "), or write T.infinity(\"" + type.str() + "\")");
  }
  return float_imm(type, result);
}

/// A FloatImm of type float32 whose value is not rounded: make() would round it, and count an operation.
Expr untyped(double value) {
  auto* node = new NodeOf<FloatImm>(FloatImm{kFloat32, value});
  node->dtype = kFloat32;
  node->operations = 0;
  node->span = current_span();
  return Expr(node);
}

bool is_untyped(const NodeRef& node) { return node.is<FloatImm>() && node.get()->operations == 0; }

bool is_choice(const NodeRef& node) {
  return node.is<Select>() || node.is<Broadcast>() || node.is<Min>() || node.is<Max>() ||
         (node.is<Call>() && is_call_to(Expr(node), Intrinsic::k_if_then_else));
}

bool is_arithmetic(Kind kind) {
  return kind == Kind::kAdd || kind == Kind::kSub || kind == Kind::kMul || kind == Kind::kDiv ||
         kind == Kind::kFloorDiv || kind == Kind::kFloorMod;
}

bool is_comparison(Kind kind) {
  return kind == Kind::kEQ || kind == Kind::kNE || kind == Kind::kLT || kind == Kind::kLE || kind == Kind::kGT ||
         kind == Kind::kGE;
}

/// The alternatives of a choice, or the operands of arithmetic; null where there are none, or only one.
struct Parts {
  const NodeRef *a = nullptr, *b = nullptr;
};
Parts parts_of(const NodeRef& node) {
  if (const Select* v = node.as<Select>()) return {&v->true_value, &v->false_value};
  if (const Broadcast* v = node.as<Broadcast>()) return {&v->value, nullptr};
  if (is_choice(node) && node.is<Call>()) return {&node.as<Call>()->args[1], &node.as<Call>()->args[2]};
  if (!is_choice(node) && !is_arithmetic(node.kind())) return {};
  BinaryOperands operands = binary_operands(static_cast<const Expr&>(node));
  return {operands.a, operands.b};
}

/// Whether all that the value is computed of are numbers for which `is_leaf` holds. The part that is less deep is
/// asked first: a long sum that ends with anything else is none at once.
template <class F>
bool is_tree_of(const NodeRef& node, F&& is_leaf) {
  const NodeRef* at = &node;
  for (;;) {
    if (is_leaf(*at)) return true;
    Parts parts = parts_of(*at);
    if (!parts.a) return false;
    if (parts.b && parts.a->get()->depth < parts.b->get()->depth) std::swap(parts.a, parts.b);
    if (parts.b && !is_tree_of(*parts.b, is_leaf)) return false;
    at = parts.a;
  }
}

/// A choice between integers, or arithmetic of such choices.
bool is_integer_tree(const NodeRef& node) {
  if (!node.defined() || node.sort() != Sort::kExpr || node.is<IntImm>()) return false;
  const DataType type = node.get()->dtype;
  return type.is_integral() && !type.is_bool() && is_tree_of(node, [](const NodeRef& e) { return e.is<IntImm>(); });
}

/// The expression with `type` as the type of its values; calls `convert` for each part.
template <class F>
Expr convert_parts(const Expr& e, F&& convert) {
  if (const Select* v = e.as<Select>()) {
    return make<Select>({v->condition, convert(v->true_value), convert(v->false_value)}, e.span());
  }
  if (const Broadcast* v = e.as<Broadcast>()) return make<Broadcast>({convert(v->value), v->lanes}, e.span());
  if (const Call* v = e.as<Call>()) {
    Expr yes = convert(Expr(v->args[1])), no = convert(Expr(v->args[2]));
    DataType type = yes.dtype();
    return make<Call>({type, v->op, {v->args[0], std::move(yes), std::move(no)}}, e.span());
  }
  BinaryOperands operands = binary_operands(e);
  Expr a = convert(*operands.a), b = convert(*operands.b);
  switch (e.kind()) {
#define TW_MAKE(Name) \
  case Kind::k##Name: \
    return make<Name>({std::move(a), std::move(b)}, e.span())
    TW_MAKE(Min);
    TW_MAKE(Max);
    TW_MAKE(Add);
    TW_MAKE(Sub);
    TW_MAKE(Mul);
    TW_MAKE(Div);
    TW_MAKE(FloorDiv);
    TW_MAKE(FloorMod);
#undef TW_MAKE
    default:
      TW_CHECK(false, kind_name(e.kind()));
      return e;
  }
}

Expr as_float(DataType type, const Expr& e) {
  if (const FloatImm* v = e.as<FloatImm>()) return rounded(type, v->value);
  if (const Cast* v = e.as<Cast>(); v && is_integer_tree(v->value)) return cast(e.dtype().with_element(type), v->value);
  if (keeps_digits(e)) {
    return convert_parts(e, [&](const Expr& value) { return as_float(type, value); });
  }
  return cast(e.dtype().with_element(type), e);
}

/// A number as a part of a tree.
Expr as_part(const Operand& number) {
  if (const IntImm* v = number.node.as<IntImm>()) return untyped(int_to_float(v->dtype, kFloat64, v->value));
  if (is_integer_tree(number.node)) {
    const Expr e(number.node);
    return make<Cast>({e.dtype().with_element(kFloat32), e});
  }
  return Expr(number.node);
}

bool fits(DataType type, const IntImm& number) {
  bool big = number.dtype.is_uint() && number.value < 0;  // from 2^63 on
  if (type.bits >= 64) return type.is_uint() ? number.dtype.is_uint() || number.value >= 0 : !big;
  return !big && wrap_int(type, number.value) == number.value;
}

[[noreturn, gnu::cold]] void refuse_integer(const Operand& number, DataType type) {
  std::string text = text_of(number);
  if (type.is_uint()) {
    const IntImm* v = number.node.as<IntImm>();
    bool negative = v && v->value < 0 && !v->dtype.is_uint();
    refuse(
        text + " meets an operand of type " + type.str() + ", which " +
            (negative ? "has no negative numbers" : "does not hold it"),
        "cast the operand to a signed or wider type, as in T.Cast(\"int64\", ...), or write the bits that are meant");
  }
  refuse(text + " meets an operand of type " + type.str() + ", and no signed type holds it",
         "write T.Cast(\"" + type.str() + "\", T.uint64(" + text + ")) for its bits, or cast the operand to uint64");
}

/// The element type in which a number and an operand of type `other` meet.
DataType type_beside(const Operand& number, DataType other) {
  DataType own = Expr(number.node).dtype().element();
  if (other.is_float()) {
    bool choice = !number.node.is<IntImm>() && !number.node.is<FloatImm>();
    return choice && other.bits < 32 ? kFloat32 : other;
  }
  if (number.is_huge) refuse_integer(number, other);
  const IntImm* integer = number.node.as<IntImm>();
  if (!integer) return own;
  if (other.bits >= 32) {
    if (fits(other, *integer)) return other;
    if (other == DataType::int_(32) && fits(DataType::int_(64), *integer)) return DataType::int_(64);
    refuse_integer(number, other);
  }
  for (int bits : {32, 64}) {
    if (fits(DataType::int_(bits), *integer)) return DataType::int_(bits);
  }
  refuse_integer(number, other);
}

/// The number in the type that type_beside() says.
Expr number_in(DataType type, const Operand& number) {
  if (type.is_float()) return number_as(type, number);
  return int_imm(type, number.node.as<IntImm>()->value);
}

}  // namespace

Operand::Operand(NodeRef argument) : node(std::move(argument)), is_number(keeps_digits(node)) {}

Operand number_of_python(double value) {
  Operand number(untyped(value));
  number.odd = value;
  return number;
}

bool keeps_digits(const NodeRef& node) {
  if (!node.defined() || node.sort() != Sort::kExpr || node.get()->dtype.element() != kFloat32) return false;
  bool has_float = false;
  const bool is_tree = is_tree_of(node, [&](const NodeRef& e) {
    has_float = has_float || is_untyped(e);
    return is_untyped(e) || (e.is<Cast>() && is_integer_tree(e.as<Cast>()->value));
  });
  return is_tree && has_float;
}

bool fits_float32(const NodeRef& node) {
  const FloatImm* v = node.as<FloatImm>();
  return v && (std::isnan(v->value) || round_float(kFloat32, v->value) == v->value);
}

NodeRef settle(NodeRef node) {
  if (!keeps_digits(node)) return node;
  return as_float(kFloat32, Expr(node));
}

Expr settled(const Operand& operand) {
  if (operand.is_huge) refuse_integer(operand, DataType::int_(64));
  return Expr(settle(operand.node));
}

Expr number_as(DataType type, const Operand& number) {
  if (number.is_huge && std::isinf(number.odd)) {
    refuse("an integer of more than 1024 bits meets an operand of type " + type.str(), "no type holds it");
  }
  if (number.node.is<FloatImm>() && !number.is_huge) return as_float(type, Expr(number.node));
  const IntImm* integer = number.node.as<IntImm>();
  if (!integer && !number.is_huge) return as_float(type, Expr(number.node));
  if (type.bits < 64) return rounded(type, number.odd, &number);
  if (number.is_huge) return rounded(type, number.node.as<FloatImm>()->value);
  return float_imm(type, int_to_float(integer->dtype, type, integer->value));
}

std::pair<Expr, Expr> meet(const Operand& a, const Operand& b) {
  Expr left(a.node), right(b.node);
  if (left.defined() && right.defined() && a.is_number != b.is_number) {
    const Operand& number = a.is_number ? a : b;
    Expr& one = a.is_number ? left : right;
    Expr& other = a.is_number ? right : left;
    if (!other.dtype().is_handle() && !other.dtype().is_void()) {
      DataType type = type_beside(number, other.dtype().element());
      one = number_in(type, number);
      other = cast(other.dtype().with_element(type), other);
      promote(left, right);
      return {std::move(left), std::move(right)};
    }
  }
  if (a.is_number) left = settled(a);
  if (b.is_number) right = settled(b);
  promote(left, right);
  return {std::move(left), std::move(right)};
}

std::pair<Expr, Expr> meet_alternatives(const Operand& a, const Operand& b) {
  auto parts = meet_numbers(Kind::kMin, a, b);
  return parts ? *std::move(parts) : meet(a, b);
}

std::optional<std::pair<Expr, Expr>> meet_numbers(Kind kind, const Operand& a, const Operand& b) {
  auto is_part = [](const Operand& operand) {
    return !(operand.is_huge && std::isinf(operand.odd)) && (operand.is_number || is_integer_tree(operand.node));
  };
  const bool is_choice = kind == Kind::kMin || kind == Kind::kMax;
  if (!is_choice && !is_arithmetic(kind) && !is_comparison(kind)) return {};
  if (!is_part(a) || !is_part(b) || !(keeps_digits(a.node) || keeps_digits(b.node))) return {};
  Expr left = as_part(a), right = as_part(b);
  if (is_comparison(kind)) {
    left = as_float(kFloat64, left);
    right = as_float(kFloat64, right);
  }
  promote(left, right);  // of a vector and a scalar
  return std::pair(std::move(left), std::move(right));
}

Expr exact(const Operand& value) {
  if (value.is_huge) refuse_integer(value, DataType::int_(64));
  Expr e(value.node);
  return keeps_digits(e) ? as_float(fits_float32(e) ? kFloat32 : kFloat64, e) : e;
}

Expr least(const Operand& a, const Operand& b, bool is_max) {
  auto [left, right] = meet_alternatives(a, b);
  const FloatImm *x = left.as<FloatImm>(), *y = right.as<FloatImm>();
  if (x && y && (keeps_digits(left) || keeps_digits(right)) && !std::isnan(x->value) && !std::isnan(y->value)) {
    return (x->value < y->value) != is_max ? left : right;
  }
  return is_max ? max(std::move(left), std::move(right)) : min(std::move(left), std::move(right));
}

Expr cast(DataType type, const Operand& value) {
  bool is_number = value.is_number && type.is_float();
  return cast(type, is_number ? number_as(type.element(), value) : exact(value));
}

}  // namespace tilewright
