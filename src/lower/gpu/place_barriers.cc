// Let the threads of a team wait where one of them uses bytes that another one has written, or the reverse.
//
//   Before                                   After
//   S[tx] = A[tx]                            S[tx] = A[tx]
//   B[tx] = S[tx] + S[31 - tx]               T.tvm_storage_sync("shared")
//                                            B[tx] = S[tx] + S[31 - tx]
//
// Between two barriers, a byte of shared or global memory that one thread writes is not accessed by another thread.
// Accesses are compared by bytes (team_conflicts.h), not by the text of their indices: buffers of the arena that share
// bytes are one memory, `S[tx // 2]` belongs to no single thread, and `S[tx + i]` of one iteration meets that of
// another one. A barrier stands as far outside as it can: before a loop rather than inside of it, and at the end of a
// loop where one iteration meets the next. None stands under a condition, or in a loop, that differs between threads.
// A condition, or a bound of a loop, that reads what its body writes is kept in a variable, with a barrier behind it.
//
// The last part of plan_shared_memory.
#include "lower/gpu/place_barriers.h"
#include "ir/pointer_uses.h"

#include <functional>
#include <map>

#include "analysis/team.h"
#include "ir/async_copy.h"
#include "ir/atomic_operation.h"
#include "ir/build.h"
#include "ir/fragments.h"
#include "ir/let_variables.h"
#include "ir/refuse_at.h"
#include "ir/substitute.h"
#include "ir/traverse.h"
#include "ir/warp_steps.h"
#include "lower/gpu/groups_in_flight.h"
#include "lower/gpu/lane.h"
#include "lower/gpu/team_conflicts.h"
#include "support/ranges.h"

namespace tilewright::lower {
namespace {

using Accesses = std::vector<TeamAccess>;

class Barriers {
 public:
  Barriers(const PrimFunc& func, const KernelLoops& kernel) : kernel_(kernel) {
    assume_sizes(func, analyzer_);
    for (const Ref<For>& loop : kernel.loops) {
      analyzer_.bind(loop->loop_var, loop->min, loop->extent);
      if (kernel.has_thread(loop->loop_var)) varying_.insert(loop->loop_var);
    }
    const Fragments fragments(kernel.body);
    visit(kernel.body, [&](const Ref<Evaluate>& step) {
      if (auto copy = AsyncCopy::of(step->value)) {
        steps_.emplace(step.get(), copy->as_loop());
        copies_.push_back(step);
      }
      if (is_warp_step(step->value)) {
        Stmt accesses = memory_accesses(step->value, lane());
        if (accesses.defined()) steps_.emplace(step.get(), std::move(accesses));
      }
      if (!is_fragment_step(step->value)) return;
      auto loops = fragments.as_loops(*step->value.as<Call>(), {});
      if (loops) steps_.emplace(step.get(), *loops);
    });
    note(kernel.body);
    for (const auto& [step, loops] : steps_) note(loops);
    named_ = let_variables(kernel.body);
    visit(kernel.body, [&](const Ref<LetStmt>& let) {
      const BufferLoad* first = let->var.dtype().is_handle() ? addressed_element(let->value) : nullptr;
      if (first) bases_[let->var] = {first->buffer->data, first->indices[0] * first->buffer->dtype.bytes()};
    });
  }

  Result<Stmt> run() {
    TeamConflicts conflicts(kernel_, loops_, analyzer_);
    conflicts_ = &conflicts;
    for (const Stmt& copy : copies_) {
      for (TeamAccess& access : all_of(copy)) arriving_.push_back(at_any_time(access));
    }
    Accesses pending;
    Stmt body = place(kernel_.body, pending);
    if (error_) return *error_;
    return body;
  }

 private:
  // ---- accesses

  Expr lane() const {
    for (const Ref<For>& loop : kernel_.loops) {
      if (loop->thread_binding->thread_tag == "threadIdx.x") return floormod(loop->loop_var, kWarpLanes);
    }
    return i32(0);
  }

  void note(const Stmt& body) {
    visit(body, [&](const Ref<For>& loop) {
      loops_[loop->loop_var.get()] = loop;
      analyzer_.bind(loop->loop_var, loop->min, loop->extent);
    });
    visit(
        body, [&](const Ref<BufferStore>& store) { written_.insert(store->buffer->data); },
        [&](const Ref<Call>& call) {
          if (auto step = AtomicOperation::of(call)) written_.insert(step->buffer->data);
        });
  }

