// Give each kernel one loop per axis of its blocks and threads, at its root.
//
//   Before                                             After
//   for bx in T.thread_binding(4, "blockIdx.x"):       for bx in T.thread_binding(4, "blockIdx.x"):
//     for i in T.thread_binding(32, "threadIdx.x"):      for tx in T.thread_binding(32, "threadIdx.x"):
//       S[i] = ...                                         S[tx] = ...
//     T.tvm_storage_sync("shared")                         T.tvm_storage_sync("shared")
//     for j in T.thread_binding(32, "threadIdx.x"):        ... = S[31 - tx]
//       ... = S[31 - j]                                    if tx == 0:
//     B[bx] = 0.0                                            B[bx] = 0.0
//
// All loops that a kernel binds to an axis run on the same threads, so they have one extent, which is known when the
// kernel is launched. What is outside of all loops over an axis runs once, and not on every thread: a store to memory
// that the threads share is left to the first of them.
//
// Needs      flat buffers; no virtual threads
// Ensures    a kernel is a nest of loops over blocks, and inside of them over threads, around statements without bound
//            loops; a grid has at most 65,535 blocks along y and z; memory of blocks and threads is allocated inside
// Placement  before indices are simplified: variables of one axis have become one
#include <algorithm>
#include <array>

#include "analysis/threads.h"
#include "arith/analyzer.h"
#include "ir/async_copy.h"
#include "ir/atomic_operation.h"
#include "ir/build.h"
#include "ir/fragments.h"
#include "ir/refuse_at.h"
#include "ir/structural.h"
#include "ir/substitute.h"
#include "ir/traverse.h"
#include "ir/warp_steps.h"
#include "lower/gpu/kernel.h"
#include "lower/passes.h"
#include "support/ranges.h"
#include "target/memory_scope.h"

namespace tilewright::lower {
namespace {

constexpr int64_t kMostBlocksAlongYAndZ = 65535;
constexpr int64_t kMostBlocks = INT32_MAX;
/// Bytes of main memory of one thread that may become local memory.
constexpr int64_t kMostLocalBytes = 1024;

struct Axis {
  ThreadAxis axis;
  Ref<For> loop;  ///< the first one that is bound to it
  Expr extent;
  Ref<Var> v;
  /// That its loops have iterations, where it may have none and the kernel does something outside of them
  Expr condition = bool_imm(true);

  const std::string& tag() const { return loop->thread_binding->thread_tag; }
  std::string described() const { return "loop '" + loop->loop_var->name_hint + "'"; }
};

class Kernel {
 public:
  Kernel(const PrimFunc& func, const Target& target) : target_(target) { assume_sizes(func, analyzer_); }

  Result<Stmt> run(const Ref<For>& root) {
    visit(root, [&](const Ref<For>& loop) {
      defined_.insert(loop->loop_var);
      if (is_bound(*loop)) note(loop);
    });
    if (error_) return *error_;
    check_extents();
    launch_at_least_one_thread(root);
    order();
    Stmt body = without_loops(root);
    if (error_) return *error_;
    body = with_loops(std::move(body));
    if (error_) return *error_;
    return body;
  }

 private:
  void fail(const NodeRef& node, std::string code, std::string message, std::string hint) {
    if (!error_) error_ = refuse_at(node, std::move(code), std::move(message), std::move(hint));
  }

  Axis* find(const ThreadAxis& axis) {
    auto it = find_if(axes_, [&](const Axis& a) { return a.axis == axis; });
    return it == axes_.end() ? nullptr : &*it;
  }

  void note(const Ref<For>& loop) {
    auto axis = analysis::thread_axis(*loop);  // the verifier has seen that it is one
    TW_CHECK(axis && axis->level != ThreadAxis::Level::kVirtual, loop->thread_binding->thread_tag);
    Axis* known = find(*axis);
    if (!known) {
      axes_.push_back({*axis, loop, loop->extent, var(axis_name(*axis), loop->loop_var.dtype())});
      return;
    }
    if (analyzer_.can_prove_equal(known->extent, cast(known->extent.dtype(), loop->extent))) return;
    const std::string other = "loop '" + loop->loop_var->name_hint + "'";
    auto number = [](const Expr& e) {
      auto known = const_int(e);
      return known ? std::to_string(*known) + " iterations" : std::string("another number of iterations");
    };
    fail(loop, "lower/thread-extent",
         known->described() + " (" + number(known->extent) + ") and " + other + " (" + number(loop->extent) +
             ") of one kernel are both bound to " + known->tag() + ", and have different extents",
         "all loops of a kernel that are bound to one axis run on the same threads: split them to the same extent, and "
         "leave the rest serial");
  }

