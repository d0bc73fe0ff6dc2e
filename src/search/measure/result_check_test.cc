#include "search/measure/result_check.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "ir/numeric.h"

namespace tilewright::search {
namespace {

const DataType kF32 = DataType::float_(32), kF16 = DataType::float_(16);

template <class T>
std::span<const std::byte> bytes(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}

CheckReport check(const std::vector<float>& expected, const std::vector<float>& got, Tolerance tolerance = {},
                  std::vector<int64_t> shape = {}) {
  if (shape.empty()) shape = {static_cast<int64_t>(expected.size())};
  return check_result("C", kF32, shape, bytes(expected), bytes(got), allowance_for(kF32, bytes(expected), tolerance));
}

/// C = A B in float32 with each sum split into `parts` partial sums, so that two values of `parts` are two orders of
/// summation.
std::vector<float> matmul(int m, int n, int k, const std::vector<float>& a, const std::vector<float>& b, int parts,
                          int skip_last = 0) {
  std::vector<float> c(m * n);
  for (int i = 0; i < m; ++i) {
    for (int j = 0; j < n; ++j) {
      std::vector<float> partial(parts, 0.0f);
      for (int r = 0; r < k - skip_last; ++r) partial[r % parts] += a[i * k + r] * b[r * n + j];
      for (float p : partial) c[i * n + j] += p;
    }
  }
  return c;
}

TEST(ResultCheck, EqualIsRight) {
  const CheckReport report = check({1, -0.0f, INFINITY, -INFINITY, NAN}, {1, 0.0f, INFINITY, -INFINITY, -NAN});
  EXPECT_TRUE(report.ok()) << report.message;
  EXPECT_EQ(report.total, 5);
  EXPECT_EQ(report.largest, 0);
}

TEST(ResultCheck, NamesTheFirstWrongElement) {
  const CheckReport report = check({1, 2, 3, 4, 5, 6}, {1, 2, 3, 4, 5.5, 7}, {1e-6, 0}, {2, 3});
  EXPECT_EQ(report.wrong, 2);
  EXPECT_EQ(report.first_wrong, 4);
  EXPECT_EQ(report.message,
            "C[1, 1]: expected 5, got 5.5 (a difference of 5e-06 is allowed); 2 of 6 elements are wrong");
}

TEST(ResultCheck, NanAndInfinityInTheWrongPlaceAreWrongWhateverTheTolerance) {
  const Tolerance loose{1e30, 1e30};
  EXPECT_EQ(check({1, 2}, {1, NAN}, loose).message,
            "C[1]: expected 2, got nan (a difference of 3.6e+30 is allowed); "
            "1 of 2 elements is wrong");
  EXPECT_FALSE(check({1, NAN}, {1, 2}, loose).ok());
  EXPECT_FALSE(check({1, INFINITY}, {1, 2}, loose).ok());
  EXPECT_FALSE(check({1, INFINITY}, {1, -INFINITY}, loose).ok());
  EXPECT_FALSE(check({1, 2}, {1, INFINITY}, loose).ok());
}

TEST(ResultCheck, ToleranceCombinesBothParts) {
  // rms = 5: allowed are 0.1 * |e| + 0.2 * 5.
  EXPECT_TRUE(check({1, 7}, {2.09f, 7}, {0.1, 0.2}).ok());
  EXPECT_FALSE(check({1, 7}, {2.11f, 7}, {0.1, 0.2}).ok());
  EXPECT_TRUE(check({1, 7}, {1, 8.69f}, {0.1, 0.2}).ok());
  EXPECT_FALSE(check({1, 7}, {1, 8.71f}, {0.1, 0.2}).ok());
  EXPECT_NEAR(check({1, 7}, {1, 7.85f}, {0.1, 0.2}).largest, 0.5, 1e-6);
}

TEST(ResultCheck, ToleranceFormula) {
  const double u = std::ldexp(1.0, -24);
  const Tolerance tolerance = tolerance_for(kF32, kF32, 1024);
  EXPECT_DOUBLE_EQ(tolerance.spread, 16 * 32 * u);
  EXPECT_DOUBLE_EQ(tolerance.relative, 16 * 32 * u + 2 * u);
  // A 16-bit result of a float32 sum is rounded once.
  EXPECT_DOUBLE_EQ(tolerance_for(kF16, kF32, 1024).relative, 16 * 32 * u + 2 * std::ldexp(1.0, -11));
  EXPECT_EQ(tolerance_for(DataType::int_(32), DataType::int_(32), 1024).relative, 0);
  EXPECT_EQ(unit_roundoff(DataType::bfloat16()), std::ldexp(1.0, -8));
  EXPECT_EQ(unit_roundoff(DataType::float_(64)), std::ldexp(1.0, -53));
  EXPECT_EQ(tolerance.to_json().substr(0, 13), "{\"relative\":3");
}

TEST(ResultCheck, AcceptsOtherOrdersAndRefusesSubtleMistakes) {
  std::mt19937 random(1);
  std::uniform_real_distribution<float> uniform(-1, 1);
  const int m = 17, n = 16;
  for (int k : {1, 3, 64, 1000, 5000}) {
    std::vector<float> a(m * k), b(k * n);
    for (float& x : a) x = uniform(random);
    for (float& x : b) x = uniform(random);
    const auto expected = matmul(m, n, k, a, b, 1);
    const Tolerance tolerance = tolerance_for(kF32, kF32, k);
    for (int parts : {2, 8, 64}) {
      const auto report = check(expected, matmul(m, n, k, a, b, parts), tolerance, {m, n});
      EXPECT_TRUE(report.ok()) << k << " " << report.message;
      EXPECT_LT(report.largest, 0.5);
    }
    // The last step of the reduction is missing.
    EXPECT_GT(check(expected, matmul(m, n, k, a, b, 8, 1), tolerance, {m, n}).wrong, m * n / 2) << k;
    // The last row is the row before.
    auto shifted = expected;
    std::copy_n(expected.begin() + (m - 2) * n, n, shifted.begin() + (m - 1) * n);
    const auto report = check(expected, shifted, tolerance, {m, n});
    EXPECT_EQ(report.message.substr(0, 7), "C[16, 0") << report.message;
    // One element of the last row is off by a thousandth of its size.
    auto off = expected;
    off.back() += 1e-3f * (std::fabs(off.back()) + std::sqrt(k / 9.0f));
    EXPECT_EQ(check(expected, off, tolerance, {m, n}).wrong, 1) << k;
  }
}

/// What stands for "nothing" says little of the size of sums, and of their roundings.
TEST(ResultCheck, ConstantsThatMaskElementsAllowNoOthers) {
  const Tolerance tolerance = tolerance_for(kF32, kF32, 64);
  for (float nothing : {-1e9f, -3.4028235e38f}) {
    const std::vector<float> expected{1, nothing, 2, nothing, -3, -INFINITY};
    auto wrong = expected;
    EXPECT_TRUE(check(expected, wrong, tolerance).ok());
    wrong[2] = 2.001f;
    EXPECT_EQ(check(expected, wrong, tolerance).first_wrong, 2);
    wrong = expected;
    wrong[3] = 1.001f * nothing;
    EXPECT_EQ(check(expected, wrong, tolerance).first_wrong, 3);
  }
  // Several constants; but sums that differ are none, and small ones among them may be what large terms left.
  EXPECT_FALSE(check({1, -1e9f, -1e9f, 1e30f, 1e30f}, {1.001f, -1e9f, -1e9f, 1e30f, 1e30f}, tolerance).ok());
  EXPECT_TRUE(check({1, -1e9f, -1.1e9f}, {1.5, -1e9f, -1.1e9f}, tolerance).ok());
  EXPECT_TRUE(check({1, -1000, -1000}, {1 + 1e-3f, -1000, -1000}, tolerance).ok());
}

TEST(ResultCheck, SquaresOfFloat64NeitherOverflowNorVanish) {
  const DataType type = DataType::float_(64);
  for (double size : {1e300, 1e-300}) {
    const std::vector<double> expected{size, 2 * size}, close{size * (1 + 1e-15), 2 * size},
        wrong{1.1 * size, 2 * size};
    const Allowance allowance = allowance_for(type, bytes(expected), {0, 1e-14});
    const std::vector<int64_t> shape{2};
    EXPECT_TRUE(check_result("C", type, shape, bytes(expected), bytes(close), allowance).ok());
    EXPECT_FALSE(check_result("C", type, shape, bytes(expected), bytes(wrong), allowance).ok());
  }
}

/// Between the smallest numbers a rounding is a whole step, however small the tolerance is.
TEST(ResultCheck, TheSmallestNumbersMayDifferByAStep) {
  const DataType type = *DataType::parse("float8_e4m3fn");
  const std::vector<uint8_t> expected{3, 0x38}, step{4, 0x38}, two{5, 0x38};
  const Allowance allowance = allowance_for(type, bytes(expected), tolerance_for(type, kF32, 1));
  const std::vector<int64_t> shape{2};
  EXPECT_TRUE(check_result("C", type, shape, bytes(expected), bytes(step), allowance).ok());
  EXPECT_FALSE(check_result("C", type, shape, bytes(expected), bytes(two), allowance).ok());
}

TEST(ResultCheck, IntegersAreExact) {
  const std::vector<int64_t> expected{1, INT64_MAX}, got{1, INT64_MAX - 1};
  const std::vector<int64_t> shape{2};
  const auto report = check_result("T", DataType::int_(64), shape, bytes(expected), bytes(got), {});
  EXPECT_EQ(report.message, "T[1]: expected 9223372036854775807, got 9223372036854775806; 1 of 2 elements is wrong");
  EXPECT_TRUE(check_result("T", DataType::int_(64), shape, bytes(got), bytes(got), {}).ok());
}

TEST(ResultCheck, AScalarHasNoIndex) {
  const std::vector<float> expected{1}, got{2};
  EXPECT_TRUE(check_result("s", kF32, {}, bytes(expected), bytes(got), {}).message.starts_with("s[]: expected 1"));
}

/// Every type: the fill is wrong everywhere, also where NaN is expected, and is recognized.
TEST(ResultCheck, TheFillIsWrongForEveryType) {
  for (const char* name : {"float16", "float32", "float64", "bfloat16", "float8_e4m3fn", "float8_e5m2", "float4_e2m1fn",
                           "int8", "int16", "int32", "int64", "uint8", "uint64", "bool", "int4"}) {
    const DataType dtype = *DataType::parse(name);
    const int size = dtype.bytes();
    std::vector<std::byte> expected(6 * size), output(6 * size);
    for (int i = 0; i < 6; ++i)
      store_element(dtype, i == 5 ? NAN : 0.5 * i, dtype.is_bool() ? i % 2 : i, expected.data() + i * size);
    fill_with_wrong_values(dtype, expected, output);
    const std::vector<int64_t> shape{6};
    const CheckReport report =
        check_result("C", dtype, shape, expected, output, allowance_for(dtype, expected, {0.01, 0.01}));
    EXPECT_EQ(report.wrong, 6) << name << ": " << report.message;
    EXPECT_TRUE(report.message.starts_with("C[0] was never written (expected ")) << name << ": " << report.message;
    EXPECT_TRUE(check_result("C", dtype, shape, expected, expected, {}).ok()) << name;
  }
}

/// Candidates have to leave alone exactly the elements that the reference program leaves alone.
TEST(ResultCheck, WhatWasLeftAloneIsToBeLeftAlone) {
  for (const char* name : {"float16", "bfloat16", "float32", "float64"}) {
    const DataType dtype = *DataType::parse(name);
    const size_t size = static_cast<size_t>(dtype.bytes());
    std::vector<std::byte> nothing(3 * size), expected(3 * size), before(3 * size);
    fill_with_wrong_values(dtype, nothing, expected);
    store_element(dtype, 2.0, 0, expected.data());
    fill_with_wrong_values(dtype, expected, before);
    const std::vector<int64_t> shape{3};
    std::vector<std::byte> got = before;
    EXPECT_EQ(check_result("C", dtype, shape, expected, got, {}).first_wrong, 0) << name;
    store_element(dtype, 2.0, 0, got.data());
    EXPECT_TRUE(check_result("C", dtype, shape, expected, got, {}).ok()) << name;
    store_element(dtype, 1.0, 0, got.data() + size);
    EXPECT_EQ(check_result("C", dtype, shape, expected, got, {}).first_wrong, 1) << name;
  }
}

TEST(ResultCheck, ConvertedTypesCompareByValue) {
  std::vector<std::byte> expected(4), got(4);
  store_element(kF16, 2.0, 0, expected.data());
  store_element(kF16, 3.0, 0, expected.data() + 2);
  got = expected;
  store_element(kF16, 3.5, 0, got.data() + 2);
  const std::vector<int64_t> shape{2};
  EXPECT_EQ(check_result("C", kF16, shape, expected, got, {}).message,
            "C[1]: expected 3, got 3.5; 1 of 2 elements is wrong");
  EXPECT_TRUE(check_result("C", kF16, shape, expected, got, {0.2, 0}).ok());
}

TEST(ResultCheck, CanBeCanceled) {
  std::atomic<bool> cancel{true};
  const std::vector<float> values(10);
  const std::vector<int64_t> shape{10};
  const auto report = check_result("C", kF32, shape, bytes(values), bytes(values), {}, &cancel);
  EXPECT_TRUE(report.canceled);
  EXPECT_FALSE(report.ok());
}

}  // namespace
}  // namespace tilewright::search