  /// The memory accesses of a step on fragments, as loops; null for other statements.
  const Stmt* loops_of(const Stmt& s) const { return find_value(steps_, s.get()); }

  void add(Accesses& into, const Ref<Buffer>& buffer, const std::vector<Expr>& indices, bool is_write,
           const NodeRef& node, const std::vector<Expr>& conditions, const Expr& mask = {}, bool is_atomic = false) {
    Ref<Var> memory = buffer->data;
    Expr offset = i32(0);
    while (auto* base = find_value(bases_, memory)) {
      memory = base->first;
      offset = offset + base->second;
    }
    const std::string scope = scope_of(memory);
    if (!is_shared_scope(scope) && !is_global_scope(scope)) return;
    if (is_global_scope(scope) && !written_.contains(buffer->data)) return;
    const int64_t bytes = buffer->dtype.bytes();
    TeamAccess access{memory, {}, bytes, is_write, conditions, node};
    access.is_atomic = is_atomic;
    if (!indices.empty() && is_known(indices[0])) {
      Expr index = indices[0];
      if (const Ramp* ramp = index.as<Ramp>(); ramp && is_const_int(ramp->stride, 1) && !mask.defined()) {
        access.width = bytes * index.dtype().lanes;
        index = ramp->base;
      }
      const DataType wide = DataType::int_(64);
      const int lanes = index.dtype().lanes;
      Accesses found;
      for (int i = 0; i < lanes; ++i) {
        Lane lane(i);
        const Expr element = lane(index);
        if (lane.has_failed() || !element.dtype().is_scalar()) break;
        access.lane = i;
        access.offset = cast(wide, offset) + cast(wide, element) * bytes;
        found.push_back(access);
        if (!mask.defined()) continue;
        const Expr is_on = lane(mask);
        if (!lane.has_failed() && is_on.dtype().is_scalar()) found.back().conditions.push_back(is_on);
      }
      if (found.size() == static_cast<size_t>(lanes)) {
        append_range(into, found);
        return;
      }
      access.lane = 0;
      access.offset = {};
    }
    into.push_back(std::move(access));
  }

  /// Whether an index consists of loop variables and sizes. The value of a let may differ between threads and
  /// iterations.
  bool is_known(const Expr& index) const { return effect_of(index) == Effect::kPure && !uses_any_of(index, named_); }

  /// Collects all accesses in `s`; with `stops`, those up to the first barrier that all threads surely meet. Returns
  /// whether there is such a barrier.
  bool collect(const Stmt& s, Accesses& into, std::vector<Expr>& conditions, bool stops) {
    switch (s.kind()) {
      case Kind::kSeqStmt: {
        for (const Stmt& item : s.as<SeqStmt>()->seq) {
          if (collect(item, into, conditions, stops)) return true;
        }
        return false;
      }
      case Kind::kFor: {
        const For& loop = *s.as<For>();
        collect(loop.min, into, conditions);
        collect(loop.extent, into, conditions);
        const size_t known = into.size();
        const bool met = collect(loop.body, into, conditions, stops) && const_int(loop.extent).value_or(0) > 0;
        // Accesses before the barrier belong to the first iteration.
        for (size_t i = known; met && i < into.size(); ++i) move_to(into[i], loop.loop_var, loop.min);
        return met;
      }
      case Kind::kWhile:
        collect(s.as<While>()->condition, into, conditions);
        collect(s.as<While>()->body, into, conditions, stops);
        return false;
      case Kind::kIfThenElse: {
        const IfThenElse& branch = *s.as<IfThenElse>();
        collect(branch.condition, into, conditions);
        conditions.push_back(branch.condition);
        bool both = collect(branch.then_case, into, conditions, stops);
        conditions.back() = logical_not(branch.condition);
        both = branch.else_case.defined() && collect(branch.else_case, into, conditions, stops) && both;
        conditions.pop_back();
        return both;
      }
      case Kind::kLetStmt:
        // The address of a buffer in the arena is no access.
        if (!bases_.contains(s.as<LetStmt>()->var)) collect(s.as<LetStmt>()->value, into, conditions);
        return collect(s.as<LetStmt>()->body, into, conditions, stops);
      case Kind::kAllocate:
        return collect(s.as<Allocate>()->body, into, conditions, stops);
      case Kind::kAllocateConst:
        return collect(s.as<AllocateConst>()->body, into, conditions, stops);
      case Kind::kDeclBuffer:
        return collect(s.as<DeclBuffer>()->body, into, conditions, stops);
      case Kind::kAttrStmt:
        return collect(s.as<AttrStmt>()->body, into, conditions, stops);
      case Kind::kAssertStmt:
        collect(s.as<AssertStmt>()->condition, into, conditions);
        return collect(s.as<AssertStmt>()->body, into, conditions, stops);
      case Kind::kBufferStore: {
        const BufferStore& store = *s.as<BufferStore>();
        collect(store.value, into, conditions);
        for (const Expr& index : store.indices) collect(index, into, conditions);
        add(into, store.buffer, store.indices, true, s, conditions, store.predicate);
        return false;
      }
      case Kind::kEvaluate:
        if (is_barrier(s)) return stops;
        if (const Stmt* loops = loops_of(s)) return collect(*loops, into, conditions, false);
        collect(s.as<Evaluate>()->value, into, conditions);
        return false;
      default:
        return false;
    }
  }

