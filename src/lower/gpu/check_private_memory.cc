// Refuse programs in which a thread reads an element of private memory that another thread has written.
//
//   L = T.allocate([64], "float32", "local")
//   for i in T.thread_binding(64, "threadIdx.x"):
//     L[i] = ...
//   for j in T.thread_binding(64, "threadIdx.x"):
//     ... = L[j]                  what thread j has written: each thread has its own L
//     ... = L[63 - j]             refused: thread j never sees what thread 63 - j has written
//
// Where memory of scope "local" is allocated outside of loops over threads, the program speaks of one array, and the
// device has one for each thread. Both mean the same if a thread reads only what the same thread has written, or what
// all threads have written. Decided by enumeration of threads and iterations (team_conflicts.h); what cannot be decided
// is refused.
//
// Needs      flat buffers; no virtual threads
// Ensures    nothing changes; private memory may be given to each thread
// Placement  right before unify_threads, which gives each thread its own
#include <algorithm>

#include "analysis/threads.h"
#include "ir/build.h"
#include "ir/pointer_uses.h"
#include "ir/refuse_at.h"
#include "ir/substitute.h"
#include "ir/traverse.h"
#include "lower/gpu/kernel.h"
#include "lower/gpu/team_conflicts.h"
#include "lower/passes.h"
#include "support/ranges.h"
#include "target/memory_scope.h"

namespace tilewright::lower {
namespace {

/// An axis of threads, as one loop for all loops that are bound to it.
struct TeamAxis {
  ThreadAxis axis;
  Ref<For> loop;
};

struct PrivateAccess {
  TeamAccess at;                         ///< in elements
  std::vector<const TeamAxis*> covered;  ///< axes of the loops around
};

/// Private memory that is allocated outside of loops over threads.
struct PrivateArray {
  std::vector<NodeRef> around;  ///< variables of the loops around the allocation
  std::vector<const TeamAxis*> covered;
  std::vector<PrivateAccess> reads, writes;
};

/// An element that a let points to.
struct Pointer {
  Ref<Buffer> buffer;
  Expr index;  ///< in terms of the axes
};

class PrivateMemory {
 public:
  explicit PrivateMemory(const PrimFunc& func) { assume_sizes(func, analyzer_); }

  Status run(const Stmt& body) {
    visit(
        body, [&](const Ref<For>& loop, Visitor& v) { enter(loop, v); },
        [&](const Ref<IfThenElse>& branch, Visitor& v) {
          v(branch->condition);
          under(branch->condition, [&] { v(branch->then_case); });
          if (branch->else_case.defined()) under(logical_not(branch->condition), [&] { v(branch->else_case); });
        },
        [&](const Ref<Allocate>& allocate) {
          if (memory_scope(scope_of(allocate->buffer_var)).on_cpu == Storage::kRegisters) {
            memory_[allocate->buffer_var] = {around_, covered_, {}, {}};
            order_.push_back(allocate->buffer_var);
          }
        },
        [&](const Ref<BufferStore>& store, Visitor& v) {
          add(store->buffer, store->indices[0], true, store);
          const MemoryScope& scope = memory_scope(scope_of(store->buffer->data));
          // Outside of loops over an axis, the first thread alone stores to what the threads share.
          const size_t before = conditions_.size();
          for (const auto& axis : axes_) {
            if (!is_covered(*axis) && scope.is_shared_by(axis->axis))
              conditions_.push_back(eq(axis->loop->loop_var, 0));
          }
          v.descend(store);
          conditions_.resize(before);
        },
        [&](const Ref<BufferLoad>& load) { add(load->buffer, load->indices[0], false, load); },
        [&](const Ref<LetStmt>& let, Visitor& v) {
          const BufferLoad* element = addressed_element(let->value);
          if (!element) return v.descend(let);
          pointers_[let->var] = {element->buffer, substitute(element->indices[0], by_axis_)};
          v(element->indices[0]);
          v(let->body);
        },
        [&](const Ref<Call>& call) {
          if (const BufferLoad* element = addressed_element(call)) {  // whoever gets it may store to the element
            add(element->buffer, element->indices[0], true, call);
          }
        });
    for (const auto& pointer : order_) TW_RETURN_IF_ERROR(check(memory_.at(pointer), pointer));
    return Ok{};
  }

  /// Collects all axes first, since later loops may bind more of them.
  void note_axes(const Stmt& body) {
    visit(body, [&](const Ref<For>& loop) {
      auto axis = is_bound(*loop) ? analysis::thread_axis(*loop) : std::nullopt;
      if (axis && !find(*axis)) {
        For copy = *loop;
        copy.loop_var = var(loop->thread_binding->thread_tag, loop->loop_var.dtype());
        copy.min = zero(copy.loop_var.dtype());
        copy.body = nop();
        axes_.push_back(std::make_unique<TeamAxis>(TeamAxis{*axis, make(std::move(copy), loop.span())}));
      }
    });
  }

