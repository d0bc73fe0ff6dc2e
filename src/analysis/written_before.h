// Collects what a program has surely written before each of its statements, in program order, to decide whether a load
// needs the contents of a buffer from before the program ran.
//
//   for i in range(8):
//     with T.block("B"): vi = S(8, i); B[vi] = A[vi]
//     ... B[i]                  written: the same element of the same iteration
//     ... B[7 - i]              not yet
//   ... B[7 - i]                written: the block has reached all of its axis
//
// A block is taken to reach all of its axes once the loops around it are over, and the init of a reduction to run
// before all steps of its element (skipped_init.h).
#pragma once

#include <unordered_map>
#include <vector>

#include "arith/int_set.h"
#include "ir/stmt.h"
#include "ir/substitute.h"

namespace tilewright::analysis {

class WrittenBefore {
 public:
  /// Part of a buffer that is no view.
  struct Part {
    Ref<Buffer> buffer;
    arith::Region region;
  };

  /// Surroundings of the next statements; leave() ends all that was entered since a depth(). Statements under a loop or
  /// condition that is not sure may not run at all.
  size_t depth() const { return around_.size(); }
  void enter_loop(const For& loop, bool is_sure);
  void enter_block(const BlockRealize& realize, bool is_sure);
  void enter_condition();
  void leave(size_t depth) { around_.resize(depth); }

  /// Elements in terms of the buffer that a view stands for, as far as views are of whole dimensions; else of the view.
  Part part(const Ref<Buffer>& buffer, const std::vector<Expr>& indices) const;
  static Part all_of(const Ref<Buffer>& buffer);
  Ref<Buffer> source_of(const Ref<Buffer>& buffer) const;

  /// Whether all elements of the buffer are written once the loops and blocks around are over.
  bool reaches_all(const Part& part) const;
  void write(const Part& part);
  bool has(const Part& part) const;
  /// The program changes a buffer, whichever, at this point: indices that read it name other elements from here on.
  /// Null: perhaps any buffer.
  void change(const Ref<Buffer>& buffer);

 private:
  /// A loop, an axis of a block with what it is bound to, or a condition under a variable of its own.
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
    bool reaches_all;
    size_t changes;  ///< number of the changes before
  };

  bool has(const Write& write, const Part& part) const;
  bool is_changed_since(const Write& write) const;

  Around around_;
  std::vector<Write> writes_;
  std::vector<NodeRef> changes_;  ///< pointers of what was changed, one after another
  std::unordered_map<const NodeBase*, Ref<BufferRegion>> views_;
};

}  // namespace tilewright::analysis
