// Reduce each iteration of a loop by itself into an element of its own, then reduce these.
//
//   Before                                After  sch.rfactor(k_1, 0)
//   for i, k_0, k_1 in T.grid(4, 2, 8):   B_rf = T.alloc_buffer((8, 4))
//     with T.block("B"):                  for i, k_0, k_1 in T.grid(4, 2, 8):
//       vi = T.axis.spatial(4, i)           with T.block("B_rf"):
//       vk = T.axis.reduce(16,                vk_1, vi, vk_0 = T.axis.remap("SSR", [k_1, i, k_0])
//         k_0 * 8 + k_1)                      with T.init():
//       with T.init():                          B_rf[vk_1, vi] = 0.0
//         B[vi] = 0.0                         B_rf[vk_1, vi] = B_rf[vk_1, vi] + A[vi, vk_0 * 8 + vk_1]
//       B[vi] = B[vi] + A[vi, vk]         for i, k_1 in T.grid(4, 8):
//                                           with T.block("B"):
//                                             vk_1, vi = T.axis.remap("RS", [k_1, i])
//                                             with T.init():
//                                               B[vi] = 0.0
//                                             B[vi] = B[vi] + B_rf[vk_1, vi]
//
// The steps of each element are the same ones, in groups: what analysis/reducer.h says of the operation makes the
// results agree. The first step of a group runs its init, which P8 checks for both blocks. Where the loops go beyond
// the reduction's domain, as those of a split with a remainder, a group takes the start of the reduction for these
// steps.
//
// A block without init, which adds to elements that have a value, keeps that value, and its loops may be of lengths
// that data say, as those of a sparse matrix are:
//
//   Before                                  After  sch.rfactor(p_1, 0)
//   for p_0, p_1 in T.grid(                 for p_1 in range(4):
//       (P[1] - P[0] + 3) // 4, 4):           with T.block("B_rf_init"):
//     with T.block("B"):                        vp_1 = T.axis.spatial(4, p_1)
//       vp = T.axis.reduce(                     B_rf[vp_1] = 0.0
//         P[1] - P[0], p_0 * 4 + p_1)       for p_0, p_1 in T.grid((P[1] - P[0] + 3) // 4, 4):
//       T.where(p_0 * 4 + p_1 <               with T.block("B_rf"):
//         P[1] - P[0])                          vp_1 = T.axis.spatial(4, p_1)
//       B[0] = B[0] + A[vp]                     vp_0 = T.axis.reduce((P[1] - P[0] + 3) // 4, p_0)
//                                               T.where(p_0 * 4 + p_1 < P[1] - P[0])
//                                               B_rf[vp_1] = B_rf[vp_1] + A[vp_0 * 4 + vp_1]
//                                           for p_1 in range(4):
//                                             with T.block("B"):
//                                               vp_1 = T.axis.reduce(4, p_1)
//                                               B[0] = B[0] + B_rf[vp_1]
//
// Each of its steps is one of the new block, on the same condition. An element without steps gets what is neutral.
//
// A block whose steps add to elements that data select is factored by rfactor_scattered.cc.
//
// Requires  P1 one block is below the loop, a reduction block, or one that accumulates
//           P2 the loop is serial
//           P3 it drives reduction axes only, and no loop drives axes of both kinds; constant bounds of those that
//              reduce
//           P4 the block comes first below its outermost loop, and below the outermost of the loops that reduce stands
//              nothing else
//           P5 the operation is known, and the init is neutral in it; of an argmax or argmin that keeps the last of
//              equal elements, the loop is the outermost one of the reduction, and all steps run
//           P6 factor_axis is a place among the dimensions of what the block writes
//           P7 no other block writes its buffers, none before reads them; what it reads is complete before the loops
//           P8 the first step surely runs; both blocks reduce each element exactly once, beginning with the init;
//              consumers see the same
//           P9 parallel loops around stay independent

