// Scopes of memory: who sees one copy of a buffer, and where it is kept. The one table is memory_scopes.def.
//
//   memory_scope(buffer->scope()).is_shared_by(axis)   // do all iterations of a loop bound to the axis see one copy?
#pragma once

#include <span>
#include <string_view>

#include "target/thread_axis.h"

namespace tilewright {

enum class Storage : uint8_t { kMemory, kRegisters };

struct MemoryScope {
  std::string_view prefix;
  int rank;
  int lanes;
  Storage on_cpu;
  std::string_view tags;  ///< ".dyn .vtcm"

  /// The iterations of a loop bound to the axis see one copy; else each has its own. Along threadIdx.x, that can hold
  /// for groups of `lanes` threads only.
  bool is_shared_by(const ThreadAxis& axis) const;
  /// The memory of a team: what its threads write of a buffer, all of them can read once they have waited for one
  /// another, so that the region in question is that of all iterations of a loop bound to the axis. Blocks do not wait,
  /// so main memory is none of it. `extent`: iterations of the loop, -1 if not known.
  bool joins_threads(const ThreadAxis& axis, int64_t extent) const;
};

/// Every row.
std::span<const MemoryScope> memory_scopes();
/// By how the text begins; null for one that begins like no scope.
const MemoryScope* find_memory_scope(std::string_view scope);
/// Whether there is a scope of just this name: "shared.dyn", and neither "sharedd" nor "shared.d". A number may
/// follow, where there is more than one memory of a kind: "global2".
bool is_memory_scope(std::string_view scope);
/// The scope that a text names; main memory, which all share, for others.
const MemoryScope& memory_scope(std::string_view scope);

}  // namespace tilewright
