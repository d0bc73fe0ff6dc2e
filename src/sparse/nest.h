// What stands around a statement of a sparse iteration, and the loops and blocks that are made of it.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "ir/stmt.h"
#include "ir/substitute.h"

namespace tilewright::sparse {

/// A variable of an iteration around, a loop, a condition that holds, or a value that has a name.
struct Frame {
  Ref<SpIterVar> iter;  ///< of an iteration
  Ref<For> loop;        ///< or a loop of the program
  Expr condition;       ///< or a condition
  Ref<Var> let;         ///< or a name, of `coordinate`
  // Of an iteration's variable:
  Expr parent;             ///< position of the parent; null for a root
  Expr position;           ///< among all positions of the axis
  Expr relative;           ///< among those below the parent's
  Expr coordinate = {};    ///< its value
  Ref<IterVar> axis = {};  ///< of the block; null for what is fused with the next variable
  size_t group = 1;        ///< of the first of several fused variables: how many they are
  bool in_group = false;   ///< fused with the one before
};

/// The loops of one block.
struct Level {
  size_t first = 0;  ///< its first frame
  std::vector<Ref<IterVar>> axes;
  std::vector<Ref<Var>> loops;
};

/// The frames around, and arrays that say which position of an axis those of its children belong to.
class Nest {
 public:
  std::vector<Frame> frames;

  /// Adds frames for the variables, and says in which blocks they are. `spatial`: also those of reductions.
  std::vector<Level> open(const std::vector<Ref<SpIterVar>>& iters, bool spatial = false);
  /// The frame of the innermost variable with these coordinates; null.
  const Frame* find(const Ref<Var>& variable) const;
  /// Position of the parent of an axis.
  Expr parent_position(const Axis& axis) const;

  /// parents[p]: to which position of the parent position p of `child` belongs.
  struct Owner {
    Ref<Axis> child;
    Ref<Buffer> parents;
  };
  std::vector<Owner> owners;

 private:
  void add(const Ref<SpIterVar>& iter, std::vector<Level>& levels, bool spatial);
  void add_fused(const std::vector<Ref<SpIterVar>>& iters, size_t first, size_t last, std::vector<Level>& levels,
                 bool spatial);
  Ref<IterVar> add_axis(const SpIterVar& iter, Expr extent, bool reduces, std::vector<Level>& levels);
  Expr owner_of(const Ref<Axis>& child, const Expr& position);
};

/// From where to where the positions below one of the parent's run.
std::pair<Expr, Expr> positions_below(const Axis& axis, const Expr& parent);
/// The axis whose structure it is: another one of an attached axis.
const Ref<Axis>& structure_of(const Ref<Axis>& axis);
/// Loops around the block with this body.
Stmt close(const Level& level, std::string name, Annotations annotations, Stmt init, Stmt body,
           std::vector<Def<Buffer>> allocated = {});
/// Indices into an array with an element for each combination of positions of these frames: ir/sparse.h.
struct Placement {
  std::vector<Expr> shape, indices;
};
Placement place(const std::vector<const Frame*>& frames);

}  // namespace tilewright::sparse