  static std::string axis_name(const ThreadAxis& axis) {
    return (axis.level == ThreadAxis::Level::kBlock ? "block_" : "thread_") +
           std::string(1, static_cast<char>('x' + axis.dimension));
  }

  /// Checks that launch extents are known outside of the kernel and within the limits of the target.
  void check_extents() {
    int64_t threads = 1;
    for (const Axis& a : axes_) {
      const bool reads = effect_of(a.extent) != Effect::kPure;
      if (reads || uses_any_of(a.extent, defined_)) {
        fail(a.loop, "lower/launch-extent",
             a.described() + " is bound to " + a.tag() + ", and its extent " +
                 (reads ? "is read from memory" : "depends on another loop") + ": it is known only inside the kernel",
             "let the loop run to the largest extent, which is known when the kernel is launched, and skip the "
             "iterations beyond by T.where, or by an if around the block");
      }
      if (a.axis.in_team()) threads *= std::max<int64_t>(const_int(a.extent).value_or(1), 1);
    }
    const int64_t most = target_.max_threads_per_block;
    if (most == 0 || threads <= most) return;
    std::string product;
    for (const Axis& a : axes_) {
      if (a.axis.in_team() && const_int(a.extent)) {
        product += (product.empty() ? "" : ", ") + a.tag() + " " + std::to_string(*const_int(a.extent));
      }
    }
    fail(axes_.back().loop, "lower/threads",
         "a block of this kernel has " + std::to_string(threads) + " threads (" + product +
             "), and the target allows " + std::to_string(most),
         "split the loops that are bound to threadIdx, and leave a part of each serial");
  }

  /// If a bound loop may have no iterations, launches at least one thread, for the statements outside of the loop, and
  /// guards the loop by a condition.
  void launch_at_least_one_thread(const Ref<For>& root) {
    for (Axis& axis : axes_) {
      if (analyzer_.can_prove(gt(axis.extent, 0)) || !does_more(root, axis.axis)) continue;
      axis.condition = gt(axis.extent, 0);
      axis.extent = max(axis.extent, one(axis.extent.dtype()));
    }
  }

  /// Whether a kernel changes memory outside of the loops over an axis.
  static bool does_more(const Ref<For>& root, const ThreadAxis& axis) {
    bool found = false;
    visit(
        root,
        [&](const Ref<For>& loop, Visitor& v) {
          if (!is_bound(*loop) || *analysis::thread_axis(*loop) != axis) v.descend(loop);
        },
        [&](const Ref<BufferStore>&) { found = true; },
        [&](const Ref<Evaluate>& step) {
          found |= !is_barrier(step) && effect_of(step->value) == Effect::kUpdateState;
        });
    return found;
  }

  /// Blocks around threads, and z around y around x: neighbors along x are neighbors in memory most of the time.
  void order() {
    std::ranges::sort(axes_, [](const Axis& a, const Axis& b) {
      if (a.axis.level != b.axis.level) return a.axis.level == ThreadAxis::Level::kBlock;
      return a.axis.dimension > b.axis.dimension;
    });
  }

  // ---- the statements

  Stmt without_loops(const Stmt& s) {
    return rewrite(
        s,
        [&](const Ref<For>& loop, Rewriter& r) -> Stmt {
          if (!is_bound(*loop)) return r.descend(loop);
          Axis& axis = *find(*analysis::thread_axis(*loop));
          covered_.push_back(axis.axis);
          Expr value = loop->min + cast(loop->loop_var.dtype(), axis.v);
          Stmt body = substitute(r(loop->body), {{loop->loop_var, value}});
          covered_.pop_back();
          return is_true(axis.condition) ? body : Stmt(make<IfThenElse>({axis.condition, body, {}}, loop.span()));
        },
        [&](const Ref<LetStmt>& let, Rewriter& r) -> Stmt {
          check_result(let, let->value, is_true(one_thread("global")));
          const std::string scope = effect_of(let->value) == Effect::kPure ? "" : scope_of_all_stores(let->body);
          if (scope.empty() || is_true(one_thread(scope))) return r.descend(let);
          // Threads that store nothing do not read either: what they would read, the one that stores overwrites.
          const Expr first = one_thread(scope);
          const size_t around = covered_.size();
          cover_all_of(scope);
          Stmt inner = r.descend(let);
          covered_.resize(around);
          return make<IfThenElse>({first, inner, {}}, let.span());
        },
        [&](const Ref<BufferStore>& store, Rewriter& r) -> Stmt {
          const Expr once_for_all = one_thread("global"), stores = one_thread(scope_of(store->buffer->data));
          check_result(store, store->value, structural_equal(once_for_all, stores));
          return once(r.descend(store), scope_of(store->buffer->data));
        },
        [&](const Ref<Evaluate>& evaluate, Rewriter& r) -> Stmt {
          if (is_barrier(evaluate) || effect_of(evaluate->value) != Effect::kUpdateState) return r.descend(evaluate);
          if (is_async_step(evaluate->value) && !AsyncCopy::of(evaluate->value)) return r.descend(evaluate);
          // Warp matrix instructions are executed by all threads of a warp.
          if ((is_fragment_step(evaluate->value) || is_warp_step(evaluate->value)) && fills_warps())
            return r.descend(evaluate);
          return once(r.descend(evaluate), "global");
        });
  }

