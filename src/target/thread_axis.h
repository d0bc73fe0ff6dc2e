// Axes of the threads that run the iterations of a bound loop: "blockIdx.x", "threadIdx.y", "vthread.z", "vthread".
//
// A kernel is a grid of blocks of threads. The threads of a block form a team: they can wait for one another. A virtual
// thread is a thread of the team that shares its processor with others. Blocks never wait for one another.
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

  /// One of those who can wait for one another.
  bool in_team() const { return level != Level::kBlock; }
  /// Memory of this rank and those below is one for all that run along this axis (memory_scope.h).
  int rank() const { return in_team() ? 1 : 0; }
  /// Two loops bound to it, one inside of the other, mean the same threads.
  bool is_unique() const { return dimension >= 0; }

  friend bool operator==(const ThreadAxis&, const ThreadAxis&) = default;
};

}  // namespace tilewright
