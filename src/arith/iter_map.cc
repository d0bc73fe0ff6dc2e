// Detection: indices and predicate are read as sums of splits, then the splits are checked against one another.
//
// Reading a division (c q + r) // c and % follows theorems T1 and T2 of simplify_index.cc; what these leave is fused
// into one iterator, which is then split. Checking rests on mixed-radix digits: splits of one iterator whose lower
// factors are the running products of the extents below them are independent, and reach every combination.
#include "arith/iter_map.h"

#include <algorithm>
#include <numeric>

#include "arith/iter_factor.h"
#include "ir/build.h"
#include "ir/substitute.h"
#include "ir/traverse.h"
#include "support/deep_stack.h"

namespace tilewright::arith {
namespace {

bool same_split(const IterSplitExpr& a, const IterSplitExpr& b, Factors& f) {
  return a.source == b.source && f.equal(a.lower_factor, b.lower_factor) && f.equal(a.extent, b.extent);
}

class Detector {
 public:
  Detector(const IterDomains& inputs, IterMapLevel level, Analyzer& analyzer)
      : factors_(analyzer), inputs_(inputs), level_(level) {
    for (const auto& [variable, range] : inputs) {
      if (is_const_int(range->extent, 1)) {
        values_[variable] = range->min;
        continue;
      }
      IterMark mark;
      mark.var = variable;
      mark.min = range->min;
      mark.extent = range->extent;
      marks_[variable] = std::make_shared<IterMark>(std::move(mark));
    }
  }

  IterMapResult run(const std::vector<Expr>& indices, const Expr& predicate) {
    if (predicate.defined()) read_predicate(predicate);
    IterMapResult result;
    for (const Expr& index : indices) {
      if (!result_errors_.empty()) break;
      std::optional<IterSumExpr> sum = read_index(index);
      if (!sum) {
        if (result_errors_.empty()) fail("an index is no sum of splits of the loops");
        break;
      }
      result.indices.push_back(std::move(*sum));
    }
    if (result_errors_.empty() && level_ != IterMapLevel::kNoCheck) check(result.indices);
    result.errors = std::move(result_errors_);
    if (!result.errors.empty()) result.indices.clear();
    return result;
  }

 private:
  struct Constraint {
    IterSumExpr pattern;  ///< compact, the least scale 1, base 0
    IterMarkPtr mark;
    Expr low;  ///< value of the pattern where the mark is 0
  };

  void fail(std::string why) { result_errors_.push_back(std::move(why)); }
  bool checked() const { return level_ != IterMapLevel::kNoCheck; }

  bool has_input(const Expr& e) {
    if (e.is<IntImm>()) return false;
    return uses_any_var(e, [&](const Ref<Var>& v) { return marks_.contains(v) || values_.contains(v); });
  }

  // ---- sums

  static IterSumExpr of_base(const Expr& base) { return {{}, base}; }

  void add_split(IterSumExpr& sum, const IterSplitExpr& split) {
    for (size_t i = 0; i < sum.args.size(); ++i) {
      if (!same_split(sum.args[i], split, factors_)) continue;
      sum.args[i].scale = factors_.add(sum.args[i].scale, split.scale);
      if (factors_.is_zero(sum.args[i].scale)) sum.args.erase(sum.args.begin() + static_cast<std::ptrdiff_t>(i));
      return;
    }
    sum.args.push_back(split);
  }

  IterSumExpr add(IterSumExpr a, const IterSumExpr& b, bool negate) {
    for (IterSplitExpr split : b.args) {
      if (negate) split.scale = factors_.sub(zero(split.scale.dtype()), split.scale);
      add_split(a, split);
    }
    a.base = negate ? factors_.sub(a.base, b.base) : factors_.add(a.base, b.base);
    return a;
  }

  IterSumExpr scaled(IterSumExpr sum, const Expr& factor) {
    for (IterSplitExpr& split : sum.args) split.scale = factors_.mul(split.scale, factor);
    sum.base = factors_.mul(sum.base, factor);
    return sum;
  }

