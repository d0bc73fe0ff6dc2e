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
#include <immintrin.h>

#include <algorithm>
#include <cstdint>

namespace {

constexpr int kRows = 16;

#if VECTOR_BITS == 512
struct Float32 {
  using Element = float;
  using Register = __m512;
  static Register zero() { return _mm512_setzero_ps(); }
  static Register load(const float* p) { return _mm512_loadu_ps(p); }
  static Register gather(const float* x, const int32_t* at) {
    return _mm512_i32gather_ps(_mm512_loadu_si512(at), x, sizeof(float));
  }
  static Register multiply_add(Register a, Register b, Register c) { return _mm512_fmadd_ps(a, b, c); }
  static void store(float* p, Register x) { _mm512_storeu_ps(p, x); }
};
struct Float64 {
  using Element = double;
  using Register = __m512d;
  static Register zero() { return _mm512_setzero_pd(); }
  static Register load(const double* p) { return _mm512_loadu_pd(p); }
  static Register gather(const double* x, const int32_t* at) {
    return _mm512_i32gather_pd(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(at)), x, sizeof(double));
  }
  static Register multiply_add(Register a, Register b, Register c) { return _mm512_fmadd_pd(a, b, c); }
  static void store(double* p, Register x) { _mm512_storeu_pd(p, x); }
};
#else
struct Float32 {
  using Element = float;
  using Register = __m256;
  static Register zero() { return _mm256_setzero_ps(); }
  static Register load(const float* p) { return _mm256_loadu_ps(p); }
  static Register gather(const float* x, const int32_t* at) {
    return _mm256_i32gather_ps(x, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at)), sizeof(float));
  }
  static Register multiply_add(Register a, Register b, Register c) { return _mm256_fmadd_ps(a, b, c); }
  static void store(float* p, Register x) { _mm256_storeu_ps(p, x); }
};
struct Float64 {
  using Element = double;
  using Register = __m256d;
  static Register zero() { return _mm256_setzero_pd(); }
  static Register load(const double* p) { return _mm256_loadu_pd(p); }
  static Register gather(const double* x, const int32_t* at) {
    return _mm256_i32gather_pd(x, _mm_loadu_si128(reinterpret_cast<const __m128i*>(at)), sizeof(double));
  }
  static Register multiply_add(Register a, Register b, Register c) { return _mm256_fmadd_pd(a, b, c); }
  static void store(double* p, Register x) { _mm256_storeu_pd(p, x); }
};
#endif

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
