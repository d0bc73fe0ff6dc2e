#include "arith/int_set.h"

#include <unordered_set>

#include "arith/engine.h"
#include "ir/build.h"
#include "ir/substitute.h"
#include "ir/traverse.h"
#include "support/deep_stack.h"
#include "support/ranges.h"

namespace tilewright::arith {

IntSet IntSet::of_range(const Ref<Range>& range) {
  if (auto extent = const_int(range->extent)) {
    if (*extent < 1) return nothing();
    if (*extent == 1) return point(range->min);
  }
  return interval(range->min, range->min + range->extent - 1);
}

Ref<Range> IntSet::to_range(Analyzer& analyzer) const {
  if (!is_bounded()) return {};
  if (is_point()) return make<Range>({min, one(min.dtype())});
  Expr low = min, high = max;
  promote(low, high);
  return make<Range>({analyzer.simplify(low), analyzer.simplify(high - low + 1)});
}

namespace {

/// The smaller (larger) end, by proof where there is one, else as an expression.
Expr pick(const Expr& a, const Expr& b, bool smaller, Analyzer& analyzer) {
  if (analyzer.can_prove_less_equal(a, b)) return smaller ? a : b;
  if (analyzer.can_prove_less_equal(b, a)) return smaller ? b : a;
  return analyzer.simplify(smaller ? min(a, b) : max(a, b));
}

}  // namespace

IntSet unite(const IntSet& a, const IntSet& b, Analyzer& analyzer) {
  if (a.is_nothing) return b;
  if (b.is_nothing) return a;
  if (a.is_point() && b.is_point() && analyzer.can_prove_equal(a.min, b.min)) return a;
  IntSet result;
  if (a.min.defined() && b.min.defined()) result.min = pick(a.min, b.min, true, analyzer);
  if (a.max.defined() && b.max.defined()) result.max = pick(a.max, b.max, false, analyzer);
  return result;
}

IntSet intersect(const IntSet& a, const IntSet& b, Analyzer& analyzer) {
  if (a.is_nothing || b.is_nothing) return IntSet::nothing();
  IntSet result;
  if (a.min.defined() && b.min.defined()) {
    result.min = pick(a.min, b.min, false, analyzer);
  } else {
    result.min = a.min.defined() ? a.min : b.min;
  }
  if (a.max.defined() && b.max.defined()) {
    result.max = pick(a.max, b.max, true, analyzer);
  } else {
    result.max = a.max.defined() ? a.max : b.max;
  }
  if (result.is_bounded() && !result.is_point()) {
    if (analyzer.can_prove_less(result.max, result.min)) return IntSet::nothing();
    if (analyzer.can_prove_equal(result.min, result.max)) result.max = result.min;
  }
  return result;
}

namespace {

bool proves_order(const Expr& a, const Expr& b, Analyzer& analyzer) {
  if (analyzer.can_prove_less_equal(a, b)) return true;
  if (!has_node<Min, Max>(a) && !has_node<Min, Max>(b)) return false;
  bool proved = false;
  with_stack_for(std::max(a.depth(), b.depth()), [&] { proved = analyzer.engine().prove_less_equal_by_cases(a, b); });
  return proved;
}

}  // namespace

bool proves_subset(const IntSet& inner, const IntSet& outer, Analyzer& analyzer) {
  if (inner.is_nothing || outer.is_everything()) return true;
  if (outer.is_nothing) return false;
  if (outer.min.defined() && !(inner.min.defined() && proves_order(outer.min, inner.min, analyzer))) return false;
  return !outer.max.defined() || (inner.max.defined() && proves_order(inner.max, outer.max, analyzer));
}

namespace {

class Evaluator {
 public:
  Evaluator(const Domains& domains, Analyzer& analyzer, const Expr& predicate)
      : domains_(domains), analyzer_(analyzer), engine_(analyzer.engine()) {
    if (predicate.defined()) learn(engine_.simplify(predicate));
  }

