/* Kernels written by hand in the form in which compiled ones are exported, for the tests of calling and loading. */
#define _POSIX_C_SOURCE 200809L

#include <string.h>
#include <time.h>

#include "runtime/abi.h"

#define CONSTANT(n) {n, TW_DIM_CONSTANT, 0}
#define BIND(slot) {slot, TW_DIM_BIND, 0}
#define SAME(slot) {slot, TW_DIM_SYMBOL, 0}
#define ANY {0, TW_DIM_ANY, 0}
#define SCALAR(name, code, bits) {name, NULL, NULL, CONSTANT(0), 0, TW_PARAM_SCALAR, {code, bits, 1}, 0, 0, 0, -1}
#define TENSOR(name, code, bits, ndim, shape, strides, flags, alignment) \
  {name, shape, strides, CONSTANT(0), 0, TW_PARAM_TENSOR, {code, bits, 1}, ndim, flags, alignment, -1}
#define SIGNATURE(name, params, symbols, tensors, scalars, num_symbols) \
  {TW_ABI_VERSION, kDLCPU, name, params, symbols, "", {0, 0}, tensors + scalars, tensors, scalars, num_symbols}

#define ENTER(signature, num_tensors, num_symbols)                                   \
  void* data[num_tensors + 1];                                                       \
  int64_t symbols[num_symbols + 1];                                                  \
  if (!ctx) ctx = tw_default_ctx();                                                  \
  int32_t refused = tw_check_args(ctx, &signature, tensors, scalars, symbols, data); \
  if (refused) return refused

/* add(A: float32 (n, m), B: float32 (n, m), C: float32 (n, m) written) */
static const tw_symbol kNM[] = {{"n", 32, 0}, {"m", 64, 0}};
static const tw_dim kFirst[] = {BIND(0), BIND(1)}, kAgain[] = {SAME(0), SAME(1)};
static const tw_param kAddParams[] = {TENSOR("A", kDLFloat, 32, 2, kFirst, NULL, 0, 0),
                                      TENSOR("B", kDLFloat, 32, 2, kAgain, NULL, 0, 0),
                                      TENSOR("C", kDLFloat, 32, 2, kAgain, NULL, TW_PARAM_WRITTEN, 0)};
static const tw_signature kAdd = SIGNATURE("add", kAddParams, kNM, 3, 0, 2);
static int32_t add(tw_ctx* ctx, const DLTensor* const* tensors, const tw_scalar* scalars) {
  ENTER(kAdd, 3, 2);
  const float *a = data[0], *b = data[1];
  float* c = data[2];
  for (int64_t i = 0; i < symbols[0] * symbols[1]; ++i) c[i] = a[i] + b[i];
  return TW_OK;
}

/* total(A: float32 (n, m) with strides (s, t), C: float32 (1,) written) */
static const tw_symbol kNMST[] = {{"n", 64, 0}, {"m", 64, 0}, {"s", 64, 0}, {"t", 64, 0}};
static const tw_dim kSteps[] = {BIND(2), BIND(3)}, kOne[] = {CONSTANT(1)};
static const tw_param kTotalParams[] = {TENSOR("A", kDLFloat, 32, 2, kFirst, kSteps, 0, 0),
                                        TENSOR("C", kDLFloat, 32, 1, kOne, NULL, TW_PARAM_WRITTEN, 0)};
static const tw_signature kTotal = SIGNATURE("total", kTotalParams, kNMST, 2, 0, 4);
static int32_t total(tw_ctx* ctx, const DLTensor* const* tensors, const tw_scalar* scalars) {
  ENTER(kTotal, 2, 4);
  const float* a = data[0];
  float sum = 0;
  for (int64_t i = 0; i < symbols[0]; ++i) {
    for (int64_t j = 0; j < symbols[1]; ++j) sum += a[i * symbols[2] + j * symbols[3]] * (float)(10 * i + j);
  }
  *(float*)data[1] = sum;
  return TW_OK;
}

/* One copy kernel per element type: copy_float16(A: float16 (n,), C: float16 (n,) written), ... */
static const tw_symbol kN[] = {{"n", 64, 0}};
static const tw_dim kLength[] = {BIND(0)}, kSameLength[] = {SAME(0)};
#define COPY(name, code, bits)                                                                             \
  static const tw_param k_##name[] = {TENSOR("A", code, bits, 1, kLength, NULL, 0, 0),                     \
                                      TENSOR("C", code, bits, 1, kSameLength, NULL, TW_PARAM_WRITTEN, 0)}; \
  static const tw_signature s_##name = SIGNATURE("copy_" #name, k_##name, kN, 2, 0, 1);                    \
  static int32_t copy_##name(tw_ctx* ctx, const DLTensor* const* tensors, const tw_scalar* scalars) {      \
    ENTER(s_##name, 2, 1);                                                                                 \
    memcpy(data[1], data[0], (size_t)(symbols[0] * ((bits + 7) / 8)));                                     \
    return TW_OK;                                                                                          \
  }
