// Run virtual threads one after another on each thread, between barriers.
//
//   Before                                       After
//   for v in T.thread_binding(2, "vthread.x"):   acc = T.allocate([8], "float32", "local")
//     acc = T.allocate([4], "float32", "local")  for v in T.unroll(2):
//     acc[0] = ...                                 acc[v * 4] = ...
//     T.tvm_storage_sync("shared")               T.tvm_storage_sync("shared")
//     C[v] = acc[0]                              for v in T.unroll(2):
//                                                  C[v] = acc[v * 4]
//
// A statement that is the same for all virtual threads runs once: what it writes is shared, or memory of the thread
// that they then have in common. One that changes memory by what is in there, as an atomic operation or a step of a
// reduction does, runs as often as there are virtual threads. Memory that they do not have in common gets an element
// for each of them, where it outlives a barrier.
//
// Needs      flat buffers, barriers
// Ensures    no loop is bound to a virtual thread
// Placement  before unify_threads, which knows axes of blocks and threads only

#include "analysis/threads.h"
#include "ir/atomic_operation.h"
#include "ir/build.h"
#include "ir/refuse_at.h"
#include "ir/substitute.h"
#include "ir/traverse.h"
#include "lower/gpu/kernel.h"
#include "lower/passes.h"
#include "support/ranges.h"
#include "target/memory_scope.h"

namespace tilewright::lower {
namespace {

/// One loop over virtual threads.
class VirtualThreads {
 public:
  explicit VirtualThreads(const Ref<For>& loop) : loop_(loop) {}

  Result<Stmt> run() {
    Stmt body = whole(loop_->body);
    if (error_) return *error_;
    return body;
  }

 private:
  bool varies(const NodeRef& node) const {
    return uses_any_var(node, [&](const Ref<Var>& v) { return v == loop_->loop_var || grown_.contains(v); });
  }

  /// Whether it matters how often the statement runs: it reads memory from outside that it changes.
  static bool counts_runs(const Stmt& s) {
    std::unordered_set<NodeRef> read, written, inside;
    bool has_atomic = false;
    visit(
        s, [&](const Ref<BufferLoad>& load) { read.insert(load->buffer->data); },
        [&](const Ref<BufferStore>& store) { written.insert(store->buffer->data); },
        [&](const Ref<Allocate>& allocate) { inside.insert(allocate->buffer_var); },
        [&](const Ref<Call>& call) { has_atomic |= AtomicOperation::of(call).has_value(); });
    return has_atomic ||
           any_of(written, [&](const NodeRef& memory) { return read.contains(memory) && !inside.contains(memory); });
  }
  bool repeats(const Stmt& s) const { return varies(s) || counts_runs(s); }

  /// Statements without barriers in between: once for each virtual thread, or once for all.
  Stmt apart(std::vector<Stmt>& run) {
    if (run.empty()) return nop();
    Stmt body = seq(std::exchange(run, {}));
    if (!repeats(body)) return body;
    Ref<Var> v = var(loop_->loop_var->name_hint, loop_->loop_var.dtype());
    body = renew_defs(substitute(with_elements(body), {{loop_->loop_var, v}}));
    return make<For>({v, loop_->min, loop_->extent, ForKind::kUnrolled, {}, {}, body}, loop_.span());
  }

  /// Accesses of memory that has an element for each virtual thread.
  Stmt with_elements(const Stmt& body) {
    if (grown_.empty()) return body;
    auto index = [&](const Ref<Buffer>& buffer, const Expr& at) -> Expr {
      const Expr& size = grown_.at(buffer->data);
      Expr base = (loop_->loop_var - loop_->min) * size;
      const Ramp* ramp = at.as<Ramp>();
      if (ramp) return make<Ramp>({ramp->base + cast(ramp->base.dtype(), base), ramp->stride, ramp->lanes});
      return at + cast(at.dtype(), base);
    };
    return rewrite(
        body,
        [&](const Ref<BufferLoad>& load, Rewriter& r) -> Expr {
          Ref<BufferLoad> inner = r.descend(load);
          if (!grown_.contains(load->buffer->data)) return inner;
          return make<BufferLoad>({grown(load->buffer), {index(load->buffer, inner->indices[0])}, inner->predicate},
                                  load.span());
        },
        [&](const Ref<BufferStore>& store, Rewriter& r) -> Stmt {
          Ref<BufferStore> inner = r.descend(store);
          if (!grown_.contains(store->buffer->data)) return inner;
          return make<BufferStore>(
              {grown(store->buffer), inner->value, {index(store->buffer, inner->indices[0])}, inner->predicate},
              store.span());
        },
        [&](const Ref<Buffer>& buffer, Rewriter&) -> NodeRef { return buffer; });
  }

  Ref<Buffer> grown(const Ref<Buffer>& buffer) {
    Ref<Buffer>& known = buffers_[buffer];
    if (!known.defined()) {
      known = with_field(buffer, &Buffer::shape, {buffer->shape[0] * loop_->extent});
    }
    return known;
  }

