// Orders of sums of variables that run independently of one another, over ranges with constant ends: the smallest and
// the largest value of the difference are taken on, so both answers are exact, and no normal form is made. The usual
// questions of a schedule.
#include "arith/engine.h"
#include "ir/build.h"

namespace tilewright::arith {

bool Engine::PlainSum::add(const Expr& e, int64_t scale) {
  int64_t product = 0;
  if (const IntImm* number = e.as<IntImm>()) {
    return mul_fits(number->value, scale, &product) && add_fits(constant, product, &constant);
  }
  if (e.is<Var>()) {
    for (size_t i = 0; i < size; ++i) {
      if (terms[i].var == e.get()) return add_fits(terms[i].coeff, scale, &terms[i].coeff);
    }
    if (size == terms.size()) return false;
    terms[size++] = {e.get(), scale};
    return true;
  }
  if (const Add* sum = e.as<Add>()) return add(sum->a, scale) && add(sum->b, scale);
  if (const Sub* difference = e.as<Sub>()) {
    return sub_fits(0, scale, &product) && add(difference->a, scale) && add(difference->b, product);
  }
  if (const Mul* mul = e.as<Mul>()) {
    const IntImm *left = mul->a.as<IntImm>(), *right = mul->b.as<IntImm>();
    const IntImm* factor = right ? right : left;
    return factor && mul_fits(factor->value, scale, &product) && add(right ? mul->a : mul->b, product);
  }
  return false;
}

/// Whether a - b is such a sum; then the values it takes on lie between the ends, both of which it does where `exact`.
bool Engine::PlainSum::difference(const Engine& engine, const Expr& a, const Expr& b) {
  constexpr uint32_t kDeepest = 64;
  if (!is_index(a.dtype()) || a.dtype() != b.dtype() || engine.value_mode_) return false;
  if (a.depth() > kDeepest || b.depth() > kDeepest || !add(a, 1) || !add(b, -1)) return false;
  __int128 least = constant, most = constant;
  exact = engine.facts_.empty() && engine.bounds_.empty() && engine.truths_.empty() && engine.residues_.empty();
  for (size_t i = 0; i < size; ++i) {
    if (terms[i].coeff == 0) continue;
    auto known = engine.vars_.find(NodeRef(terms[i].var));
    if (known == engine.vars_.end() || known->second.value.defined()) return false;
    const ConstIntBound& range = known->second.bound;
    if (!range.is_finite()) return false;
    exact &= known->second.facts.empty();
    bool grows = terms[i].coeff > 0;
    least += static_cast<__int128>(terms[i].coeff) * (grows ? range.min_value : range.max_value);
    most += static_cast<__int128>(terms[i].coeff) * (grows ? range.max_value : range.min_value);
  }
  low = least;
  high = most;
  return true;
}

std::optional<bool> Engine::plain_order(const Expr& a, const Expr& b, bool or_equal) const {
  PlainSum sum;
  if (!sum.difference(*this, b, a)) return std::nullopt;
  if (sum.low >= (or_equal ? 0 : 1)) return true;
  return sum.exact ? std::optional(false) : std::nullopt;
}

std::optional<bool> Engine::plain_equality(const Expr& a, const Expr& b) const {
  PlainSum sum;
  if (!sum.difference(*this, a, b)) return std::nullopt;
  if (sum.low == 0 && sum.high == 0) return true;
  return sum.exact ? std::optional(false) : std::nullopt;
}

}  // namespace tilewright::arith
