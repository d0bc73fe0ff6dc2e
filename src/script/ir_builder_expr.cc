// Expressions that scripts write by name.
#include <algorithm>

#include "script/intrinsic_spelling.h"
#include "script/ir_builder.h"
#include "script/ir_builder_frames.h"
#include "support/diagnostic.h"

namespace tilewright::script {

Expr intrinsic(std::string_view name, std::vector<NodeRef> args) {
  Intrinsic intrinsic = find_intrinsic(name);
  if (intrinsic == Intrinsic::kUnknown)
    refuse("builder/intrinsic", "no intrinsic is called '" + std::string(name) + "'",
           "docs/reference/intrinsics.md lists them");
  const IntrinsicRow& row = intrinsic_row(intrinsic);
  if (row.arity >= 0 && static_cast<int>(args.size()) != row.arity) {
    refuse("builder/intrinsic",
           "T." + std::string(name) + " takes " + std::to_string(row.arity) + " arguments, not " +
               std::to_string(args.size()),
           "docs/reference/intrinsics.md says what each takes");
  }
  if (std::any_of(args.begin(), args.end(), [](const NodeRef& a) { return !a.defined(); })) {
    refuse("builder/intrinsic", "an argument of T." + std::string(name) + " is None", "pass an expression");
  }
  bool all_exprs = std::all_of(args.begin(), args.end(), [](const NodeRef& a) { return a.sort() == Sort::kExpr; });
  if (row.typing == Typing::kExplicit || !all_exprs) {
    return make<Call>({plain_call_type(intrinsic, args), intrinsic_op(intrinsic), std::move(args)});
  }
  std::vector<Expr> exprs;
  for (const NodeRef& arg : args) exprs.emplace_back(arg);
  if (row.typing == Typing::kSameFloat) {  // T.exp(0)
    for (Expr& e : exprs) {
      if (e.is<IntImm>()) e = cast(DataType::float_(32), std::move(e));
    }
  }
  if (exprs.size() == 2 && intrinsic != Intrinsic::k_ldexp) promote(exprs[0], exprs[1]);
  if (row.typing == Typing::kSecond) {
    promote(exprs[1], exprs[2]);
    return if_then_else(exprs[0], exprs[1], exprs[2]);
  }
  return call(intrinsic, std::move(exprs));
}

Expr operator_node(Kind kind, Expr a, Expr b) {
  promote(a, b);
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

Expr select_node(Expr condition, Expr true_value, Expr false_value) {
  promote(true_value, false_value);
  return make<Select>({std::move(condition), std::move(true_value), std::move(false_value)});
}

}  // namespace tilewright::script
