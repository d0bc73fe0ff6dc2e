// A fast path for analyses of common blocks, whose body is one store of scalars from loads at arithmetic indices:
//
//   C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]         loads C, A, B; variables vi, vj, vk
//
// The loads and variables of such a block are collected once, without generic visitors. The search analyzes thousands
// of these blocks per second. The general analyses handle all other blocks, and give the same results for these.
#pragma once

#include <optional>
#include <vector>

#include "ir/stmt.h"

namespace tilewright::analysis {

struct PlainStore {
  const BufferStore* store = nullptr;
  std::vector<const BufferLoad*> loads;  ///< loads of the value, in the order of accesses.h
  std::vector<const NodeBase*> vars;     ///< variables that occur, with repetitions

  /// Returns nothing for a statement of another form. `part`: an analyzed store that was inlined into this one; its
  /// value is not visited again.
  static std::optional<PlainStore> of(const Stmt& stmt, const PlainStore* part = nullptr);
  /// Whether the region is the single element at these indices.
  static bool is_at(const std::vector<Expr>& indices, const Ref<BufferRegion>& region);
  /// Whether shape and offset of the buffer are constant, and it has no strides.
  static bool is_plain(const Buffer& buffer);

  /// Adds the loads and variables of an expression. Returns false if the expression is not of this form.
  bool collect(const Expr& e);

 private:
  bool collect_indices(const Ref<Buffer>& buffer, const std::vector<Expr>& indices, const Expr& predicate);
  bool in_index_ = false;
  size_t vars_of_value_ = 0;          ///< number of leading `vars` that belong to the value; the others are of indices
  const PlainStore* part_ = nullptr;  ///< while of() runs
};

/// A block whose body is such a store, and its init too, if it has one. It allocates no buffers and has no views.
struct PlainBlock {
  const Block* block;
  PlainStore body;
  std::optional<PlainStore> init;

  /// Returns the analysis of the block, which is computed once; nothing for a block of another form.
  static const std::optional<PlainBlock>& of(const Block& block);
  /// Reuses the analysis of `alike` for a block that differs from it only in its declared regions.
  static void carry_over(const Block& alike, const Block& block);
  /// Analyzes a block into which the store `part` was inlined.
  static void analyze_inlined(const Block& block, const PlainStore& part);

 private:
  static const std::optional<PlainBlock>& known(const Block& block, const Block* alike, const PlainStore* part);
  static std::optional<PlainBlock> analyze(const Block& block, const PlainStore* part);
};

}  // namespace tilewright::analysis
