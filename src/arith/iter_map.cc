// Detection: indices and predicate are read as sums of splits (iter_reader.h), then the splits are checked against one
// another (iter_check.cc).
#include "arith/iter_map.h"

#include <algorithm>
#include <numeric>
#include <span>

#include "arith/iter_reader.h"
#include "ir/build.h"
#include "ir/ceildiv.h"
#include "ir/substitute.h"
#include "ir/traverse.h"
#include "support/deep_stack.h"
#include "support/ranges.h"

namespace tilewright::arith {
namespace {

class Detector {
 public:
  Detector(const IterDomains& inputs, IterMapLevel level, bool keep_trivial, bool fuse_first, Analyzer& analyzer)
      : reader_(inputs, level != IterMapLevel::kNoCheck, keep_trivial, fuse_first, analyzer),
        inputs_(inputs),
        level_(level) {}

  IterMapResult run(const std::vector<Expr>& indices, const Expr& predicate) {
    if (predicate.defined()) reader_.read_predicate(predicate);
    std::vector<std::string>& errors = reader_.errors();
    IterMapResult result;
    for (const Expr& index : indices) {
      if (!errors.empty()) break;
      std::optional<IterSumExpr> sum = read_index(index);
      if (!sum) {
        if (errors.empty()) reader_.fail("an index is not a sum of splits of the loops");
        break;
      }
      result.indices.push_back(std::move(*sum));
    }
    if (errors.empty() && reader_.checked()) {
      if (auto problem = problem_of(result.indices, reader_, level_)) reader_.fail(std::move(*problem));
    }
    result.errors = std::move(errors);
    if (!result.errors.empty()) result.indices.clear();
    return result;
  }
  bool divides_sums() const { return reader_.divides_sums(); }

 private:
  std::optional<IterSumExpr> read_index(const Expr& index) {
    std::vector<std::string>& all = reader_.errors();
    size_t errors = all.size();
    auto sum = reader_.read(index);
    bool good = sum && all.size() == errors && finish_index(*sum);
    if (!good) {
      // The simplified form may be readable where the written one is not.
      std::vector<std::string> first(all.begin() + static_cast<std::ptrdiff_t>(errors), all.end());
      all.resize(errors);
      Expr simple = simplified(index);
      if (!(simple == index)) sum = reader_.read(simple);
      if (simple == index || !sum || all.size() != errors || !finish_index(*sum)) {
        all.resize(errors);
        append_range(all, first);
        return std::nullopt;
      }
    }
    return sum;
  }

  Expr simplified(const Expr& index) {
    std::vector<Expr> inside;
    for (const auto& [variable, range] : inputs_) {
      if (says_nothing_new(variable, *range, index, reader_.factors().analyzer())) continue;
      inside.push_back(le(range->min, variable));
      inside.push_back(lt(variable, range->min + range->extent));
    }
    return simplified(index, inside);
  }
  /// Simplifies the index where all conditions hold. Assumes them one by one: assuming a conjunction compares all its
  /// parts.
  Expr simplified(const Expr& index, std::span<const Expr> conditions) {
    Analyzer& analyzer = reader_.factors().analyzer();
    if (conditions.empty()) return analyzer.simplify(index);
    auto scope = analyzer.constraint(conditions.front());
    return simplified(index, conditions.subspan(1));
  }

  /// Whether the constraint is redundant: it has constant ends, and the index does not use the variable, or the
  /// variable is known to be in the range.
  static bool says_nothing_new(const Ref<Var>& variable, const Range& range, const Expr& index, Analyzer& analyzer) {
    auto min = const_int(range.min), extent = const_int(range.extent);
    if (!min || !extent) return false;
    if (!uses_var(index, variable)) return true;
    const ConstIntBound known = analyzer.const_int_bound(variable);
    return known.min_value >= *min && known.max_value < *min + *extent;
  }

  bool finish_index(IterSumExpr& sum) {
    reader_.use_constraints(sum);
    reader_.sums().join_digits(sum);
    if (reader_.sums().make_compact(sum) || !reader_.checked()) return true;
    reader_.fail("an index adds loops whose strides skip values or overlap");
    return false;
  }

