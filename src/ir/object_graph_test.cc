#include "ir/object_graph.h"

#include <gtest/gtest.h>

#include <limits>

#include "ir/build.h"
#include "ir/structural.h"

namespace tilewright {
namespace {

const Ref<Var> i = var("i"), j = var("j");

void expect_round_trip(const NodeRef& node) {
  auto text = to_object_graph(node);
  ASSERT_TRUE(text);
  auto read = from_object_graph(*text);
  ASSERT_TRUE(read.ok()) << read.error().render();
  EXPECT_TRUE(structural_equal(*read, node)) << *text;
}

Ref<IndexMap> map_to(std::vector<Expr> finals, NodeRef inverse = {}) {
  return make<IndexMap>({{i, j}, std::move(finals), std::move(inverse)});
}

TEST(ObjectGraph, MapsComeBack) {
  Ref<Var> wide = var("w", DataType::int_(64));
  expect_round_trip(map_to({floordiv(i, i32(4)), j, floormod(i, i32(4))}));
  expect_round_trip(map_to({min(i, j) - i32(1), max(i, i32(-3)) * j}, map_to({j, i})));
  expect_round_trip(map_to({}));
  expect_round_trip(
      make<IndexMap>({{wide}, {cast(DataType::int_(32), wide) + i32(1), wide * i64(int64_t{1} << 40)}, {}}));
  Expr both = logical_or(logical_and(lt(i, i32(3)), ne(j, i32(0))), make<Not>({ge(i, j)}));
  expect_round_trip(map_to({make<Select>({both, i, j}), make<Div>({i, i32(2)}), make<Mod>({i, i32(2)})}));
  expect_round_trip(map_to({make<FloatImm>({DataType::float_(32), 0.1})}));
}

TEST(ObjectGraph, SizesStaySizes) {
  auto text = to_object_graph(map_to({i * size_var("n")}));
  ASSERT_TRUE(text);
  EXPECT_NE(text->find("tir.SizeVar"), std::string::npos);
  Ref<IndexMap> read = from_object_graph(*text).value_or_throw().cast<IndexMap>();
  EXPECT_TRUE(read->final_indices[0].as<Mul>()->b.as<Var>()->is_size);
}

TEST(ObjectGraph, OneNumberForANodeThatOccursTwice) {
  Expr sum = i + j;
  std::string text = *to_object_graph(map_to({sum, sum}));
  EXPECT_EQ(text.find("tir.Add"), text.rfind("tir.Add"));
}

TEST(ObjectGraph, OtherKindsAreNotWritten) {
  Ref<Buffer> buffer = decl_buffer({i32(8)}, DataType::float_(32), "A");
  EXPECT_FALSE(to_object_graph(load(buffer, {i})));
  EXPECT_FALSE(to_object_graph(make<Ramp>({i, i32(1), i32(4)})));
  EXPECT_FALSE(to_object_graph(make<FloatImm>({DataType::float_(32), std::numeric_limits<double>::infinity()})));
  EXPECT_FALSE(to_object_graph(buffer));
  Expr deep = i;
  for (int n = 0; n < 600; ++n) deep = make<Add>({deep, Expr(j)});
  EXPECT_FALSE(to_object_graph(deep));
}

}  // namespace
}  // namespace tilewright
