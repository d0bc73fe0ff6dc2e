// Compute a reduction whose loops are bound to threads: each thread reduces its part, and a tree in shared memory
// combines the parts.
//
//   Before                                         After
//   for k in T.thread_binding(32, "threadIdx.x"):  part = T.alloc_buffer((1,), scope="local")
//     with T.block("C"):                           for k in T.thread_binding(32, "threadIdx.x"):
//       vi, vk = T.axis.remap("SR", [i, k])          with T.block("C_part"): ... part[0] = part[0] + A[vi, vk]
//       with T.init():                               with T.block("C_put"): tree[k] = part[0]
//         C[vi] = 0.0                              for k in T.thread_binding(32, "threadIdx.x"):
//       C[vi] = C[vi] + A[vi, vk]                    with T.block("C_16"): T.where(k < 16); tree[k] += tree[k + 16]
//                                                  ...
//                                                  with T.block("C_write"): C[vi] = tree[0]
//
// If serial loops of the reduction enclose the threads, each iteration adds the result of its tree to C; the first
// iteration initializes C.
//
// Needs      blocks with axes and inits; a reduction that find_reducer() recognizes, under loops of constant extents
// Ensures    no loop of a reduction is bound to threads: what cannot be put in this form is refused
// Placement  before lower_init_blocks: the init says where the parts begin
#include <algorithm>

#include "analysis/block_access_region.h"
#include "analysis/reducer.h"
#include "analysis/threads.h"
#include "ir/build.h"
#include "ir/conjunction.h"
#include "ir/substitute.h"
#include "ir/traverse.h"
#include "lower/gpu/kernel.h"
#include "lower/passes.h"

namespace tilewright::lower {
namespace {

/// A loop nest around one block that reduces, from the outermost loop that belongs to the reduction.
struct Nest {
  std::vector<Ref<For>> loops;  ///< outermost first
  Ref<BlockRealize> realize;
};

class ThreadReductions {
 public:
  Result<Stmt> run(const Stmt& body) {
    Stmt result = rewrite(body, [&](const Ref<For>& loop, Rewriter& r) -> Stmt {
      auto nest = nest_at(loop);
      if (nest && is_across_threads(*nest)) return lower(*nest, loop);
      around_.push_back(loop);
      Stmt inner = r.descend(loop);
      around_.pop_back();
      return inner;
    });
    if (!error_) refuse_others(result);
    if (error_) return *error_;
    return result;
  }

 private:
  static bool is_reduction(const Nest& nest, const Ref<Var>& v) {
    const Block& block = *nest.realize->block;
    for (size_t i = 0; i < block.iter_vars.size(); ++i) {
      if (block.iter_vars[i]->iter_type == IterType::kCommReduce && uses_var(nest.realize->iter_values[i], v))
        return true;
    }
    return false;
  }

  /// Refuses reductions across threads that were not lowered: they would race.
  void refuse_others(const Stmt& s) {
    visit(
        s,
        [&](const Ref<For>& loop, Visitor& v) {
          around_.push_back(loop);
          v.descend(loop);
          around_.pop_back();
        },
        [&](const Ref<BlockRealize>& realize, Visitor& v) {
          Nest nest{around_, realize};
          if (is_across_threads(nest)) {
            refuse(nest, "its loops hold more than this block, or it has no init",
                   "let the loops of the reduction hold this block alone, with its init, or use sch.rfactor");
          }
          v.descend(realize);
        });
  }

  /// The loops from `loop` inwards, where nothing but them is around the block, and the first belongs to the reduction.
  static std::optional<Nest> nest_at(const Ref<For>& loop) {
    Nest nest;
    Stmt at = loop;
    while (at.is<For>()) {
      nest.loops.push_back(at.cast<For>());
      at = at.as<For>()->body;
    }
    if (!at.is<BlockRealize>()) return std::nullopt;
    nest.realize = at.cast<BlockRealize>();
    if (!nest.realize->block->init.defined() || !is_reduction(nest, loop->loop_var)) return std::nullopt;
    return nest;
  }

  static bool is_across_threads(const Nest& nest) {
    return std::any_of(nest.loops.begin(), nest.loops.end(), [&](const Ref<For>& loop) {
      auto axis = analysis::thread_axis(*loop);
      return axis && axis->level == ThreadAxis::Level::kThread && is_reduction(nest, loop->loop_var);
    });
  }

  Stmt refuse(const Nest& nest, const std::string& why, const std::string& hint) {
    if (!error_) {
      error_ = refuse_at(
          nest.realize, "lower/thread-reduction",
          "the reduction of block '" + nest.realize->block->name_hint + "' is bound to threads, and " + why, hint);
    }
    return nest.loops[0];
  }

