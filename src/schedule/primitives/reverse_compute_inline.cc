// Inline the only consumer of a block into the block.
//
//   Before                                    After  sch.reverse_compute_inline(C)
//   B = T.alloc_buffer((16,))                 for i in range(16):
//   for i in range(16):                         with T.block("B"):
//     with T.block("B"):                          vi = T.axis.spatial(16, i)
//       vi = T.axis.spatial(16, i)                C[vi] = (A[vi] + 1.0) * 2.0
//       B[vi] = A[vi] + 1.0
//   for x in range(16):
//     with T.block("C"):
//       vi = T.axis.spatial(16, x)
//       C[vi] = B[vi] * 2.0
//
// Requires  P1 the block is one plain assignment, complete
//           P2 it has one producer, also one plain assignment, or serial loops around one in it (write_at), of a buffer
//              that is allocated in the scope and that nobody else reads or writes
//           P3 it reads that buffer always at the same indices, which determine its axes, such as vi + vj * 8, vi + 1,
//              7 - vi
//           P4 it is the only writer of its own buffer, and nothing before reads that
//           P5 all that it reads is complete where its producer stands, or has been left alone by then
//           P6 the same is written as before, and the buffer does not say where or whether the block runs; where the
//              producer computes more than is read, under a condition
//           P7 where it takes what its producer computes of data as an index, that stays in its type
//           P9 parallel loops around the producer stay independent
#include <algorithm>

#include "analysis/binding_reads.h"
#include "analysis/block_facts.h"
#include "analysis/cover.h"
#include "ir/build.h"
#include "ir/conjunction.h"
#include "ir/structural.h"
#include "ir/traverse.h"
#include "schedule/buffers.h"
#include "schedule/edit.h"
#include "schedule/inline.h"
#include "schedule/primitives/reverse_compute_inline.h"
#include "schedule/relocate.h"
#include "schedule/run_condition.h"
#include "support/ranges.h"

namespace tilewright::schedule {
namespace {

struct Pair {
  Place producer;
  NestedAssignment inner;  ///< assignment of the producer
  Assignment outer;        ///< assignment of the consumer
};

Result<Pair> find_pair(const Place& block, const analysis::Scope& scope, int self) {
  const Tree& tree = *block.tree;
  TW_TRY(outer, assignment_of(block, "reverse_compute_inline/P1"));
  std::vector<int> producers = scope.producers(self);
  if (producers.size() != 1) {
    return refuse("reverse_compute_inline/P2",
                  describe(block) + " has " + std::to_string(producers.size()) + " producers instead of one", block,
                  "what is taken into its producer reads the result of one block; inline the others before with "
                  "compute_inline()");
  }
  Place producer{block.func, &tree, tree.block(scope.children()[producers[0]]->block->id.value)};
  auto inner = nested_assignment_of(producer, "reverse_compute_inline/P1");
  if (!inner.ok()) {
    inner.error().code = "reverse_compute_inline/P2";
    return std::move(inner.error());
  }
  const Ref<Buffer>& buffer = inner->buffer;
  bool local = !scope.is_output(producers[0]) && scope.writers(buffer).size() == 1 && scope.readers(buffer).size() == 1;
  if (!local) {
    return refuse("reverse_compute_inline/P2",
                  "'" + buffer->name + "' is used by other blocks too, or outside of the scope",
                  {producer.node(), block.node()}, "give other readers a copy of their own (cache_read) before");
  }
  if (takes_address(outer.store->value, buffer)) {
    return refuse("reverse_compute_inline/P2", describe(block) + " takes the address of '" + buffer->name + "'",
                  {block.node(), producer.node()}, "blocks that use an address need the buffer itself");
  }
  TW_RETURN_IF_ERROR(check_wraps_nowhere(producer, *inner, block.at, "reverse_compute_inline/P7"));
  return Pair{producer, *inner, outer};
}

/// The indices at which the consumer loads the buffer, if they are always the same.
std::optional<std::vector<Expr>> load_indices(const BufferStore& store, const Ref<Buffer>& buffer) {
  std::optional<std::vector<Expr>> indices;
  bool same = true;
  visit(store.value, [&](const Ref<BufferLoad>& load) {
    if (load->buffer != buffer) return;
    same &= !load->predicate.defined() && load.dtype() == buffer->dtype;
    if (!indices) indices = load->indices;
    same &= same_exprs(*indices, load->indices);
  });
  return same ? indices : std::nullopt;
}

/// The consumer's axes in terms of those of the producer, and for which of its instances there are any.
struct Axes {
  VarMap values;
  std::vector<Expr> conditions;
};

/// Conditions that do not hold for all instances of the producer.
class Condition {
 public:
  Condition(const Block& producer, const std::vector<const For*>& loops) {
    for (const Ref<IterVar>& axis : producer.iter_vars) analyzer_.bind(axis->var, axis->dom);
    for (const For* loop : loops) analyzer_.bind(loop->loop_var, range(loop->min, loop->extent));
  }
  void require(const Expr& fact) {
    Expr left = analyzer_.simplify(fact);
    if (is_true(left) || analyzer_.can_prove(left)) return;
    auto is_left = [&](const Expr& known) { return structural_equal(known, left); };
    if (none_of(facts_, is_left)) facts_.push_back(left);
  }
  std::vector<Expr> take() { return std::move(facts_); }
  arith::Analyzer& analyzer() { return analyzer_; }

