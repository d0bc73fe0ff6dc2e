#include "ir/literal.h"

#include <charconv>
#include <cmath>
#include <string>
#include <vector>

#include "ir/integer_range.h"
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

std::string text_of(WideInteger value) {
  std::string digits;
  for (WideInteger rest = value; rest != 0 || digits.empty(); rest /= 10) {
    const int digit = static_cast<int>(rest % 10);
    digits.insert(digits.begin(), static_cast<char>('0' + (digit < 0 ? -digit : digit)));
  }
  return value < 0 ? "-" + digits : digits;
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
bool is_untyped_integer(const NodeRef& node) { return node.is<IntImm>() && node.get()->operations == 0; }

/// An IntImm that has met no operand: a leaf of a tree, of the type that all values in the tree fit.
Expr untyped_integer(DataType type, int64_t value) {
  auto* node = new NodeOf<IntImm>(IntImm{type, value});
  node->dtype = type;
  node->operations = 0;
  node->span = current_span();
  return Expr(node);
}

/// The operators of integers that are calls.
bool is_bit_operation(Intrinsic intrinsic) {
  return intrinsic == Intrinsic::k_shift_left || intrinsic == Intrinsic::k_shift_right ||
         intrinsic == Intrinsic::k_bitwise_and || intrinsic == Intrinsic::k_bitwise_or ||
         intrinsic == Intrinsic::k_bitwise_xor;
}

Intrinsic called_by(const NodeRef& node) {
  const Call* call = node.as<Call>();
  return call ? intrinsic_of(*call) : Intrinsic::kUnknown;
}

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
  if (const Call* v = node.as<Call>()) {
    const size_t first = is_choice(node) ? 1 : 0;
    if (!is_choice(node) && !is_bit_operation(intrinsic_of(*v))) return {};
    const NodeRef &a = v->args[first], &b = v->args[first + 1];
    return a.sort() == Sort::kExpr && b.sort() == Sort::kExpr ? Parts{&a, &b} : Parts{};
  }
  if (!is_choice(node) && !is_arithmetic(node.kind())) return {};
  BinaryOperands operands = binary_operands(static_cast<const Expr&>(node));
  return {operands.a, operands.b};
}

/// Whether all leaves of the expression satisfy `is_leaf`. The shallower operand is visited first, so a deep chain of
/// additions whose last operand is no such leaf is rejected at once.
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

/// An integer of Python that is a node, a choice between such integers, or arithmetic of them.
bool is_integer_tree(const NodeRef& node) {
  if (!node.defined() || node.sort() != Sort::kExpr) return false;
  const DataType type = node.get()->dtype;
  return type.is_integral() && !type.is_bool() && is_tree_of(node, is_untyped_integer);
}

/// Ranges of a tree of integers. Two selects with the same condition count as independent.
struct IntegerRanges {
  IntegerRange values;  ///< values of the tree itself
  IntegerRange all;     ///< values of the tree and of all intermediate results
};

IntegerRange range_of_constant(const IntImm& number) {
  const bool is_big = number.dtype.is_uint() && number.value < 0;
  const WideInteger value = is_big ? static_cast<uint64_t>(number.value) : WideInteger{number.value};
  return {value, value};
}

IntegerRange hull(const IntegerRange& a, const IntegerRange& b) {
  return {std::min(a.low, b.low), std::max(a.high, b.high)};
}

/// Returns the ranges of the tree's values; nothing if a value needs more than 126 bits.
std::optional<IntegerRanges> ranges_of(const NodeRef& tree) {
  if (const IntImm* v = tree.as<IntImm>()) return IntegerRanges{range_of_constant(*v), range_of_constant(*v)};
  const Parts parts = parts_of(tree);
  auto a = ranges_of(*parts.a);
  if (!a || !parts.b) return a;
  auto b = ranges_of(*parts.b);
  if (!b) return {};
  const bool is_alternative = tree.is<Select>() || called_by(tree) == Intrinsic::k_if_then_else;
  auto values = is_alternative ? std::optional(hull(a->values, b->values))
                               : range_of_operation(tree.kind(), called_by(tree), a->values, b->values);
  if (!values) return {};
  return IntegerRanges{*values, hull(*values, hull(a->all, b->all))};
}

