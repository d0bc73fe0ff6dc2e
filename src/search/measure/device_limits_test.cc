// Which compiled kernels are refused before they are measured.
#include "search/measure/device_limits.h"

#include <gtest/gtest.h>

#include "ir/annotations.h"
#include "ir/build.h"
#include "lower/gpu/kernel.h"

namespace tilewright::search {
namespace {

/// A module with the kernel "copy", of blocks of so many threads.
Ref<Module> lowered(int64_t threads) {
  const DataType f32 = DataType::float_(32);
  const Ref<Buffer> b = decl_buffer({i32(threads)}, f32, "B");
  const Ref<Var> t = var("t");
  PrimFunc kernel;
  kernel.params.emplace_back(b->data);
  kernel.ret_type = make<TupleType>({});
  kernel.attrs.set(kKernelLaunch, make(List{{string_imm("threadIdx.x")}}));
  kernel.body = lower::bound_loop(t, i32(threads), "threadIdx.x", store(b, float_imm(f32, 1), {t}));
  return with_function(make<Module>({}), "copy", make(std::move(kernel)));
}

codegen::KernelUse use(const char* arch, int64_t registers, int64_t spills, int64_t shared_bytes = 0) {
  return {.kernel = "tw_copy",
          .arch = arch,
          .registers = registers,
          .spill_stores = spills,
          .spill_loads = spills,
          .shared_bytes = shared_bytes};
}

std::string code_of(const std::vector<codegen::KernelUse>& uses, int64_t threads = 256) {
  codegen::CudaProgram program;
  program.uses = uses;
  const Status status = check_device_limits(lowered(threads), program);
  return status.ok() ? "" : status.error().code;
}

TEST(DeviceLimits, SpillsUpToTheBoundAreMeasured) {
  EXPECT_EQ(code_of({use("sm_80", 255, 0)}), "");
  EXPECT_EQ(code_of({use("sm_80", 255, kMostSpilledBytes)}), "");
  EXPECT_EQ(code_of({use("sm_80", 255, kMostSpilledBytes + 4)}), "measure/spills");
}

TEST(DeviceLimits, BlocksHaveToFit) {
  EXPECT_EQ(code_of({use("sm_80", 128, 0)}, 512), "");
  EXPECT_EQ(code_of({use("sm_80", 136, 0)}, 512), "measure/occupancy");  // 65,536 registers for 16 warps: 128 a thread
  EXPECT_EQ(code_of({use("sm_80", 32, 0, 163 << 10)}), "");
  EXPECT_EQ(code_of({use("sm_80", 32, 0, 164 << 10)}), "measure/occupancy");
  EXPECT_EQ(code_of({use("sm_90a", 32, 0, 227 << 10)}), "");
}

TEST(DeviceLimits, OneArchitectureThatTakesItIsEnough) {
  EXPECT_EQ(code_of({use("sm_80", 32, 0, 200 << 10), use("sm_90a", 32, 0, 200 << 10)}), "");
  EXPECT_EQ(code_of({use("sm_80", 32, 0, 200 << 10), use("sm_90a", 32, 512)}), "measure/occupancy");
}

TEST(DeviceLimits, WhatIsNotKnownIsNotJudged) {
  EXPECT_EQ(code_of({}), "");
  EXPECT_EQ(code_of({use("sm_999", 255, 0, 1 << 30)}), "");
}

}  // namespace
}  // namespace tilewright::search
