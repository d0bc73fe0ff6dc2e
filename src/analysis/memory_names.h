// Other names of memory in a program: views, and pointers that lets name.
//
//   with T.block("S"):
//     X = T.match_buffer(C[0:16], (16,))        X is a name of the memory of C
//     p: T.handle("int32") = T.address_of(X[4])     and so is p
#pragma once

#include <utility>
#include <vector>

#include "ir/stmt.h"

namespace tilewright::analysis {

class MemoryNames {
 public:
  MemoryNames() = default;
  /// All names that the statement gives.
  explicit MemoryNames(const Stmt& body);
  /// The views that blocks in the statement make, without pointers.
  static MemoryNames of_views(const Stmt& body);

  /// Adds names that are in the scope of those so far.
  void add_views(const Block& block);
  void add_pointer(const LetStmt& let);

  bool empty() const { return sources_.empty(); }
  /// Whether lets name pointers.
  bool has_pointers() const { return has_pointers_; }
  /// The data variable behind which the memory is known first: two buffers with the same one may share elements.
  const NodeBase* memory(const NodeBase* data) const;
  const NodeBase* memory(const Ref<Buffer>& buffer) const { return memory(buffer->data.get()); }
  bool operator==(const MemoryNames&) const = default;

 private:
  /// Data variables of views, and pointers, with the data of their sources: outer ones first.
  std::vector<std::pair<const NodeBase*, const NodeBase*>> sources_;
  bool has_pointers_ = false;
};

}  // namespace tilewright::analysis
