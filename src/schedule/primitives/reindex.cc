// Let a block touch a copy of a buffer that has the block's own axes as indices.
//
//   Before                                  After  sch.reindex(B, ("read", 0))
//   for i, j in T.grid(8, 4):               A_reindex = T.alloc_buffer((8, 4))
//     with T.block("B"):                    for ax0, ax1 in T.grid(8, 4):
//       vi, vj = T.axis.remap("SS", [i, j])   with T.block("A_reindex_reindex"):
//       B[vi, vj] = A[vj, vi] + 1.0             v0, v1 = T.axis.remap("SS", [ax0, ax1])
//                                               A_reindex[v0, v1] = A[v1, v0]
//                                           for i, j in T.grid(8, 4):
//                                             with T.block("B"):
//                                               vi, vj = T.axis.remap("SS", [i, j])
//                                               B[vi, vj] = A_reindex[vi, vj] + 1.0
//
// Requires  P1 the block touches the buffer, and is not the root
//           P2 it holds no blocks, and touches one element in each instance, that its axes say
//           P3 it is alone in loops right in the body of its scope
//           P4 the buffer has one name in the scope; a read: the block does not write it; a write: the block is
//              complete or a reduction, and no other block writes it
//           P5 the element is in bounds for all values of the axes; a read: it has a value; a write: the
//              block runs for all of them
#include "schedule/primitives/reindex.h"

#include "analysis/block_facts.h"
#include "ir/build.h"
#include "ir/substitute.h"
#include "ir/traverse.h"
#include "schedule/axis_copy.h"
#include "schedule/kept_shape.h"
#include "schedule/relocate.h"
#include "schedule/run_condition.h"
#include "support/ranges.h"

