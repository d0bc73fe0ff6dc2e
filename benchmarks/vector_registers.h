// Vector registers of AVX-512, or of AVX2 with -DVECTOR_BITS=256: what the kernels in intrinsics are written over.
#ifndef TILEWRIGHT_BENCHMARKS_VECTOR_REGISTERS_H_
#define TILEWRIGHT_BENCHMARKS_VECTOR_REGISTERS_H_

#include <immintrin.h>

#include <cstdint>

#if VECTOR_BITS == 512
constexpr int kRegisters = 32;
struct Float32 {
  using Element = float;
  using Register = __m512;
  static Register zero() { return _mm512_setzero_ps(); }
  static Register all(float x) { return _mm512_set1_ps(x); }
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
  static Register all(double x) { return _mm512_set1_pd(x); }
  static Register load(const double* p) { return _mm512_loadu_pd(p); }
  static Register gather(const double* x, const int32_t* at) {
    return _mm512_i32gather_pd(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(at)), x, sizeof(double));
  }
  static Register multiply_add(Register a, Register b, Register c) { return _mm512_fmadd_pd(a, b, c); }
  static void store(double* p, Register x) { _mm512_storeu_pd(p, x); }
};
#else
constexpr int kRegisters = 16;
struct Float32 {
  using Element = float;
  using Register = __m256;
  static Register zero() { return _mm256_setzero_ps(); }
  static Register all(float x) { return _mm256_set1_ps(x); }
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
  static Register all(double x) { return _mm256_set1_pd(x); }
  static Register load(const double* p) { return _mm256_loadu_pd(p); }
  static Register gather(const double* x, const int32_t* at) {
    return _mm256_i32gather_pd(x, _mm_loadu_si128(reinterpret_cast<const __m128i*>(at)), sizeof(double));
  }
  static Register multiply_add(Register a, Register b, Register c) { return _mm256_fmadd_pd(a, b, c); }
  static void store(double* p, Register x) { _mm256_storeu_pd(p, x); }
};
#endif

#endif  // TILEWRIGHT_BENCHMARKS_VECTOR_REGISTERS_H_
