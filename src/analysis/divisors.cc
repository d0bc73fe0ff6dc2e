#include "analysis/divisors.h"

#include "ir/build.h"
#include "ir/traverse.h"

namespace tilewright::analysis {

bool may_divide_by_zero(const Expr& e, arith::Analyzer& analyzer) {
  bool found = false;
  auto look = [&](const auto& division, Visitor& walk) {
    const Expr& by = division->b;
    if (by.dtype().is_int() || by.dtype().is_uint()) found |= !analyzer.can_prove(ne(by, zero(by.dtype())));
    walk(division->a);
    walk(by);
  };
  visit(
      e, [&](const Ref<FloorDiv>& d, Visitor& walk) { look(d, walk); },
      [&](const Ref<FloorMod>& d, Visitor& walk) { look(d, walk); },
      [&](const Ref<Div>& d, Visitor& walk) { look(d, walk); },
      [&](const Ref<Mod>& d, Visitor& walk) { look(d, walk); });
  return found;
}

}  // namespace tilewright::analysis
