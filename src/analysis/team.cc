#include "analysis/team.h"

#include "ir/annotations.h"
#include "ir/atomic_operation.h"
#include "ir/op.h"
#include "ir/pointer_uses.h"
#include "ir/traverse.h"
#include "ir/warp_steps.h"
#include "support/ranges.h"
#include "target/memory_scope.h"

namespace tilewright::analysis {
namespace {

/// Whether neighboring threads may share the memory behind the pointer.
bool is_shared(const Ref<Var>& pointer, Exchange exchange) {
  constexpr ThreadAxis kNeighbors{ThreadAxis::Level::kThread, 0};
  const std::string scope = scope_of(pointer);
  if (exchange == Exchange::kSharedMemory) return scope.starts_with("shared");
  return memory_scope(scope).is_shared_by(kNeighbors);
}

bool meet(const std::unordered_set<const NodeBase*>& a, const std::unordered_set<const NodeBase*>& b) {
  return any_of(a, [&](const NodeBase* pointer) { return b.contains(pointer); });
}

}  // namespace

Exchange exchange_of(const Stmt& s) { return has_blocks(s) ? Exchange::kTeamMemory : Exchange::kSharedMemory; }

Touched Touched::by(const NodeRef& root, Exchange exchange, const MemoryNames& around) {
  Touched touched;
  MemoryNames views = around;
  auto note = [&](std::unordered_set<const NodeBase*>& set, const Ref<Var>& pointer) {
    if (!is_shared(pointer, exchange)) return;
    set.insert(views.memory(pointer.get()));
  };
  auto both = [&](const Ref<Var>& pointer) {
    note(touched.read, pointer);
    note(touched.written, pointer);
  };
  visit(
      root,
      [&](const Ref<BufferLoad>& load, Visitor& v) {
        note(touched.read, load->buffer->data);
        for (const Expr& index : load->indices) v(index);
        v(load->predicate);
      },
      [&](const Ref<BufferStore>& store, Visitor& v) {
        note(touched.written, store->buffer->data);
        for (const Expr& index : store->indices) v(index);
        v(store->value);
        v(store->predicate);
      },
      [&](const Ref<BufferRegion>& region, Visitor&) { both(region->buffer->data); },
      [&](const Ref<Call>& call, Visitor& v) {
        if (auto step = AtomicOperation::of(call)) {
          note(touched.updated, step->buffer->data);
          for (const Expr& index : step->indices) v(index);
          return v(step->value);
        }
        if (const BufferLoad* element = addressed_element(call)) both(element->buffer->data);
        v.descend(call);
      },
      [&](const Ref<Var>& pointer, Visitor& v) {
        if (v.role() == Role::kChild && pointer.dtype().is_handle()) both(pointer);
      },
      [&](const Ref<Buffer>&, Visitor&) {},
      [&](const Ref<Block>& block, Visitor& v) {
        views.add_views(*block);
        v(block->init);
        v(block->body);
      });
  return touched;
}

void Touched::add(const Touched& other) {
  read.insert(other.read.begin(), other.read.end());
  written.insert(other.written.begin(), other.written.end());
  updated.insert(other.updated.begin(), other.updated.end());
}

bool Touched::depends_on(const Touched& other) const {
  const bool by_updates = meet(updated, other.written) || meet(updated, other.read) || meet(written, other.updated) ||
                          meet(read, other.updated);
  return by_updates || meet(written, other.written) || meet(written, other.read) || meet(read, other.written);
}

bool has_blocks(const Stmt& s) { return has_node<BlockRealize>(s); }

bool has_implicit_barriers(const PrimFunc& func) {
  if (has_blocks(func.body)) return true;
  if (is_kernel(func)) return false;
  return !any_node(func.body,
                   [&](const Ref<Call>& call) { return intrinsic_of(*call) == Intrinsic::k_tvm_storage_sync; });
}

bool needs_barrier_between_iterations(const Stmt& body, const MemoryNames& around) {
  if (has_blocks(body)) return false;
  const Touched touched = Touched::by(body, Exchange::kSharedMemory, around);
  return meet(touched.written, touched.read) || meet(touched.updated, touched.read) ||
         meet(touched.updated, touched.written);
}

bool needs_barrier_after_condition(const Expr& condition, const Stmt& body, const MemoryNames& around) {
  if (effect_of(condition) == Effect::kPure || has_blocks(body)) return false;
  const Touched read = Touched::by(condition, Exchange::kSharedMemory, around);
  if (read.read.empty()) return false;
  const Touched inside = Touched::by(body, Exchange::kSharedMemory, around);
  return meet(read.read, inside.written) || meet(read.read, inside.updated);
}

bool needs_barriers(const Stmt& s, const MemoryNames& around) {
  return any_node(
      s,
      [&](const Ref<SeqStmt>& sequence) {
        Touched before;
        const Exchange exchange = exchange_of(sequence);
        return any_of(sequence->seq, [&](const Stmt& item) {
          Touched now = Touched::by(item, exchange, around);
          const bool waits = now.depends_on(before);
          before.add(now);
          return waits;
        });
      },
      [&](const Ref<For>& loop) {
        const bool in_order = loop->kind == ForKind::kSerial || loop->kind == ForKind::kUnrolled;
        return in_order && needs_barrier_between_iterations(loop->body, around);
      },
      [&](const Ref<While>& loop) {
        return needs_barrier_between_iterations(loop->body, around) ||
               needs_barrier_after_condition(loop->condition, loop->body, around);
      },
      [&](const Ref<IfThenElse>& branch) { return needs_barrier_after_condition(branch->condition, branch, around); });
}

bool is_uniform(const Expr& e, const std::function<bool(const Ref<Var>&)>& varies) {
  if (effect_of(e) > Effect::kReadState) return false;
  bool uniform = true;
  visit(
      e, [&](const Ref<Var>& v) { uniform = uniform && !varies(v); },
      [&](const Ref<BufferLoad>& load, Visitor& v) {
        const std::string scope = scope_of(load->buffer->data);
        uniform = uniform && (scope.starts_with("shared") || scope.starts_with("global"));
        for (const Expr& index : load->indices) v(index);
      },
      [&](const Ref<Call>& call) { uniform = uniform && !asks_lanes(call); });
  return uniform;
}

}  // namespace tilewright::analysis
