// Decides whether different threads of a GPU block (a team) may access the same byte, so that two accesses need a
// barrier between them. place_barriers.cc asks this for pairs of accesses.
//
// The algorithm enumerates all threads and iterations of inner loops. It evaluates the parts of both offsets that
// depend on them, and compares which threads access each byte. The other parts of the offsets, which depend on loops
// around both accesses and on sizes, must cancel. Undecided pairs count as conflicts.
//
//   for i in range(4):
//     if tx * 4 + i < 1: R[ty] = S[0]       all threads of a row have the offset of R[ty], but only tx = 0 stores
//
// If offsets alone show a possible conflict, the pair is compared again under the conditions of the accesses:
// separately for each iteration of the uniform loops, and each thread block, that these mention, if there are few. The
// work per kernel is limited; beyond the limit, every answer is kUndecided.
#pragma once

#include <map>
#include <vector>

#include "arith/analyzer.h"
#include "lower/gpu/kernel.h"

namespace tilewright::lower {

struct TeamAccess {
  Ref<Var> memory;  ///< the arena, or a pointer to main memory
  Expr offset;      ///< in bytes; null if unknown
  int64_t width = 0;
  bool is_write = false;
  std::vector<Expr> conditions;  ///< conditions that hold at the access
  NodeRef node;                  ///< the load or store
  int lane = 0;                  ///< lane of a vector whose elements are not contiguous
  bool is_ordered = false;       ///< whether the program has a barrier after it
  bool is_atomic = false;        ///< atomic operations do not conflict with one another
};

/// Loops of the kernel by variable.
using LoopRanges = std::map<const NodeBase*, Ref<For>>;

class TeamConflicts {
 public:
  TeamConflicts(const KernelLoops& kernel, const LoopRanges& loops, arith::Analyzer& analyzer);

  enum class Answer : uint8_t { kNever, kMeet, kUndecided };
  /// Whether two threads may meet at one byte by these accesses. `around`: variables of the loops around both accesses,
  /// in the same iteration.
  Answer meet(const TeamAccess& a, const TeamAccess& b, const std::vector<NodeRef>& around);

 private:
  struct Moving {
    Expr fixed;   ///< uniform part: the offset with all thread and inner loop variables at their minima
    Expr offset;  ///< varying part: the offset minus the uniform part
    std::vector<Ref<For>> inner;
    std::vector<Expr> conditions;  ///< conditions under which an enumerated iteration of the inner loops exists
  };
  /// Compares the offsets. With `most`, also enumerates loops that only the conditions mention, and at most `most`
  /// points; without it, conditions on such loops are ignored.
  Answer compare(const TeamAccess& a, const TeamAccess& b, const std::vector<NodeRef>& around,
                 std::optional<int64_t> most);
  /// Returns the uniform loops, around both accesses or over thread blocks, that conditions and offsets mention; those
  /// of conditions come first.
  std::vector<Ref<For>> shared_by(const TeamAccess& a, const TeamAccess& b, const std::vector<NodeRef>& around) const;
  std::optional<Moving> moving(const TeamAccess& access, const std::vector<NodeRef>& around,
                               std::optional<int64_t> most);
  using Points = std::vector<std::pair<int64_t, int>>;
  /// Returns pairs of varying offset and thread; nothing if an offset cannot be evaluated.
  std::optional<Points> points(const TeamAccess& access, const Moving& moving, int64_t most);
  bool distances_of(const Expr& distance, std::vector<int64_t>& into);
  static bool share_bytes(const Points& a, int64_t width_a, int64_t distance, const Points& b, int64_t width_b);

  std::vector<Ref<For>> threads_, blocks_;
  int64_t team_ = 1;    ///< number of threads; 0 if unknown
  int64_t bytes_left_;  ///< remaining budget of compared bytes; at 0, all answers are kUndecided
  const LoopRanges& loops_;
  arith::Analyzer& analyzer_;
};

}  // namespace tilewright::lower
