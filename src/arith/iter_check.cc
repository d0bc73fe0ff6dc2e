
#include "arith/iter_reader.h"
#include "ir/build.h"
#include "support/ranges.h"

namespace tilewright::arith {
namespace {

/// Splits by iterator, in the order of their discovery: an iterator comes before those that it is a sum of.
struct Splits {
  std::vector<IterMarkPtr> order;
  std::unordered_map<const IterMark*, std::vector<IterSplitExpr>> of;

  explicit Splits(const std::vector<IterSumExpr>& indices) {
    std::vector<IterSplitExpr> open;
    for (const IterSumExpr& sum : indices) append_range(open, sum.args);
    while (!open.empty()) {
      IterSplitExpr split = open.back();
      open.pop_back();
      std::vector<IterSplitExpr>& of_mark = of[split.source.get()];
      of_mark.push_back(split);
      if (of_mark.size() > 1) continue;
      order.push_back(split.source);
      if (!split.source->sum) continue;
      append_range(open, split.source->sum->args);
    }
  }

  /// Whether the pattern shares loops with this one, including loops of an iterator that a remainder has made of a sum:
  /// the condition `(i * 2 + j) % 2 == 1`.
  bool share_loops_with(const IterSumExpr& pattern) const {
    return any_of(pattern.args, [&](const IterSplitExpr& split) {
      return of.contains(split.source.get()) || (split.source->sum && share_loops_with(*split.source->sum));
    });
  }
};

/// Digits from the lowest upwards; a bijection needs all of them.
bool digits_fit(const IterMark& mark, std::vector<IterSplitExpr> splits, IterMapLevel level, Factors& f) {
  Expr expected = one(mark.extent.dtype());
  while (!splits.empty()) {
    size_t next = splits.size();
    for (size_t i = 0; i < splits.size() && next == splits.size(); ++i) {
      if (f.equal(splits[i].lower_factor, expected)) next = i;
    }
    if (next == splits.size()) {
      if (level == IterMapLevel::kBijective) return false;
      // Unused digits below are allowed: the nearest multiple.
      for (size_t i : indices_of(splits)) {
        if (!f.divides(expected, splits[i].lower_factor)) continue;
        if (next == splits.size() || f.less(splits[i].lower_factor, splits[next].lower_factor)) next = i;
      }
      if (next == splits.size()) return false;
    }
    expected = f.mul(splits[next].lower_factor, splits[next].extent);
    erase_at(splits, next);
  }
  return f.equal(expected, mark.extent) || (level == IterMapLevel::kSurjective && f.divides(expected, mark.extent));
}

}  // namespace

std::optional<std::string> problem_of(const std::vector<IterSumExpr>& indices, IterReader& reader, IterMapLevel level) {
  Splits splits(indices);
  for (const IterMarkPtr& mark : splits.order) {
    if (!digits_fit(*mark, splits.of[mark.get()], level, reader.factors())) {
      return "a loop is used twice, or not all of it is used";
    }
  }
  for (const IterReader::Constraint& constraint : reader.constraints()) {
    if (splits.of.contains(constraint.mark.get())) continue;
    if (splits.share_loops_with(constraint.pattern)) return "the predicate cuts loops that no index uses together";
  }
  if (level != IterMapLevel::kBijective) return std::nullopt;
  for (const auto& [variable, mark] : reader.marks()) {
    if (!splits.of.contains(mark.get())) return "a loop is not used by any index";
  }
  return std::nullopt;
}

}  // namespace tilewright::arith
