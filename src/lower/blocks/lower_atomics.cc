// Make atomic operations of the updates in blocks with the annotation "atomic".
//
//   Before                                          After
//   for p in T.parallel(n):                         for p in T.parallel(n):
//     with T.block("scatter"):                        with T.block("scatter"):
//       vp = T.axis.reduce(n, p)                        vp = T.axis.spatial(n, p)
//       T.block_attr({"atomic": True})                  T.atomic_add(T.address_of(C[R[vp]]), V[vp])
//       C[R[vp]] = C[R[vp]] + V[vp]
//
// A block around such blocks, which does nothing else, has spatial axes, too: the columns of a matrix in CSC, each of
// which adds to rows that data choose.
//
// Where no loop around runs its iterations at the same time, or they have copies of the buffer, the store stays as it
// is.
//
// Needs      blocks
// Ensures    no block has the annotation. A store in such a block to memory that it does not allocate is a sum, a
//            difference, a minimum, a maximum or a bitwise operation of its element and a value, of a type that has
//            atomic operations; others are refused, and so is an init, which is no update
// Placement  before lower_thread_reductions: threads that meet in an element update it one by one
#include <vector>

#include "analysis/atomic_block.h"
#include "analysis/threads.h"
#include "ir/annotations.h"
#include "ir/atomic_operation.h"
#include "ir/build.h"
#include "ir/refuse_at.h"
#include "ir/traverse.h"
#include "lower/passes.h"
#include "support/ranges.h"
#include "target/memory_scope.h"

namespace tilewright::lower {
namespace {

class Atomics {
 public:
  /// `is_called`: whoever calls the function may do so from several threads.
  explicit Atomics(bool is_called) : is_called_(is_called) {}

  Result<Stmt> run(const Stmt& body) {
    Stmt result = rewrite(
        body,
        [&](const Ref<For>& loop, Rewriter& r) -> Stmt {
          if (!analysis::runs_on_threads(loop->kind)) return r.descend(loop);
          around_.push_back(loop);
          Stmt inner = r.descend(loop);
          around_.pop_back();
          return inner;
        },
        [&](const Ref<Block>& block, Rewriter& r) -> Ref<Block> {
          const int before = steps_;
          Ref<Block> inner = r.descend(block);
          if (is_atomic_block(*block)) inner = lowered(inner);
          const bool only_updates = is_atomic_block(*block) || !analysis::AtomicUpdates::of(block).empty();
          return steps_ > before && only_updates ? in_parallel(inner) : inner;
        });
    if (error_) return *error_;
    return result;
  }

 private:
  void refuse(const NodeRef& where, std::string message, std::string hint) {
    if (!error_) error_ = refuse_at(where, "lower/atomic", std::move(message), std::move(hint));
  }

  /// Iterations that run at the same time use the same copy of the buffer.
  bool is_shared(const Ref<Buffer>& buffer) const {
    return is_called_ || any_of(around_, [&](const Ref<For>& loop) {
             auto axis = analysis::thread_axis(*loop);
             return !axis || memory_scope(buffer->scope()).is_shared_by(*axis);
           });
  }

  Ref<Block> lowered(const Ref<Block>& block) {
    Block copy = *block;
    copy.annotations.erase(kAtomic);
    if (block->init.defined()) {
      refuse(block, "block '" + block->name_hint + "' is annotated as atomic and has an init, which is not an update",
             "set the elements in a block before: sch.decompose_reduction(block, loop)");
    }
    copy.body = rewrite(block->body, [&](const Ref<BufferStore>& store, Rewriter&) -> Stmt {
      const bool is_own =
          any_of(block->alloc_buffers, [&](const Ref<Buffer>& own) { return own->data == store->buffer->data; });
      if (is_own) return store;
      auto step = AtomicOperation::of(*store);
      if (!step) refuse_store(*block, store);
      if (!step || !is_shared(store->buffer)) return store;
      ++steps_;
      return make<Evaluate>({step->as_call()}, store.span());
    });
    return make(std::move(copy), block.span());
  }

  /// Where there are steps, nothing is put together behind the loops any more.
  static Ref<Block> in_parallel(const Ref<Block>& block) {
    Block copy = *block;
    for (Ref<IterVar>& axis : copy.iter_vars) {
      if (axis->iter_type == IterType::kDataPar) continue;
      IterVar parallel = *axis;
      parallel.iter_type = IterType::kDataPar;
      axis = make(std::move(parallel));
    }
    return make(std::move(copy), block.span());
  }

  void refuse_store(const Block& block, const Ref<BufferStore>& store) {
    refuse(store,
           "block '" + block.name_hint + "' is annotated as atomic, and this store to '" + store->buffer->name +
               "' is not an atomic update of its element",
           "an update is C[i] = C[i] + x, C[i] - x, T.min(C[i], x), T.max(C[i], x), C[i] & x, C[i] | x or C[i] ^ x of "
           "elements of int32, uint32, int64 or uint64; elements of float32 and float64 are added to or subtracted "
           "from alone");
  }

  bool is_called_;
  std::vector<Ref<For>> around_;  ///< loops whose iterations run at the same time
  int steps_ = 0;                 ///< atomic operations that were made
  std::optional<Diagnostic> error_;
};

}  // namespace

PassResult lower_atomics(const Ref<PrimFunc>& func, PassContext& context) {
  TW_TRY(body, Atomics(context.called).run(func->body));
  return with_body(func, std::move(body));
}

}  // namespace tilewright::lower