#include "schedule/primitives/rfactor.h"
#include "analysis/axis_condition.h"
#include "analysis/block_facts.h"
#include "analysis/isolation.h"
#include "analysis/kept_bounds.h"
#include "analysis/reducer.h"
#include "analysis/scope.h"
#include "analysis/two_names.h"
#include "ir/build.h"
#include "ir/conjunction.h"
#include "ir/substitute.h"
#include "ir/traverse.h"
#include "schedule/edit.h"
#include "schedule/inits.h"
#include "schedule/inline.h"
#include "schedule/kept_shape.h"
#include "schedule/redeclare.h"
#include "schedule/relocate.h"
#include "schedule/rfactor_scattered.h"
#include "schedule/run_condition.h"
#include "support/ranges.h"

namespace tilewright::schedule {
namespace {

Result<ReductionChain> find_chain(const Place& loop) {
  const Tree& tree = *loop.tree;
  std::vector<int> blocks = tree.child_blocks(loop.at);
  if (blocks.size() != 1) {
    return refuse("rfactor/P1",
                  "below " + describe(loop) + " stand " + std::to_string(blocks.size()) + " blocks instead of one",
                  loop, "compute the others elsewhere first");
  }
  ReductionChain chain{{loop.func, loop.tree, blocks[0]}, loop, tree.loops_above(blocks[0]), {}};
  const auto& facts = analysis::BlockFacts::of(tree.block_ref(blocks[0]));
  chain.accumulates = !tree.block_at(blocks[0]).init.defined() &&
                      ((facts.role == analysis::BlockRole::kUpdate && facts.why.empty()) || facts.scatters);
  if (facts.role != analysis::BlockRole::kReduction && !chain.accumulates) {
    return refuse("rfactor/P1",
                  describe(chain.block) + " is not a reduction block" +
                      (facts.why.empty() ? std::string(": it has no init") : ": " + facts.why),
                  chain.block, "name loops of a block with T.init()");
  }
  if (chain.accumulates) {
    if (auto obstacle = analysis::why_two_names(tree, blocks[0])) {
      return refuse("rfactor/P1", *obstacle, "let the block use one of these buffers alone");
    }
    if (auto obstacle = analysis::why_not_isolated(tree, blocks[0])) {
      return refuse("rfactor/P1", *obstacle, "bind an axis to the loop, and use the axis inside");
    }
  } else {
    TW_RETURN_IF_ERROR(require_inits_run(chain.block, "rfactor/P8"));
  }
  if (loop.loop().kind != ForKind::kSerial) {
    return refuse("rfactor/P2", describe(loop) + " is not serial", loop,
                  "factor the loop first, then say who runs the iterations");
  }
  TW_RETURN_IF_ERROR(classify_loops(chain));
  TW_RETURN_IF_ERROR(check_location(chain));
  return chain;
}

/// The two blocks and the buffers between them.
class Factoring {
 public:
  Factoring(const ReductionChain& chain, const analysis::Reducer& reducer, size_t position)
      : chain_(chain), reducer_(reducer), position_(position), realize_(*chain.block.tree->realize_at(chain.block.at)) {
    const For& loop = chain.loop.loop();
    for (const Ref<Buffer>& buffer : reducer.buffers) partial_.push_back(partial_buffer(buffer, position, loop.extent));
  }

  const std::vector<Ref<Buffer>>& partial() const { return partial_; }
  const Ref<Block>& partial_block() const { return partial_block_; }

