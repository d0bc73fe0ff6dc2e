// The layout that generated code, exported libraries and other languages rely on: a change here is a new
// TW_ABI_VERSION.
#include "runtime/abi.h"

#include <gtest/gtest.h>

#include <cstddef>

#include "runtime/runtime.h"

namespace {

TEST(Abi, LayoutOfDlpack) {
  EXPECT_EQ(sizeof(DLTensor), 48u);
  EXPECT_EQ(offsetof(DLTensor, device), 8u);
  EXPECT_EQ(offsetof(DLTensor, ndim), 16u);
  EXPECT_EQ(offsetof(DLTensor, dtype), 20u);
  EXPECT_EQ(offsetof(DLTensor, shape), 24u);
  EXPECT_EQ(offsetof(DLTensor, strides), 32u);
  EXPECT_EQ(offsetof(DLTensor, byte_offset), 40u);
  EXPECT_EQ(sizeof(DLDataType), 4u);
  EXPECT_EQ(offsetof(DLManagedTensorVersioned, flags), 24u);
  EXPECT_EQ(offsetof(DLManagedTensorVersioned, dl_tensor), 32u);
  EXPECT_EQ(offsetof(DLManagedTensor, manager_ctx), 48u);
}

TEST(Abi, LayoutOfTheContext) {
  EXPECT_EQ(sizeof(tw_scalar), 8u);
  EXPECT_EQ(offsetof(tw_ctx, parallel_for), 8u);
  EXPECT_EQ(offsetof(tw_ctx, workspace_acquire), 16u);
  EXPECT_EQ(offsetof(tw_ctx, workspace_release), 24u);
  EXPECT_EQ(offsetof(tw_ctx, set_error), 32u);
  EXPECT_EQ(offsetof(tw_ctx, stream), 40u);
  EXPECT_EQ(offsetof(tw_ctx, user), 48u);
  EXPECT_EQ(offsetof(tw_ctx, max_threads), 56u);
  EXPECT_EQ(offsetof(tw_ctx, interrupted), 64u);
  EXPECT_EQ(offsetof(tw_ctx, device_queue), 72u);
  EXPECT_EQ(sizeof(tw_ctx), 80u);
}

TEST(Abi, LayoutOfSignatures) {
  EXPECT_EQ(sizeof(tw_dim), 16u);
  EXPECT_EQ(sizeof(tw_symbol), 16u);
  EXPECT_EQ(offsetof(tw_param, elem_offset), 24u);
  EXPECT_EQ(offsetof(tw_param, max_elements), 40u);
  EXPECT_EQ(offsetof(tw_param, kind), 48u);
  EXPECT_EQ(offsetof(tw_param, dtype), 52u);
  EXPECT_EQ(offsetof(tw_param, symbol), 68u);
  EXPECT_EQ(sizeof(tw_param), 72u);
  EXPECT_EQ(offsetof(tw_signature, name), 8u);
  EXPECT_EQ(offsetof(tw_signature, feature_words), 40u);
  EXPECT_EQ(offsetof(tw_signature, num_params), 56u);
  EXPECT_EQ(sizeof(tw_signature), 72u);
  EXPECT_EQ(sizeof(tw_export), 24u);
  EXPECT_EQ(sizeof(tw_module), 24u);
}

TEST(Abi, OnlyCodesOfArgumentsBlameArguments) {
  EXPECT_FALSE(tw_is_argument_error(TW_OK));
  EXPECT_FALSE(tw_is_argument_error(TW_ERROR_CPU_FEATURE));
  EXPECT_FALSE(tw_is_argument_error(TW_ERROR_MEMORY));
  EXPECT_TRUE(tw_is_argument_error(TW_ERROR_NULL));
  EXPECT_TRUE(tw_is_argument_error(TW_ERROR_OTHER_ARGUMENT));
}

}  // namespace
