// Let the threads of a block share the work of the copies that read_at and write_at make.
//
//   Before                                              After
//   for ty in T.thread_binding(2, "threadIdx.y"):       for ty in T.thread_binding(2, "threadIdx.y"):
//     with T.block("A_shared"):                           for o in range(4):
//       T.block_attr({"auto_copy": 1,                       for y in T.thread_binding(2, "threadIdx.y"):
//                     "vector_bytes": 16})                    for x in T.thread_binding(32, "threadIdx.x"):
//       for ax0, ax1 in T.grid(32, 32):                         for v in T.vectorized(4):
//         A_shared[ax0, ax1] = A[ax0, ax1]                        with T.block("A_shared"):
//     for x in T.thread_binding(32, "threadIdx.x"): ...            A_shared[..., ...] = A[..., ...]
//
// Neighboring threads copy neighboring elements, "vector_bytes" at a time where the innermost extent and the number of
// elements allow it. All axes of threads that the kernel uses take part, except those on which the region depends.
// "local_stage" sends the elements through registers (stage_shared_copies).
//
// From fragments of m16n8k8 (scope "m16n8k8.matrixC"), each lane copies the elements that it holds.
//
// Needs      blocks without axes; buffers have their final shapes
// Ensures    a copy whose nest is one store under loops of constant extents, in memory that threads share, is done once
// Placement  before stage_shared_copies, which takes copies apart

#include <algorithm>
#include <functional>
#include <map>

#include "analysis/block_access_region.h"
#include "analysis/threads.h"
#include "arith/analyzer.h"
#include "ir/build.h"
#include "ir/substitute.h"
#include "ir/traverse.h"
#include "ir/warp_steps.h"
#include "lower/gpu/kernel.h"
#include "lower/passes.h"
#include "support/ranges.h"

namespace tilewright::lower {
namespace {

constexpr const char* kAutoCopy = "auto_copy";
constexpr const char* kVectorBytes = "vector_bytes";
constexpr const char* kThroughRegisters = "local_stage";
constexpr const char* kRegisters = "m16n8k8.matrixC";

int64_t number_of(const Annotations& annotations, const char* key) {
  const NodeRef value = annotations.get(key);
  return value.defined() && value.sort() == Sort::kExpr ? const_int(Expr(value)).value_or(0) : 0;
}

/// Loops around one store.
struct RegionCopy {
  std::vector<Ref<For>> loops;  ///< outermost first
  Ref<BufferStore> store;
  int64_t elements = 1;

  static std::optional<RegionCopy> of(const Block& block) {
    if (!block.alloc_buffers.empty() || !block.match_buffers.empty()) return {};
    RegionCopy copy;
    Stmt s = block.body;
    for (; s.is<For>(); s = Stmt(copy.loops.back()->body)) {
      const For& loop = *s.as<For>();
      auto extent = const_int(loop.extent);
      if (!extent || *extent < 1 || !const_int(loop.min) || is_bound(loop)) return {};
      copy.loops.push_back(s.cast<For>());
      copy.elements *= *extent;
    }
    if (!s.is<BufferStore>() || copy.loops.empty()) return {};
    copy.store = s.cast<BufferStore>();
    if (copy.store->predicate.defined() || copy.store->value.dtype().is_vector()) return {};
    return copy;
  }

  bool reads_scope(const std::function<bool(const std::string&)>& is_one) const {
    return any_node(store, [&](const Ref<BufferLoad>& load) { return is_one(load->buffer->scope()); });
  }
};

class AutoCopies {
 public:
  explicit AutoCopies(const Ref<For>& kernel) {
    visit(kernel, [&](const Ref<For>& loop) {
      auto axis = is_bound(*loop) ? analysis::thread_axis(*loop) : std::nullopt;
      if (axis && axis->level == ThreadAxis::Level::kThread) team_[axis->dimension] = loop;
    });
  }