namespace tilewright::schedule {
namespace {

struct ReindexRequest {
  Place block;
  int scope;
  int64_t position;
  Ref<Buffer> buffer;
  bool reads;
  std::vector<Expr> indices;
  std::vector<size_t> axes;  ///< axes in the indices
  Expr condition;            ///< under which there is something to copy
};

/// Returns the condition without the parts that read memory.
Expr without_data(const Expr& condition) {
  if (const And* both = condition.as<And>()) return logical_and(without_data(both->a), without_data(both->b));
  return effect_of(condition) == Effect::kPure ? condition : Expr(bool_imm(true));
}

/// Returns the part of the block's condition that depends neither on a loop around it nor on data: whether the block
/// runs at all.
Expr condition_of_no_loop(const Tree& tree, int block) {
  return without_data(
      analysis::outer_condition(tree.realize_at(block)->predicate, analysis::inputs_of(tree, tree.loops_above(block))));
}

/// The copy looks at all values of the axes: the block around has to declare to read that much.
Status check_declared(const ReindexRequest& request) {
  const Tree& tree = *request.block.tree;
  if (tree[request.scope].scope == Tree::kNone) return Ok{};
  const Block& scope = tree.block_at(request.scope);
  const arith::Box wanted = box_of_axes(request.block.block(), request.indices);
  auto analyzer = analysis::analyzer_above(tree, request.scope);
  for (const Ref<BufferRegion>& read : scope.reads) {
    if (read->buffer != request.buffer || arith::proves_subset(wanted, arith::box_of(read->region), analyzer)) continue;
    return refuse("reindex/P5",
                  describe_block(scope) + " declares to read " + analysis::brief(read) + ", and the axes of " +
                      describe(request.block) + " have more values than that",
                  request.block, "reindex before loops are made a block of their own");
  }
  return Ok{};
}

/// Requires that one copy suffices: of the values before the loops, or of the final values after them.
Status check_values(const State& state, const ReindexRequest& request) {
  const Place& block = request.block;
  const Tree& tree = *block.tree;
  const analysis::Scope& scope = analysis::Scope::of(tree, request.scope);
  const std::string& name = request.buffer->name;
  TW_RETURN_IF_ERROR(require_one_name(block, request.scope, request.buffer, "reindex/P4",
                                      "reindex outside of the block that makes the view"));
  if (request.reads) {
    if (tree.touches(block.block().writes, request.buffer)) {
      return refuse("reindex/P4", describe(block) + " writes '" + name + "' too", block,
                    "reindex the write: it takes what the block reads of its results along");
    }
    if (auto obstacle = why_not_all_written(state, block, request.scope, request.buffer))
      return refuse("reindex/P5", *obstacle, "let a block write all of the buffer before");
    TW_RETURN_IF_ERROR(check_declared(request));
    return check_inside(block, request.indices, request.buffer, "reindex/P5");
  }
  const auto& facts = analysis::BlockFacts::of(tree.block_ref(block.at));
  bool plain = facts.role == analysis::BlockRole::kComplete || facts.role == analysis::BlockRole::kReduction;
  if (!plain || scope.writers(request.buffer).size() > 1) {
    std::string why =
        !plain ? describe(block) + " is neither a complete nor a reduction block: " +
                     (facts.why.empty() ? std::string("it updates elements that have a value before") : facts.why)
               : "'" + name + "' is written by other blocks than " + describe(block) + " as well";
    return refuse("reindex/P4", std::move(why), block, "reindex before the reduction is decomposed");
  }
  Ref<BufferRegion> all = axes_as_region(block.block(), request.axes);
  auto loops = analysis::loops_between(tree, request.scope, block.at);
  auto analyzer = analysis::analyzer_above(tree, request.scope);
  std::optional<Written> written;
  if (loops) written = written_by(tree, block.at, all, *loops, analyzer);
  if (loops && !surely_runs(tree, block.at, all, *loops, analyzer)) written.reset();
  arith::Box wanted;
  for (size_t i : request.axes) wanted.push_back(arith::IntSet::of_range(block.block().iter_vars[i]->dom));
  if (written && is_true(written->condition) && arith::proves_subset(wanted, written->box, analyzer)) return Ok{};
  return refuse("reindex/P5", "it cannot be proved that " + describe(block) + " runs for all values of its axes", block,
                "let the axes have the domains that the loops give them");
}

Result<ReindexRequest> check(const State& state, const ReIndex& reindex) {
  TW_TRY(block, state.find(reindex.block));
  const Tree& tree = *block.tree;
  ReindexRequest request{block, tree[block.at].scope, 0, {}, false, {}, {}, {}};
  if (request.scope == Tree::kNone)
    return refuse("reindex/P1", "the root block has no axes", block, "name a block inside of it");
  TW_TRY(chosen, touched_position(reindex.buffer, block, "reindex/P1"));
  std::tie(request.reads, request.position) = chosen;
  request.buffer = (request.reads ? block.block().reads : block.block().writes)[request.position]->buffer;
  TW_TRY(indices, only_element(block, request.buffer, "reindex/P2"));
  arith::Analyzer analyzer;
  for (const Ref<IterVar>& axis : block.block().iter_vars) analyzer.bind(axis->var, axis->dom);
  for (const Expr& index : indices) {
    Expr simple = analyzer.simplify(index);
    request.indices.push_back(simple.is<IntImm>() ? index : simple);
  }
  request.axes = axes_used(block.block(), request.indices);
  int at = block.at;
  while (tree[tree[at].parent].is_loop && tree.children(tree[at].parent).size() == 1) at = tree[at].parent;
  if (!CopyPlace{request.scope, at, true}.is_outside_loops(tree)) {
    return refuse("reindex/P3", describe(block) + " is not alone in the loops around it", block,
                  "reindex before other blocks are moved under its loops");
  }
  TW_RETURN_IF_ERROR(check_values(state, request));
  request.condition = condition_of_no_loop(tree, block.at);
  if (request.reads) {
    Expr written = written_condition(tree, request.scope, block.at, request.buffer, {block.at},
                                     box_of_axes(block.block(), request.indices));
    if (!written.defined()) return refuse_unwritten(block, request.buffer, "reindex/P5");
    request.condition = logical_and(request.condition, written);
  }
  return request;
}

}  // namespace

Result<Plan> plan(const State& state, const ReIndex& reindex) {
  TW_TRY(request, check(state, reindex));
  const Tree& tree = *request.block.tree;
  const Block& block = request.block.block();
  const Ref<Buffer>& buffer = request.buffer;
  std::vector<Expr> shape, own, mine;
  std::vector<Ref<IterVar>> axes;
  VarMap renamed;
  for (size_t i : request.axes) {
    const IterVar& axis = *block.iter_vars[i];
    shape.push_back(axis.dom->min + axis.dom->extent);
    Ref<Var> v = var("v" + std::to_string(axes.size()), axis.var.dtype());
    axes.push_back(make<IterVar>({.dom = axis.dom, .var = v, .iter_type = IterType::kDataPar, .thread_tag = ""}));
    renamed.emplace(axis.var, v);
    own.push_back(axis.var);
    mine.push_back(v);
  }
  Ref<Buffer> cache = decl_buffer(std::move(shape), buffer->dtype, buffer->name + "_reindex", buffer->scope());
  Element outside{buffer, {}}, inside{cache, mine};
  for (const Expr& index : request.indices) outside.indices.push_back(substitute(index, renamed));
  const std::string& written = (request.reads ? cache : buffer)->name;
  Ref<Block> copy = request.reads ? copying_block(axes, outside, inside, written + "_reindex")
                                  : copying_block(axes, inside, outside, written + "_reindex");
  std::vector<std::pair<Ref<Var>, Ref<Range>>> loops;
  std::vector<Expr> values;
  for (const Ref<IterVar>& axis : axes) {
    loops.emplace_back(var("ax" + std::to_string(loops.size()), axis->var.dtype()), axis->dom);
    values.push_back(loops.back().first);
  }
  Stmt nest = make<BlockRealize>({.iter_values = std::move(values), .predicate = request.condition, .block = copy});
  for (const auto& [v, domain] : reversed(loops)) {
    For loop;
    loop.loop_var = v;
    loop.min = domain->min;
    loop.extent = domain->extent;
    loop.body = std::move(nest);
    nest = make(std::move(loop));
  }

  TW_RETURN_IF_ERROR(require_kept_shape(tree, request.scope, cache, "reindex/P5"));
  int top = request.block.at;
  while (tree[tree[top].parent].is_loop) top = tree[top].parent;
  TreeEdit edit(tree);
  request.reads ? edit.insert_before(top, std::move(nest)) : edit.insert_after(top, std::move(nest));
  edit.change_block(request.scope, [&](Block& scope) { scope.alloc_buffers.push_back(cache); });
  edit.change_realize(request.block.at,
                      [&](BlockRealize& realize) { realize.block = at_element(realize.block, buffer, cache, own); });
  Plan plan = give_loops(request.block.func, edit.finish(), {});
  const Tree& after = Tree::of(plan.root);
  int copier = after.block(copy->id.value), changed = after.block(block.id.value);
  auto obstacle = request.reads ? analysis::why_inputs_incomplete(after, copier)
                                : analysis::why_init_not_first(after, request.scope, changed);
  if (!obstacle) {
    obstacle = request.reads ? analysis::why_not_covered(after, copier, changed, cache)
                             : analysis::why_not_covered(after, changed, copier, cache);
  }
  if (obstacle)
    return refuse("reindex/P5", *obstacle, "reindex before the loops of the writer and the readers are changed");
  TW_RETURN_IF_ERROR(recheck_execution(after, copier, "reindex/P5"));
  TW_RETURN_IF_ERROR(recheck_execution(after, changed, "reindex/P5"));
  plan.outputs.push_back(Handle::block(request.block.func, *copy));
  ReIndex recorded = reindex;
  recorded.buffer.kind = request.reads ? "read" : "write";
  recorded.buffer.index = request.position;
  plan.recorded = std::move(recorded);
  return plan;
}

}  // namespace tilewright::schedule