  /// Neighboring digits of one iterator become one: (x // 8) * 8 + x % 8 is x.
  void join_digits(IterSumExpr& sum) {
    for (size_t i = 0; i < sum.args.size(); ++i) {
      for (size_t j = 0; j < sum.args.size(); ++j) {
        IterSplitExpr& low = sum.args[i];
        const IterSplitExpr& high = sum.args[j];
        if (i == j || low.source != high.source) continue;
        if (!factors_.equal(high.lower_factor, factors_.mul(low.lower_factor, low.extent))) continue;
        if (!factors_.equal(high.scale, factors_.mul(low.scale, low.extent))) continue;
        low.extent = factors_.mul(low.extent, high.extent);
        sum.args.erase(sum.args.begin() + static_cast<std::ptrdiff_t>(j));
        return join_digits(sum);
      }
    }
  }

  // ---- reading expressions

  std::optional<IterSumExpr> read(const Expr& e) {
    if (e.is<IntImm>()) return of_base(e);
    if (e.is<Var>()) {
      if (auto it = values_.find(e); it != values_.end()) return of_base(it->second);
      auto it = marks_.find(e);
      if (it == marks_.end()) return of_base(e);
      const IterMarkPtr& mark = it->second;
      return IterSumExpr{{{mark, one(e.dtype()), mark->extent, one(e.dtype())}}, mark->min};
    }
    switch (e.kind()) {
      case Kind::kAdd:
      case Kind::kSub: {
        bool negate = e.is<Sub>();
        auto a = read(negate ? e.as<Sub>()->a : e.as<Add>()->a);
        auto b = read(negate ? e.as<Sub>()->b : e.as<Add>()->b);
        if (!a || !b) return std::nullopt;
        return add(std::move(*a), *b, negate);
      }
      case Kind::kMul: {
        auto a = read(e.as<Mul>()->a), b = read(e.as<Mul>()->b);
        if (!a || !b) return std::nullopt;
        if (!a->args.empty() && !b->args.empty()) return std::nullopt;
        return a->args.empty() ? scaled(std::move(*b), a->base) : scaled(std::move(*a), b->base);
      }
      case Kind::kFloorDiv:
      case Kind::kFloorMod: {
        bool quotient = e.is<FloorDiv>();
        auto a = read(quotient ? e.as<FloorDiv>()->a : e.as<FloorMod>()->a);
        auto b = read(quotient ? e.as<FloorDiv>()->b : e.as<FloorMod>()->b);
        if (!a || !b || !b->args.empty()) return std::nullopt;
        return divide(std::move(*a), b->base, quotient);
      }
      case Kind::kCast: {
        const Cast& cast = *e.as<Cast>();
        bool index = cast.dtype.is_int() && cast.value.dtype().is_int() && cast.dtype.bits >= cast.value.dtype().bits;
        auto inner = index ? read(cast.value) : std::nullopt;
        if (!inner) break;
        inner->base = tilewright::cast(cast.dtype, inner->base);
        return inner;
      }
      default:
        break;
    }
    if (!has_input(e)) return of_base(factors_.analyzer().simplify(e));
    return std::nullopt;
  }

  /// All values of the splits are at least 0 and at most this, when the scales allow to say so.
  std::optional<Expr> reach(const IterSumExpr& sum) {
    Expr total = zero(sum.base.dtype());
    for (const IterSplitExpr& split : sum.args) {
      if (!factors_.non_negative(split.scale)) return std::nullopt;
      total = factors_.add(total, factors_.mul(split.scale, factors_.sub(split.extent, one(split.extent.dtype()))));
    }
    return total;
  }

  std::optional<IterSumExpr> divide(IterSumExpr sum, const Expr& divisor, bool quotient) {
    if (!factors_.non_negative(divisor)) return std::nullopt;  // and not 0, since it divides
    use_constraints(sum);
    join_digits(sum);
    // T1
    IterSumExpr whole = of_base(factors_.div(sum.base, divisor));
    IterSumExpr rest = of_base(factors_.mod(sum.base, divisor));
    for (const IterSplitExpr& split : sum.args) {
      if (factors_.divides(divisor, split.scale)) {
        whole.args.push_back(split);
        whole.args.back().scale = factors_.div(split.scale, divisor);
      } else {
        rest.args.push_back(split);
      }
    }
    auto finish = [&](const IterSumExpr& of_rest) {
      return quotient ? add(std::move(whole), of_rest, false) : of_rest;
    };
    auto top = reach(rest);
    if (top && factors_.less(factors_.add(*top, rest.base), divisor)) {
      return finish(quotient ? of_base(zero(divisor.dtype())) : rest);
    }
    if (auto parts = divide_by_groups(rest, divisor, quotient)) return finish(*parts);
    auto split = as_one_split(rest);
    if (!split) return std::nullopt;
    return finish(digits(*split, divisor, quotient));
  }