 private:
  const TeamAxis* find(const ThreadAxis& axis) const {
    auto it = find_if(axes_, [&](const auto& a) { return a->axis == axis; });
    return it == axes_.end() ? nullptr : it->get();
  }
  bool is_covered(const TeamAxis& axis) const { return is_contained(covered_, &axis); }

  void enter(const Ref<For>& loop, Visitor& v) {
    if (!is_bound(*loop)) {
      loops_[loop->loop_var.get()] = loop;
      analyzer_.bind(loop->loop_var, loop->min, loop->extent);
      around_.push_back(loop->loop_var);
      v.descend(loop);
      around_.pop_back();
      return;
    }
    const TeamAxis* axis = find(*analysis::thread_axis(*loop));
    by_axis_[loop->loop_var] = loop->min + cast(loop->loop_var.dtype(), axis->loop->loop_var);
    covered_.push_back(axis);
    v.descend(loop);
    covered_.pop_back();
  }

  template <class F>
  void under(const Expr& condition, const F& work) {
    conditions_.push_back(substitute(condition, by_axis_));
    work();
    conditions_.pop_back();
  }

  void add(const Ref<Buffer>& buffer, const Expr& index, bool is_write, const NodeRef& node) {
    const Ramp* ramp = index.as<Ramp>();
    Expr offset = substitute(ramp ? Expr(ramp->base) : index, by_axis_);
    Ref<Var> data = buffer->data;
    bool same_elements = true;
    for (auto at = pointers_.find(data); at != pointers_.end(); at = pointers_.find(data)) {
      const Pointer& pointer = at->second;
      same_elements &= pointer.buffer->dtype == buffer->dtype && pointer.index.dtype().is_scalar();
      if (same_elements) offset = pointer.index + cast(pointer.index.dtype(), offset);
      data = pointer.buffer->data;
    }
    auto* found = find_value(memory_, data);
    if (!found) return;
    TeamAccess access{data, {}, 1, is_write, conditions_, node};
    const int64_t stride = ramp ? const_int(ramp->stride).value_or(0) : 0;
    if (same_elements && (index.dtype().is_scalar() || stride > 0)) {
      access.offset = offset;
      access.width += stride * (index.dtype().lanes - 1);
    }
    (is_write ? found->writes : found->reads).push_back({std::move(access), covered_});
  }

  Status check(const PrivateArray& memory, const Ref<Var>& pointer) {
    for (const PrivateAccess& write : memory.writes) {
      KernelLoops team;
      for (const TeamAxis* axis : write.covered) {
        if (!is_contained(memory.covered, axis)) team.loops.push_back(axis->loop);
      }
      if (team.loops.empty()) continue;
      // The other axes: the same threads where the memory is theirs, else any.
      LoopRanges loops = loops_;
      std::vector<NodeRef> around = memory.around;
      for (const auto& axis : axes_) {
        if (is_contained(team.loops, axis->loop)) continue;
        loops[axis->loop->loop_var.get()] = axis->loop;
        if (is_contained(memory.covered, axis.get())) around.emplace_back(axis->loop->loop_var);
      }
      TeamConflicts conflicts(team, loops, analyzer_);
      for (const PrivateAccess& read : memory.reads) {
        if (conflicts.meet(read.at, write.at, around) != TeamConflicts::Answer::kNever) return refuse(read, pointer);
      }
    }
    return Ok{};
  }

  static Status refuse(const PrivateAccess& read, const Ref<Var>& pointer) {
    return refuse_at(read.at.node, "lower/private-memory",
                     "each thread has a buffer '" + pointer->name_hint + "' of its own, of scope \"" +
                         scope_of(pointer) +
                         "\", and it is not proved that a thread reads only elements that the same thread has written",
                     "use scope \"shared\" for what threads exchange, or bind the loops that write and read the "
                     "buffer to threads in the same way");
  }

  arith::Analyzer analyzer_;
  std::vector<std::unique_ptr<TeamAxis>> axes_;
  LoopRanges loops_;
  VarMap by_axis_;  ///< variables of bound loops
  std::unordered_map<NodeRef, PrivateArray> memory_;
  std::unordered_map<NodeRef, Pointer> pointers_;
  std::vector<Ref<Var>> order_;
  std::vector<NodeRef> around_;
  std::vector<const TeamAxis*> covered_;
  std::vector<Expr> conditions_;
};

}  // namespace

PassResult check_private_memory(const Ref<PrimFunc>& func, PassContext&) {
  PrivateMemory memory(*func);
  memory.note_axes(func->body);
  TW_RETURN_IF_ERROR(memory.run(func->body));
  return func;
}

}  // namespace tilewright::lower
