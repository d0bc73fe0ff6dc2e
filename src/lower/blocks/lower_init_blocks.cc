// Turn the initialization of a reduction into statements.
//
//   Before                                    After
//   for i, k, j in T.grid(16, 64, 16):        for i in range(16):
//     with T.block("C"):                        for j in range(16):
//       vi, vk, vj = ... ("SRS", [i, k, j])       with T.block("C_init"):
//       with T.init():                              vi, vj = T.axis.remap("SS", [i, j])
//         C[vi, vj] = 0.0                           C[vi, vj] = 0.0
//       C[vi, vj] += A[vi, vk]                  for k, j in T.grid(64, 16):
//                                                 with T.block("C"):
//                                                   vi, vk, vj = T.axis.remap("SRS", [i, k, j])
//                                                   C[vi, vj] += A[vi, vk]
//
// Where the loops do not allow this, the initialization stays in the block under `if vk == 0`: that is what it means.
//
// The initialization may run before the outermost loop of the reduction when
//   - the loops inside that one belong either to the reduction or to data-parallel axes, and the latter map different
//     iterations to different elements, of which each instance of the block touches its own only;
//   - the first iteration of the reduction's loops runs it, and no other (analysis/reduction_start.h). It is skipped
//     where that iteration does not exist, or a predicate excludes it. But where the reduction may be empty, and
//     nothing else writes the buffer, no read can observe the difference: it runs, if the axes are in their domains;
//   - nothing else under that loop touches what is initialized, and nothing there changes what the initialization
//   reads.
//
// Needs      blocks with axes
// Ensures    no block has an init
// Placement  before axes are replaced by loops: they show which loops belong to the reduction
#include <algorithm>

#include "analysis/block_access_region.h"
#include "analysis/block_facts.h"
#include "analysis/reduction_start.h"
#include "arith/analyzer.h"
#include "ir/annotations.h"
#include "ir/build.h"
#include "ir/substitute.h"
#include "ir/traverse.h"
#include "lower/passes.h"
#include "support/deep_stack.h"
#include "support/ranges.h"

namespace tilewright::lower {
namespace {

/// Different values of the variables, within constant ranges, give different values of `e`: the terms of a sum whose
/// factors leave room for one another.
bool is_injective(const Expr& e, const std::vector<Ref<For>>& loops) {
  arith::Analyzer analyzer;
  VarMap begin;
  for (const Ref<For>& loop : loops) {
    if (!const_int(loop->extent) || !const_int(loop->min)) return false;
    analyzer.bind(loop->loop_var, range(loop->min, loop->extent));
    begin[loop->loop_var] = loop->min;
  }
  Expr base = substitute(e, begin);
  Expr sum = base;
  std::vector<std::pair<int64_t, int64_t>> terms;  // factor, extent
  for (const Ref<For>& loop : loops) {
    VarMap one_step = begin;
    one_step[loop->loop_var] = loop->min + 1;
    auto factor = const_int(analyzer.simplify(substitute(e, one_step) - base));
    if (!factor) return false;
    terms.emplace_back(std::abs(*factor), *const_int(loop->extent));
    sum = sum + cast(e.dtype(), loop->loop_var - loop->min) * *factor;
  }
  if (!analyzer.can_prove_equal(e, sum)) return false;
  std::ranges::sort(terms);
  int64_t reach = 0;
  for (const auto& [factor, extent] : terms) {
    if (factor <= reach) return false;
    reach += factor * (extent - 1);
  }
  return true;
}

/// Resolves data variables to memory: that of a view is its source's.
class Memory {
 public:
  explicit Memory(const Ref<PrimFunc>& func) {
    visit(
        func->body,
        [&](const Ref<MatchBufferRegion>& match) { origin_[match->buffer->data] = match->source->buffer->data; },
        [&](const Ref<LetStmt>& let) {
          if (!let->var.dtype().is_handle()) return;
          visit(let->value, [&](const Ref<Var>& v) {
            if (v.dtype().is_handle()) origin_[let->var] = v;
          });
        });
  }
  NodeRef of(const Ref<Var>& data) const {
    NodeRef at = data;
    while (auto* origin = find_value(origin_, at)) at = *origin;
    return at;
  }