  Stmt run(const Stmt& kernel) {
    return rewrite(
        kernel,
        [&](const Ref<For>& loop, Rewriter& r) -> Stmt {
          around_.push_back(loop);
          Stmt inner = r.descend(loop);
          around_.pop_back();
          return inner;
        },
        [&](const Ref<LetStmt>& let, Rewriter& r) -> Stmt {
          lets_.push_back(let->var);
          Stmt inner = r.descend(let);
          lets_.pop_back();
          return inner;
        },
        on<IfThenElse, While>(
            [&](const auto& branch, Rewriter& r) -> Stmt { return under(branch->condition, branch, r); }),
        [&](const Ref<BlockRealize>& realize, Rewriter& r) -> Stmt {
          if (number_of(realize->block->annotations, kAutoCopy) != 0) {
            if (auto copied = shared_out(realize)) return *copied;
          }
          return is_true(realize->predicate) ? Stmt(r.descend(realize)) : under(realize->predicate, realize, r);
        });
  }

 private:
  template <class T>
  Stmt under(const Expr& condition, const Ref<T>& s, Rewriter& r) {
    conditions_.push_back(condition);
    Stmt inner = r.descend(s);
    conditions_.pop_back();
    return inner;
  }

  /// Whether what the threads of the loop do there differs: its variable decides a region, a condition or an extent.
  bool decides(const Ref<For>& loop, const Ref<BlockRealize>& copy) const {
    const Ref<Var>& v = loop->loop_var;
    if (effect_of(copy->predicate) != Effect::kPure) return true;
    for (const Ref<Var>& let : lets_) {
      if (uses_var(copy, let)) return true;
    }
    auto uses = [&](const Expr& e) { return uses_var(e, v) || effect_of(e) != Effect::kPure; };
    return uses_var(copy, v) || any_of(conditions_, uses) || any_of(around_, [&](const Ref<For>& outer) {
             return !is_bound(*outer) && (uses(outer->min) || uses(outer->extent));
           });
  }

  /// The loops over the threads that take part, x last; nothing if their number is not known.
  std::optional<std::vector<Ref<For>>> threads_for(const Ref<BlockRealize>& copy) const {
    std::vector<Ref<For>> threads;
    for (const auto& [dimension, thread] : reversed(team_)) {
      const std::string& tag = thread->thread_binding->thread_tag;
      bool takes_part = true;
      for (const Ref<For>& loop : around_) {
        if (is_bound(*loop) && loop->thread_binding->thread_tag == tag) takes_part &= !decides(loop, copy);
      }
      if (!takes_part) continue;
      if (!const_int(thread->extent) || !is_const_int(thread->min, 0)) return {};
      threads.push_back(thread);
    }
    return threads;
  }

  std::optional<Stmt> shared_out(const Ref<BlockRealize>& realize) {
    auto copy = RegionCopy::of(*realize->block);
    if (!copy) return {};
    const bool to_shared = is_shared_scope(copy->store->buffer->scope());
    if (!to_shared && !is_global_scope(copy->store->buffer->scope())) return {};
    if (copy->reads_scope([](const std::string& scope) { return scope == kRegisters; })) {
      return from_registers(*copy, realize);
    }
    if (copy->reads_scope([](const auto& scope) { return !is_shared_scope(scope) && !is_global_scope(scope); })) {
      return {};  // memory of one thread
    }
    auto threads = threads_for(realize);
    if (!threads) return {};
    int64_t team = 1;
    for (const Ref<For>& loop : *threads) team *= *const_int(loop->extent);
    const Annotations& annotations = realize->block->annotations;
    const int64_t bytes = copy->store->buffer->dtype.bytes(), innermost = *const_int(copy->loops.back()->extent);
    int64_t lanes = std::clamp<int64_t>(number_of(annotations, kVectorBytes) / std::max<int64_t>(bytes, 1), 1, 16);
    while (lanes > 1 && (innermost % lanes != 0 || copy->elements % lanes != 0)) --lanes;
    const int64_t chunks = copy->elements / lanes, rounds = (chunks + team - 1) / team;

    Ref<Var> round = var("o"), lane = var("v");
    Expr chunk = round;
    std::vector<Ref<Var>> thread_vars;
    for (const Ref<For>& loop : *threads) {
      thread_vars.push_back(var(loop->loop_var->name_hint));
      chunk = chunk * *const_int(loop->extent) + thread_vars.back();
    }
    Expr place = lanes == 1 ? chunk : chunk * lanes + lane;
    VarMap indices;
    for (auto it = copy->loops.rbegin(); it != copy->loops.rend(); ++it) {
      const Ref<For>& loop = *it;
      const int64_t extent = *const_int(loop->extent);
      const Expr digit = it + 1 == copy->loops.rend() ? place : floormod(place, i32(extent));
      indices[loop->loop_var] = cast(loop->loop_var.dtype(), digit) + loop->min;
      place = floordiv(place, i32(extent));
    }
    Expr predicate = realize->predicate;
    if (rounds * team != chunks) predicate = logical_and(predicate, lt(chunk, i32(chunks)));
    Stmt s = one_store(realize, substitute(Stmt(copy->store), indices), predicate, to_shared);
    if (lanes > 1) s = loop(lane, i32(lanes), std::move(s), ForKind::kVectorized);
    for (size_t i = thread_vars.size(); i-- > 0;) s = bound_to((*threads)[i], thread_vars[i], std::move(s));
    return loop(round, i32(rounds), std::move(s));
  }