  IntSet operator()(const Expr& e) { return of_simple(engine_.simplify(e)); }

 private:
  bool fits(const IntSet& set, DataType type) {
    return set.is_bounded() && engine_.bound(set.min).min_value >= int_min(type) &&
           engine_.bound(set.max).max_value <= int_max(type);
  }

  /// terms >= low or terms <= high, where each of the terms runs.
  struct Limit {
    Fingerprint terms;
    Expr low, high;
  };

  bool runs(const Expr& e) {
    if (e.is<IntImm>()) return false;
    if (e.is<Var>()) return domains_.contains(e);
    if (auto* known = find_value(runs_, e)) return *known;
    bool result = uses_any_of(e, domains_);
    runs_.emplace(e, result);
    return result;
  }

  void learn(const Expr& condition) {
    if (const And* both = condition.as<And>()) {
      learn(both->a);
      learn(both->b);
      return;
    }
    if (is_call_to(condition, Intrinsic::k_likely)) return learn(Expr(condition.as<Call>()->args[0]));
    auto order = [&](const Expr& a, const Expr& b, int64_t slack) {
      if (!is_index(a.dtype())) return;
      // b - a - slack >= 0: the terms that run against the rest
      if (engine_.may_wrap(a) || engine_.may_wrap(b)) return;
      Linear difference = engine_.flat(b) - engine_.flat(a);
      difference.add_constant(-slack);
      auto [running, rest] = split(difference);
      if (difference.bad || running.terms.empty()) return;
      DataType type = a.dtype();
      Linear negated = rest;
      negated.scale(-1);
      auto low = to_expr(negated, type), high = to_expr(rest, type);
      if (!low || !high) return;
      limits_.push_back({running.terms_fingerprint(), *low, {}});                   // running >= -rest
      limits_.push_back({Fingerprint{} - running.terms_fingerprint(), {}, *high});  // -running <= rest
    };
    if (const LT* e = condition.as<LT>()) order(e->a, e->b, 1);
    if (const LE* e = condition.as<LE>()) order(e->a, e->b, 0);
    if (const EQ* e = condition.as<EQ>()) {
      order(e->a, e->b, 0);
      order(e->b, e->a, 0);
    }
  }

  std::pair<Linear, Linear> split(const Linear& sum) {
    Linear running, rest = Linear::of_int(sum.constant);
    running.bad = rest.bad = sum.bad;
    for (const Term& term : sum.terms) (runs(term.atom) ? running : rest).terms.push_back(term);
    return {running, rest};
  }

  IntSet of_simple(const Expr& e) {
    if (!runs(e)) return IntSet::point(e);
    if (!is_index(e.dtype())) return IntSet::everything();
    Linear sum = engine_.flat(e);
    if (sum.bad) return IntSet::everything();
    auto [running, rest] = split(sum);
    auto fixed = to_expr(rest, e.dtype());
    if (!fixed) return IntSet::everything();
    IntSet result = IntSet::point(zero(e.dtype()));
    for (const Term& term : running.terms) result = plus(result, scaled(of_atom(term.atom), term.coeff, e.dtype()));
    result = limited(result, running);
    return plus(result, IntSet::point(*fixed));
  }

  IntSet limited(IntSet set, const Linear& running) {
    if (limits_.empty() || set.is_nothing) return set;
    Fingerprint print = running.terms_fingerprint();
    for (const Limit& limit : limits_) {
      if (limit.terms == print) set = intersect(set, IntSet::interval(limit.low, limit.high), analyzer_);
    }
    return set;
  }

  Expr simple(const Expr& e) { return engine_.simplify(e); }

  IntSet plus(const IntSet& a, const IntSet& b) {
    if (a.is_nothing || b.is_nothing) return IntSet::nothing();
    if (a.is_point() && b.is_point()) return IntSet::point(simple(a.min + b.min));
    IntSet result;
    if (a.min.defined() && b.min.defined()) result.min = simple(a.min + b.min);
    if (a.max.defined() && b.max.defined()) result.max = simple(a.max + b.max);
    return result;
  }

