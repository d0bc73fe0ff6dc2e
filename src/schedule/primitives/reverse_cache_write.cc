// Let a block accumulate in a new buffer indexed by its axes, and scatter the results.
//
//   Before                                  After  sch.reverse_cache_write(C, "C", "local")
//   T.assume_buffer_domain(I, [0, 20])      T.assume_buffer_domain(I, [0, 20])
//   for i, j in T.grid(8, 4):               C_local = T.alloc_buffer((8,), scope="local")
//     with T.block("C"):                    for i in range(8):
//       vi, vj = T.axis.remap("RR", [i, j])   with T.block("C_local_init"):
//       C[I[vi]] += A[vi, vj]                   vi = T.axis.spatial(8, i)
//                                               C_local[vi] = T.float32(-0.0)
//                                             for j in range(4):
//                                               with T.block("C"):
//                                                 vi, vj = T.axis.remap("SR", [i, j])
//                                                 C_local[vi] += A[vi, vj]
//                                             with T.block("C_local"):
//                                               vi = T.axis.reduce(8, i)
//                                               C[I[vi]] += C_local[vi]
//
// Elements that several instances select are combined one after another, in the loops around: in another order than
// before, but each step once.
//
// Requires  P1 the write exists, and the block is not the root
//           P2 the scope is a storage scope
//           P3 the block has no init, and each instance takes one step of a reduction: its body is C[...] = C[...] + x,
//              perhaps under a condition, where neither reads C otherwise. The buffer has one name in the scope, and
//              nothing else uses it inside of the loops that remain
//           P4 each instance writes one element, that its axes and data select
//           P5 dim_order names the axes that select it; their extents are bounded outside of the loops
//           P6 the element is in bounds for all values of the axes, where it is not known when the block writes it
//           P7 loops, and nothing else, say which instances of the block run; those that move the axes of the copy
//              take each of their values once; what stands in the scope touches the buffer in blocks only; parallel
//              loops around stay independent
#include "schedule/primitives/reverse_cache_write.h"

#include <functional>

#include "analysis/binding_reads.h"
#include "analysis/block_access_region.h"
#include "analysis/independence.h"
#include "ir/buffer_domain.h"
#include "ir/build.h"
#include "ir/reduction_step.h"
#include "ir/substitute.h"
#include "ir/traverse.h"
#include "schedule/inline.h"
#include "schedule/relocate.h"
#include "schedule/reverse_copy.h"
#include "support/ranges.h"

