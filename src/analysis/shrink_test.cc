#include "analysis/shrink.h"

#include <gtest/gtest.h>

#include "ir/build.h"

namespace tilewright::analysis {
namespace {

/// for i in range(n): A[i] = 0, or A[i // m, i % m] = 0 with A of shape (n // m, m)
Ref<PrimFunc> fill(int n, int m) {
  std::vector<Expr> shape = m ? std::vector<Expr>{i32(n / m), i32(m)} : std::vector<Expr>{i32(n)};
  Ref<Buffer> a = decl_buffer(shape, DataType::float_(32), "A");
  Ref<Var> handle = pointer_var("a", DataType::void_(), ""), i = var("i");
  std::vector<Expr> indices = m ? std::vector<Expr>{floordiv(i, m), floormod(i, m)} : std::vector<Expr>{i};
  Stmt body = loop(i, i32(n), store(a, float_imm(DataType::float_(32), 0), indices));
  return make<PrimFunc>({{handle}, {{handle, a}}, make<TupleType>({{}}), {}, body});
}

TEST(Shrink, WhatTheLoopAloneIndexesScales) {
  Ref<PrimFunc> small = shrink(fill(1024, 0), 16);
  int64_t n = *const_int(small->body.as<For>()->extent);
  EXPECT_LE(n, 16);
  EXPECT_EQ(*const_int(small->buffer_map[0].second->shape[0]), n);
}

TEST(Shrink, QuotientsKeepTheirSize) {
  Ref<PrimFunc> func = fill(1024 * 512, 512);
  EXPECT_EQ(shrink(func, 16), func);
}

TEST(Shrink, SmallProgramsStayAsTheyAre) {
  Ref<PrimFunc> func = fill(12, 0);
  EXPECT_EQ(shrink(func, 16), func);
}

}  // namespace
}  // namespace tilewright::analysis