  void collect(const Expr& e, Accesses& into, const std::vector<Expr>& conditions) {
    visit(
        e,
        [&](const Ref<BufferLoad>& load, Visitor& v) {
          for (const Expr& index : load->indices) v(index);
          add(into, load->buffer, load->indices, false, load, conditions, load->predicate);
        },
        [&](const Ref<Call>& call, Visitor& v) {
          if (auto step = AtomicOperation::of(call)) {
            for (const Expr& index : step->indices) v(index);
            v(step->value);
            return add(into, step->buffer, step->indices, true, call, conditions, {}, true);
          }
          const BufferLoad* element = addressed_element(call);
          if (!element) return v.descend(call);
          add(into, element->buffer, {}, true, call, conditions);  // whatever is done through the pointer
        });
  }

  static void move_to(TeamAccess& access, const Ref<Var>& v, const Expr& value) {
    if (access.offset.defined()) access.offset = substitute(access.offset, {{v, value}});
    for (Expr& condition : access.conditions) condition = substitute(condition, {{v, value}});
  }

  /// The access in any iterations of the loops around it.
  TeamAccess at_any_time(TeamAccess access) {
    VarMap renamed;
    visit(access.offset, [&](const Ref<Var>& v) {
      auto* found = find_value(loops_, v.get());
      if (!found || renamed.contains(v)) return;
      For copy = **found;
      Ref<Var> any = var(v->name_hint, v.dtype());
      renamed[v] = any;
      copy.loop_var = any;
      loops_[any.get()] = make(std::move(copy));
    });
    if (access.offset.defined()) access.offset = substitute(access.offset, renamed);
    access.conditions.clear();
    return access;
  }

  Accesses all_of(const Stmt& s) {
    Accesses found;
    std::vector<Expr> conditions = conditions_;
    collect(s, found, conditions, false);
    return found;
  }

  const TeamAccess* conflict(const Accesses& before, const Accesses& after) {
    for (const TeamAccess& b : after) {
      for (const TeamAccess& a : before) {
        const auto answer = conflicts_->meet(a, b, around_);
        // Where nothing is proved, the bytes of the arena may have come to two buffers; in main memory, threads that
        // the program does not let wait have no order to keep.
        const bool matters =
            answer == TeamConflicts::Answer::kMeet || is_shared_scope(scope_of(a.memory)) || a.is_ordered;
        if (answer != TeamConflicts::Answer::kNever && matters) return &b;
      }
    }
    return nullptr;
  }

  /// Merges the accesses of another control-flow path, without duplicates.
  static void join(Accesses& into, const Accesses& other) {
    std::map<std::pair<const NodeBase*, int>, size_t> known;
    for (size_t i : indices_of(into)) known.try_emplace({into[i].node.get(), into[i].lane}, i);
    for (const TeamAccess& access : other) {
      auto [found, is_new] = known.try_emplace({access.node.get(), access.lane}, into.size());
      if (is_new) {
        into.push_back(access);
      } else {
        into[found->second].is_ordered |= access.is_ordered;
      }
    }
  }

