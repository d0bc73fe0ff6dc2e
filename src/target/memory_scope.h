// Memory scopes: which threads share a copy of a buffer, and where it is stored. The table is memory_scopes.def.
//
//   memory_scope(buffer->scope()).is_shared_by(axis)   // do all iterations of a loop bound to the axis share a copy?
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

  /// Whether the iterations of a loop bound to the axis share one copy; otherwise, each has its own. Along threadIdx.x,
  /// only groups of `lanes` threads may share one.
  bool is_shared_by(const ThreadAxis& axis) const;
  /// Whether the threads along the axis exchange values through this memory: after a barrier, each can read what all of
  /// them have written, so a written region is the union over all iterations of a loop bound to the axis. False for
  /// main memory, which also blocks without common barriers share. `extent`: iterations of the loop, -1 if unknown.
  bool joins_threads(const ThreadAxis& axis, int64_t extent) const;
};

/// Returns all rows.
std::span<const MemoryScope> memory_scopes();
/// Returns the scope whose prefix the text begins with; null if there is none.
const MemoryScope* find_memory_scope(std::string_view scope);
/// Whether the text is exactly the name of a scope: "shared.dyn", but neither "sharedd" nor "shared.d". A number may
/// follow if there are several memories of a kind: "global2".
bool is_memory_scope(std::string_view scope);
/// Returns the scope that the text names; main memory for other texts.
const MemoryScope& memory_scope(std::string_view scope);

}  // namespace tilewright