 private:
  arith::Analyzer analyzer_;
  std::vector<Expr> facts_;
};

/// Moves an offset from the load to the store: a load at v + 1 for a store at w becomes a load at v for a store at w -
/// 1; a load at 7 - v for a store at w becomes a load at v for a store at 7 - w.
void take_offset(Expr& loaded, Expr& stored) {
  const Add* sum = loaded.as<Add>();
  const Sub* difference = loaded.as<Sub>();
  if (const_int(loaded)) {
    stored = stored - cast(stored.dtype(), loaded);
    loaded = zero(loaded.dtype());
  } else if (sum && const_int(sum->b)) {
    stored = stored - cast(stored.dtype(), sum->b);
    loaded = sum->a;
  } else if (sum && const_int(sum->a)) {
    stored = stored - cast(stored.dtype(), sum->a);
    loaded = sum->b;
  } else if (difference && const_int(difference->b)) {
    stored = stored + cast(stored.dtype(), difference->b);
    loaded = difference->a;
  } else if (difference && const_int(difference->a)) {
    stored = cast(stored.dtype(), difference->a) - stored;
    loaded = difference->b;
  }
}

/// The axes of a consumer that loads at `loaded` what its producer stores. None if `loaded` does not determine them.
/// `instances`: those of the consumer that run.
std::optional<Axes> axes_of_consumer(const Block& consumer, std::vector<Expr> loaded, const Block& producer,
                                     const NestedAssignment& inner, const arith::Box& instances) {
  std::vector<Expr> stored = inner.store->indices;
  for (size_t d : indices_of(loaded)) take_offset(loaded[d], stored[d]);
  Condition condition(producer, inner.loops);
  auto within = [&](const Expr& value, const Expr& min, const Expr& extent) {
    Expr offset = value - cast(value.dtype(), min);
    condition.require(ge(offset, 0));
    condition.require(lt(offset, cast(value.dtype(), extent)));
  };
  auto run = [&](const VarMap& axes) {
    for (size_t i : indices_of(instances)) {
      const Expr& value = axes.at(consumer.iter_vars[i]->var);
      within(value, instances[i].min, condition.analyzer().simplify(instances[i].max - instances[i].min + 1));
    }
  };
  if (auto axes = axes_by_dimension(consumer, loaded)) {
    for (size_t d : indices_of(loaded)) {
      auto same = [&](const Ref<IterVar>& axis) { return axis->var == (*axes)[d]; };
      auto axis = find_if(consumer.iter_vars, same);
      if (axis != consumer.iter_vars.end()) {
        within(stored[d], (*axis)->dom->min, (*axis)->dom->extent);
      } else {
        condition.require(eq(stored[d], zero(stored[d].dtype())));
      }
    }
    VarMap values = bind_axes(consumer, *axes, stored);
    run(values);
    return Axes{std::move(values), condition.take()};
  }
  auto back = invert_access(consumer, loaded, condition.analyzer());
  if (!back) return std::nullopt;
  Axes axes;
  axes.values = axes_at(consumer, *back, stored, condition.analyzer());
  for (const Ref<IterVar>& axis : consumer.iter_vars) {
    within(axes.values[axis->var], axis->dom->min, axis->dom->extent);
  }
  for (size_t d : indices_of(stored)) within(stored[d], zero(stored[d].dtype()), back->shape[d]);
  run(axes.values);
  axes.conditions = condition.take();
  return axes;
}

/// The producer with the consumer in it: its loops around the consumer's store, and what that writes in all of them.
class Merged {
 public:
  Merged(const Pair& pair, const Axes& axes) : result(pair.producer.block()), loops_(pair.inner.loops) {
    for (const Expr& condition : axes.conditions) (in_loops(condition) ? inside_ : conditions).push_back(condition);
  }

