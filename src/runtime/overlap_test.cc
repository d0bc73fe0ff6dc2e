#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <vector>

#include "runtime/signature_for_test.h"

namespace tilewright::runtime {
namespace {

// Every byte of every element, one entry each.
std::vector<uintptr_t> bytes_of(const Tensor& tensor) {
  std::vector<uintptr_t> bytes;
  int64_t width = tensor.view.dtype.bits / 8;
  std::vector<int64_t> index(tensor.shape.size(), 0);
  for (;;) {
    int64_t at = 0;
    for (size_t d = 0; d < index.size(); ++d) at += index[d] * tensor.strides[d];
    uintptr_t address = reinterpret_cast<uintptr_t>(tensor.view.data) + at * width;
    for (int64_t b = 0; b < width; ++b) bytes.push_back(address + b);
    size_t d = index.size();
    while (d > 0 && ++index[d - 1] == tensor.shape[d - 1]) index[--d] = 0;
    if (d == 0) return bytes;
  }
}

std::unique_ptr<Tensor> random_tensor(std::mt19937& random) {
  static const DLDataType kTypes[] = {kU8, kBF16, kF32, kF64};
  int dims = 1 + random() % 3;
  std::vector<int64_t> shape, strides;
  for (int d = 0; d < dims; ++d) {
    shape.push_back(1 + random() % 5);
    strides.push_back(static_cast<int64_t>(random() % 25) - 9);
  }
  uintptr_t address = 0x10000 + random() % 160;
  return std::make_unique<Tensor>(address, kTypes[random() % 4], shape, strides);
}

TEST(Overlap, AgreesWithEnumeration) {
  std::mt19937 random(7);
  int overlapping = 0, total = 20000;
  for (int i = 0; i < total; ++i) {
    auto a = random_tensor(random), b = random_tensor(random);
    std::vector<uintptr_t> of_a = bytes_of(*a), of_b = bytes_of(*b);
    std::set<uintptr_t> set(of_a.begin(), of_a.end());
    bool expected = std::any_of(of_b.begin(), of_b.end(), [&](uintptr_t byte) { return set.count(byte) > 0; });
    ASSERT_EQ(tw_tensors_overlap(&a->view, &b->view), expected) << i;
    ASSERT_EQ(tw_tensors_overlap(&b->view, &a->view), expected) << i;
    overlapping += expected;
  }
  EXPECT_GT(overlapping, total / 10);
  EXPECT_LT(overlapping, total * 9 / 10);
}

TEST(Overlap, WithItselfAgreesWithEnumeration) {
  std::mt19937 random(8);
  int overlapping = 0, total = 20000;
  for (int i = 0; i < total; ++i) {
    auto a = random_tensor(random);
    std::vector<uintptr_t> bytes = bytes_of(*a);
    std::sort(bytes.begin(), bytes.end());
    bool expected = std::adjacent_find(bytes.begin(), bytes.end()) != bytes.end();
    ASSERT_EQ(tw_tensor_overlaps_itself(&a->view), expected) << i;
    overlapping += expected;
  }
  EXPECT_GT(overlapping, total / 10);
  EXPECT_LT(overlapping, total * 9 / 10);
}

TEST(Overlap, OfLargeSlices) {
  // Even and odd columns, tiles, and diagonals of one large matrix.
  constexpr int64_t kN = 30000;
  Tensor even(0x10000, kF32, {kN, kN / 2}, {kN, 2}), odd(0x10004, kF32, {kN, kN / 2}, {kN, 2});
  EXPECT_FALSE(tw_tensors_overlap(&even.view, &odd.view));
  EXPECT_TRUE(tw_tensors_overlap(&even.view, &even.view));
  Tensor left(0x10000, kF32, {kN, 100}, {kN, 1}), right(0x10000 + 400, kF32, {kN, kN - 100}, {kN, 1});
  EXPECT_FALSE(tw_tensors_overlap(&left.view, &right.view));
  Tensor diagonal(0x10000, kF32, {kN}, {kN + 1}), above(0x10004, kF32, {kN - 1}, {kN + 1});
  EXPECT_FALSE(tw_tensors_overlap(&diagonal.view, &above.view));
  EXPECT_TRUE(tw_tensors_overlap(&diagonal.view, &even.view));
}

TEST(Overlap, ContrivedStridesCountAsOverlapping) {
  // A subset-sum problem with no solution that 20,000 steps do not settle.
  std::vector<int64_t> strides, shape;
  for (int i = 0; i < 30; ++i) {
    strides.push_back((int64_t{1} << 30) + 2 * (int64_t{7919} * i % 30011) + (i == 29));
    shape.push_back(2);
  }
  Tensor a(0x10000, kU8, shape, strides);
  int64_t half = 0;
  for (int i = 0; i < 15; ++i) half += strides[i];
  Tensor b(0x10000 + half + 5, kU8, {1}, {1});
  EXPECT_TRUE(tw_tensors_overlap(&a.view, &b.view));
}

}  // namespace
}  // namespace tilewright::runtime
