// Other names of memory in a program: views, and pointers that lets name.
//
//   with T.block("S"):
//     X = T.match_buffer(C[0:16], (16,))        X is a name of the memory of C
//     p: T.handle("int32") = T.address_of(X[4])     and so is p
#pragma once

#include <utility>
#include <vector>

#include "analysis/tree.h"

namespace tilewright::analysis {

/// A fact of the root block.
class MemoryNames : public Memo::Fact {
 public:
  /// The data variables of views, and pointers, beside the data of their sources: outer ones first.
  using Sources = std::vector<std::pair<const NodeBase*, const NodeBase*>>;

  static const MemoryNames& of(const Tree& tree);

  bool empty() const { return sources_.empty(); }
  /// Whether lets name pointers.
  bool has_pointers() const { return has_pointers_; }
  const Sources& sources() const { return sources_; }
  /// The data variable behind which the memory is known first.
  const NodeBase* memory(const NodeBase* data) const;

 private:
  explicit MemoryNames(const Tree& tree);

  Sources sources_;
  bool has_pointers_ = false;
};

}  // namespace tilewright::analysis