  using Set = std::unordered_set<NodeRef>;
  /// Returns all memory that `stmt` uses or declares, without memory that only `except` and its body use.
  Set touched(const NodeRef& stmt, const Block* except) const {
    Set all;
    visit(
        stmt,
        [&](const Ref<Var>& v) {
          if (v.dtype().is_handle()) all.insert(of(v));
        },
        [&](const Ref<Block>& block, Visitor& v) {
          if (block.as<Block>() != except) v.descend(block);
        });
    // A traversal enters a buffer once; each of its uses counts here all the same, since they share its pointer.
    return all;
  }
  /// Returns the buffers that `stmt` writes, without those that only `except` writes.
  Set written(const NodeRef& stmt, const Block* except = nullptr) const {
    Set all;
    visit(
        stmt, [&](const Ref<BufferStore>& store) { all.insert(of(store->buffer->data)); },
        [&](const Ref<Block>& block, Visitor& v) {
          if (block.as<Block>() == except) return;
          for (const auto& write : block->writes) all.insert(of(write->buffer->data));
          v.descend(block);
        },
        [&](const Ref<Call>& call) {
          if (intrinsic_row(intrinsic_of(*call)).effect == Effect::kPure) return;
          for (const NodeRef& arg : call->args) all.merge(touched(arg, nullptr));
        });
    return all;
  }

 private:
  std::unordered_map<NodeRef, NodeRef> origin_;
};

/// Hoists inits out of the loops of their reductions.
class InitHoister {
 public:
  explicit InitHoister(const Ref<PrimFunc>& func) : func_(func), memory_(func) {
    with_stack_for(func->body.depth(), [&] { collect(func->body); });
  }

  Stmt apply(const Stmt& body) {
    return rewrite(
        body,
        [&](const Ref<For>& loop, Rewriter& r) -> Stmt {
          Stmt inner = r.descend(loop);
          auto* found = find_value(before_, loop);
          if (!found) return inner;
          std::vector<Stmt> all = *found;
          all.push_back(inner);
          return seq(std::move(all));
        },
        [&](const Ref<Block>& block, Rewriter& r) -> Stmt {
          Ref<Block> inner = r.descend(block);
          if (!inner->init.defined()) return inner;
          Block copy = *inner;
          copy.init = {};
          if (!hoisted_.count(block)) copy.body = seq({conditional(*inner), inner->body});
          return make(std::move(copy), block.span());
        });
  }

 private:
  static Stmt conditional(const Block& block) {
    Expr first = bool_imm(true);
    for (const Ref<IterVar>& axis : block.iter_vars) {
      if (axis->iter_type == IterType::kCommReduce) first = logical_and(first, eq(axis->var, axis->dom->min));
    }
    return is_true(first) ? block.init : Stmt(make<IfThenElse>({first, block.init, {}}));
  }

  void collect(const Stmt& body) {
    if (const SeqStmt* all = body.as<SeqStmt>()) {
      for (const Stmt& stmt : all->seq) collect(stmt);
    } else if (const For* loop = body.as<For>()) {
      loops_.push_back(body.borrow<For>());
      collect(loop->body);
      loops_.pop_back();
    } else if (body.is<BlockRealize>()) {
      collect_block(body.borrow<BlockRealize>());
    } else {
      // A condition, a binding, ...: what stands below does not run as often as the loops say, or not outside.
      borders_.push_back(loops_.size());
      for_each_child(body, [&](const NodeRef& child, Role) {
        if (child.sort() == Sort::kStmt) collect(Stmt(child));
      });
      borders_.pop_back();
    }
  }

  void collect_block(const Ref<BlockRealize>& realize) {
    const Block& block = *realize->block;
    if (block.init.defined()) plan(realize);
    // A block that only allocates buffers does not end a reduction nest.
    bool is_host = block.iter_vars.empty() && is_true(realize->predicate) && !block.init.defined();
    if (is_host) {
      hosts_.emplace_back(loops_.size(), &block);
      collect(block.body);
      hosts_.pop_back();
      return;
    }
    auto outer = std::exchange(loops_, {});
    auto outer_hosts = std::exchange(hosts_, {});
    auto outer_borders = std::exchange(borders_, {});
    if (block.init.defined()) collect(block.init);
    collect(block.body);
    loops_ = std::move(outer);
    hosts_ = std::move(outer_hosts);
    borders_ = std::move(outer_borders);
  }

  /// The loops from `outermost` on: those of data-parallel axes, and those of the reduction.
  struct Split {
    std::vector<Ref<For>> copied, reduction;
  };

