// Pad a buffer in memory, so that its parts do not fall on the same lines.
//
//   Before                                  After  sch.storage_align(B, 0, axis=-2, factor=16, offset=1)
//   B = T.alloc_buffer((8, 16))             B = T.alloc_buffer((8, 16))
//   for i, j in T.grid(8, 16):              for i, j in T.grid(8, 16):
//     with T.block("B"):                      with T.block("B"):
//       vi, vj = T.axis.remap("SS", [i, j])     vi, vj = T.axis.remap("SS", [i, j])
//       B[vi, vj] = A[vi, vj]                   T.block_attr({"buffer_dim_align": [[0, 0, 16, 1]]})
//                                               B[vi, vj] = A[vi, vj]
//
// Lowered, B has strides [17, 1].
//
// Requires  P1 the write exists
//           P2 the factor is positive
//           P3 the axis is one of the buffer
//           P4 a block allocates the buffer
//           P5 an annotation "buffer_dim_align" that is there is a list of four integers each
#include "schedule/primitives/storage_align.h"

#include "ir/build.h"
#include "schedule/annotations.h"
#include "schedule/cache.h"
#include "support/ranges.h"

namespace tilewright::schedule {
namespace {

constexpr const char* kKey = "buffer_dim_align";

bool is_entry(const NodeRef& node) {
  const List* entry = node.as<List>();
  return entry && entry->items.size() == 4 &&
         all_of(entry->items, [](const NodeRef& item) { return item.is<IntImm>(); });
}

}  // namespace

Result<Plan> plan(const State& state, const StorageAlign& align) {
  TW_TRY(block, state.find(align.block));
  TW_TRY(position, buffer_position(align.buffer_index, block.block().writes, block, "write", "storage_align/P1"));
  const Ref<Buffer>& buffer = block.block().writes[position]->buffer;
  if (align.factor < 1) {
    return refuse("storage_align/P2", "the factor is " + std::to_string(align.factor) + ", not positive", {},
                  "strides become multiples of factor, plus offset: (32, 8) for instance");
  }
  auto rank = static_cast<int64_t>(buffer->shape.size());
  if (align.axis < -rank || align.axis >= rank) {
    return refuse(
        "storage_align/P3",
        "'" + buffer->name + "' has " + std::to_string(rank) + " dimensions, and no axis " + std::to_string(align.axis),
        block, "an axis is from " + std::to_string(-rank) + " to " + std::to_string(rank - 1));
  }
  if (!is_allocated(*block.tree, buffer)) {
    return refuse("storage_align/P4", "no block allocates '" + buffer->name + "': it is a parameter or a view", block,
                  "pad a copy of it: sch.cache_read or sch.cache_write make one");
  }
  Annotations annotations = block.block().annotations;
  List entries;
  if (NodeRef old = annotations.get(kKey); old.defined()) {
    const List* list = old.as<List>();
    if (!list || !all_of(list->items, is_entry)) {
      return refuse("storage_align/P5",
                    describe(block) + " has an annotation '" + std::string(kKey) + "' that is not a list of quadruples",
                    block, "it holds lists (number of the write, axis, factor, offset)");
    }
    entries = *list;
  }
  int64_t axis = align.axis < 0 ? align.axis + rank : align.axis;
  NodeRef entry = make<List>({{i32(position), i32(axis), i32(align.factor), i32(align.offset)}});
  auto same = find_if(entries.items, [&](const NodeRef& item) {
    const List& known = *item.as<List>();
    return const_int(Expr(known.items[0])) == position && const_int(Expr(known.items[1])) == axis;
  });
  if (same != entries.items.end()) {
    *same = entry;
  } else {
    entries.items.push_back(entry);
  }
  annotations.set(kKey, make(std::move(entries)));
  return give_loops(block.func, with_annotations(block, std::move(annotations)), {});
}

}  // namespace tilewright::schedule