#define EACH_TYPE(f)                                                                                               \
  f(bool, kDLBool, 8) f(int8, kDLInt, 8) f(int16, kDLInt, 16) f(int32, kDLInt, 32) f(int64, kDLInt, 64)            \
      f(uint8, kDLUInt, 8) f(uint16, kDLUInt, 16) f(uint32, kDLUInt, 32) f(uint64, kDLUInt, 64)                    \
          f(float16, kDLFloat, 16) f(float32, kDLFloat, 32) f(float64, kDLFloat, 64) f(bfloat16, kDLBfloat, 16)    \
              f(complex64, kDLComplex, 64) f(float8_e4m3fn, kDLFloat8_e4m3fn, 8) f(float8_e5m2, kDLFloat8_e5m2, 8) \
                  f(float4_e2m1fn, kDLFloat4_e2m1fn, 4) f(int4, kDLInt, 4)
EACH_TYPE(COPY)

/* echo(b: bool, i8: int8, ..., h: handle, I: int64 (8,) written, F: float64 (4,) written): what arrived. */
static const tw_dim kEight[] = {CONSTANT(8)}, kFour[] = {CONSTANT(4)};
static const tw_param kEchoParams[] = {SCALAR("b", kDLBool, 8),
                                       SCALAR("i8", kDLInt, 8),
                                       SCALAR("u8", kDLUInt, 8),
                                       SCALAR("i32", kDLInt, 32),
                                       SCALAR("u32", kDLUInt, 32),
                                       SCALAR("i64", kDLInt, 64),
                                       SCALAR("u64", kDLUInt, 64),
                                       SCALAR("h", kDLOpaqueHandle, 64),
                                       SCALAR("f16", kDLFloat, 16),
                                       SCALAR("bf16", kDLBfloat, 16),
                                       SCALAR("f32", kDLFloat, 32),
                                       SCALAR("f64", kDLFloat, 64),
                                       TENSOR("I", kDLInt, 64, 1, kEight, NULL, TW_PARAM_WRITTEN, 0),
                                       TENSOR("F", kDLFloat, 64, 1, kFour, NULL, TW_PARAM_WRITTEN, 0)};
static const tw_signature kEcho = SIGNATURE("echo", kEchoParams, NULL, 2, 12, 0);
static int32_t echo(tw_ctx* ctx, const DLTensor* const* tensors, const tw_scalar* scalars) {
  ENTER(kEcho, 2, 0);
  for (int i = 0; i < 8; ++i) ((int64_t*)data[0])[i] = scalars[i].i;
  for (int i = 0; i < 4; ++i) ((double*)data[1])[i] = scalars[8 + i].f;
  return TW_OK;
}

/* strict(A: float32 (4,) aligned to 64, C: float32 (4,) written) */
static const tw_param kStrictParams[] = {TENSOR("A", kDLFloat, 32, 1, kFour, NULL, 0, 64),
                                         TENSOR("C", kDLFloat, 32, 1, kFour, NULL, TW_PARAM_WRITTEN, 0)};
static const tw_signature kStrict = SIGNATURE("strict", kStrictParams, NULL, 2, 0, 0);
static int32_t strict(tw_ctx* ctx, const DLTensor* const* tensors, const tw_scalar* scalars) {
  ENTER(kStrict, 2, 0);
  memcpy(data[1], data[0], 16);
  return TW_OK;
}

/* fail(code: int32): reports that code. */
static const tw_param kFailParams[] = {SCALAR("code", kDLInt, 32)};
static const tw_signature kFail = SIGNATURE("fail", kFailParams, NULL, 0, 1, 0);
static int32_t fail(tw_ctx* ctx, const DLTensor* const* tensors, const tw_scalar* scalars) {
  ENTER(kFail, 0, 0);
  return tw_report(ctx, (int32_t)scalars[0].i, "what went wrong" TW_HINT_PREFIX "what to do");
}

/* linger(milliseconds: int32) */
static const tw_param kLingerParams[] = {SCALAR("milliseconds", kDLInt, 32)};
static const tw_signature kLinger = SIGNATURE("linger", kLingerParams, NULL, 0, 1, 0);
static int32_t linger(tw_ctx* ctx, const DLTensor* const* tensors, const tw_scalar* scalars) {
  ENTER(kLinger, 0, 0);
  struct timespec time = {scalars[0].i / 1000, scalars[0].i % 1000 * 1000000};
  nanosleep(&time, NULL);
  return TW_OK;
}

