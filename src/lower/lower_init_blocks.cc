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
// Where the loops do not allow this, the initialization stays in the block under `if vk == 0`.
//
// The initialization may run before the outermost loop of the reduction when the loops inside that one belong either to
// the reduction or to data-parallel axes, the latter map different iterations to different elements, and nothing else
// under that loop touches what is initialized.
//
// Needs      blocks with axes
// Ensures    no block has an init
// Placement  before axes are replaced by loops: they tell which loops belong to the reduction
#include <algorithm>

#include "arith/analyzer.h"
#include "ir/build.h"
#include "ir/substitute.h"
#include "ir/traverse.h"
#include "lower/passes.h"

namespace tilewright::lower {
namespace {

bool uses_any(const Expr& e, const std::vector<Ref<Var>>& variables) {
  return std::any_of(variables.begin(), variables.end(), [&](const Ref<Var>& v) { return uses_var(e, v); });
}

/// Different values of the variables, within constant extents, give different values of `e`: the terms of a sum whose
/// factors leave room for one another.
bool is_injective(const Expr& e, const std::vector<std::pair<Ref<Var>, int64_t>>& variables) {
  arith::Analyzer analyzer;
  for (const auto& [v, extent] : variables)
    analyzer.bind(v, make<Range>({zero(v.dtype()), int_imm(v.dtype(), extent)}));
  VarMap all_zero;
  for (const auto& [v, extent] : variables) all_zero[v] = zero(v.dtype());
  Expr base = substitute(e, all_zero);
  Expr sum = base;
  std::vector<std::pair<int64_t, int64_t>> terms;  // factor, extent
  for (const auto& [v, extent] : variables) {
    VarMap one_step = all_zero;
    one_step[v] = one(v.dtype());
    auto factor = const_int(analyzer.simplify(substitute(e, one_step) - base));
    if (!factor) return false;
    terms.emplace_back(std::abs(*factor), extent);
    sum = sum + cast(e.dtype(), v) * *factor;
  }
  if (!analyzer.can_prove_equal(e, sum)) return false;
  std::sort(terms.begin(), terms.end());
  int64_t reach = 0;
  for (const auto& [factor, extent] : terms) {
    if (factor <= reach) return false;
    reach += factor * (extent - 1);
  }
  return true;
}

/// Takes initializations out of the loops of their reductions.
class InitHoister {
 public:
  void collect(const Stmt& body) {
    visit(
        body,
        [&](const Ref<For>& loop, Visitor& v) {
          loops_.push_back(loop);
          v(loop->body);
          loops_.pop_back();
        },
        [&](const Ref<BlockRealize>& realize, Visitor& v) {
          const Block& block = *realize->block;
          if (block.init.defined()) plan(realize);
          // A block that only holds buffers is no border: reductions go on through it.
          bool is_host = block.iter_vars.empty() && is_true(realize->predicate) && !block.init.defined();
          if (is_host) {
            hosts_.emplace_back(loops_.size(), &block);
            v(block.body);
            hosts_.pop_back();
            return;
          }
          auto outer = std::exchange(loops_, {});
          auto outer_hosts = std::exchange(hosts_, {});
          v(block.init);
          v(block.body);
          loops_ = std::move(outer);
          hosts_ = std::move(outer_hosts);
        },
        [&](const Ref<BufferStore>&, Visitor&) {}, [&](const Ref<Evaluate>&, Visitor&) {});
  }

