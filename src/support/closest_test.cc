#include "support/closest.h"

#include <gtest/gtest.h>

namespace tilewright {
namespace {

TEST(Closest, FindsWhatWasMeant) {
  const std::vector<std::string> known = {"haswell", "skylake", "skylake-avx512", "znver3", "znver4", "znver5"};
  EXPECT_EQ(closest_name("zen5", known), "znver5");
  EXPECT_EQ(closest_name("Zen4", known), "znver4");
  EXPECT_EQ(closest_name("haswel", known), "haswell");
  EXPECT_EQ(closest_name("skylake512", known), "skylake-avx512");
  EXPECT_EQ(closest_name("znver6", known), "znver5");
  EXPECT_EQ(closest_name("pentium", known), "");
  EXPECT_EQ(closest_name("", known), "");
}

}  // namespace
}  // namespace tilewright