  /// Whether the threads along x make up whole warps.
  bool fills_warps() const {
    return any_of(axes_,
                  [](const Axis& a) { return a.tag() == "threadIdx.x" && const_int(a.extent).value_or(1) % 32 == 0; });
  }

  /// Refuses a result of an atomic operation, which happens once, that other threads would have to have.
  void check_result(const Stmt& s, const Expr& value, bool is_had_once) {
    if (is_had_once) return;
    bool is_atomic = false;  // an atomic operation, not a shuffle, which all threads of a warp execute
    visit(value, [&](const Ref<Call>& call) { is_atomic |= AtomicOperation::of(call).has_value(); });
    if (!is_atomic) return;
    fail(s, "lower/atomic-result",
         "an atomic operation outside of the loops over threads happens once, and its result is used by all threads",
         "move the statement into a loop that is bound to threads, or store the result to shared or global memory");
  }

  /// A statement that changes memory, on one of the threads that share it.
  Stmt once(const Stmt& s, const std::string& scope) {
    const Expr first = one_thread(scope);
    return is_true(first) ? s : Stmt(make<IfThenElse>({first, s, {}}, s.span()));
  }

  /// The scope that all stores in the statement have in common; "" if there are others, or other effects.
  static std::string scope_of_all_stores(const Stmt& s) {
    std::string scope;
    bool is_one = true;
    visit(
        s,
        [&](const Ref<BufferStore>& store) {
          const std::string stored = scope_of(store->buffer->data);
          is_one &= scope.empty() || scope == stored;
          scope = stored;
        },
        [&](const Ref<For>& loop) { is_one &= !is_bound(*loop); },
        [&](const Ref<Call>& call) { is_one &= effect_of(call) != Effect::kUpdateState; });
    return is_one ? scope : "";
  }

  /// Marks all axes whose threads share memory of the scope: the statement inside runs on the first of these threads.
  void cover_all_of(const std::string& scope) {
    for (const Axis& a : axes_) {
      if (memory_scope(scope).is_shared_by(a.axis)) covered_.push_back(a.axis);
    }
  }

  /// Returns the condition that this thread is the first of those that share memory of the scope.
  Expr one_thread(const std::string& scope) const {
    const MemoryScope& memory = memory_scope(scope);
    Expr first = bool_imm(true);
    for (const Axis& a : axes_) {
      if (is_contained(covered_, a.axis)) continue;
      if (is_const_int(a.extent, 1) || !memory.is_shared_by(a.axis)) continue;
      first = logical_and(first, eq(a.v, 0));
    }
    return first;
  }

  // ---- the loops

  Stmt with_loops(Stmt body) {
    fold_grid(body);
    for (const Axis& axis : reversed(axes_)) {
      body = bound_loop(axis.v, axis.extent, axis.tag(), std::move(body), axis.loop.span());
    }
    return body;
  }

