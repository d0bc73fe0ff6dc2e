// Make one loop out of directly nested ones, in the same order of iterations.
//
//   Before                                After  sch.fuse(i, j)
//   for i, j in T.grid(4, 8):             for i_j_fused in range(32):
//     with T.block("B"):                    with T.block("B"):
//       vi = T.axis.spatial(4, i)             vi = T.axis.spatial(4, i_j_fused // 8)
//       vj = T.axis.spatial(8, j)             vj = T.axis.spatial(8, i_j_fused % 8)
//       B[vi, vj] = A[vi, vj]                 B[vi, vj] = A[vi, vj]
//
// Requires  P1 at least one loop
//           P2 each is serial, without annotation or binding; one loop alone may be parallel, vectorized or unrolled,
//              and the new one is serial
//           P3 each starts at 0
//           P4 each is the only statement of the one before
//           P5 no extent depends on another loop of them, fails where one around has no iteration, or reads what the
//              outermost one changes
//           P6 the product of the extents fits the type of the new loop: that of the widest, but int64 where extents
//              are read from data, of which no call can be asked
//           P7 where an extent is no number, parallel loops around are still known to be independent: quotients by
//              such an extent hide what a block touches
//           P8 where an extent is read from data, the init of a reduction is still known to come first
#include "schedule/primitives/fuse.h"

#include <algorithm>

#include "ir/build.h"
#include "ir/numeric.h"
#include "schedule/early_bounds.h"
#include "schedule/edit.h"
#include "schedule/inits.h"
#include "schedule/primitive.h"
#include "schedule/rebind.h"
#include "schedule/relocate.h"
#include "support/ranges.h"