namespace tilewright::schedule {
namespace {

Diagnostic no_step(const Place& block, const std::string& why) {
  return refuse("reverse_cache_write/P3", describe(block) + " " + why, block,
                "the body is to be one step, such as C[I[vi]] += x; decompose_reduction() takes an init apart");
}

/// The only statement of the block.
Result<ReductionStep> find_step(const Place& block, const Ref<Buffer>& buffer) {
  const Block& b = block.block();
  if (b.init.defined()) return no_step(block, "has an init");
  const IfThenElse* branch = b.body.as<IfThenElse>();
  const BufferStore* store = (branch ? branch->then_case : b.body).as<BufferStore>();
  if (!store || store->buffer != buffer || (branch && branch->else_case.defined())) {
    return no_step(block, "does more than to store one element of '" + buffer->name + "'");
  }
  std::optional<ReductionStep> step = ReductionStep::of(*store);
  if (!step) return no_step(block, "does not accumulate in '" + buffer->name + "'");
  int loads = 0;
  visit(b.body, [&](const Ref<BufferLoad>& load) { loads += block.tree->same_memory(load->buffer, buffer) ? 1 : 0; });
  if (loads != 1) return no_step(block, "reads '" + buffer->name + "' otherwise than to add to it");
  return *step;
}

/// Returns the innermost loop such that it and the loops around it drive only axes that select cached elements.
int innermost_outside(const Place& block, int scope, const std::vector<int>& loops, const std::vector<size_t>& cached) {
  const BlockRealize& realize = *block.tree->realize_at(block.at);
  int outside = scope;
  for (int at : loops) {
    bool moves = false, selects = true;
    for (size_t i : indices_of(realize.iter_values)) {
      if (!uses_var(realize.iter_values[i], block.tree->for_at(at).loop_var)) continue;
      moves = true;
      selects &= is_contained(cached, i);
    }
    if (!moves || !selects) break;
    outside = at;
  }
  return outside;
}

Status check_neighbors(const Place& block, int near, const Ref<Buffer>& buffer) {
  const Tree& tree = *block.tree;
  const std::vector<int> inside = tree[near].is_block ? std::vector<int>{near} : tree.child_blocks(near);
  for (int other : inside) {
    if (other == block.at) continue;
    const Block& b = tree.block_at(other);
    if (!tree.touches(b.reads, buffer) && !tree.touches(b.writes, buffer) &&
        !tree.touches(analysis::binding_reads(tree, other), buffer))
      continue;
    return refuse("reverse_cache_write/P3",
                  describe_block(b) + " uses '" + buffer->name + "' in the loops of " + describe(block),
                  {tree.stmt(other), block.node()}, "cache before the loops of the two blocks are joined");
  }
  return Ok{};
}

/// The block with axes that select elements as spatial ones, and all others as those of a reduction.
Ref<Block> accumulating(const Ref<Block>& block, const AxisCache& cache) {
  Block changed = *at_element(block, cache.original, cache.cache, cache.new_indices);
  for (size_t i : indices_of(changed.iter_vars)) {
    IterVar axis = *changed.iter_vars[i];
    const bool selects = is_contained(cache.axes, i);
    axis.iter_type = selects ? IterType::kDataPar : IterType::kCommReduce;
    changed.iter_vars[i] = make(std::move(axis));
  }
  return with_found_reads(std::move(changed), block.span());
}

/// The copy back adds each element once in the loops that it has. A loop that moves axes of both kinds, as a fused one
/// does, would have it added for each step of the reduction.
Status check_added_once(const Place& block, const Tree& after, int copy, const Stmt& nest) {
  std::vector<int> loops = after.loops_above(copy);
  size_t own = 0;
  for (const For* loop = nest.as<For>(); loop; loop = loop->body.as<For>()) ++own;
  loops.erase(loops.begin(), loops.end() - static_cast<std::ptrdiff_t>(own));
  if (loops.empty()) return Ok{};
  if (analysis::axes_are_injective(after, std::move(loops), copy)) return Ok{};
  return refuse("reverse_cache_write/P7",
                "the loops that move the axes of " + describe(block) +
                    " which select elements move other axes, too, or may repeat a value: what is copied back would be "
                    "added several times",
                block, "take this step before the loops around the block are fused");
}

/// The nest whose block, `made`, declares what the original one does of the buffers that it reads.
Stmt with_declarations(const Stmt& nest, const Block& original, Ref<Block>* made) {
  Annotations declared;
  for (const BufferDomain& domain : buffer_domains(original)) {
    const bool is_read = any_node(*made, [&](const Ref<BufferLoad>& load) { return load->buffer == domain.buffer; });
    if (is_read && !domain.has_segments()) declare(declared, domain);
  }
  if (declared.empty()) return nest;
  return rewrite(nest, [&](const Ref<Block>& found, Rewriter&) -> Stmt {
    Block block = *found;
    block.annotations.set(std::string(kBufferDomains), declared.get(kBufferDomains));
    *made = make(std::move(block), found.span());
    return *made;
  });
}

/// The nest with another body of the block in it, and axes of these types; `made` is that block.
Stmt with_body(const Stmt& nest, const std::string& name, const std::vector<IterType>& types,
               const std::function<Stmt(const BufferStore&)>& body, Ref<Block>* made) {
  return rewrite(nest, [&](const Ref<Block>& copy, Rewriter&) -> Stmt {
    Block block = *copy;
    block.name_hint = name;
    block.body = body(*copy->body.as<BufferStore>());
    for (size_t i : indices_of(types)) {
      IterVar axis = *block.iter_vars[i];
      axis.iter_type = types[i];
      block.iter_vars[i] = make(std::move(axis));
    }
    analysis::BlockAccess access = analysis::block_access_region(make<Block>(Block(block)));
    block.reads = std::move(access.reads);
    block.writes = std::move(access.writes);
    *made = make(std::move(block), copy.span());
    return *made;
  });
}

}  // namespace

Result<Plan> plan(const State& state, const ReverseCacheWrite& cache) {
  TW_TRY(write, cached_write(state, cache.block, cache.write_buffer_index, cache.storage_scope,
                             {"reverse_cache_write/P1", "reverse_cache_write/P2"}));
  const auto& [block, scope, position, region] = write;
  const Tree& tree = *block.tree;
  const Ref<Buffer>& buffer = region->buffer;
  TW_TRY(step, find_step(block, buffer));
  TW_RETURN_IF_ERROR(require_only_blocks(block, scope, "reverse_cache_write/P7"));
  TW_RETURN_IF_ERROR(require_one_name(block, scope, buffer, "reverse_cache_write/P3"));
  TW_TRY(element, selected_element(block, buffer, "reverse_cache_write/P4"));
  TW_TRY(axes, selected_cache(block, buffer, element, cache.storage_scope, cache.dim_order, "reverse_cache_write/P5"));
  auto loops = analysis::loops_between(tree, scope, block.at);
  if (!loops) {
    return refuse("reverse_cache_write/P7", describe(block) + " runs on a condition", block,
                  "take this step before its loops are put under a condition");
  }
  const int around = innermost_outside(block, scope, *loops, axes.axes);
  int near = tree.child_towards(around, block.at);
  while (tree[near].node->kind == Kind::kSeqStmt) near = tree.child_towards(near, block.at);
  const int outside = tree[near].parent;
  TW_RETURN_IF_ERROR(check_neighbors(block, near, buffer));
  const bool is_said = element.guard.defined() && is_said_by(block, element.guard, axes.axes);
  if (!is_said) TW_RETURN_IF_ERROR(check_inside(block, axes.old_indices, buffer, "reverse_cache_write/P6"));
  TW_TRY(runs, has_instances(block, outside, axes, "reverse_cache_write/P7"));
  axes.condition = runs;
  Ref<Block> filled, init, made;
  TW_TRY(nest, axis_copy_nest(block, outside, axes, false, "reverse_cache_write/P7", &filled));
  const std::string name = axes.cache->name;
  // The copy is a store C[...] = C_local[...] in axes of its own; the guard is in those of the block.
  VarMap own;
  std::vector<IterType> before, spatial(axes.axes.size(), IterType::kDataPar);
  for (size_t i : indices_of(axes.axes)) {
    const IterVar& axis = *block.block().iter_vars[axes.axes[i]];
    own.emplace(axis.var, filled->iter_vars[i]->var);
    before.push_back(axis.iter_type);
  }
  auto combined = [&](const BufferStore& copy) -> Stmt {
    Stmt store = make<BufferStore>({buffer, step.combine(load(buffer, copy.indices), copy.value), copy.indices, {}});
    if (!is_said || is_true(element.guard)) return store;
    return make<IfThenElse>({substitute(element.guard, own), store, {}});
  };
  auto neutral = [&](const BufferStore& copy) -> Stmt {
    return store(axes.cache, step.identity(), copy.value.as<BufferLoad>()->indices);
  };
  Stmt scatter = with_declarations(with_body(nest, name, before, combined, &made), block.block(), &made);
  Stmt start = renew_defs(with_body(nest, name + "_init", spatial, neutral, &init));
  TreeEdit edit(tree);
  edit.insert_before(near, start);
  edit.insert_after(near, scatter);
  edit.change_block(scope, [&](Block& outer) { outer.alloc_buffers.push_back(axes.cache); });
  edit.change_realize(block.at, [&](BlockRealize& realize) { realize.block = accumulating(realize.block, axes); });
  Plan plan = give_loops(block.func, edit.finish(), {});
  const Tree& after = Tree::of(plan.root);
  for (uint64_t id : {made->id.value, block.block().id.value}) {
    TW_RETURN_IF_ERROR(recheck_execution(after, after.block(id), "reverse_cache_write/P7"));
  }
  TW_RETURN_IF_ERROR(check_added_once(block, after, after.block(made->id.value), scatter));
  plan.outputs.push_back(Handle::block(block.func, *made));
  plan.recorded = recorded_with(cache, &ReverseCacheWrite::write_buffer_index, position);
  return plan;
}

}  // namespace tilewright::schedule