  Stmt lower(const Nest& nest, const Stmt& original) {
    const Block& block = *nest.realize->block;
    auto found = analysis::find_reducer(block);
    if (!found.reducer) {
      return refuse(nest, found.why_not, "use sch.rfactor, or leave the loop of the reduction serial");
    }
    const analysis::Reducer& reducer = *found.reducer;
    using Tie = analysis::PairChoice::Tie;
    if (reducer.pairs && (reducer.pairs->tie == Tie::kFirst || reducer.pairs->tie == Tie::kLast)) {
      return refuse(nest, "which of equal values it finds depends on the order of its steps, which threads do not keep",
                    "let the condition compare indices too where values are equal, or use sch.rfactor");
    }
    std::vector<Ref<For>> threads;
    for (const Ref<For>& loop : nest.loops) {
      if (!is_reduction(nest, loop->loop_var)) {
        return refuse(nest, "loop '" + loop->loop_var->name_hint + "' inside of it does not belong to the reduction",
                      "reorder the loops, so that those of the reduction are the innermost");
      }
      if (!is_bound(*loop)) continue;
      if (!const_int(loop->extent) || !is_const_int(loop->min, 0)) {
        return refuse(nest, "the number of threads is not a constant", "split the loop by a constant factor");
      }
      threads.push_back(loop);
    }
    for (size_t i = 0; i < block.iter_vars.size(); ++i) {
      if (block.iter_vars[i]->iter_type == IterType::kCommReduce || !uses_any(nest.realize->iter_values[i], nest.loops))
        continue;
      return refuse(nest, "axis '" + block.iter_vars[i]->var->name_hint + "' of its result is driven by the same loops",
                    "do not fuse loops of the result with loops of the reduction");
    }
    std::vector<Expr> of_result;  // conditions on the result: elements outside of it are not written
    for (const Expr& condition : conjuncts(nest.realize->predicate)) {
      if (!uses_any(condition, nest.loops)) {
        of_result.push_back(condition);
      } else if (uses_any_var(condition, [&](const Ref<Var>& v) { return drives_result(nest, v); })) {
        return refuse(nest, "which of its steps are there differs from one element of the result to the next",
                      "do not fuse loops of the result with loops of the reduction");
      }
    }
    std::vector<Expr> first;  // conditions for the first iteration of enclosing reduction loops
    for (const Ref<For>& loop : around_) {
      if (!is_reduction(nest, loop->loop_var)) continue;
      if (is_bound(*loop)) {
        return refuse(nest, "loop '" + loop->loop_var->name_hint + "' outside of it belongs to the reduction too",
                      "bind loops of one reduction without other statements in between");
      }
      first.push_back(eq(loop->loop_var, loop->min));
    }
    // The team may have axes that take no part in the reduction: each of their threads has a tree of its own.
    std::vector<Ref<For>> others;
    for (const Ref<For>& loop : around_) {
      auto axis = is_bound(*loop) ? analysis::thread_axis(*loop) : std::nullopt;
      if (!axis || !axis->in_team()) continue;
      if (!const_int(loop->extent)) {
        return refuse(nest, "the number of threads of loop '" + loop->loop_var->name_hint + "' is not a constant",
                      "split that loop by a constant factor");
      }
      others.push_back(loop);
    }
    return build(nest, reducer, threads, others, {all_of(of_result), all_of(first)}, original.span());
  }

  static bool uses_any(const Expr& e, const std::vector<Ref<For>>& loops) {
    return std::any_of(loops.begin(), loops.end(), [&](const Ref<For>& loop) { return uses_var(e, loop->loop_var); });
  }
  static bool drives_result(const Nest& nest, const Ref<Var>& v) {
    const Block& block = *nest.realize->block;
    for (size_t i = 0; i < block.iter_vars.size(); ++i) {
      if (block.iter_vars[i]->iter_type != IterType::kCommReduce && uses_var(nest.realize->iter_values[i], v))
        return true;
    }
    return false;
  }
  static Expr all_of(const std::vector<Expr>& conditions) {
    Expr all = bool_imm(true);
    for (const Expr& condition : conditions) all = logical_and(all, condition);
    return all;
  }

  /// Conditions for writing the result, and for initializing it.
  struct Conditions {
    Expr writes, begins;
  };