  /// T2 with g the scale of one of the splits.
  std::optional<IterSumExpr> divide_by_groups(const IterSumExpr& rest, const Expr& divisor, bool quotient) {
    for (const IterSplitExpr& pivot : rest.args) {
      const Expr& g = pivot.scale;
      if (factors_.is_one(g) || !factors_.positive(g) || !factors_.divides(g, divisor)) continue;
      IterSumExpr high = of_base(factors_.div(rest.base, g)), low = of_base(factors_.mod(rest.base, g));
      for (const IterSplitExpr& split : rest.args) {
        if (factors_.divides(g, split.scale)) {
          high.args.push_back(split);
          high.args.back().scale = factors_.div(split.scale, g);
        } else {
          low.args.push_back(split);
        }
      }
      auto top = reach(low);
      if (!top || !factors_.less(factors_.add(*top, low.base), g)) continue;
      auto inner = divide(high, factors_.div(divisor, g), quotient);
      if (!inner) continue;
      if (quotient) return inner;
      return add(scaled(std::move(*inner), g), low, false);
    }
    return std::nullopt;
  }

  /// split // divisor or split % divisor, the scale being 1.
  IterSumExpr digits(IterSplitExpr split, const Expr& divisor, bool quotient) {
    if (!factors_.divides(divisor, split.extent)) {
      if (checked()) fail("a loop is divided by a number that does not divide its extent");
      // Without a check the last block may be reached in part.
      split.extent = factors_.mul(factors_.ceil_div(split.extent, divisor), divisor);
    }
    if (quotient) {
      split.lower_factor = factors_.mul(split.lower_factor, divisor);
      split.extent = factors_.div(split.extent, divisor);
    } else {
      split.extent = divisor;
    }
    return {{split}, zero(divisor.dtype())};
  }

  // ---- fusing

  /// Orders the splits so that each scale is the product of scale and extent of the next; false if that cannot be.
  bool make_compact(IterSumExpr& sum) {
    std::vector<IterSplitExpr> open = std::move(sum.args), ordered;
    sum.args.clear();
    size_t least = open.size();
    for (size_t i = 0; i < open.size(); ++i) {
      if (least == open.size() || smaller_scale(open[i], open[least])) least = i;
    }
    // The other scales are products of this one and of extents, and extents are positive: the loops run.
    if (!open.empty() && !factors_.positive(open[least].scale)) {
      sum.args = std::move(open);
      return false;
    }
    while (!open.empty()) {
      ordered.push_back(open[least]);
      open.erase(open.begin() + static_cast<std::ptrdiff_t>(least));
      Expr wanted = factors_.mul(ordered.back().scale, ordered.back().extent);
      least = open.size();
      for (size_t i = 0; i < open.size(); ++i) {
        if (factors_.equal(open[i].scale, wanted)) {
          least = i;
          break;
        }
      }
      if (least == open.size() && !open.empty()) {
        ordered.insert(ordered.end(), open.begin(), open.end());
        sum.args = std::move(ordered);
        return false;
      }
    }
    sum.args.assign(ordered.rbegin(), ordered.rend());
    return true;
  }

  /// Constants before expressions, smaller before larger; a constant 1 comes before all.
  bool smaller_scale(const IterSplitExpr& a, const IterSplitExpr& b) {
    auto x = const_int(a.scale), y = const_int(b.scale);
    if (x && y) return *x < *y;
    if (x || y) return x.has_value();
    return factors_.divides(a.scale, b.scale) && !factors_.equal(a.scale, b.scale);
  }

  Expr extent_of(const IterSumExpr& sum) {
    Expr extent = one(sum.base.dtype());
    for (const IterSplitExpr& split : sum.args) extent = factors_.mul(extent, split.extent);
    return extent;
  }

  /// The sum as one split of scale 1, fused into a new iterator if it has several; its base must be 0.
  std::optional<IterSplitExpr> as_one_split(IterSumExpr sum) {
    if (sum.args.size() == 1 && factors_.is_zero(sum.base) && factors_.is_one(sum.args[0].scale)) return sum.args[0];
    if (sum.args.empty() || !factors_.is_zero(sum.base)) return std::nullopt;
    if (!make_compact(sum) || !factors_.is_one(sum.args.back().scale)) return std::nullopt;
    IterMarkPtr mark = fused(sum);
    Expr unit = one(sum.base.dtype());
    return IterSplitExpr{mark, unit, mark->extent, unit};
  }

