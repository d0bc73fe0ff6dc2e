// Instructions that all threads of a warp execute together: T.ptx_mma, T.ptx_ldmatrix, T.mma_fill, T.mma_store, and the
// shuffles (T.tvm_warp_shuffle, T.tvm_warp_shuffle_up, T.tvm_warp_shuffle_down).
//
// Each thread is a lane of its warp, and passes its own registers. PTX defines which element of a matrix a register
// holds. For example, with g = lane // 4 and t = lane % 4, register r of the accumulators of mma.m16n8k* holds element
// (g + 8 * (r // 2), 2 * t + r % 2). `element_of_a`, `element_of_b` and `element_of_sums` are these maps.
//
// In a buffer of scope "warp", element (lane, register) is at lane * registers + register. The pass lower_warp_memory
// replaces such a buffer by registers of each thread.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "ir/fragments.h"
#include "ir/op.h"
#include "ir/stmt.h"

namespace tilewright {

inline constexpr int kWarpLanes = 32;

/// Consecutive registers, and the elements that they hold.
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

/// T.ptx_ldmatrix: loads 1, 2 or 4 matrices of 8 rows of 16 bytes. Lane 8 * j + i passes the address of row i of matrix
/// j. Lane l receives bytes [4 * (l % 4), 4 * (l % 4) + 4) of row l // 4. A transposed load is for 16-bit elements:
/// lane l receives elements l // 4 of rows 2 * (l % 4) and 2 * (l % 4) + 1.
struct WarpLoad {
  int64_t matrices = 0;
  bool is_transposed = false;
  Registers to;
  FragmentMemory from;
  Expr place;  ///< offset of the lane's row from `from`, in elements; with by_elements, the stride of rows
  /// ldmatrix cannot transpose bytes. Instead, each lane loads its elements of b[32, 16] one by one.
  bool by_elements = false;

  static std::optional<WarpLoad> of(const Expr& value);
  int64_t row_elements() const { return 16 / to.dtype.bytes(); }
};

/// T.mma_fill sets registers to zero. T.mma_store stores a 16 x 16 matrix: each lane stores the elements that it holds.
struct WarpCopy {
  bool is_fill = false;
  Registers registers;
  FragmentMemory to;
  Expr stride;

  static std::optional<WarpCopy> of(const Expr& value);
};

/// A shuffle: returns the value of another lane within the segment of `width` lanes. T.tvm_warp_shuffle_up and _down
/// return the lane's own value if the other lane is outside of the segment.
struct WarpShuffle {
  Intrinsic intrinsic = Intrinsic::kUnknown;
  Expr mask, value, lane;  ///< bit mask of the participating lanes; the value; the source lane or the distance to it
  int64_t width = 0;

  /// Nothing for widths that are no power of two up to 32, and for vectors.
  static std::optional<WarpShuffle> of(const Expr& value);
  /// Returns the lane whose value `lane` receives.
  int64_t source_of(int64_t lane, int64_t argument) const;
};

/// Whether the value depends on other lanes: a shuffle, or T.tvm_warp_activemask().
bool asks_lanes(const Expr& value);

bool is_warp_step(const Expr& value);
/// Positions of the arguments that are pointers to registers, each followed by the place of the first one.
std::vector<size_t> register_arguments(const Call& call);

/// Returns what one lane executes, for instructions that exchange no values between lanes; otherwise nothing.
std::optional<Stmt> as_statement(const Expr& value, const Expr& lane);
/// Returns the accesses of one lane to shared or global memory as loops; null if there are none.
Stmt memory_accesses(const Expr& value, const Expr& lane);

}  // namespace tilewright
