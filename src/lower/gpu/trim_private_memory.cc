// Shrink private memory to the elements that one thread uses.
//
//   Before                                           After
//   for ty in T.thread_binding(4, "threadIdx.y"):    for ty in T.thread_binding(4, "threadIdx.y"):
//     S = T.allocate([32], "float32", "local")         S = T.allocate([8], "float32", "local")
//     for i in range(8):                               for i in range(8):
//       S[ty * 8 + i] = ...                              S[i] = ...
//
// A private buffer that is used in several loops over threads is declared outside of them, with elements for all
// threads. On a device each thread has its own copy and accesses one part of it, at an offset that depends on the
// thread. The pass drops the other parts and the offset, so that constant indices remain and the buffer can be kept in
// registers.
//
// Needs      one variable for the threads of an axis; flat buffers
// Ensures    if each index of such a buffer is one thread-dependent offset plus a thread-independent part, the offset
// is
//            removed
// Placement  before lower_warp_memory and unroll_loops, which make the places of registers constants
#include <algorithm>

#include "analysis/threads.h"
#include "arith/analyzer.h"
#include "ir/build.h"
#include "ir/fragments.h"
#include "ir/structural.h"
#include "ir/substitute.h"
#include "ir/traverse.h"
#include "lower/gpu/kernel.h"
#include "lower/passes.h"
#include "support/ranges.h"
#include "target/memory_scope.h"

namespace tilewright::lower {
namespace {

class PrivateMemoryTrimmer {
 public:
  PrivateMemoryTrimmer(const PrimFunc& func, const Ref<For>& kernel) : fragments_(kernel) {
    assume_sizes(func, analyzer_);
    visit(kernel, [&](const Ref<For>& loop) { analyzer_.bind(loop->loop_var, loop->min, loop->extent); });
    for (const Ref<For>& loop : KernelLoops::of(kernel).loops) {
      auto axis = analysis::thread_axis(*loop);
      if (axis && axis->in_team()) threads_.emplace_back(loop->loop_var, *axis);
    }
  }

  Stmt run(const Ref<For>& kernel) {
    visit(kernel, [&](const Ref<Allocate>& allocate) {
      const int64_t size = allocate->extents.size() == 1 ? const_int(allocate->extents[0]).value_or(0) : 0;
      if (size > 0 && !own_threads(scope_of(allocate->buffer_var)).empty()) memory_[allocate->buffer_var].size = size;
    });
    if (memory_.empty()) return kernel;
    note_accesses(kernel);
    std::erase_if(memory_, [](const auto& entry) { return !entry.second.is_smaller(); });
    return memory_.empty() ? Stmt(kernel) : trimmed(kernel);
  }

 private:
  struct Memory {
    int64_t size = 0;
    Expr own;                   ///< offset of the thread's part; null: no access was seen yet
    int64_t low = 0, high = 0;  ///< first and last accessed element, relative to `own`
    bool is_opaque = false;

    bool is_smaller() const { return own.defined() && !is_opaque && high - low + 1 < size; }
  };

  /// Maps thread variables to 0 if each of their threads has its own copy of memory of the scope. Excludes scopes that
  /// the lanes of a warp share.
  VarMap own_threads(const std::string& scope) const {
    VarMap none;
    for (const auto& [thread, axis] : threads_) {
      if (memory_scope(scope).lanes == 1 && !memory_scope(scope).is_shared_by(axis))
        none[thread] = zero(thread.dtype());
    }
    return none;
  }

  Memory* find(const NodeRef& data) { return find_value(memory_, data); }

  /// Records an access to the `unit` elements that start at element `place * unit`.
  void note(const NodeRef& data, const Expr& place, int64_t unit) {
    Memory* memory = find(data);
    if (!memory) return;
    if (!place.dtype().is_scalar() || effect_of(place) != Effect::kPure) {
      memory->is_opaque = true;
      return;
    }
    const Expr rest = without_thread(data, place);
    const Expr own = analyzer_.simplify((place - rest) * unit);
    const arith::ConstIntBound bound = analyzer_.const_int_bound(rest);
    const bool is_same = !memory->own.defined() || structural_equal(memory->own, own);
    const bool is_bounded = bound.min_value >= -memory->size && bound.max_value <= memory->size;
    memory->is_opaque |= !is_same || !is_bounded || !uses_own_threads_only(data, own);
    if (memory->is_opaque) return;
    const int64_t low = bound.min_value * unit, high = bound.max_value * unit + unit - 1;
    memory->low = memory->own.defined() ? std::min(memory->low, low) : low;
    memory->high = memory->own.defined() ? std::max(memory->high, high) : high;
    memory->own = own;
  }

  Expr without_thread(const NodeRef& data, const Expr& place) {
    const Expr simple = analyzer_.simplify(place);
    return analyzer_.simplify(substitute(simple, own_threads(scope_of(data.borrow<Var>()))));
  }