  void plan(const Ref<BlockRealize>& realize) {
    const Block& block = *realize->block;
    std::vector<Expr> spatial, reduction;
    for (size_t i : indices_of(block.iter_vars)) {
      bool reduces = analysis::is_reduction_axis(block.iter_vars[i]);
      if (!reduces && !analysis::is_data_parallel(block.iter_vars[i])) return;
      (reduces ? reduction : spatial).push_back(realize->iter_values[i]);
    }
    // A reduction that continues in loops outside of this block has been initialized before.
    for (const Expr& value : reduction) {
      bool beyond = uses_any_var(value, [&](const Ref<Var>& v) {
        return none_of(loops_, [&](const Ref<For>& loop) { return loop->loop_var == v; });
      });
      if (beyond) return;
    }
    size_t outermost = 0;
    while (outermost < loops_.size() && !drives(*loops_[outermost], reduction)) ++outermost;
    if (outermost == loops_.size() || !may_leave(block, outermost)) return;
    auto split = split_loops(outermost, spatial, reduction);
    if (!split || !maps_apart(spatial, split->copied)) return;
    bool several = any_of(split->copied, [](const Ref<For>& loop) { return !is_const_int(loop->extent, 1); });
    if (several && analysis::BlockFacts::of(realize->block).role != analysis::BlockRole::kReduction) return;
    arith::Analyzer analyzer;
    for (const Ref<For>& loop : loops_) {
      if (!is_contained(split->reduction, loop)) {
        analyzer.bind(loop->loop_var, range(loop->min, loop->extent));
      }
    }
    analysis::ReductionStart start = analysis::reduction_start(*realize, split->reduction, analyzer);
    if (!start.condition.defined()) return;
    analyzer.assume(start.predicate);
    const bool runs_without_steps =
        (has_init_without_steps(block) || is_only_writer(block)) && is_in_domains(*realize, analyzer);
    Expr condition = runs_without_steps ? start.predicate : start.condition;
    Stmt first = initialization(*realize, split->copied, condition);
    if (!is_alone(loops_[outermost], block, first)) return;
    before_[loops_[outermost]].push_back(first);
    hoisted_.insert(realize->block);
  }

  static bool drives(const For& loop, const std::vector<Expr>& values) {
    return any_of(values, [&](const Expr& e) { return uses_var(e, loop.loop_var); });
  }

  /// The init knows its block's spatial axes and nothing else that is defined below the loop.
  bool may_leave(const Block& block, size_t outermost) const {
    if (!borders_.empty() && borders_.back() > outermost) return false;
    auto defines = [&](const Block& owner, const NodeRef& stmt) {
      std::unordered_set<NodeRef> own;
      for (const Def<Buffer>& buffer : owner.alloc_buffers) own.insert(buffer->data);
      for (const Ref<MatchBufferRegion>& match : owner.match_buffers) own.insert(match->buffer->data);
      return uses_any_of(stmt, own);
    };
    if (defines(block, block.init)) return false;
    for (const auto& [depth, host] : hosts_) {
      if (depth > outermost && defines(*host, block.init)) return false;
    }
    for (const Ref<IterVar>& axis : block.iter_vars) {
      if (analysis::is_reduction_axis(axis) && uses_var(block.init, axis->var)) return false;
    }
    for (size_t i = outermost; i < loops_.size(); ++i) {
      if (uses_var(block.init, loops_[i]->loop_var)) return false;
    }
    return true;
  }

  std::optional<Split> split_loops(size_t outermost, const std::vector<Expr>& spatial,
                                   const std::vector<Expr>& reduction) const {
    Split split;
    for (size_t i = outermost; i < loops_.size(); ++i) {
      bool in_spatial = drives(*loops_[i], spatial), in_reduction = drives(*loops_[i], reduction);
      if (in_spatial && in_reduction) return std::nullopt;
      // Otherwise the block runs several times for the same axes.
      if (!in_spatial && !in_reduction && !is_const_int(loops_[i]->extent, 1)) return std::nullopt;
      (in_spatial ? split.copied : split.reduction).push_back(loops_[i]);
    }
    for (const Ref<For>& loop : split.copied) {
      for (const Ref<For>& inner : split.reduction) {
        if (uses_var(loop->min, inner->loop_var) || uses_var(loop->extent, inner->loop_var)) return std::nullopt;
      }
    }
    return split;
  }