  Stmt build(const Nest& nest, const analysis::Reducer& reducer, const std::vector<Ref<For>>& threads,
             const std::vector<Ref<For>>& others, const Conditions& conditions, SpanId span) {
    const Block& block = *nest.realize->block;
    int64_t count = 1, rows = 1;
    for (const Ref<For>& loop : threads) count *= *const_int(loop->extent);
    Expr row = i32(0);
    for (const Ref<For>& loop : others) {
      rows *= *const_int(loop->extent);
      row = row * loop->extent + cast(DataType::int_(32), loop->loop_var - loop->min);
    }
    std::vector<Ref<Buffer>> parts, trees;
    for (const Ref<Buffer>& buffer : reducer.buffers) {
      parts.push_back(decl_buffer({i32(1)}, buffer->dtype, buffer->name + "_part", "local"));
      trees.push_back(decl_buffer({i32(rows), i32(count)}, buffer->dtype, buffer->name + "_tree", "shared"));
    }
    VarMap axes;
    for (size_t i = 0; i < block.iter_vars.size(); ++i) axes[block.iter_vars[i]->var] = nest.realize->iter_values[i];
    auto of_loops = [&](const Expr& e) { return substitute(e, axes); };
    std::vector<Expr> operands, starts, indices;
    for (const Expr& e : reducer.operands) operands.push_back(of_loops(e));
    for (const Expr& e : reducer.starts) starts.push_back(of_loops(e));
    for (const Expr& e : reducer.indices) indices.push_back(of_loops(e));

    std::vector<Stmt> steps;
    // Each thread its part.
    Stmt add = analysis::combine_into(reducer, parts, {i32(0)}, operands);
    if (!is_true(nest.realize->predicate)) add = make<IfThenElse>({nest.realize->predicate, add, {}});
    add = opaque(block.name_hint + "_part", add, span);
    for (auto it = nest.loops.rbegin(); it != nest.loops.rend(); ++it) {
      if (is_bound(**it)) continue;
      For serial = **it;
      serial.body = add;
      add = make<For>(std::move(serial), it->span());
    }
    Stmt begin = opaque(block.name_hint + "_init", analysis::store_all(parts, starts, {i32(0)}), span);
    Expr self = i32(0);
    for (const Ref<For>& loop : threads) self = self * loop->extent + cast(DataType::int_(32), loop->loop_var);
    Stmt put = opaque(block.name_hint + "_put", analysis::store_all(trees, loads(parts, {i32(0)}), {row, self}), span);
    steps.push_back(on_threads(threads, with_buffers(parts, seq({begin, add, put}), block.name_hint, span)));
    // Each step adds the upper half to the lower half; with an odd count, the middle element waits for the next step.
    for (int64_t left = count; left > 1; left = (left + 1) / 2) {
      const int64_t half = (left + 1) / 2;
      Expr partner = self + static_cast<int64_t>(half);
      Stmt combine = analysis::combine_into(reducer, trees, {row, self}, loads(trees, {row, partner}));
      combine = make<IfThenElse>({lt(partner, i32(left)), combine, {}});
      if (half < left) combine = make<IfThenElse>({lt(self, i32(half)), combine, {}});
      steps.push_back(on_threads(threads, opaque(block.name_hint + "_" + std::to_string(half), combine, span)));
    }
    Stmt write = analysis::store_all(reducer.buffers, loads(trees, {row, i32(0)}), indices);
    if (!is_true(conditions.begins)) {
      Stmt first = make<IfThenElse>({conditions.begins, analysis::store_all(reducer.buffers, starts, indices), {}});
      write = seq({first, analysis::combine_into(reducer, reducer.buffers, indices, loads(trees, {row, i32(0)}))});
    }
    if (!is_true(conditions.writes)) write = make<IfThenElse>({conditions.writes, write, {}});
    steps.push_back(opaque(block.name_hint + "_write", write, span));
    return with_buffers(trees, seq(std::move(steps)), block.name_hint, span);
  }

  static std::vector<Expr> loads(const std::vector<Ref<Buffer>>& buffers, const std::vector<Expr>& indices) {
    std::vector<Expr> values;
    for (const Ref<Buffer>& buffer : buffers) values.push_back(load(buffer, indices));
    return values;
  }

  /// The statement as a block without axes, whose regions are those of its accesses.
  static Stmt as_block(Block block, SpanId span) {
    Ref<Block> made = make<Block>(block, span);
    analysis::BlockAccess access = analysis::block_access_region(made);
    block.reads = std::move(access.reads);
    block.writes = std::move(access.writes);
    return make<BlockRealize>({{}, bool_imm(true), make<Block>(std::move(block), span)}, span);
  }
  static Stmt opaque(const std::string& name, const Stmt& body, SpanId span) {
    Block block;
    block.name_hint = name;
    block.body = body;
    return as_block(std::move(block), span);
  }
  static Stmt with_buffers(const std::vector<Ref<Buffer>>& buffers, const Stmt& body, const std::string& name,
                           SpanId span) {
    Block block;
    block.name_hint = name + "_across_threads";
    for (const Ref<Buffer>& buffer : buffers) block.alloc_buffers.emplace_back(buffer);
    block.body = body;
    return as_block(std::move(block), span);
  }

  static Stmt on_threads(const std::vector<Ref<For>>& threads, Stmt body) {
    for (auto it = threads.rbegin(); it != threads.rend(); ++it) {
      Ref<Var> v = var((*it)->loop_var->name_hint, (*it)->loop_var.dtype());
      body = bound_loop(v, (*it)->extent, (*it)->thread_binding->thread_tag, substitute(body, {{(*it)->loop_var, v}}),
                        it->span());
    }
    return renew_defs(body);
  }

  std::vector<Ref<For>> around_;
  std::optional<Diagnostic> error_;
};

}  // namespace

PassResult lower_thread_reductions(const Ref<PrimFunc>& func, PassContext&) {
  TW_TRY(body, ThreadReductions().run(func->body));
  return with_body(func, std::move(body));
}

}  // namespace tilewright::lower
