// Reduce each iteration of a loop into a copy of the result, where data select the elements to which steps add; then
// add the copies.
//
//   Before                                After  sch.rfactor(p_0, 0)
//   for p_0, p_1 in T.grid(2, 4):         Y_rf = T.alloc_buffer((2, 5))
//     with T.block("B"):                  for p_0, ax0 in T.grid(2, 5):
//       vp = T.axis.reduce(8,               with T.block("B_rf_init"):
//         p_0 * 4 + p_1)                      vp_0, v0 = T.axis.remap("SS", [p_0, ax0])
//       Y[R[vp]] = Y[R[vp]] + A[vp]           Y_rf[vp_0, v0] = -0.0
//                                         for p_0, p_1 in T.grid(2, 4):
//                                           with T.block("B_rf"):
//                                             vp_0, vp_1 = T.axis.remap("SR", [p_0, p_1])
//                                             Y_rf[vp_0, R[vp_0 * 4 + vp_1]] =
//                                               Y_rf[vp_0, R[vp_0 * 4 + vp_1]] + A[vp_0 * 4 + vp_1]
//                                         for ax0, p_0 in T.grid(5, 2):
//                                           with T.block("B"):
//                                             v0, vp_0 = T.axis.remap("SR", [ax0, p_0])
//                                             Y[v0] = Y[v0] + Y_rf[vp_0, v0]
//
// The block may hold others, of which one adds, as the columns of a matrix in CSC do: all of it becomes the new block,
// in terms of the copy. The copies start from what is neutral, so that an element to which no step adds keeps its
// value, the sign of a zero included.
//
// Requires, beside P2, P3, P4, P6 and P9 of rfactor.cc:
//           P5 all that the block does with the result is one operation, step by step
//           P8 the result is a parameter, or a block before writes all of it: the last block reads each element
#include "schedule/rfactor_scattered.h"

#include "analysis/accesses.h"
#include "analysis/block_facts.h"
#include "analysis/scope.h"
#include "ir/buffer_domain.h"
#include "ir/build.h"
#include "ir/reduction_step.h"
#include "ir/substitute.h"
#include "ir/traverse.h"
#include "schedule/edit.h"
#include "schedule/kept_shape.h"
#include "schedule/redeclare.h"
#include "schedule/relocate.h"
#include "support/ranges.h"

namespace tilewright::schedule {
namespace {

/// The operation by which a block changes its result.
struct ScatteredSteps {
  Ref<Buffer> result;
  std::optional<ReductionStep> step;
  std::string why_not;
};

ScatteredSteps find_steps(const Ref<Block>& block) {
  ScatteredSteps steps;
  if (block->writes.size() != 1) return {{}, {}, "it writes several buffers"};
  steps.result = block->writes[0]->buffer;
  const Ref<Var>& data = steps.result->data;
  int stores = 0, loads = 0;
  auto say = [&](const char* why) {
    if (steps.why_not.empty()) steps.why_not = why;
  };
  visit(
      block,
      [&](const Ref<BufferStore>& store) {
        if (store->buffer->data == data) {
          auto step = ReductionStep::of(*store);
          ++stores;
          if (store->buffer != steps.result || !step || step->may_skip_operand()) {
            say("not all of its stores combine an element with a value");
          } else if (steps.step && steps.step->operation() != step->operation()) {
            say("its stores combine elements by different operations");
          } else if (!steps.step) {
            steps.step = std::move(step);
          }
        }
      },
      [&](const Ref<BufferLoad>& load) { loads += load->buffer->data == data; },
      [&](const Ref<MatchBufferRegion>& match) {
        if (match->source->buffer->data == data) say("it has a view of its result");
      },
      [&](const Ref<Call>& call) {
        for (const NodeRef& arg : call->args) {
          if (arg == data) say("it passes a pointer to its result");
        }
      });
  if (!steps.step || loads != stores) say("what it adds to an element depends on elements that it writes");
  return steps;
}

/// The three nests, and the buffer between them.
class Copies {
 public:
  Copies(const ReductionChain& chain, const ScatteredSteps& steps, size_t position)
      : chain_(chain),
        steps_(steps),
        position_(position),
        realize_(*chain.block.tree->realize_at(chain.block.at)),
        copies_(partial_buffer(steps.result, position, chain.loop.loop().extent)) {}

  const Ref<Buffer>& buffer() const { return copies_; }
  const Ref<Block>& partial_block() const { return partial_block_; }

  Stmt neutral_nest() const {
    Nest nest;
    Expr lane = nest.add(copy_of(chain_.loop.loop()), IterType::kDataPar, "v" + name_of_lane());
    std::vector<Expr> indices = nest.add_dimensions(steps_.result->shape);
    insert_at(indices, position_, lane - chain_.loop.loop().min);
    nest.block.name_hint = realize_.block->name_hint + "_rf_init";
    nest.block.writes = {analysis::region_of_element(copies_, indices)};
    nest.block.body = store(copies_, steps_.step->identity(), indices);
    return nest.finish();
  }

