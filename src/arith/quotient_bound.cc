// Intervals of quotients whose divisor is no constant. The theorems, for integers, L <= x <= U, d >= 1, and any k:
//
//   Q1  x // d <= k + max((U - k d) // d)
//   Q2  x // d >= k + min((L - k d) // d)
//
// U and L are the dividend with facts added that take its terms away: of f < 2 n, f itself leads to 2 n - 1, so that
// f // n is at most 2 + max(-1 // n) = 1. k takes the leading term of the divisor away from U or L.
#include "arith/engine.h"
#include "ir/build.h"
#include "support/ranges.h"

namespace tilewright::arith {
namespace {

constexpr int kMostFacts = 16;  ///< tried for one quotient
constexpr int kMostSteps = 4;   ///< facts added to one dividend

}  // namespace

/// Follows facts from one dividend to what bounds it.
class Engine::QuotientBound {
 public:
  QuotientBound(Engine& engine, const FloorDiv& div) : engine_(engine), divisor_(engine.flat(div.b)) {
    const Linear dividend = engine.flat(div.a);
    if (divisor_.bad || dividend.bad || divisor_.terms.empty()) return;
    by_ = engine.bound(divisor_);
    if (by_.min_value < 0) learn_divisor(dividend);
    if (by_.min_value < 0) return;
    // Division by 0 does not happen.
    by_ = intersect(by_, {1, ConstIntBound::kPosInf});
    if (by_.is_empty()) return;
    result_ = floor_div(engine.bound(dividend), by_);
    for (bool is_upper : {true, false}) {
      tries_ = kMostFacts;
      follow(dividend, is_upper, kMostSteps);
    }
  }
  const ConstIntBound& result() const { return result_; }

 private:
  /// 0 <= f < 2 n says that n is at least 1: of a fact k d + rest >= 0, k d is at least -rest.
  void learn_divisor(const Linear& dividend) {
    const Term& lead = divisor_.terms[0];
    for (const Term& term : dividend.terms) {
      for (const Linear& fact : facts_about(term)) {
        const Term* in_fact = fact.find(lead.fp);
        const int64_t k = in_fact ? floor_div(in_fact->coeff, lead.coeff) : 0;
        if (k <= 0) continue;
        Linear rest = fact;
        rest.add(divisor_, -k);
        const ConstIntBound most = rest.bad ? ConstIntBound::everything() : engine_.bound(rest);
        if (most.has_max()) by_.min_value = std::max(by_.min_value, -floor_div(most.max_value, k));
      }
    }
  }

  /// `end` is U or L.
  void follow(const Linear& end, bool is_upper, int steps) {
    if (end.bad) return;
    divide(end, is_upper);
    if (steps == 0) return;
    for (const Term& term : end.terms) {
      if (divisor_.find(term.fp)) continue;
      for (const Linear& fact : facts_about(term)) {
        const Term* in_fact = fact.find(term.fp);
        if (!in_fact || term.coeff % in_fact->coeff != 0) continue;
        const int64_t times = -(term.coeff / in_fact->coeff);
        if ((times > 0) != is_upper || tries_-- <= 0) continue;
        Linear next = end;
        next.add(fact, times);
        follow(next, is_upper, steps - 1);
      }
    }
  }

  void divide(const Linear& end, bool is_upper) {
    const Term& lead = divisor_.terms[0];
    const Term* in_end = end.find(lead.fp);
    if (!in_end) return;
    const int64_t near = floor_div(in_end->coeff, lead.coeff);
    for (int64_t k : {near, near + 1}) {
      Linear rest = end;
      rest.add(divisor_, -k);
      if (rest.bad) continue;
      const ConstIntBound part = floor_div(engine_.bound(rest), by_);
      int64_t quotient = 0;
      if (is_upper && part.has_max() && add_fits(k, part.max_value, &quotient)) {
        result_.max_value = std::min(result_.max_value, quotient);
      } else if (!is_upper && part.has_min() && add_fits(k, part.min_value, &quotient)) {
        result_.min_value = std::max(result_.min_value, quotient);
      }
    }
  }

  /// Sums that are at least 0: what is stated, and what remainders, minima and maxima say of themselves.
  std::vector<Linear> facts_about(const Term& term) {
    std::vector<Linear> facts;
    auto add = [&](Linear fact, int64_t sign) {  // fact + sign * atom
      fact.add(term.atom, term.fp, sign);
      if (!fact.bad) facts.push_back(std::move(fact));
    };
    auto at_most = [&](const Expr& e) { add(engine_.flat(e), -1); };
    auto at_least = [&](const Expr& e) {
      Linear negated = engine_.flat(e);
      negated.scale(-1);
      add(std::move(negated), 1);
    };
    const size_t stated = engine_.facts_.size() - engine_.cases_;
    for (size_t i = 0; i < stated; ++i) {
      if (engine_.facts_[i].find(term.fp)) facts.push_back(engine_.facts_[i]);
    }
    if (const VarInfo* known = engine_.info(term.atom)) {
      append_range(facts, known->facts);
    }
    if (const FloorMod* mod = term.atom.as<FloorMod>();
        mod && !mod->b.is<IntImm>() && engine_.bound(mod->b).min_value >= 0) {
      at_most(mod->b - 1);
    } else if (const Min* low = term.atom.as<Min>()) {
      at_most(low->a);
      at_most(low->b);
    } else if (const Max* high = term.atom.as<Max>()) {
      at_least(high->a);
      at_least(high->b);
    }
    return facts;
  }

  Engine& engine_;
  Linear divisor_;
  ConstIntBound by_, result_;
  int tries_ = 0;
};

/// The interval of an index expression, as far as its dividend is bounded by multiples of its divisor.
ConstIntBound Engine::quotient_bound(const FloorDiv& div) {
  if (div.b.is<IntImm>() || !is_index(div.a.dtype())) return {};
  return QuotientBound(*this, div).result();
}

}  // namespace tilewright::arith