  IntSet scaled(const IntSet& set, int64_t factor, DataType type) {
    if (set.is_nothing || factor == 1) return set;
    if (wrap_int(type, factor) != factor) return IntSet::everything();
    Expr by = int_imm(type, factor);
    if (set.is_point()) return IntSet::point(simple(set.min * by));
    // An end that depends on data may be arbitrary, so its product may overflow, although the program never computes
    // it.
    auto times = [&](const Expr& end) {
      if (!end.defined()) return Expr();
      const Expr product = end * by;
      return engine_.may_wrap(product) ? Expr() : simple(product);
    };
    const Expr low = times(set.min), high = times(set.max);
    return factor > 0 ? IntSet::interval(low, high) : IntSet::interval(high, low);
  }

  /// An atom that runs.
  IntSet of_atom(const Expr& e) {
    if (e.is<Var>()) return of_variable(e);
    const auto [a, b] = binary_operands(e);
    switch (e.kind()) {
      case Kind::kFloorDiv:
        return quotient(of_simple(*a), of_simple(*b));
      case Kind::kFloorMod:
        return remainder(of_simple(*a), of_simple(*b));
      case Kind::kMin:
        return smaller(of_simple(*a), of_simple(*b), true);
      case Kind::kMax:
        return smaller(of_simple(*a), of_simple(*b), false);
      case Kind::kSelect:
        return unite(of_simple(e.as<Select>()->true_value), of_simple(e.as<Select>()->false_value), analyzer_);
      case Kind::kMul:
        return product(of_simple(*a), of_simple(*b));
      case Kind::kCast: {
        const Cast& cast = *e.as<Cast>();
        if (!is_index(cast.dtype) || !is_index(cast.value.dtype())) return IntSet::everything();
        IntSet set = of_simple(cast.value);
        if (set.is_nothing) return set;
        if (!is_widening_index_cast(cast) && !fits(set, cast.dtype)) return IntSet::everything();
        auto cast_end = [&](const Expr& end) {
          return end.defined() ? simple(tilewright::cast(cast.dtype, end)) : end;
        };
        return set.is_point() ? IntSet::point(cast_end(set.min))
                              : IntSet::interval(cast_end(set.min), cast_end(set.max));
      }
      default:
        break;
    }
    if (is_call_to(e, Intrinsic::k_if_then_else)) {
      const Call& call = *e.as<Call>();
      return unite(of_simple(call.arg(1)), of_simple(call.arg(2)), analyzer_);
    }
    if (const Engine::Elements* declared = engine_.elements(e)) return of_element(*e.as<BufferLoad>(), *declared);
    // Whatever it is, its interval holds for all iterations.
    ConstIntBound bound = engine_.bound(e);
    IntSet result;
    if (bound.has_min() && bound.min_value > int_min(e.dtype())) result.min = int_imm(e.dtype(), bound.min_value);
    if (bound.has_max() && bound.max_value < int_max(e.dtype())) result.max = int_imm(e.dtype(), bound.max_value);
    return result;
  }

  /// If the elements are sorted, the bounds are the elements at the lower and upper bound of the index.
  IntSet of_element(const BufferLoad& load, const Engine::Elements& declared) {
    IntSet result = IntSet::interval(of_simple(declared.min).min, of_simple(declared.max).max);
    if (!declared.ascends || load.indices.size() != 1) return result;
    IntSet index = of_simple(load.indices[0]);
    if (index.is_nothing) return index;
    auto element = [&](const Expr& at) -> Expr {
      return simple(make<BufferLoad>({.buffer = load.buffer, .indices = {at}, .predicate = {}}));
    };
    // The end of an overestimated interval may be outside the buffer.
    auto exists = [&](const Expr& at) {
      return at.defined() && analyzer_.can_prove_greater_equal(at, 0) &&
             analyzer_.can_prove_less(at, load.buffer->shape[0]);
    };
    if (exists(index.min)) result.min = element(index.min);
    if (exists(index.max)) result.max = element(index.max);
    return result;
  }

