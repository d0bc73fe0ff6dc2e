#include "search/cost_model/device_cost.h"

#include <gtest/gtest.h>

#include "ir/build.h"

namespace tilewright::search {
namespace {

constexpr int64_t kSize = 1024;

Stmt bound(const Ref<Var>& v, int64_t extent, const char* axis, Stmt body) {
  For loop{v, i32(0), i32(extent), ForKind::kThreadBinding, {}, {}, std::move(body)};
  loop.thread_binding =
      make<IterVar>({.dom = {}, .var = var(axis, v.dtype()), .iter_type = IterType::kThreadIndex, .thread_tag = axis});
  return make(std::move(loop));
}

/// B[i, j] = A[i, j] + 1 with `blocks` of `threads`; the threads go along rows, or down columns.
double seconds(int64_t blocks, int64_t threads, bool along_rows) {
  const DataType f32 = DataType::float_(32);
  Ref<Buffer> a = decl_buffer({i32(kSize), i32(kSize)}, f32, "A"), b = decl_buffer({i32(kSize), i32(kSize)}, f32, "B");
  Ref<Var> block = var("block"), thread = var("thread"), k = var("k");
  const int64_t each = kSize * kSize / (blocks * threads);
  Expr flat = (block * each + k) * threads + thread;
  Expr row = floordiv(flat, i32(kSize)), column = floormod(flat, i32(kSize));
  std::vector<Expr> index = along_rows ? std::vector<Expr>{row, column} : std::vector<Expr>{column, row};
  Stmt body = loop(k, i32(each), store(b, load(a, index) + float_imm(f32, 1), index));
  PrimFunc func{{},
                {},
                make<TupleType>({{}}),
                {},
                bound(block, blocks, "blockIdx.x", bound(thread, threads, "threadIdx.x", body))};
  for (const Ref<Buffer>& buffer : {a, b}) {
    Ref<Var> handle = pointer_var(buffer->name, DataType::void_(), "");
    func.params.push_back(handle);
    func.buffer_map.push_back({handle, buffer});
  }
  return estimate_device_cost(as_module(make<PrimFunc>(func))).seconds;
}

TEST(DeviceCost, NeighborsThatReadNeighborsAreFaster) {
  EXPECT_GT(seconds(256, 128, true), 0);
  EXPECT_LT(4 * seconds(256, 128, true), seconds(256, 128, false));
}

TEST(DeviceCost, FewBlocksOrThreadsLeaveTheDeviceIdle) {
  EXPECT_LT(8 * seconds(256, 128, true), seconds(4, 128, true));
  EXPECT_LT(2 * seconds(256, 128, true), seconds(256, 8, true));
}

}  // namespace
}  // namespace tilewright::search