  // ---- statements

  bool is_uniform(const Expr& e) const {
    return analysis::is_uniform(e, [&](const Ref<Var>& v) { return varying_.contains(v); });
  }

  template <class F>
  void under(bool uniform, const F& work) {
    divergent_ += !uniform;
    work();
    divergent_ -= !uniform;
  }

  /// Whether a barrier is needed between `before` and `after`. Fails in divergent code, where none can be placed.
  bool waits(const Accesses& before, const Accesses& after) {
    const TeamAccess* found = conflict(before, after);
    if (!found) return false;
    if (divergent_ == 0) return true;
    if (!error_ && is_shared_scope(scope_of(found->memory))) {
      error_ = refuse_at(found->node, "lower/divergent-barrier",
                         "threads exchange data in shared memory inside of a condition or loop that not all threads of "
                         "a block go through alike, so that they cannot wait for one another",
                         "move what threads exchange out of the condition, or make the extents multiples of the tiles");
    }
    return false;
  }

  Accesses reads_of(const Expr& e) {
    Accesses reads;
    collect(e, reads, conditions_);
    return reads;
  }

  /// Adds the reads to the accesses since the last barrier; a barrier behind them leaves none.
  static void note_reads(const Accesses& reads, bool barrier_behind, Accesses& pending) {
    if (barrier_behind) {
      pending.clear();
    } else {
      append_range(pending, reads);
    }
  }

  /// Evaluates `e` into a variable before the statement from `made`, which begins with a barrier.
  static Stmt keep(Expr& e, const char* name, const std::function<Stmt()>& made) {
    if (effect_of(e) == Effect::kPure) return made();
    Ref<Var> v = var(name, e.dtype());
    Expr value = std::exchange(e, v);
    return make<LetStmt>({v, value, made()});
  }

  Stmt place_while(const Ref<While>& loop, Accesses& pending) {
    While copy = *loop;
    const Accesses reads = reads_of(copy.condition);
    const bool uniform = is_uniform(copy.condition);
    append_range(pending, reads);
    Accesses before = pending;
    const GroupsInFlight groups = groups_ = groups_around(loop->body, groups_);
    bool waits_behind = false;
    under(uniform, [&] {
      waits_behind = waits(reads, all_of(copy.body));
      if (waits_behind) pending.clear();
      copy.body = place(copy.body, pending);
      // The next iteration begins with the condition.
      Accesses head = reads;
      std::vector<Expr> conditions = conditions_;
      if (!waits_behind) collect(copy.body, head, conditions, true);
      if (!waits(pending, head)) return;
      copy.body = seq({copy.body, barrier(loop.span())});
      pending = reads;
    });
    groups_ = groups;
    join(pending, before);
    if (!waits_behind) return make(std::move(copy), loop.span());
    Ref<Buffer> holds = decl_buffer({i32(1)}, DataType::bool_(), "holds", "local");
    auto evaluate = [&](const Expr& e) -> Stmt { return make<BufferStore>({holds, e, {i32(0)}, {}}, loop.span()); };
    Stmt body = seq({barrier(loop.span()), copy.body, renew_defs(evaluate(copy.condition))});
    Stmt all = seq({evaluate(copy.condition), make<While>({load(holds, {i32(0)}), body}, loop.span())});
    return make<Allocate>({holds->data, holds->dtype, {i32(1)}, bool_imm(true), make<DeclBuffer>({holds, all}), {}},
                          loop.span());
  }

  /// A barrier of the program: what is behind it comes after what is in front of it. Where only some threads come, they
  /// would wait for the others forever.
  void keep_order(const Stmt& barrier, Accesses& pending) {
    for (TeamAccess& access : pending) access.is_ordered = true;
    if (divergent_ == 0 || error_) return;
    error_ =
        refuse_at(barrier, "lower/divergent-barrier",
                  "this barrier is inside of a condition or loop that not all threads of a block go through alike, "
                  "so that they cannot wait for one another",
                  "move the barrier out of the condition");
  }

