// Make registers of each thread of what the threads of a warp hold together.
//
//   Before                                                     After
//   W = T.allocate([256], "float16", "warp")                   W = T.allocate([8], "float16", "local")
//   T.ptx_ldmatrix(0, 4, ".b16", W.data, tx * 8, ...)          T.ptx_ldmatrix(0, 4, ".b16", W.data, 0, ...)
//   T.mma_fill(8, W.data, tx * 8)                              for r in range(8): W[r] = 0
//
// In memory of scope "warp", the element of lane l and register r is at l * n + r, where n is the number by which all
// indices grow with the lane; several tiles follow one another. Instructions that each lane executes by itself become
// stores.
//
// Needs      threads are unified
// Ensures    no memory of scope "warp", no T.mma_fill and no T.mma_store
// Placement  before unroll_loops, which makes the places of registers constants
#include "arith/analyzer.h"
#include "ir/build.h"
#include "ir/refuse_at.h"
#include "ir/substitute.h"
#include "ir/traverse.h"
#include "ir/warp_steps.h"
#include "lower/gpu/kernel.h"
#include "lower/passes.h"
#include "support/ranges.h"

namespace tilewright::lower {
namespace {

bool is_warp_scope(const std::string& scope) { return scope == "warp"; }

class WarpMemory {
 public:
  WarpMemory(const PrimFunc& func, const Ref<For>& kernel) {
    assume_sizes(func, analyzer_);
    visit(kernel, [&](const Ref<For>& loop) {
      analyzer_.bind(loop->loop_var, loop->min, loop->extent);
      if (is_bound(*loop) && loop->thread_binding->thread_tag == "threadIdx.x") threads_ = loop;
    });
  }

  Result<Stmt> run(const Ref<For>& kernel) {
    Stmt body = by_lanes(kernel);
    visit(body, [&](const Ref<For>& loop) { analyzer_.bind(loop->loop_var, loop->min, loop->extent); });
    visit(body, [&](const Ref<Allocate>& allocate) {
      if (is_warp_scope(scope_of(allocate->buffer_var))) note(allocate);
    });
    if (!memory_.empty()) body = in_registers(body);
    if (error_) return *error_;
    return body;
  }

 private:
  struct Memory {
    Ref<Allocate> allocate;
    Ref<Var> registers;
    int64_t size = 0;   ///< elements of all lanes
    int64_t count = 0;  ///< neighbors of one lane; 0: not known yet
  };

  void fail(const NodeRef& node, const std::string& what) {
    if (error_) return;
    error_ =
        refuse_at(node, "lower/warp-memory", what,
                  "index it by the lane, threadIdx.x of 32 threads, times the number of registers, plus a register");
  }

  /// Instructions that exchange nothing become what each lane does.
  Stmt by_lanes(const Stmt& body) {
    return rewrite(body, [&](const Ref<Evaluate>& step, Rewriter&) -> Stmt {
      if (!is_warp_step(step->value)) return step;
      if (!threads_.defined() || const_int(threads_->extent).value_or(0) % kWarpLanes != 0) {
        fail(step,
             "an instruction that the 32 threads of a warp execute together is in a kernel whose threadIdx.x has "
             "no whole warps");
        return step;
      }
      const Expr lane = floormod(threads_->loop_var, kWarpLanes);
      auto statement = as_statement(step->value, analyzer_.simplify(lane));
      return statement ? *statement : Stmt(step);
    });
  }

  void note(const Ref<Allocate>& allocate) {
    const int64_t size = allocate->extents.size() == 1 ? const_int(allocate->extents[0]).value_or(0) : 0;
    const std::string name = allocate->buffer_var->name_hint;
    if (!threads_.defined() || const_int(threads_->extent) != kWarpLanes) {
      return fail(allocate,
                  "buffer '" + name + "' of scope \"warp\" is in a kernel whose threadIdx.x has not 32 threads");
    }
    if (size == 0 || size % kWarpLanes != 0) {
      return fail(allocate, "the size of buffer '" + name + "' of scope \"warp\" is not a multiple of 32");
    }
    memory_[allocate->buffer_var] = {allocate, pointer_var(name, allocate->dtype, "local"), size};
  }

  Memory* find(const NodeRef& data) { return find_value(memory_, data); }

  /// The own registers of a vector, whose elements are neighbors among the registers, too.
  Expr own_places(Memory& memory, const Expr& place, const NodeRef& node) {
    const Ramp* vector = place.as<Ramp>();
    auto stride = vector ? const_int(vector->stride) : std::nullopt;
    if (!stride) return own_place(memory, place, node);
    const int64_t reach = *stride * (place.dtype().lanes - 1);
    const Expr first = own_place(memory, vector->base, node), last = own_place(memory, vector->base + reach, node);
    if (!analyzer_.can_prove_equal(last - first, int_imm(first.dtype(), reach))) {
      fail(node, "a vector of buffer '" + memory.allocate->buffer_var->name_hint +
                     "' of scope \"warp\" belongs to several threads");
    }
    return make<Ramp>({first, vector->stride, vector->lanes});
  }

