#include "arith/same_program.h"

#include <gtest/gtest.h>

#include "ir/build.h"

namespace tilewright::arith {
namespace {

struct Loop {
  Ref<Var> i = var("i");
  Ref<Buffer> a = decl_buffer({i32(100)}, DataType::float_(32), "A");
  /// for i in range(extent): A[f(i)] = value, as a function
  template <class F>
  Ref<PrimFunc> func(F&& f, double value = 0, int extent = 16) const {
    Stmt store = make<BufferStore>({a, constant(DataType::float_(32), value), {f(Expr(i))}, {}});
    Ref<Var> handle = var("A_handle", DataType::handle());
    Stmt loop = make<For>({i, i32(0), i32(extent), ForKind::kSerial, {}, {}, store});
    PrimFunc result;
    result.params = {handle};
    result.buffer_map = {{handle, a}};
    result.ret_type = make<TupleType>({{}});
    result.body = loop;
    return make(std::move(result));
  }
};

TEST(SameProgram, IndicesAreProvedUnderTheirLoops) {
  Loop l, r;
  auto plain = l.func([](const Expr& i) { return i; });
  auto parts = r.func([](const Expr& i) { return floordiv(i, i32(4)) * 4 + floormod(i, i32(4)); });
  EXPECT_TRUE(find_mismatch(plain, parts));
  SameProgram same = compare_up_to_indices(plain, parts, false);
  EXPECT_FALSE(same.mismatch);
  EXPECT_EQ(same.functions, 1);
  // i % 16 is i below 16 only.
  auto wrapped = [](const Expr& i) { return floormod(i, i32(16)); };
  EXPECT_FALSE(compare_up_to_indices(plain, Loop().func(wrapped), false).mismatch);
  EXPECT_TRUE(compare_up_to_indices(l.func([](const Expr& i) { return i; }, 0, 17), Loop().func(wrapped, 0, 17), false)
                  .mismatch);
}

TEST(SameProgram, NothingElseMayDiffer) {
  Loop l;
  auto plain = l.func([](const Expr& i) { return i; });
  EXPECT_TRUE(compare_up_to_indices(plain, Loop().func([](const Expr& i) { return i + 1; }), false).mismatch);
  EXPECT_TRUE(compare_up_to_indices(plain, Loop().func([](const Expr& i) { return i; }, 1), false).mismatch);
  SameProgram exact = compare_up_to_indices(plain, Loop().func([](const Expr& i) { return i; }), false);
  EXPECT_FALSE(exact.mismatch);
  EXPECT_EQ(exact.functions, 0);
}

}  // namespace
}  // namespace tilewright::arith
