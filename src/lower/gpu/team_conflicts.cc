#include "lower/gpu/team_conflicts.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "analysis/threads.h"
#include "analysis/witness.h"
#include "ir/build.h"
#include "ir/substitute.h"
#include "ir/traverse.h"
#include "support/ranges.h"

namespace tilewright::lower {
namespace {

constexpr int64_t kMostPoints = 1 << 18;
constexpr int64_t kMostCases = 64;
/// The maximum number of points of all cases together, if conditions are enumerated, too.
constexpr int64_t kMostGuardedPoints = 1 << 15;
/// The maximum number of bytes that are compared per kernel, which takes a few seconds. Unrolled loops have many pairs
/// of accesses.
constexpr int64_t kMostBytes = 1 << 23;
/// The fixed cost of a comparison, in bytes.
constexpr int64_t kBytesOfComparison = 256;

/// Returns the least common multiple of the moduli in `e` of expressions with the variable; 1 if there are none.
int64_t period_of(const Expr& e, const Ref<Var>& v) {
  int64_t period = 1;
  visit(e, [&](const Ref<FloorMod>& mod) {
    auto by = const_int(mod->b);
    if (by && *by > 1 && *by <= kMostCases && uses_var(mod->a, v)) period = std::lcm(period, *by);
  });
  return period <= kMostCases ? period : 1;
}

/// Returns the first minimum or maximum among the added terms of an expression; null if there is none.
const NodeBase* added_extremum(const Expr& e) {
  if (e.is<Min>() || e.is<Max>()) return e.get();
  if (const Add* sum = e.as<Add>()) {
    const NodeBase* found = added_extremum(sum->a);
    return found ? found : added_extremum(sum->b);
  }
  const Sub* difference = e.as<Sub>();
  return difference ? added_extremum(difference->a) : nullptr;
}

/// Returns an upper bound of `e`; nothing if there is none. Also tries the sum with a minimum replaced by either
/// operand, where terms may cancel: min(x, 17) - x + 2 is at most 2.
std::optional<int64_t> largest(const Expr& e, arith::Analyzer& analyzer, int depth = 3) {
  const auto bound = analyzer.const_int_bound(e);
  std::optional<int64_t> most = bound.has_max() ? std::optional(bound.max_value) : std::nullopt;
  const NodeBase* extremum = depth > 0 ? added_extremum(e) : nullptr;
  if (!extremum) return most;
  int count = 0;  // a node that occurs twice may also be subtracted, where replacing it gives no bound
  visit(e, on<Min, Max>([&](const auto& node) { count += node.get() == extremum; }));
  if (count != 1) return most;
  std::optional<int64_t> by_operand[2];
  for (const bool first : {true, false}) {
    auto operand = [&](const auto& node) -> Expr { return first ? Expr(node->a) : Expr(node->b); };
    const Expr other = rewrite(
        e,
        [&](const Ref<Min>& least, Rewriter& r) {
          return least.get() == extremum ? operand(least) : Expr(r.descend(least));
        },
        [&](const Ref<Max>& greatest, Rewriter& r) {
          return greatest.get() == extremum ? operand(greatest) : Expr(r.descend(greatest));
        });
    by_operand[first] = largest(analyzer.simplify(other), analyzer, depth - 1);
  }
  const auto& [a, b] = by_operand;
  std::optional<int64_t> either;
  if (extremum->kind == Kind::kMin) {
    either = a && b ? std::min(*a, *b) : a ? a : b;
  } else if (a && b) {
    either = std::max(*a, *b);
  }
  return most && either ? std::min(*most, *either) : most ? most : either;
}

}  // namespace

TeamConflicts::TeamConflicts(const KernelLoops& kernel, const LoopRanges& loops, arith::Analyzer& analyzer)
    : bytes_left_(kMostBytes), loops_(loops), analyzer_(analyzer) {
  for (const Ref<For>& loop : kernel.loops) {
    auto axis = analysis::thread_axis(*loop);
    if (!axis || !axis->in_team()) {
      blocks_.push_back(loop);
      continue;
    }
    threads_.push_back(loop);
    auto extent = const_int(loop->extent);
    team_ = extent && *extent <= kMostPoints ? team_ * std::max<int64_t>(*extent, 1) : 0;
  }
}

std::optional<TeamConflicts::Moving> TeamConflicts::moving(const TeamAccess& access, const std::vector<NodeRef>& around,
                                                           std::optional<int64_t> most) {
  Moving result;
  VarMap start;
  for (const Ref<For>& loop : threads_) start[loop->loop_var] = zero(loop->loop_var.dtype());
  auto inner_loop = [&](const Ref<Var>& v) -> const For* {
    auto* found = find_value(loops_, v.get());
    return found && !is_contained(around, NodeRef(v)) ? &**found : nullptr;
  };
  visit(access.offset, [&](const Ref<Var>& v) {
    const For* loop = inner_loop(v);
    if (loop && start.try_emplace(v, loop->min).second) result.inner.push_back(loops_.at(v.get()));
  });
  for (Ref<For>& loop : result.inner) {
    if (!const_int(loop->min)) return std::nullopt;
    if (const_int(loop->extent)) continue;
    // Enumerate the largest number of iterations; a condition removes those that do not exist.
    const auto bound = largest(loop->extent, analyzer_);
    if (!bound || *bound > kMostPoints) return std::nullopt;
    result.conditions.push_back(lt(loop->loop_var, loop->min + loop->extent));
    loop = with_field(loop, &For::extent, int_imm(loop->extent.dtype(), std::max<int64_t>(*bound, 0)));
  }
  int64_t count = team_;
  for (const Ref<For>& loop : result.inner) {
    if (count <= kMostPoints) count *= std::max<int64_t>(*const_int(loop->extent), 1);
  }
  auto add_if_few = [&](const Ref<Var>& v) {
    const For* loop = inner_loop(v);
    const int64_t extent = loop && const_int(loop->min) ? const_int(loop->extent).value_or(0) : 0;
    // A condition on a loop that is not enumerated is ignored.
    if (extent < 1 || extent > *most / count || !start.try_emplace(v, loop->min).second) return;
    count *= extent;
    result.inner.push_back(loops_.at(v.get()));
  };
  for (size_t i = 0; most && i < access.conditions.size(); ++i) visit(access.conditions[i], add_if_few);
  result.fixed = substitute(access.offset, start);
  result.offset = analyzer_.simplify(access.offset - result.fixed);
  return result;
}

std::optional<TeamConflicts::Points> TeamConflicts::points(const TeamAccess& access, const Moving& moving,
                                                           int64_t most) {
  std::vector<Ref<For>> loops = threads_;
  append_range(loops, moving.inner);
  int64_t count = 1;
  for (const Ref<For>& loop : loops) {
    count *= std::max<int64_t>(*const_int(loop->extent), 0);
    if (count > most) return std::nullopt;
  }
  bytes_left_ -= count * access.width;
  if (bytes_left_ < 0) return std::nullopt;
  Points result;
  analysis::Point values;
  for (int64_t point = 0; point < count; ++point) {
    values.clear();
    int64_t rest = point;
    for (const Ref<For>& loop : reversed(loops)) {
      const int64_t extent = *const_int(loop->extent);
      values.set(loop->loop_var, rest % extent + const_int(loop->min).value_or(0));
      rest /= extent;
    }
    auto is_false = [&](const Expr& condition) {
      auto holds = analysis::evaluate(condition, values);
      return holds && *holds == 0;
    };
    if (any_of(access.conditions, is_false) || any_of(moving.conditions, is_false)) continue;
    auto offset = analysis::evaluate(moving.offset, values);
    if (!offset) return std::nullopt;
    // The thread is the most significant digit of the point.
    int64_t inner = count / team_;
    result.emplace_back(*offset, static_cast<int>(point / std::max<int64_t>(inner, 1)));
  }
  return result;
}

TeamConflicts::Answer TeamConflicts::meet(const TeamAccess& a, const TeamAccess& b,
                                          const std::vector<NodeRef>& around) {
  if (a.memory != b.memory || (!a.is_write && !b.is_write) || (a.is_atomic && b.is_atomic)) return Answer::kNever;
  if (threads_.empty() || team_ == 1) return Answer::kNever;
  if (!a.offset.defined() || !b.offset.defined()) return Answer::kUndecided;
  auto one = analyzer_.const_int_bound(a.offset), other = analyzer_.const_int_bound(b.offset);
  if (one.has_max() && other.has_min() && one.max_value + a.width <= other.min_value) return Answer::kNever;
  if (other.has_max() && one.has_min() && other.max_value + b.width <= one.min_value) return Answer::kNever;
  if (team_ == 0) return Answer::kUndecided;
  const Answer by_offsets = compare(a, b, around, {});
  const bool is_unconditional = a.conditions.empty() && b.conditions.empty();
  if (by_offsets == Answer::kNever || (by_offsets == Answer::kMeet && is_unconditional)) return by_offsets;
  const std::vector<Ref<For>> shared = shared_by(a, b, around);
  int64_t cases = 1;
  for (const Ref<For>& loop : shared) cases *= *const_int(loop->extent);
  for (int64_t number = 0; number < cases; ++number) {
    VarMap values;
    int64_t rest = number;
    for (const Ref<For>& loop : shared) {
      const int64_t extent = *const_int(loop->extent);
      values[loop->loop_var] = int_imm(loop->loop_var.dtype(), *const_int(loop->min) + rest % extent);
      rest /= extent;
    }
    auto here = [&](TeamAccess access) {
      access.offset = substitute(access.offset, values);
      for (Expr& condition : access.conditions) condition = substitute(condition, values);
      return access;
    };
    const Answer answer = compare(here(a), here(b), around, kMostGuardedPoints / cases);
    if (answer != Answer::kNever) return by_offsets;
  }
  return Answer::kNever;
}

std::vector<Ref<For>> TeamConflicts::shared_by(const TeamAccess& a, const TeamAccess& b,
                                               const std::vector<NodeRef>& around) const {
  std::vector<Ref<For>> result;
  int64_t cases = 1;
  auto add = [&](const Ref<For>& loop) {
    const int64_t extent = const_int(loop->min) ? const_int(loop->extent).value_or(0) : 0;
    const bool is_new = !is_contained(result, loop);
    if (!is_new || extent < 1 || extent > kMostCases / cases) return;
    cases *= extent;
    result.push_back(loop);
  };
  auto add_all = [&](const Expr& e) {
    visit(e, [&](const Ref<Var>& v) {
      for (const Ref<For>& block : blocks_) {
        if (block->loop_var == v) add(block);
      }
      auto found = loops_.find(v.get());
      const bool is_around = is_contained(around, NodeRef(v));
      if (found != loops_.end() && is_around) add(found->second);
    });
  };
  for (const TeamAccess* access : {&a, &b}) std::ranges::for_each(access->conditions, add_all);
  for (const TeamAccess* access : {&a, &b}) add_all(access->offset);
  return result;
}

TeamConflicts::Answer TeamConflicts::compare(const TeamAccess& a, const TeamAccess& b,
                                             const std::vector<NodeRef>& around, std::optional<int64_t> most) {
  bytes_left_ -= kBytesOfComparison;
  if (bytes_left_ < 0) return Answer::kUndecided;
  auto moving_a = moving(a, around, most), moving_b = moving(b, around, most);
  if (!moving_a || !moving_b) return Answer::kUndecided;
  std::vector<int64_t> distances;
  if (!distances_of(analyzer_.simplify(moving_a->fixed - moving_b->fixed), distances)) return Answer::kUndecided;
  const int64_t limit = most.value_or(kMostPoints);
  auto points_a = points(a, *moving_a, limit), points_b = points(b, *moving_b, limit);
  if (!points_a || !points_b) return Answer::kUndecided;
  const bool found = any_of(
      distances, [&](int64_t distance) { return share_bytes(*points_a, a.width, distance, *points_b, b.width); });
  return found ? Answer::kMeet : Answer::kNever;
}

bool TeamConflicts::share_bytes(const Points& a, int64_t width_a, int64_t distance, const Points& b, int64_t width_b) {
  std::unordered_map<int64_t, int> owners;  // by byte; -1: several threads
  for (const auto& [offset, thread] : a) {
    for (int64_t byte = 0; byte < width_a; ++byte) {
      auto [it, is_new] = owners.try_emplace(offset + distance + byte, thread);
      if (!is_new && it->second != thread) it->second = -1;
    }
  }
  return any_of(b, [&](const auto& point) {
    for (int64_t byte = 0; byte < width_b; ++byte) {
      auto* found = find_value(owners, point.first + byte);
      if (found && *found != point.second) return true;
    }
    return false;
  });
}

/// Collects the values of a distance, by cases of a loop variable: its iterations, if they are few, else its remainders
/// modulo a constant period. Returns false if they are not known.
bool TeamConflicts::distances_of(const Expr& distance, std::vector<int64_t>& into) {
  if (auto known = const_int(distance)) {
    into.push_back(*known);
    return true;
  }
  Ref<Var> by;
  visit(distance, [&](const Ref<Var>& v) {
    if (!by.defined() && loops_.contains(v.get())) by = v;
  });
  if (!by.defined()) return false;
  const For& loop = *loops_.at(by.get());
  auto start = const_int(loop.min), extent = const_int(loop.extent);
  const bool is_short = start && extent && *extent <= kMostCases;
  const int64_t cases = is_short ? *extent : period_of(distance, by);
  if (!is_short && cases == 1) return false;
  const Ref<Var> quotient = var("quotient", by.dtype());
  for (int64_t i = 0; i < cases; ++i) {
    const Expr value = is_short ? Expr(int_imm(by.dtype(), *start + i)) : quotient * cases + i;
    const Expr one = analyzer_.simplify(substitute(distance, {{by, value}}));
    if (uses_var(one, quotient) || !distances_of(one, into) || into.size() > kMostCases) return false;
  }
  return true;
}

}  // namespace tilewright::lower
