#include "analysis/difference.h"

#include <vector>

#include "ir/build.h"
#include "ir/structural.h"

namespace tilewright::analysis {

std::optional<int64_t> constant_difference(const Expr& a, const Expr& b) {
  struct Term {
    Expr e;
    int64_t factor;
  };
  std::vector<Term> terms;
  int64_t constant = 0;
  auto collect = [&](auto& self, const Expr& e, int64_t factor) -> void {
    if (auto value = const_int(e)) {
      constant += factor * *value;
    } else if (const Add* add = e.as<Add>()) {
      self(self, add->a, factor);
      self(self, add->b, factor);
    } else if (const Sub* sub = e.as<Sub>()) {
      self(self, sub->a, factor);
      self(self, sub->b, -factor);
    } else if (const Mul* mul = e.as<Mul>(); mul && const_int(mul->b)) {
      self(self, mul->a, factor * *const_int(mul->b));
    } else {
      for (Term& term : terms) {
        if (same_expr(term.e, e)) {
          term.factor += factor;
          return;
        }
      }
      terms.push_back({e, factor});
    }
  };
  collect(collect, a, 1);
  collect(collect, b, -1);
  for (const Term& term : terms) {
    if (term.factor != 0) return std::nullopt;
  }
  return constant;
}

}  // namespace tilewright::analysis