  void put(BufferStore store, const std::vector<Ref<BufferRegion>>& writes) {
    const SpanId span = result.body.span();
    Stmt body = make(std::move(store), span);
    Expr condition = bool_imm(true);
    for (const Expr& each : inside_) condition = logical_and(condition, each);
    if (!inside_.empty()) body = make<IfThenElse>({condition, std::move(body), {}}, span);
    for (const For* old : reversed(loops_)) {
      For loop = *old;
      loop.body = std::move(body);
      body = make(std::move(loop), span);
    }
    result.body = std::move(body);
    result.writes.clear();
    for (const Ref<BufferRegion>& write : writes) {
      result.writes.push_back(loops_.empty() ? write : in_all_loops(write, condition));
    }
  }

  Block result;
  std::vector<Expr> conditions;  ///< on all of it, in terms of its axes

 private:
  bool in_loops(const Expr& condition) const {
    return any_of(loops_, [&](const For* loop) { return uses_var(condition, loop->loop_var); });
  }
  Ref<BufferRegion> in_all_loops(const Ref<BufferRegion>& write, const Expr& condition) const {
    arith::Analyzer analyzer;
    arith::Domains domains;
    for (const Ref<IterVar>& axis : result.iter_vars) analyzer.bind(axis->var, axis->dom);
    for (const For* loop : loops_) {
      domains.emplace(loop->loop_var, arith::IntSet::of_range(range(loop->min, loop->extent)));
    }
    arith::Box box = arith::relax_region(write->region, domains, analyzer, condition);
    return make<BufferRegion>({write->buffer, arith::clip_to_shape(box, write->buffer->shape, analyzer)});
  }

