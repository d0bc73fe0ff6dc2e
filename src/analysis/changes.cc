#include "analysis/changes.h"

#include <unordered_set>

#include "analysis/accesses.h"
#include "ir/op.h"
#include "ir/traverse.h"

namespace tilewright::analysis {
namespace {

/// Returns the memory of an access; null for a pointer to memory without a buffer.
NodeRef memory_of(const Access& access) {
  if (access.pointer.defined()) return NodeRef(access.pointer);
  const Ref<BufferRegion> region = access.region();
  return region.defined() ? NodeRef(region->buffer->data) : NodeRef();
}

}  // namespace

bool reads_memory(const Expr& value) { return effect_of(value) != Effect::kPure; }

bool may_change(const Stmt& body, const Expr& value) {
  if (!reads_memory(value)) return false;
  std::unordered_set<NodeRef> read;
  for_each_access(value, Nested::kEnter, [&](const Access& access) { read.insert(memory_of(access)); });
  bool changes = read.empty() || read.contains(NodeRef());  // a call may read any memory
  for_each_access(body, Nested::kEnter, [&](const Access& access) {
    if (!access.writes || changes) return;
    const NodeRef memory = memory_of(access);
    changes = !memory.defined() || read.contains(memory);
  });
  return changes;
}

}  // namespace tilewright::analysis