  /// One iterator for equal sums, so that their digits are seen to belong together.
  IterMarkPtr fused(const IterSumExpr& sum) {
    for (const IterMarkPtr& mark : fused_) {
      const std::vector<IterSplitExpr>& args = mark->sum->args;
      bool equal = args.size() == sum.args.size();
      for (size_t i = 0; equal && i < args.size(); ++i) {
        equal = same_split(args[i], sum.args[i], factors_) && factors_.equal(args[i].scale, sum.args[i].scale);
      }
      if (equal) return mark;
    }
    IterMark mark;
    mark.extent = extent_of(sum);
    mark.sum = sum;
    fused_.push_back(std::make_shared<IterMark>(std::move(mark)));
    return fused_.back();
  }

  // ---- predicates

  void read_predicate(const Expr& predicate) {
    std::vector<Expr> open{predicate}, parts;
    while (!open.empty()) {
      Expr next = open.back();
      open.pop_back();
      if (const And* both = next.as<And>()) {
        open.push_back(both->b);
        open.push_back(both->a);
      } else if (is_call_to(next, Intrinsic::k_likely)) {
        open.push_back(Expr(next.as<Call>()->args[0]));
      } else if (has_input(next)) {
        parts.push_back(next);  // what mentions no input decides about all iterations alike
      }
    }
    // Constraints on few loops first: those on more contain them.
    auto loops = [&](const Expr& part) {
      size_t count = 0;
      for (const auto& input : inputs_) count += uses_var(part, input.first);
      return count;
    };
    std::stable_sort(parts.begin(), parts.end(), [&](const Expr& a, const Expr& b) { return loops(a) < loops(b); });
    for (const Expr& part : parts) {
      if (!read_comparison(part) && checked()) fail("a part of the predicate is no bound of a sum of the loops");
    }
  }

  bool read_comparison(const Expr& e) {
    if (const LT* c = e.as<LT>()) return read_order(c->a, c->b, 1);
    if (const LE* c = e.as<LE>()) return read_order(c->a, c->b, 0);
    if (const GT* c = e.as<GT>()) return read_order(c->b, c->a, 1);
    if (const GE* c = e.as<GE>()) return read_order(c->b, c->a, 0);
    if (const EQ* c = e.as<EQ>()) return read_order(c->a, c->b, 0) && read_order(c->b, c->a, 0);
    return false;
  }

  /// b - a >= slack
  bool read_order(const Expr& a, const Expr& b, int64_t slack) {
    if (!a.dtype().is_int()) return false;
    size_t errors = result_errors_.size();
    auto left = read(a), right = read(b);
    if (!left || !right || result_errors_.size() > errors) {
      result_errors_.resize(errors);
      return false;
    }
    IterSumExpr sum = add(std::move(*right), *left, true);
    sum.base = factors_.sub(sum.base, constant(sum.base.dtype(), slack));
    if (sum.args.empty()) return true;
    bool upper = !factors_.positive(sum.args[0].scale);  // -(...) + base >= 0
    if (upper) {
      Expr base = sum.base;
      sum = scaled(std::move(sum), constant(sum.base.dtype(), int64_t{-1}));
      sum.base = base;
    }
    Expr base = sum.base;
    sum.base = zero(base.dtype());
    use_constraints(sum);
    // What the constraints took out of the sum: its value where all iterators are 0.
    Expr start = sum.base;
    sum.base = zero(base.dtype());
    join_digits(sum);
    if (!make_compact(sum)) return false;
    Expr scale = sum.args.back().scale;
    for (IterSplitExpr& split : sum.args) {
      if (!factors_.divides(scale, split.scale)) return false;
      split.scale = factors_.div(split.scale, scale);
    }
    // upper: start + scale * pattern <= base; lower: start + scale * pattern >= -base
    Expr limit = upper ? factors_.div(factors_.sub(base, start), scale)
                       : factors_.ceil_div(factors_.sub(zero(base.dtype()), factors_.add(base, start)), scale);
    return constrain(sum, upper, limit);
  }

