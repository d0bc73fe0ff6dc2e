// Classifies a block by itself: whether its instances may run in another order, several times, or at the same time.
//
// The reasoning behind schedules is single assignment. Let every block of a scope be one of
//
//   complete    all axes data-parallel, reads nothing that it writes
//   reduction   has an init; other axes reduce; the body reads of what it writes only its own elements
//   update      a reduction without an init: elements have a value before (what decompose_reduction leaves). So does
//               what stores on a condition: an element may keep its value
//
// where instances with different data-parallel axes write disjoint elements and all accesses are declared. Then the
// value of an element follows from the axes of the instances that write it, whenever they run, provided that what they
// read is complete by then. analysis/cover.h checks that; nothing else about an order matters.
//
// What calls do to memory behind pointers counts where each pointer is one to a view (match_buffer), through access_ptr
// with what is read and written: "w" alone replaces all that the view shows. That is the contract of an opaque block. A
// block that stands for a tensor intrinsic (ir/tensor_intrin.h) counts as what the intrinsic's description says.
#pragma once

#include <string>

#include "ir/stmt.h"

namespace tilewright::analysis {

enum class BlockRole { kComplete, kReduction, kUpdate, kOther };

class BlockFacts : public Memo::Fact {
 public:
  /// A fact of the block alone, worked out once.
  static const BlockFacts& of(const Ref<Block>& block);
  /// Uses the general analysis, which agrees with the shorter one for common blocks.
  static BlockFacts examined(const Ref<Block>& block);

  BlockRole role = BlockRole::kOther;
  /// The reduction combines values in any order with the same result (but for rounding).
  bool commutative = true;
  /// Whether a block inside or a tensor intrinsic does the work, so that its steps cannot be split further.
  bool compound = false;
  /// For kOther: whether it adds to elements that its reduction axes select, and its other axes separate instances
  /// whatever these elements are, as vj does in C[R[vp], vj] += A[vp, vj]. Loops that drive the other axes alone run in
  /// any order.
  bool scatters = false;
  /// For kOther: the condition that fails, such as "it reads and writes 'C' at different elements". For kUpdate: what
  /// may keep its value; empty for blocks that accumulate.
  std::string why;
  /// Reason why the declared regions may not contain all accesses; empty if they do.
  std::string undeclared;
  /// If `undeclared` is not empty: the rest is proved, and the block uses pointers of buffers that it declares. A step
  /// that relies on the declarations reports this text: "block 'B' touches of 'A' what it declares".
  std::string trusted;
  /// For each declared write: whether each instance stores all of it.
  std::vector<bool> writes_all;
  /// The regions whose values from before the block uses: what it reads, and what it writes only in part.
  std::vector<Ref<BufferRegion>> takes;
};

/// A mark that takes a block at its word, whatever stands in its body: its data-parallel axes run in any order, it
/// touches what it declares, and sets all that it declares to write where its instances write apart. Steps are tried on
/// blocks with such marks (schedule/declarations.h), and no program keeps one. It is an annotation with a value that
/// nobody else can make.
void take_at_its_word(Block& block);
bool is_taken_at_its_word(const Block& block);
void forget_its_word(Block& block);

bool is_data_parallel(const Ref<IterVar>& axis);
bool is_reduction_axis(const Ref<IterVar>& axis);

}  // namespace tilewright::analysis