  bool uses_own_threads_only(const NodeRef& data, const Expr& own) const {
    const VarMap threads = own_threads(scope_of(data.borrow<Var>()));
    return !uses_any_var(own, [&](const Ref<Var>& v) { return !threads.contains(v); });
  }

  /// A fragment that a call accesses.
  struct Place {
    size_t pointer, place;  ///< positions of the arguments that are the buffer's pointer and the fragment's number
    int64_t unit;           ///< elements of a fragment
  };
  std::vector<Place> places_in(const Call& call) const {
    std::vector<Place> places;
    for (const auto& [fragment, number] : fragment_arguments(call)) {
      auto shape = fragment < call.args.size() ? fragments_.shape_of(call.args[fragment]) : std::nullopt;
      if (shape) places.push_back({fragment, number, shape->rows() * shape->columns()});
    }
    std::erase_if(places, [&](const Place& each) { return each.place >= call.args.size(); });
    return places;
  }

  void note_accesses(const Ref<For>& kernel) {
    auto element = [&](const Ref<Buffer>& buffer, const std::vector<Expr>& indices) {
      Memory* memory = find(buffer->data);
      if (!memory) return;
      const bool is_view = buffer->elem_offset.defined() && !is_const_int(buffer->elem_offset, 0);
      memory->is_opaque |= indices.size() != 1 || buffer->shape.size() != 1 || is_view;
      if (!memory->is_opaque) note(buffer->data, indices[0], 1);
    };
    visit(
        kernel, on<BufferLoad, BufferStore>([&](const auto& access) { element(access->buffer, access->indices); }),
        [&](const Ref<Call>& call, Visitor& v) {
          const std::vector<Place> places = places_in(*call);
          for (const Place& each : places) note(call->args[each.pointer], call->arg(each.place), each.unit);
          for (size_t i = 0; i < call->args.size(); ++i) {
            const bool is_known = any_of(places, [&](const Place& p) { return p.pointer == i; });
            if (!is_known) v(call->args[i]);
          }
        },
        [&](const Ref<DeclBuffer>& decl, Visitor& v) { v(decl->body); }, [&](const Ref<Buffer>&, Visitor&) {},
        [&](const Ref<Var>& v, Visitor& walk) {
          Memory* memory = walk.role() == Role::kChild ? find(v) : nullptr;
          if (memory) memory->is_opaque = true;
        });
  }

  /// Returns the place relative to the thread's part.
  Expr moved(const NodeRef& data, const Expr& place, int64_t unit) {
    const Memory* memory = find(data);
    return memory ? analyzer_.simplify(without_thread(data, place) - memory->low / unit) : place;
  }

  Stmt trimmed(const Ref<For>& kernel) {
    std::unordered_map<NodeRef, Ref<Buffer>> smaller;
    auto size = [](const Memory& memory) { return i32(memory.high - memory.low + 1); };
    visit(kernel, [&](const Ref<Buffer>& buffer) {
      const Memory* memory = find(buffer->data);
      if (!memory || smaller.contains(buffer)) return;
      Buffer copy = *buffer;
      copy.shape = {cast(copy.shape[0].dtype(), size(*memory))};
      smaller[buffer] = make(std::move(copy), buffer.span());
    });
    Stmt body = rewrite(
        kernel,
        [&](const Ref<BufferLoad>& load, Rewriter& r) -> Expr {
          BufferLoad copy = *r.descend(load);
          if (find(load->buffer->data)) copy.indices = {moved(load->buffer->data, copy.indices[0], 1)};
          return make(std::move(copy), load.span());
        },
        [&](const Ref<BufferStore>& store, Rewriter& r) -> Stmt {
          BufferStore copy = *r.descend(store);
          if (find(store->buffer->data)) copy.indices = {moved(store->buffer->data, copy.indices[0], 1)};
          return make(std::move(copy), store.span());
        },
        [&](const Ref<Call>& call, Rewriter& r) -> Expr {
          Call copy = *r.descend(call);
          for (const Place& each : places_in(*call)) {
            copy.args[each.place] = moved(call->args[each.pointer], copy.arg(each.place), each.unit);
          }
          return make(std::move(copy), call.span());
        },
        [&](const Ref<Allocate>& allocate, Rewriter& r) -> Stmt {
          Allocate copy = *r.descend(allocate);
          if (const Memory* memory = find(allocate->buffer_var)) copy.extents = {size(*memory)};
          return make(std::move(copy), allocate.span());
        });
    return replace_buffers(body, smaller);
  }

  arith::Analyzer analyzer_;
  Fragments fragments_;
  std::vector<std::pair<Ref<Var>, ThreadAxis>> threads_;
  std::unordered_map<NodeRef, Memory> memory_;
};

}  // namespace

PassResult trim_private_memory(const Ref<PrimFunc>& func, PassContext&) {
  return with_body(func, rewrite(func->body, [&](const Ref<For>& loop, Rewriter& r) -> Stmt {
                     return is_bound(*loop) ? PrivateMemoryTrimmer(*func, loop).run(loop) : Stmt(r.descend(loop));
                   }));
}

}  // namespace tilewright::lower
