// Transform the axes of a block.
//
//   Before                                   After  sch.transform_block_layout(B, lambda i, j: i * 8 + j)
//   for i, j in T.grid(16, 8):               for ax0 in range(128):
//     with T.block("B"):                       with T.block("B"):
//       vi, vj = T.axis.remap("SS", [i, j])      v0 = T.axis.spatial(128, ax0)
//       B[vi, vj] = A[vi, vj]                    B[v0 // 8, v0 % 8] = A[v0 // 8, v0 % 8]
//
// Requires  P1 the loops of the block's scope around it start at 0, are plain, and hold nothing else
//           P2 each axis is bound to one of these loops and each loop to one axis of its extent; nothing is predicated
//           P3 the map takes the axes one to one onto a box of indices from 0
//           P4 a new index stands for spatial axes or for reduction axes; axes of extent 1 count as neither
//           P5 the block sees the same in any order of its iterations

#include "schedule/primitives/transform_block_layout.h"
#include "analysis/block_facts.h"
#include "analysis/cover.h"
#include "analysis/independence.h"
#include "arith/index_map.h"
#include "ir/build.h"
#include "ir/substitute.h"
#include "ir/traverse.h"
#include "schedule/early_bounds.h"
#include "schedule/edit.h"
#include "schedule/primitive.h"
#include "support/ranges.h"

