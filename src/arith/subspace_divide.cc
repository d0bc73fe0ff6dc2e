// Splitting an iteration map between outer and inner loops: index = outer * inner_extent + inner. The digits of each
// index must be those of inner variables below those of outer ones, with at most one digit that is a mix.

#include "arith/iter_factor.h"
#include "arith/iter_map.h"
#include "ir/build.h"
#include "ir/conjunction.h"
#include "ir/substitute.h"
#include "support/ranges.h"

namespace tilewright::arith {
namespace {

enum class Side : uint8_t { kNone, kInner, kOuter, kMixed };

class Divider {
 public:
  Divider(const IterDomains& inputs, const std::vector<Ref<Var>>& inner_vars, bool exact, Analyzer& analyzer)
      : f_(analyzer), exact_(exact) {
    for (const auto& input : inputs) {
      bool inner = is_contained(inner_vars, input.first);
      sides_[input.first] = inner ? Side::kInner : Side::kOuter;
    }
  }

  std::optional<Division> divide(const IterSumExpr& sum) {
    Expr nothing = zero(sum.base.dtype()), unit = one(sum.base.dtype());
    if (sum.args.empty()) return Division{nothing, sum.base, unit, unit};
    if (!f_.is_one(sum.args.back().scale) || (exact_ && !f_.is_zero(sum.base))) return std::nullopt;
    Division result{nothing, nothing, unit, unit};
    bool outer_begun = false, cut = false;
    for (auto it = sum.args.rbegin(); it != sum.args.rend(); ++it) {
      // A pattern cut by a predicate across both sides spans less than the product of its extents, so no split of it
      // divides.
      if (cut) return std::nullopt;
      // In a map that was not checked, digits may overlap, as in i + j, or omit numbers.
      const Expr reached = f_.mul(result.outer_extent, result.inner_extent);
      if (!f_.is_one(it->extent) && !f_.equal(it->scale, reached)) return std::nullopt;
      std::optional<Division> part = divide(*it);
      if (!part) return std::nullopt;
      bool has_inner = !f_.is_one(part->inner_extent);
      if (outer_begun && has_inner) return std::nullopt;
      result.inner = f_.add(result.inner, f_.mul(part->inner, result.inner_extent));
      result.outer = f_.add(result.outer, f_.mul(part->outer, result.outer_extent));
      result.inner_extent = f_.mul(result.inner_extent, part->inner_extent);
      result.outer_extent = f_.mul(result.outer_extent, part->outer_extent);
      outer_begun |= !f_.is_one(part->outer_extent);
      cut = it->source->is_predicated && side_of(*it->source) == Side::kMixed;
      if (cut && exact_) return std::nullopt;
    }
    result.inner = f_.add(result.inner, sum.base);
    return result;
  }

  Side side_of(const Expr& e) {
    Side side = Side::kNone;
    for_each_free_var(e, [&](const Ref<Var>& v) {
      if (auto* known = find_value(sides_, v)) side = join(side, *known);
    });
    return side;
  }

 private:
  static Side join(Side a, Side b) {
    if (a == Side::kNone || a == b) return b;
    return b == Side::kNone ? a : Side::kMixed;
  }

  Side side_of(const IterMark& mark) {
    if (!mark.sum) return sides_.at(mark.var);
    Side side = Side::kNone;
    for (const IterSplitExpr& split : mark.sum->args) side = join(side, side_of(*split.source));
    return side;
  }