  bool check_same(const Expr& e, const NodeRef& node) {
    if (!varies(e)) return true;
    if (!error_) {
      error_ = refuse_at(node, "lower/virtual-thread",
                         "threads wait for one another inside of a loop or condition that is not the same for all "
                         "iterations of loop '" +
                             loop_->loop_var->name_hint + "', which is bound to " + loop_->thread_binding->thread_tag,
                         "bind that loop to threadIdx, or leave it serial");
    }
    return false;
  }

  /// The statement with the value in memory of the virtual thread.
  static Stmt in_memory(const LetStmt& let, SpanId span) {
    Ref<Buffer> held = decl_buffer({i32(1)}, let.var.dtype(), let.var->name_hint, "local");
    Stmt body = substitute(let.body, {{let.var, load(held, {i32(0)})}});
    Stmt store = make<BufferStore>({held, let.value, {i32(0)}, {}}, span);
    Stmt all = make<DeclBuffer>({held, seq({store, body})}, span);
    return make<Allocate>({held->data, held->dtype, {i32(1)}, bool_imm(true), all, {}}, span);
  }

  Stmt whole(const Stmt& s) {
    std::vector<Stmt> run;
    if (!has_barrier(s)) {
      run.push_back(s);
      return apart(run);
    }
    switch (s.kind()) {
      case Kind::kSeqStmt: {
        std::vector<Stmt> items;
        for (const Stmt& item : s.as<SeqStmt>()->seq) {
          if (!has_barrier(item)) {
            // Statements that are the same for all virtual threads run once, so they are kept out of the loop.
            if (!run.empty() && repeats(run.back()) != repeats(item)) items.push_back(apart(run));
            run.push_back(item);
            continue;
          }
          items.push_back(apart(run));
          items.push_back(whole(item));
        }
        items.push_back(apart(run));
        return seq(std::move(items));
      }
      case Kind::kFor: {
        const For& loop = *s.as<For>();
        return check_same(loop.min, s) && check_same(loop.extent, s) ? inside(s.borrow<For>()) : s;
      }
      case Kind::kWhile:
        return check_same(s.as<While>()->condition, s) ? inside(s.borrow<While>()) : s;
      case Kind::kIfThenElse: {
        IfThenElse copy = *s.as<IfThenElse>();
        if (!check_same(copy.condition, s)) return s;
        copy.then_case = whole(copy.then_case);
        if (copy.else_case.defined()) copy.else_case = whole(copy.else_case);
        return make(std::move(copy), s.span());
      }
      case Kind::kLetStmt: {
        const LetStmt& let = *s.as<LetStmt>();
        // A value that differs is computed where it is used, unless it reads memory, which may change until then.
        if (varies(let.value)) {
          return whole(effect_of(let.value) == Effect::kPure || let.var.dtype().is_handle()
                           ? substitute(let.body, {{let.var, let.value}})
                           : in_memory(let, s.span()));
        }
        return inside(s.borrow<LetStmt>());
      }
      case Kind::kAllocate: {
        Allocate copy = *s.as<Allocate>();
        constexpr ThreadAxis kVirtual{ThreadAxis::Level::kVirtual, -1};
        bool shared = memory_scope(scope_of(copy.buffer_var)).is_shared_by(kVirtual);
        if (!shared && copy.extents.size() == 1) {
          grown_.emplace(copy.buffer_var, copy.extents[0]);
          copy.extents = {copy.extents[0] * loop_->extent};
        }
        copy.body = whole(copy.body);
        return make(std::move(copy), s.span());
      }
      case Kind::kDeclBuffer: {
        DeclBuffer copy = *s.as<DeclBuffer>();
        if (grown_.contains(copy.buffer->data)) copy.buffer = grown(copy.buffer);
        copy.body = whole(copy.body);
        return make(std::move(copy), s.span());
      }
      case Kind::kAllocateConst:
        return inside(s.borrow<AllocateConst>());
      case Kind::kAttrStmt:
        return inside(s.borrow<AttrStmt>());
      case Kind::kAssertStmt:
        return check_same(s.as<AssertStmt>()->condition, s) ? inside(s.borrow<AssertStmt>()) : s;
      default:
        return s;  // a barrier
    }
  }

  template <class T>
  Stmt inside(const Ref<T>& s) {
    return around_changed(s, [&](const Stmt& body) { return whole(body); });
  }

  const Ref<For>& loop_;
  std::unordered_map<NodeRef, Expr> grown_;  ///< elements of one virtual thread, by pointer
  std::unordered_map<NodeRef, Ref<Buffer>> buffers_;
  std::optional<Diagnostic> error_;
};

}  // namespace

PassResult inject_virtual_threads(const Ref<PrimFunc>& func, PassContext&) {
  std::optional<Diagnostic> error;
  Stmt body = rewrite(func->body, [&](const Ref<For>& loop, Rewriter& r) -> Stmt {
    Ref<For> inner = r.descend(loop);
    auto axis = analysis::thread_axis(*inner);
    if (!axis || axis->level != ThreadAxis::Level::kVirtual) return inner;
    Result<Stmt> result = VirtualThreads(inner).run();
    if (result.ok()) return *result;
    if (!error) error = result.error();
    return inner;
  });
  if (error) return *error;
  return with_body(func, std::move(body));
}

}  // namespace tilewright::lower
