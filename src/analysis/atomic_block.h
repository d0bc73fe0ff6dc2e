// Blocks whose only effect is atomic operations, so that their instances may run in any order.
#pragma once

#include <map>

#include "ir/op.h"
#include "ir/stmt.h"

namespace tilewright::analysis {

/// The atomic operations of a block: one kind of operation for each buffer.
class AtomicUpdates : public Memo::Fact {
 public:
  /// The operations of the block and of the blocks inside it, computed once per block. Empty if the order of instances
  /// matters: if the block has an init, uses the result of an operation, reads what it updates, exchanges values, mixes
  /// kinds of operations on one buffer, or writes memory that it does not allocate in another way.
  static const AtomicUpdates& of(const Ref<Block>& block);

  bool empty() const { return operations_.empty(); }
  /// Whether both update the buffer by the same kind of operation, so that their order does not matter.
  bool agree(const AtomicUpdates& other, const Ref<Buffer>& buffer) const;

 private:
  std::map<const NodeBase*, Intrinsic> operations_;  ///< by the data variable of the buffer
};

}  // namespace tilewright::analysis
