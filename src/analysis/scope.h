// The blocks directly below a block, and how they depend on one another through buffers.
//
//   const Scope& scope = Scope::of(tree, at);
//   for (int child : scope.consumers(scope.child(block.id.value))) ...
//
// Computed once per block, from declared accesses. Buffers with the same data variable count as one buffer, as do a
// buffer and its views in the block. Within a tree, views in enclosing blocks and pointers that lets name count, too
// (memory_names.h). Dependences are between whole buffers; analysis/cover.h compares regions.
#pragma once

#include <string>
#include <vector>

#include "analysis/tree.h"
#include "ir/stmt.h"

namespace tilewright::analysis {

enum class DependenceKind {
  kFlow,    ///< dst reads what src writes
  kOutput,  ///< dst writes what src writes
  kAnti,    ///< dst writes what src reads
};

struct Dependence {
  int src, dst;  ///< positions in Scope::children()
  DependenceKind kind;
  const NodeBase* data;  ///< the data variable of the buffer, of the source where it is a view
};

class Scope : public Memo::Fact {
 public:
  static const Scope& of(const Tree& tree, int block);
  /// The scope of a block that no other names of its memory stand around.
  static const Scope& of(const Block& block);
  /// The scope of what a change has made of another block: statements that did not change are not searched
  /// again.
  static const Scope& of(const Block& block, const Block& before);

  /// Children in program order. They live as long as the block.
  const std::vector<const BlockRealize*>& children() const { return children_; }
  /// Returns all dependences, by dst, then src, then in the order of the writes and reads that src declares.
  std::vector<Dependence> dependences() const;
  /// Position among the children by identity; -1 if it is not a direct child.
  int child(uint64_t identity) const;
  /// Where the child is in the tree of its function.
  int position(const Tree& tree, int child) const { return tree.block(children_[child]->block->id.value); }

  /// Children that src's writes flow to, and those that dst's reads come from, in program order.
  std::vector<int> consumers(int src) const;
  std::vector<int> producers(int dst) const;
  /// Children that write the buffer.
  std::vector<int> writers(const Ref<Buffer>& buffer) const;
  std::vector<int> readers(const Ref<Buffer>& buffer) const;
  /// A child that writes a buffer which the block itself does not allocate.
  bool is_output(int child) const;

  /// Returns the first statement of the block's body other than loops and blocks: a store, a call, or a read of a
  /// buffer in loop bounds and conditions. Null if there is none. Borrowed.
  const NodeBase* bare_statement() const { return bare_; }
  /// Whether these write memory that the block, its conditions and its axes read, or use memory that it writes: then
  /// neither it nor its neighbors may pass them. `also_reads`: or read memory that these read.
  bool bare_statements_touch(const BlockRealize& child, bool also_reads = true) const;

 private:
  class InSight;
  static const Scope& known(const Block& block, const Block* before);
  static Scope made(const Block& block, const Block* before, MemoryNames names);
  /// Adds the children and accesses of the next statement of the body.
  void add(const Stmt& stmt);
  /// Adds the statements [first, last) of another scope.
  void add(const Scope& other, size_t first, size_t last);
  /// The data variable of the buffer, or of what it is a view of.
  const NodeBase* memory(const Ref<Buffer>& buffer) const { return names_.memory(buffer); }
  bool touches(const std::vector<Ref<BufferRegion>>& regions, const NodeBase* data) const;
  void note_bare_uses(const Stmt& body);
  /// The children that write, or read, the memory.
  std::vector<int> users(const NodeBase* data, bool write) const;

  void note_use(const Ref<Buffer>& buffer, int child, bool write) {
    used_.push_back(memory(buffer));
    users_.push_back(child * 2 + (write ? 1 : 0));
  }

  const Block* block_ = nullptr;
  std::vector<const BlockRealize*> children_;
  /// Memory that the children touch, in the order of the children, and beside it the user: twice the number of the
  /// child, plus 1 for a write. A step looks up few buffers, so a linear search is cheaper than sorting by memory.
  std::vector<const NodeBase*> used_;
  std::vector<int> users_;
  /// For each statement of the body, the end of the children and uses of the statements up to it.
  struct Ends {
    uint32_t children, uses;
  };
  std::vector<Ends> ends_;
  MemoryNames names_;
  const NodeBase* bare_ = nullptr;
  std::vector<const NodeBase*> bare_reads_, bare_writes_;  ///< data variables
  bool bare_unknown_ = false;                              ///< calls, which may use anything
};

/// The first of such statements in `stmt`; blocks are not entered.
const NodeBase* bare_statement_in(const Stmt& stmt);

}  // namespace tilewright::analysis
