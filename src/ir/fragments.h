// Semantics of warp matrix instructions (wmma): T.tvm_load_matrix_sync, T.tvm_fill_fragment, T.tvm_mma_sync and
// T.tvm_store_matrix_sync.
//
// The threads of a warp hold a fragment together. PTX does not specify which thread holds which elements, so a program
// cannot observe it. These semantics therefore let every thread hold the whole fragment; only stores to memory are done
// once per warp. The product is computed by the thread that stores it, or by every thread where the program accesses
// elements of fragments by itself.
#pragma once

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "ir/op.h"
#include "ir/stmt.h"

namespace tilewright {

/// The shape m x n x k of the product that a fragment is an operand or result of, and the fragment's role in it.
struct FragmentShape {
  int64_t m = 0, n = 0, k = 0;
  bool is_col_major = false;  ///< the memory layout that the fragment was loaded from
  DataType dtype;

  /// 'a' or 'b'; 'c' for accumulators.
  char operand = 'c';
  int64_t rows() const { return operand == 'b' ? k : m; }
  int64_t columns() const { return operand == 'a' ? k : n; }
};

/// A flat view of `extent` elements of existing memory.
Ref<Buffer> flat_view(const Ref<Var>& data, DataType dtype, const Expr& extent);

bool is_fragment_step(const Expr& value);
bool is_fragment_scope(const std::string& scope);
/// Positions of the arguments that are fragments, and of those that are their numbers in the buffer.
std::vector<std::pair<size_t, size_t>> fragment_arguments(const Call& step);

/// The memory that T.tvm_access_ptr refers to.
struct FragmentMemory {
  Ref<Var> data;
  DataType dtype;
  Expr offset;  ///< in elements
};

class Fragments {
 public:
  explicit Fragments(const Stmt& body);

  /// The shape of a fragment; nothing if the program does not determine it, or contradicts itself.
  std::optional<FragmentShape> shape_of(const NodeRef& data) const;
  static std::optional<FragmentMemory> memory_of(const NodeRef& pointer);

  /// The loops that a step is equivalent to for one thread; nothing if shapes are unknown. A store to memory, and a
  /// product of which the program sees only what is stored, are executed if `stores` holds (null: always).
  std::optional<Stmt> as_loops(const Call& step, const Expr& stores) const;

 private:
  std::map<const NodeBase*, FragmentShape> shapes_;
  bool has_element_accesses_ = false;  ///< by other nodes than steps, which any thread may execute
};

}  // namespace tilewright