namespace tilewright::schedule {
namespace {

Result<std::vector<int>> loops_of(const Place& block) {
  const Tree& tree = *block.tree;
  std::vector<int> loops = tree.loops_above(block.at);
  if (loops.empty()) {
    return refuse("transform_block_layout/P1", describe(block) + " is in no loop", block,
                  "add_unit_loop() gives it one");
  }
  for (size_t i : indices_of(loops)) {
    Place loop{block.func, block.tree, loops[i]};
    TW_RETURN_IF_ERROR(require_plain_loop(loop, "transform_block_layout/P1"));
    TW_RETURN_IF_ERROR(require_zero_start(loop, "transform_block_layout/P1"));
    int child = i + 1 < loops.size() ? loops[i + 1] : block.at;
    if (tree[child].parent != loops[i]) {
      return refuse("transform_block_layout/P1", describe(loop) + " holds more than " + describe(block),
                    {loop.node(), block.node()}, "give the block a nest of its own");
    }
  }
  return loops;
}

Status check_bindings(const Place& block, const std::vector<int>& loops) {
  const BlockRealize& realize = *block.tree->realize_at(block.at);
  arith::Analyzer analyzer;
  auto wrong = [&](const std::string& what) {
    return refuse("transform_block_layout/P2", what, block, "split and reorder the loops afterwards");
  };
  if (!is_true(realize.predicate)) return wrong(describe(block) + " runs under a condition");
  if (realize.iter_values.size() != loops.size()) {
    return wrong(describe(block) + " has " + std::to_string(realize.iter_values.size()) + " axes in " +
                 std::to_string(loops.size()) + " loops");
  }
  std::vector<bool> bound(loops.size());
  for (size_t i : indices_of(realize.iter_values)) {
    const Ref<IterVar>& axis = realize.block->iter_vars[i];
    size_t d = 0;
    while (d < loops.size() && realize.iter_values[i] != block.tree->for_at(loops[d]).loop_var) ++d;
    if (d == loops.size() || bound[d]) {
      return wrong("axis '" + axis->var->name_hint + "' is not bound to a loop of its own");
    }
    bound[d] = true;
    if (!is_const_int(axis->dom->min, 0) ||
        !analyzer.can_prove_equal(axis->dom->extent, block.tree->for_at(loops[d]).extent)) {
      return wrong("axis '" + axis->var->name_hint + "' does not run over what its loop does");
    }
    if (axis->iter_type != IterType::kDataPar && !analysis::is_reduction_axis(axis)) {
      return wrong("axis '" + axis->var->name_hint + "' is neither spatial nor of a reduction");
    }
  }
  return Ok{};
}

/// Spatial or reduction, for each new index.
Result<std::vector<IterType>> types_of(const Place& block, const IndexMap& map) {
  std::vector<IterType> result;
  for (const Expr& e : map.final_indices) {
    bool spatial = false, reduction = false;
    for (size_t d : indices_of(map.initial_indices)) {
      const Ref<IterVar>& axis = block.block().iter_vars[d];
      if (is_const_int(axis->dom->extent, 1) || !uses_var(e, map.initial_indices[d])) continue;
      (analysis::is_reduction_axis(axis) ? reduction : spatial) = true;
    }
    if (spatial && reduction) {
      return refuse("transform_block_layout/P4", "the new index " + brief(e) + " mixes spatial and reduction axes",
                    block, "spatial indices are made of spatial axes, and reductions of reduction axes");
    }
    result.push_back(reduction ? IterType::kCommReduce : IterType::kDataPar);
  }
  return result;
}

}  // namespace

namespace {

/// v0 // 4 * 4 + v0 % 4 becomes v0: other primitives look for axes among indices.
Ref<Block> with_short_indices(const Ref<Block>& block, arith::Analyzer& analyzer) {
  auto shorten = [&](auto access) {
    for (Expr& index : access.indices) {
      if (!index.is<Var>()) index = analyzer.simplify(index);
    }
    return access;
  };
  return rewrite(
      block,
      [&](const Ref<BufferLoad>& load, Rewriter& walk) -> Expr {
        return make<BufferLoad>(shorten(*walk.descend(load)), load.span());
      },
      [&](const Ref<BufferStore>& store, Rewriter& walk) -> Stmt {
        return make<BufferStore>(shorten(*walk.descend(store)), store.span());
      },
      [&](const Ref<BufferRegion>& old, Rewriter& walk) -> NodeRef {
        BufferRegion region = *walk.descend(old);
        for (Ref<Range>& each : region.region) {
          if (!each->min.is<Var>()) each = range(analyzer.simplify(each->min), each->extent);
        }
        return make(std::move(region), old.span());
      });
}

}  // namespace

Result<Plan> plan(const State& state, const TransformBlockLayout& transform) {
  TW_TRY(block, state.find(transform.block));
  const Tree& tree = *block.tree;
  const IndexMap& map = *transform.index_map.map.as<IndexMap>();
  if (block.at == 0)
    return refuse("transform_block_layout/P1", "the root block is in no loop", block, "name a block inside of it");
  TW_TRY(loops, loops_of(block));
  TW_RETURN_IF_ERROR(check_bindings(block, loops));
  std::vector<Expr> extents;
  for (const Ref<IterVar>& axis : block.block().iter_vars) extents.push_back(axis->dom->extent);
  arith::Analyzer analyzer;
  auto inverted = arith::invert(map, extents, analyzer);
  if (!inverted.ok()) {
    return refuse("transform_block_layout/P3", inverted.error().message, block, inverted.error().hint);
  }
  if (inverted->holes || !is_false(inverted->padding)) {
    return refuse("transform_block_layout/P3", "the new indices would take values that stand for none of the old ones",
                  block, "divide evenly");
  }
  analyzer = analysis::analyzer_above(tree, tree[loops.front()].parent);
  if (may_fail_outside(inverted->shape, tree, loops, analyzer)) {
    return refuse("transform_block_layout/P3",
                  "the extents of the new loops may divide by zero, where those of the old ones do not run", block,
                  "transform loops of constant or symbolic sizes");
  }
  TW_TRY(types, types_of(block, map));
  if (auto problem = analysis::why_order_matters(tree, loops)) {
    return refuse("transform_block_layout/P5", problem->obstacle,
                  "transform the block before others are moved into its loops");
  }
  Ref<Block> old = tree.block_ref(block.at);
  if (!analysis::BlockFacts::of(old).commutative) {
    return refuse("transform_block_layout/P5", describe(block) + " combines values in a way whose order matters", block,
                  "keep the axes of its reduction in their order");
  }
  BlockRealize realize = *tree.realize_at(block.at);
  realize.iter_values.clear();
  std::vector<Ref<Var>> loop_vars;
  std::vector<Ref<IterVar>> axes;
  std::vector<Expr> axis_vars;
  for (size_t n : indices_of(inverted->shape)) {
    const Expr& extent = inverted->shape[n];
    loop_vars.push_back(var("ax" + std::to_string(n), extent.dtype()));
    Ref<Var> axis = var("v" + std::to_string(n), extent.dtype());
    axes.push_back(make<IterVar>({range_of(extent), axis, types[n], ""}));
    analyzer.bind(axis, range_of(extent));
    axis_vars.push_back(axis);
    realize.iter_values.push_back(loop_vars.back());
  }
  std::vector<Expr> values = arith::map_indices(*inverted->inverse, axis_vars, analyzer);
  VarMap replaced;
  for (size_t d : indices_of(values)) {
    const Ref<Var>& axis = old->iter_vars[d]->var;
    replaced[axis] = cast(axis.dtype(), values[d]);
  }
  Block changed = *old;
  changed.iter_vars.clear();
  Ref<Block> bare = with_short_indices(substitute(make(std::move(changed), old.span()), replaced), analyzer);
  changed = *bare;
  changed.iter_vars = std::move(axes);
  changed.id = old->id;
  realize.block = make(std::move(changed), old.span());
  Stmt nest = make(std::move(realize), tree.stmt(block.at).span());
  for (size_t n = loop_vars.size(); n-- > 0;) nest = loop(loop_vars[n], inverted->shape[n], std::move(nest));
  TreeEdit edit(tree);
  edit.replace(loops.front(), std::move(nest));
  return give_loops(block.func, edit.finish(), {});
}

}  // namespace tilewright::schedule
