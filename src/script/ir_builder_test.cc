// The builder from C++ alone. What frames refuse is tested from Python (tests/script/test_ir_builder.py).
#include "script/ir_builder.h"

#include <gtest/gtest.h>

#include "ir/structural.h"
#include "script/printer.h"
#include "support/deep_stack.h"

namespace tilewright::script {
namespace {

Ref<Buffer> matrix(int64_t rows, int64_t columns) { return make_buffer({.shape = {i32(rows), i32(columns)}}); }

TEST(IRBuilder, Matmul) {
  IRBuilder builder;
  {
    With in_builder(builder);
    With function(prim_func());
    func_name("matmul");
    Ref<Buffer> A = arg("A", matrix(16, 32)), B = arg("B", matrix(32, 8)), C = arg("C", matrix(16, 8));
    With loops(grid({i32(16), i32(8), i32(32)}));
    With update(block("C"));
    auto v = remap("SSR", {loops.value<Var>(0), loops.value<Var>(1), loops.value<Var>(2)});
    for (size_t i = 0; i < 3; ++i) builder.name(std::string("v") + "ijk"[i], v[i]);
    {
      With first(init());
      buffer_store(C, float_imm(C->dtype, 0), {v[0], v[1]});
    }
    buffer_store(C, load(C, {v[0], v[1]}) + load(A, {v[0], v[2]}) * load(B, {v[2], v[1]}), {v[0], v[1]});
  }
  NodeRef func = builder.get().value_or_throw();
  EXPECT_EQ(print(func), R"(# from tilewright.script import tir as T

@T.prim_func
def matmul(A: T.Buffer((16, 32), "float32"), B: T.Buffer((32, 8), "float32"), C: T.Buffer((16, 8), "float32")):
    # with T.block("root"):
    for v, v_1, v_2 in T.grid(16, 8, 32):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [v, v_1, v_2])
            T.reads(A[vi, vk], B[vk, vj])
            T.writes(C[vi, vj])
            with T.init():
                C[vi, vj] = T.float32(0.0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj])");
}

TEST(IRBuilder, WhatADestructorFindsComesOutOfGet) {
  IRBuilder builder;
  {
    With in_builder(builder);
    With function(prim_func());
    With unbound(block("b"));
    axis(IterType::kDataPar, range_of(i32(4)), {});
  }
  auto result = builder.get();
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, "builder/missing-binding");
}

TEST(IRBuilder, AnExceptionDropsTheFrames) {
  IRBuilder builder;
  try {
    With in_builder(builder);
    With function(prim_func());
    With loop(serial(i32(0), i32(4)));
    throw 1;
  } catch (int) {
  }
  EXPECT_EQ(IRBuilder::current(), nullptr);
  EXPECT_EQ(builder.get().error().code, "builder/empty");
}

TEST(IRBuilder, ConciseFramesEndWithTheFrameAround) {
  IRBuilder builder;
  {
    With in_builder(builder);
    With loop(serial(i32(0), i32(4)));
    FramePtr bound = open(let(loop.value<Var>() + 1));
    evaluate(Expr(bound->values[0]));
  }
  NodeRef result = builder.get().value_or_throw();
  ASSERT_TRUE(result.is<For>());
  EXPECT_TRUE(result.as<For>()->body.is<LetStmt>());
}

TEST(IRBuilder, TakesTenThousandLevels) {
  IRBuilder builder;
  {
    With in_builder(builder);
    With function(prim_func());
    for (int i = 0; i < 10000; ++i) open(let(i32(i)));
    evaluate(i32(0));
  }
  EXPECT_GT(builder.get().value_or_throw().depth(), 10000u);
}

}  // namespace
}  // namespace tilewright::script
