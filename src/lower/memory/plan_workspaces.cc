// Allocate temporary memory once per call, and let allocations that are never alive together share it.
//
//   Before                               After
//   for i in range(64):                  t = T.allocate([1024], "float32", "global")
//     t = T.allocate([1024], ...)        for i in range(64):
//     ...                                  ...
//     u = T.allocate([512], ...)           u = t
//     ...                                  ...
//
// Needs      flat buffers
// Ensures    allocations whose sizes are known where a function or the body of a parallel loop starts are made there;
//            those of disjoint scopes share memory, the larger size counting, open ones with their like. The others
//            stay. A parallel loop inside of another one is serial: the thread that meets it runs it, and its
//            iterations reuse the memory one after another.
// Placement  after promote_registers, which has taken what is not memory
#include <algorithm>

#include "ir/build.h"
#include "ir/structural.h"
#include "ir/substitute.h"
#include "ir/traverse.h"
#include "lower/passes.h"
#include "support/ranges.h"

namespace tilewright::lower {
namespace {

bool is_register(const Allocate& allocate) {
  return allocate.dtype.is_vector() && is_const_int(allocate.extents[0], 1);
}

/// Memory that several allocations of one region use one after the other.
struct WorkspaceSlot {
  Ref<Var> data;  ///< data variable of the first buffer
  DataType dtype;
  std::string scope;
  int64_t bytes = 0;  ///< 0: a symbolic size, shared with the same one only
  Expr extent;
  Annotations annotations;
};

class Planner {
 public:
  Stmt region(const Stmt& body) {
    std::vector<WorkspaceSlot> outer = std::exchange(slots_, {});
    Stmt inside = walk(body);
    for (const WorkspaceSlot& slot : reversed(slots_)) {
      Expr extent = slot.extent;
      if (slot.bytes) extent = i64((slot.bytes + slot.dtype.bytes() - 1) / slot.dtype.bytes());
      inside = make<Allocate>({slot.data, slot.dtype, {extent}, bool_imm(true), inside, slot.annotations});
    }
    slots_ = std::move(outer);
    return inside;
  }

 private:
  Stmt walk(const Stmt& body) {
    return rewrite(
        body,
        [&](const Ref<For>& loop, Rewriter& r) -> Stmt {
          defined_.insert(loop->loop_var);
          if (loop->kind != ForKind::kParallel) return r.descend(loop);
          if (in_parallel_) {
            For serial = *loop;
            serial.kind = ForKind::kSerial;
            serial.body = r(loop->body);
            return make(std::move(serial), loop.span());
          }
          in_parallel_ = true;
          std::unordered_set<NodeRef> outer = std::exchange(defined_, {loop->loop_var});
          For copy = *loop;
          copy.body = region(loop->body);
          defined_ = std::move(outer);
          in_parallel_ = false;
          return make(std::move(copy), loop.span());
        },
        [&](const Ref<LetStmt>& let, Rewriter& r) -> Stmt {
          defined_.insert(let->var);
          return r.descend(let);
        },
        [&](const Ref<Allocate>& allocate, Rewriter& r) -> Stmt { return place(allocate, r); });
  }

  Stmt place(const Ref<Allocate>& allocate, Rewriter& r) {
    if (is_register(*allocate)) return r.descend(allocate);
    bool late = uses_any_of(allocate->extents[0], defined_);
    if (late || effect_of(allocate->extents[0]) != Effect::kPure) return r.descend(allocate);
    auto count = const_int(allocate->extents[0]);
    int64_t bytes = count ? std::max<int64_t>(1, *count) * allocate->dtype.bytes() * allocate->dtype.lanes : 0;
    std::string scope = allocate->buffer_var->type_annotation.as<PointerType>()->storage_scope;
    // The first slot that no enclosing allocation holds.
    size_t index = slots_.size();
    auto fits = [&](const WorkspaceSlot& slot) {
      if (bytes > 0) return slot.bytes > 0;
      return slot.bytes == 0 && slot.dtype == allocate->dtype && same_expr(slot.extent, allocate->extents[0]);
    };
    for (size_t i : indices_of(slots_)) {
      if (slots_[i].scope == scope && fits(slots_[i]) && !held_.count(slots_[i].data)) {
        index = i;
        break;
      }
    }
    bool is_new = index == slots_.size();
    if (is_new)
      slots_.push_back(
          {allocate->buffer_var, allocate->dtype, scope, bytes, allocate->extents[0], allocate->annotations});
    slots_[index].bytes = std::max(slots_[index].bytes, bytes);
    Ref<Var> data = slots_[index].data;
    held_.insert(data);
    Stmt body = r(allocate->body);
    held_.erase(data);
    return is_new ? body : Stmt(make<LetStmt>({allocate->buffer_var, data, body}));
  }

  std::vector<WorkspaceSlot> slots_;
  std::unordered_set<NodeRef> held_;
  std::unordered_set<NodeRef> defined_;  ///< since the start of the region
  bool in_parallel_ = false;
};

}  // namespace

PassResult plan_workspaces(const Ref<PrimFunc>& func, PassContext&) {
  if (!any_node(func->body, [](const Ref<Allocate>& allocate) { return !is_register(*allocate); })) return func;
  return with_body(func, Planner().region(func->body));
}

}  // namespace tilewright::lower
