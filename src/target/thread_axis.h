// The thread axis that a loop is bound to: "blockIdx.x", "threadIdx.y", "vthread.z", "vthread".
//
// A kernel is a grid of blocks of threads. The threads of a block form a team, which has barriers. Several virtual
// threads of a team are interleaved in one hardware thread. There are no barriers between blocks.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tilewright {

struct ThreadAxis {
  enum class Level : uint8_t { kBlock, kThread, kVirtual };
  Level level;
  int dimension;  ///< 0 to 2 for x to z; -1: "vthread" alone, which stands for any number of axes

  /// Returns the axis with this tag, if there is one.
  static std::optional<ThreadAxis> parse(std::string_view tag);

  /// Whether the threads along the axis are in one team, and thus have barriers.
  bool in_team() const { return level != Level::kBlock; }
  /// Memory scopes up to this rank are shared along the axis (memory_scope.h).
  int rank() const { return in_team() ? 1 : 0; }
  /// Whether nested loops bound to the axis run on the same threads.
  bool is_unique() const { return dimension >= 0; }

  friend bool operator==(const ThreadAxis&, const ThreadAxis&) = default;
};

}  // namespace tilewright
