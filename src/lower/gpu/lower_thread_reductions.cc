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
// Without a bound loop around the reduction, a loop over one block makes a kernel of it.
//
// On a target whose threads have lanes (CUDA), the 32 threads of a warp add up by shuffles, in registers, and shared
// memory holds one value for each warp; a reduction of a warp or a part of it needs none:
//
//   for k in T.thread_binding(32, "threadIdx.x"):
//     ... C_part
//     other[0] = T.tvm_warp_shuffle_down(T.uint32(0xFFFFFFFF), part[0], 16, 32, 32); part[0] = part[0] + other[0]
//     ...
//     if k == 0: C[vi] = part[0]
//
// All lanes that a mask names have to come to a shuffle. Threads of a reduction over several axes are numbered along x,
// then y, then z, as lanes are; as many of them shuffle as the largest power of two that divides their number, a warp
// at most. Warps that belong to one reduction come as a whole. So do all threads of a block if the reduction has them
// all: 48 of them are a warp and a half, whose mask names 16 lanes. Where several reductions share a warp, they shuffle
// only if nothing around could keep some of them away: no condition, no serial loop, and no thread axis that only other
// statements of the kernel use.
//
// If serial loops of the reduction enclose the threads, each iteration adds the result of its tree to C; the first
// iteration initializes C. A block without an init, as one over the nonzeros of a row, adds that to the value of C.
// Serial loops inside of the threads may be as long as data say.
// A result without any step keeps its value.
//
// Needs      blocks with axes and inits; a reduction that find_reducer() or find_accumulation() recognizes
// Ensures    no loop of a reduction is bound to threads: what cannot be put in this form is refused
// Placement  before lower_init_blocks: the init says where the parts begin
#include <algorithm>
#include <set>

#include "analysis/block_access_region.h"
#include "analysis/reducer.h"
#include "analysis/threads.h"
#include "arith/analyzer.h"
#include "ir/annotations.h"
#include "ir/build.h"
#include "ir/conjunction.h"
#include "ir/refuse_at.h"
#include "ir/substitute.h"
#include "ir/traverse.h"
#include "ir/warp_steps.h"
#include "lower/gpu/kernel.h"
#include "lower/passes.h"
#include "support/ranges.h"

namespace tilewright::lower {
namespace {

/// A loop nest around one block that reduces, from the outermost loop that belongs to the reduction.
struct Nest {
  std::vector<Ref<For>> loops;  ///< outermost first
  Ref<BlockRealize> realize;
};

class ThreadReductions {
 public:
  explicit ThreadReductions(bool has_lanes) : has_lanes_(has_lanes) {}

  Result<Stmt> run(const Stmt& body) {
    visit(
        body,
        [&](const Ref<For>& loop) {
          auto axis = is_bound(*loop) ? analysis::thread_axis(*loop) : std::nullopt;
          if (axis && axis->in_team() && !is_const_int(loop->extent, 1)) team_axes_.insert(tag_of(loop));
        },
        [&](const Ref<Var>& v, Visitor& walk) {
          if (walk.role() == Role::kDef) inner_.insert(v);
        });
    auto under = [&](const auto& s, Rewriter& r) -> Stmt {
      ++conditions_;
      Stmt inner = r.descend(s);
      --conditions_;
      return inner;
    };
    Stmt result = rewrite(
        body,
        [&](const Ref<For>& loop, Rewriter& r) -> Stmt {
          auto nest = nest_at(loop);
          if (nest && is_across_threads(*nest)) return lower(*nest, loop);
          around_.push_back(loop);
          Stmt inner = r.descend(loop);
          around_.pop_back();
          return inner;
        },
        on<IfThenElse, While>(under),
        [&](const Ref<BlockRealize>& realize, Rewriter& r) {
          return is_true(realize->predicate) ? Stmt(r.descend(realize)) : under(realize, r);
        });
    if (!error_) refuse_others(result);
    if (error_) return *error_;
    return result;
  }

