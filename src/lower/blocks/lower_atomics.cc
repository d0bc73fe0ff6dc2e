// Make atomic steps of the updates in blocks with the annotation "atomic".
//
//   Before                                          After
//   for p in T.parallel(n):                         for p in T.parallel(n):
//     with T.block("scatter"):                        with T.block("scatter"):
//       vp = T.axis.reduce(n, p)                        vp = T.axis.spatial(n, p)
//       T.block_attr({"atomic": True})                  T.atomic_add(T.address_of(C[R[vp]]), V[vp])
//       C[R[vp]] = C[R[vp]] + V[vp]
//
// Where no loop around runs its iterations at the same time, the store stays as it is.
//
// Needs      blocks
// Ensures    no block has the annotation. A store in such a block to memory that it does not allocate is a sum, a
//            difference, a minimum or a maximum of its element and a value, of a type that has atomic steps; others are
//            refused, and so is an init, which is no update
// Placement  before lower_thread_reductions: threads that meet in an element update it one by one
#include <algorithm>
#include <utility>

#include "ir/annotations.h"
#include "ir/atomic_step.h"
#include "ir/build.h"
#include "ir/traverse.h"
#include "lower/gpu/kernel.h"
#include "lower/passes.h"

namespace tilewright::lower {
namespace {

class Atomics {
 public:
  /// `meets_others`: whoever calls the function may do so from several threads.
  explicit Atomics(bool meets_others) : meets_others_(meets_others) {}

  Result<Stmt> run(const Stmt& body) {
    Stmt result = rewrite(
        body,
        [&](const Ref<For>& loop, Rewriter& r) -> Stmt {
          const bool is_concurrent = loop->kind == ForKind::kParallel || loop->kind == ForKind::kThreadBinding;
          const bool outer = std::exchange(meets_others_, meets_others_ || is_concurrent);
          Stmt inner = r.descend(loop);
          meets_others_ = outer;
          return inner;
        },
        [&](const Ref<Block>& block, Rewriter& r) -> Ref<Block> {
          const bool is_concurrent = meets_others_;
          Ref<Block> inner = r.descend(block);
          return is_atomic_block(*block) ? lowered(inner, is_concurrent) : inner;
        });
    if (error_) return *error_;
    return result;
  }

 private:
  void refuse(const NodeRef& where, std::string message, std::string hint) {
    if (!error_) error_ = refuse_at(where, "lower/atomic", std::move(message), std::move(hint));
  }

  Ref<Block> lowered(const Ref<Block>& block, bool is_concurrent) {
    Block copy = *block;
    copy.annotations.erase(kAtomic);
    if (block->init.defined()) {
      refuse(block, "block '" + block->name_hint + "' is annotated as atomic and has an init, which is no update",
             "set the elements in a block before: sch.decompose_reduction(block, loop)");
    }
    Stmt body = rewrite(block->body, [&](const Ref<BufferStore>& store, Rewriter&) -> Stmt {
      const bool is_own = std::any_of(block->alloc_buffers.begin(), block->alloc_buffers.end(),
                                      [&](const Ref<Buffer>& own) { return own->data == store->buffer->data; });
      if (is_own) return store;
      if (auto step = AtomicStep::of(*store)) return make<Evaluate>({step->as_call()}, store.span());
      refuse(store,
             "block '" + block->name_hint + "' is annotated as atomic, and this store to '" + store->buffer->name +
                 "' is no atomic update of its element",
             "an update is C[i] = C[i] + x, C[i] - x, T.min(C[i], x) or T.max(C[i], x) of elements of int32, uint32, "
             "int64 or uint64; elements of float32 and float64 are added to or subtracted from alone");
      return store;
    });
    if (!is_concurrent) return make<Block>(std::move(copy), block.span());
    copy.body = std::move(body);
    // Nothing is put together behind the loops any more.
    for (Ref<IterVar>& axis : copy.iter_vars) {
      IterVar parallel = *axis;
      parallel.iter_type = IterType::kDataPar;
      axis = make<IterVar>(std::move(parallel));
    }
    return make<Block>(std::move(copy), block.span());
  }

  bool meets_others_;
  std::optional<Diagnostic> error_;
};

}  // namespace

PassResult lower_atomics(const Ref<PrimFunc>& func, PassContext& context) {
  TW_TRY(body, Atomics(context.called).run(func->body));
  return with_body(func, std::move(body));
}

}  // namespace tilewright::lower
