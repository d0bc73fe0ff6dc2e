#include "ir/node_memory.h"

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <new>
#include <vector>

namespace tilewright {

#if defined(__SANITIZE_ADDRESS__)

// The sanitizer sees the use of a freed node only where each node is an allocation of its own.
void* allocate_node(size_t bytes) { return ::operator new(bytes); }
void free_node(void* node, size_t) noexcept { ::operator delete(node); }

#else

namespace {

/// Small enough that a few nodes which outlive their neighbors do not hold much memory; aligned to its size, so that a
/// node finds its chunk.
constexpr size_t kChunkBytes = 16 << 10;
/// Empty chunks that are kept for the next program.
constexpr size_t kMaxSpare = 1024;

struct Chunk {
  /// Nodes that live here; while a thread still allocates here, kOpen minus the nodes that were freed.
  std::atomic<uint32_t> live;
};
constexpr uint32_t kOpen = 1U << 30;
constexpr size_t kHeaderBytes = 16;

struct Spare {
  std::mutex mutex;
  std::vector<Chunk*> chunks;
};
/// Never destroyed: handles in static variables free their nodes at any time.
Spare& spare() {
  static Spare* instance = new Spare;
  return *instance;
}

Chunk* open_chunk() {
  void* memory = nullptr;
  {
    std::lock_guard lock(spare().mutex);
    if (!spare().chunks.empty()) {
      memory = spare().chunks.back();
      spare().chunks.pop_back();
    }
  }
  if (memory == nullptr) memory = std::aligned_alloc(kChunkBytes, kChunkBytes);
  if (memory == nullptr) throw std::bad_alloc();
  return new (memory) Chunk{kOpen};
}

void recycle(Chunk* chunk) noexcept {
  std::lock_guard lock(spare().mutex);
  if (spare().chunks.size() == kMaxSpare) return std::free(chunk);
  if (spare().chunks.capacity() == 0) spare().chunks.reserve(kMaxSpare);
  spare().chunks.push_back(chunk);
}

/// Where a thread allocates. A plain aggregate: reading it takes no check whether it was initialized.
struct Current {
  Chunk* chunk;
  char *next, *end;
  uint32_t allocated;
};
thread_local Current current;

void close_chunk() noexcept {
  if (current.chunk == nullptr) return;
  uint32_t rest = kOpen - current.allocated;
  if (current.chunk->live.fetch_sub(rest, std::memory_order_acq_rel) == rest) recycle(current.chunk);
  current = {};
}

/// Closes the chunk of a thread that ends. Nodes made after that, by destructors of other variables, open one that
/// stays.
struct AtThreadEnd {
  bool armed = false;
  ~AtThreadEnd() { close_chunk(); }
};
thread_local AtThreadEnd at_thread_end;

void next_chunk() {
  close_chunk();
  Chunk* chunk = open_chunk();
  char* bytes = reinterpret_cast<char*>(chunk);
  current = {chunk, bytes + kHeaderBytes, bytes + kChunkBytes, 0};
  at_thread_end.armed = true;
}

size_t rounded(size_t bytes) { return (bytes + alignof(void*) - 1) & ~(alignof(void*) - 1); }

}  // namespace

void* allocate_node(size_t bytes) {
  bytes = rounded(bytes);
  if (static_cast<size_t>(current.end - current.next) < bytes) next_chunk();
  ++current.allocated;
  char* node = current.next;
  current.next += bytes;
  return node;
}

void free_node(void* node, size_t bytes) noexcept {
  char* at = static_cast<char*>(node);
  if (at + rounded(bytes) == current.next) {  // the newest one of this thread: a temporary leaves no hole
    current.next = at;
    --current.allocated;
    return;
  }
  auto* chunk = reinterpret_cast<Chunk*>(reinterpret_cast<uintptr_t>(at) & ~(kChunkBytes - 1));
  if (chunk->live.fetch_sub(1, std::memory_order_acq_rel) == 1) recycle(chunk);
}

#endif

}  // namespace tilewright
