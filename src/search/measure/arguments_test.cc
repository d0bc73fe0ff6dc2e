#include "search/measure/arguments.h"

#include <gtest/gtest.h>

namespace tilewright::search {
namespace {

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
