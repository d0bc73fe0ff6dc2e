// Cut a loop into consecutive ones, each with a copy of the body: the same iterations in the same order.
//
//   Before                                After  sch.loop_partition(i, [2, None])
//   for i in range(8):                    with T.block("root"):
//     with T.block("B"):                    T.reads()
//       vi = T.axis.spatial(8, i)           T.writes()
//       B[vi] = A[vi]                       with T.block("B_i_common"):
//                                             with T.block("B_i0_partition"):
//                                               for i0 in range(2):
//                                                 with T.block("B_i0"):
//                                                   vi = T.axis.spatial(2, i0)
//                                                   B[vi] = A[vi]
//                                             with T.block("B_i1_partition"):
//                                               for i1 in range(2, 8):
//                                                 with T.block("B_i1"):
//                                                   vi = T.axis.spatial((2, 8), i1)
//                                                   B[vi] = A[vi]
//
// Requires  P1 the loop is serial, without annotation or binding
//           P2 its range is constant
//           P3 lengths are positive, and at most one is inferred
//           P4 the lengths leave at least one iteration for what is inferred, or for one more loop
//           P5 a block is below it, and the loop drives no reduction axis: each part would begin it anew; no
//              loop below is bound again to an axis of one around, as blocks come to stand between them
#include "schedule/primitives/loop_partition.h"

#include "analysis/block_access_region.h"
#include "analysis/block_facts.h"
#include "analysis/threads.h"
#include "arith/analyzer.h"
#include "ir/build.h"
#include "ir/substitute.h"
#include "ir/traverse.h"
#include "schedule/edit.h"
#include "schedule/primitive.h"
#include "support/ranges.h"