  /// Copies of all loops around BLOCK_rf.
  Stmt partial_nest() {
    const VarMap loop_vars = copied_loop_vars(chain_);
    VarMap axes, as_axes;
    Block block;
    std::vector<Expr> values;
    auto add = [&](const Ref<IterVar>& made, const Expr& value) {
      block.iter_vars.push_back(made);
      values.push_back(substitute(value, loop_vars));
    };
    const Ref<Var>& factored = chain_.loop.loop().loop_var;
    Ref<Var> lane = lane_axis(as_axes, factored, IterType::kDataPar, add);
    bool reduces = false;
    std::vector<bool> opened = axes_of_new_block(chain_);
    for (size_t i : indices_of(realize_.iter_values)) {
      const Ref<IterVar>& old = realize_.block->iter_vars[i];
      const Expr& value = realize_.iter_values[i];
      if (!opened[i]) {
        Ref<Var> v = make<Var>(*old->var, old->var.span());
        axes.emplace(old->var, v);
        add(axis(v, old->dom, old->iter_type), value);
        reduces |= analysis::is_reduction_axis(old);
        continue;
      }
      // Each loop becomes an axis.
      for (size_t l = 0; l < chain_.loops.size(); ++l) {
        const Ref<Var>& loop_var = chain_.at(l).loop_var;
        if (!uses_var(value, loop_var) || as_axes.count(loop_var)) continue;
        lane_axis(as_axes, loop_var, IterType::kCommReduce, add);
        reduces = true;
      }
      axes.emplace(old->var, cast(old->var.dtype(), substitute(value, as_axes)));
    }
    std::vector<Expr> indices, operands;
    for (const Expr& index : reducer_.indices) indices.push_back(substitute(index, axes));
    insert_at(indices, position_, lane_index(lane));
    Expr condition = chain_.accumulates ? realize_.predicate : bool_imm(true), inside = bool_imm(true);
    for (const Expr& term : conjuncts(realize_.predicate)) {
      if (!chain_.accumulates) divide_term(term, as_axes, axes, condition, inside);
    }
    for (size_t i : indices_of(reducer_.operands)) {
      Expr operand = substitute(reducer_.operands[i], axes);
      if (!is_true(inside)) operand = if_then_else(inside, operand, cast(operand.dtype(), reducer_.starts[i]));
      operands.push_back(std::move(operand));
    }
    block.name_hint = realize_.block->name_hint + "_rf";
    block.annotations = realize_.block->annotations;
    for (const Ref<BufferRegion>& read : realize_.block->reads) block.reads.push_back(moved(read, axes, lane));
    for (const Ref<BufferRegion>& write : realize_.block->writes) block.writes.push_back(moved(write, axes, lane));
    if (chain_.accumulates) {
      Expr element = load(partial_[0], indices);
      block.body = store(partial_[0], reducer_.steps[0].step(element, operands[0]), indices);
    } else if (reduces) {
      block.init = analysis::store_all(partial_, reducer_.starts, indices);
      block.body = analysis::combine_into(reducer_, partial_, indices, operands);
    } else {
      block.body = analysis::store_all(partial_, operands, indices);
    }
    partial_block_ = make(std::move(block), realize_.block.span());
    Stmt nest = make<BlockRealize>(
        {.iter_values = std::move(values), .predicate = substitute(condition, loop_vars), .block = partial_block_});
    return in_copied_loops(chain_, loop_vars, std::move(nest));
  }

  /// For a block that accumulates: sets the partial results to the identity, in copies of the remaining loops.
  Stmt neutral_nest() {
    const VarMap loop_vars = copied_loop_vars(chain_);
    VarMap axes, none;
    Block block;
    std::vector<Expr> values;
    auto add = [&](const Ref<IterVar>& made, const Expr& value) {
      block.iter_vars.push_back(made);
      values.push_back(substitute(value, loop_vars));
    };
    Ref<Var> lane = lane_axis(none, chain_.loop.loop().loop_var, IterType::kDataPar, add);
    for (size_t i : indices_of(realize_.iter_values)) {
      const Ref<IterVar>& old = realize_.block->iter_vars[i];
      if (!analysis::is_data_parallel(old)) continue;
      Ref<Var> v = make<Var>(*old->var, old->var.span());
      axes.emplace(old->var, v);
      add(axis(v, old->dom, old->iter_type), realize_.iter_values[i]);
    }
    std::vector<Expr> indices;
    for (const Expr& index : reducer_.indices) indices.push_back(substitute(index, axes));
    insert_at(indices, position_, lane_index(lane));
    block.name_hint = realize_.block->name_hint + "_rf_init";
    for (const Ref<BufferRegion>& write : realize_.block->writes) block.writes.push_back(moved(write, axes, lane));
    block.body = analysis::store_all(partial_, reducer_.starts, indices);
    Stmt nest = make<BlockRealize>({.iter_values = std::move(values),
                                    .predicate = substitute(of_elements(), loop_vars),
                                    .block = with_reads_of_indices(std::move(block), realize_.block.span())});
    return in_copied_loops(chain_, loop_vars, std::move(nest), true);
  }

