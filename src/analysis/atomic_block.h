// Blocks that update elements by atomic steps alone, so that iterations that meet in an element need no order.
#pragma once

#include <map>

#include "ir/op.h"
#include "ir/stmt.h"

namespace tilewright::analysis {

/// What a block does to memory by atomic steps: the operation by the data variable of each buffer.
class AtomicUpdates : public Memo::Fact {
 public:
  /// A fact of the block and of those in it, worked out once. None where they write to other memory than their own in
  /// any other way, use the result of a step, read what they update, or update one buffer by several operations: then
  /// the order of its instances matters. So it does where the block has an init.
  static const AtomicUpdates& of(const Ref<Block>& block);

  bool empty() const { return operations_.empty(); }
  /// Both do the same to the buffer; they may come in any order.
  bool agree(const AtomicUpdates& other, const Ref<Buffer>& buffer) const;

 private:
  std::map<const NodeBase*, Intrinsic> operations_;
};

}  // namespace tilewright::analysis
