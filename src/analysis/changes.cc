#include "analysis/changes.h"

#include <unordered_set>

#include "analysis/accesses.h"
#include "ir/op.h"

namespace tilewright::analysis {
namespace {

/// Returns the memory of an access; null for a pointer to memory without a buffer.
const NodeBase* memory_of(const Access& access, const MemoryNames& names) {
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

}  // namespace

bool reads_memory(const Expr& value) { return effect_of(value) != Effect::kPure; }

bool may_change(const MemoryNames& names, const Stmt& body, const Expr& value) {
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
bool may_change(const Tree& tree, const Stmt& body, const Expr& value) { return may_change(tree.names(), body, value); }

}  // namespace tilewright::analysis
