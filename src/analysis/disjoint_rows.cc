#include "analysis/disjoint_rows.h"

#include <algorithm>

#include "ir/buffer_domain.h"
#include "ir/build.h"
#include "support/ranges.h"

namespace tilewright::analysis {
namespace {

/// The data variable of the buffer whose element the only index in this dimension is, or null.
NodeRef list_of_rows(const Range& range) {
  if (!is_const_int(range.extent, 1)) return {};
  Expr index = range.min;
  while (const Cast* cast = index.as<Cast>()) {
    const DataType from = cast->value.dtype(), to = cast->dtype;
    if (!from.is_int() || !to.is_int() || to.bits < from.bits) return {};
    index = cast->value;
  }
  const BufferLoad* load = index.as<BufferLoad>();
  return load && load->indices.size() == 1 ? NodeRef(load->buffer->data) : NodeRef();
}

/// Returns for each dimension of the buffer the list that selects all elements that the block touches, or null. Empty
/// if the block touches the buffer through a view.
std::vector<NodeRef> lists_of(const Tree& tree, const Block& block, const Ref<Buffer>& buffer) {
  std::vector<NodeRef> lists;
  bool is_first = true;
  for (const auto* regions : {&block.reads, &block.writes}) {
    for (const Ref<BufferRegion>& region : *regions) {
      if (!tree.same_memory(region->buffer, buffer)) continue;
      if (region->buffer != buffer) return {};
      if (is_first) lists.resize(region->region.size());
      for (size_t d : indices_of(lists)) {
        const NodeRef list = list_of_rows(*region->region[d]);
        lists[d] = is_first || lists[d] == list ? list : NodeRef();
      }
      is_first = false;
    }
  }
  return lists;
}

bool has(const DisjointBuffers& group, const NodeRef& data) {
  return any_of(group, [&](const Ref<Buffer>& buffer) { return NodeRef(buffer->data) == data; });
}

}  // namespace

bool touch_disjoint_rows(const Tree& tree, int one, int other, const Ref<Buffer>& buffer) {
  std::vector<DisjointBuffers> groups;
  for (int at = tree[one].parent; at != Tree::kNone; at = tree[at].parent) {
    if (!tree[at].is_block || !tree.contains(at, other)) continue;
    for (DisjointBuffers& group : disjoint_buffers(tree.block_at(at))) groups.push_back(std::move(group));
  }
  if (groups.empty()) return false;
  const std::vector<NodeRef> first = lists_of(tree, tree.block_at(one), buffer);
  const std::vector<NodeRef> second = lists_of(tree, tree.block_at(other), buffer);
  for (size_t d = 0; d < std::min(first.size(), second.size()); ++d) {
    if (!first[d].defined() || !second[d].defined() || first[d] == second[d]) continue;
    const bool are_disjoint =
        any_of(groups, [&](const DisjointBuffers& group) { return has(group, first[d]) && has(group, second[d]); });
    if (are_disjoint) return true;
  }
  return false;
}

}  // namespace tilewright::analysis