  bool constrain(const IterSumExpr& pattern, bool upper, const Expr& limit) {
    Expr last = factors_.sub(extent_of(pattern), one(pattern.base.dtype()));
    Analyzer& analyzer = factors_.analyzer();
    if (upper && analyzer.can_prove_less_equal(last, limit)) return true;
    if (!upper && analyzer.can_prove_less_equal(limit, zero(limit.dtype()))) return true;
    Expr low = upper ? zero(limit.dtype()) : limit, high = upper ? limit : last;
    // The pattern is cut, not stretched, and something is left of it.
    bool inside = analyzer.can_prove_less_equal(zero(low.dtype()), low) && analyzer.can_prove_less_equal(high, last) &&
                  analyzer.can_prove_less_equal(low, high);
    if (!inside && !cuts_symbolically(low, high, last)) return false;
    IterMark mark;
    mark.sum = pattern;
    mark.sum->base = factors_.sub(zero(low.dtype()), low);
    mark.extent = factors_.add(factors_.sub(high, low), one(low.dtype()));
    mark.is_predicated = true;
    constraints_.push_back({pattern, std::make_shared<IterMark>(std::move(mark)), low});
    return true;
  }

  /// i0 * 32 + i1 < n where i0 runs over ceildiv(n, 32): the limit n - 1 is below what the sum reaches.
  bool cuts_symbolically(const Expr& low, const Expr& high, const Expr& last) {
    Analyzer& analyzer = factors_.analyzer();
    // A range that is not empty is part of the contract: the loops run, so the limit is not below 0 for their sake.
    return factors_.is_zero(low) && analyzer.can_prove_less_equal(high, last) && !const_int(high);
  }

  /// Splits of the sum that are a multiple of a constraint's pattern become its iterator.
  void use_constraints(IterSumExpr& sum) {
    for (const Constraint& constraint : constraints_) {
      const std::vector<IterSplitExpr>& pattern = constraint.pattern.args;
      auto find = [&](const IterSplitExpr& wanted, const Expr& scale) {
        for (size_t i = 0; i < sum.args.size(); ++i) {
          if (same_split(sum.args[i], wanted, factors_) &&
              (!scale.defined() || factors_.equal(sum.args[i].scale, scale)))
            return i;
        }
        return sum.args.size();
      };
      size_t least = find(pattern.back(), {});
      if (least == sum.args.size()) continue;
      Expr scale = sum.args[least].scale;
      std::vector<size_t> found;
      for (const IterSplitExpr& split : pattern) {
        size_t at = find(split, factors_.mul(split.scale, scale));
        if (at == sum.args.size()) break;
        found.push_back(at);
      }
      if (found.size() != pattern.size()) continue;
      std::sort(found.rbegin(), found.rend());
      for (size_t at : found) sum.args.erase(sum.args.begin() + static_cast<std::ptrdiff_t>(at));
      Expr unit = one(scale.dtype());
      sum.args.push_back({constraint.mark, unit, constraint.mark->extent, scale});
      sum.base = factors_.add(sum.base, factors_.mul(constraint.low, scale));
    }
  }

  // ---- indices

  std::optional<IterSumExpr> read_index(const Expr& index) {
    size_t errors = result_errors_.size();
    auto sum = read(index);
    bool good = sum && result_errors_.size() == errors && finish_index(*sum);
    if (!good) {
      // The simplified form may be readable where the written one is not.
      std::vector<std::string> first(result_errors_.begin() + static_cast<std::ptrdiff_t>(errors),
                                     result_errors_.end());
      result_errors_.resize(errors);
      Expr simple = simplified(index);
      if (!(simple == index)) sum = read(simple);
      if (simple == index || !sum || result_errors_.size() != errors || !finish_index(*sum)) {
        result_errors_.resize(errors);
        result_errors_.insert(result_errors_.end(), first.begin(), first.end());
        return std::nullopt;
      }
    }
    return sum;
  }

  Expr simplified(const Expr& index) {
    Analyzer& analyzer = factors_.analyzer();
    Expr inside = bool_imm(true);
    for (const auto& [variable, range] : inputs_) {
      inside = logical_and(inside, logical_and(le(range->min, variable), lt(variable, range->min + range->extent)));
    }
    auto scope = analyzer.constraint(inside);
    return analyzer.simplify(index);
  }

  bool finish_index(IterSumExpr& sum) {
    use_constraints(sum);
    join_digits(sum);
    if (make_compact(sum) || !checked()) return true;
    fail("an index adds loops whose steps leave gaps or overlap");
    return false;
  }

  // ---- checking

