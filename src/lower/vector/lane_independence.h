// Decides whether a loop may be vectorized: whether each statement may run for all iterations (lanes) before the next
// statement runs.
#pragma once

#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "arith/analyzer.h"
#include "ir/reduction_step.h"
#include "lower/pass.h"

namespace tilewright::lower {

/// The data variables of a function that nothing else points into.
std::unordered_set<NodeRef> private_memory(const PrimFunc& func, const PassContext& context);

/// One load or store of flat memory inside of a loop.
struct LaneAccess {
  Ref<Buffer> buffer;
  Expr index;
  bool writes = false;
  int position = 0;               ///< in the order of execution within one iteration
  std::vector<Ref<For>> loops;    ///< inside of the loop and around the access, outermost first
  bool conditional = false;       ///< whether some iterations may skip it
  std::optional<int64_t> stride;  ///< stride of the index between iterations; null: not constant
};

/// The accesses of a loop, and the dependences between its iterations.
class LaneAccesses {
 public:
  /// `private_memory` holds the data variables that nothing else points into.
  LaneAccesses(const Ref<For>& loop, const std::unordered_set<NodeRef>& private_memory, arith::Analyzer& analyzer);

  const std::vector<LaneAccess>& all() const { return accesses_; }
  /// Returns why iterations cannot be lanes; empty if they can.
  std::string obstacle();

 private:
  void note_names();
  void note_name(const Ref<Var>& name, const Expr& value);
  bool has_moving_name(const NodeRef& node) const;
  /// Whether the expression depends on the loop's variable, or on a let variable that may differ between iterations.
  bool moves(const NodeRef& node) const;
  void collect(const Stmt& s);
  void collect(const Expr& e);
  void add(const Ref<Buffer>& buffer, const Expr& index, bool writes);
  std::optional<int64_t> stride_of(const Expr& index);
  bool is_steady(const Expr& index);
  std::string obstacle(const LaneAccess& store, const LaneAccess& other);
  bool beyond_lanes(const Expr& gap, int64_t stride);
  bool all_differ(const Expr& index);
  bool apart(const LaneAccess& a, const LaneAccess& b);
  /// Returns the index with fresh variables, of the same ranges, in place of inner loops and what depends on them; also
  /// of the loop itself if requested.
  Expr elsewhere(const LaneAccess& access, bool other_lane);

  const Ref<For>& loop_;
  const std::unordered_set<NodeRef>& private_memory_;
  arith::Analyzer& analyzer_;
  std::unordered_set<NodeRef> written_;  ///< data variables of buffers that the loop stores to
  std::unordered_set<NodeRef> moving_;   ///< let variables that may differ between iterations
  std::vector<Ref<Var>> inner_names_;    ///< let variables inside of inner loops
  std::vector<LaneAccess> accesses_;
  std::vector<Ref<For>> inside_;
  int conditions_ = 0;  // around what is being collected
};

/// The store as a step of a reduction whose partial results lanes can hold. The analyzer knows the loops around it.
std::optional<ReductionStep> lane_step(const BufferStore& store, arith::Analyzer& analyzer);
/// Whether the element that a step stores to is touched in `scope` by this step only. `trusted`: different buffers do
/// not overlap.
bool is_alone(const Stmt& scope, const BufferStore& step, const std::unordered_set<NodeRef>& private_memory,
              bool trusted = false);

}  // namespace tilewright::lower