  /// Copies of all loops around the block.
  Stmt partial_nest() {
    const VarMap loop_vars = copied_loop_vars(chain_);
    VarMap axes, as_axes;
    Block block = *realize_.block;
    block.iter_vars.clear();
    std::vector<Expr> values;
    auto add = [&](const Ref<IterVar>& made, const Expr& value) {
      block.iter_vars.push_back(made);
      values.push_back(substitute(value, loop_vars));
    };
    auto add_loop = [&](const For& loop, IterType type) {
      Ref<Var> v = var("v" + loop.loop_var->name_hint, loop.loop_var.dtype());
      as_axes.emplace(loop.loop_var, v);
      add(axis(v, range(loop.min, loop.extent), type), loop.loop_var);
      return v;
    };
    const Expr lane = add_loop(chain_.loop.loop(), IterType::kDataPar) - chain_.loop.loop().min;
    const std::vector<bool> opened = axes_of_new_block(chain_);
    for (size_t i : indices_of(opened)) {
      const Ref<IterVar>& old = realize_.block->iter_vars[i];
      const Expr& value = realize_.iter_values[i];
      if (!opened[i]) {
        Ref<Var> v = make<Var>(*old->var, old->var.span());
        axes.emplace(old->var, v);
        add(axis(v, old->dom, old->iter_type), value);
        continue;
      }
      for (size_t l : indices_of(chain_.loops)) {
        const For& loop = chain_.at(l);
        if (uses_var(value, loop.loop_var) && !as_axes.count(loop.loop_var)) add_loop(loop, IterType::kCommReduce);
      }
      axes.emplace(old->var, cast(old->var.dtype(), substitute(value, as_axes)));
    }
    block.name_hint += "_rf";
    block.id = {};
    partial_block_ = in_copies(substitute(make(std::move(block), realize_.block.span()), axes), lane);
    Stmt nest = make<BlockRealize>({.iter_values = std::move(values),
                                    .predicate = substitute(realize_.predicate, loop_vars),
                                    .block = partial_block_});
    return in_copied_loops(chain_, loop_vars, std::move(nest));
  }

  /// The block itself, which adds the copies to each element.
  Stmt final_nest() const {
    Nest nest;
    for (const auto& [key, value] : realize_.block->annotations.entries()) {
      if (key != kBufferDomains) nest.block.annotations.set(key, value);
    }
    std::vector<Expr> element = nest.add_dimensions(steps_.result->shape), indices = element;
    Expr lane = nest.add(chain_.loop.loop(), IterType::kCommReduce, "v" + name_of_lane());
    insert_at(indices, position_, lane - chain_.loop.loop().min);
    nest.block.name_hint = realize_.block->name_hint;
    nest.block.id = realize_.block->id;
    nest.block.reads = {analysis::region_of_element(steps_.result, element),
                        analysis::region_of_element(copies_, indices)};
    nest.block.writes = {analysis::region_of_element(steps_.result, element)};
    nest.block.body =
        store(steps_.result, steps_.step->combine(load(steps_.result, element), load(copies_, indices)), element);
    return nest.finish();
  }

 private:
  /// A block in loops, each of which drives an axis.
  struct Nest {
    std::vector<For> loops;
    std::vector<Expr> values;
    Block block;

    Ref<Var> add(const For& loop, IterType type, std::string name) {
      Ref<Var> v = var(std::move(name), loop.loop_var.dtype());
      block.iter_vars.push_back(axis(v, range(loop.min, loop.extent), type));
      values.push_back(loop.loop_var);
      loops.push_back(loop);
      return v;
    }
    std::vector<Expr> add_dimensions(const std::vector<Expr>& shape) {
      std::vector<Expr> indices;
      for (size_t d : indices_of(shape)) {
        For loop;
        loop.loop_var = var("ax" + std::to_string(d), shape[d].dtype());
        loop.min = zero(shape[d].dtype());
        loop.extent = shape[d];
        indices.push_back(add(loop, IterType::kDataPar, "v" + std::to_string(d)));
      }
      return indices;
    }
    Stmt finish() {
      Stmt nest = make<BlockRealize>(
          {.iter_values = std::move(values), .predicate = bool_imm(true), .block = make(std::move(block))});
      for (For& loop : reversed(loops)) {
        loop.body = std::move(nest);
        nest = make(std::move(loop));
      }
      return nest;
    }
  };

  const std::string& name_of_lane() const { return chain_.loop.loop().loop_var->name_hint; }

  static For copy_of(const For& loop) {
    For copy = loop;
    copy.loop_var = make<Var>(*loop.loop_var, loop.loop_var.span());
    return copy;
  }

