// Which part of a region is surely reached by a block that runs on a condition (cover.h).
#include <algorithm>

#include "analysis/cover.h"
#include "arith/region_bound.h"
#include "ir/build.h"
#include "ir/conjunction.h"
#include "ir/numeric.h"
#include "ir/regions.h"
#include "ir/substitute.h"
#include "support/ranges.h"

namespace tilewright::analysis {
namespace {

/// The terms of a conjunction that bound one start of a region are removed from `predicate` and applied to the
/// box: the iterations where `start < bound` holds reach the points of the box below the bound, all of them.
class Clips {
 public:
  Clips(const arith::Region& region, const arith::IterDomains& inputs, const Expr& predicate, arith::Analyzer& analyzer)
      : region_(region), inputs_(inputs), analyzer_(analyzer), rest_(bool_imm(true)) {
    take(predicate);
  }
  const Expr& rest() const { return rest_; }

  void apply(arith::Box& box) const {
    for (const Clip& clip : clips_) {
      arith::IntSet& set = box[clip.dim];
      if (clip.at_most.defined()) set.max = analyzer_.simplify(min(set.max, clip.at_most));
      if (clip.at_least.defined()) set.min = analyzer_.simplify(max(set.min, clip.at_least));
    }
  }

 private:
  struct Clip {
    size_t dim;
    Expr at_most, at_least;
  };

  void take(const Expr& term) {
    if (const And* both = term.as<And>()) {
      take(both->a);
      take(both->b);
      return;
    }
    bool taken = is_true(term);
    if (const LT* n = term.as<LT>()) taken = below(n->a, n->b - 1) || above(n->b, n->a + 1);
    if (const LE* n = term.as<LE>()) taken = below(n->a, n->b) || above(n->b, n->a);
    if (const GT* n = term.as<GT>()) taken = above(n->a, n->b + 1) || below(n->b, n->a - 1);
    if (const GE* n = term.as<GE>()) taken = above(n->a, n->b) || below(n->b, n->a);
    if (!taken) rest_ = logical_and(rest_, term);
  }

  bool below(const Expr& start, const Expr& limit) {
    auto found = find(start, limit);
    if (found) clips_.push_back({found->first, in_region(*found, limit), {}});
    return found.has_value();
  }
  bool above(const Expr& start, const Expr& limit) {
    auto found = find(start, limit);
    if (found) clips_.push_back({found->first, {}, in_region(*found, limit)});
    return found.has_value();
  }
  /// The limit of a start as one of the dimension, of its type.
  Expr in_region(const std::pair<size_t, Expr>& found, const Expr& limit) const {
    return cast(region_[found.first]->min.dtype(), limit + found.second);
  }
  /// Whether the type of an index holds the limit, which a condition may state in a wider one.
  bool fits(const Expr& limit, DataType type) {
    if (limit.dtype() == type) return true;
    const arith::ConstIntBound values = analyzer_.const_int_bound(limit);
    return values.min_value >= int_min(type) && values.max_value <= int_max(type);
  }
  /// The dimension that begins a constant behind `start`, and that constant; the limit must be one for all iterations.
  std::optional<std::pair<size_t, Expr>> find(const Expr& start, const Expr& limit) {
    if (arith::uses_inputs(limit, inputs_) || !arith::uses_inputs(start, inputs_)) return std::nullopt;
    for (size_t d : indices_of(region_)) {
      if (!is_const_int(region_[d]->extent, 1)) continue;
      Expr behind = analyzer_.simplify(region_[d]->min - start);
      if (const_int(behind) && fits(limit + behind, region_[d]->min.dtype())) return std::pair(d, behind);
    }
    return std::nullopt;
  }