  /// Folds the grid into the x dimension if an extent along y or z is above the limit, or may be.
  void fold_grid(Stmt& body) {
    std::array<Axis*, 3> of_blocks = {};
    bool folds = false;
    int64_t blocks = 1;
    for (Axis& a : axes_) {
      if (a.axis.level != ThreadAxis::Level::kBlock) continue;
      of_blocks[static_cast<size_t>(a.axis.dimension)] = &a;
      auto extent = const_int(a.extent);
      blocks =
          extent && blocks <= kMostBlocks && *extent <= kMostBlocks ? blocks * std::max<int64_t>(*extent, 0) : blocks;
      if (extent && *extent > kMostBlocks) blocks = kMostBlocks + 1;
      if (a.axis.dimension == 0) continue;
      folds |= analyzer_.const_int_bound(a.extent).max_value > kMostBlocksAlongYAndZ;
    }
    if (!folds) return;
    Axis* last = *find_if(reversed(of_blocks), [](Axis* a) { return a != nullptr; });
    if (blocks > kMostBlocks) {
      return fail(last->loop, "lower/grid", "the grid of this kernel has more than 2^31 - 1 blocks",
                  "let each block do more: split the loops that are bound to blockIdx, and leave a part serial");
    }
    const std::string tag = "blockIdx.x";
    // The product of extents that are open may need 64 bits.
    const bool is_open = any_of(of_blocks, [](const Axis* a) { return a && !const_int(a->extent).has_value(); });
    const DataType type = is_open ? DataType::int_(64) : last->v.dtype();
    Ref<Var> all = var("block", type);
    Expr rest = all;
    VarMap parts;
    Expr total = one(type);
    for (Axis* a : of_blocks) {
      if (!a) continue;
      Expr extent = cast(all.dtype(), a->extent);
      parts[a->v] = cast(a->v.dtype(), a == last ? rest : floormod(rest, extent));
      rest = floordiv(rest, extent);
      total = total * max(extent, zero(type));
    }
    body = substitute(body, parts);
    // Bound as its first loop was, but to x.
    For first = *last->loop;
    IterVar binding = *first.thread_binding;
    binding.thread_tag = tag;
    first.thread_binding = make(std::move(binding));
    Axis folded{{ThreadAxis::Level::kBlock, 0}, make(std::move(first), last->loop.span()), total, all};
    std::erase_if(axes_, [](const Axis& a) { return a.axis.level == ThreadAxis::Level::kBlock; });
    axes_.insert(axes_.begin(), folded);
  }

  const Target& target_;
  arith::Analyzer analyzer_;
  std::vector<Axis> axes_;
  std::vector<ThreadAxis> covered_;  ///< axes of the loops around
  std::unordered_set<NodeRef> defined_;
  std::optional<Diagnostic> error_;
};

/// Moves memory of blocks and threads into the kernel that uses it, and main memory out of kernels. What a loop over
/// threads allocates in main memory belongs to one thread, so a small constant number of bytes becomes local memory.
class MemoryOfKernels {
 public:
  Result<Stmt> run(const Stmt& body) {
    Stmt result = rewrite(
        body,
        [&](const Ref<For>& loop, Rewriter& r) -> Stmt {
          if (!is_bound(*loop)) return r.descend(loop);
          const int of_threads = analysis::thread_axis(*loop)->level == ThreadAxis::Level::kThread ? 1 : 0;
          const bool is_outermost = !in_kernel_;
          in_kernel_ = true;
          threads_around_ += of_threads;
          Stmt kernel = r.descend(loop);
          threads_around_ -= of_threads;
          if (!is_outermost) return kernel;
          in_kernel_ = false;
          for (const Ref<Allocate>& lifted : reversed(lifted_)) kernel = with_body(lifted, std::move(kernel));
          lifted_.clear();
          return kernel;
        },
        [&](const Ref<Allocate>& allocate, Rewriter& r) -> Stmt {
          const bool global = is_global_scope(scope_of(allocate->buffer_var));
          if (threads_around_ > 0 && global && is_of_one_thread(*allocate)) return r.descend(in_local_memory(allocate));
          if (in_kernel_ && global) {
            lifted_.push_back(allocate);
            return r(allocate->body);
          }
          Ref<Allocate> inner = r.descend(allocate);
          return in_kernel_ || global ? Stmt(inner) : sink(inner);
        });
    if (error_) return *error_;
    return result;
  }

 private:
  /// Whether no threads inside share the memory, and it is small.
  static bool is_of_one_thread(const Allocate& allocate) {
    int64_t bytes = allocate.dtype.bytes();
    for (const Expr& extent : allocate.extents) {
      const auto known = const_int(extent);
      if (!known || *known > kMostLocalBytes) return false;
      bytes *= std::max<int64_t>(*known, 1);
      if (bytes > kMostLocalBytes) return false;
    }
    return !any_node(allocate.body, [](const Ref<For>& loop) { return is_bound(*loop); });
  }

