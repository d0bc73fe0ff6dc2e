#include "schedule/reduction_chain.h"

#include <algorithm>

#include "analysis/block_facts.h"
#include "ir/build.h"
#include "ir/substitute.h"
#include "ir/traverse.h"
#include "support/ranges.h"

namespace tilewright::schedule {

Status classify_loops(ReductionChain& chain) {
  const BlockRealize& realize = *chain.block.tree->realize_at(chain.block.at);
  chain.outermost_reduction = chain.loops.size();
  for (size_t i : indices_of(chain.loops)) {
    bool spatial = false, reduction = false;
    for (size_t a : indices_of(realize.iter_values)) {
      if (!uses_var(realize.iter_values[a], chain.at(i).loop_var)) continue;
      (analysis::is_reduction_axis(realize.block->iter_vars[a]) ? reduction : spatial) = true;
    }
    bool factored = chain.loops[i] == chain.loop.at;
    NodeRef node = chain.block.tree->stmt(chain.loops[i]);
    if (spatial && (reduction || factored)) {
      return refuse(
          "rfactor/P3",
          describe_loop(chain.at(i)) + " drives spatial axes" + (reduction ? " as well as reduction axes" : ""),
          {node, chain.block.node()}, "take a loop that drives the reduction alone");
    }
    if (factored && !reduction && !is_const_int(chain.at(i).extent, 1)) {
      return refuse("rfactor/P3", describe_loop(chain.at(i)) + " drives no reduction axis", {node, chain.block.node()},
                    "name loops of the reduction; split() one of them first for a part of it");
    }
    chain.reduces.push_back(reduction);
    if (reduction || factored) {
      chain.outermost_reduction = std::min(chain.outermost_reduction, i);
      for (const Expr& bound : {chain.at(i).min, chain.at(i).extent}) {
        bool varies = uses_any_var(bound, [&](const Ref<Var>& v) { return chain.block.tree->loop(v) != Tree::kNone; });
        if (!varies) continue;
        return refuse("rfactor/P3", "the range of " + describe_loop(chain.at(i)) + " depends on another loop", {node},
                      "factor loops of constant or symbolic lengths that depend on no other loop");
      }
    }
  }
  return Ok{};
}

Status check_location(const ReductionChain& chain) {
  const Tree& tree = *chain.block.tree;
  const auto& writes = chain.block.block().writes;
  for (int at : chain.loops) {
    const For& loop = tree.for_at(at);
    for (const Expr& bound : {loop.min, loop.extent}) {
      // Without an init the block need not be proved to run; the bounds only must not change.
      const bool may_read = chain.accumulates && at != chain.loop.at;
      if (any_node(bound,
                   [&](const Ref<BufferLoad>& load) { return !may_read || tree.touches(writes, load->buffer); })) {
        return refuse("rfactor/P4", "the range of " + describe_loop(loop) + " depends on data", {tree.stmt(at)},
                      "factor a loop of a constant or symbolic length");
      }
    }
  }
  int outermost = chain.loops.front();
  const std::vector<int> below_outermost = tree.child_blocks(outermost);
  if (below_outermost.front() != chain.block.at || (chain.accumulates && below_outermost.size() > 1) ||
      !analysis::loops_between(tree, outermost, chain.block.at)) {
    return refuse("rfactor/P4",
                  describe(chain.block) + " is not the first block below " + describe_loop(tree.for_at(outermost)),
                  {tree.stmt(outermost), chain.block.node()},
                  "the new block goes before that loop, so nothing may come before it there");
  }
  int at = chain.loops[chain.outermost_reduction];
  for (size_t i = chain.outermost_reduction; i < chain.loops.size(); ++i) {
    NodeRef below = i + 1 < chain.loops.size() ? NodeRef(tree.stmt(chain.loops[i + 1])) : chain.block.node();
    if (tree.for_at(chain.loops[i]).body == below) continue;
    return refuse("rfactor/P4",
                  describe_loop(tree.for_at(at)) + " contains other statements besides " + describe(chain.block),
                  {tree.stmt(at), chain.block.node()}, "factor before other blocks are moved into these loops");
  }
  return Ok{};
}

std::vector<bool> axes_of_new_block(const ReductionChain& chain) {
  const BlockRealize& realize = *chain.block.tree->realize_at(chain.block.at);
  std::vector<bool> opened(realize.iter_values.size(), false);
  std::vector<Ref<Var>> loops = {chain.loop.loop().loop_var};
  for (size_t done = 0; done < loops.size(); ++done) {
    for (size_t i : indices_of(opened)) {
      const Expr& value = realize.iter_values[i];
      if (opened[i] || analysis::is_data_parallel(realize.block->iter_vars[i]) || !uses_var(value, loops[done])) {
        continue;
      }
      opened[i] = true;
      for (size_t l : indices_of(chain.loops)) {
        if (uses_var(value, chain.at(l).loop_var)) loops.push_back(chain.at(l).loop_var);
      }
    }
  }
  return opened;
}

VarMap copied_loop_vars(const ReductionChain& chain) {
  VarMap copies;
  for (size_t i : indices_of(chain.loops)) {
    const Ref<Var>& v = chain.at(i).loop_var;
    copies.emplace(v, make<Var>(*v, v.span()));
  }
  return copies;
}

Stmt in_copied_loops(const ReductionChain& chain, const VarMap& loop_vars, Stmt body, bool skip_factored_out) {
  for (size_t i = chain.loops.size(); i-- > 0;) {
    if (skip_factored_out && chain.is_factored_out(i)) continue;
    For copy = chain.at(i);
    copy.loop_var = loop_vars.at(copy.loop_var).borrow<Var>();
    copy.min = substitute(copy.min, loop_vars);
    copy.extent = substitute(copy.extent, loop_vars);
    copy.body = std::move(body);
    body = make(std::move(copy), chain.block.tree->stmt(chain.loops[i]).span());
  }
  return body;
}

Ref<Buffer> partial_buffer(const Ref<Buffer>& result, size_t position, const Expr& extent) {
  Buffer buffer = *result;
  buffer.name = result->name + ".rf";
  Var data = *result->data;
  data.name_hint = buffer.name;
  buffer.data = make(std::move(data));
  insert_at(buffer.shape, position, extent);
  buffer.strides.clear();
  // Without dimensions there is no index type to use.
  if (result->shape.empty() && is_const_int(result->elem_offset, 0)) buffer.elem_offset = zero(DataType::int_(64));
  // The result may be a view with an offset; the partial buffer is its own allocation.
  if (!is_const_int(buffer.elem_offset, 0)) buffer.elem_offset = zero(extent.dtype());
  buffer.axis_separators.clear();
  return make(std::move(buffer));
}

}  // namespace tilewright::schedule