  /// The block itself, which combines the partial results, under the loops that are left of the outermost one that
  /// reduces.
  Stmt final_nest() {
    const Ref<Var>& factored = chain_.loop.loop().loop_var;
    VarMap none;
    Block block = *realize_.block;
    block.iter_vars.clear();
    std::vector<Expr> values;
    Ref<Var> lane = lane_axis(none, factored, IterType::kCommReduce, [&](const Ref<IterVar>& made, const Expr& value) {
      block.iter_vars.push_back(made);
      values.push_back(value);
    });
    for (size_t i : indices_of(realize_.iter_values)) {
      if (!analysis::is_data_parallel(realize_.block->iter_vars[i])) continue;
      block.iter_vars.push_back(realize_.block->iter_vars[i]);
      values.push_back(realize_.iter_values[i]);
    }
    std::vector<Expr> indices = reducer_.indices;
    insert_at(indices, position_, lane_index(lane));
    std::vector<Expr> operands;
    block.reads.clear();
    for (const Ref<Buffer>& buffer : partial_) {
      operands.push_back(load(buffer, indices));
      BufferRegion read{buffer, {}};
      for (const Expr& index : indices) read.region.push_back(range(index, one(index.dtype())));
      block.reads.push_back(make(std::move(read)));
    }
    if (chain_.accumulates) {
      for (const Ref<BufferRegion>& write : block.writes) block.reads.push_back(write);
    } else {
      block.init = analysis::store_all(reducer_.buffers, reducer_.starts, reducer_.indices);
    }
    block.body = analysis::combine_into(reducer_, reducer_.buffers, reducer_.indices, operands);
    Expr condition = chain_.accumulates ? of_elements() : logical_and(left_of(realize_.predicate), has_steps());
    Stmt nest = make<BlockRealize>({.iter_values = std::move(values),
                                    .predicate = std::move(condition),
                                    .block = with_reads_of_indices(std::move(block), realize_.block.span())},
                                   chain_.block.node().span());
    for (size_t i = chain_.loops.size(); i-- > chain_.outermost_reduction;) {
      if (chain_.is_factored_out(i)) continue;
      For copy = chain_.at(i);
      copy.body = std::move(nest);
      nest = make(std::move(copy), chain_.block.tree->stmt(chain_.loops[i]).span());
    }
    return nest;
  }

 private:
  /// An axis v<loop> over the range of the loop.
  template <class Add>
  Ref<Var> lane_axis(VarMap& as_axes, const Ref<Var>& loop_var, IterType type, const Add& add) {
    const For& loop = chain_.block.tree->for_at(chain_.block.tree->loop(loop_var));
    Ref<Var> v = var("v" + loop_var->name_hint, loop_var.dtype());
    as_axes.emplace(loop_var, v);
    add(axis(v, range(loop.min, loop.extent), type), loop_var);
    return v;
  }
  Expr lane_index(const Ref<Var>& lane) const { return lane - chain_.loop.loop().min; }

  /// A declared region in terms of the new axes; one of a result is of its partial ones.
  Ref<BufferRegion> moved(const Ref<BufferRegion>& old, const VarMap& axes, const Ref<Var>& lane) const {
    BufferRegion region = *substitute(old, axes);
    for (size_t i : indices_of(partial_)) {
      if (old->buffer != reducer_.buffers[i]) continue;
      region.buffer = partial_[i];
      Expr index = lane_index(lane);
      insert_at(region.region, position_, range(index, one(index.dtype())));
    }
    return make(std::move(region));
  }

  /// A term of the condition about loops that became axes, which keeps the last of split steps inside, or compares them
  /// with the other axes, becomes part of `inside` in terms of `axes`: steps beyond are neutral. Others stay
  /// conditions.
  void divide_term(const Expr& term, const VarMap& as_axes, const VarMap& axes, Expr& condition, Expr& inside) const {
    bool of_axes = false, of_others = false;
    for (size_t i : indices_of(chain_.loops)) {
      if (!uses_var(term, chain_.at(i).loop_var)) continue;
      (as_axes.count(chain_.at(i).loop_var) ? of_axes : of_others) = true;
    }
    Expr asked;
    if (of_axes && !of_others) asked = substitute(term, as_axes);
    if (of_axes && of_others) asked = compared(term, axes);
    if (asked.defined()) {
      inside = logical_and(inside, asked);
    } else {
      condition = logical_and(condition, term);
    }
  }

