// Whether different threads of a team access the same byte.
//
// Decided by enumeration: the parts of both offsets that threads and loops inside move are evaluated for every thread
// and iteration, and bytes are compared by their owners. The parts that are the same for all threads, which loops
// around and sizes decide, have to cancel. What cannot be decided counts as a conflict.
//
//   for i in range(4):
//     if tx * 4 + i < 1: R[ty] = S[0]       `R[ty]` belongs to all threads of a row, but only thread 0 stores to it
//
// Conditions say which threads come in which iteration. What is left open without them is tried once more for each
// iteration of the loops, and each block, that conditions and offsets mention, where these are few. The work for a
// kernel is limited; beyond the limit, every answer is kUndecided.
#pragma once

#include <map>
#include <vector>

#include "arith/analyzer.h"
#include "lower/gpu/kernel.h"

namespace tilewright::lower {

struct TeamAccess {
  Ref<Var> memory;  ///< the arena, or a pointer to main memory
  Expr offset;      ///< in bytes; null: anywhere
  int64_t width = 0;
  bool is_write = false;
  std::vector<Expr> conditions;  ///< conditions that hold at the access
  NodeRef node;                  ///< the load or store
  int lane = 0;                  ///< lane of a vector whose elements are not contiguous
  bool is_ordered = false;       ///< the program has all threads wait behind it
  bool is_atomic = false;        ///< an atomic operation, which has no order among others
};

/// Loops of the kernel by variable.
using LoopRanges = std::map<const NodeBase*, Ref<For>>;

class TeamConflicts {
 public:
  TeamConflicts(const KernelLoops& kernel, const LoopRanges& loops, arith::Analyzer& analyzer);

  enum class Answer : uint8_t { kNever, kMeet, kUndecided };
  /// `around`: variables of the loops that both accesses are in, in the same iteration.
  Answer meet(const TeamAccess& a, const TeamAccess& b, const std::vector<NodeRef>& around);

 private:
  struct Moving {
    Expr fixed;   ///< value with every thread and inner variable at the start of its range
    Expr offset;  ///< the rest
    std::vector<Ref<For>> inner;
    std::vector<Expr> conditions;  ///< for an iteration of the inner loops to be there
  };
  /// Compares with at most `most` iterations, under conditions on loops that do not move the offsets; without these
  /// conditions if `most` is nothing.
  Answer compare(const TeamAccess& a, const TeamAccess& b, const std::vector<NodeRef>& around,
                 std::optional<int64_t> most);
  /// Loops whose variables have one value for all threads, around both accesses and over blocks: those that conditions
  /// mention first.
  std::vector<Ref<For>> shared_by(const TeamAccess& a, const TeamAccess& b, const std::vector<NodeRef>& around) const;
  std::optional<Moving> moving(const TeamAccess& access, const std::vector<NodeRef>& around,
                               std::optional<int64_t> most);
  using Points = std::vector<std::pair<int64_t, int>>;
  /// Offsets by thread; nothing where they cannot be evaluated.
  std::optional<Points> points(const TeamAccess& access, const Moving& moving, int64_t most);
  bool distances_of(const Expr& distance, std::vector<int64_t>& into);
  static bool share_bytes(const Points& a, int64_t width_a, int64_t distance, const Points& b, int64_t width_b);

  std::vector<Ref<For>> threads_, blocks_;
  int64_t team_ = 1;    ///< threads; 0: not known
  int64_t bytes_left_;  ///< of all comparisons; without any, nothing is decided
  const LoopRanges& loops_;
  arith::Analyzer& analyzer_;
};

}  // namespace tilewright::lower