  IterReader reader_;
  const IterDomains& inputs_;
  IterMapLevel level_;
};

uint32_t depth_of(const std::vector<Expr>& indices, const Expr& predicate) {
  uint32_t depth = predicate.depth();
  for (const Expr& index : indices) depth = std::max(depth, index.depth());
  return depth;
}

}  // namespace

IterMapResult detect_iter_map(const std::vector<Expr>& indices, const IterDomains& inputs, const Expr& predicate,
                              IterMapLevel level, Analyzer& analyzer, bool keep_trivial) {
  IterMapResult result;
  with_stack_for(depth_of(indices, predicate), [&] {
    Detector detector(inputs, level, keep_trivial, false, analyzer);
    result = detector.run(indices, predicate);
    if (result.ok() || !detector.divides_sums()) return;
    // Two theorems may have read digits of the same loops in ways that do not go together.
    IterMapResult other = Detector(inputs, level, keep_trivial, true, analyzer).run(indices, predicate);
    if (other.ok()) result = std::move(other);
  });
  return result;
}

IterDomains rounded_up(const std::vector<Expr>& indices, IterDomains inputs) {
  constexpr int64_t kLimit = int64_t{1} << 31;
  std::unordered_map<NodeRef, int64_t> divisors;
  auto note = [&](const Expr& value, const Expr& by) {
    std::optional<int64_t> divisor = value.is<Var>() ? const_int(by) : std::nullopt;
    if (!divisor || *divisor < 1 || *divisor > kLimit) return;
    int64_t& all = divisors.try_emplace(value, 1).first->second;
    int64_t common = all / std::gcd(all, *divisor);
    if (common <= kLimit / *divisor) all = common * *divisor;
  };
  for (const Expr& index : indices) {
    visit(index, on<FloorDiv, FloorMod>([&](const auto& e) { note(e->a, e->b); }));
  }
  for (auto& [variable, domain] : inputs) {
    auto* found = find_value(divisors, variable);
    if (!found || !is_const_int(domain->min, 0)) continue;
    Expr divisor = constant(domain->extent.dtype(), *found);
    domain = range_of(size_ceildiv(domain->extent, divisor) * divisor);
  }
  return inputs;
}

// ---- back to expressions

Expr normalize_iter_map_to_expr(const IterMark& mark, Analyzer& analyzer) {
  if (mark.sum) return normalize_iter_map_to_expr(*mark.sum, analyzer);
  return is_const_int(mark.min, 0) ? Expr(mark.var) : mark.var - mark.min;
}

Expr normalize_iter_map_to_expr(const IterSplitExpr& split, Analyzer& analyzer) {
  Factors f(analyzer);
  Expr value = normalize_iter_map_to_expr(*split.source, analyzer);
  Expr top = f.mul(split.lower_factor, split.extent);
  if (!f.equal(top, split.source->extent)) value = floormod(value, top);
  value = floordiv(value, split.lower_factor);
  return value * split.scale;
}

Expr normalize_iter_map_to_expr(const IterSumExpr& sum, Analyzer& analyzer) {
  Expr total;
  for (const IterSplitExpr& split : sum.args) {
    Expr value = normalize_iter_map_to_expr(split, analyzer);
    total = total.defined() ? total + value : value;
  }
  if (!total.defined()) return sum.base;
  return total + sum.base;
}

std::vector<Expr> iter_map_simplify(const std::vector<Expr>& indices, const IterDomains& inputs, const Expr& predicate,
                                    IterMapLevel level, Analyzer& analyzer) {
  IterMapResult map = detect_iter_map(indices, inputs, predicate, level, analyzer);
  std::vector<Expr> result;
  for (size_t i : indices_of(indices)) {
    Expr index = indices[i];
    if (map.ok()) index = cast(index.dtype(), normalize_iter_map_to_expr(map.indices[i], analyzer));
    result.push_back(analyzer.simplify(index));
  }
  return result;
}

}  // namespace tilewright::arith