  /// A term that compares a reduction with axes that stay, in terms of the new axes; null where it may also be what
  /// keeps one of these in its domain.
  Expr compared(const Expr& term, const VarMap& axes) const {
    const Tree& tree = *chain_.block.tree;
    Expr asked = analysis::condition_on_axes(term, tree, chain_.block.at);
    if (!asked.defined()) return {};
    auto analyzer = analysis::analyzer_above(tree, tree[chain_.block.at].parent);
    const std::vector<bool> opened = axes_of_new_block(chain_);
    bool compares = false, keeps = false;
    for (size_t i : indices_of(opened)) {
      const Ref<IterVar>& axis = realize_.block->iter_vars[i];
      const Expr &value = realize_.iter_values[i], &min = axis->dom->min;
      if (opened[i]) {
        compares |= uses_var(asked, axis->var);
      } else {
        keeps |= !analyzer.can_prove(ge(value, min)) || !analyzer.can_prove(lt(value, min + axis->dom->extent));
      }
    }
    return compares && !keeps ? substitute(asked, axes) : Expr();
  }

  /// The terms of the condition that no loop of the reduction takes part in.
  Expr of_elements() const {
    Expr condition = bool_imm(true);
    for (const Expr& term : conjuncts(realize_.predicate)) {
      bool reduces = false;
      for (size_t i : indices_of(chain_.loops)) {
        reduces |= (chain_.reduces[i] || chain_.loops[i] == chain_.loop.at) && uses_var(term, chain_.at(i).loop_var);
      }
      if (!reduces) condition = logical_and(condition, term);
    }
    return condition;
  }

  /// Whether the loops that are gone have iterations: what sums over nothing stays as it is.
  Expr has_steps() const {
    auto analyzer = analysis::analyzer_above(*chain_.block.tree, chain_.block.at);
    std::vector<Expr> extents;
    for (size_t i : indices_of(chain_.loops)) {
      if (chain_.is_factored_out(i)) extents.push_back(chain_.at(i).extent);
    }
    return all_positive(extents, analyzer);
  }

  /// The terms of the condition that know nothing of loops that reduce.
  Expr left_of(const Expr& predicate) const {
    if (const And* both = predicate.as<And>()) return logical_and(left_of(both->a), left_of(both->b));
    const Expr left = substitute(predicate, analysis::units_of(analysis::inputs_of(*chain_.block.tree, chain_.loops)));
    bool reduces = false;
    for (size_t i : indices_of(chain_.loops)) {
      bool gone = chain_.is_factored_out(i) || chain_.loops[i] == chain_.loop.at;
      if (!gone || !uses_var(predicate, chain_.at(i).loop_var)) continue;
      if (uses_var(left, chain_.at(i).loop_var)) return bool_imm(true);
      reduces = true;
    }
    return reduces ? left : predicate;
  }

