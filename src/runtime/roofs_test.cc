#include "runtime/roofs.h"

#include <gtest/gtest.h>

#include <cmath>

#include "runtime/abi.h"
#include "support/host_cpu.h"

namespace {

// How fast the machine is, and how busy, is not for a test to say: only what must hold however slow it is.
void expect_sound(const tw_roofs& roofs) {
  const tw_host_cpu* cpu = tw_host_cpu_info();
  bool avx2 = tw_has_cpu_feature(tw_host_cpu_features(), TW_CPU_fma);
  bool avx512 = tw_has_cpu_feature(tw_host_cpu_features(), TW_CPU_avx512f);
  EXPECT_EQ(roofs.best_level, avx512 ? TW_LEVEL_AVX512 : avx2 ? TW_LEVEL_AVX2 : TW_LEVEL_BASELINE);
  for (int level = 0; level < TW_NUM_LEVELS; ++level) {
    EXPECT_EQ(roofs.f32_flops[level] > 0, level <= roofs.best_level);
    EXPECT_EQ(roofs.f64_flops[level] > 0, level <= roofs.best_level);
  }
  EXPECT_GT(roofs.i32_add, 1e8);
  EXPECT_GT(roofs.l1_read, 1e8);
  EXPECT_EQ(roofs.l2_read > 0, cpu->l2_bytes > 0);
  EXPECT_EQ(roofs.l3_read > 0, cpu->l3_bytes > 0);
  EXPECT_GT(roofs.dram_read, 1e7);
  for (double rate : {roofs.i32_mul, roofs.i8_dot, roofs.bf16_dot, roofs.l1_read, roofs.dram_read}) {
    EXPECT_TRUE(std::isfinite(rate));
  }
  if (avx512 && tw_has_cpu_feature(tw_host_cpu_features(), TW_CPU_avx512bf16)) {
    EXPECT_GT(roofs.bf16_dot, 1e8);
  }
}

TEST(Roofs, OfOneThread) {
  tw_roofs roofs;
  ASSERT_EQ(tw_measure_roofs(1, &roofs), TW_OK);
  EXPECT_EQ(roofs.threads, 1);
  expect_sound(roofs);
}

TEST(Roofs, OfMoreThreadsThanCores) {
  tw_roofs roofs;
  ASSERT_EQ(tw_measure_roofs(tw_count_processors() + 1, &roofs), TW_OK);
  EXPECT_EQ(roofs.threads, tw_count_processors() + 1);
  expect_sound(roofs);
}

TEST(Roofs, OfAllCores) {
  tw_roofs roofs;
  ASSERT_EQ(tw_measure_roofs(0, &roofs), TW_OK);
  EXPECT_EQ(roofs.threads, tw_count_cores());
}

TEST(Roofs, ProbesGiveRates) {
  tw_warm_up(1e-4);
  double rate = tw_probe_peak();
  EXPECT_GT(rate, 1e7);
  EXPECT_TRUE(std::isfinite(rate));
}

}  // namespace
