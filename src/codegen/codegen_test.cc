#include "codegen/kernel_for_test.h"

namespace tilewright {
namespace {

Ref<IterVar> axis(const char* name, Expr extent, IterType type) {
  return make<IterVar>({range_of(extent), var(name), type, ""});
}

/// C[i, j] += A[i, k] * B[k, j] as a block under three loops.
Ref<PrimFunc> matmul(int64_t m, int64_t n, int64_t k) {
  DataType f32 = DataType::float_(32);
  Ref<Buffer> a = decl_buffer({i32(m), i32(k)}, f32, "A"), b = decl_buffer({i32(k), i32(n)}, f32, "B"),
              c = decl_buffer({i32(m), i32(n)}, f32, "C");
  Ref<IterVar> vi = axis("vi", i32(m), IterType::kDataPar), vj = axis("vj", i32(n), IterType::kDataPar),
               vk = axis("vk", i32(k), IterType::kCommReduce);
  Block block;
  block.iter_vars = {vi, vj, vk};
  block.name_hint = "C";
  block.init = store(c, float_imm(f32, 0), {vi->var, vj->var});
  block.body = store(c, load(c, {vi->var, vj->var}) + load(a, {vi->var, vk->var}) * load(b, {vk->var, vj->var}),
                     {vi->var, vj->var});
  auto point = [](const Ref<Buffer>& buffer, const Ref<IterVar>& x, const Ref<IterVar>& y) {
    return make<BufferRegion>({buffer, {range(x->var, i32(1)), range(y->var, i32(1))}});
  };
  block.reads = {point(a, vi, vk), point(b, vk, vj)};
  block.writes = {point(c, vi, vj)};
  Ref<Var> i = var("i"), j = var("j"), kk = var("k");
  Stmt body = make<BlockRealize>({{i, j, kk}, bool_imm(true), make(std::move(block))});
  body = loop(i, i32(m), loop(j, i32(n), loop(kk, i32(k), body)));
  Block root;
  root.name_hint = "root";
  root.body = body;
  return test_function("matmul", {a, b, c}, realized(make(std::move(root))));
}

TEST(Codegen, AProductMatchesLoops) {
  codegen::LoadedKernel kernel = build(matmul(5, 7, 9));
  DataType f32 = DataType::float_(32);
  TestTensor a(f32, {5, 9}), b(f32, {9, 7}), c(f32, {5, 7});
  for (int i = 0; i < 45; ++i) a.data<float>()[i] = static_cast<float>(i % 7 - 3);
  for (int i = 0; i < 63; ++i) b.data<float>()[i] = static_cast<float>(i % 5 - 2);
  ASSERT_EQ(call(kernel, {&a, &b, &c}), "");
  for (int i = 0; i < 5; ++i) {
    for (int j = 0; j < 7; ++j) {
      float sum = 0;
      for (int k = 0; k < 9; ++k) sum += a.data<float>()[i * 9 + k] * b.data<float>()[k * 7 + j];
      EXPECT_EQ(c.data<float>()[i * 7 + j], sum) << i << ", " << j;
    }
  }
}

TEST(Codegen, RefusesAnArgumentOfAnotherShape) {
  codegen::LoadedKernel kernel = build(matmul(5, 7, 9));
  TestTensor a(DataType::float_(32), {5, 9}), b(DataType::float_(32), {9, 8}), c(DataType::float_(32), {5, 7});
  EXPECT_NE(call(kernel, {&a, &b, &c}).find("B"), std::string::npos);
}

}  // namespace
}  // namespace tilewright
