#include "interpreter/memory.h"

#include <algorithm>
#include <cstring>

namespace tilewright::interpreter {
namespace {

constexpr size_t kFilled = size_t{1} << 24;

}  // namespace

int64_t Memory::allocate(int64_t bytes, int64_t granule, std::string name, bool track_written) {
  if (bytes < 0 || bytes >= int64_t{1} << kOffsetBits) return 0;
  auto size = static_cast<size_t>(std::max<int64_t>(bytes, 1));
  std::unique_ptr<std::byte[], FreeDeleter> data(static_cast<std::byte*>(std::calloc(size, 1)));
  std::unique_ptr<uint8_t[], FreeDeleter> written(track_written ? static_cast<uint8_t*>(std::calloc(size, 1))
                                                                : nullptr);
  if (!data || (track_written && !written)) return 0;
  // Not zero, so that a program that relies on zeros computes wrong results. Large memory whose writes are tracked
  // stays zero: unwritten reads are reported anyhow, and untouched pages cost no memory.
  if (!track_written || size <= kFilled) std::memset(data.get(), 0xCD, size);
  int64_t pointer = adopt(data.get(), bytes, granule, true, std::move(name));
  Allocation& allocation = *find(pointer);
  allocation.owned = std::move(data);
  allocation.written = std::move(written);
  return pointer;
}

int64_t Memory::adopt(void* data, int64_t bytes, int64_t granule, bool writable, std::string name) {
  size_t id = allocations_.size();
  if (free_.empty()) {
    allocations_.emplace_back();
  } else {
    id = free_.back();
    free_.pop_back();
  }
  Allocation& allocation = allocations_[id];
  allocation = Allocation();
  allocation.data = static_cast<std::byte*>(data);
  allocation.size = bytes;
  allocation.granule = std::max<int64_t>(granule, 1);
  allocation.live = true;
  allocation.writable = writable;
  allocation.name = std::move(name);
  return static_cast<int64_t>(id) << kOffsetBits;
}

void Memory::release(int64_t pointer) {
  Allocation* allocation = find(pointer);
  if (!allocation) return;
  *allocation = Allocation();
  free_.push_back(static_cast<size_t>(allocation_of(pointer)));
}

}  // namespace tilewright::interpreter