 private:
  static bool is_reduction(const Nest& nest, const Ref<Var>& v) {
    const Block& block = *nest.realize->block;
    for (size_t i : indices_of(block.iter_vars)) {
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
        [&](const Ref<BlockRealize>& realize) {
          Nest nest{around_, realize};
          if (is_across_threads(nest)) {
            refuse(nest, "its loops hold more than this block",
                   "let the loops of the reduction hold this block alone, or use sch.rfactor");
          }
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
    if (!is_reduction(nest, loop->loop_var)) return std::nullopt;
    return nest;
  }

  static bool is_across_threads(const Nest& nest) {
    return any_of(nest.loops, [&](const Ref<For>& loop) {
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
    const bool adds = !block.init.defined();
    auto found = adds ? analysis::find_accumulation(block) : analysis::find_reducer(block);
    if (!found.reducer) {
      return refuse(nest, found.why_not, "use sch.rfactor, or leave the loop of the reduction serial");
    }
    const bool has_steps =
        none_of(nest.loops, [](const Ref<For>& loop) { return const_int(loop->extent).value_or(1) < 1; });
    if (!has_steps) return nop();
    const analysis::Reducer& reducer = *found.reducer;
    if (reducer.depends_on_order()) {
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
    for (size_t i : indices_of(block.iter_vars)) {
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
    Stmt all = build(nest, reducer, threads, others,
                     {all_of(of_result), adds ? Expr() : all_of(first), run_condition(nest)}, original.span());
    // Loops over threads are separate now, and shared memory is of one kernel.
    const bool is_in_kernel = any_of(around_, [](const auto& loop) { return is_bound(*loop); });
    return is_in_kernel ? all : bound_loop(var("block"), i32(1), "blockIdx.x", std::move(all), original.span());
  }

  static bool uses_any(const Expr& e, const std::vector<Ref<For>>& loops) {
    return any_of(loops, [&](const Ref<For>& loop) { return uses_var(e, loop->loop_var); });
  }
  /// Whether the variable differs from one element of the result to the next; sizes of arguments do not.
  bool drives_result(const Nest& nest, const Ref<Var>& v) const {
    if (!inner_.contains(v)) return false;
    const Block& block = *nest.realize->block;
    for (size_t i : indices_of(block.iter_vars)) {
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

  /// Whether there is a step for an element of the result. If so, the first iterations of all loops of the reduction
  /// are one, since they run the init; what adds to a value may as well add nothing.
  Expr run_condition(const Nest& nest) const {
    if (!nest.realize->block->init.defined() || has_init_without_steps(*nest.realize->block)) return bool_imm(true);
    VarMap first;
    for (const Ref<For>& loop : around_) {
      if (is_reduction(nest, loop->loop_var)) first[loop->loop_var] = substitute(loop->min, first);
    }
    Expr runs = bool_imm(true);
    for (const Ref<For>& loop : nest.loops) {
      if (!const_int(loop->extent)) {
        runs = logical_and(runs, gt(substitute(loop->extent, first), zero(loop->extent.dtype())));
      }
      first[loop->loop_var] = substitute(loop->min, first);
    }
    for (const Expr& condition : conjuncts(nest.realize->predicate)) {
      if (uses_any(condition, nest.loops)) runs = logical_and(runs, substitute(condition, first));
    }
    return arith::Analyzer().simplify(runs);
  }

  /// Conditions for writing the result, and for initializing it: null for a result that has a value before. `runs`:
  /// that there is anything to write.
  struct Conditions {
    Expr writes, begins, runs;
  };

  /// Neighboring threads that combine their parts by shuffles, and their mask; count 1: none.
  struct Lanes {
    int64_t count = 1;
    Expr mask = {};
  };

  static const std::string& tag_of(const Ref<For>& loop) { return loop->thread_binding->thread_tag; }

  /// Whether threads that differ along these axes alone have consecutive numbers in the block: lanes are numbered along
  /// x, then y, then z.
  bool are_consecutive(const std::vector<Ref<For>>& threads) const {
    bool has_gap = false;
    for (const char* tag : {"threadIdx.x", "threadIdx.y", "threadIdx.z"}) {
      const bool reduces = any_of(threads, [&](const Ref<For>& loop) { return tag_of(loop) == tag; });
      if (reduces && has_gap) return false;
      has_gap |= !reduces && team_axes_.contains(tag);
    }
    return true;
  }

  /// `threads`: x comes last; `self`: the number of a thread among them.
  Lanes lanes_of(const analysis::Reducer& reducer, const std::vector<Ref<For>>& threads,
                 const std::vector<Ref<For>>& others, const Conditions& conditions, const Expr& self) const {
    // A result that each thread has for itself is read from shared memory by all of them.
    const bool is_private = any_of(reducer.buffers, [](const auto& buffer) {
      return !is_shared_scope(buffer->scope()) && !is_global_scope(buffer->scope());
    });
    if (!has_lanes_ || is_private) return {};
    int64_t count = 1;
    for (const Ref<For>& loop : threads) count *= *const_int(loop->extent);
    const int64_t lanes = std::min<int64_t>(count & -count, kWarpLanes);
    const bool are_rows_warps =
        tag_of(threads.back()) == "threadIdx.x" && *const_int(threads.back()->extent) % kWarpLanes == 0;
    if (!are_rows_warps && !are_consecutive(threads)) return {};
    const DataType bits = DataType::uint(32);
    const Expr all = constant(bits, int64_t{0xFFFFFFFF});
    if (lanes == kWarpLanes) return {lanes, all};
    auto axes_of = [](const std::vector<Ref<For>>& loops) {
      return std::ranges::count_if(loops, [](const auto& loop) { return !is_const_int(loop->extent, 1); });
    };
    const auto other_axes = std::ssize(team_axes_) - axes_of(threads);
    if (other_axes == 0) {  // all threads of the block come; the last warp may have fewer
      const int64_t last = count % kWarpLanes;
      const Expr some = constant(bits, (int64_t{1} << last) - 1);
      return {lanes, count < kWarpLanes ? some : select(lt(self, i32(count - last)), all, some)};
    }
    int64_t team = count;
    for (const Ref<For>& loop : others) team *= *const_int(loop->extent);
    const bool is_serial = any_of(around_, [](const auto& loop) { return !is_bound(*loop); });
    const bool is_whole = team % kWarpLanes == 0 && other_axes == axes_of(others);
    return is_whole && !is_serial && conditions_ == 0 && is_true(conditions.writes) ? Lanes{lanes, all} : Lanes{};
  }

  /// Lane 0 of each `lanes` neighbors gets what their parts give together.
  static std::vector<Stmt> by_shuffles(const analysis::Reducer& reducer, const std::vector<Ref<Buffer>>& parts,
                                       const std::vector<Ref<Buffer>>& received, int64_t lanes, const Expr& mask,
                                       const std::string& name, SpanId span) {
    std::vector<Stmt> steps;
    for (int64_t distance = lanes / 2; distance > 0; distance /= 2) {
      std::vector<Expr> values;
      for (const Expr& value : loads(parts, {i32(0)})) {
        values.push_back(call(value.dtype(), "tir.tvm_warp_shuffle_down",
                              {mask, value, i32(distance), i32(lanes), i32(kWarpLanes)}));
      }
      Stmt step = seq({analysis::store_all(received, values, {i32(0)}),
                       analysis::combine_into(reducer, parts, {i32(0)}, loads(received, {i32(0)}))});
      steps.push_back(opaque(name + "_shuffle_" + std::to_string(distance), step, span));
    }
    return steps;
  }

  static std::vector<Ref<Buffer>> locals(const analysis::Reducer& reducer, const std::string& suffix) {
    std::vector<Ref<Buffer>> made;
    for (const Ref<Buffer>& buffer : reducer.buffers) {
      made.push_back(decl_buffer({i32(1)}, buffer->dtype, buffer->name + suffix, "local"));
    }
    return made;
  }

  static std::vector<Ref<Buffer>> both(std::vector<Ref<Buffer>> a, const std::vector<Ref<Buffer>>& b) {
    append_range(a, b);
    return a;
  }

  /// Stores the result, `values`.
  Stmt write(const analysis::Reducer& reducer, const std::vector<Expr>& indices, const std::vector<Expr>& starts,
             const std::vector<Expr>& values, const Conditions& conditions) {
    Stmt write = analysis::store_all(reducer.buffers, values, indices);
    if (!conditions.begins.defined() || !is_true(conditions.begins)) {
      write = analysis::combine_into(reducer, reducer.buffers, indices, values);
      if (conditions.begins.defined()) {
        Stmt first = make<IfThenElse>({conditions.begins, analysis::store_all(reducer.buffers, starts, indices), {}});
        write = seq({first, write});
      }
    }
    const Expr holds = logical_and(conditions.writes, conditions.runs);
    return is_true(holds) ? write : make<IfThenElse>({holds, write, {}});
  }

  Stmt build(const Nest& nest, const analysis::Reducer& reducer, std::vector<Ref<For>> threads,
             const std::vector<Ref<For>>& others, const Conditions& conditions, SpanId span) {
    const Block& block = *nest.realize->block;
    int64_t count = 1, rows = 1;
    for (const Ref<For>& loop : threads) count *= *const_int(loop->extent);
    Expr row = i32(0);
    for (const Ref<For>& loop : others) {
      rows *= *const_int(loop->extent);
      row = row * loop->extent + cast(DataType::int_(32), loop->loop_var - loop->min);
    }
    std::ranges::sort(threads, [](const Ref<For>& a, const Ref<For>& b) { return tag_of(a) > tag_of(b); });
    Expr self = i32(0);
    for (const Ref<For>& loop : threads) self = self * loop->extent + cast(DataType::int_(32), loop->loop_var);
    const auto [lanes, mask] = lanes_of(reducer, threads, others, conditions, self);
    const int64_t warps = count / lanes;
    const std::vector<Ref<Buffer>> parts = locals(reducer, "_part"), received = locals(reducer, "_received");
    std::vector<Ref<Buffer>> trees;
    for (const Ref<Buffer>& buffer : reducer.buffers) {
      trees.push_back(decl_buffer({i32(rows), i32(warps)}, buffer->dtype, buffer->name + "_tree", "shared"));
    }
    VarMap axes;
    for (size_t i : indices_of(block.iter_vars)) axes[block.iter_vars[i]->var] = nest.realize->iter_values[i];
    auto of_loops = [&](const Expr& e) { return substitute(e, axes); };
    std::vector<Expr> operands, starts, indices;
    for (const Expr& e : reducer.operands) operands.push_back(of_loops(e));
    for (const Expr& e : reducer.starts) starts.push_back(of_loops(e));
    for (const Expr& e : reducer.indices) indices.push_back(of_loops(e));

    std::vector<Stmt> steps;
    // Each thread adds its part.
    Stmt add = analysis::step_into(reducer, parts, {i32(0)}, operands);
    if (!is_true(nest.realize->predicate)) add = make<IfThenElse>({nest.realize->predicate, add, {}});
    add = opaque(block.name_hint + "_part", add, span);
    for (const Ref<For>& loop : reversed(nest.loops)) {
      if (!is_bound(*loop)) add = with_body(loop, add);
    }
    Stmt begin = opaque(block.name_hint + "_init", analysis::store_all(parts, starts, {i32(0)}), span);
    auto on_first_lane = [&](const std::string& what, const Stmt& s) {
      return opaque(block.name_hint + what,
                    lanes == 1 ? s : make<IfThenElse>({eq(floormod(self, lanes), i32(0)), s, {}}), span);
    };
    auto write_of = [&](const std::vector<Expr>& values) {
      return write(reducer, indices, starts, values, conditions);
    };
    std::vector<Stmt> own = {begin, add};
    const std::vector<Stmt> shuffles = by_shuffles(reducer, parts, received, lanes, mask, block.name_hint, span);
    append_range(own, shuffles);
    const std::vector<Ref<Buffer>> registers = lanes == 1 ? parts : both(parts, received);
    if (warps == 1) {
      own.push_back(on_first_lane("_write", write_of(loads(parts, {i32(0)}))));
      return on_threads(threads, with_buffers(registers, seq(std::move(own)), block.name_hint, span));
    }
    own.push_back(on_first_lane(
        "_put", analysis::store_all(trees, loads(parts, {i32(0)}), {row, lanes == 1 ? self : floordiv(self, lanes)})));
    steps.push_back(on_threads(threads, with_buffers(registers, seq(std::move(own)), block.name_hint, span)));
    if (lanes > 1 && (warps & (warps - 1)) == 0 && warps <= lanes) {  // each warp combines what all warps have
      std::vector<Stmt> last = {opaque(block.name_hint + "_get",
                                       analysis::store_all(parts, loads(trees, {row, floormod(self, warps)}), {i32(0)}),
                                       span)};
      const std::vector<Stmt> more =
          by_shuffles(reducer, parts, received, warps, mask, block.name_hint + "_warps", span);
      append_range(last, more);
      const Stmt result = make<IfThenElse>({eq(self, i32(0)), write_of(loads(parts, {i32(0)})), {}});
      last.push_back(opaque(block.name_hint + "_write", result, span));
      // Registers of their own: what is allocated has one place.
      Stmt again = renew_defs(with_buffers(registers, seq(std::move(last)), block.name_hint, span));
      steps.push_back(on_threads(threads, again));
      return with_buffers(trees, seq(std::move(steps)), block.name_hint, span);
    }
    // Each step adds the upper half to the lower half; with an odd count, the middle element waits for the next step.
    for (int64_t left = warps; left > 1; left = (left + 1) / 2) {
      const int64_t half = (left + 1) / 2;
      Expr partner = self + static_cast<int64_t>(half);
      Stmt combine = analysis::combine_into(reducer, trees, {row, self}, loads(trees, {row, partner}));
      combine = make<IfThenElse>({lt(partner, i32(left)), combine, {}});
      combine = make<IfThenElse>({lt(self, i32(half)), combine, {}});
      steps.push_back(on_threads(threads, opaque(block.name_hint + "_" + std::to_string(half), combine, span)));
    }
    steps.push_back(opaque(block.name_hint + "_write", write_of(loads(trees, {row, i32(0)})), span));
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
    return realized(make(std::move(block), span), span);
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
    for (const Ref<For>& loop : reversed(threads)) {
      Ref<Var> v = var(loop->loop_var->name_hint, loop->loop_var.dtype());
      body = bound_loop(v, loop->extent, loop->thread_binding->thread_tag, substitute(body, {{loop->loop_var, v}}),
                        loop.span());
    }
    return renew_defs(body);
  }

  bool has_lanes_;
  std::vector<Ref<For>> around_;
  int conditions_ = 0;                 ///< around the loops
  std::set<std::string> team_axes_;    ///< along which a block may have several threads
  std::unordered_set<NodeRef> inner_;  ///< variables that the function defines: of loops, axes and values
  std::optional<Diagnostic> error_;
};

}  // namespace

PassResult lower_thread_reductions(const Ref<PrimFunc>& func, PassContext& context) {
  TW_TRY(body, ThreadReductions(context.target.kind == TargetKind::kCuda).run(func->body));
  return with_body(func, std::move(body));
}

}  // namespace tilewright::lower
