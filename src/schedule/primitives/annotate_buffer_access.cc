// Declare which region of a buffer a block touches.
//
//   Before                           After  sch.annotate_buffer_access(B, 0, "read", lambda i: (i,))
//   for i in range(16):              for i in range(16):
//     with T.block("B"):               with T.block("B"):
//       vi = T.axis.spatial(16, i)       vi = T.axis.spatial(16, i)
//       T.reads(A[0:16])                 T.reads(A[vi])
//       T.writes(B[vi])                  T.writes(B[vi])
//                                        T.block_attr({"explicit_read_region": [0]})
//       B[vi] = A[vi]                    B[vi] = A[vi]
//
// Requires  P1 the block has a region at that position
//           P2 the kind of region is "read" or "write"
//           P3 there is one index or one range for each dimension, of the block's axes
//           P4 no access is provably outside the region

#include "schedule/primitives/annotate_buffer_access.h"
#include "analysis/verify_accesses.h"
#include "ir/build.h"
#include "ir/substitute.h"
#include "schedule/cache.h"
#include "schedule/edit.h"
#include "schedule/primitive.h"
#include "support/ranges.h"

namespace tilewright::schedule {
namespace {

/// The positions that are declared, with this one.
NodeRef with_position(const NodeRef& known, int64_t position) {
  List list;
  if (const List* old = known.as<List>()) list = *old;
  bool there = any_of(list.items, [&](const NodeRef& item) {
    const IntImm* number = item.as<IntImm>();
    return number && number->value == position;
  });
  if (!there) list.items.push_back(i32(position));
  return make(std::move(list));
}

}  // namespace

Result<Plan> plan(const State& state, const AnnotateBufferAccess& step) {
  TW_TRY(block, state.find(step.block));
  const Tree& tree = *block.tree;
  if (step.buf_type != "read" && step.buf_type != "write") {
    return refuse("annotate_buffer_access/P2", "buf_type is '" + step.buf_type + "'", block, "'read' or 'write'");
  }
  const bool read = step.buf_type == "read";
  const auto& regions = read ? block.block().reads : block.block().writes;
  TW_TRY(position, buffer_position(step.buffer_index, regions, block, step.buf_type, "annotate_buffer_access/P1"));
  const Ref<Buffer>& buffer = regions[position]->buffer;
  const IndexMap& map = *step.gen_new_ranges.map.as<IndexMap>();
  const auto& axes = block.block().iter_vars;
  const size_t rank = buffer->shape.size(), given = map.final_indices.size();
  if (map.initial_indices.size() != axes.size() || (given != rank && given != 2 * rank)) {
    return refuse("annotate_buffer_access/P3",
                  "the function takes " + std::to_string(map.initial_indices.size()) + " axes and gives " +
                      std::to_string(given) + " values; the block has " + std::to_string(axes.size()) + " axes, '" +
                      buffer->name + "' " + std::to_string(rank) + " dimensions",
                  block, "give an index or a pair (start, end) for each dimension");
  }
  VarMap values;
  for (size_t i : indices_of(axes)) {
    values[map.initial_indices[i]] = cast(map.initial_indices[i].dtype(), Expr(axes[i]->var));
  }
  arith::Analyzer analyzer;
  BufferRegion region{buffer, {}};
  for (size_t d = 0; d < rank; ++d) {
    DataType type = buffer->shape[d].dtype();
    bool pairs = given == 2 * rank;
    Expr start = cast(type, substitute(map.final_indices[pairs ? 2 * d : d], values));
    Expr end = pairs ? cast(type, substitute(map.final_indices[2 * d + 1], values)) : start + 1;
    if (analyzer.can_prove_equal(start, end)) end = start + 1;  // records write one index as [i, i]
    region.region.push_back(range(start, analyzer.simplify(end - start)));
  }
  TreeEdit edit(tree);
  edit.change_block(block.at, [&](Block& changed) {
    (read ? changed.reads : changed.writes)[position] = make(std::move(region));
    const char* key = read ? "explicit_read_region" : "explicit_write_region";
    NodeRef known = changed.annotations.has(key) ? changed.annotations.get(key) : NodeRef();
    changed.annotations.set(key, with_position(known, position));
  });
  Ref<Block> root = edit.finish();
  if (Status inside = analysis::verify_accesses(root); !inside.ok()) {
    return refuse("annotate_buffer_access/P4", inside.error().message, block,
                  "declare at least what the block touches");
  }
  Plan plan = give_loops(block.func, std::move(root), {});
  plan.stated = describe(block) + " touches nothing else of '" + buffer->name + "'";
  return plan;
}

}  // namespace tilewright::schedule
