// SpMV over SELL-16 as an expert writes it (Kreutzer et al., SIAM Journal on Scientific Computing 36, 2014): 16 rows of
// similar length are the lanes of vector accumulators, which gather from x.
//
//   for each slice s:  acc[0..16) = 0;  for p in starts[s]..starts[s + 1]:  acc += values[p][:] * x[indices[p][:]];
//   y[rows[16 s ...]] = acc
//
// Rows are sorted by descending length, and a slice is as long as its first row. Padding has the value 0 and the index
// 0, so a NaN in x[0] would spread: kernels for real use need a mask.
//
// benchmarks/spmv.py compiles this file twice: for AVX-512, and for AVX2 with -DVECTOR_BITS=256.
#include <algorithm>
#include <cstdint>

#include "vector_registers.h"

namespace {

constexpr int kRows = 16;

template <class T>
struct Sell {
  const int32_t* starts;   // of each slice, in columns of 16 elements
  const int32_t* indices;  // [columns][16]
  const T* values;
  const int32_t* rows;  // of y
  int64_t num_rows;
};

template <class Vector>
void slices(const Sell<typename Vector::Element>& a, const typename Vector::Element* x, typename Vector::Element* y,
            int64_t begin, int64_t end) {
  using T = typename Vector::Element;
  using Register = typename Vector::Register;
  constexpr int kLanes = sizeof(Register) / sizeof(T), kVectors = kRows / kLanes;
  for (int64_t s = begin; s < end; ++s) {
    Register sums[kVectors];
    for (Register& sum : sums) sum = Vector::zero();
    for (int64_t p = a.starts[s]; p < a.starts[s + 1]; ++p) {
      for (int v = 0; v < kVectors; ++v) {
        const int64_t at = p * kRows + v * kLanes;
        sums[v] = Vector::multiply_add(Vector::load(a.values + at), Vector::gather(x, a.indices + at), sums[v]);
      }
    }
    alignas(64) T lanes[kRows];
    for (int v = 0; v < kVectors; ++v) Vector::store(lanes + v * kLanes, sums[v]);
    const int64_t count = std::min<int64_t>(kRows, a.num_rows - s * kRows);
    for (int64_t l = 0; l < count; ++l) y[a.rows[s * kRows + l]] = lanes[l];
  }
}

template <class Vector>
void spmv(int threads, const Sell<typename Vector::Element>& a, const typename Vector::Element* x,
          typename Vector::Element* y) {
  const int64_t count = (a.num_rows + kRows - 1) / kRows;
  if (threads == 1) return slices<Vector>(a, x, y, 0, count);
  const int chunks = 8 * threads;
  auto begin = [&](int chunk) -> int64_t {
    const int64_t column = int64_t{a.starts[count]} * chunk / chunks;
    return chunk == chunks ? count : std::lower_bound(a.starts, a.starts + count, column) - a.starts;
  };
#pragma omp parallel for num_threads(threads) schedule(dynamic)
  for (int chunk = 0; chunk < chunks; ++chunk) slices<Vector>(a, x, y, begin(chunk), begin(chunk + 1));
}

}  // namespace

/// y = A @ x for A in SELL-16 with `num_rows` rows.
extern "C" void spmv_float32(int threads, int64_t num_rows, const int32_t* starts, const int32_t* indices,
                             const float* values, const int32_t* rows, const float* x, float* y) {
  spmv<Float32>(threads, {starts, indices, values, rows, num_rows}, x, y);
}

extern "C" void spmv_float64(int threads, int64_t num_rows, const int32_t* starts, const int32_t* indices,
                             const double* values, const int32_t* rows, const double* x, double* y) {
  spmv<Float64>(threads, {starts, indices, values, rows, num_rows}, x, y);
}