  /// The ends of a domain may run themselves: j in [0, i) while i runs.
  IntSet of_variable(const Expr& v) {
    const IntSet& domain = domains_.at(v);
    if (domain.is_nothing) return domain;
    if (!active_.insert(v).second) return IntSet::everything();
    IntSet result;
    if (domain.is_point()) {
      result = (*this)(domain.min);
    } else {
      if (domain.min.defined()) result.min = (*this)(domain.min).min;
      if (domain.max.defined()) result.max = (*this)(domain.max).max;
    }
    active_.erase(v);
    return result;
  }

  IntSet quotient(const IntSet& a, const IntSet& b) {
    if (a.is_nothing || b.is_nothing) return IntSet::nothing();
    if (!b.is_point()) return IntSet::everything();
    bool positive = analyzer_.can_prove_greater_equal(b.min, 1);
    if (!positive && !analyzer_.can_prove_less(b.min, zero(b.min.dtype()))) return IntSet::everything();
    auto divide = [&](const Expr& end) { return end.defined() ? simple(floordiv(end, b.min)) : end; };
    return positive ? IntSet::interval(divide(a.min), divide(a.max)) : IntSet::interval(divide(a.max), divide(a.min));
  }

  IntSet remainder(const IntSet& a, const IntSet& b) {
    if (a.is_nothing || b.is_nothing) return IntSet::nothing();
    if (!b.is_point() || !analyzer_.can_prove_greater_equal(b.min, 1)) return IntSet::everything();
    if (a.is_bounded() && analyzer_.can_prove_equal(floordiv(a.min, b.min), floordiv(a.max, b.min))) {
      return IntSet::interval(simple(floormod(a.min, b.min)), simple(floormod(a.max, b.min)));
    }
    IntSet result = IntSet::interval(zero(b.min.dtype()), simple(b.min - 1));
    // Remainders do not exceed a dividend that is not negative.
    bool non_negative = a.is_bounded() && analyzer_.can_prove_greater_equal(a.min, 0);
    if (non_negative && analyzer_.can_prove_less(a.max, b.min)) result.max = a.max;
    return result;
  }

  IntSet smaller(const IntSet& a, const IntSet& b, bool is_min) {
    if (a.is_nothing || b.is_nothing) return IntSet::nothing();
    auto both = [&](const Expr& x, const Expr& y) {
      return x.defined() && y.defined() ? pick(x, y, is_min, analyzer_) : Expr();
    };
    IntSet result{both(a.min, b.min), both(a.max, b.max), false};
    // An end of one side is enough on the side towards which the operator goes.
    if (is_min && !result.max.defined()) result.max = a.max.defined() ? a.max : b.max;
    if (!is_min && !result.min.defined()) result.min = a.min.defined() ? a.min : b.min;
    return result;
  }

  IntSet product(const IntSet& a, const IntSet& b) {
    if (a.is_nothing || b.is_nothing) return IntSet::nothing();
    if (!a.is_point() && b.is_point()) return product(b, a);
    auto times = [&](const Expr& x, const Expr& y) { return x.defined() && y.defined() ? simple(x * y) : Expr(); };
    if (a.is_point()) {
      if (analyzer_.can_prove_greater_equal(a.min, 0)) {
        return IntSet::interval(times(a.min, b.min), times(a.min, b.max));
      }
      if (analyzer_.can_prove_less_equal(a.min, zero(a.min.dtype()))) {
        return IntSet::interval(times(a.min, b.max), times(a.min, b.min));
      }
      return IntSet::everything();
    }
    if (a.min.defined() && b.min.defined() && analyzer_.can_prove_greater_equal(a.min, 0) &&
        analyzer_.can_prove_greater_equal(b.min, 0)) {
      return IntSet::interval(times(a.min, b.min), times(a.max, b.max));
    }
    return IntSet::everything();
  }