  /// The block with a copy in place of the result.
  Ref<Block> in_copies(const Ref<Block>& block, const Expr& lane) const {
    const auto at = static_cast<std::ptrdiff_t>(position_);
    auto access = [&](const auto& old, Rewriter& walk) {
      auto made = *walk.descend(old);
      if (made.buffer == steps_.result) {
        made.buffer = copies_;
        made.indices.insert(made.indices.begin() + at, lane);
      }
      return made;
    };
    return rewrite(
        block,
        [&](const Ref<BufferLoad>& old, Rewriter& walk) -> Expr {
          return make<BufferLoad>(access(old, walk), old.span());
        },
        [&](const Ref<BufferStore>& old, Rewriter& walk) -> Stmt {
          return make<BufferStore>(access(old, walk), old.span());
        },
        [&](const Ref<BufferRegion>& old, Rewriter& walk) -> NodeRef {
          BufferRegion made = *walk.descend(old);
          if (made.buffer == steps_.result) {
            made.buffer = copies_;
            made.region.insert(made.region.begin() + at, range(lane, one(lane.dtype())));
          }
          return make(std::move(made), old.span());
        });
  }

  const ReductionChain& chain_;
  const ScatteredSteps& steps_;
  size_t position_;
  const BlockRealize& realize_;
  Ref<Buffer> copies_;
  Ref<Block> partial_block_;
};

/// The last block reads and writes all elements, also those that no step selects.
Status check_result_is_whole(const ReductionChain& chain, const Ref<Buffer>& result, const Tree& after) {
  const int block = after.block(chain.block.block().id.value);
  const analysis::Scope& scope = analysis::Scope::of(after, after[block].scope);
  for (int writer : scope.writers(result)) {
    const int at = scope.position(after, writer);
    if (at >= block) break;
    const auto& facts = analysis::BlockFacts::of(after.block_ref(at));
    const bool sets = facts.role == analysis::BlockRole::kComplete || facts.role == analysis::BlockRole::kReduction;
    if (sets && !analysis::why_not_covered(after, at, block, result)) return Ok{};
  }
  const auto& allocated = after.block_at(after[block].scope).alloc_buffers;
  const bool is_own = any_of(allocated, [&](const auto& own) { return own == result; });
  if (!is_own) return Ok{};
  return refuse("rfactor/P8", "it cannot be proved that all elements of '" + result->name + "' have a value",
                chain.block, "let one block set all of them first");
}

}  // namespace

bool is_scattered(const ReductionChain& chain) {
  bool found = analysis::BlockFacts::of(chain.block.tree->block_ref(chain.block.at)).scatters;
  if (!chain.block.block().init.defined()) {
    visit(chain.block.block().body,
          [&](const Ref<BlockRealize>& inside) { found |= analysis::BlockFacts::of(inside->block).scatters; });
  }
  return found;
}

Result<Plan> factor_scattered(const ReductionChain& chain, int64_t factor_axis) {
  const Tree& tree = *chain.block.tree;
  const ScatteredSteps steps = find_steps(tree.block_ref(chain.block.at));
  if (!steps.why_not.empty()) {
    return refuse("rfactor/P5", describe(chain.block) + " cannot be factored: " + steps.why_not, chain.block,
                  "let it only add to elements that exist, by one operation");
  }
  const auto rank = static_cast<int64_t>(steps.result->shape.size());
  if (factor_axis < -rank - 1 || factor_axis > rank) {
    return refuse("rfactor/P6",
                  "factor_axis " + std::to_string(factor_axis) + " is not between " + std::to_string(-rank - 1) +
                      " and " + std::to_string(rank),
                  chain.block, "0 puts the new axis first, -1 last");
  }
  Copies copies(chain, steps, static_cast<size_t>(factor_axis < 0 ? factor_axis + rank + 1 : factor_axis));
  const int scope_at = tree[chain.block.at].scope;
  TW_RETURN_IF_ERROR(require_kept_shape(tree, scope_at, copies.buffer(), "rfactor/P8"));
  TreeEdit edit(tree);
  edit.insert_before(chain.loops.front(), copies.neutral_nest());
  edit.insert_before(chain.loops.front(), copies.partial_nest());
  edit.replace(chain.loops.front(), copies.final_nest());
  edit.change_block(scope_at, [&](Block& outer) { outer.alloc_buffers.push_back(copies.buffer()); });
  Ref<Block> root = with_regions_around(tree, edit.finish(), copies.partial_block()->id.value);
  Plan plan = give_loops(chain.block.func, std::move(root), {});
  const Tree& after = Tree::of(plan.root);
  for (uint64_t id : {copies.partial_block()->id.value, chain.block.block().id.value}) {
    TW_RETURN_IF_ERROR(recheck_execution(after, after.block(id), "rfactor/P9"));
  }
  TW_RETURN_IF_ERROR(check_result_is_whole(chain, steps.result, after));
  plan.outputs.push_back(Handle::block(chain.block.func, *copies.partial_block()));
  return plan;
}

}  // namespace tilewright::schedule