  Stmt place_sequence(const SeqStmt& all, Accesses& pending) {
    std::vector<Stmt> items;
    for (const Stmt& item : all.seq) {
      if (is_barrier(item)) {
        keep_order(item, pending);
        continue;
      }
      Accesses head, inside;
      bool met = false;
      Stmt placed = item;
      if (item.is<For>()) {
        // The item may begin with its own barrier.
        placed = place(item, inside);
        std::vector<Expr> conditions = conditions_;
        met = collect(placed, head, conditions, true);
      } else {
        head = all_of(item);
      }
      const bool waits_in_front = waits(pending, head);
      if (waits_in_front) items.push_back(barrier(item.span()));
      if (waits_in_front || met) pending.clear();
      if (item.is<For>()) {
        append_range(pending, inside);
      } else {
        placed = place(item, pending);
      }
      items.push_back(placed);
    }
    return seq(std::move(items));
  }

  /// The statement with barriers; `pending` are the accesses since the last one.
  Stmt place(const Stmt& s, Accesses& pending) {
    switch (s.kind()) {
      case Kind::kSeqStmt:
        return place_sequence(*s.as<SeqStmt>(), pending);
      case Kind::kFor:
        return place_loop(s.borrow<For>(), pending);
      case Kind::kWhile:
        return place_while(s.borrow<While>(), pending);
      case Kind::kIfThenElse: {
        IfThenElse copy = *s.as<IfThenElse>();
        const Accesses reads = reads_of(copy.condition);
        bool waits_behind = waits(reads, all_of(copy.then_case));
        if (copy.else_case.defined()) waits_behind |= waits(reads, all_of(copy.else_case));
        note_reads(reads, waits_behind, pending);
        Accesses condition = pending, other = pending;
        const bool uniform = is_uniform(copy.condition);
        const GroupsInFlight before = groups_, behind = groups_after(s, groups_);
        conditions_.push_back(copy.condition);
        under(uniform, [&] { copy.then_case = place(copy.then_case, condition); });
        conditions_.back() = logical_not(copy.condition);
        groups_ = before;
        if (copy.else_case.defined()) under(uniform, [&] { copy.else_case = place(copy.else_case, other); });
        conditions_.pop_back();
        groups_ = behind;
        pending = std::move(condition);
        join(pending, other);
        if (!waits_behind) return make(std::move(copy), s.span());
        return keep(copy.condition, "holds",
                    [&]() -> Stmt { return seq({barrier(s.span()), make(std::move(copy), s.span())}); });
      }
      case Kind::kLetStmt: {
        LetStmt copy = *s.as<LetStmt>();
        if (!is_uniform(copy.value)) varying_.insert(copy.var);
        const bool is_base = bases_.contains(copy.var);
        const Accesses reads = is_base ? Accesses{} : reads_of(copy.value);
        const bool waits_behind = !copy.body.is<SeqStmt>() && waits(reads, all_of(copy.body));
        note_reads(reads, waits_behind, pending);
        copy.body = place(copy.body, pending);
        if (waits_behind) copy.body = seq({barrier(s.span()), copy.body});
        return make(std::move(copy), s.span());
      }
      case Kind::kAllocate:
        return inside(s.borrow<Allocate>(), pending);
      case Kind::kAllocateConst:
        return inside(s.borrow<AllocateConst>(), pending);
      case Kind::kDeclBuffer:
        return inside(s.borrow<DeclBuffer>(), pending);
      case Kind::kAttrStmt:
        return inside(s.borrow<AttrStmt>(), pending);
      case Kind::kAssertStmt: {
        // If the body has a barrier, the threads of a block agree on whether they go through it (codegen/c_writer).
        AssertStmt copy = *s.as<AssertStmt>();
        const Accesses reads = reads_of(copy.condition);
        const bool waits_behind = waits(reads, all_of(copy.body));
        note_reads(reads, waits_behind, pending);
        copy.body = place(copy.body, pending);
        if (waits_behind) copy.body = seq({barrier(s.span()), copy.body});
        return make(std::move(copy), s.span());
      }
      default: {
        if (is_barrier(s)) {
          keep_order(s, pending);
          return nop();
        }
        std::vector<Expr> conditions = conditions_;
        collect(s, pending, conditions, false);
        // Other threads see the elements that this thread has waited for behind one more barrier.
        const Evaluate* step = s.as<Evaluate>();
        if (!step) return s;
        const auto running = running_behind(step->value);
        const bool nothing_arrives = running && groups_ && *groups_ <= *running;
        if (is_wait_for_copies(step->value) && !nothing_arrives) {
          append_range(pending, arriving_);
        }
        groups_ = groups_after(s, groups_);
        return s;
      }
    }
  }

