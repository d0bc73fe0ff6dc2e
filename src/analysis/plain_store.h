// The usual body of a block, "C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]": one store of scalars, from loads whose
// indices are arithmetic of variables. What is asked of such blocks is answered without a walk through visitors; all
// other blocks are left to the general analyses, which say the same of these.
#pragma once

#include <optional>
#include <vector>

#include "ir/stmt.h"

namespace tilewright::analysis {

struct PlainStore {
  const BufferStore* store = nullptr;
  std::vector<const BufferLoad*> loads;  ///< loads in the value, in the order of accesses.h
  std::vector<const NodeBase*> vars;     ///< variables that occur, with repetitions

  /// Returns nothing for a statement of another form. `part`: a store whose value may occur in this one's value, and is
  /// not visited again.
  static std::optional<PlainStore> of(const Stmt& stmt, const PlainStore* part = nullptr);
  /// Whether what is loaded or stored is just that region.
  static bool is_at(const std::vector<Expr>& indices, const Ref<BufferRegion>& region);
  /// The layout of the buffer mentions no variable.
  static bool is_plain(const Buffer& buffer);

  /// Adds the loads and variables of another expression. Returns false for expressions of another form.
  bool take(const Expr& e);

 private:
  bool take_indices(const Ref<Buffer>& buffer, const std::vector<Expr>& indices, const Expr& predicate);
  bool in_index_ = false;
  size_t vars_of_value_ = 0;          ///< number of the first `vars` that occur in the value
  const PlainStore* part_ = nullptr;  ///< while of() runs
};

/// A block without views, memory of its own and inner blocks whose body is such a store, and its init too, if any.
struct PlainBlock {
  const Block* block;
  PlainStore body;
  std::optional<PlainStore> init;

  /// A fact of the block alone, worked out once.
  static const std::optional<PlainBlock>& of(const Block& block);
  /// Carries what is known of `alike` over to a block that differs from it in its regions alone.
  static void carry_over(const Block& alike, const Block& block);
  /// Looks at a block in whose value that of another store may stand.
  static void look(const Block& block, const PlainStore& part);

 private:
  static const std::optional<PlainBlock>& known(const Block& block, const Block* alike, const PlainStore* part);
  static std::optional<PlainBlock> seen(const Block& block, const PlainStore* part);
};

}  // namespace tilewright::analysis
