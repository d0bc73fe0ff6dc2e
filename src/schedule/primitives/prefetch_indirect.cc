// Prefetch what a buffer of indices selects, by the position in that buffer: also beyond the end of the loop.
//
//   Before                                  After  sch.prefetch_indirect(p, B, "X", distance=8)
//   T.assume_buffer_domain(I, [0, 100])     T.assume_buffer_domain(I, [0, 100])
//   for i, p in T.grid(4, 16):              for i, p in T.grid(4, 16):
//     with T.block("B"):                      with T.block("X_prefetch"):
//       vi, vp = T.axis.remap("SS", [i, p])     v0 = T.axis.spatial(64, i * 16 + p + 8)
//       B[vi, vp] = X[I[vi * 16 + vp]]          T.where(i * 16 + p + 8 < 64)
//                                               T.reads(X[I[v0]], I[v0])
//                                               T.writes()
//                                               T.prefetch(X[I[v0]])
//                                             with T.block("B"):
//                                               vi, vp = T.axis.remap("SS", [i, p])
//                                               B[vi, vp] = X[I[vi * 16 + vp]]
//
// Requires  P1 the loop is around the block, in its scope, with blocks and loops only below it; the read exists
//           P2 the distance is positive
//           P3 what is read depends on the loop by loads at one position alone, which moves on by one per iteration
//           P4 nothing in the scope writes the buffer, or those that the loads are from
//           P5 every element of the buffer of indices selects an element in bounds: it is declared so
//           P6 parallel loops around stay independent: blocks around read all of the buffer of indices from then on
#include "schedule/primitives/prefetch_indirect.h"

#include "analysis/may_fail.h"
#include "ir/build.h"
#include "ir/regions.h"
#include "ir/strides.h"
#include "ir/structural.h"
#include "ir/substitute.h"
#include "ir/traverse.h"
#include "schedule/region_copy.h"
#include "schedule/relocate.h"
#include "support/ranges.h"