  void check(const std::vector<IterSumExpr>& indices) {
    std::vector<IterMarkPtr> order;
    std::unordered_map<const IterMark*, std::vector<IterSplitExpr>> splits;
    std::vector<IterSplitExpr> open;
    for (const IterSumExpr& sum : indices) open.insert(open.end(), sum.args.begin(), sum.args.end());
    while (!open.empty()) {
      IterSplitExpr split = open.back();
      open.pop_back();
      std::vector<IterSplitExpr>& of_mark = splits[split.source.get()];
      of_mark.push_back(split);
      if (of_mark.size() > 1) continue;
      order.push_back(split.source);
      if (split.source->sum) {
        open.insert(open.end(), split.source->sum->args.begin(), split.source->sum->args.end());
      }
    }
    for (const IterMarkPtr& mark : order) {
      if (!digits_fit(*mark, splits[mark.get()])) return fail("a loop is used twice, or not all of it is used");
    }
    for (const Constraint& constraint : constraints_) {
      if (splits.contains(constraint.mark.get())) continue;
      for (const IterSplitExpr& split : constraint.pattern.args) {
        if (splits.contains(split.source.get())) return fail("the predicate cuts loops that no index uses together");
      }
    }
    if (level_ != IterMapLevel::kBijective) return;
    for (const auto& [variable, mark] : marks_) {
      if (!splits.contains(mark.get())) return fail("a loop is not used by any index");
    }
  }

  /// Digits from the lowest upwards; a bijection needs all of them.
  bool digits_fit(const IterMark& mark, std::vector<IterSplitExpr> splits) {
    Expr expected = one(mark.extent.dtype());
    while (!splits.empty()) {
      size_t next = splits.size();
      for (size_t i = 0; i < splits.size() && next == splits.size(); ++i) {
        if (factors_.equal(splits[i].lower_factor, expected)) next = i;
      }
      if (next == splits.size()) {
        if (level_ == IterMapLevel::kBijective) return false;
        // Unused digits below are allowed: the nearest multiple.
        for (size_t i = 0; i < splits.size(); ++i) {
          if (!factors_.divides(expected, splits[i].lower_factor)) continue;
          if (next == splits.size() || factors_.less(splits[i].lower_factor, splits[next].lower_factor)) next = i;
        }
        if (next == splits.size()) return false;
      }
      expected = factors_.mul(splits[next].lower_factor, splits[next].extent);
      splits.erase(splits.begin() + static_cast<std::ptrdiff_t>(next));
    }
    return factors_.equal(expected, mark.extent) ||
           (level_ == IterMapLevel::kSurjective && factors_.divides(expected, mark.extent));
  }

  Factors factors_;
  const IterDomains& inputs_;
  IterMapLevel level_;
  std::unordered_map<NodeRef, Expr> values_;        ///< inputs of extent 1
  std::unordered_map<NodeRef, IterMarkPtr> marks_;  ///< the other inputs
  std::vector<IterMarkPtr> fused_;
  std::vector<Constraint> constraints_;
  std::vector<std::string> result_errors_;
};

uint32_t depth_of(const std::vector<Expr>& indices, const Expr& predicate) {
  uint32_t depth = predicate.depth();
  for (const Expr& index : indices) depth = std::max(depth, index.depth());
  return depth;
}

}  // namespace

IterMapResult detect_iter_map(const std::vector<Expr>& indices, const IterDomains& inputs, const Expr& predicate,
                              IterMapLevel level, Analyzer& analyzer) {
  IterMapResult result;
  with_stack_for(depth_of(indices, predicate),
                 [&] { result = Detector(inputs, level, analyzer).run(indices, predicate); });
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
    visit(index, [&](const Ref<FloorDiv>& e) { note(e->a, e->b); }, [&](const Ref<FloorMod>& e) { note(e->a, e->b); });
  }
  for (auto& [variable, domain] : inputs) {
    auto found = divisors.find(variable);
    if (found == divisors.end() || !is_const_int(domain->min, 0)) continue;
    Expr divisor = constant(domain->extent.dtype(), found->second);
    domain = range_of(ceildiv(domain->extent, divisor) * divisor);
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
  for (size_t i = 0; i < indices.size(); ++i) {
    Expr index = indices[i];
    if (map.ok()) index = cast(index.dtype(), normalize_iter_map_to_expr(map.indices[i], analyzer));
    result.push_back(analyzer.simplify(index));
  }
  return result;
}

}  // namespace tilewright::arith
