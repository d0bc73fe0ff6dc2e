#include "lower/gpu/team_conflicts.h"

#include <algorithm>
#include <unordered_map>

#include "analysis/threads.h"
#include "analysis/witness.h"
#include "ir/build.h"
#include "ir/substitute.h"
#include "ir/traverse.h"

namespace tilewright::lower {
namespace {

constexpr int64_t kMostPoints = 1 << 18;

}  // namespace

TeamConflicts::TeamConflicts(const KernelLoops& kernel, const LoopRanges& loops, arith::Analyzer& analyzer)
    : loops_(loops), analyzer_(analyzer) {
  for (const Ref<For>& loop : kernel.loops) {
    auto axis = analysis::thread_axis(*loop);
    if (!axis || !axis->in_team()) continue;
    threads_.push_back(loop);
    auto extent = const_int(loop->extent);
    team_ = extent && *extent <= kMostPoints ? team_ * std::max<int64_t>(*extent, 1) : 0;
  }
}

std::optional<TeamConflicts::Moving> TeamConflicts::moving(const TeamAccess& access,
                                                           const std::vector<NodeRef>& around) {
  Moving result;
  VarMap start;
  for (const Ref<For>& loop : threads_) start[loop->loop_var] = zero(loop->loop_var.dtype());
  visit(access.offset, [&](const Ref<Var>& v) {
    auto found = loops_.find(v.get());
    if (found == loops_.end() || std::find(around.begin(), around.end(), NodeRef(v)) != around.end()) return;
    if (start.try_emplace(v, found->second->min).second) result.inner.push_back(found->second);
  });
  for (const Ref<For>& loop : result.inner) {
    if (!const_int(loop->min) || !const_int(loop->extent)) return std::nullopt;
  }
  result.fixed = substitute(access.offset, start);
  result.offset = analyzer_.simplify(access.offset - result.fixed);
  return result;
}

std::optional<std::vector<std::pair<int64_t, int>>> TeamConflicts::points(const TeamAccess& access,
                                                                          const Moving& moving) {
  std::vector<Ref<For>> loops = threads_;
  loops.insert(loops.end(), moving.inner.begin(), moving.inner.end());
  int64_t count = 1;
  for (const Ref<For>& loop : loops) {
    count *= std::max<int64_t>(*const_int(loop->extent), 0);
    if (count > kMostPoints) return std::nullopt;
  }
  std::vector<std::pair<int64_t, int>> result;
  analysis::Point values;
  for (int64_t point = 0; point < count; ++point) {
    values.clear();
    int64_t rest = point;
    for (auto it = loops.rbegin(); it != loops.rend(); ++it) {
      const int64_t extent = *const_int((*it)->extent);
      values.set((*it)->loop_var, rest % extent + const_int((*it)->min).value_or(0));
      rest /= extent;
    }
    const bool never = std::any_of(access.conditions.begin(), access.conditions.end(), [&](const Expr& condition) {
      auto holds = analysis::evaluate(condition, values);
      return holds && *holds == 0;
    });
    if (never) continue;
    auto offset = analysis::evaluate(moving.offset, values);
    if (!offset) return std::nullopt;
    // Threads are the outermost digits.
    int64_t inner = count / team_;
    result.emplace_back(*offset, static_cast<int>(point / std::max<int64_t>(inner, 1)));
  }
  return result;
}

TeamConflicts::Answer TeamConflicts::meet(const TeamAccess& a, const TeamAccess& b,
                                          const std::vector<NodeRef>& around) {
  if (a.memory != b.memory || (!a.is_write && !b.is_write)) return Answer::kNever;
  if (threads_.empty() || team_ == 1) return Answer::kNever;
  if (!a.offset.defined() || !b.offset.defined()) return Answer::kUndecided;
  auto one = analyzer_.const_int_bound(a.offset), other = analyzer_.const_int_bound(b.offset);
  if (one.has_max() && other.has_min() && one.max_value + a.width <= other.min_value) return Answer::kNever;
  if (other.has_max() && one.has_min() && other.max_value + b.width <= one.min_value) return Answer::kNever;
  if (team_ == 0) return Answer::kUndecided;
  auto moving_a = moving(a, around), moving_b = moving(b, around);
  if (!moving_a || !moving_b) return Answer::kUndecided;
  auto distance = const_int(analyzer_.simplify(moving_a->fixed - moving_b->fixed));
  if (!distance) return Answer::kUndecided;
  auto points_a = points(a, *moving_a), points_b = points(b, *moving_b);
  if (!points_a || !points_b) return Answer::kUndecided;
  std::unordered_map<int64_t, int> owners;  // by byte; -1: several threads
  for (const auto& [offset, thread] : *points_a) {
    for (int64_t byte = 0; byte < a.width; ++byte) {
      auto [it, is_new] = owners.try_emplace(offset + *distance + byte, thread);
      if (!is_new && it->second != thread) it->second = -1;
    }
  }
  const bool found = std::any_of(points_b->begin(), points_b->end(), [&](const auto& point) {
    for (int64_t byte = 0; byte < b.width; ++byte) {
      auto found = owners.find(point.first + byte);
      if (found != owners.end() && found->second != point.second) return true;
    }
    return false;
  });
  return found ? Answer::kMeet : Answer::kNever;
}

}  // namespace tilewright::lower
