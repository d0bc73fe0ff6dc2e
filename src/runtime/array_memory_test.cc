#include "runtime/array_memory.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

namespace tilewright::runtime {
namespace {

struct Block {
  unsigned char* memory;
  size_t bytes;
  unsigned char mark;

  bool holds_mark() const {
    for (size_t i = 0; i < bytes; i += 61)
      if (memory[i] != mark) return false;
    return bytes == 0 || memory[bytes - 1] == mark;
  }
};

TEST(ArrayMemory, GivesAFreedBlockToTheNextArray) {
  void* first = acquire_array(1 << 20, false);
  ASSERT_NE(first, nullptr);
  std::memset(first, 7, 1 << 20);
  release_array(first);
  auto* second = static_cast<unsigned char*>(acquire_array(1 << 20, true));
  EXPECT_EQ(second, first);
  for (size_t i = 0; i < 1 << 20; i += 63) ASSERT_EQ(second[i], 0);
  release_array(second);
}

TEST(ArrayMemory, BlocksOfAllSizesAreApartAlignedAndZeroWhereAsked) {
  std::mt19937 random(3);
  std::vector<Block> blocks;
  for (int step = 0; step < 3000; ++step) {
    if (blocks.size() < 24 && random() % 2) {
      const int bits = static_cast<int>(random() % (random() % 40 == 0 ? 26 : 21));
      const size_t bytes = random() % (size_t{2} << bits);
      const bool zeroed = random() % 2;
      auto* memory = static_cast<unsigned char*>(acquire_array(bytes, zeroed));
      ASSERT_NE(memory, nullptr);
      ASSERT_EQ(reinterpret_cast<uintptr_t>(memory) % 64, 0u);
      for (size_t i = 0; zeroed && i < bytes; i += 61) ASSERT_EQ(memory[i], 0);
      blocks.push_back({memory, bytes, static_cast<unsigned char>(1 + step % 255)});
      std::memset(memory, blocks.back().mark, bytes);
    } else if (!blocks.empty()) {
      std::swap(blocks[random() % blocks.size()], blocks.back());
      Block& block = blocks.back();
      ASSERT_TRUE(block.holds_mark());
      if (random() % 4 == 0) {
        const size_t bytes = 1 + random() % (2 * block.bytes + 1);
        auto* moved = static_cast<unsigned char*>(resize_array(block.memory, bytes));
        ASSERT_NE(moved, nullptr);
        const size_t kept = std::min(bytes, block.bytes);
        ASSERT_TRUE((Block{moved, kept, block.mark}.holds_mark()));
        std::memset(moved, block.mark, bytes);
        block = {moved, bytes, block.mark};
      } else {
        release_array(block.memory);
        blocks.pop_back();
      }
    }
  }
  for (const Block& block : blocks) release_array(block.memory);
}

TEST(ArrayMemory, KeepsNoMoreThanALimit) {
  std::vector<void*> blocks;
  for (int i = 0; i < 40; ++i) blocks.push_back(acquire_array(size_t{20} << 20, false));
  for (void* block : blocks) release_array(block);
  EXPECT_GT(idle_array_memory(), size_t{20} << 20);
  EXPECT_LE(idle_array_memory(), size_t{256} << 20);
}

TEST(ArrayMemory, RefusesWhatNoMemoryHolds) {
  EXPECT_EQ(acquire_array(SIZE_MAX / 2, false), nullptr);
  EXPECT_EQ(acquire_array(size_t{1} << 60, true), nullptr);
  release_array(nullptr);
}

}  // namespace
}  // namespace tilewright::runtime
