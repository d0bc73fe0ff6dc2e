// Large blocks are parts of regions of 64 MiB, taken from the first free range that is large enough, so that few pages
// are touched. Blocks too large for that have a region of their own. Small blocks are malloc()'s.
#include "runtime/array_memory.h"

#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

namespace tilewright::runtime {
namespace {

constexpr size_t kCacheLine = 64, kHugePage = size_t{2} << 20;
constexpr size_t kSmall = size_t{32} << 10;      // less is reused by malloc() as well
constexpr size_t kRegion = size_t{64} << 20;     // of blocks up to a quarter of it
constexpr size_t kMostIdle = size_t{256} << 20;  // regions without blocks beyond this are unmapped

size_t rounded_up(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

/// Mapped memory, and which ranges of it are free. Offsets are from its begin.
struct Region {
  size_t size = 0;
  size_t touched = 0;             ///< all bytes from this offset on are still zero
  bool is_divided = false;        ///< into several blocks
  std::map<size_t, size_t> free;  ///< sizes by offset
  std::map<size_t, size_t> used;
};

char* map_region(size_t size) {
  void* mapped = ::mmap(nullptr, size + kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  char* begin = static_cast<char*>(mapped);
  const size_t before = rounded_up(reinterpret_cast<uintptr_t>(begin), kHugePage) - reinterpret_cast<uintptr_t>(begin);
  if (before) ::munmap(begin, before);
  begin += before;
  ::munmap(begin + size, kHugePage - before);
  ::madvise(begin, size, MADV_HUGEPAGE);  // advice: a system without them is fine, too
  return begin;
}

class ArrayMemory {
 public:
  static ArrayMemory& instance() {
    static ArrayMemory& memory = *new ArrayMemory;  // arrays may be freed while the process ends
    return memory;
  }

  void* acquire(size_t bytes, bool zeroed) {
    const std::lock_guard lock(mutex_);
    const bool is_part = bytes <= kRegion / 4;
    bytes = rounded_up(bytes, kCacheLine);
    for (auto& [begin, region] : regions_) {
      if (region.is_divided != is_part || (!is_part && region.size / 2 > bytes)) continue;
      for (const auto& [offset, size] : region.free)
        if (size >= bytes) return take(begin, region, offset, bytes, zeroed);
    }
    const size_t size = is_part ? kRegion : rounded_up(bytes, kHugePage);
    char* begin = map_region(size);
    if (!begin) return nullptr;
    Region& region = regions_[begin];
    region.size = size;
    region.is_divided = is_part;
    region.free[0] = size;
    idle_ += size;
    return take(begin, region, 0, bytes, zeroed);
  }

  /// Frees a block, and returns whether it is one of a region.
  bool release(void* memory) {
    const std::lock_guard lock(mutex_);
    const auto found = region_of(memory);
    if (found == regions_.end()) return false;
    auto& [begin, region] = *found;
    const auto block = region.used.find(static_cast<size_t>(static_cast<char*>(memory) - begin));
    add_free(region, block->first, block->second);
    region.used.erase(block);
    if (!region.used.empty()) return true;
    if (idle_ + region.size > kMostIdle) {
      ::munmap(begin, region.size);
      regions_.erase(found);
    } else {
      idle_ += region.size;
    }
    return true;
  }

  /// The size of a block of a region; 0: it is none.
  size_t size_of(void* memory) {
    const std::lock_guard lock(mutex_);
    const auto found = region_of(memory);
    if (found == regions_.end()) return 0;
    return found->second.used.at(static_cast<size_t>(static_cast<char*>(memory) - found->first));
  }

  size_t idle() {
    const std::lock_guard lock(mutex_);
    return idle_;
  }

 private:
  using Regions = std::map<char*, Region>;

  ArrayMemory() {
    // A child process has one thread: nobody in it would unlock what another thread has locked.
    ::pthread_atfork([] { instance().mutex_.lock(); }, [] { instance().mutex_.unlock(); },
                     [] { instance().mutex_.unlock(); });
  }

  void* take(char* begin, Region& region, size_t offset, size_t bytes, bool zeroed) {
    if (region.used.empty()) idle_ -= region.size;
    const size_t size = region.free[offset];
    region.free.erase(offset);
    if (!region.is_divided) bytes = size;
    if (size > bytes) region.free[offset + bytes] = size - bytes;
    region.used[offset] = bytes;
    if (zeroed && offset < region.touched)
      std::memset(begin + offset, 0, std::min(region.touched, offset + bytes) - offset);
    region.touched = std::max(region.touched, offset + bytes);
    return begin + offset;
  }

  static void add_free(Region& region, size_t offset, size_t size) {
    auto after = region.free.lower_bound(offset);
    if (after != region.free.end() && after->first == offset + size) {
      size += after->second;
      after = region.free.erase(after);
    }
    if (after != region.free.begin()) {
      const auto before = std::prev(after);
      if (before->first + before->second == offset) {
        before->second += size;
        return;
      }
    }
    region.free[offset] = size;
  }

  Regions::iterator region_of(void* memory) {
    auto found = regions_.upper_bound(static_cast<char*>(memory));
    if (found == regions_.begin()) return regions_.end();
    --found;
    return static_cast<char*>(memory) < found->first + found->second.size ? found : regions_.end();
  }

  std::mutex mutex_;
  Regions regions_;
  size_t idle_ = 0;
};

}  // namespace

void* acquire_array(size_t bytes, bool zeroed) {
  if (bytes > SIZE_MAX / 4) return nullptr;
  if (bytes >= kSmall) return ArrayMemory::instance().acquire(bytes, zeroed);
  bytes = rounded_up(std::max<size_t>(bytes, 1), kCacheLine);
  void* memory = std::aligned_alloc(kCacheLine, bytes);
  if (memory && zeroed) std::memset(memory, 0, bytes);
  return memory;
}

void release_array(void* memory) {
  if (memory && !ArrayMemory::instance().release(memory)) std::free(memory);
}

void* resize_array(void* memory, size_t bytes) {
  void* moved = acquire_array(bytes, false);
  if (!moved || !memory) return moved;
  const size_t size = ArrayMemory::instance().size_of(memory);
  std::memcpy(moved, memory, std::min(size ? size : ::malloc_usable_size(memory), bytes));
  release_array(memory);
  return moved;
}

size_t idle_array_memory() { return ArrayMemory::instance().idle(); }

}  // namespace tilewright::runtime