  static Stmt bound_to(const Ref<For>& threads, const Ref<Var>& v, Stmt body) {
    return bound_loop(v, cast(v.dtype(), threads->extent), threads->thread_binding->thread_tag, std::move(body));
  }

  /// The store as a block of its own, where the condition holds.
  static Stmt one_store(const Ref<BlockRealize>& copy, const Stmt& store, const Expr& predicate, bool to_shared) {
    Block block;
    block.name_hint = copy->block->name_hint;
    block.annotations = copy->block->annotations;
    if (to_shared && number_of(block.annotations, kThroughRegisters) != 0) {
      block.annotations.set("tir.manifest_shared_memory_local_stage", i32(1));
    }
    for (const char* key : {kAutoCopy, kVectorBytes, kThroughRegisters}) block.annotations.erase(key);
    block.body = store;
    analysis::BlockAccess access = analysis::block_access_region(make<Block>(Block(block)));
    block.reads = std::move(access.reads);
    block.writes = std::move(access.writes);
    return make<BlockRealize>({{}, predicate, make(std::move(block), copy->block.span())}, copy.span());
  }

  /// A matrix, whose elements lanes hold by tiles of 16 x 8 (ir/warp_steps.h), two neighbors of a row at a time.
  std::optional<Stmt> from_registers(const RegionCopy& copy, const Ref<BlockRealize>& realize) {
    if (copy.loops.size() < 2) return {};
    const Ref<For>&rows = copy.loops[copy.loops.size() - 2], &columns = copy.loops.back();
    const int64_t height = *const_int(rows->extent), width = *const_int(columns->extent);
    if (height % 16 != 0 || width % 8 != 0) return {};
    Ref<Var> i = var("i"), j = var("j"), x = var("tx"), half = var("half"), pair = var("pair");
    VarMap indices;
    indices[rows->loop_var] = cast(rows->loop_var.dtype(), i * 16 + half * 8 + floordiv(x, 4)) + rows->min;
    indices[columns->loop_var] = cast(columns->loop_var.dtype(), j * 8 + floormod(x, 4) * 2 + pair) + columns->min;
    Stmt s = one_store(realize, substitute(Stmt(copy.store), indices), realize->predicate, false);
    s = loop(pair, i32(2), std::move(s), ForKind::kVectorized);
    s = bound_loop(x, i32(kWarpLanes), "threadIdx.x", loop(half, i32(2), std::move(s)));
    s = loop(i, i32(height / 16), loop(j, i32(width / 8), std::move(s)));
    for (size_t n = copy.loops.size() - 2; n-- > 0;) {
      s = with_body(copy.loops[n], std::move(s));
    }
    return renew_defs(s);
  }

  std::map<int, Ref<For>> team_;  ///< thread loops of the kernel, by dimension
  std::vector<Ref<For>> around_;
  std::vector<Ref<Var>> lets_;
  std::vector<Expr> conditions_;
};

}  // namespace

PassResult lower_auto_copies(const Ref<PrimFunc>& func, PassContext&) {
  auto is_one = [](const Ref<Block>& block) { return number_of(block->annotations, kAutoCopy) != 0; };
  if (!any_node(func->body, is_one)) return func;
  return with_body(func, rewrite(func->body, [](const Ref<For>& loop, Rewriter& r) -> Stmt {
                     return is_bound(*loop) ? AutoCopies(loop).run(loop) : Stmt(r.descend(loop));
                   }));
}

}  // namespace tilewright::lower
