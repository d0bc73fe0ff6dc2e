#include "arith/region_bound.h"

#include "arith/iter_factor.h"
#include "ir/build.h"
#include "ir/substitute.h"
#include "support/ranges.h"

namespace tilewright::arith {

bool uses_inputs(const Expr& e, const IterDomains& inputs) {
  return uses_any_var(
      e, [&](const Ref<Var>& v) { return any_of(inputs, [&](const auto& input) { return input.first == v; }); });
}

Expr mirrored(const Expr& index, const IterDomains& inputs) {
  const Sub* difference = index.as<Sub>();
  auto moves = [&](const Expr& e) { return uses_inputs(e, inputs); };
  return difference && !moves(difference->a) && moves(difference->b) ? difference->b : Expr();
}

bool has_multiple(const Expr& e, const Ref<Var>& v) {
  if (const Add* sum = e.as<Add>()) return has_multiple(sum->a, v) || has_multiple(sum->b, v);
  if (const Sub* difference = e.as<Sub>()) return has_multiple(difference->a, v) || has_multiple(difference->b, v);
  if (const Mul* product = e.as<Mul>()) return has_multiple(product->a, v) || has_multiple(product->b, v);
  if (const Cast* cast = e.as<Cast>()) return has_multiple(cast->value, v);
  return e == v;
}

namespace {

Expr count_of(const IntSet& set, Factors& f) { return f.add(f.sub(set.max, set.min), one(set.min.dtype())); }

/// The box is empty where an input of which the region takes a multiple has no iteration: of i in [0, n) the box [0, n)
/// is, of i + j with j in [0, 2 - n), which a map may take to be i because j could be nothing but 0, the box [0, n) is
/// not.
bool is_empty_with(const Box& box, const Region& region, const IterDomains& inputs, Factors& f) {
  Analyzer& analyzer = f.analyzer();
  std::vector<Expr> uncertain;
  for (const auto& [v, domain] : inputs) {
    const bool moves =
        any_of(region, [&v = v](const Ref<Range>& r) { return has_multiple(r->min, v) || has_multiple(r->extent, v); });
    if (moves && !f.positive(domain->extent)) uncertain.push_back(domain->extent);
  }
  if (uncertain.empty()) return true;
  auto is_empty = [&](const IntSet& set) { return analyzer.can_prove_less(set.max, set.min); };
  const bool each_shows = all_of(uncertain, [&](const Expr& extent) {
    auto scope = analyzer.constraint(le(extent, 0));
    return any_of(box, is_empty);
  });
  if (each_shows) return true;
  // Compare the number of points with the number of iterations: f // m and f % m have n * m points.
  DataType dtype = DataType::int_(32);
  for (const Ref<Range>& r : region) dtype = r->min.dtype().bits > dtype.bits ? r->min.dtype() : dtype;
  Expr points = one(dtype), iterations = one(dtype);
  for (const IntSet& set : box) points = f.mul(points, cast(dtype, count_of(set, f)));
  for (const auto& [v, domain] : inputs) iterations = f.mul(iterations, cast(dtype, domain->extent));
  return f.equal(points, iterations);
}

}  // namespace

std::optional<Box> region_lower_bound(const Region& region, const IterDomains& inputs, const Expr& predicate,
                                      Analyzer& analyzer) {
  std::vector<Expr> starts;
  for (const Ref<Range>& range : region) {
    Expr inner = mirrored(range->min, inputs);
    starts.push_back(inner.defined() ? inner : range->min);
  }
  IterMapResult map = detect_iter_map(starts, inputs, predicate, IterMapLevel::kSurjective, analyzer);
  if (!map.ok()) return std::nullopt;
  Factors f(analyzer);
  Box result;
  for (size_t i : indices_of(region)) {
    const IterSumExpr& sum = map.indices[i];
    const Expr& extent = region[i]->extent;
    // Each iteration covers [start, start + extent): neighbors must touch.
    if (!sum.args.empty() && !analyzer.can_prove_less_equal(sum.args.back().scale, extent)) return std::nullopt;
    Expr last = sum.base;
    for (const IterSplitExpr& split : sum.args) {
      last = f.add(last, f.mul(f.sub(split.extent, one(split.extent.dtype())), split.scale));
    }
    if (starts[i] != region[i]->min) {  // c - e
      const Expr& from = region[i]->min.as<Sub>()->a;
      Expr end = f.sub(f.add(f.sub(from, sum.base), extent), one(extent.dtype()));
      result.push_back(IntSet::interval(f.sub(from, last), end));
    } else if (f.is_one(extent)) {
      result.push_back(sum.args.empty() ? IntSet::point(sum.base) : IntSet::interval(sum.base, last));
    } else {
      result.push_back(IntSet::interval(sum.base, f.sub(f.add(last, extent), one(extent.dtype()))));
    }
  }
  if (!is_empty_with(result, region, inputs, f)) return std::nullopt;
  return result;
}

Box unite_lower_bound(const Box& a, const Box& b, Analyzer& analyzer) {
  if (a.size() != b.size() || proves_subset(b, a, analyzer)) return a;
  if (proves_subset(a, b, analyzer)) return b;
  // Along one dimension the union of two boxes that agree elsewhere is a box, if there is no gap.
  size_t along = a.size();
  for (size_t i : indices_of(a)) {
    bool equal = proves_subset(a[i], b[i], analyzer) && proves_subset(b[i], a[i], analyzer);
    if (equal) continue;
    if (along != a.size() || !a[i].is_bounded() || !b[i].is_bounded()) return a;
    along = i;
  }
  if (along == a.size()) return a;
  const IntSet &x = a[along], &y = b[along];
  bool touch = analyzer.can_prove_less_equal(y.min, x.max + 1) && analyzer.can_prove_less_equal(x.min, y.max + 1);
  if (!touch) return a;
  Box result = a;
  result[along] = unite(x, y, analyzer);
  return result;
}

}  // namespace tilewright::arith