  /// The place among the lane's own registers.
  Expr own_place(Memory& memory, const Expr& place, const NodeRef& node) {
    const Expr lane = threads_->loop_var;
    const Expr first = analyzer_.simplify(substitute(place, {{lane, zero(lane.dtype())}}));
    auto count = const_int(analyzer_.simplify(substitute(place, {{lane, lane + 1}}) - place));
    const std::string name = memory.allocate->buffer_var->name_hint;
    if (!place.dtype().is_scalar() || !count || *count <= 0 || (memory.count != 0 && memory.count != *count) ||
        memory.size % (kWarpLanes * *count) != 0) {
      fail(node, "which thread of a warp has an element of buffer '" + name + "' of scope \"warp\" is not known");
      return place;
    }
    memory.count = *count;
    const int64_t tile = kWarpLanes * *count;
    if (!analyzer_.can_prove(lt(floormod(first, tile), int_imm(first.dtype(), *count)))) {
      fail(node, "a thread accesses an element of buffer '" + name + "' of scope \"warp\" that another thread has");
      return place;
    }
    return analyzer_.simplify(floordiv(first, tile) * *count + floormod(first, *count));
  }

  Stmt in_registers(const Stmt& body) {
    Stmt moved = rewrite(
        body,
        [&](const Ref<BufferLoad>& load, Rewriter& r) -> Expr {
          Ref<BufferLoad> inner = r.descend(load);
          Memory* memory = find(load->buffer->data);
          if (!memory) return inner;
          return make<BufferLoad>({inner->buffer, {own_places(*memory, inner->indices[0], load)}, inner->predicate},
                                  load.span());
        },
        [&](const Ref<BufferStore>& store, Rewriter& r) -> Stmt {
          Ref<BufferStore> inner = r.descend(store);
          Memory* memory = find(store->buffer->data);
          if (!memory) return inner;
          return with_field(inner, &BufferStore::indices, {own_places(*memory, inner->indices[0], store)});
        },
        [&](const Ref<Call>& call, Rewriter& r) -> Expr {
          Call copy = *r.descend(call);
          for (size_t at : register_arguments(copy)) {
            Memory* memory = at + 1 < copy.args.size() ? find(copy.args[at]) : nullptr;
            if (memory) copy.args[at + 1] = own_place(*memory, copy.arg(at + 1), call);
          }
          return make(std::move(copy), call.span());
        });
    VarMap renamed;
    std::unordered_map<NodeRef, Ref<Buffer>> smaller;
    for (const auto& [data, memory] : memory_) renamed[data] = memory.registers;
    visit(moved, [&](const Ref<DeclBuffer>& decl) {
      const Memory* memory = find(decl->buffer->data);
      if (!memory || decl->buffer->shape.size() != 1) return;
      Buffer copy = *decl->buffer;
      auto size = const_int(copy.shape[0]);
      if (size && *size == memory->size) copy.shape = {i32(memory->size / kWarpLanes)};
      smaller[decl->buffer] = make(std::move(copy), decl->buffer.span());
    });
    moved = replace_buffers(moved, smaller);
    moved = rewrite(moved, [&](const Ref<Allocate>& allocate, Rewriter& r) -> Stmt {
      const Memory* memory = find(allocate->buffer_var);
      Allocate copy = *r.descend(allocate);
      if (memory) {
        copy.buffer_var = memory->registers;
        copy.extents = {i32(memory->size / kWarpLanes)};
      }
      return make(std::move(copy), allocate.span());
    });
    return substitute(moved, renamed);
  }

  arith::Analyzer analyzer_;
  Ref<For> threads_;
  std::unordered_map<NodeRef, Memory> memory_;
  std::optional<Diagnostic> error_;
};

}  // namespace

PassResult lower_warp_memory(const Ref<PrimFunc>& func, PassContext& context) {
  Ref<Evaluate> step;
  bool has_memory = false;
  visit(func->body, [&](const Ref<Evaluate>& evaluate) {
    if (!step.defined() && is_warp_step(evaluate->value)) step = evaluate;
  });
  visit(func->body,
        [&](const Ref<Allocate>& allocate) { has_memory |= is_warp_scope(scope_of(allocate->buffer_var)); });
  if (step.defined() && context.target.kind != TargetKind::kCuda) {
    return refuse_at(step->value, "lower/no-warps",
                     "there is no code for " + step->value.as<Call>()->op.as<Op>()->name +
                         " on this target: no instruction of it lets threads exchange registers",
                     "compile for \"cuda\", or use another tensor intrinsic");
  }
  if (context.target.kind != TargetKind::kCuda || (!step.defined() && !has_memory)) return func;
  std::optional<Diagnostic> error;
  Stmt body = rewrite(func->body, [&](const Ref<For>& loop, Rewriter& r) -> Stmt {
    if (!is_bound(*loop)) return r.descend(loop);
    Result<Stmt> kernel = WarpMemory(*func, loop).run(loop);
    if (kernel.ok()) return *kernel;
    if (!error) error = kernel.error();
    return loop;
  });
  if (error) return *error;
  return with_body(func, std::move(body));
}

}  // namespace tilewright::lower