  const ReductionChain& chain_;
  const analysis::Reducer& reducer_;
  size_t position_;
  const BlockRealize& realize_;
  std::vector<Ref<Buffer>> partial_;
  Ref<Block> partial_block_;
};

Status check_after(const ReductionChain& chain, const analysis::Scope& scope, int self, const Tree& after,
                   int partial) {
  int block = after.block(chain.block.block().id.value);
  if (auto obstacle = analysis::why_bounds_change(after, partial, block))
    return refuse("rfactor/P8", *obstacle, "copy the bound to a buffer of its own before the loops");
  if (chain.accumulates) {
    // The nest of the block is the only thing that three others take the place of, step by step.
    for (int at : {partial, block}) TW_RETURN_IF_ERROR(recheck_execution(after, at, "rfactor/P9"));
    return Ok{};
  }
  for (int at : {partial, block}) {
    const auto& facts = analysis::BlockFacts::of(after.block_ref(at));
    if (facts.role != analysis::BlockRole::kReduction && facts.role != analysis::BlockRole::kComplete) {
      return refuse("rfactor/P8", describe(chain.block) + " would be no reduction: " + facts.why, chain.block,
                    "factor before the loops of the reduction are changed");
    }
    int from = after[after.loops_above(at).front()].parent;
    if (auto obstacle = analysis::why_irregular_reduction(after, from, at))
      return refuse("rfactor/P8", *obstacle, "factor before the loops of the reduction are changed");
    if (auto obstacle = analysis::why_inputs_incomplete(after, at)) {
      return refuse(at == partial ? "rfactor/P7" : "rfactor/P8", *obstacle,
                    "factor before the loops of the reduction are changed");
    }
    TW_RETURN_IF_ERROR(recheck_execution(after, at, "rfactor/P9"));
  }
  for (int child : scope.consumers(self)) {
    int consumer = scope.position(after, child);
    for (const Ref<BufferRegion>& write : chain.block.block().writes) {
      if (auto obstacle = analysis::why_not_covered(after, block, consumer, write->buffer)) {
        return refuse("rfactor/P8", *obstacle, "factor before the loops of the reduction are changed");
      }
    }
  }
  return Ok{};
}

/// The init runs with the first step, and only with it: that step has to run for each element, as it will when the
/// partial results are combined on no condition about the loops that are gone.
Status check_first_step(const ReductionChain& chain) {
  const Tree& tree = *chain.block.tree;
  const Expr& predicate = tree.realize_at(chain.block.at)->predicate;
  auto analyzer = analysis::analyzer_above(tree, chain.block.at);
  VarMap first;
  const VarMap units = analysis::units_of(analysis::inputs_of(tree, chain.loops));
  for (size_t i : indices_of(chain.loops)) {
    if (!chain.is_factored_out(i) && chain.loops[i] != chain.loop.at) continue;
    const For& loop = chain.at(i);
    first.emplace(loop.loop_var, loop.min);
    analyzer.assume(gt(loop.extent, 0));
  }
  for (const Expr& part : conjuncts(predicate)) {
    const Expr term = substitute(part, units);
    auto is_gone = [&](const Ref<Var>& v) { return first.count(v) > 0; };
    if (!uses_any_var(term, is_gone) || analyzer.can_prove(substitute(term, first))) continue;
    return refuse("rfactor/P8",
                  "it cannot be proved that the first step of " + describe(chain.block) +
                      ", which begins the reduction, runs for each element: that is on a condition",
                  chain.block, "choose between a value and a neutral one by T.if_then_else() in its body");
  }
  return Ok{};
}

/// The loops that are left come to each element of the block once: there the partial results are set, and added.
Status check_elements(const ReductionChain& chain, const analysis::Reducer& reducer) {
  const Tree& tree = *chain.block.tree;
  const BlockRealize& realize = *tree.realize_at(chain.block.at);
  std::vector<int> left;
  bool is_once = true;
  for (size_t i : indices_of(chain.loops)) {
    if (chain.reduces[i] || chain.loops[i] == chain.loop.at) continue;
    left.push_back(chain.loops[i]);
  }
  std::vector<Expr> values;
  for (size_t i : indices_of(realize.iter_values)) {
    const Ref<IterVar>& axis = realize.block->iter_vars[i];
    if (!analysis::is_data_parallel(axis)) continue;
    values.push_back(realize.iter_values[i]);
    auto is_axis = [&](const Expr& index) { return index == axis->var; };
    is_once &= is_const_int(axis->dom->extent, 1) || any_of(reducer.indices, is_axis);
  }
  auto analyzer = analysis::analyzer_above(tree, tree[chain.loops.front()].parent);
  arith::IterMapResult map;
  if (is_once && (left.empty() ||
                  analysis::is_one_to_one(values, analysis::inputs_of(tree, left), bool_imm(true), analyzer, &map))) {
    return Ok{};
  }
  return refuse("rfactor/P8",
                "it cannot be proved that " + describe(chain.block) + " comes to each element once but for its steps",
                chain.block, "bind each of its axes to a loop, and index what it writes by these axes");
}

/// Checks a reducer that keeps the last of equal pairs: groups must be combined in the order of their steps, and must
/// not contain initial values, which could replace an equal pair.
Status check_order_of_groups(const ReductionChain& chain, const analysis::Reducer& reducer) {
  if (!reducer.keeps_last()) return Ok{};
  const Expr& predicate = chain.block.tree->realize_at(chain.block.at)->predicate;
  bool is_limited = false;
  for (size_t i : indices_of(chain.loops)) {
    is_limited |= (chain.reduces[i] || chain.loops[i] == chain.loop.at) && uses_var(predicate, chain.at(i).loop_var);
  }
  if (!is_limited && chain.loops[chain.outermost_reduction] == chain.loop.at) return Ok{};
  return refuse("rfactor/P5",
                describe(chain.block) + " keeps the last of equal elements, " +
                    (is_limited ? "and steps of the reduction run on a condition"
                                : "and " + describe(chain.loop) + " is not the outermost loop of its reduction"),
                {chain.loop.node(), chain.block.node()},
                is_limited ? "split the reduction by a factor that divides it"
                           : "factor the outermost loop of the reduction, or let the larger index decide between equal "
                             "elements");
}

}  // namespace

Result<Plan> plan(const State& state, const RFactor& rfactor) {
  TW_TRY(loop, state.find(rfactor.loop));
  TW_TRY(chain, find_chain(loop));
  if (is_scattered(chain)) return factor_scattered(chain, rfactor.factor_axis);
  const Tree& tree = *loop.tree;
  analysis::FoundReducer reduction = chain.accumulates ? analysis::find_accumulation(chain.block.block())
                                                       : analysis::find_reducer(chain.block.block());
  if (!reduction.reducer) {
    return refuse(
        "rfactor/P5", describe(chain.block) + " cannot be factored: " + reduction.why_not, chain.block,
        "sums, products, min, max, and, or are known, tuples of several such reductions, and argmax and argmin, "
        "whose parts are bound before the first store: `i = T.Select(...)`, `v = T.Select(...)`, "
        "`I[vi] = i`, `V[vi] = v`");
  }
  TW_RETURN_IF_ERROR(check_order_of_groups(chain, *reduction.reducer));
  auto rank = static_cast<int64_t>(reduction.reducer->indices.size());
  if (rfactor.factor_axis < -rank - 1 || rfactor.factor_axis > rank) {
    return refuse("rfactor/P6",
                  "factor_axis " + std::to_string(rfactor.factor_axis) + " is not between " +
                      std::to_string(-rank - 1) + " and " + std::to_string(rank),
                  chain.block, "0 puts the new axis first, -1 last");
  }
  auto position = static_cast<size_t>(rfactor.factor_axis < 0 ? rfactor.factor_axis + rank + 1 : rfactor.factor_axis);
  int scope_at = tree[chain.block.at].scope;
  const analysis::Scope& scope = analysis::Scope::of(tree, scope_at);
  int self = scope.child(chain.block.block().id.value);
  if (!chain.accumulates) {
    TW_RETURN_IF_ERROR(check_only_writer(chain.block, scope, self, "rfactor/P7", false));
    int from = tree[chain.loops.front()].parent;
    if (auto obstacle = analysis::why_irregular_reduction(tree, from, chain.block.at)) {
      return refuse("rfactor/P8", *obstacle, "factor before the loops of the reduction are changed");
    }
    TW_RETURN_IF_ERROR(check_first_step(chain));
  } else {
    TW_RETURN_IF_ERROR(check_elements(chain, *reduction.reducer));
  }
  Factoring factor(chain, *reduction.reducer, position);
  for (const Ref<Buffer>& buffer : factor.partial()) {
    TW_RETURN_IF_ERROR(require_kept_shape(tree, scope_at, buffer, "rfactor/P8"));
  }
  TreeEdit edit(tree);
  if (chain.accumulates) edit.insert_before(chain.loops.front(), factor.neutral_nest());
  edit.insert_before(chain.loops.front(), factor.partial_nest());
  edit.replace(chain.loops[chain.outermost_reduction], factor.final_nest());
  edit.change_block(scope_at, [&](Block& outer) {
    for (const Ref<Buffer>& buffer : factor.partial()) outer.alloc_buffers.push_back(buffer);
  });
  Ref<Block> root = with_regions_around(tree, edit.finish(), factor.partial_block()->id.value);
  Plan plan = give_loops(chain.block.func, std::move(root), {});
  const Tree& after = Tree::of(plan.root);
  TW_RETURN_IF_ERROR(check_after(chain, scope, self, after, after.block(factor.partial_block()->id.value)));
  plan.outputs.push_back(Handle::block(chain.block.func, *factor.partial_block()));
  return plan;
}

}  // namespace tilewright::schedule
