#include "schedule/early_bounds.h"

#include "analysis/may_fail.h"
#include "ir/build.h"
#include "ir/traverse.h"
#include "schedule/primitive.h"
#include "support/ranges.h"

namespace tilewright::schedule {

bool may_fail_outside(const std::vector<Expr>& values, const analysis::Tree& tree, const std::vector<int>& outer,
                      arith::Analyzer& analyzer) {
  if (none_of(values, [&](const Expr& value) { return analysis::may_fail(value, analyzer); })) return false;
  return any_of(outer, [&](int at) {
    const Expr& extent = tree.for_at(at).extent;
    return !analyzer.can_prove(gt(extent, 0));
  });
}

std::optional<std::string> find_early_failure(const Stmt& stmt, arith::Analyzer& analyzer) {
  std::optional<std::string> found;
  auto may_fail = [&](const Expr& value) { return !found && analysis::may_fail(value, analyzer); };
  visit(
      stmt, [](const Ref<BlockRealize>&, Visitor&) {},
      [&](const Ref<For>& loop, Visitor& walk) {
        if (may_fail(loop->min) || may_fail(loop->extent)) found = describe_loop(*loop) + ", whose range";
        analyzer.bind(loop->loop_var, range(loop->min, loop->extent));
        walk(loop->body);
      },
      [&](const Ref<IfThenElse>& branch, Visitor& walk) {
        if (may_fail(branch->condition)) found = "the condition " + brief(branch->condition) + ", which";
        walk(branch->then_case);
        walk(branch->else_case);
      },
      [&](const Ref<LetStmt>& let, Visitor& walk) {
        if (may_fail(let->value)) found = "the variable '" + let->var->name_hint + "', whose value";
        walk(let->body);
      });
  return found;
}

}  // namespace tilewright::schedule