/* fill(A: int64 (n,) written): in parallel, element i becomes i. limit(A: int64 (1,) written): the context's limit. */
static const tw_param kFillParams[] = {TENSOR("A", kDLInt, 64, 1, kLength, NULL, TW_PARAM_WRITTEN, 0)};
static const tw_signature kFill = SIGNATURE("fill", kFillParams, kN, 1, 0, 1);
static int32_t fill_range(tw_ctx* ctx, int64_t begin, int64_t end, void* closure) {
  int64_t* scratch = ctx->workspace_acquire(ctx, (end - begin) * 8);
  if (!scratch) return TW_ERROR_MEMORY;
  for (int64_t i = begin; i < end; ++i) scratch[i - begin] = i;
  memcpy((int64_t*)closure + begin, scratch, (size_t)(end - begin) * 8);
  ctx->workspace_release(ctx, scratch);
  return TW_OK;
}
static int32_t fill(tw_ctx* ctx, const DLTensor* const* tensors, const tw_scalar* scalars) {
  ENTER(kFill, 1, 1);
  return ctx->parallel_for(ctx, fill_range, data[0], symbols[0], 1);
}
static const tw_param kLimitParams[] = {TENSOR("A", kDLInt, 64, 1, kOne, NULL, TW_PARAM_WRITTEN, 0)};
static const tw_signature kLimit = SIGNATURE("limit", kLimitParams, NULL, 1, 0, 0);
static int32_t limit(tw_ctx* ctx, const DLTensor* const* tensors, const tw_scalar* scalars) {
  ENTER(kLimit, 1, 0);
  *(int64_t*)data[0] = ctx->max_threads;
  return TW_OK;
}

/* first_of_twelve(T0: float32 (), ..., T11: float32 () written): more than the usual number of arguments. */
#define POINT(name, flags) TENSOR(name, kDLFloat, 32, 0, NULL, NULL, flags, 0)
static const tw_param kTwelveParams[] = {
    POINT("T0", 0), POINT("T1", 0), POINT("T2", 0), POINT("T3", 0), POINT("T4", 0),  POINT("T5", 0),
    POINT("T6", 0), POINT("T7", 0), POINT("T8", 0), POINT("T9", 0), POINT("T10", 0), POINT("T11", TW_PARAM_WRITTEN)};
static const tw_signature kTwelve = SIGNATURE("first_of_twelve", kTwelveParams, NULL, 12, 0, 0);
static int32_t first_of_twelve(tw_ctx* ctx, const DLTensor* const* tensors, const tw_scalar* scalars) {
  ENTER(kTwelve, 12, 0);
  *(float*)data[11] = *(const float*)data[0];
  return TW_OK;
}

/* ten(A: float32 (1, 1, ..., n), C: float32 (n,) written): more than the usual number of dimensions. */
static const tw_dim kTenShape[] = {CONSTANT(1), CONSTANT(1), CONSTANT(1), CONSTANT(1), CONSTANT(1),
                                   CONSTANT(1), CONSTANT(1), CONSTANT(1), CONSTANT(1), BIND(0)};
static const tw_param kTenParams[] = {TENSOR("A", kDLFloat, 32, 10, kTenShape, NULL, 0, 0),
                                      TENSOR("C", kDLFloat, 32, 1, kSameLength, NULL, TW_PARAM_WRITTEN, 0)};
static const tw_signature kTen = SIGNATURE("ten", kTenParams, kN, 2, 0, 1);
static int32_t ten(tw_ctx* ctx, const DLTensor* const* tensors, const tw_scalar* scalars) {
  ENTER(kTen, 2, 1);
  memcpy(data[1], data[0], (size_t)symbols[0] * 4);
  return TW_OK;
}

/* deaf(): asks once whether to go on, and does so whatever the answer is. */
static const tw_signature kDeaf = SIGNATURE("deaf", NULL, NULL, 0, 0, 0);
static int32_t deaf(tw_ctx* ctx, const DLTensor* const* tensors, const tw_scalar* scalars) {
  if (!ctx) ctx = tw_default_ctx();
  tw_interrupted(ctx);
  struct timespec moment = {0, 10000000};
  for (;;) nanosleep(&moment, NULL);
  return TW_OK;
}

#ifdef DAMAGED
static const tw_signature kDamaged = SIGNATURE("damaged", kFillParams, kN, 0, 1, 1);
#endif
#ifndef VERSION
#define VERSION TW_ABI_VERSION
#endif

static const tw_export kExports[] = {
#ifdef DAMAGED
    {"damaged", fill, &kDamaged},
#endif
    {"add", add, &kAdd},
    {"total", total, &kTotal},
    {"echo", echo, &kEcho},
    {"strict", strict, &kStrict},
    {"fail", fail, &kFail},
    {"linger", linger, &kLinger},
    {"deaf", deaf, &kDeaf},
    {"fill", fill, &kFill},
    {"limit", limit, &kLimit},
    {"first_of_twelve", first_of_twelve, &kTwelve},
    {"ten", ten, &kTen},
#define EXPORT(name, code, bits) {"copy_" #name, copy_##name, &s_##name},
    EACH_TYPE(EXPORT)};
#ifdef EMPTY
#define tilewright_module something_else
#endif
__attribute__((visibility("default")))
const tw_module tilewright_module = {VERSION, sizeof(kExports) / sizeof(kExports[0]), kExports, "written by hand"};