  static bool maps_apart(const std::vector<Expr>& spatial, const std::vector<Ref<For>>& loops) {
    std::unordered_set<NodeRef> used;
    for (const Expr& value : spatial) {
      std::vector<Ref<For>> variables;
      for (const Ref<For>& loop : loops) {
        if (uses_var(value, loop->loop_var)) variables.push_back(loop);
      }
      used.insert(variables.begin(), variables.end());
      bool alone = variables.size() == 1 && value == variables[0]->loop_var;
      if (!variables.empty() && !alone && !is_injective(value, variables)) return false;
    }
    return used.size() == loops.size();
  }

  /// Whether nothing else under the loop touches what the block writes, and nothing there changes what `init` reads.
  bool is_alone(const Ref<For>& loop, const Block& block, const Stmt& init) const {
    Memory::Set sets = memory_.written(init), others = memory_.touched(loop, &block), writes = memory_.written(loop);
    for (const NodeRef& data : sets) {
      if (others.count(data)) return false;
    }
    bool settled = true;
    visit(
        init, [&](const Ref<BufferLoad>& load) { settled &= !writes.count(memory_.of(load->buffer->data)); },
        [&](const Ref<Call>& call) {
          for (const NodeRef& arg : call->args) {
            for (const NodeRef& data : memory_.touched(arg, nullptr)) settled &= !writes.count(data);
          }
        });
    return settled;
  }

  /// Whether nothing but the block writes its buffers. Their elements then hold nothing where a reduction is empty, so
  /// the init may run there, unless it reads elements that may not exist.
  bool is_only_writer(const Block& block) const {
    if (has_node<BufferLoad>(block.init)) return false;
    Memory::Set others = memory_.written(func_->body, &block);
    for (const auto& [param, buffer] : func_->buffer_map) others.insert(memory_.of(buffer->data));
    for (const Ref<Var>& param : func_->params) others.insert(memory_.of(param));
    Memory::Set own = memory_.written(block.init);
    return none_of(own, [&](const NodeRef& data) { return others.count(data) > 0; });
  }

  /// Whether the axes are within their domains. Values of axes under a loop without iterations may be anything: no
  /// element is accessed.
  static bool is_in_domains(const BlockRealize& realize, arith::Analyzer& analyzer) {
    const auto& axes = realize.block->iter_vars;
    for (size_t i : indices_of(axes)) {
      if (analysis::is_reduction_axis(axes[i])) continue;
      const Expr &value = realize.iter_values[i], &min = axes[i]->dom->min;
      if (!analyzer.can_prove(ge(value, min)) || !analyzer.can_prove(lt(value, min + axes[i]->dom->extent)))
        return false;
    }
    return true;
  }

  static Stmt initialization(const BlockRealize& realize, const std::vector<Ref<For>>& loops, const Expr& predicate) {
    const Block& block = *realize.block;
    Block init;
    std::vector<Expr> values;
    for (size_t i : indices_of(block.iter_vars)) {
      if (block.iter_vars[i]->iter_type == IterType::kCommReduce) continue;
      init.iter_vars.push_back(block.iter_vars[i]);
      values.push_back(realize.iter_values[i]);
    }
    init.writes = analysis::init_writes(block);
    init.name_hint = block.name_hint + "_init";
    init.body = block.init;
    init.reads = analysis::block_access_region(make<Block>(Block(init))).reads;
    Stmt body = make<BlockRealize>({values, predicate, make(std::move(init))});
    for (const Ref<For>& loop : reversed(loops)) {
      For copy = *loop;
      copy.annotations = {};
      copy.body = body;
      body = make(std::move(copy));
    }
    return renew_defs(body);
  }

  Ref<PrimFunc> func_;
  Memory memory_;
  std::vector<Ref<For>> loops_;
  std::vector<size_t> borders_;  ///< loops around statements that are neither loops, sequences nor blocks
  std::vector<std::pair<size_t, const Block*>> hosts_;  ///< blocks that only hold buffers, with the loops around them
  std::unordered_map<NodeRef, std::vector<Stmt>> before_;
  std::unordered_set<NodeRef> hoisted_;
};

}  // namespace

PassResult lower_init_blocks(const Ref<PrimFunc>& func, PassContext&) {
  if (!any_node(func->body, [](const Ref<Block>& block) { return block->init.defined(); })) return func;
  return with_body(func, InitHoister(func).apply(func->body));
}

}  // namespace tilewright::lower
