#include "ir/conjunction.h"

#include "ir/build.h"

namespace tilewright {
namespace {

void add_conjuncts(const Expr& condition, std::vector<Expr>& terms) {
  if (const And* both = condition.as<And>()) {
    add_conjuncts(both->a, terms);
    add_conjuncts(both->b, terms);
  } else if (is_call_to(condition, Intrinsic::k_likely)) {
    add_conjuncts(Expr(condition.as<Call>()->args[0]), terms);
  } else if (!is_true(condition)) {
    terms.push_back(condition);
  }
}

}  // namespace

std::vector<Expr> conjuncts(const Expr& condition) {
  std::vector<Expr> terms;
  add_conjuncts(condition, terms);
  return terms;
}

}  // namespace tilewright