  const arith::Region& region_;
  const arith::IterDomains& inputs_;
  arith::Analyzer& analyzer_;
  Expr rest_;
  std::vector<Clip> clips_;
};

/// The conjunction with those of its terms that say nothing of the inputs, such as i + n < i + m, without them.
Expr without_idle_inputs(const Expr& predicate, const arith::IterDomains& inputs, arith::Analyzer& analyzer) {
  if (const And* both = predicate.as<And>()) {
    return logical_and(without_idle_inputs(both->a, inputs, analyzer), without_idle_inputs(both->b, inputs, analyzer));
  }
  if (!arith::uses_inputs(predicate, inputs)) return predicate;
  Expr simple = analyzer.simplify(predicate);
  return arith::uses_inputs(simple, inputs) ? predicate : simple;
}

/// Whether every loop runs in each iteration of the others. That over j in `for j in range(max(1 - i, 0))` does not.
bool all_run(const arith::IterDomains& inputs, arith::Analyzer& analyzer) {
  arith::Domains domains;
  for (const auto& [v, range] : inputs) {
    if (!const_int(range->extent) && arith::uses_inputs(range->extent, inputs)) {
      const arith::IntSet extents = arith::eval_set(range->extent, domains, analyzer);
      if (!extents.min.defined() || !analyzer.can_prove_greater_equal(extents.min, 1)) return false;
    }
    domains.emplace(v, arith::IntSet::of_range(range));
  }
  return true;
}

bool proves_all(const Expr& predicate, arith::Analyzer& analyzer) {
  if (const And* both = predicate.as<And>()) return proves_all(both->a, analyzer) && proves_all(both->b, analyzer);
  return analyzer.can_prove_written_condition(predicate);
}

/// Whether a nonempty region implies that some iteration satisfies the condition: the region depends on all inputs of
/// the condition, or the first iteration satisfies it. A region that does not move implies nothing about `outer + i <
/// 1`.
bool shows_condition(const Expr& condition, const arith::Region& region, const arith::IterDomains& inputs,
                     arith::Analyzer& analyzer) {
  VarMap first;
  bool shows = true;
  for (const auto& [v, domain] : inputs) {
    first.emplace(v, substitute(domain->min, first));
    if (!uses_var(condition, v)) continue;
    shows &= any_of(region, [&v = v](const Ref<Range>& r) { return uses_var(r->min, v); });
  }
  return shows || proves_all(substitute(condition, first), analyzer);
}

/// Inputs that move one dimension of a region and nothing else; its start is `own`, which moves with them alone, and
/// `rest`, which moves with others.
struct OwnPart {
  arith::IterDomains inputs, others;
  Expr own, rest;
};

std::optional<OwnPart> own_part(const arith::Region& region, size_t dim, const arith::IterDomains& inputs,
                                arith::Analyzer& analyzer) {
  const Range& moved = *region[dim];
  auto is_own = [&](const Ref<Var>& v) {
    if (!uses_var(moved.min, v) || uses_var(moved.extent, v)) return false;
    for (size_t d = 0; d < region.size(); ++d) {
      if (d != dim && (uses_var(region[d]->min, v) || uses_var(region[d]->extent, v))) return false;
    }
    return none_of(inputs, [&](const auto& other) { return uses_var(other.second, v); });
  };
  OwnPart part;
  VarMap none;
  for (const auto& input : inputs) {
    (is_own(input.first) ? part.inputs : part.others).push_back(input);
    if (is_own(input.first)) none.emplace(input.first, zero(input.first.dtype()));
  }
  if (part.inputs.empty()) return std::nullopt;
  for (const auto& [v, domain] : part.inputs) {
    if (arith::uses_inputs(domain->min, part.others) || arith::uses_inputs(domain->extent, part.others)) {
      return std::nullopt;
    }
  }
  part.rest = analyzer.simplify(substitute(moved.min, none));
  part.own = analyzer.simplify(moved.min - part.rest);
  if (!arith::uses_inputs(part.rest, part.others) || arith::uses_inputs(part.own, part.others)) return std::nullopt;
  return part;
}

/// A region in terms of other loops, and the condition.
struct Straightened {
  arith::Region region;
  arith::IterDomains inputs;
  Expr condition;
};

/// The points [j, i - j] for i in [0, n), j in [0, m) are no box. But for each j, i - j takes all values from 0 to
/// n - m, and a loop w over these can stand for i, which is w + j there. Nothing where no dimension is such a sum.
std::optional<Straightened> straightened(const arith::Region& region, size_t dim, const arith::IterDomains& inputs,
                                         const Expr& condition, arith::Analyzer& analyzer) {
  auto part = own_part(region, dim, inputs, analyzer);
  if (!part) return std::nullopt;
  // That another loop has no iteration shows in what else it moves.
  for (const auto& [v, domain] : part->others) {
    bool shows = !uses_var(part->rest, v) || analyzer.can_prove_greater_equal(domain->extent, 1);
    for (size_t d = 0; d < region.size(); ++d) shows |= d != dim && arith::has_multiple(region[d]->min, v);
    if (!shows) return std::nullopt;
  }
  // One of the own loops is what the sum leaves for it, or its negative.
  const DataType dtype = part->own.dtype();
  Expr without;
  bool falls = false;
  auto is_solved = [&](const auto& input) {
    const Expr loop_var = cast(dtype, input.first);
    for (const bool negative : {false, true}) {
      without = analyzer.simplify(negative ? part->own + loop_var : part->own - loop_var);
      falls = negative;
      if (!uses_var(without, input.first)) return true;
    }
    return false;
  };
  const auto solved = find_if(part->inputs, is_solved);
  if (solved == part->inputs.end()) return std::nullopt;
  const Ref<Var>& loop_var = solved->first;
  const Ref<Var> sum = var(loop_var->name_hint, dtype);
  const Expr left = sum - part->rest - without;
  const VarMap map{{loop_var, cast(loop_var.dtype(), falls ? zero(dtype) - left : left)}};
  Straightened found{region, part->others, bool_imm(true)};
  Expr own_condition = bool_imm(true);
  for (Expr term : conjuncts(condition)) {
    if (arith::uses_inputs(term, part->inputs) && !arith::uses_inputs(term, part->others)) {
      own_condition = logical_and(own_condition, term);
      continue;
    }
    if (arith::uses_inputs(term, part->inputs)) term = analyzer.simplify(substitute(term, map));
    if (arith::uses_inputs(term, part->inputs)) return std::nullopt;
    found.condition = logical_and(found.condition, term);
  }
  const Expr rising = analyzer.simplify(falls ? zero(dtype) - part->own : part->own);
  auto reach = surely_reached({range(rising, one(dtype))}, part->inputs, own_condition, analyzer);
  arith::Domains domains;
  for (const auto& [v, range] : part->others) domains.emplace(v, arith::IntSet::of_range(range));
  const arith::IntSet shift = arith::eval_set(part->rest, domains, analyzer);
  if (!reach || !reach->front().is_bounded() || !shift.is_bounded()) return std::nullopt;
  const arith::IntSet& own = reach->front();
  const Expr first = analyzer.simplify((falls ? zero(dtype) - own.max : own.min) + shift.max);
  const Expr last = analyzer.simplify((falls ? zero(dtype) - own.min : own.max) + shift.min);
  found.region[dim] = range(sum, region[dim]->extent);
  found.inputs.emplace_back(sum, range(first, analyzer.simplify(last - first + 1)));
  return found;
}

}  // namespace

void assume_all(const Expr& predicate, arith::Analyzer& analyzer) {
  if (const And* both = predicate.as<And>()) {
    assume_all(both->a, analyzer);
    assume_all(both->b, analyzer);
  } else if (!is_true(predicate)) {
    analyzer.assume(predicate);
  }
}

Expr outer_condition(const Expr& predicate, const arith::IterDomains& inputs) {
  if (const And* both = predicate.as<And>()) {
    return logical_and(outer_condition(both->a, inputs), outer_condition(both->b, inputs));
  }
  return arith::uses_inputs(predicate, inputs) ? Expr(bool_imm(true)) : predicate;
}

std::optional<arith::Box> surely_reached(const arith::Region& region, const arith::IterDomains& inputs,
                                         const Expr& predicate, arith::Analyzer& analyzer) {
  // A loop without iterations reaches nothing; only where it moves the region does that show in it.
  for (const auto& [v, domain] : inputs) {
    if (const_int(domain->extent).value_or(1) > 0) continue;
    if (!uses_var(region, v)) return std::nullopt;
  }
  if (is_true(predicate)) {
    if (auto box = arith::plain_box(region, inputs)) return box;
  }
  // A loop of one iteration is no loop: what is left of a condition without it may hold for none of the others.
  const VarMap units = units_of(inputs);
  arith::IterDomains moving = inputs;
  std::erase_if(moving, [&](const auto& input) { return units.count(input.first); });
  arith::Region reached = region;
  Expr condition = predicate;
  if (!units.empty()) {
    for (Ref<Range>& r : reached) r = range(substitute(r->min, units), substitute(r->extent, units));
    for (auto& [loop_var, domain] : moving) {
      domain = range(substitute(domain->min, units), substitute(domain->extent, units));
    }
    condition = substitute(predicate, units);
  }
  if (!all_run(moving, analyzer)) return std::nullopt;
  condition = without_idle_inputs(condition, moving, analyzer);
  Clips clips(reached, moving, condition, analyzer);
  // If such a condition fails, nothing is reached.
  if (!proves_all(outer_condition(clips.rest(), moving), analyzer)) return std::nullopt;
  if (!shows_condition(clips.rest(), reached, moving, analyzer)) return std::nullopt;
  auto box = arith::region_lower_bound(reached, moving, clips.rest(), analyzer);
  if (box) {
    clips.apply(*box);
  } else if (!is_true(predicate)) {
    // Digits of one iterator, such as i // 6 and i % 6, may need the predicate to come out even.
    box = arith::region_lower_bound(reached, moving, condition, analyzer);
  }
  for (size_t d = 0; !box && d < reached.size(); ++d) {
    auto straight = straightened(reached, d, moving, condition, analyzer);
    if (straight) return surely_reached(straight->region, straight->inputs, straight->condition, analyzer);
  }
  // A bound that one loop sets to another is no box of all of them together.
  for (size_t d = 0; box && d < box->size(); ++d) {
    const arith::IntSet& set = (*box)[d];
    if (set.is_bounded() && (arith::uses_inputs(set.min, inputs) || arith::uses_inputs(set.max, inputs)))
      return std::nullopt;
  }
  return box;
}

}  // namespace tilewright::analysis
