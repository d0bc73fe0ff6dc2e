// Tracks the regions that a program has surely written, in program order, to decide whether a load may read contents
// from before the call. parameter_uses.h asks this for each load of a parameter.
//
//   for i in range(8):
//     with T.block("B"): vi = S(8, i); B[vi] = A[vi]
//     ... B[i]                  written: the same element of the same iteration
//     ... B[7 - i]              not known to be written
//   ... B[7 - i]                written: the loop over the block has ended
//
// Assumes that a block has run for all values of its axes when the loops around it have ended, and that the init of a
// reduction runs before all other steps of its element (skipped_init.h).
#pragma once

#include <unordered_map>
#include <vector>

#include "arith/int_set.h"
#include "ir/stmt.h"
#include "ir/substitute.h"

namespace tilewright::analysis {

class WrittenBefore {
 public:
  /// A region of a buffer, after views were replaced by the buffers that they view.
  struct Part {
    Ref<Buffer> buffer;
    arith::Region region;
  };

  /// Enters and leaves loops, blocks and conditions; leave(d) leaves all that were entered since depth() was d.
  /// `is_sure`: the statements inside run at least once.
  size_t depth() const { return around_.size(); }
  void enter_loop(const For& loop, bool is_sure);
  void enter_block(const BlockRealize& realize, bool is_sure);
  void enter_condition();
  void leave(size_t depth) { around_.resize(depth); }

  /// Returns the element in terms of the buffer that a view shows, if the view covers whole dimensions; else in terms
  /// of the view.
  Part part(const Ref<Buffer>& buffer, const std::vector<Expr>& indices) const;
  static Part all_of(const Ref<Buffer>& buffer);
  Ref<Buffer> source_of(const Ref<Buffer>& buffer) const;

  /// Whether writes to `part` cover the whole buffer when the enclosing loops and blocks have ended.
  bool writes_whole_buffer(const Part& part) const;
  void write(const Part& part);
  /// Whether all of `part` has surely been written before this point.
  bool has(const Part& part) const;
  /// Records that the program writes a buffer, after which indices that load from it may select other elements. Null:
  /// an unknown buffer.
  void change(const Ref<Buffer>& buffer);

 private:
  /// An enclosing loop, an axis of an enclosing block with its binding, or a condition, which gets a variable to
  /// identify it.
  struct Surrounding {
    Ref<Var> var;
    Ref<Range> domain;
    Expr binding, condition;
    bool is_sure = true;
  };
  using Around = std::vector<Surrounding>;
  struct Write {
    Part part;
    Around around;
    bool writes_whole_buffer;
    size_t changes;  ///< size of changes_ at the time of the write
  };

  bool has(const Write& write, const Part& part) const;
  bool is_changed_since(const Write& write) const;

  Around around_;
  std::vector<Write> writes_;
  std::vector<NodeRef> changes_;  ///< data variables of changed buffers, in program order
  std::unordered_map<const NodeBase*, Ref<BufferRegion>> views_;
};

}  // namespace tilewright::analysis
