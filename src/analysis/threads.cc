#include "analysis/threads.h"

#include "analysis/binding_reads.h"
#include "analysis/block_facts.h"
#include "ir/build.h"
#include "ir/substitute.h"
#include "support/ranges.h"
#include "target/memory_scope.h"

namespace tilewright::analysis {

std::optional<ThreadAxis> thread_axis(const For& loop) {
  return loop.thread_binding.defined() ? ThreadAxis::parse(loop.thread_binding->thread_tag) : std::nullopt;
}

bool joins_threads(const For& loop, const Ref<Buffer>& buffer) {
  auto axis = thread_axis(loop);
  return axis && memory_scope(buffer->scope()).joins_threads(*axis, const_int(loop.extent).value_or(-1));
}

namespace {

/// Whether everything below the loop `outer`, down to the position, runs as often for each of its iterations.
bool all_come_to(const Tree& tree, int outer, int at) {
  const Ref<Var>& thread = tree.for_at(outer).loop_var;
  for (; at != outer; at = tree[at].parent) {
    switch (tree[at].node->kind) {
      case Kind::kFor:
        if (tree.for_at(at).kind == ForKind::kParallel || tree.for_at(at).kind == ForKind::kVectorized) return false;
        if (uses_var(tree.for_at(at).min, thread) || uses_var(tree.for_at(at).extent, thread)) return false;
        break;
      case Kind::kSeqStmt:
      case Kind::kAllocateConst:
      case Kind::kDeclBuffer:
        break;
      default:
        return false;
    }
  }
  return true;
}

}  // namespace

std::vector<int> joined_loops(const Tree& tree, int at, const Ref<Buffer>& buffer) {
  std::vector<int> around = tree.loops_above(at), joined;
  if (tree[at].is_loop) around.push_back(at);
  for (int loop : around) {
    if (joins_threads(tree.for_at(loop), buffer)) joined.push_back(loop);
  }
  bool together = all_of(joined, [&](int loop) { return all_come_to(tree, loop, at); });
  return together ? joined : std::vector<int>{};
}

std::optional<BlocksInThreads> blocks_in_threads(const Tree& tree, const std::vector<int>& loops,
                                                 const std::function<bool(const For&)>& is_team) {
  int threads = Tree::kNone;
  for (int loop : loops) {
    auto axis = thread_axis(tree.for_at(loop));
    if (!axis) continue;
    if (threads == Tree::kNone && is_team(tree.for_at(loop))) threads = loop;
    if (threads != Tree::kNone && !axis->in_team()) return BlocksInThreads{threads, loop};
  }
  return std::nullopt;
}

int same_threads(const Tree& tree, int loop) {
  auto axis = thread_axis(tree.for_at(loop));
  if (!axis || !axis->is_unique()) return Tree::kNone;
  for (int at = tree[loop].parent; at != Tree::kNone; at = tree[at].parent) {
    if (tree[at].is_loop && thread_axis(tree.for_at(at)) == axis) return at;
  }
  return Tree::kNone;
}

namespace {

[[gnu::cold]] std::string described(const For& loop) { return "loop '" + loop.loop_var->name_hint + "'"; }

bool reads(const Tree& tree, int block, const Ref<Buffer>& buffer) {
  return tree.touches(BlockFacts::of(tree.block_ref(block)).live_in, buffer) ||
         tree.touches(binding_reads(tree, block), buffer);
}

/// Returns why a reader may miss elements that threads write in their parts of the loop; nothing if every reader finds
/// them.
std::optional<Obstacle> why_results_are_lost(const Tree& tree, int loop) {
  const std::vector<int>& blocks = tree.blocks();
  for (int writer : tree.child_blocks(loop)) {
    for (const Ref<BufferRegion>& write : tree.block_at(writer).writes) {
      for (int reader : blocks) {
        if (reader <= writer || tree[reader].scope != tree[writer].scope) continue;
        if (!reads(tree, reader, write->buffer)) continue;
        if (auto obstacle = why_not_covered(tree, writer, reader, write->buffer)) return obstacle;
      }
    }
  }
  return std::nullopt;
}

/// Threads own the buffer, and what one of them writes below a loop, others read below another loop over them.
std::optional<Obstacle> why_data_changes_threads(const Tree& tree, int one, int other) {
  for (int writer : tree.child_blocks(one)) {
    for (const Ref<BufferRegion>& write : tree.block_at(writer).writes) {
      if (memory_scope(write->buffer->scope()).is_shared_by(*thread_axis(tree.for_at(one)))) continue;
      for (int reader : tree.child_blocks(other)) {
        if (reader < writer || !reads(tree, reader, write->buffer)) continue;
        if (auto obstacle = why_not_covered(tree, writer, reader, write->buffer)) return obstacle;
      }
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<Obstacle> why_no_block_around(const Tree& tree, int at) {
  for (int loop = at; loop < tree[at].end; ++loop) {
    int around = tree[loop].is_loop ? same_threads(tree, loop) : Tree::kNone;
    if (around == Tree::kNone || tree.contains(at, around)) continue;
    return Obstacle{described(tree.for_at(around)) + " and " + described(tree.for_at(loop)) +
                        " inside it are both bound to " + tree.for_at(loop).thread_binding->thread_tag +
                        ", and a block would stand between them",
                    {tree.stmt(around), tree.stmt(loop)}};
  }
  return std::nullopt;
}

std::optional<Obstacle> why_not_same_threads(const Tree& tree, int loop) {
  int around = same_threads(tree, loop);
  if (around == Tree::kNone) return std::nullopt;
  const For &inner = tree.for_at(loop), &outer = tree.for_at(around);
  auto obstacle = [&](const std::string& why) {
    return Obstacle{described(outer) + " and " + described(inner) + " inside it are both bound to " +
                        inner.thread_binding->thread_tag + ", and " + why,
                    {tree.stmt(around), tree.stmt(loop)}};
  };
  if (tree[loop].scope != tree[around].scope) {
    return obstacle("a block stands between them");
  }
  for (int between = tree[loop].parent; between != around; between = tree[between].parent) {
    auto axis = tree[between].is_loop ? thread_axis(tree.for_at(between)) : std::nullopt;
    if (!axis || axis->level != ThreadAxis::Level::kBlock) continue;
    return obstacle(described(tree.for_at(between)) + " runs blocks of threads between them");
  }
  auto is_same = [](const Expr& a, const Expr& b) { return const_int(a) && const_int(a) == const_int(b); };
  auto provably_same = [&] {
    auto analyzer = analyzer_above(tree, tree[around].parent);
    return analyzer.can_prove_equal(inner.min, outer.min) && analyzer.can_prove_equal(inner.extent, outer.extent);
  };
  if (!(is_same(inner.min, outer.min) && is_same(inner.extent, outer.extent)) && !provably_same()) {
    return obstacle("do not provably have the same range");
  }
  if (uses_var(inner.body, outer.loop_var)) {
    return obstacle("what stands below depends on both");
  }
  for (int at : tree.child_blocks(loop)) {
    const BlockRealize& realize = *tree.realize_at(at);
    for (size_t i : indices_of(realize.iter_values)) {
      if (!is_reduction_axis(realize.block->iter_vars[i]) || !uses_var(realize.iter_values[i], inner.loop_var))
        continue;
      return obstacle("each thread would run a part of the reduction of block '" + realize.block->name_hint + "' only");
    }
  }
  return why_results_are_lost(tree, loop);
}

std::optional<Obstacle> why_threads_differ(const Tree& tree, int at) {
  int kernel = at;
  for (int around = at; around != Tree::kNone; around = tree[around].parent) {
    if (tree[around].is_loop && thread_axis(tree.for_at(around))) kernel = around;
  }
  auto same_extent = [&](const Expr& a, const Expr& b) {
    if (const_int(a) && const_int(a) == const_int(b)) return true;
    auto analyzer = analyzer_above(tree, tree[kernel].parent);
    return analyzer.can_prove_equal(a, b);
  };
  std::vector<int> first;  // first loop bound to each axis
  for (int loop = kernel; loop < tree[kernel].end; ++loop) {
    auto axis = tree[loop].is_loop ? thread_axis(tree.for_at(loop)) : std::nullopt;
    if (!axis || !axis->is_unique()) continue;
    auto known = find_if(first, [&](int one) { return thread_axis(tree.for_at(one)) == axis; });
    if (known == first.end()) {
      first.push_back(loop);
      continue;
    }
    const For &one = tree.for_at(*known), &other = tree.for_at(loop);
    if (!same_extent(one.extent, other.extent)) {
      return Obstacle{described(one) + " and " + described(other) + " of one kernel are both bound to " +
                          one.thread_binding->thread_tag + ", and do not provably have the same extent",
                      {tree.stmt(*known), tree.stmt(loop)}};
    }
    if (auto obstacle = why_not_same_threads(tree, loop)) return obstacle;
    for (int earlier = kernel; earlier < loop; ++earlier) {
      if (!tree[earlier].is_loop || thread_axis(tree.for_at(earlier)) != axis || tree.contains(earlier, loop)) continue;
      if (auto obstacle = why_data_changes_threads(tree, earlier, loop)) return obstacle;
    }
  }
  return std::nullopt;
}

}  // namespace tilewright::analysis
