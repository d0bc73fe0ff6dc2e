#include "analysis/team.h"

#include <algorithm>

#include "ir/op.h"
#include "ir/traverse.h"
#include "target/memory_scope.h"

namespace tilewright::analysis {
namespace {

/// Neighbors may share the memory behind the pointer.
bool is_shared(const Ref<Var>& pointer) {
  constexpr ThreadAxis kNeighbors{ThreadAxis::Level::kThread, 0};
  return memory_scope(scope_of(pointer)).is_shared_by(kNeighbors);
}

}  // namespace

Touched Touched::by(const Stmt& s) {
  Touched touched;
  std::unordered_map<const NodeBase*, const NodeBase*> views;
  auto note = [&](std::unordered_set<const NodeBase*>& set, const Ref<Var>& pointer) {
    if (!is_shared(pointer)) return;
    auto view = views.find(pointer.get());
    set.insert(view == views.end() ? pointer.get() : view->second);
  };
  auto both = [&](const Ref<Var>& pointer) {
    note(touched.read, pointer);
    note(touched.written, pointer);
  };
  visit(
      s,
      [&](const Ref<BufferLoad>& load, Visitor& v) {
        note(touched.read, load->buffer->data);
        for (const Expr& index : load->indices) v(index);
      },
      [&](const Ref<BufferStore>& store, Visitor& v) {
        note(touched.written, store->buffer->data);
        for (const Expr& index : store->indices) v(index);
        v(store->value);
      },
      [&](const Ref<BufferRegion>& region, Visitor&) { both(region->buffer->data); },
      [&](const Ref<Call>& call, Visitor& v) {
        const BufferLoad* element = call->args.empty() ? nullptr : call->args[0].as<BufferLoad>();
        if (element && intrinsic_of(*call) == Intrinsic::k_address_of) both(element->buffer->data);
        v.descend(call);
      },
      [&](const Ref<Var>& pointer, Visitor& v) {
        if (v.role() == Role::kChild && pointer.dtype().is_handle()) both(pointer);
      },
      [&](const Ref<Buffer>&, Visitor&) {},
      [&](const Ref<Block>& block, Visitor& v) {
        for (const Ref<MatchBufferRegion>& match : block->match_buffers) {
          const NodeBase* source = match->source->buffer->data.get();
          auto outer = views.find(source);
          views[match->buffer->data.get()] = outer == views.end() ? source : outer->second;
        }
        v(block->init);
        v(block->body);
      });
  return touched;
}

void Touched::add(const Touched& other) {
  read.insert(other.read.begin(), other.read.end());
  written.insert(other.written.begin(), other.written.end());
}

bool Touched::depends_on(const Touched& other) const {
  auto meet = [](const auto& a, const auto& b) {
    return std::any_of(a.begin(), a.end(), [&](const NodeBase* pointer) { return b.contains(pointer); });
  };
  return meet(written, other.written) || meet(written, other.read) || meet(read, other.written);
}

bool has_blocks(const Stmt& s) {
  bool found = false;
  visit(s, [&](const Ref<BlockRealize>&, Visitor&) { found = true; });
  return found;
}

bool has_waits(const Stmt& s) {
  bool found = false;
  visit(s, [&](const Ref<SeqStmt>& sequence, Visitor& v) {
    if (found || !has_blocks(sequence)) return;
    Touched before;
    for (const Stmt& item : sequence->seq) {
      Touched now = Touched::by(item);
      found |= now.depends_on(before);
      before.add(now);
      if (!found) v(item);
    }
  });
  return found;
}

}  // namespace tilewright::analysis
