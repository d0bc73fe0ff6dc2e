#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "runtime/signature_for_test.h"

namespace tilewright::runtime {
namespace {

struct Outcome {
  int32_t code;
  std::string message;
  std::vector<int64_t> symbols;
  std::vector<void*> data;
};

Outcome check(Sig& sig, std::vector<const Tensor*> tensors, std::vector<tw_scalar> scalars = {}) {
  const tw_signature* signature = sig.get();
  char defect[200] = "";
  EXPECT_EQ(tw_verify_signature(signature, defect, sizeof defect), TW_OK) << defect;
  std::vector<const DLTensor*> views;
  for (auto* tensor : tensors) views.push_back(tensor ? &tensor->view : nullptr);
  std::vector<int64_t> symbols(signature->num_symbols, -77);
  std::vector<void*> data(views.size());
  tw_ctx* ctx = tw_default_ctx();
  int32_t code = tw_check_args(ctx, signature, views.data(), scalars.data(), symbols.data(), data.data());
  EXPECT_EQ(ctx->error_code, code);
  return {code, code ? tw_last_error() : "", symbols, data};
}

constexpr uintptr_t kA = 0x10000, kB = 0x20000, kC = 0x30000;

Sig matmul() {
  Sig sig("matmul");
  sig.tensor("A", kF32, {"8", "16"}).tensor("B", kF32, {"16", "4"}).out("C", kF32, {"8", "4"});
  return sig;
}

TEST(CheckArgs, AcceptsWhatFits) {
  Sig sig = matmul();
  Tensor a(kA, kF32, {8, 16}), b(kB, kF32, {16, 4}, {4, 1}), c(kC, kF32, {8, 4});
  Outcome outcome = check(sig, {&a, &b, &c});
  EXPECT_EQ(outcome.code, TW_OK) << outcome.message;
  EXPECT_EQ(outcome.data[1], reinterpret_cast<void*>(kB));
}

TEST(CheckArgs, BindsSymbols) {
  Sig sig("f");
  sig.symbol("n").symbol("m").symbol("s");
  sig.tensor("A", kF32, {"n", "m"}).tensor("B", kF32, {"m", "n"}, {"s", "1"}).out("C", kF32, {"n"});
  Tensor a(kA, kF32, {5, 7}), b(kB, kF32, {7, 5}, {8, 1}), c(kC, kF32, {5});
  Outcome outcome = check(sig, {&a, &b, &c});
  EXPECT_EQ(outcome.code, TW_OK) << outcome.message;
  EXPECT_EQ(outcome.symbols, (std::vector<int64_t>{5, 7, 8}));
}

TEST(CheckArgs, ScalarsBindBeforeTensors) {
  Sig sig("f");
  sig.symbol("n");
  Sig& same = sig.scalar("n", kI32);
  same.tensor("A", kF32, {"n"});
  Tensor a(kA, kF32, {5});
  tw_scalar n;
  n.i = 5;
  EXPECT_EQ(check(sig, {&a}, {n}).code, TW_OK);
  n.i = 6;
  Outcome outcome = check(sig, {&a}, {n});
  EXPECT_EQ(outcome.code, TW_ERROR_SHAPE);
  EXPECT_EQ(outcome.message,
            "f: argument A: expected shape (n,), got (5,)\n  hint: dimension 0 is 5, but n = 6, from parameter n");
}

TEST(CheckArgs, IgnoresStridesOfExtentOneAndOfEmptyTensors) {
  Sig sig("f");
  sig.symbol("s");
  sig.tensor("A", kF32, {"1", "4", "1"}).tensor("B", kF32, {"0", "3"}).out("C", kF32, {"1", "4"}, {"s", "1"});
  Tensor a(kA, kF32, {1, 4, 1}, {-9, 1, 555}), b(0, kF32, {0, 3}, {77, 99}), c(kC, kF32, {1, 4}, {123, 1});
  Outcome outcome = check(sig, {&a, &b, &c});
  EXPECT_EQ(outcome.code, TW_OK) << outcome.message;
  EXPECT_EQ(outcome.symbols[0], 4);  // stride of a compact tensor
}

TEST(CheckArgs, StridesThatReachNoSecondElementLeaveTheirSymbolToOthers) {
  Sig sig("f");
  sig.symbol("s").symbol("t", 32);
  sig.tensor("A", kF32, {"?", "4"}, {"s", "1"}).tensor("B", kF32, {"?", "4"}, {"s", "1"});
  sig.tensor("C", kF32, {"?", "4"}, {"s", "1"}).tensor("D", kF32, {"?"}, {"t"}).tensor("E", kF32, {"?"}, {"t"});
  Tensor row(kA, kF32, {1, 4}, {123, 1}), rows(kA, kF32, {3, 4}, {8, 1}), others(kB, kF32, {2, 4}, {16, 1});
  Tensor none(kB, kF32, {0, 4}, {99, 1}), one(kC, kF32, {1}, {5}), wide(kC, kF32, {2}, {int64_t{1} << 33});
  Outcome outcome = check(sig, {&row, &rows, &rows, &one, &one});
  EXPECT_EQ(outcome.code, TW_OK) << outcome.message;
  EXPECT_EQ(outcome.symbols[0], 8);
  EXPECT_EQ(check(sig, {&none, &row, &rows, &one, &one}).symbols[0], 8);
  EXPECT_EQ(check(sig, {&rows, &row, &none, &one, &one}).symbols[0], 8);
  EXPECT_EQ(check(sig, {&row, &row, &none, &one, &one}).symbols[0], 4);
  EXPECT_EQ(check(sig, {&row, &rows, &others, &one, &one}).message,
            "f: argument C: expected strides (s, 1) (in elements), got (16, 1)\n"
            "  hint: stride 0 differs: s, from stride 0 of B, is 8");
  EXPECT_EQ(check(sig, {&row, &row, &row, &one, &wide}).message,
            "f: argument E: expected a stride that fits in 32 bits, the type of t, got 8589934592\n"
            "  hint: give t a wider type in the script");
}

TEST(CheckArgs, EmptyTensorsMayLieAnywhere) {
  Sig sig("f");
  sig.tensor("A", kF32, {"0", "4"}).aligned(64).out("B", kF32, {"4", "0"}, {"?", "?"});
  Tensor a(3, kF32, {0, 4}), b(3, kF32, {4, 0}, {0, 0});
  EXPECT_EQ(check(sig, {&a, &b}).code, TW_OK);
}

TEST(CheckArgs, AcceptsScalarsOfNoDimension) {
  Sig sig("f");
  sig.tensor("A", kF32, {}).out("B", kF32, {});
  Tensor a(kA, kF32, {}), b(kB, kF32, {});
  a.view.shape = nullptr;
  EXPECT_EQ(check(sig, {&a, &b}).code, TW_OK);
  Tensor same(kA, kF32, {});
  EXPECT_EQ(check(sig, {&a, &same}).code, TW_ERROR_OVERLAP);
}

TEST(CheckArgs, StartsAtTheByteOffset) {
  Sig sig("f");
  sig.tensor("A", kF32, {"4"});
  Tensor a(kA, kF32, {4});
  a.view.byte_offset = 8;
  Outcome outcome = check(sig, {&a});
  EXPECT_EQ(outcome.code, TW_OK);
  EXPECT_EQ(outcome.data[0], reinterpret_cast<void*>(kA + 8));
}

TEST(CheckArgs, BindsElementOffsets) {
  Sig sig("f");
  sig.symbol("at");
  sig.tensor("A", kF32, {"4"}).offset("at").tensor("B", kF32, {"4"}).offset("2");
  Tensor a(kA, kF32, {4}), b(kB, kF32, {4});
  a.view.byte_offset = 12;
  b.view.byte_offset = 8;
  Outcome outcome = check(sig, {&a, &b});
  EXPECT_EQ(outcome.code, TW_OK) << outcome.message;
  EXPECT_EQ(outcome.symbols[0], 3);
  EXPECT_EQ(outcome.data[0], reinterpret_cast<void*>(kA));
}

TEST(CheckArgs, AcceptsPinnedMemory) {
  Sig sig("f");
  sig.tensor("A", kF32, {"4"});
  Tensor a(kA, kF32, {4});
  a.view.device = {kDLCUDAHost, 0};
  EXPECT_EQ(check(sig, {&a}).code, TW_OK);
}

TEST(CheckArgs, WhatIsCopiedToADeviceIsAlignedThere) {
  Sig sig("f");
  sig.tensor("A", kF32, {"4"}).aligned(16).device(kDLCUDA);
  Tensor a(kA + 4, kF32, {4});
  EXPECT_EQ(check(sig, {&a}).code, TW_OK);
  a.view.device = {kDLCUDA, 0};
  EXPECT_EQ(check(sig, {&a}).code, TW_ERROR_ALIGNMENT);
  a.view.data = reinterpret_cast<void*>(kA + 16);
  EXPECT_EQ(check(sig, {&a}).code, TW_OK);
}

TEST(CheckArgs, FollowsNegativeAndBroadcastStrides) {
  Sig sig("f");
  sig.tensor("A", kF32, {"4", "8"}, {"?", "?"}).out("B", kF32, {"4"});
  // A occupies [kA - 124, kA + 4): first B touches its start, then ends just before it.
  Tensor a(kA, kF32, {4, 8}, {-8, -1});
  Tensor touching(kA - 124 - 12, kF32, {4}), before(kA - 124 - 16, kF32, {4}), after(kA + 4, kF32, {4});
  EXPECT_EQ(check(sig, {&a, &touching}).code, TW_ERROR_OVERLAP);
  EXPECT_EQ(check(sig, {&a, &before}).code, TW_OK);
  EXPECT_EQ(check(sig, {&a, &after}).code, TW_OK);
  Tensor row(kA, kF32, {4, 8}, {0, 1});
  Tensor behind(kA + 32, kF32, {4});
  EXPECT_EQ(check(sig, {&row, &behind}).code, TW_OK);
}

TEST(CheckArgs, InputsMayOverlap) {
  Sig sig = matmul();
  sig.params()[1].shape = sig.params()[0].shape;
  Tensor a(kA, kF32, {8, 16}), b(kA, kF32, {8, 16}), c(kC, kF32, {8, 4});
  EXPECT_EQ(check(sig, {&a, &b, &c}).code, TW_OK);
}

TEST(CheckArgs, AcceptsHalvesOfOneMatrix) {
  Sig sig("f");
  sig.tensor("A", kF32, {"8", "4"}, {"?", "1"}).out("B", kF32, {"8", "4"}, {"?", "1"});
  Tensor left(kA, kF32, {8, 4}, {8, 1}), right(kA + 16, kF32, {8, 4}, {8, 1}), middle(kA + 12, kF32, {8, 4}, {8, 1});
  EXPECT_EQ(check(sig, {&left, &right}).code, TW_OK);
  EXPECT_EQ(check(sig, {&left, &middle}).code, TW_ERROR_OVERLAP);
}

TEST(CheckArgs, HasManyTensors) {
  Sig sig("f");
  std::vector<std::unique_ptr<Tensor>> tensors;
  std::vector<const Tensor*> views;
  for (int i = 0; i < 60; ++i) {
    sig.out("T" + std::to_string(i), kF32, {"4"});
    tensors.push_back(std::make_unique<Tensor>(kA + 16 * i, kF32, std::vector<int64_t>{4}));
    views.push_back(tensors.back().get());
  }
  EXPECT_EQ(check(sig, views).code, TW_OK);
  tensors[59]->view.data = reinterpret_cast<void*>(kA + 4);
  EXPECT_EQ(check(sig, views).code, TW_ERROR_OVERLAP);
}

// ---- Messages

struct Refusal {
  const char* what;
  int32_t code;
  const char* message;
  void (*spoil)(Sig&, Tensor& a, Tensor& b, Tensor& c);
};

class Messages : public testing::TestWithParam<Refusal> {};

// f(A: float32 (n, 4), B: uint8 (n,) aligned to 32, C: float32 (n, n) written with strides (s, 1))
TEST_P(Messages, NameParameterExpectedGotHint) {
  Sig sig("f");
  sig.symbol("n", 32).symbol("s");
  sig.tensor("A", kF32, {"n", "4"}).tensor("B", kU8, {"n"}).aligned(32).out("C", kF32, {"n", "n"}, {"s", "1"});
  Tensor a(kA, kF32, {3, 4}, {4, 1}), b(kB, kU8, {3}), c(kC, kF32, {3, 3}, {8, 1});
  ASSERT_EQ(check(sig, {&a, &b, &c}).code, TW_OK);
  GetParam().spoil(sig, a, b, c);
  Outcome outcome = check(sig, {&a, &b, &c});
  EXPECT_EQ(outcome.code, GetParam().code);
  EXPECT_TRUE(tw_is_argument_error(outcome.code));
  EXPECT_EQ(outcome.message, GetParam().message);
}

#define SPOIL [](Sig & sig, Tensor & a, Tensor & b, Tensor & c)
#define UNUSED (void)sig, (void)a, (void)b, (void)c

const Refusal kRefusals[] = {{"dtype", TW_ERROR_DTYPE,
                              "f: argument A: expected dtype float32, got float64\n  hint: convert it to float32 first",
                              SPOIL{UNUSED;
a.view.dtype = kF64;
}  // namespace
}  // namespace tilewright::runtime
, {"bool", TW_ERROR_DTYPE, "f: argument B: expected dtype uint8, got bool\n  hint: convert it to uint8 first",
   SPOIL{UNUSED;
b.view.dtype = kBool;
}
}
, {"lanes", TW_ERROR_DTYPE,
   "f: argument A: expected dtype float32, got bfloat16x2\n  hint: convert it to float32 first", SPOIL{UNUSED;
a.view.dtype = {kDLBfloat, 16, 2};
}
}
, {"unknown_type", TW_ERROR_DTYPE,
   "f: argument A: expected dtype float32, got type code 99 with 8 bits\n  hint: convert it to float32 first",
   SPOIL{UNUSED;
a.view.dtype = {99, 8, 1};
}
}
, {"expected_eight_bit_float", TW_ERROR_DTYPE,
   "f: argument A: expected dtype float8_e4m3fn, got float32\n  hint: convert it to float8_e4m3fn first", SPOIL{UNUSED;
sig.params()[0].dtype = {kDLFloat8_e4m3fn, 8, 1};
}
}
, {"ndim", TW_ERROR_NDIM,
   "f: argument B: expected 1 dimension with shape (n,), got 2 with shape (3, 4)\n  hint: reshape it", SPOIL{UNUSED;
b.view.ndim = 2;
b.view.shape = a.view.shape;
}
}
, {"shape_constant", TW_ERROR_SHAPE,
   "f: argument A: expected shape (n, 4), got (3, 5)\n  hint: dimension 1 is 5 instead of 4", SPOIL{UNUSED;
a.shape[1] = 5;
}
}
, {"shape_symbol", TW_ERROR_SHAPE,
   "f: argument B: expected shape (n,), got (2,)\n  hint: dimension 0 is 2, but n = 3, from dimension 0 of A",
   SPOIL{UNUSED;
b.shape[0] = 2;
}
}
, {"shape_negative", TW_ERROR_SHAPE,
   "f: argument A: expected shape (n, 4), got (-3, 4)\n  hint: dimension 0 is negative", SPOIL{UNUSED;
a.shape[0] = -3;
}
}
, {"strides_of_an_input", TW_ERROR_STRIDES,
   "f: argument A: expected compact row-major data, got strides (1, 3) (in elements) for shape (3, 4)\n"
   "  hint: pass a contiguous copy, such as numpy.ascontiguousarray(A) or A.contiguous()",
   SPOIL{UNUSED;
a.strides = {1, 3};
}
}
, {"strides_of_an_output", TW_ERROR_STRIDES,
   "f: argument C: expected compact row-major data, got strides (8, 1) (in elements) for shape (3, 3)\n"
   "  hint: the kernel writes to it: pass a contiguous array and copy the result from there",
   SPOIL{UNUSED;
sig.params()[2].strides = nullptr;
}
}
, {"strides_given", TW_ERROR_STRIDES,
   "f: argument C: expected strides (s, 1) (in elements), got (8, 2)\n  hint: stride 1 differs", SPOIL{UNUSED;
c.strides[1] = 2;
}
}
, {"strides_symbol", TW_ERROR_STRIDES,
   "f: argument C: expected strides (n, 1) (in elements), got (8, 1)\n"
   "  hint: stride 0 differs: n = 3, from dimension 0 of A",
   SPOIL{UNUSED;
static const tw_dim kSteps[2] = {{0, TW_DIM_SYMBOL, 0}, {1, TW_DIM_CONSTANT, 0}};
sig.params()[2].strides = kSteps;
}
}
, {"strides_absent", TW_ERROR_STRIDES,
   "f: argument C: expected strides (8, 1) (in elements), got none, which means compact\n  hint: stride 0 differs",
   SPOIL{UNUSED;
static const tw_dim kSteps[2] = {{8, TW_DIM_CONSTANT, 0}, {1, TW_DIM_CONSTANT, 0}};
sig.params()[2].strides = kSteps;
c.view.strides = nullptr;
}
}
, {"offset_constant", TW_ERROR_OFFSET, "f: argument A: expected the first element at offset 2, got a byte_offset of 12",
   SPOIL{UNUSED;
sig.params()[0].elem_offset = {2, TW_DIM_CONSTANT, 0};
a.view.byte_offset = 12;
}
}
, {"offset_of_part_of_an_element", TW_ERROR_OFFSET,
   "f: argument A: expected the first element at offset that is a whole number of elements, got a byte_offset of 6",
   SPOIL{UNUSED;
sig.params()[0].elem_offset = {0, TW_DIM_ANY, 0};
a.view.byte_offset = 6;
}
}
, {"offset_symbol", TW_ERROR_OFFSET,
   "f: argument B: expected the first element at offset n = 3, from dimension 0 of A, got a byte_offset of 32",
   SPOIL{UNUSED;
sig.params()[1].elem_offset = {0, TW_DIM_SYMBOL, 0};
b.view.byte_offset = 32;
}
}
, {"alignment_asked_for", TW_ERROR_ALIGNMENT,
   "f: argument B: expected data aligned to 32 bytes, got address 0x20010, which is aligned to 16\n"
   "  hint: the script asks for this alignment: allocate the data accordingly",
   SPOIL{UNUSED;
b.view.data = reinterpret_cast<void*>(kB + 16);
}
}
, {"alignment_of_elements", TW_ERROR_ALIGNMENT,
   "f: argument A: expected data aligned to 4 bytes, got address 0x10002, which is aligned to 2\n"
   "  hint: pass a copy: its elements are not aligned to their size",
   SPOIL{UNUSED;
a.view.byte_offset = 2;
}
}
, {"alignment_of_vectors", TW_ERROR_ALIGNMENT,
   "f: argument B: expected data aligned to 32 bytes, got address 0x20010, which is aligned to 16\n"
   "  hint: kernels access it by vectors: pass a copy, or declare the buffer with align=1, then they access elements",
   SPOIL{UNUSED;
sig.device(kDLCUDA);
b.view.device = {kDLCUDA, 0};
b.view.data = reinterpret_cast<void*>(kB + 16);
}
}
, {"device", TW_ERROR_DEVICE, "f: argument B: expected data on the CPU, got cuda:1\n  hint: copy it to the CPU first",
   SPOIL{UNUSED;
b.view.device = {kDLCUDA, 1};
}
}
, {"device_unknown", TW_ERROR_DEVICE,
   "f: argument B: expected data on the CPU, got device type 16:0\n  hint: copy it to the CPU first", SPOIL{UNUSED;
b.view.device = {kDLHexagon, 0};
}
}
, {"device_of_the_kernel", TW_ERROR_DEVICE,
   "f: argument B: expected data on cuda:0, got opencl:1\n  hint: copy it to cuda:0 first", SPOIL{UNUSED;
sig.device(kDLCUDA);
b.view.device = {kDLOpenCL, 1};
}
}
, {"two_devices", TW_ERROR_DEVICE,
   "f: argument B: expected data on cuda:2, where argument A is, got cuda:1\n  hint: copy it to cuda:2 first",
   SPOIL{UNUSED;
sig.device(kDLCUDA);
a.view.device = {kDLCUDA, 2};
b.view.device = {kDLCUDA, 1};
}
}
, {"null_data", TW_ERROR_NULL, "f: argument A: expected data for shape (3, 4), got a null pointer", SPOIL{UNUSED;
a.view.data = nullptr;
}
}
, {"null_shape", TW_ERROR_NULL, "f: argument A: expected a shape of 2 dimensions, got a null pointer", SPOIL{UNUSED;
a.view.shape = nullptr;
}
}
, {"overlap", TW_ERROR_OVERLAP,
   "f: argument C: expected memory of its own, since the kernel writes to it, but it overlaps argument A: address "
   "0x10020 with shape (3, 3) and strides (8, 1), and address 0x10000 with shape (3, 4) and strides (4, 1)\n"
   "  hint: pass a copy of one of them",
   SPOIL{UNUSED;
c.view.data = reinterpret_cast<void*>(kA + 32);
}
}
, {"overlap_with_itself", TW_ERROR_OVERLAP,
   "f: argument C: expected a place of its own for each element, since the kernel writes them, got strides (0, 1) for "
   "shape (3, 3)\n  hint: pass a copy: broadcast and sliding-window views repeat elements",
   SPOIL{UNUSED;
c.strides[0] = 0;
}
}
, {"size_of_symbol", TW_ERROR_SIZE,
   "f: argument A: expected a size that fits in 32 bits, the type of n, got 3000000000\n"
   "  hint: give n a wider type in the script",
   SPOIL{UNUSED;
a.shape[0] = 3000000000;
}
}
, {"stride_of_symbol", TW_ERROR_SIZE,
   "f: argument C: expected a stride that fits in 16 bits, the type of t, got -40000\n"
   "  hint: give t a wider type in the script",
   SPOIL{UNUSED;
static const tw_dim kSteps[2] = {{2, TW_DIM_BIND, 0}, {1, TW_DIM_CONSTANT, 0}};
sig.symbol("t", 16).params()[2].strides = kSteps;
c.strides[0] = -40000;
}
}
, {"offset_of_symbol", TW_ERROR_SIZE,
   "f: argument B: expected an element offset that fits in 8 bits, the type of t, got 1024\n"
   "  hint: give t a wider type in the script",
   SPOIL{UNUSED;
sig.symbol("t", 8).params()[1].elem_offset = {2, TW_DIM_BIND, 0};
b.view.byte_offset = 1024;
}
}
, {"too_far_apart", TW_ERROR_SIZE,
   "f: argument A: expected at most 10 elements from first to last, got shape (3, 4)\n"
   "  hint: give the sizes of the script the type int64",
   SPOIL{UNUSED;
sig.params()[0].max_elements = 10;
}
}
, {"larger_than_memory", TW_ERROR_SIZE, "f: argument C: expected a tensor that fits in memory, got shape (3, 3)",
   SPOIL{UNUSED;
c.strides[0] = INT64_MAX / 2;
}
}
, {"overflow", TW_ERROR_SIZE,
   "f: argument A: expected a tensor that fits in memory, got shape (3, 4611686018427387904)", SPOIL{UNUSED;
static const tw_dim kShape[2] = {{0, TW_DIM_BIND, 0}, {0, TW_DIM_ANY, 0}};
static const tw_dim kSteps[2] = {{0, TW_DIM_ANY, 0}, {0, TW_DIM_ANY, 0}};
sig.params()[0].shape = kShape;
sig.params()[0].strides = kSteps;
a.shape[1] = int64_t{1} << 62;
a.strides = {0, 0};
}
}
,
}
;

INSTANTIATE_TEST_SUITE_P(CheckArgs, Messages, testing::ValuesIn(kRefusals),
                         [](const auto& info) { return std::string(info.param.what); });

TEST(CheckArgs, RefusesNullArguments) {
  Sig sig = matmul();
  Tensor a(kA, kF32, {8, 16}), c(kC, kF32, {8, 4});
  Outcome outcome = check(sig, {&a, nullptr, &c});
  EXPECT_EQ(outcome.code, TW_ERROR_NULL);
  EXPECT_EQ(outcome.message, "matmul: argument B: expected a tensor, got a null pointer");

  void* data[3];
  EXPECT_EQ(tw_check_args(tw_default_ctx(), sig.get(), nullptr, nullptr, nullptr, data), TW_ERROR_NULL);
  EXPECT_STREQ(tw_last_error(), "the kernel was called without its array of arguments");
}

TEST(CheckArgs, RefusesOtherVersions) {
  Sig sig = matmul();
  tw_signature old = *sig.get();
  old.abi_version = TW_ABI_VERSION + 1;
  EXPECT_EQ(tw_check_args(tw_default_ctx(), &old, nullptr, nullptr, nullptr, nullptr), TW_ERROR_ABI);
  EXPECT_NE(std::string(tw_last_error()).find("different versions of the kernel interface"), std::string::npos);
  tw_ctx ctx;
  tw_ctx_init(&ctx);
  ctx.abi_version = 99;
  EXPECT_EQ(tw_check_args(&ctx, sig.get(), nullptr, nullptr, nullptr, nullptr), TW_ERROR_ABI);
}

TEST(CheckArgs, RefusesToRunOnAWeakerProcessor) {
  // No processor has both AMD's and Intel's dead ends.
  Sig sig("f");
  sig.features("sse3,fma4,avx512vp2intersect,amx-complex");
  Outcome outcome = check(sig, {});
  EXPECT_EQ(outcome.code, TW_ERROR_CPU_FEATURE);
  EXPECT_FALSE(tw_is_argument_error(outcome.code));
  EXPECT_NE(outcome.message.find("f: this processor lacks "), std::string::npos);
  EXPECT_NE(outcome.message.find("which the kernel was compiled for\n  hint: compile it for this processor"),
            std::string::npos);

  Sig fine("f");
  fine.features("sse3");
  EXPECT_EQ(check(fine, {}).code, TW_OK);
}

TEST(CheckArgs, DimensionsThatAreExpressions) {
  Sig sig("f");
  sig.symbol("n").symbol("size_1").tensor("A", kF32, {"n", "size_1"});
  Tensor a(kA, kF32, {4, 9});
  const DLTensor* views[] = {&a.view};
  EXPECT_EQ(tw_fail_dim(tw_default_ctx(), sig.get(), views, 0, 1, "2 * n", 8), TW_ERROR_SHAPE);
  tw_ctx* ctx = tw_default_ctx();
  ctx->error_code = TW_OK;
  tw_fail_dim(ctx, sig.get(), views, 0, 1, "2 * n", 8);
  EXPECT_STREQ(tw_last_error(), "f: argument A: expected dimension 1 to be 2 * n = 8, got 9");
}

TEST(CheckArgs, StridesAndOffsetsThatAreExpressions) {
  Sig sig("f");
  sig.symbol("n").symbol("size").tensor("A", kF32, {"n", "4"}, {"size", "1"});
  tw_ctx* ctx = tw_default_ctx();
  const auto fail = [&](const Tensor& a, int32_t dim) {
    const DLTensor* views[] = {&a.view};
    ctx->error_code = TW_OK;
    return tw_fail_dim(ctx, sig.get(), views, 0, dim, "2 * n", 8);
  };
  Tensor a(kA, kF32, {4, 4}, {9, 1}), compact(kA, kF32, {4, 4}), row(kA, kF32, {1, 4}, {9, 1}), none(kA, kF32, {0, 4});
  EXPECT_EQ(fail(a, 2), TW_ERROR_STRIDES);
  EXPECT_STREQ(tw_last_error(), "f: argument A: expected stride 0 to be 2 * n = 8 (in elements), got 9");
  EXPECT_EQ(fail(compact, 2), TW_ERROR_STRIDES);
  EXPECT_STREQ(tw_last_error(), "f: argument A: expected stride 0 to be 2 * n = 8 (in elements), got 4");
  EXPECT_EQ(fail(row, 2), TW_OK);
  EXPECT_EQ(fail(none, 2), TW_OK);
  EXPECT_EQ(fail(a, 4), TW_ERROR_OFFSET);
  EXPECT_STREQ(tw_last_error(),
               "f: argument A: expected the first element at offset 2 * n = 8, got a byte_offset of 0");
}

TEST(CheckArgs, LongMessagesEndInTime) {
  std::vector<std::string> shape(60, "123456789012345678");
  Sig sig("f");
  sig.tensor("A", kF32, shape);
  Tensor a(kA, kF32, std::vector<int64_t>(60, 123456789012345679));
  Outcome outcome = check(sig, {&a});
  EXPECT_EQ(outcome.code, TW_ERROR_SHAPE);
  EXPECT_GT(outcome.message.size(), 1000u);
}

TEST(CheckArgs, ElementsOfLessThanAByteTakeAByte) {
  Sig sig("f");
  constexpr DLDataType kI4{kDLInt, 4, 1};
  sig.tensor("A", kI4, {"5"}).out("B", kI4, {"5"});
  Tensor a(kA, kI4, {5}), behind(kA + 5, kI4, {5}), within(kA + 4, kI4, {5});
  EXPECT_EQ(check(sig, {&a, &behind}).code, TW_OK);
  EXPECT_EQ(check(sig, {&a, &within}).code, TW_ERROR_OVERLAP);
}

TEST(CheckArgs, DescribesParameters) {
  Sig sig("f");
  sig.symbol("n").tensor("A", kF32, {"n", "4", "?"}).scalar("x", kI32);
  char text[100];
  tw_describe_param(sig.get(), &sig.get()->params[0], text, sizeof text);
  EXPECT_STREQ(text, "float32 (n, 4, any)");
  tw_describe_param(sig.get(), &sig.get()->params[1], text, sizeof text);
  EXPECT_STREQ(text, "int32");
}

// ---- Signatures themselves

std::string defect_of(const tw_signature& signature) {
  char message[200] = "";
  return tw_verify_signature(&signature, message, sizeof message) == TW_OK ? "" : message;
}

TEST(Signature, DefectsAreFound) {
  Sig sig("f");
  sig.symbol("n").symbol("m").scalar("n", kI32).tensor("A", kF32, {"n", "m"});
  const tw_signature good = *sig.get();
  EXPECT_EQ(defect_of(good), "");
  tw_signature bad = good;
  bad.abi_version = 7;
  EXPECT_EQ(defect_of(bad), "interface version 7");
  bad = good, bad.name = nullptr;
  EXPECT_EQ(defect_of(bad), "no name");
  bad = good, bad.num_scalars = 2;
  EXPECT_EQ(defect_of(bad), "2 parameters are not 1 tensors and 2 scalars");
  bad = good, bad.num_scalars = 0, bad.num_tensors = 2;
  EXPECT_EQ(defect_of(bad), "1 tensors are announced as 2");
  bad = good, bad.params = nullptr;
  EXPECT_EQ(defect_of(bad), "no parameters");
  bad = good, bad.num_symbols = 1000;
  EXPECT_EQ(defect_of(bad), "1000 symbols");
  bad = good, bad.symbols = nullptr;
  EXPECT_EQ(defect_of(bad), "no symbols");

  tw_symbol symbols[2] = {good.symbols[0], good.symbols[1]};
  bad = good, bad.symbols = symbols;
  symbols[1].bits = 1;
  EXPECT_EQ(defect_of(bad), "symbol m has 1 bits");
  symbols[1].name = nullptr;
  EXPECT_EQ(defect_of(bad), "symbol 1 has no name");

  auto with = [&](void (*change)(tw_param*, tw_dim*)) {
    tw_param params[2] = {good.params[0], good.params[1]};
    tw_dim shape[2] = {params[1].shape[0], params[1].shape[1]};
    params[1].shape = shape;
    change(params, shape);
    tw_signature changed = good;
    changed.params = params;
    return defect_of(changed);
  };
  EXPECT_EQ(with([](tw_param*, tw_dim* shape) { shape[0].kind = 9; }), "A: unknown kind of dimension 9");
  EXPECT_EQ(with([](tw_param*, tw_dim* shape) { shape[0].kind = TW_DIM_BIND; }), "A: symbol n is bound twice");
  EXPECT_EQ(with([](tw_param*, tw_dim* shape) { shape[1].kind = TW_DIM_SYMBOL; }),
            "A: symbol m is used before it is bound");
  EXPECT_EQ(with([](tw_param*, tw_dim* shape) { shape[1].value = 2; }), "A: no symbol 2");
  EXPECT_EQ(with([](tw_param*, tw_dim* shape) { shape[0].value = -1; }), "A: no symbol -1");
  EXPECT_EQ(with([](tw_param* params, tw_dim*) { params[0].name = nullptr; }), "parameter 0 has no name");
  EXPECT_EQ(with([](tw_param* params, tw_dim*) { params[0].kind = 5; }), "n: unknown kind of parameter 5");
  EXPECT_EQ(with([](tw_param* params, tw_dim*) { params[1].ndim = 65; }), "A: 65 dimensions");
  EXPECT_EQ(with([](tw_param* params, tw_dim*) { params[1].shape = nullptr; }), "A: no shape");
  EXPECT_EQ(with([](tw_param* params, tw_dim*) { params[1].dtype.lanes = 0; }), "A: element of 32 bits and 0 lanes");
  EXPECT_EQ(with([](tw_param* params, tw_dim*) { params[1].alignment = 12; }), "A: alignment 12 is not a power of two");
}

TEST(Signature, FindsTensorParameters) {
  Sig sig("f");
  sig.tensor("A", kF32, {"4"}).scalar("x", kF32).tensor("B", kF32, {"4"});
  EXPECT_STREQ(tw_tensor_param(sig.get(), 1)->name, "B");
  EXPECT_EQ(tw_tensor_param(sig.get(), 2), nullptr);
}

}  // namespace
}  // namespace tilewright::runtime
