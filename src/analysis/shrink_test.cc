#include "analysis/shrink.h"

#include <gtest/gtest.h>

#include "ir/build.h"

namespace tilewright::analysis {
namespace {

/// for i in range(n): A[i // m, i % m] = 0, with A of shape (n // m, m)
Ref<PrimFunc> fill(int n, int m) {
  Ref<Buffer> a = decl_buffer({i32(n / m), i32(m)}, DataType::float_(32), "A");
  Ref<Var> handle = pointer_var("a", DataType::void_(), ""), i = var("i");
  Stmt body = loop(i, i32(n), store(a, float_imm(DataType::float_(32), 0), {floordiv(i, m), floormod(i, m)}));
  return make<PrimFunc>({{handle}, {{handle, a}}, make<TupleType>({{}}), {}, body});
}

TEST(Shrink, ProductsOfExtentsStayProducts) {
  Ref<PrimFunc> small = shrink(fill(1024 * 512, 512), 16);
  int64_t n = *const_int(small->body.as<For>()->extent);
  const Ref<Buffer>& a = small->buffer_map[0].second;
  int64_t rows = *const_int(a->shape[0]), columns = *const_int(a->shape[1]);
  EXPECT_EQ(n, rows * columns);
  EXPECT_NE(rows, columns);
  EXPECT_LE(columns, 32);
  // The constants of the indices followed.
  EXPECT_EQ(*const_int(small->body.as<For>()->body.as<BufferStore>()->indices[1].as<FloorMod>()->b), columns);
}

TEST(Shrink, SmallProgramsStayAsTheyAre) {
  Ref<PrimFunc> func = fill(12, 4);
  EXPECT_EQ(shrink(func, 16), func);
}

}  // namespace
}  // namespace tilewright::analysis
