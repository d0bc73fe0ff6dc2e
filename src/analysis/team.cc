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

/// Neighbors may share the memory behind the pointer.
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

bool has_blocks(const Stmt& s) {
  bool found = false;
  visit(s, [&](const Ref<BlockRealize>&, Visitor&) { found = true; });
  return found;
}

bool waits_by_order(const PrimFunc& func) {
  if (has_blocks(func.body)) return true;
  if (is_kernel(func)) return false;
  bool has_barriers = false;
  visit(func.body, [&](const Ref<Call>& call, Visitor& v) {
    has_barriers |= intrinsic_of(*call) == Intrinsic::k_tvm_storage_sync;
    v.descend(call);
  });
  return !has_barriers;
}

bool waits_for_next(const Stmt& body, const MemoryNames& around) {
  if (has_blocks(body)) return false;
  const Touched touched = Touched::by(body, Exchange::kSharedMemory, around);
  return meet(touched.written, touched.read) || meet(touched.updated, touched.read) ||
         meet(touched.updated, touched.written);
}

bool waits_behind(const Expr& condition, const Stmt& body, const MemoryNames& around) {
  if (effect_of(condition) == Effect::kPure || has_blocks(body)) return false;
  const Touched read = Touched::by(condition, Exchange::kSharedMemory, around);
  if (read.read.empty()) return false;
  const Touched inside = Touched::by(body, Exchange::kSharedMemory, around);
  return meet(read.read, inside.written) || meet(read.read, inside.updated);
}

bool has_waits(const Stmt& s, const MemoryNames& around) {
  bool waits = false;
  visit(
      s,
      [&](const Ref<SeqStmt>& sequence, Visitor& v) {
        if (waits) return;
        Touched before;
        const Exchange exchange = exchange_of(sequence);
        for (const Stmt& item : sequence->seq) {
          Touched now = Touched::by(item, exchange, around);
          waits |= now.depends_on(before);
          before.add(now);
          if (!waits) v(item);
        }
      },
      [&](const Ref<For>& loop, Visitor& v) {
        const bool in_order = loop->kind == ForKind::kSerial || loop->kind == ForKind::kUnrolled;
        waits |= in_order && waits_for_next(loop->body, around);
        if (!waits) v.descend(loop);
      },
      [&](const Ref<While>& loop, Visitor& v) {
        waits |= waits_for_next(loop->body, around) || waits_behind(loop->condition, loop->body, around);
        if (!waits) v.descend(loop);
      },
      [&](const Ref<IfThenElse>& branch, Visitor& v) {
        waits |= waits_behind(branch->condition, branch, around);
        if (!waits) v.descend(branch);
      });
  return waits;
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
      [&](const Ref<Call>& call, Visitor& v) {
        uniform = uniform && !asks_lanes(call);
        v.descend(call);
      });
  return uniform;
}

}  // namespace tilewright::analysis
