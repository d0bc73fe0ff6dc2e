// SpMM over CSR as an expert writes it: the columns of one row of the result are vector accumulators.
//
//   for each row i:  acc[0..K) = 0;  for p in indptr[i]..indptr[i + 1]:  acc += values[p] * B[indices[p], :]
//                    C[i] = acc
//
// A panel of columns that does not fit the registers is computed in several passes over the row. While row indices[p]
// of B is multiplied, row indices[p + distance] is prefetched, across the ends of rows. Several threads take chunks of
// rows with about as many nonzeros each.
//
// benchmarks/spmm.py compiles this file twice: for AVX-512, and for AVX2 with -DVECTOR_BITS=256.
#include <algorithm>
#include <cstdint>

#include "vector_registers.h"

namespace {

template <class T>
struct Csr {
  const int32_t* indptr;
  const int32_t* indices;
  const T* values;
  int32_t nonzeros;
};

template <class Vector, int kColumns, int kDistance>
void rows(const Csr<typename Vector::Element>& a, const typename Vector::Element* b, typename Vector::Element* c,
          int64_t begin, int64_t end) {
  using T = typename Vector::Element;
  using Register = typename Vector::Register;
  constexpr int kLanes = sizeof(Register) / sizeof(T);
  constexpr int kPanel = std::min(kColumns, kLanes * kRegisters / 2);
  constexpr int kAccumulators = kPanel / kLanes;
  constexpr int kLine = 64 / sizeof(T);
  for (int64_t i = begin; i < end; ++i) {
    for (int panel = 0; panel < kColumns; panel += kPanel) {
      Register sums[kAccumulators];
#pragma GCC unroll 16
      for (int j = 0; j < kAccumulators; ++j) sums[j] = Vector::zero();
      for (int32_t p = a.indptr[i]; p < a.indptr[i + 1]; ++p) {
        if constexpr (kDistance > 0) {
          const int32_t later = std::min(p + kDistance, a.nonzeros - 1);
          const T* ahead = b + int64_t{a.indices[later]} * kColumns + panel;
#pragma GCC unroll 16
          for (int j = 0; j < kPanel; j += kLine) _mm_prefetch(reinterpret_cast<const char*>(ahead + j), _MM_HINT_T0);
        }
        const Register value = Vector::all(a.values[p]);
        const T* row = b + int64_t{a.indices[p]} * kColumns + panel;
#pragma GCC unroll 16
        for (int j = 0; j < kAccumulators; ++j) {
          sums[j] = Vector::multiply_add(value, Vector::load(row + j * kLanes), sums[j]);
        }
      }
#pragma GCC unroll 16
      for (int j = 0; j < kAccumulators; ++j) Vector::store(c + i * kColumns + panel + j * kLanes, sums[j]);
    }
  }
}

template <class Vector, int kColumns, int kDistance>
void all_rows(int threads, int64_t count, const Csr<typename Vector::Element>& a, const typename Vector::Element* b,
              typename Vector::Element* c) {
  if (threads == 1) return rows<Vector, kColumns, kDistance>(a, b, c, 0, count);
  const int chunks = 8 * threads;
  auto begin = [&](int chunk) -> int64_t {
    const int64_t nonzeros = int64_t{a.nonzeros} * chunk / chunks;
    return chunk == chunks ? count : std::lower_bound(a.indptr, a.indptr + count, nonzeros) - a.indptr;
  };
#pragma omp parallel for num_threads(threads) schedule(dynamic)
  for (int chunk = 0; chunk < chunks; ++chunk)
    rows<Vector, kColumns, kDistance>(a, b, c, begin(chunk), begin(chunk + 1));
}

template <class Vector, int kColumns>
int at_distance(int distance, int threads, int64_t count, const Csr<typename Vector::Element>& a,
                const typename Vector::Element* b, typename Vector::Element* c) {
  switch (distance) {
    case 0:
      return all_rows<Vector, kColumns, 0>(threads, count, a, b, c), 0;
    case 4:
      return all_rows<Vector, kColumns, 4>(threads, count, a, b, c), 0;
    case 8:
      return all_rows<Vector, kColumns, 8>(threads, count, a, b, c), 0;
    case 16:
      return all_rows<Vector, kColumns, 16>(threads, count, a, b, c), 0;
    default:
      return 1;
  }
}

template <class Vector>
int spmm(int columns, int distance, int threads, int64_t count, const Csr<typename Vector::Element>& a,
         const typename Vector::Element* b, typename Vector::Element* c) {
  if (columns == 32) return at_distance<Vector, 32>(distance, threads, count, a, b, c);
  if (columns == 128) return at_distance<Vector, 128>(distance, threads, count, a, b, c);
  return 1;
}

}  // namespace

/// C = A @ B for A in CSR with `rows` rows, and B and C in row-major order with `columns` columns. Returns 1 where
/// there is no kernel for that many columns or that distance.
extern "C" int spmm_float32(int columns, int distance, int threads, int64_t rows, const int32_t* indptr,
                            const int32_t* indices, const float* values, const float* b, float* c) {
  return spmm<Float32>(columns, distance, threads, rows, {indptr, indices, values, indptr[rows]}, b, c);
}

extern "C" int spmm_float64(int columns, int distance, int threads, int64_t rows, const int32_t* indptr,
                            const int32_t* indices, const double* values, const double* b, double* c) {
  return spmm<Float64>(columns, distance, threads, rows, {indptr, indices, values, indptr[rows]}, b, c);
}
