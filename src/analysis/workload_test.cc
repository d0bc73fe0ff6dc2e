#include "analysis/workload.h"

#include <gtest/gtest.h>

#include "ir/build.h"

namespace tilewright::analysis {
namespace {

/// C[i, j] += A[i, k] * B[k, j] over n cubed, with or without the init.
Ref<PrimFunc> matmul(int n, bool with_init) {
  std::vector<Ref<Buffer>> buffers;
  PrimFunc func;
  for (const char* name : {"A", "B", "C"}) {
    buffers.push_back(decl_buffer({i32(n), i32(n)}, DataType::float_(32), name));
    Ref<Var> handle = pointer_var(std::string(name) + "_handle", DataType::void_(), "");
    func.params.push_back(handle);
    func.buffer_map.emplace_back(handle, buffers.back());
  }
  Ref<Var> i = var("i"), j = var("j"), k = var("k"), vi = var("vi"), vj = var("vj"), vk = var("vk");
  auto axis = [&](const Ref<Var>& v, IterType type) { return make<IterVar>({range_of(i32(n)), v, type, ""}); };
  Block block;
  block.iter_vars = {axis(vi, IterType::kDataPar), axis(vj, IterType::kDataPar), axis(vk, IterType::kCommReduce)};
  block.name_hint = "C";
  block.body =
      store(buffers[2], load(buffers[2], {vi, vj}) + load(buffers[0], {vi, vk}) * load(buffers[1], {vk, vj}), {vi, vj});
  if (with_init) block.init = store(buffers[2], float_imm(DataType::float_(32), 0), {vi, vj});
  Stmt body = make<BlockRealize>({{i, j, k}, bool_imm(true), make(std::move(block))});
  for (const auto& v : {k, j, i}) body = loop(v, i32(n), body);
  func.body = body;
  func.ret_type = make<TupleType>({{}});
  return make(std::move(func));
}

TEST(Workload, CountsAMatmul) {
  Workload w = analyze_workload(matmul(8, true));
  EXPECT_EQ(w.flops, 2.0 * 8 * 8 * 8);
  EXPECT_EQ(w.int_ops, 0);
  EXPECT_EQ(w.bytes_read, 2 * 8 * 8 * 4);
  EXPECT_EQ(w.bytes_written, 8 * 8 * 4);
  EXPECT_EQ(w.reduction_length, 8);
  EXPECT_TRUE(w.exact);
  EXPECT_FALSE(w.params[2].read_before_written);
  EXPECT_TRUE(w.params[2].written && w.params[2].read);
  EXPECT_FALSE(w.params[0].written);
}

TEST(Workload, WithoutInitTheOutputIsAnInputToo) {
  Workload w = analyze_workload(matmul(8, false));
  EXPECT_TRUE(w.params[2].read_before_written);
  EXPECT_EQ(w.bytes_read, 3 * 8 * 8 * 4);
}

TEST(Workload, OfWhatDataChooseNoMoreCountsThanIsRead) {
  std::vector<Ref<Var>> handles;
  std::vector<Ref<Buffer>> buffers;
  PrimFunc func;
  for (auto [name, size, type] :
       {std::tuple{"A", 1000, DataType::float_(32)}, {"I", 10, DataType::int_(32)}, {"B", 10, DataType::float_(32)}}) {
    buffers.push_back(decl_buffer({i32(size)}, type, name));
    Ref<Var> handle = pointer_var(std::string(name) + "_handle", DataType::void_(), "");
    func.params.push_back(handle);
    func.buffer_map.emplace_back(handle, buffers.back());
  }
  Ref<Var> i = var("i");
  Expr chosen = load(buffers[1], {i});
  func.body = loop(i, i32(10), store(buffers[2], load(buffers[0], {chosen}), {i}));
  func.ret_type = make<TupleType>({{}});
  Workload gather = analyze_workload(make<PrimFunc>(PrimFunc(func)));
  EXPECT_EQ(gather.bytes_read, 10 * 4 + 10 * 4);
  EXPECT_EQ(gather.bytes_written, 10 * 4);
  EXPECT_TRUE(gather.params[1].read);
  EXPECT_FALSE(gather.exact);
  func.body = loop(i, i32(10), store(buffers[0], load(buffers[2], {i}), {chosen}));
  Workload scatter = analyze_workload(make(std::move(func)));
  EXPECT_EQ(scatter.bytes_read, 10 * 4 + 10 * 4);
  EXPECT_EQ(scatter.bytes_written, 10 * 4);
}

TEST(Workload, AnExtentThatVariesIsTakenAtItsMiddle) {
  Ref<Buffer> a = decl_buffer({i32(8)}, DataType::float_(32), "A");
  Ref<Var> handle = pointer_var("a", DataType::void_(), ""), i = var("i"), j = var("j");
  Stmt body = loop(i, i32(8), loop(j, i, store(a, load(a, {j}) * float_imm(DataType::float_(32), 2), {j})));
  Workload w = analyze_workload(make<PrimFunc>({{handle}, {{handle, a}}, make<TupleType>({{}}), {}, body}));
  EXPECT_EQ(w.flops, 8 * 4);
  EXPECT_FALSE(w.exact);
}

}  // namespace
}  // namespace tilewright::analysis
