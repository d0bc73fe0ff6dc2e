// A matrix product from C++ alone: build the program, schedule it, compile it, run it. No Python is involved.
//
//   lib=$PWD/python/tilewright
//   g++ -std=c++20 -I src examples/cpp/matmul.cc -L $lib -ltilewright -lfmt -Wl,-rpath,$lib -o matmul && ./matmul
#include <cmath>
#include <cstdio>
#include <vector>

#include "codegen/codegen.h"
#include "codegen/loader.h"
#include "lower/pipeline.h"
#include "schedule/instructions.h"
#include "schedule/schedule.h"
#include "script/ir_builder.h"
#include "script/printer.h"
#include "target/target.h"

using namespace tilewright;

constexpr int kSize = 256;

/// C[i, j] = sum over k of A[i, k] * B[k, j]
Ref<PrimFunc> build_matmul() {
  using namespace script;
  IRBuilder builder;
  {
    With in_builder(builder);
    With function(prim_func());
    func_name("matmul");
    BufferSpec square{.shape = {i32(kSize), i32(kSize)}};
    Ref<Buffer> A = arg("A", make_buffer(square, "A"));
    Ref<Buffer> B = arg("B", make_buffer(square, "B"));
    Ref<Buffer> C = arg("C", make_buffer(square, "C"));
    With loops(grid({i32(kSize), i32(kSize), i32(kSize)}));
    With compute(block("C"));
    std::vector<Expr> loop_vars;
    for (const NodeRef& loop : loops.values()) loop_vars.push_back(Expr(loop));
    std::vector<Ref<Var>> v = remap("SSR", loop_vars);
    {
      With first(init());
      buffer_store(C, float_imm(DataType::float_(32), 0), {v[0], v[1]});
    }
    buffer_store(C, load(C, {v[0], v[1]}) + load(A, {v[0], v[2]}) * load(B, {v[2], v[1]}), {v[0], v[1]});
  }
  return builder.get().value_or_throw().cast<PrimFunc>();
}

/// Tiles of 4 x 16, vectorized over the columns.
schedule::Schedule schedule_matmul(const Ref<Module>& module) {
  using namespace schedule;
  auto sch = Schedule::make(module).value_or_throw();
  BlockRV c = sch.apply(GetBlock{.name = "C"}).value_or_throw();
  std::vector<LoopRV> loops = sch.apply(GetLoops{.block = c}).value_or_throw();
  auto tile = [&](LoopRV loop, int64_t factor) {
    return sch.apply(Split{.loop = loop, .factors = {{None{}, Factor(factor)}}}).value_or_throw();
  };
  auto rows = tile(loops[0], 4), columns = tile(loops[1], 16);
  sch.apply(Reorder{.ordered_loops = {{rows[0], columns[0], loops[2], rows[1], columns[1]}}}).value_or_throw();
  sch.apply(Vectorize{.loop = columns[1]}).value_or_throw();
  sch.apply(DecomposeReduction{.block = c, .loop = loops[2]}).value_or_throw();
  return sch;
}

int main() {
  Ref<Module> module = as_module(build_matmul());
  schedule::Schedule sch = schedule_matmul(module);
  std::printf("%s\n", script::print(sch.module()).c_str());

  Target target = Target::host();
  Ref<Module> lowered = lower::lower(sch.module(), target).value_or_throw();
  codegen::ObjectCode object = codegen::compile(lowered, target, {}).value_or_throw();
  codegen::LoadedKernel kernel = codegen::load_object(object.bytes).value_or_throw();

  std::vector<float> a(kSize * kSize), b(kSize * kSize), c(kSize * kSize);
  for (int i = 0; i < kSize * kSize; ++i) {
    a[i] = static_cast<float>(i % 7 - 3);
    b[i] = static_cast<float>(i % 5 - 2);
  }
  int64_t shape[2] = {kSize, kSize};
  DLTensor tensors[3] = {};
  float* data[3] = {a.data(), b.data(), c.data()};
  const DLTensor* arguments[3];
  for (int i = 0; i < 3; ++i) {
    tensors[i].data = data[i];
    tensors[i].device = {kDLCPU, 0};
    tensors[i].ndim = 2;
    tensors[i].dtype = {kDLFloat, 32, 1};
    tensors[i].shape = shape;
    arguments[i] = &tensors[i];
  }
  int32_t status = kernel.find("matmul")->entry(nullptr, arguments, nullptr);
  if (status != 0) {
    std::printf("the kernel failed with code %d\n", status);
    return 1;
  }
  for (int i = 0; i < kSize; i += 51) {
    for (int j = 0; j < kSize; ++j) {
      float expected = 0;
      for (int k = 0; k < kSize; ++k) expected += a[i * kSize + k] * b[k * kSize + j];
      if (c[i * kSize + j] != expected) {
        std::printf("C[%d, %d] is %g, expected %g\n", i, j, c[i * kSize + j], expected);
        return 1;
      }
    }
  }
  std::printf("the product is right\n");
  return 0;
}
