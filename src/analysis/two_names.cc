#include "analysis/two_names.h"

#include "analysis/accesses.h"
#include "analysis/findings.h"
#include "ir/build.h"
#include "ir/regions.h"
#include "support/ranges.h"

namespace tilewright::analysis {
namespace {

/// The views that blocks around make.
Views views_around(const Tree& tree, int block) {
  Views views;
  for (int at = tree[block].scope; at != Tree::kNone; at = tree[at].scope) {
    for (const Ref<MatchBufferRegion>& match : tree.block_at(at).match_buffers) {
      views.emplace(match->buffer, match->source);
    }
  }
  return views;
}

/// Whether the two show different elements of one buffer, all of them.
bool are_apart(const Ref<Buffer>& one, const Ref<Buffer>& other, const Tree& tree, int block) {
  const Views views = views_around(tree, block);
  const Ref<BufferRegion> a = behind_views(whole_region(one), views), b = behind_views(whole_region(other), views);
  if (a->buffer != b->buffer) return false;
  auto analyzer = analyzer_above(tree, tree[block].scope);
  auto ends_before = [&](const Ref<Range>& first, const Ref<Range>& second) {
    return analyzer.can_prove(le(first->min + first->extent, second->min));
  };
  for (size_t d : indices_of(a->region)) {
    if (ends_before(a->region[d], b->region[d]) || ends_before(b->region[d], a->region[d])) return true;
  }
  return false;
}

}  // namespace

std::optional<Obstacle> why_two_names(const Tree& tree, int block) {
  if (tree.names().empty()) return std::nullopt;
  const Block& node = tree.block_at(block);
  for (const Ref<BufferRegion>& write : node.writes) {
    for (const auto* regions : {&node.reads, &node.writes}) {
      for (const Ref<BufferRegion>& other : *regions) {
        if (other->buffer->data == write->buffer->data || !tree.same_memory(other->buffer, write->buffer)) continue;
        if (are_apart(write->buffer, other->buffer, tree, block)) continue;
        return Obstacle{
            quoted(node) + " accesses one memory as '" + write->buffer->name + "' and as '" + other->buffer->name + "'",
            {tree.stmt(block)}};
      }
    }
  }
  return std::nullopt;
}

}  // namespace tilewright::analysis
