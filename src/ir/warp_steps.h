// Instructions that the threads of a warp execute together: T.ptx_mma, T.ptx_ldmatrix, and T.mma_fill and T.mma_store
// of what they hold; T.tvm_warp_shuffle and its like.
//
// Each thread, a lane of its warp, passes its own registers. Which element of a matrix a register holds is the map of
// PTX: with g = lane // 4 and t = lane % 4, register r of the sums of mma.m16n8k* holds element
// (g + 8 * (r // 2), 2 * t + r % 2). `element_of_a` and the others are these maps.
//
// In a buffer of scope "warp", element (lane, register) is at lane * registers + register. lower_warp_memory makes
// registers of a thread of it.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "ir/fragments.h"
#include "ir/op.h"
#include "ir/stmt.h"

namespace tilewright {

inline constexpr int kWarpLanes = 32;

/// Registers in a row, and the elements that they hold.
struct Registers {
  Ref<Var> data;
  DataType dtype;
  Expr place;  ///< location of the first row, in elements
  int64_t count = 0;
};

/// sums[16, 8] += a[16, k] * b[k, 8]
struct WarpProduct {
  int64_t k = 0;
  Registers a, b, sums;
  bool is_tf32 = false;  ///< whether only the upper 19 bits of float32 count
  bool is_saturating = false;

  static std::optional<WarpProduct> of(const Expr& value);
  std::pair<int64_t, int64_t> element_of_a(int64_t lane, int64_t r) const;  ///< row, k
  std::pair<int64_t, int64_t> element_of_b(int64_t lane, int64_t r) const;  ///< k, column
  static std::pair<int64_t, int64_t> element_of_sums(int64_t lane, int64_t r);
};

/// 1, 2 or 4 matrices of 8 rows of 16 bytes. Lane 8 * j + i says where row i of matrix j begins. Lane l gets the 4
/// bytes l % 4 of row l // 4; transposed, which is for units of 16 bits, the units l // 4 of rows 2 * (l % 4) and the
/// next.
struct WarpLoad {
  int64_t matrices = 0;
  bool is_transposed = false;
  Registers to;
  FragmentMemory from;
  Expr place;  ///< location of the lane's row, in elements from there; by_elements: the stride of rows
  /// ldmatrix cannot transpose bytes: each lane loads its elements of b[32, 16] one by one.
  bool by_elements = false;

  static std::optional<WarpLoad> of(const Expr& value);
  int64_t row_elements() const { return 16 / to.dtype.bytes(); }
};

/// T.mma_fill: zeros; T.mma_store: a matrix of 16 x 16 to memory, each lane what it has.
struct WarpCopy {
  bool is_fill = false;
  Registers registers;
  FragmentMemory to;
  Expr stride;

  static std::optional<WarpCopy> of(const Expr& value);
};

/// T.tvm_warp_shuffle and its like: the value of another lane of the segment of `width` lanes; of itself where
/// T.tvm_warp_shuffle_up or _down would leave the segment.
struct WarpShuffle {
  Intrinsic intrinsic = Intrinsic::kUnknown;
  Expr mask, value, lane;  ///< the lanes that take part, as bits; the value; the source, or how far away it is
  int64_t width = 0;

  /// Nothing for widths that are no power of two up to 32, and for vectors.
  static std::optional<WarpShuffle> of(const Expr& value);
  /// The lane whose value `lane` gets.
  int64_t source_of(int64_t lane, int64_t argument) const;
};

/// Whether the value is one of other lanes: a shuffle, or T.tvm_warp_activemask().
bool asks_lanes(const Expr& value);

bool is_warp_step(const Expr& value);
/// Positions of the arguments that are pointers to registers, each followed by the place of the first one.
std::vector<size_t> register_arguments(const Call& call);

/// Returns the work of one lane, for steps without exchange between lanes; otherwise nothing.
std::optional<Stmt> as_statement(const Expr& value, const Expr& lane);
/// Returns the accesses of one lane to shared or global memory as loops; null if there are none.
Stmt memory_accesses(const Expr& value, const Expr& lane);

}  // namespace tilewright