  Stmt apply(const Stmt& body) {
    return rewrite(
        body,
        [&](const Ref<For>& loop, Rewriter& r) -> Stmt {
          Stmt inner = r.descend(loop);
          auto it = before_.find(loop);
          if (it == before_.end()) return inner;
          std::vector<Stmt> all = it->second;
          all.push_back(inner);
          return seq(std::move(all));
        },
        [&](const Ref<Block>& block, Rewriter& r) -> Stmt {
          Ref<Block> inner = r.descend(block);
          if (!inner->init.defined()) return inner;
          Block copy = *inner;
          copy.init = {};
          if (!hoisted_.count(block)) copy.body = seq({conditional(*inner), inner->body});
          return make<Block>(std::move(copy), block.span());
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

  void plan(const Ref<BlockRealize>& realize) {
    const Block& block = *realize->block;
    std::vector<Expr> spatial, reduction;
    for (size_t i = 0; i < block.iter_vars.size(); ++i) {
      bool reduces = block.iter_vars[i]->iter_type == IterType::kCommReduce;
      if (!reduces && block.iter_vars[i]->iter_type != IterType::kDataPar) return;
      (reduces ? reduction : spatial).push_back(realize->iter_values[i]);
    }
    auto used_by = [](const Ref<For>& loop, const std::vector<Expr>& values) {
      return std::any_of(values.begin(), values.end(), [&](const Expr& e) { return uses_var(e, loop->loop_var); });
    };
    // A reduction that goes on outside of this block has begun before.
    for (const Expr& value : reduction) {
      bool beyond = uses_any_var(value, [&](const Ref<Var>& v) {
        return std::none_of(loops_.begin(), loops_.end(), [&](const Ref<For>& loop) { return loop->loop_var == v; });
      });
      if (beyond) return;
    }
    size_t outermost = 0;
    while (outermost < loops_.size() && !used_by(loops_[outermost], reduction)) ++outermost;
    if (outermost == loops_.size()) return;
    for (const auto& [depth, host] : hosts_) {
      if (depth > outermost && allocates_written(*host, block)) return;
    }
    std::vector<Ref<For>> copied;
    std::vector<Ref<Var>> reduction_vars;
    for (size_t i = outermost; i < loops_.size(); ++i) {
      bool in_spatial = used_by(loops_[i], spatial), in_reduction = used_by(loops_[i], reduction);
      if (in_spatial && in_reduction) return;
      if (in_spatial) {
        copied.push_back(loops_[i]);
      } else if (in_reduction || is_const_int(loops_[i]->extent, 1)) {
        reduction_vars.push_back(loops_[i]->loop_var);
      } else {
        return;  // the block runs several times for the same axes
      }
    }
    if (!maps_apart(spatial, copied) || !is_alone(loops_[outermost], block)) return;
    for (const Ref<For>& loop : loops_) {
      if (uses_any(loop->min, reduction_vars) || uses_any(loop->extent, reduction_vars)) return;
    }
    // Part of the predicate may speak of the reduction alone: it says nothing about which elements there are.
    Expr predicate = bool_imm(true);
    std::vector<Expr> parts{realize->predicate};
    while (!parts.empty()) {
      Expr part = parts.back();
      parts.pop_back();
      if (const And* both = part.as<And>()) {
        parts.push_back(both->b);
        parts.push_back(both->a);
        continue;
      }
      if (!uses_any(part, reduction_vars)) {
        predicate = logical_and(predicate, part);
      } else if (std::any_of(copied.begin(), copied.end(),
                             [&](const Ref<For>& loop) { return uses_var(part, loop->loop_var); })) {
        return;
      }
    }
    before_[loops_[outermost]].push_back(initialization(*realize, copied, predicate));
    hoisted_.insert(realize->block);
  }

  static bool allocates_written(const Block& host, const Block& block) {
    return std::any_of(host.alloc_buffers.begin(), host.alloc_buffers.end(), [&](const Def<Buffer>& own) {
      return std::any_of(block.writes.begin(), block.writes.end(),
                         [&](const Ref<BufferRegion>& write) { return write->buffer == own; });
    });
  }

  static bool maps_apart(const std::vector<Expr>& spatial, const std::vector<Ref<For>>& loops) {
    std::vector<int> uses(loops.size(), 0);
    for (const Expr& value : spatial) {
      std::vector<std::pair<Ref<Var>, int64_t>> variables;
      for (size_t i = 0; i < loops.size(); ++i) {
        if (!uses_var(value, loops[i]->loop_var)) continue;
        ++uses[i];
        auto extent = const_int(loops[i]->extent);
        bool alone = value == loops[i]->loop_var;
        if (!extent && !alone) return false;
        if (alone) continue;
        variables.emplace_back(loops[i]->loop_var, *extent);
      }
      if (!variables.empty() && !is_injective(value, variables)) return false;
    }
    return std::all_of(uses.begin(), uses.end(), [](int n) { return n >= 1; });
  }

  /// Nothing else under the loop reads or writes what the block writes.
  static bool is_alone(const Ref<For>& loop, const Block& block) {
    bool alone = true;
    visit(loop, [&](const Ref<Block>& other, Visitor& v) {
      if (other.as<Block>() != &block) {
        for (const Ref<BufferRegion>& written : block.writes) {
          for (const auto* regions : {&other->reads, &other->writes}) {
            for (const Ref<BufferRegion>& region : *regions) alone &= region->buffer != written->buffer;
          }
        }
      }
      v(other->body);
    });
    return alone;
  }

  static Stmt initialization(const BlockRealize& realize, const std::vector<Ref<For>>& loops, const Expr& predicate) {
    const Block& block = *realize.block;
    Block init;
    std::vector<Expr> values;
    for (size_t i = 0; i < block.iter_vars.size(); ++i) {
      if (block.iter_vars[i]->iter_type == IterType::kCommReduce) continue;
      init.iter_vars.push_back(block.iter_vars[i]);
      values.push_back(realize.iter_values[i]);
    }
    init.writes = block.writes;
    init.name_hint = block.name_hint + "_init";
    init.body = block.init;
    Stmt body = make<BlockRealize>({values, predicate, make<Block>(std::move(init))});
    for (auto it = loops.rbegin(); it != loops.rend(); ++it) {
      For copy = **it;
      copy.annotations = {};
      copy.body = body;
      body = make<For>(std::move(copy));
    }
    return renew_defs(body);
  }

  std::vector<Ref<For>> loops_;
  std::vector<std::pair<size_t, const Block*>> hosts_;  ///< blocks that only hold buffers, with the loops around them
  std::unordered_map<NodeRef, std::vector<Stmt>> before_;
  std::unordered_set<NodeRef> hoisted_;
};

}  // namespace

PassResult lower_init_blocks(const Ref<PrimFunc>& func, PassContext&) {
  bool has_init = false;
  visit(func->body, [&](const Ref<Block>& block) { has_init |= block->init.defined(); });
  if (!has_init) return func;
  InitHoister hoister;
  hoister.collect(func->body);
  return with_body(func, hoister.apply(func->body));
}

}  // namespace tilewright::lower