namespace tilewright::schedule {
namespace {

Status check_nesting(const Place& outer, const Place& inner) {
  if (outer.func == inner.func && outer.loop().body == inner.node()) return Ok{};
  bool nested = outer.func == inner.func && outer.tree->contains(outer.at, inner.at) && outer.at != inner.at;
  if (nested) {
    return refuse("fuse/P4", describe(inner) + " is not the only statement of " + describe(outer),
                  {outer.node(), inner.node()}, "name the loops outermost first, without leaving one out");
  }
  bool swapped = outer.func == inner.func && outer.tree->contains(inner.at, outer.at);
  return refuse("fuse/P4", describe_in_nest(inner) + " is not inside " + describe_in_nest(outer),
                {outer.node(), inner.node()},
                swapped ? "name the loops outermost first"
                        : "fuse() takes loops of one nest; merge() makes one loop of two adjacent nests");
}

/// Checks the extents, which the fused loop evaluates before any of the loops runs.
Status check_early_extents(const std::vector<Place>& loops, arith::Analyzer& analyzer) {
  std::vector<int> around;
  for (const Place& place : loops) {
    if (may_fail_outside({place.loop().extent}, *place.tree, around, analyzer)) {
      return refuse("fuse/P5",
                    "the extent of " + describe(place) + " may divide by zero, or read out of bounds, where " +
                        describe_loop(place.tree->for_at(around.front())) + " has no iteration",
                    {place.node(), loops.front().node()}, "leave that loop out");
    }
    around.push_back(place.at);
  }
  return Ok{};
}

/// Returns an upper bound of the product of the extents; at least 1.
__int128 max_product(const std::vector<Place>& loops, arith::Analyzer& analyzer) {
  __int128 product = 1;
  for (const Place& place : loops) {
    const Expr& extent = place.loop().extent;
    const int64_t high = std::min(analyzer.const_int_bound(extent).max_value, int_max(extent.dtype()));
    product = std::min<__int128>(product * std::max<int64_t>(high, 1), int64_t{1} << 62);
  }
  return product;
}

/// Returns the type of the fused loop: the widest of the loops, but int64 where a product of extents that are read from
/// data may overflow a smaller one. A loop of more iterations than int64 counts would not end.
DataType type_of_product(const std::vector<Place>& loops, __int128 max_product) {
  DataType widest = loops[0].loop().loop_var.dtype();
  bool reads_data = false;
  for (const Place& place : loops) {
    reads_data |= effect_of(place.loop().extent) != Effect::kPure;
    if (place.loop().loop_var.dtype().bits > widest.bits) widest = place.loop().loop_var.dtype();
  }
  return reads_data && loops.size() > 1 && max_product > int_max(widest) ? DataType::int_(64) : widest;
}

}  // namespace

Result<Plan> plan(const State& state, const Fuse& fuse) {
  std::vector<Place> loops;
  for (LoopRV rv : fuse.loops.items) {
    TW_TRY(place, state.find(rv));
    bool runs_otherwise = place.loop().kind != ForKind::kSerial && place.loop().kind != ForKind::kThreadBinding;
    if (fuse.loops.items.size() > 1 || !runs_otherwise || !place.loop().annotations.empty()) {
      TW_RETURN_IF_ERROR(require_plain_loop(place, "fuse/P2"));
    }
    TW_RETURN_IF_ERROR(require_zero_start(place, "fuse/P3"));
    if (!loops.empty()) TW_RETURN_IF_ERROR(check_nesting(loops.back(), place));
    for (const Place& outer : loops) {
      if (uses_var(place.loop().extent, outer.loop().loop_var)) {
        return refuse("fuse/P5", "the extent of " + describe(place) + " depends on " + describe(outer),
                      {place.node(), outer.node()},
                      "fuse loops of a rectangle; the extent of an inner one must not speak of an outer one");
      }
    }
    if (!loops.empty()) TW_RETURN_IF_ERROR(require_kept_bounds(loops[0], place, "fuse/P5"));
    loops.push_back(place);
  }
  if (loops.empty()) return refuse("fuse/P1", "no loops are given", {}, "name at least one loop");

  std::string name;
  for (const Place& place : loops) name += place.loop().loop_var->name_hint + "_";
  Rebind rebind(*loops[0].tree, loops[0].at, fuse.preserve_unit_iters);
  TW_RETURN_IF_ERROR(check_early_extents(loops, rebind.analyzer()));
  const __int128 most = max_product(loops, rebind.analyzer());
  const DataType dtype = type_of_product(loops, most);
  Ref<Var> fused = var(name + "fused", dtype);
  Expr lower = one(dtype);
  std::vector<Expr> values(loops.size());
  bool may_be_negative = false;
  for (size_t i = loops.size(); i-- > 0;) {
    const For& loop = loops[i].loop();
    Expr extent = cast(dtype, loop.extent);
    const int64_t low =
        std::max(rebind.analyzer().const_int_bound(loop.extent).min_value, int_min(loop.extent.dtype()));
    if (effect_of(loop.extent) != Effect::kPure && low < 0) {
      // A negative extent means no iteration. A product with one means so, too, unless it overflows or two factors are
      // negative.
      if (may_be_negative || (loops.size() > 1 && low * most < int_min(dtype))) extent = max(extent, zero(dtype));
      may_be_negative = true;
    }
    auto size = const_int(lower), more = const_int(extent);
    if (int64_t product; size && more && (__builtin_mul_overflow(*size, *more, &product) || product > int_max(dtype))) {
      return refuse("fuse/P6", "the product of the extents of these loops does not fit " + dtype.str(), loops[0],
                    "fuse fewer loops");
    }
    // A loop that never runs has no quotients: those by its extent are not formed.
    Expr product = lower * extent;
    if (!product.is<IntImm>()) product = rebind.analyzer().simplify(product);
    bool is_zero = is_const_int(extent, 1) || is_const_int(product, 0);
    values[i] = is_zero ? zero(dtype) : floordiv(i == 0 ? Expr(fused) : floormod(fused, product), lower);
    lower = product;
  }
  rebind.bind(fused, zero(dtype), lower);
  for (size_t i : indices_of(loops)) {
    const Ref<Var>& old = loops[i].loop().loop_var;
    rebind.replace(old, cast(old.dtype(), rebind.analyzer().simplify(values[i])));
  }
  Stmt body = rebind(loops.back().loop().body);
  TreeEdit edit(*loops[0].tree);
  edit.replace(loops[0].at, make<For>({.loop_var = fused,
                                       .min = zero(dtype),
                                       .extent = lower,
                                       .thread_binding = {},
                                       .annotations = {},
                                       .body = std::move(body)},
                                      loops[0].node().span()));
  Plan plan = give_loops(loops[0].func, edit.finish(), {fused});
  bool asks =
      std::any_of(loops.begin() + 1, loops.end(), [](const Place& place) { return !const_int(place.loop().extent); });
  if (asks) {
    // Only a parallel loop around needs the check: the scope of a buffer separates bound threads.
    const Tree& tree = *loops[0].tree;
    int at = tree[loops[0].at].parent;
    while (at != Tree::kNone && !(tree[at].is_loop && tree.for_at(at).kind == ForKind::kParallel)) at = tree[at].parent;
    asks = at != Tree::kNone;
  }
  const bool of_data =
      any_of(loops, [](const Place& place) { return effect_of(place.loop().extent) != Effect::kPure; });
  if (!asks && !of_data) return plan;
  const Tree& after = Tree::of(plan.root);
  for (int block : after.child_blocks(after.loop(fused))) {
    if (asks) TW_RETURN_IF_ERROR(recheck_execution(after, block, "fuse/P7"));
    if (of_data) TW_RETURN_IF_ERROR(require_inits_run({loops[0].func, &after, block}, "fuse/P8"));
  }
  return plan;
}

}  // namespace tilewright::schedule
