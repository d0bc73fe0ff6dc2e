#include "schedule/early_bounds.h"

#include "analysis/divisors.h"
#include "ir/build.h"
#include "ir/traverse.h"
#include "support/ranges.h"

namespace tilewright::schedule {

bool may_fail_outside(const std::vector<Expr>& values, const analysis::Tree& tree, const std::vector<int>& outer,
                      arith::Analyzer& analyzer) {
  if (none_of(values, [&](const Expr& value) { return analysis::may_fail(value, analyzer); })) return false;
  return any_of(outer, [&](int at) {
    const Expr& extent = tree.for_at(at).extent;
    return !analyzer.can_prove(gt(extent, zero(extent.dtype())));
  });
}

const For* find_failing_loop(const Stmt& stmt, arith::Analyzer& analyzer) {
  const For* found = nullptr;
  visit(
      stmt, [](const Ref<BlockRealize>&, Visitor&) {},
      [&](const Ref<For>& loop, Visitor& walk) {
        bool fails = analysis::may_fail(loop->min, analyzer) || analysis::may_fail(loop->extent, analyzer);
        if (fails && !found) found = &*loop;
        analyzer.bind(loop->loop_var, range(loop->min, loop->extent));
        walk(loop->body);
      });
  return found;
}

}  // namespace tilewright::schedule