/// The first of int32, int64 and uint64 that holds the range.
std::optional<DataType> type_of_range(const IntegerRange& range) {
  for (DataType type : {DataType::int_(32), DataType::int_(64), DataType::uint(64)}) {
    if (holds(type, range)) return type;
  }
  return {};
}

/// The expression with `type` as the type of its values; calls `convert` for each part.
template <class F>
Expr convert_parts(const Expr& e, F&& convert) {
  if (const Select* v = e.as<Select>()) {
    return make<Select>({v->condition, convert(v->true_value), convert(v->false_value)}, e.span());
  }
  if (const Broadcast* v = e.as<Broadcast>()) return make<Broadcast>({convert(v->value), v->lanes}, e.span());
  if (const Call* v = e.as<Call>()) {
    const bool is_bits = v->args.size() == 2;
    Expr yes = convert(v->arg(is_bits ? 0 : 1)), no = convert(v->arg(is_bits ? 1 : 2));
    DataType type = yes.dtype();
    if (is_bits) return make<Call>({type, v->op, {std::move(yes), std::move(no)}}, e.span());
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

/// A tree of integers with leaves of `type`.
template <class F>
Expr integers_as(DataType type, const Expr& e, F&& leaf) {
  if (const IntImm* v = e.as<IntImm>()) return leaf(type, v->value);
  return convert_parts(e, [&](const Expr& part) { return integers_as(type, part, leaf); });
}

/// The tree as the rest of the compiler knows it; its type holds whatever is computed in it.
Expr typed_integers(const Expr& e) {
  return integers_as(e.dtype().element(), e, [](DataType type, int64_t value) { return Expr(int_imm(type, value)); });
}

/// A part of a tree of floats that is an integer: a cast which nothing else makes, since other casts are of typed ones.
bool is_integer_part(const NodeRef& node) {
  const Cast* v = node.as<Cast>();
  return v && v->dtype.element() == kFloat32 && is_integer_tree(v->value);
}
/// One that no integer type holds.
bool is_huge_part(const NodeRef& node) {
  const Cast* v = node.as<Cast>();
  return v && v->dtype.element() == kFloat32 && (is_untyped(v->value) || is_integer_part(v->value));
}

bool has_huge_part(const NodeRef& tree) {
  if (is_huge_part(tree)) return true;
  const Parts parts = parts_of(tree);
  return (parts.a && has_huge_part(*parts.a)) || (parts.b && has_huge_part(*parts.b));
}

Expr as_float(DataType type, const Expr& e) {
  if (const FloatImm* v = e.as<FloatImm>()) return rounded(type, v->value);
  if (is_huge_part(e)) return as_float(type, e.as<Cast>()->value);
  if (is_integer_part(e)) return cast(e.dtype().with_element(type), typed_integers(e.as<Cast>()->value));
  if (keeps_digits(e)) {
    return convert_parts(e, [&](const Expr& value) { return as_float(type, value); });
  }
  return cast(e.dtype().with_element(type), e);
}

/// A number as a part of a tree.
Expr as_part(const Operand& number) {
  const IntImm* v = number.node.as<IntImm>();
  if (v) return untyped(int_to_float(v->dtype, kFloat64, v->value));
  const Expr e(number.node);
  return is_integer_tree(e) ? Expr(make<Cast>({e.dtype().with_element(kFloat32), e})) : e;
}
Expr as_huge_part(const Operand& number) {
  const Expr part = as_part(number);
  return make<Cast>({part.dtype(), part});
}

bool fits(DataType type, const IntImm& number) {
  bool big = number.dtype.is_uint() && number.value < 0;  // 2^63 or more
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

[[noreturn, gnu::cold]] void refuse_result(const Operand& a, const Operand& b) {
  refuse("no integer type holds the result of this operation on " + text_of(a) + " and " + text_of(b),
         "say the type of the operands, as in T.int64(1), or use floats");
}

[[noreturn, gnu::cold]] void refuse_huge_tree() {
  refuse("no integer type holds all values of this choice between integers",
         "make it a choice between floats, or say the type of its parts, as in T.uint64(1)");
}

/// The element type in which a tree of integers and an integer operand of type `other` meet.
DataType type_of_tree_beside(const NodeRef& tree, DataType other) {
  const auto ranges = ranges_of(tree);
  if (!ranges) refuse_huge_tree();
  std::vector<DataType> usable{DataType::int_(32), DataType::int_(64)};
  if (other.bits >= 32) usable = {other};
  if (other == DataType::int_(32)) usable.push_back(DataType::int_(64));
  for (DataType type : usable) {
    if (holds(type, ranges->values)) return type;
  }
  refuse(
      "a choice between integers from " + text_of(ranges->values.low) + " to " + text_of(ranges->values.high) +
          " meets an operand of type " + other.str() + ", which " +
          (other.is_uint() && ranges->values.low < 0 ? "has no negative numbers" : "does not hold all of them"),
      "cast the operand to a signed or wider type, as in T.Cast(\"int64\", ...), or say the type of the choice, as in "
      "T.int64(1)");
}

/// The element type in which a number and an operand of type `other` meet.
DataType type_beside(const Operand& number, DataType other) {
  DataType own = Expr(number.node).dtype().element();
  if (other.is_float()) {
    bool choice = !number.node.is<IntImm>() && !number.node.is<FloatImm>() && own.is_float();
    return choice && other.bits < 32 ? kFloat32 : other;
  }
  if (number.is_huge) refuse_integer(number, other);
  if (own.is_float() && has_huge_part(number.node)) refuse_huge_tree();
  if (own.is_integral() && !number.node.is<IntImm>()) return type_of_tree_beside(number.node, other);
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
  if (const IntImm* v = number.node.as<IntImm>()) return int_imm(type, v->value);
  const Expr tree = settled(number);
  return cast(tree.dtype().with_element(type), tree);
}

/// The leaves of both in one type that holds whatever is computed of them; nothing where they are no integers of
/// Python, or two for whose result there is no type.
std::optional<std::pair<Expr, Expr>> meet_integers(Kind kind, Intrinsic intrinsic, const Operand& a, const Operand& b) {
  auto is_integer = [](const Operand& operand) {
    return operand.is_number && Expr(operand.node).dtype().is_integral();
  };
  if (kind == Kind::kDiv) return {};  // the node rounds towards zero, and `/` divides floats
  const bool is_huge = a.is_huge || b.is_huge;
  if (!(is_integer(a) || a.is_huge) || !(is_integer(b) || b.is_huge)) return {};
  const bool is_alternative = kind == Kind::kSelect || kind == Kind::kMin || kind == Kind::kMax;
  const bool are_plain = !is_alternative && !is_integer_tree(a.node) && !is_integer_tree(b.node);
  std::optional<DataType> type;
  if (!is_huge) {
    const auto left = ranges_of(a.node), right = ranges_of(b.node);
    if (left && right) {
      const auto values = kind == Kind::kSelect || is_comparison(kind)
                              ? std::optional(hull(left->values, right->values))
                              : range_of_operation(kind, intrinsic, left->values, right->values);
      if (values) type = type_of_range(hull(*values, hull(left->all, right->all)));
    }
  }
  if (!type && are_plain) {
    // An operation without a result, such as a division by zero, is refused by the function that makes the node.
    const auto left = ranges_of(a.node), right = ranges_of(b.node);
    const bool has_result = left && right &&
                            (range_of_operation(kind, intrinsic, left->values, right->values) ||
                             (intrinsic == Intrinsic::k_shift_left && right->values.low > 0 && left->values.low != 0));
    if (has_result && !is_comparison(kind)) refuse_result(a, b);
    return {};
  }
  if (!type) {
    if (is_comparison(kind) || kind == Kind::kCall) refuse_huge_tree();
    return std::pair(as_huge_part(a), as_part(b));
  }
  Expr left = integers_as(*type, Expr(a.node), untyped_integer),
       right = integers_as(*type, Expr(b.node), untyped_integer);
  promote(left, right);  // a vector and a scalar
  return std::pair(std::move(left), std::move(right));
}

}  // namespace

Operand::Operand(NodeRef argument) : node(std::move(argument)), is_number(keeps_digits(node)) {}

Operand number_of_python(double value) {
  Operand number(untyped(value));
  number.odd = value;
  return number;
}

bool keeps_digits(const NodeRef& node) {
  if (!node.defined() || node.sort() != Sort::kExpr) return false;
  if (node.get()->dtype.element() != kFloat32) return is_integer_tree(node);
  return is_tree_of(node, [](const NodeRef& e) { return is_untyped(e) || is_integer_part(e) || is_huge_part(e); });
}

bool is_integers(const Operand& operand) {
  return operand.is_number && !operand.is_huge && Expr(operand.node).dtype().is_integral();
}

std::optional<IntegerRange> integers_of(const Operand& operand) {
  if (!is_integers(operand)) return {};
  const auto ranges = ranges_of(operand.node);
  return ranges ? std::optional(ranges->values) : std::nullopt;
}

bool overflows_as_numbers(const Expr& tree) {
  if (tree.dtype().element() != DataType::int_(32) || !parts_of(tree).a) return false;
  if (!is_tree_of(tree, [](const NodeRef& e) { return e.is<IntImm>(); })) return false;
  const auto ranges = ranges_of(tree);
  return !ranges || !holds(DataType::int_(32), ranges->all);
}

Operand float_of(const Operand& integers) { return as_part(integers); }

Operand integer_of_python(int value) {
  Operand number(untyped_integer(DataType::int_(32), value));
  number.odd = value;
  return number;
}

Expr still_number(Expr result, const Expr& part) {
  const IntImm* v = result.as<IntImm>();
  return v && is_integer_tree(part) && !v->dtype.is_bool() ? untyped_integer(v->dtype, v->value) : result;
}

bool fits_float32(const NodeRef& node) {
  const FloatImm* v = node.as<FloatImm>();
  return v && (std::isnan(v->value) || round_float(kFloat32, v->value) == v->value);
}

NodeRef settle(NodeRef node) {
  if (!keeps_digits(node)) return node;
  const Expr e(node);
  if (e.dtype().is_integral()) return typed_integers(e);
  if (has_huge_part(node)) refuse_huge_tree();
  return as_float(kFloat32, e);
}

Expr settled(const Operand& operand) {
  if (operand.is_huge) refuse_integer(operand, DataType::int_(64));
  return Expr(settle(operand.node));
}

NodeRef as_attribute(NodeRef node) {
  if (!is_untyped(node)) return settle(std::move(node));
  return float_imm(fits_float32(node) ? kFloat32 : kFloat64, node.as<FloatImm>()->value);
}

Expr number_as(DataType type, const Operand& number) {
  if (number.is_huge && std::isinf(number.odd)) {
    refuse("an integer of more than 1024 bits meets an operand of type " + type.str(), "no type holds it");
  }
  if (number.node.is<FloatImm>() && !number.is_huge) return as_float(type, Expr(number.node));
  const IntImm* integer = number.node.as<IntImm>();
  if (is_integer_tree(number.node)) {
    const auto ranges = ranges_of(number.node);
    if (ranges) {
      rounded(type, static_cast<double>(ranges->values.low));
      rounded(type, static_cast<double>(ranges->values.high));
    }
    const Expr tree = typed_integers(Expr(number.node));
    return cast(tree.dtype().with_element(type), tree);
  }
  if (!integer && !number.is_huge) return as_float(type, Expr(number.node));
  if (type.bits < 64) return rounded(type, number.odd, &number);
  if (number.is_huge) return rounded(type, number.node.as<FloatImm>()->value);
  return float_imm(type, int_to_float(integer->dtype, type, integer->value));
}

/// A constant of a type is no number of Python: a negative one is not among the values of an unsigned operand.
static void check_sign(const Expr& constant, DataType other) {
  const IntImm* v = constant.as<IntImm>();
  if (!v || v->value >= 0 || !v->dtype.is_int() || !other.is_uint() || other.bits < v->dtype.bits) return;
  refuse_integer(Operand(constant), other);
}
/// promote() gives a constant the type of the other side; here it is the wider one that counts.
static void promote_to_match(const Expr& constant, Expr& other) {
  const FloatImm* v = constant.as<FloatImm>();
  const DataType type = other.dtype();
  if (!v || other.is<FloatImm>() || !type.is_float() || type.bits >= v->dtype.bits) return;
  other = cast(type.with_element(v->dtype), other);
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
  if (!a.is_number && !b.is_number && left.defined() && right.defined()) {
    check_sign(left, right.dtype().element());
    check_sign(right, left.dtype().element());
    promote_to_match(left, right);
    promote_to_match(right, left);
  }
  promote(left, right);
  return {std::move(left), std::move(right)};
}

std::pair<Expr, Expr> meet_alternatives(const Operand& a, const Operand& b) {
  auto parts = meet_numbers(Kind::kSelect, a, b);
  return parts ? *std::move(parts) : meet(a, b);
}

std::optional<std::pair<Expr, Expr>> meet_numbers(Kind kind, const Operand& a, const Operand& b, Intrinsic intrinsic) {
  auto is_part = [](const Operand& operand) {
    return operand.is_number && !(operand.is_huge && std::isinf(operand.odd)) &&
           operand.node.get()->operations <= kMostOperationsOfTree;
  };
  const bool is_choice = kind == Kind::kSelect || kind == Kind::kMin || kind == Kind::kMax;
  const bool is_of_floats = is_choice || is_arithmetic(kind) || is_comparison(kind);
  if (!is_of_floats && !is_bit_operation(intrinsic)) return {};
  if (!is_part(a) || !is_part(b)) return {};
  if (auto integers = meet_integers(kind, intrinsic, a, b)) return integers;
  auto is_float = [](const Operand& operand) { return Expr(operand.node).dtype().is_float(); };
  if (!is_of_floats || !(is_float(a) || is_float(b))) return {};
  Expr left = as_part(a), right = as_part(b);
  if (is_comparison(kind)) {
    left = as_float(kFloat64, left);
    right = as_float(kFloat64, right);
  }
  promote(left, right);  // a vector and a scalar
  return std::pair(std::move(left), std::move(right));
}

Expr exact(const Operand& value) {
  if (value.is_huge) refuse_integer(value, DataType::int_(64));
  Expr e(value.node);
  if (!keeps_digits(e)) return e;
  if (e.dtype().is_integral() || has_huge_part(e)) return settled(value);
  return as_float(fits_float32(e) ? kFloat32 : kFloat64, e);
}

Expr least(const Operand& a, const Operand& b, bool is_max) {
  auto numbers = meet_numbers(is_max ? Kind::kMax : Kind::kMin, a, b);
  auto [left, right] = numbers ? *std::move(numbers) : meet(a, b);
  const FloatImm *x = left.as<FloatImm>(), *y = right.as<FloatImm>();
  if (x && y && (keeps_digits(left) || keeps_digits(right)) && !std::isnan(x->value) && !std::isnan(y->value)) {
    return (x->value < y->value) != is_max ? left : right;
  }
  const Expr part = left;
  return still_number(is_max ? max(std::move(left), std::move(right)) : min(std::move(left), std::move(right)), part);
}

Expr cast(DataType type, const Operand& value) {
  bool is_number = value.is_number && type.is_float();
  return cast(type, is_number ? number_as(type.element(), value) : exact(value));
}

}  // namespace tilewright