  std::optional<Division> divide(const IterSplitExpr& scaled) {
    IterSplitExpr split = scaled;
    split.scale = one(split.scale.dtype());
    Expr nothing = zero(split.scale.dtype()), unit = split.scale;
    Side side = side_of(*split.source);
    if (side != Side::kMixed) {
      Expr value = f_.analyzer().simplify(normalize_iter_map_to_expr(split, f_.analyzer()));
      if (side == Side::kInner) return Division{nothing, value, unit, split.extent};
      return Division{value, nothing, split.extent, unit};
    }
    std::optional<Division> whole = divide(*split.source->sum);
    if (!whole) return std::nullopt;
    const Expr &lower = split.lower_factor, &extent = split.extent;
    if (f_.is_one(lower) && f_.equal(extent, split.source->extent)) return whole;
    // Digits of what starts elsewhere, or is cut across both sides, do not divide.
    if (split.source->is_predicated || !f_.is_zero(split.source->sum->base)) return std::nullopt;
    auto digit = [&](const Expr& value, const Expr& of, const Expr& from, const Expr& count) {
      Expr shifted = f_.div(value, from);
      return f_.equal(f_.mul(from, count), of) ? shifted : f_.mod(shifted, count);
    };
    // (outer * inner_extent + inner) // lower % extent
    if (f_.divides(lower, whole->inner_extent)) {
      Expr inside = f_.div(whole->inner_extent, lower);
      if (f_.divides(extent, inside)) {
        return Division{nothing, digit(whole->inner, whole->inner_extent, lower, extent), unit, extent};
      }
      if (!f_.divides(inside, extent)) return std::nullopt;
      Expr count = f_.div(extent, inside);
      return Division{digit(whole->outer, whole->outer_extent, unit, count), f_.div(whole->inner, lower), count,
                      inside};
    }
    if (!f_.divides(whole->inner_extent, lower)) return std::nullopt;
    Expr from = f_.div(lower, whole->inner_extent);
    return Division{digit(whole->outer, whole->outer_extent, from, extent), nothing, extent, unit};
  }

  Factors f_;
  const bool exact_;
  std::unordered_map<NodeRef, Side> sides_;
};

}  // namespace

std::optional<SubspaceDivision> subspace_divide(const std::vector<Expr>& indices, const IterDomains& inputs,
                                                const std::vector<Ref<Var>>& inner_vars, const Expr& predicate,
                                                IterMapLevel level, Analyzer& analyzer,
                                                std::vector<std::string>* errors, SubspaceForm form) {
  const bool exact = form == SubspaceForm::kExact;
  auto fail = [&](std::vector<std::string> why) {
    if (errors) *errors = std::move(why);
    return std::nullopt;
  };
  IterDomains domains = inputs;
  Expr condition = predicate;
  IterMapResult map = detect_iter_map(indices, domains, condition, level, analyzer);
  if (!map.ok()) {  // with padding
    if (exact) return fail(map.errors);
    domains = rounded_up(indices, inputs);
    IterMapResult padded = detect_iter_map(indices, domains, {}, level, analyzer);
    if (!padded.ok()) return fail(map.errors);
    map = std::move(padded);
    condition = predicate.defined() ? predicate : Expr(bool_imm(true));
    for (size_t i : indices_of(inputs)) {
      const auto& [variable, range] = inputs[i];
      if (analyzer.can_prove_equal(range->extent, domains[i].second->extent)) continue;
      condition = logical_and(condition, lt(variable, range->min + range->extent));
    }
  }
  Divider divider(inputs, inner_vars, exact, analyzer);
  SubspaceDivision result;
  for (const IterSumExpr& sum : map.indices) {
    std::optional<Division> division = divider.divide(sum);
    if (!division) return fail({"an index does not divide into outer * extent + inner"});
    result.indices.push_back(std::move(*division));
  }
  result.outer_predicate = result.inner_predicate = bool_imm(true);
  if (!condition.defined()) return result;
  Expr inside = bool_imm(true);
  for (const auto& [variable, range] : domains) {
    inside = logical_and(inside, logical_and(le(range->min, variable), lt(variable, range->min + range->extent)));
  }
  auto scope = analyzer.constraint(inside);
  for (const Expr& part : conjuncts(condition)) {
    if (analyzer.can_prove(part)) continue;
    const Side side = divider.side_of(part);
    if (exact && side == Side::kMixed) return fail({"the predicate compares outer with inner loops"});
    bool outside = side == Side::kOuter || side == Side::kNone;
    Expr& target = outside ? result.outer_predicate : result.inner_predicate;
    target = logical_and(target, part);
  }
  return result;
}

}  // namespace tilewright::arith
