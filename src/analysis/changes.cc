#include "analysis/changes.h"

#include <unordered_set>

#include "analysis/accesses.h"
#include "analysis/memory_names.h"
#include "ir/op.h"
#include "ir/pointer_uses.h"
#include "ir/traverse.h"

namespace tilewright::analysis {
namespace {

/// Returns the memory of an access; null for a pointer to memory without a buffer.
template <class Names>
const NodeBase* memory_of(const Access& access, const Names& names) {
  const NodeBase* data = nullptr;
  if (access.alias.defined()) {
    data = access.alias.get();
  } else if (access.pointer.defined()) {
    data = access.pointer.get();
  } else if (const Ref<BufferRegion> region = access.region(); region.defined()) {
    data = region->buffer->data.get();
  }
  return data ? names.memory(data) : nullptr;
}

template <class Names>
bool changes_in(const Names& names, const Stmt& body, const Expr& value) {
  if (!reads_memory(value)) return false;
  std::unordered_set<const NodeBase*> read;
  for_each_access(value, Nested::kEnter, [&](const Access& access) { read.insert(memory_of(access, names)); });
  bool changes = read.empty() || read.contains(nullptr);  // a call may read any memory
  for_each_access(body, Nested::kEnter, [&](const Access& access) {
    if (!access.writes || changes) return;
    const NodeBase* memory = memory_of(access, names);
    changes = !memory || read.contains(memory);
  });
  return changes;
}

}  // namespace

bool reads_memory(const Expr& value) { return effect_of(value) != Effect::kPure; }

PointerNames::PointerNames(const Stmt& body) {
  visit(body, [&](const Ref<LetStmt>& let, Visitor& walk) {
    const Ref<Var> source = let->var.dtype().is_handle() ? pointer_in(let->value) : Ref<Var>();
    if (source.defined()) sources_.emplace(let->var.get(), source.get());
    walk.descend(let);
  });
}

const NodeBase* PointerNames::memory(const NodeBase* data) const {
  for (auto it = sources_.find(data); it != sources_.end(); it = sources_.find(data)) data = it->second;
  return data;
}

bool may_change(const PointerNames& names, const Stmt& body, const Expr& value) {
  return changes_in(names, body, value);
}
bool may_change(const Tree& tree, const Stmt& body, const Expr& value) {
  return changes_in(MemoryNames::of(tree), body, value);
}

}  // namespace tilewright::analysis
