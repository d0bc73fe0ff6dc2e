// Products of tiles by the warps of GPUs, through fragments (wmma): what T.tvm_load_matrix_sync, T.tvm_fill_fragment,
// T.tvm_mma_sync and T.tvm_store_matrix_sync do.
//
// A fragment is a tile that the threads of a warp hold together, each a part of it. Which part is not specified, so a
// program sees no more than whole fragments. It therefore makes no difference to take every thread for one that holds
// all of a fragment and computes all of a product; only what is stored is stored once.
#pragma once

#include <map>
#include <optional>

#include "ir/op.h"
#include "ir/stmt.h"

namespace tilewright {

/// Of the product of an m x k by a k x n tile that fragments belong to.
struct FragmentShape {
  int64_t m = 0, n = 0, k = 0;
  bool is_col_major = false;  ///< in the memory that it was loaded from
  DataType dtype;

  /// 'a', 'b', or 'c' for sums.
  char operand = 'c';
  int64_t rows() const { return operand == 'b' ? k : m; }
  int64_t columns() const { return operand == 'a' ? k : n; }
};

bool is_fragment_step(const Expr& value);
bool is_fragment_scope(const std::string& scope);

/// What T.tvm_access_ptr (or a pointer) refers to.
struct FragmentMemory {
  Ref<Var> data;
  DataType dtype;
  Expr offset;  ///< in elements
};

class Fragments {
 public:
  explicit Fragments(const Stmt& body);

  /// Nothing where the program does not say, or says different things.
  std::optional<FragmentShape> shape_of(const NodeRef& data) const;
  static std::optional<FragmentMemory> memory_of(const NodeRef& pointer);

  /// The loops that say what a step means for one thread. A store happens where `stores` holds (null: always). Nothing
  /// where the shapes are not known.
  std::optional<Stmt> as_loops(const Call& step, const Expr& stores) const;

 private:
  std::map<const NodeBase*, FragmentShape> shapes_;
};

}  // namespace tilewright
