// Expressions that scripts write by name.
#include <cmath>
#include <limits>

#include "ir/atomic_operation.h"
#include "script/intrinsic_spelling.h"
#include "script/ir_builder.h"
#include "script/ir_builder_frames.h"
#include "support/diagnostic.h"
#include "support/ranges.h"

namespace tilewright::script {

namespace {

/// Brings the arguments of a function of floats, or two of any kind, to their common type.
std::vector<Expr> meet_all(const IntrinsicRow& row, std::vector<Operand> args) {
  auto is_float = [](const Operand& arg) { return !arg.is_number && Expr(arg.node).dtype().is_float(); };
  bool any_float = any_of(args, is_float);
  for (Operand& arg : args) {  // T.exp(0), T.pow(i, 2)
    if (row.typing != Typing::kSameFloat || !arg.node.is<IntImm>() || any_float) continue;
    arg = cast(DataType::float_(32), arg);
  }
  bool is_ldexp = row.name == "ldexp";
  if (args.size() > 1 && !is_ldexp && (args.size() == 2 || row.typing == Typing::kSameFloat)) {
    size_t pivot = 0;
    while (pivot + 1 < args.size() && args[pivot].is_number) ++pivot;
    for (size_t round = 2; round < args.size() + 1; ++round) {  // the last argument may promote the first ones
      for (size_t i : indices_of(args)) {
        if (i == pivot) continue;
        bool is_first = i < pivot;
        auto [a, b] = is_first ? meet(args[i], args[pivot]) : meet(args[pivot], args[i]);
        args[i] = is_first ? a : b;
        args[pivot] = is_first ? b : a;
      }
    }
  }
  std::vector<Expr> exprs;
  for (const Operand& arg : args) exprs.push_back(settled(arg));
  return exprs;
}

/// A number that is returned takes the type of the result.
Expr returned(const Operand& value) {
  const IRBuilder* builder = IRBuilder::current();
  const PrimFuncFrame* function = builder && value.is_number ? builder->find<PrimFuncFrame>() : nullptr;
  const PrimType* type = function ? function->ret_type.as<PrimType>() : nullptr;
  return type ? cast(type->dtype, value) : settled(value);
}

/// A number takes the type of the element, which may be given in place of its address.
Expr atomic(Intrinsic intrinsic, const Operand& to, const Operand& value) {
  Expr address = settled(to);
  if (address.is<BufferLoad>()) address = call(DataType::handle(), "tir.address_of", {address});
  const Call* element = address.as<Call>();
  const bool is_element = element && intrinsic_of(*element) == Intrinsic::k_address_of && element->args.size() == 1;
  const Expr taken = is_element && value.is_number ? meet(Operand(element->arg(0)), value).second : settled(value);
  return call(intrinsic, {std::move(address), taken});
}

}  // namespace

Expr intrinsic(std::string_view name, std::vector<Operand> args) {
  Intrinsic intrinsic = find_intrinsic(name);
  if (intrinsic == Intrinsic::kUnknown)
    refuse("builder/intrinsic", "no intrinsic is called '" + std::string(name) + "'",
           "the table of intrinsics in the documentation lists them");
  const IntrinsicRow& row = intrinsic_row(intrinsic);
  if (!row.takes(args.size())) {
    refuse("builder/intrinsic", row.wrong_count(args.size()),
           "the table of intrinsics in the documentation says what each takes");
  }
  if (any_of(args, [](const Operand& a) { return !a.node.defined(); })) {
    refuse("builder/intrinsic", "an argument of T." + std::string(name) + " is None", "pass an expression");
  }
  bool all_exprs = all_of(args, [](const Operand& a) { return a.is_expr(); });
  if (intrinsic == Intrinsic::k_ret && all_exprs) args[0] = returned(args[0]);
  if (row.typing == Typing::kExplicit || !all_exprs) {
    std::vector<NodeRef> nodes;
    for (const Operand& arg : args) nodes.push_back(arg.is_expr() ? settled(arg) : arg.node);
    return make<Call>({plain_call_type(intrinsic, nodes), intrinsic_op(intrinsic), std::move(nodes)});
  }
  if (is_atomic(intrinsic)) return atomic(intrinsic, args[0], args[1]);
  if (row.typing == Typing::kSecond) {
    auto [yes, no] = meet_alternatives(args[1], args[2]);
    return if_then_else(as_condition(settled(args[0])), std::move(yes), std::move(no));
  }
  if (intrinsic == Intrinsic::k_fabs && is_integers(args[0])) {
    const IntImm* number = args[0].node.as<IntImm>();
    if (number && !number->dtype.is_uint() && number->value == std::numeric_limits<int64_t>::min()) {
      return still_number(int_imm(DataType::uint(64), number->value), Expr(args[0].node));
    }
    // The type of the number need not hold its absolute value: that of -2**31 is int64.
    auto product = meet_numbers(Kind::kMul, args[0], integer_of_python(-1));
    if (product) return least(args[0], still_number(product->first * product->second, product->first), true);
  }
  if (args.size() == 2) {
    if (auto parts = meet_numbers(Kind::kCall, args[0], args[1], intrinsic))
      return call(intrinsic, {std::move(parts->first), std::move(parts->second)});
  }
  return call(intrinsic, meet_all(row, std::move(args)));
}

Expr as_condition(Expr value) {
  const DataType type = value.dtype();
  const bool is_number = type.is_integral() || type.is_float();
  return is_number && !type.is_bool() ? cast(type.with_element(DataType::bool_()), std::move(value)) : value;
}

Expr operator_node(Kind kind, const Operand& left, const Operand& right) {
  auto numbers = meet_numbers(kind, left, right);
  auto [a, b] = numbers ? *std::move(numbers) : meet(left, right);
  switch (kind) {
#define TW_NODE(Name) \
  case Kind::k##Name: \
    return make<Name>({std::move(a), std::move(b)})
    TW_NODE(Add);
    TW_NODE(Sub);
    TW_NODE(Mul);
    TW_NODE(Div);
    TW_NODE(Mod);
    TW_NODE(FloorDiv);
    TW_NODE(FloorMod);
    TW_NODE(Min);
    TW_NODE(Max);
    TW_NODE(EQ);
    TW_NODE(NE);
    TW_NODE(LT);
    TW_NODE(LE);
    TW_NODE(GT);
    TW_NODE(GE);
    TW_NODE(And);
    TW_NODE(Or);
#undef TW_NODE
    default:
      TW_CHECK(false, kind_name(kind));
      return {};
  }
}

Expr select_node(Expr condition, const Operand& true_value, const Operand& false_value) {
  auto [yes, no] = meet_alternatives(true_value, false_value);
  return make<Select>({as_condition(std::move(condition)), std::move(yes), std::move(no)});
}

Expr cast_node(DataType type, const Operand& value) {
  if (!value.is_number) return make<Cast>({type, Expr(value.node)});
  if (!type.is_float()) return make<Cast>({type, exact(value)});
  if (is_integers(value) && !value.node.is<IntImm>()) return make<Cast>({type, settled(value)});
  // The node keeps a constant whose cast, when the program runs, gives the number rounded once. Of integers it may be
  // infinite, too: T.Cast says that it is meant.
  if (keeps_digits(value.node) && !fits_float32(value.node)) return cast(type, number_as(type.element(), value));
  const Expr given = value.is_huge ? Expr(value.node) : settled(value);
  const bool is_infinite = given.is<IntImm>() && !std::isfinite(const_float(cast(type, given)).value_or(0));
  if (is_infinite) return make<Cast>({type, given});
  Expr wanted = number_as(type.element(), value);
  if (type.is_vector() || value.is_huge) return cast(type, std::move(wanted));
  bool is_same = const_float(cast(type, given)) == const_float(wanted) || !const_float(wanted).has_value();
  return is_same ? make<Cast>({type, given}) : wanted;
}

}  // namespace tilewright::script