  const std::vector<const For*>& loops_;
  std::vector<Expr> inside_;  ///< conditions that differ between iterations of the loops
};

/// The condition of the block at this position and these ones, without what follows from them.
Expr with_conditions(const Tree& tree, int at, const Expr& predicate, const std::vector<Expr>& conditions) {
  auto analyzer = analysis::analyzer_above(tree, at);
  for (const Expr& condition : conditions) analyzer.assume(condition);
  Expr result = bool_imm(true);
  for (const Expr& term : conjuncts(predicate)) {
    if (conditions.empty() || effect_of(term) != Effect::kPure || !analyzer.can_prove(term)) {
      result = logical_and(result, term);
    }
  }
  for (const Expr& condition : conditions) result = logical_and(result, condition);
  return result;
}

}  // namespace

Result<Plan> plan(const State& state, const ReverseComputeInline& compute) {
  TW_TRY(block, state.find(compute.block));
  const Tree& tree = *block.tree;
  int scope_at = tree[block.at].scope;
  TW_RETURN_IF_ERROR(assignment_of(block, "reverse_compute_inline/P1"));
  const analysis::Scope& scope = analysis::Scope::of(tree, scope_at);
  int self = scope.child(block.block().id.value);
  TW_TRY(pair, find_pair(block, scope, self));
  TW_RETURN_IF_ERROR(check_only_writer(block, scope, self, "reverse_compute_inline/P4"));
  if (auto obstacle = analysis::why_inputs_incomplete(tree, block.at)) {
    return refuse("reverse_compute_inline/P5", *obstacle, "inline before the loops of the two blocks are changed");
  }
  const Ref<Buffer>& buffer = pair.inner.buffer;
  if (analysis::binding_reads(*tree.realize_at(block.at), buffer)) {
    return refuse("reverse_compute_inline/P6",
                  "'" + buffer->name + "' says where, or whether, " + describe(block) + " runs",
                  {block.node(), pair.producer.node()},
                  "compute_inline() of " + describe(pair.producer) + " takes its value into conditions and bindings");
  }
  TW_TRY(instances, known_instances(block, "reverse_compute_inline/P6"));
  auto indices = load_indices(*pair.outer.store, buffer);
  auto axes =
      indices ? axes_of_consumer(block.block(), *indices, pair.producer.block(), pair.inner, instances) : std::nullopt;
  if (!axes) {
    return refuse("reverse_compute_inline/P3",
                  describe(block) + " reads '" + buffer->name + "' at indices that do not determine its axes", block,
                  "the block has to read it at indices that its axes follow from: B[vi, vj], B[vi * 4 + vj]");
  }
  // Rewrite the store in terms of the producer's axes; the producer's stored value replaces the load.
  const VarMap& map = axes->values;
  BufferStore store = *pair.outer.store;
  for (Expr& index : store.indices) index = substitute(index, map);
  store.value = rewrite(substitute(store.value, map), [&](const Ref<BufferLoad>& load, Rewriter& walk) -> Expr {
    return load->buffer == buffer ? pair.inner.store->value : Expr(walk.descend(load));
  });
  std::vector<Ref<BufferRegion>> writes;
  for (const Ref<BufferRegion>& write : block.block().writes) writes.push_back(substitute(write, map));
  Merged merged(pair, *axes);
  merged.put(std::move(store), writes);
  BlockRealize realize = *tree.realize_at(pair.producer.at);
  VarMap bound;
  for (size_t i : indices_of(realize.iter_values)) {
    bound[merged.result.iter_vars[i]->var] = realize.iter_values[i];
  }
  auto analyzer = analysis::analyzer_above(tree, pair.producer.at);
  analyzer.assume(realize.predicate);
  std::vector<Expr> conditions{invariant_condition(tree, block.at)};
  for (const Expr& condition : merged.conditions) conditions.push_back(substitute(condition, bound));
  std::erase_if(conditions, [&](const Expr& left) { return analyzer.can_prove(left); });
  realize.predicate = with_conditions(tree, pair.producer.at, realize.predicate, conditions);
  realize.block = with_found_reads(std::move(merged.result), pair.producer.node().span());
  uint64_t identity = realize.block->id.value;

  TreeEdit edit(tree);
  edit.remove(block.at);
  edit.replace(pair.producer.at, make(std::move(realize), pair.producer.node().span()));
  edit.change_block(scope_at, [&](Block& outer) {
    std::erase_if(outer.alloc_buffers, [&](const Ref<Buffer>& own) { return own == buffer; });
  });
  Plan plan = give_loops(block.func, edit.finish(), {});
  const Tree& after = Tree::of(plan.root);
  int at = after.block(identity);
  const auto& facts = analysis::BlockFacts::of(after.block_ref(at));
  if (facts.role != analysis::BlockRole::kComplete) {
    return refuse("reverse_compute_inline/P6", "the merged block would not be complete: " + facts.why,
                  {block.node(), pair.producer.node()}, "take what is computed into a block of its own");
  }
  if (auto obstacle = why_inputs_change(after, at))
    return refuse("reverse_compute_inline/P5", *obstacle, "inline before the loops of the two blocks are changed");
  // A consumer that ran for all values of its axes, on what its producer had surely computed, runs for all of them now.
  // Where a condition decides whether it reads at all, it may have run without any instance of the producer.
  bool runs_all = !may_skip_read(pair.outer.store->value) && runs_whole_domain(tree, block.at) &&
                  !analysis::why_not_covered(tree, pair.producer.at, block.at, buffer);
  if (!runs_all && !pair.inner.loops.empty()) {
    return refuse("reverse_compute_inline/P6",
                  "it cannot be proved that " + describe(block) + " runs for all values of its axes, on what " +
                      describe(pair.producer) + " has written: in the loops of that, it might write something else",
                  {block.node(), pair.producer.node()}, "inline before the producer's loops come into a block");
  }
  if (!runs_all) {
    TW_RETURN_IF_ERROR(check_same_outputs(tree, block.at, after, at, "reverse_compute_inline/P6"));
  }
  for (int child : scope.consumers(self)) {
    // Each instance runs no later than before: in the iteration where its producer did.
    if (runs_all && !analysis::why_not_covered(tree, block.at, scope.position(tree, child), pair.outer.buffer))
      continue;
    int consumer = scope.position(after, child);
    if (auto obstacle = analysis::why_not_covered(after, at, consumer, pair.outer.buffer)) {
      return refuse("reverse_compute_inline/P6", *obstacle, "inline before the loops of the two blocks are changed");
    }
  }
  TW_RETURN_IF_ERROR(recheck_execution(after, at, "reverse_compute_inline/P9"));
  return plan;
}

}  // namespace tilewright::schedule
