// Classifies a block, independently of the code around it: whether its instances may be reordered, repeated, or run in
// parallel.
//
// Schedules rely on scopes in single-assignment form, in which each block has one of these roles:
//
//   complete    all axes are data-parallel, and the block does not read what it writes
//   reduction   the block has an init; its other axes are reduction axes; of the buffers that it writes, the body reads
//               only the elements that it writes
//   update      a reduction without an init, such as the one that decompose_reduction creates: another block writes the
//               initial value. A block that stores under a condition is an update, too: an element may keep its value
//
// Instances with different values of the data-parallel axes write disjoint elements, and all accesses are declared.
// Then the order of instances does not change any result, as long as each instance runs after everything that it reads
// is complete. analysis/cover.h checks that.
//
// A call that accesses memory through pointers is analyzed if each pointer is an access_ptr to a view (match_buffer),
// which says what is read and written. The mode "w" means that the whole view is overwritten. A block that implements a
// tensor intrinsic (ir/tensor_intrin.h) is analyzed as the description of the intrinsic.
#pragma once

#include <string>

#include "ir/stmt.h"

namespace tilewright::analysis {

enum class BlockRole { kComplete, kReduction, kUpdate, kOther };

class BlockFacts : public Memo::Fact {
 public:
  /// Returns the facts, which are computed once per block.
  static const BlockFacts& of(const Ref<Block>& block);
  /// Computes the facts by the general analysis, without the fast path for common blocks. Both give the same result.
  static BlockFacts examined(const Ref<Block>& block);

  BlockRole role = BlockRole::kOther;
  /// Whether the result of the reduction does not depend on the order of its steps, except by rounding.
  bool commutative = true;
  /// Whether a block inside or a tensor intrinsic does the work, so that its steps cannot be split further.
  bool compound = false;
  /// For kOther: whether the block is a scatter, a reduction whose reduction axes select the element, such as
  /// C[R[vp], vj] += A[vp, vj], where instances with different spatial axes (vj) still write different elements. Loops
  /// that drive spatial axes only may be reordered.
  bool scatters = false;
  /// For kOther: the violated condition, such as "it reads and writes 'C' at different elements". For kUpdate: the
  /// elements that may keep their value; empty for blocks that accumulate.
  std::string why;
  /// Reason why the declared regions may not contain all accesses; empty if they do.
  std::string undeclared;
  /// If `undeclared` is not empty because the block uses pointers of declared buffers, and everything else is proved:
  /// the assumption that a step on this block makes and reports, "block 'B' touches of 'A' what it declares".
  std::string trusted;
  /// For each declared write: whether each instance stores all of it.
  std::vector<bool> writes_all;
  /// The regions whose previous values matter: those that the block reads, and those that it may write only partly.
  std::vector<Ref<BufferRegion>> live_in;
};

/// Marks a block whose declared regions are assumed to be correct whatever its body does: it accesses exactly these
/// regions, writes all of them if instances write disjoint regions, and its data-parallel axes run in any order.
/// schedule/declarations.h plans steps on marked blocks; marks never remain in a program. The mark is an annotation
/// with a value that scripts cannot create.
void assume_declarations(Block& block);
bool has_assumed_declarations(const Block& block);
void clear_assumed_declarations(Block& block);

bool is_data_parallel(const Ref<IterVar>& axis);
bool is_reduction_axis(const Ref<IterVar>& axis);

}  // namespace tilewright::analysis