  static Ref<Allocate> in_local_memory(const Ref<Allocate>& allocate) {
    Var data = *allocate->buffer_var;
    data.type_annotation = make<PointerType>({data.type_annotation.as<PointerType>()->element_type, "local"});
    Allocate copy = *allocate;
    copy.buffer_var = make(std::move(data), allocate->buffer_var.span());
    copy.body = substitute(allocate->body, {{allocate->buffer_var, Expr(copy.buffer_var)}});
    return make(std::move(copy), allocate.span());
  }

  /// The one loop over threads that uses the memory allocates it.
  Stmt sink(const Ref<Allocate>& allocate) {
    int kernels = 0;
    Stmt body = rewrite(allocate->body, [&](const Ref<For>& loop, Rewriter& r) -> Stmt {
      if (!is_bound(*loop)) return r.descend(loop);
      if (!uses_var(loop, allocate->buffer_var)) return loop;
      ++kernels;
      For copy = *loop;
      // A view of it may be declared outside.
      Stmt inside = loop->body;
      visit(
          allocate->body,
          [&](const Ref<DeclBuffer>& decl, Visitor& v) {
            if (decl->buffer->data == allocate->buffer_var && uses_buffer(inside, decl->buffer)) {
              inside = make<DeclBuffer>({decl->buffer, inside}, decl.span());
            }
            v(decl->body);
          },
          [&](const Ref<For>& other, Visitor& v) {
            if (!is_bound(*other)) v.descend(other);
          });
      copy.body = make<Allocate>({allocate->buffer_var, allocate->dtype, allocate->extents, allocate->condition, inside,
                                  allocate->annotations},
                                 allocate.span());
      return make(std::move(copy), loop.span());
    });
    check_outside(*allocate);
    if (kernels > 1 && !error_) {
      error_ =
          refuse_at(allocate, "lower/memory-of-kernel",
                    "buffer '" + allocate->buffer_var->name_hint + "' of scope \"" + scope_of(allocate->buffer_var) +
                        "\" is used by " + std::to_string(kernels) + " kernels, and such memory ends with each of them",
                    "put the loops under one loop that is bound to blockIdx, or use scope \"global\"");
    }
    return without_declarations(body, allocate->buffer_var);
  }

  /// Refuses uses of the buffer outside of kernels, where its memory does not exist.
  void check_outside(const Allocate& allocate) {
    auto check = [&](const Ref<Buffer>& buffer, const NodeRef& node) {
      if (error_ || buffer->data != allocate.buffer_var) return;
      error_ = refuse_at(node, "lower/memory-of-kernel",
                         "buffer '" + buffer->name + "' of scope \"" + scope_of(allocate.buffer_var) +
                             "\" is used outside of kernels, where no loop is bound to blocks or threads",
                         "bind a loop around this statement, move it into the kernel that uses the buffer "
                         "(sch.compute_at), or use scope \"global\"");
    };
    visit(
        allocate.body,
        [&](const Ref<For>& loop, Visitor& v) {
          if (!is_bound(*loop)) v.descend(loop);
        },
        on<BufferStore, BufferLoad>([&](const auto& access) { check(access->buffer, access); }));
  }

  static Stmt without_declarations(const Stmt& body, const Ref<Var>& pointer) {
    return rewrite(
        body, [&](const Ref<For>& loop, Rewriter& r) -> Stmt { return is_bound(*loop) ? Stmt(loop) : r.descend(loop); },
        [&](const Ref<DeclBuffer>& decl, Rewriter& r) -> Stmt {
          return decl->buffer->data == pointer ? r(decl->body) : Stmt(r.descend(decl));
        });
  }

  bool in_kernel_ = false;
  int threads_around_ = 0;  ///< loops around that are bound to threads of a block
  std::vector<Ref<Allocate>> lifted_;
  std::optional<Diagnostic> error_;
};

}  // namespace

PassResult unify_threads(const Ref<PrimFunc>& func, PassContext& context) {
  TW_TRY(placed, MemoryOfKernels().run(func->body));
  std::optional<Diagnostic> error;
  Stmt body = rewrite(placed, [&](const Ref<For>& loop, Rewriter& r) -> Stmt {
    if (!is_bound(*loop)) return r.descend(loop);
    Result<Stmt> kernel = Kernel(*func, context.target).run(loop);
    if (kernel.ok()) return *kernel;
    if (!error) error = kernel.error();
    return loop;
  });
  if (error) return *error;
  return with_body(func, std::move(body));
}

}  // namespace tilewright::lower