  const Domains& domains_;
  Analyzer& analyzer_;
  Engine& engine_;
  std::vector<Limit> limits_;
  std::unordered_map<NodeRef, bool> runs_;
  std::unordered_set<NodeRef> active_;
};

}  // namespace

IntSet eval_set(const Expr& e, const Domains& domains, Analyzer& analyzer, const Expr& predicate) {
  IntSet result;
  with_stack_for(e.depth(), [&] { result = Evaluator(domains, analyzer, predicate)(e); });
  return result;
}

// ---- boxes

Box box_of(const Region& region) {
  Box result;
  for (const Ref<Range>& range : region) result.push_back(IntSet::of_range(range));
  return result;
}

Box relax_region(const Region& region, const Domains& domains, Analyzer& analyzer, const Expr& predicate) {
  Box result;
  uint32_t depth = 0;
  for (const Ref<Range>& range : region) depth = std::max(depth, range.depth());
  with_stack_for(depth, [&] {
    Evaluator evaluate(domains, analyzer, predicate);
    for (const Ref<Range>& range : region) {
      IntSet set = IntSet::of_range(range);
      if (set.is_nothing) {
        result.push_back(set);
      } else if (set.is_point()) {
        result.push_back(evaluate(set.min));
      } else {
        IntSet low = evaluate(set.min), high = evaluate(set.max);
        bool empty = low.is_nothing || high.is_nothing;
        result.push_back(empty ? IntSet::nothing() : IntSet::interval(low.min, high.max));
      }
    }
  });
  return result;
}

namespace {
template <class F>
Box by_dimension(const Box& a, const Box& b, F&& op) {
  Box result;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) result.push_back(op(a[i], b[i]));
  return result;
}
bool is_empty(const Box& box) {
  return any_of(box, [](const IntSet& set) { return set.is_nothing; });
}
}  // namespace

Box unite(const Box& a, const Box& b, Analyzer& analyzer) {
  if (is_empty(a)) return b;
  if (is_empty(b)) return a;
  return by_dimension(a, b, [&](const IntSet& x, const IntSet& y) { return unite(x, y, analyzer); });
}
Box intersect(const Box& a, const Box& b, Analyzer& analyzer) {
  return by_dimension(a, b, [&](const IntSet& x, const IntSet& y) { return intersect(x, y, analyzer); });
}
bool proves_subset(const Box& inner, const Box& outer, Analyzer& analyzer) {
  if (is_empty(inner)) return true;
  if (inner.size() != outer.size()) return false;
  for (size_t i : indices_of(inner)) {
    if (!proves_subset(inner[i], outer[i], analyzer)) return false;
  }
  return true;
}

Region clip_to_shape(const Box& box, const std::vector<Expr>& shape, Analyzer& analyzer) {
  Region result;
  for (size_t i : indices_of(box)) {
    IntSet whole = IntSet::interval(zero(shape[i].dtype()), analyzer.simplify(shape[i] - 1));
    bool contained = proves_subset(box[i], whole, analyzer);
    Ref<Range> part = (contained ? box[i] : intersect(box[i], whole, analyzer)).to_range(analyzer);
    // The shape of a buffer is never negative: all of it is as long as it says.
    if (part.defined() && is_const_int(part->min, 0) && analyzer.can_prove_equal(part->extent, shape[i])) {
      result.push_back(range(part->min, shape[i]));
      continue;
    }
    // The remainder of the box may be empty, or the box was: a number of elements that depends only on loops with
    // constant extents shows that.
    auto may_be_negative = [&](const Expr& extent) {
      if (!contained) return !analyzer.can_prove(ge(extent, 0));
      ConstIntBound count = analyzer.const_int_bound(extent);
      return count.has_min() && count.min_value < 0;
    };
    if (part.defined() && may_be_negative(part->extent)) {
      part = make<Range>({part->min, max(part->extent, zero(part->extent.dtype()))});
    }
    result.push_back(part.defined() ? part : range_of(shape[i]));
  }
  return result;
}

}  // namespace tilewright::arith