  template <class T>
  Stmt inside(const Ref<T>& s, Accesses& pending) {
    return around_changed(s, [&](const Stmt& body) { return place(body, pending); });
  }

  /// Whether the threads have to wait between one iteration and the next, which begins with `head`: the variable is no
  /// longer the same on both sides. `always_waits`: there is a barrier in each iteration, so that what is behind it
  /// meets the beginning of the next iteration only.
  bool waits_for_next(const For& loop, const Accesses& pending, Accesses head, bool always_waits) {
    if (!always_waits) return waits(pending, head);
    for (TeamAccess& access : head) move_to(access, loop.loop_var, loop.loop_var + 1);
    around_.push_back(loop.loop_var);
    const bool found = waits(pending, head);
    around_.pop_back();
    return found;
  }

  Stmt place_loop(const Ref<For>& loop, Accesses& pending) {
    Accesses reads = reads_of(loop->min);
    collect(loop->extent, reads, conditions_);
    const bool uniform = is_uniform(loop->min) && is_uniform(loop->extent);
    if (!uniform) varying_.insert(loop->loop_var);
    const bool waits_behind = waits(reads, all_of(loop->body));
    note_reads(reads, waits_behind, pending);
    For copy = *loop;
    Accesses before = pending;
    const GroupsInFlight groups = groups_ = groups_around(loop->body, groups_);
    under(uniform, [&] {
      around_.push_back(loop->loop_var);
      copy.body = place(loop->body, pending);
      around_.pop_back();
      Accesses head;
      std::vector<Expr> conditions = conditions_;
      const bool always_waits = collect(copy.body, head, conditions, true);
      if (const_int(loop->extent).value_or(2) > 1 && waits_for_next(*loop, pending, head, always_waits)) {
        copy.body = seq({copy.body, barrier(loop.span())});
        pending.clear();
      }
      // With a barrier in each iteration, what is behind the last barrier is of the last iteration.
      const int64_t extent = const_int(loop->extent).value_or(0);
      if (!always_waits || extent < 1) return;
      for (TeamAccess& access : pending) move_to(access, loop->loop_var, loop->min + (extent - 1));
    });
    groups_ = groups;
    // Where the loop has no iteration, nobody has waited in it.
    if (const_int(loop->extent).value_or(0) < 1) join(pending, before);
    if (!waits_behind) return make(std::move(copy), loop.span());
    return keep(copy.min, "begin", [&]() -> Stmt {
      return keep(copy.extent, "extent",
                  [&]() -> Stmt { return seq({barrier(loop.span()), make(std::move(copy), loop.span())}); });
    });
  }

  const KernelLoops& kernel_;
  arith::Analyzer analyzer_;
  LoopRanges loops_;
  std::map<const NodeBase*, Stmt> steps_;  ///< on fragments
  std::vector<Stmt> copies_;               ///< asynchronous ones
  GroupsInFlight groups_ = 0;              ///< groups that may be under way
  Accesses arriving_;                      ///< writes of these copies, in any iteration
  TeamConflicts* conflicts_ = nullptr;
  std::unordered_set<NodeRef> varying_, written_;
  std::unordered_set<NodeRef> named_;                             ///< variables of lets in the kernel
  std::unordered_map<NodeRef, std::pair<Ref<Var>, Expr>> bases_;  ///< offsets of buffers in the arena, in bytes
  std::vector<NodeRef> around_;                                   ///< variables of loops around
  std::vector<Expr> conditions_;
  int divergent_ = 0;
  std::optional<Diagnostic> error_;
};

}  // namespace

PassResult place_barriers(const Ref<PrimFunc>& func, PassContext&) {
  KernelLoops kernel = KernelLoops::of(func->body);
  TW_TRY(body, Barriers(*func, kernel).run());
  return with_body(func, kernel.around(std::move(body)));
}

}  // namespace tilewright::lower