namespace tilewright::schedule {
namespace {

/// A region that moves with a loop by loads at a position.
struct Selected {
  arith::Region region;  ///< region with `element_position` in place of the position
  Ref<Var> element_position;
  Expr position;                    ///< position of the iteration; null if no load depends on the loop
  std::vector<Ref<Buffer>> tables;  ///< buffers loaded at the position
  bool is_one = true;               ///< there are no other positions
};

Selected select_by(const arith::Region& region, const Ref<Var>& loop_var) {
  Selected selected{{}, var("at", loop_var.dtype()), {}, {}, true};
  auto moved = [&](const Expr& end) {
    return rewrite(end, [&](const Ref<BufferLoad>& load, Rewriter& walk) -> Expr {
      const bool moves = load->indices.size() == 1 && uses_var(load->indices[0], loop_var);
      bool is_inner = moves;  // no load in its index moves
      if (moves) {
        visit(load->indices[0], [&](const Ref<BufferLoad>& inner) { is_inner &= !uses_var(inner, loop_var); });
      }
      if (!is_inner) return walk.descend(load);
      if (!selected.position.defined()) selected.position = load->indices[0];
      selected.is_one &= structural_equal(selected.position, load->indices[0]);
      selected.tables.push_back(load->buffer);
      return with_field(load, &BufferLoad::indices, {selected.element_position});
    });
  };
  for (const Ref<Range>& r : region) selected.region.push_back(range(moved(r->min), moved(r->extent)));
  return selected;
}

/// Whether the region is in bounds, and so are the loads in it.
bool is_inside(const arith::Region& region, const std::vector<Expr>& shape, arith::Analyzer& analyzer) {
  auto holds = [&](const Expr& begin, const Expr& end, const Expr& extent) {
    return analyzer.can_prove_greater_equal(begin, 0) && analyzer.can_prove_less_equal(end, extent);
  };
  bool inside = true;
  for (size_t d : indices_of(region)) {
    const Range& r = *region[d];
    inside &= holds(r.min, r.min + r.extent, shape[d]);
    for (const Expr& end : {r.min, r.extent}) {
      inside &= !analysis::may_divide_by_zero(end, analyzer);
      visit(end, [&](const Ref<BufferLoad>& load) {
        for (size_t i : indices_of(load->indices)) {
          inside &= holds(load->indices[i], load->indices[i] + 1, load->buffer->shape[i]);
        }
      });
    }
  }
  return inside;
}

/// The block declares that it reads all of the buffer, where it declares to read any of it.
void read_whole(Block& block, const Ref<Buffer>& buffer) {
  for (Ref<BufferRegion>& region : block.reads) {
    if (region->buffer == buffer) region = whole_region(buffer);
  }
}

Status check_order(const CopyLoop& target, const Ref<Buffer>& buffer) {
  const Tree& tree = *target.loop.tree;
  const bool is_written = !analysis::Scope::of(tree, target.scope).writers(buffer).empty();
  if (!is_written && !other_name(tree, target.scope, buffer).defined()) return Ok{};
  return refuse("prefetch_indirect/P4",
                "in the scope of " + describe(target.block) + ", '" + buffer->name + "' is written", target.block,
                "prefetch what is only read there");
}

}  // namespace

Result<Plan> plan(const State& state, const PrefetchIndirect& prefetch) {
  TW_TRY(target, find_copy_loop(state, prefetch.loop, prefetch.block, "prefetch_indirect/P1"));
  const Tree& tree = *target.loop.tree;
  TW_TRY(index, buffer_position(prefetch.read_buffer_index, target.block.block().reads, target.block, "read",
                                "prefetch_indirect/P1"));
  if (prefetch.distance < 1) {
    return refuse("prefetch_indirect/P2", "the distance is " + std::to_string(prefetch.distance) + ", not positive", {},
                  "1 is the next position");
  }
  const Ref<Buffer>& buffer = target.block.block().reads[index]->buffer;
  const Ref<Var>& loop_var = target.loop.loop().loop_var;
  Selected selected = select_by(region_below(target, {target.block.at}, buffer, true, "local"), loop_var);
  auto analyzer = analysis::analyzer_above(tree, target.block.at);
  const Expr& position = selected.position;
  auto steps_by_one = [&] {
    return analyzer.can_prove_equal(substitute(position, {{loop_var, loop_var + one(loop_var.dtype())}}), position + 1);
  };
  if (!position.defined() || !selected.is_one || uses_var(selected.region, loop_var) || !steps_by_one()) {
    return refuse("prefetch_indirect/P3",
                  describe(target.loop) +
                      " does not move through one buffer of indices, element by element, that selects "
                      "what is read of '" +
                      buffer->name + "'",
                  {target.loop.node(), target.block.node()},
                  "declare the indices by T.assume_buffer_domain, or use prefetch_at()");
  }
  TW_RETURN_IF_ERROR(check_order(target, buffer));
  for (const Ref<Buffer>& table : selected.tables) TW_RETURN_IF_ERROR(check_order(target, table));
  DataType type = position.dtype();
  Expr end = cast(type, selected.tables.front()->shape[0]);
  for (const Ref<Buffer>& table : selected.tables) {
    if (!same_expr(table->shape[0], selected.tables.front()->shape[0])) end = min(end, cast(type, table->shape[0]));
  }
  analyzer.bind(selected.element_position, zero(type), end);
  if (!is_inside(selected.region, buffer->shape, analyzer)) {
    return refuse("prefetch_indirect/P5",
                  "beyond the end of " + describe(target.loop) + ", '" + selected.tables.front()->name +
                      "' may select elements out of bounds of '" + buffer->name + "'",
                  target.block,
                  "declare its values: T.assume_buffer_domain(" + selected.tables.front()->name + ", [0, ...])");
  }
  RegionBlock frame = region_block(target, selected.region, /*by_digits=*/false);
  Expr later = analyzer.simplify(position + constant(type, prefetch.distance));
  Ref<Var> axis = var("v" + std::to_string(frame.axes.size()), type);
  frame.axes.push_back(
      make<IterVar>({.dom = range(zero(type), end), .var = axis, .iter_type = IterType::kDataPar, .thread_tag = ""}));
  frame.values.push_back(later);
  for (Ref<Range>& r : frame.region) {
    const VarMap at_axis{{selected.element_position, axis}};
    r = range(substitute(r->min, at_axis), substitute(r->extent, at_axis));
  }
  Expr exists = lt(later, end);
  if (!analyzer.can_prove_greater_equal(later, 0)) exists = logical_and(ge(later, zero(type)), exists);
  if (prefetch.min_bytes > 0) {
    const Expr bytes = cast(DataType::int_(64), element_count(buffer->shape)) * i64(buffer->dtype.bytes());
    const Expr is_large = analyzer.simplify(ge(bytes, i64(prefetch.min_bytes)));
    if (!is_true(is_large)) exists = logical_and(is_large, exists);
  }
  Ref<Block> made;
  TreeEdit edit = insert_prefetch(target, frame, buffer, exists, &made);
  std::vector<Ref<Buffer>> read_beyond = selected.tables;
  read_beyond.push_back(buffer);
  for (int around = target.scope; tree[around].scope != Tree::kNone; around = tree[around].scope) {
    edit.change_block(around, [read_beyond](Block& outer) {
      for (const Ref<Buffer>& read : read_beyond) read_whole(outer, read);
    });
  }
  Plan plan = give_loops(target.block.func, edit.finish(), {});
  const Tree& after = Tree::of(plan.root);
  TW_RETURN_IF_ERROR(recheck_execution(after, after.block(made->id.value), "prefetch_indirect/P6"));
  plan.outputs.push_back(Handle::block(target.block.func, *made));
  plan.recorded = recorded_with(prefetch, &PrefetchIndirect::read_buffer_index, index);
  return plan;
}

}  // namespace tilewright::schedule
