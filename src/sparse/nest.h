// The enclosing frames of a statement in a sparse iteration, and the loops and blocks that are generated from them.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "ir/stmt.h"
#include "ir/substitute.h"

namespace tilewright::sparse {

/// A variable, loop, condition or let that encloses the lowered statement.
struct Frame {
  enum class Kind { kAxis, kLoop, kCondition, kLet };
  Kind kind = Kind::kAxis;
  // A variable of an iteration (kAxis):
  Ref<SpIterVar> iter = {};
  Expr parent = {};        ///< position along the parent axis; null for a root
  Expr position = {};      ///< along the whole axis
  Expr relative = {};      ///< counted from the first position below `parent`
  Ref<IterVar> axis = {};  ///< block axis; null if fused with the next variable
  bool in_group = false;   ///< fused into the loop of the preceding frame
  // Others:
  Ref<For> loop = {};   ///< a loop of the source program
  Expr condition = {};  ///< condition that holds
  Ref<Var> let = {};    ///< the variable of a let
  /// The coordinate that the variable of an iteration stands for, or the value of a let.
  Expr value = {};

  bool is_axis() const { return kind == Kind::kAxis; }
  /// The variable that differs between iterations of the loop over an axis, or of a loop; null if there is none.
  Ref<Var> counter() const {
    return axis.defined() ? Ref<Var>(axis->var) : loop.defined() ? Ref<Var>(loop->loop_var) : Ref<Var>();
  }
};

/// The axes of one block, and the loops around it.
struct Level {
  size_t first = 0;  ///< its first frame
  std::vector<Ref<IterVar>> axes;
  std::vector<Ref<Var>> loops;  ///< loop of each axis; null if the axis has one value
};

/// The enclosing frames, and the arrays of parent positions that fused axes need: COO row indices, which are computed
/// once and can be reused by later calls (preprocess() in lowering.h).
class Nest {
 public:
  Nest() = default;
  /// `parents_are_searched` (Form::kPublished): names the arrays of parent positions mid_0, mid_1, ..., numbered by
  /// `num_searches`.
  Nest(int& num_searches, bool parents_are_searched) : num_searches_(parents_are_searched ? &num_searches : nullptr) {}

  std::vector<Frame> frames;

  /// Adds frames for the variables, and returns the blocks that they are divided into. `spatial`: reduction variables
  /// become spatial axes, too.
  std::vector<Level> open(const std::vector<Ref<SpIterVar>>& iters, bool spatial = false);
  /// The frame of a variable of an enclosing iteration; null if there is none.
  const Frame* find(const Ref<Var>& variable) const;
  /// The current position along the parent of an axis; null if there is none.
  Expr parent_position(const Axis& axis) const;

  /// `parents[p]` is the position along the parent axis that position p of `child` belongs to.
  struct ParentIndices {
    Ref<Axis> child;
    Ref<Buffer> parents;
    int search = -1;  ///< number of its mid_ array; -1: none
  };
  std::vector<ParentIndices> parent_indices;

 private:
  void add(const Ref<SpIterVar>& iter, std::vector<Level>& levels, bool spatial);
  void add_fused(const std::vector<Ref<SpIterVar>>& iters, size_t first, size_t last, std::vector<Level>& levels,
                 bool spatial);
  Ref<IterVar> add_axis(const SpIterVar& iter, Expr extent, bool reduces, std::vector<Level>& levels);
  Expr parent_position_of(const Ref<Axis>& child, const Expr& position);

  int* num_searches_ = nullptr;
};

/// The half-open range of positions of an axis below a position of its parent.
std::pair<Expr, Expr> positions_below(const Axis& axis, const Expr& parent);
/// The axis that owns the structure: for an attached axis the one that it is attached to.
const Ref<Axis>& structure_of(const Ref<Axis>& axis);
/// Returns the block with this body, in its loops.
Stmt make_block_nest(const Level& level, std::string name, Annotations annotations, Stmt init, Stmt body,
                     std::vector<Def<Buffer>> allocated = {});
/// Shape and indices of an array with one element per combination of positions (ir/sparse.h).
struct Placement {
  std::vector<Expr> shape, indices;
};
/// Returns the element for the current positions of these frames.
Placement locate_element(const std::vector<const Frame*>& frames);

}  // namespace tilewright::sparse
