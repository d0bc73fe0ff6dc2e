#include "search/measure/arguments.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "ir/numeric.h"

namespace tilewright::search {
namespace {

TEST(RandomValues, AreSignedAndOfTheRightSize) {
  for (const char* name : {"float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "int64", "int8", "int4",
                           "uint8", "uint1", "bool"}) {
    const DataType dtype = *DataType::parse(name);
    const auto values = random_values(dtype, 1000, 1);
    ASSERT_EQ(values.size(), 1000u * static_cast<size_t>(dtype.bytes())) << name;
    std::set<double> seen;
    for (int i = 0; i < 1000; ++i) {
      const std::byte* at = values.data() + i * dtype.bytes();
      seen.insert(dtype.is_float() ? load_float(dtype, at) : static_cast<double>(load_int(dtype, at)));
    }
    EXPECT_GE(*seen.begin(), -8) << name;
    EXPECT_LE(*seen.rbegin(), 8) << name;
    EXPECT_EQ(*seen.begin() < 0, !dtype.is_uint()) << name;
    EXPECT_GT(*seen.rbegin(), 0) << name;
    const bool whole = std::all_of(seen.begin(), seen.end(), [](double x) { return x == std::floor(x); });
    EXPECT_EQ(whole, !dtype.is_float() || dtype.bits < 32) << name;
  }
}

TEST(RandomValues, DependOnTheSeedOnly) {
  const DataType f32 = DataType::float_(32);
  EXPECT_EQ(random_values(f32, 100, 7), random_values(f32, 100, 7));
  EXPECT_NE(random_values(f32, 100, 7), random_values(f32, 100, 8));
  EXPECT_FLOAT_EQ(static_cast<float>(load_float(f32, random_values(f32, 1, 0).data())), 0.76662160f);
}

TEST(PlaceArguments, EndsAreCloseToTheNextPage) {
  const DataType f32 = DataType::float_(32), f64 = DataType::float_(64);
  size_t total = 0;
  const std::vector<ArgumentSpec> specs{{"A", f32, {1024}},
                                        {"B", f32, {1000}},
                                        {"C", f32, {0}},
                                        {"D", f64, {}},
                                        {"E", f32, {5}, ArgumentRole::kInput, 4}};
  const auto places = place_arguments(specs, total);
  for (size_t i = 0; i < specs.size(); ++i) {
    const size_t end = places[i].lead + specs[i].bytes();
    EXPECT_LE(end, places[i].pages);
    EXPECT_LT(places[i].pages - end, static_cast<size_t>(specs[i].alignment));
    EXPECT_EQ(places[i].lead % static_cast<size_t>(specs[i].alignment), 0u);
  }
  EXPECT_EQ(places[4].lead + specs[4].bytes(), places[4].pages);
  EXPECT_EQ(total, places[4].offset + places[4].pages);
}

}  // namespace
}  // namespace tilewright::search