namespace tilewright::schedule {
namespace {

/// The lengths of all parts.
Result<std::vector<int64_t>> find_lengths(const State& state, const LoopPartition& partition, const Place& place,
                                          int64_t extent) {
  std::vector<int64_t> lengths;
  int inferred = -1;
  int64_t total = 0;
  for (const Factor& factor : partition.factors.items) {
    auto position = static_cast<int>(lengths.size());
    if (std::holds_alternative<None>(factor)) {
      if (inferred >= 0) {
        return refuse("loop_partition/P3", "of the lengths of the parts of " + describe(place) + " several are None",
                      place, "at most one can be inferred");
      }
      inferred = position;
      lengths.push_back(0);
      continue;
    }
    if (std::holds_alternative<NodeRef>(factor)) {
      return refuse(
          "loop_partition/P3",
          "length number " + std::to_string(position) + " of the parts of " + describe(place) + " is not constant",
          place, "give numbers or sampled values");
    }
    auto* number = std::get_if<int64_t>(&factor);
    int64_t length = number ? *number : state.value(std::get<ExprRV>(factor));
    if (length < 1) {
      return refuse("loop_partition/P3",
                    "length number " + std::to_string(position) + " of the parts of " + describe(place) + " is " +
                        std::to_string(length),
                    place, "each part has at least one iteration");
    }
    if (length >= extent - total) {
      return refuse("loop_partition/P4",
                    "the lengths of the parts leave nothing of the " + std::to_string(extent) + " iterations of " +
                        describe(place),
                    place, "leave the last one out: it is what the others leave");
    }
    total += length;
    lengths.push_back(length);
  }
  if (inferred < 0) {
    lengths.push_back(extent - total);
  } else {
    lengths[inferred] = extent - total;
  }
  return lengths;
}

/// The name of a block around statements, with what they access.
Stmt wrapped(std::string name, Stmt body) {
  Block block;
  block.name_hint = std::move(name);
  block.body = std::move(body);
  analysis::BlockAccess access = analysis::block_access_region(make<Block>(Block(block)));
  block.reads = std::move(access.reads);
  block.writes = std::move(access.writes);
  return realized(make(std::move(block)));
}

/// One part: the loop over [first, first + length) with a copy of the body whose blocks have the suffix.
Ref<For> make_part(const For& loop, const std::string& suffix, int64_t first, int64_t length,
                   const LoopPartition& partition) {
  DataType dtype = loop.loop_var.dtype();
  For part = loop;
  part.min = constant(dtype, first);
  part.extent = constant(dtype, length);
  Ref<For> copy = renew_defs(make(std::move(part))).cast<For>();
  For named = *copy;
  named.loop_var = var(loop.loop_var->name_hint + suffix, dtype);
  bool keep = partition.preserve_unit_iters || length != 1;
  Expr value = keep ? Expr(named.loop_var) : constant(dtype, first);
  Ref<Range> domain = range(named.min, named.extent);
  std::string ending = "_" + named.loop_var->name_hint;
  named.body = rewrite(
      copy->body,
      [&](const Ref<BlockRealize>& old, Rewriter& walk) -> Stmt {
        // An axis that is the loop takes no other values than the loop; where that is longer, a condition keeps the
        // axis inside of its domain.
        BlockRealize realize = *walk.descend(old);
        Block block = *realize.block;
        block.name_hint += ending;
        for (size_t i : indices_of(block.iter_vars)) {
          if (old->iter_values[i] != copy->loop_var) continue;
          IterVar axis = *block.iter_vars[i];
          arith::Analyzer analyzer;
          Expr low = cast(loop.loop_var.dtype(), axis.dom->min),
               end = low + cast(loop.loop_var.dtype(), axis.dom->extent);
          if (!analyzer.can_prove(le(low, domain->min)) || !analyzer.can_prove(le(domain->min + domain->extent, end))) {
            continue;
          }
          axis.dom = range(cast(axis.var.dtype(), domain->min), cast(axis.var.dtype(), domain->extent));
          block.iter_vars[i] = make(std::move(axis));
        }
        realize.block = make(std::move(block), realize.block.span());
        return make(std::move(realize), old.span());
      },
      [&](const Ref<Var>& v, Rewriter&) -> Expr { return v == copy->loop_var ? value : Expr(v); });
  return make(std::move(named), copy.span());
}

}  // namespace

Result<Plan> plan(const State& state, const LoopPartition& partition) {
  TW_TRY(place, state.find(partition.loop));
  const Tree& tree = *place.tree;
  const For& loop = place.loop();
  TW_RETURN_IF_ERROR(require_plain_loop(place, "loop_partition/P1"));
  auto min = const_int(loop.min), extent = const_int(loop.extent);
  if (!min || !extent) {
    return refuse("loop_partition/P2", "the range of " + describe(place) + " is not constant", place,
                  "sch.split() takes loops of symbolic sizes");
  }
  TW_TRY(lengths, find_lengths(state, partition, place, *extent));
  if (auto obstacle = analysis::why_no_block_around(tree, place.at))
    return refuse("loop_partition/P5", *obstacle,
                  "partition the outer one of the two, or before the inner one is bound");
  if (tree.child_blocks(place.at).empty()) {
    return refuse("loop_partition/P5", "there is no block below " + describe(place), place,
                  "partition a loop around blocks");
  }
  // Blocks inside of others, too, may be bound to the loop itself.
  for (int at = place.at; at < tree[place.at].end; ++at) {
    if (!tree[at].is_block) continue;
    const BlockRealize& realize = *tree.realize_at(at);
    for (size_t i : indices_of(realize.iter_values)) {
      bool reduces = !analysis::is_data_parallel(realize.block->iter_vars[i]);
      if (!reduces || !uses_var(realize.iter_values[i], loop.loop_var)) continue;
      return refuse("loop_partition/P5",
                    describe(place) + " drives the axis '" + realize.block->iter_vars[i]->var->name_hint + "' of " +
                        describe_block(*realize.block) + ", which is not spatial",
                    {place.node(), tree.stmt(at)}, "decompose the reduction first, or cut a spatial loop");
    }
  }
  std::string name = tree.block_at(tree.child_blocks(place.at)[0]).name_hint + "_" + loop.loop_var->name_hint;
  std::vector<Stmt> parts;
  std::vector<Ref<Var>> vars;
  int64_t first = *min;
  for (size_t i : indices_of(lengths)) {
    std::string number = std::to_string(i);
    Ref<For> part = make_part(loop, number, first, lengths[i], partition);
    vars.push_back(part->loop_var);
    parts.push_back(wrapped(name + number + "_partition", part));
    first += lengths[i];
  }
  TreeEdit edit(tree);
  edit.replace(place.at, wrapped(name + "_common", seq(std::move(parts))));
  return give_loops(place.func, edit.finish(), vars);
}

}  // namespace tilewright::schedule
