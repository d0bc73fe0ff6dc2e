// Blocks that update elements by atomic steps alone, so that iterations that meet in an element need no order.
#pragma once

#include <map>

#include "ir/op.h"
#include "ir/stmt.h"

namespace tilewright::analysis {

/// What a block does to memory by atomic steps: the operation by the data variable of each buffer.
class AtomicUpdates : public Memo::Fact {
 public:
  /// A fact of the block alone, worked out once. None where it writes to other memory than its own in any other way,
  /// uses the result of a step, reads what it updates, or updates one buffer by several operations: then the order of
  /// its instances matters. So it does where the block has an init.
  static const AtomicUpdates& of(const Ref<Block>& block);

  bool empty() const { return operations_.empty(); }
  /// Both do the same to the buffer; they may come in any order.
  bool agree(const AtomicUpdates& other, const Ref<Buffer>& buffer) const;

 private:
  std::map<const NodeBase*, Intrinsic> operations_;
};

}  // namespace tilewright::analysis
