#include "ir/node_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <new>

#include "ir/stmt.h"

namespace tilewright {

#if defined(__SANITIZE_ADDRESS__)

// The sanitizer sees the use of a freed node only where each node is an allocation of its own.
void* allocate_node(size_t bytes) { return ::operator new(bytes); }
void free_node(void* node, size_t) noexcept { ::operator delete(node); }

#else

namespace {

/// Small, so that a program occupies few pages; aligned to its size, so that a node's address gives its chunk.
constexpr size_t kChunkBytes = 16 << 10;
/// Chunks are allocated in groups: one by one, each would waste memory for its alignment.
constexpr size_t kChunksAtOnce = 32;
/// Empty chunks that keep their memory for the next program.
constexpr size_t kMaxSpare = 1024;
/// Free memory of a chunk with at most this many live bytes is reused if no chunk is empty.
constexpr uint32_t kMostLiveBytes = kChunkBytes / 4 * 3;
/// Minimum bytes between live nodes that are reused: a few nodes in a row.
constexpr size_t kLeastRun = 128;
/// Minimum size of a node, so that at most one begins in each window of a chunk.
constexpr size_t kWindow = 32;
/// The largest node, so that a byte holds the place and the size of a free one.
constexpr size_t kMaxNodeBytes = 504;
constexpr size_t kPage = 4096;
constexpr size_t kUnit = alignof(void*);
constexpr size_t kWindows = kChunkBytes / kWindow;

enum class Use : uint8_t { kOpen, kClosed, kSparse, kSpare };

struct Chunk {
  /// Bytes of nodes that live here; while a thread allocates here, kOpenBytes plus those that lived when it came, minus
  /// those that were freed since.
  std::atomic<uint32_t> live;
  // Under the lock:
  Use use;
  Chunk *next, *previous;
  /// The free memory that begins in each window: where in the window (2 bits), and its size (6), in units. 0: none.
  std::array<std::atomic<uint8_t>, kWindows> free;
};
constexpr uint32_t kOpenBytes = 1U << 30;
constexpr size_t kHeaderBytes = sizeof(Chunk);
static_assert(kHeaderBytes % kUnit == 0 && kMaxNodeBytes / kUnit < 64);
#define X(name, sort, ...) static_assert(sizeof(NodeOf<name>) <= kMaxNodeBytes);
#include "ir/kinds.def"
#undef X

struct FreeList {
  Chunk *first = nullptr, *last = nullptr;
  size_t size = 0;
  void add_first(Chunk* chunk) {
    chunk->previous = nullptr;
    chunk->next = first;
    (first ? first->previous : last) = chunk;
    first = chunk;
    ++size;
  }
  void add_last(Chunk* chunk) {
    chunk->previous = last;
    chunk->next = nullptr;
    (last ? last->next : first) = chunk;
    last = chunk;
    ++size;
  }
  void remove(Chunk* chunk) {
    (chunk->previous ? chunk->previous->next : first) = chunk->next;
    (chunk->next ? chunk->next->previous : last) = chunk->previous;
    --size;
  }
};

/// Chunks where no thread allocates, and that have room. Never destroyed: handles in static variables free their nodes
/// at any time.
struct Pool {
  std::mutex mutex;
  FreeList spare, sparse;
  char *fresh = nullptr, *fresh_end = nullptr;  ///< never used so far
};
Pool& pool() {
  static Pool* instance = new Pool;
  return *instance;
}

/// Moves a chunk where nobody allocates to where it belongs, after nodes in it were freed. Under the lock.
void sort_in(Pool& pool, Chunk* chunk) noexcept {
  const uint32_t live = chunk->live.load(std::memory_order_acquire);
  if (chunk->use == Use::kSparse && live == 0) {
    pool.sparse.remove(chunk);
    chunk->use = Use::kClosed;
  }
  if (chunk->use != Use::kClosed || live > kMostLiveBytes) return;
  if (live > 0) {
    chunk->use = Use::kSparse;
    pool.sparse.add_last(chunk);  // one without a run that is long enough comes up again after all others
    return;
  }
  chunk->use = Use::kSpare;
  pool.spare.add_first(chunk);        // still in the caches
  if (pool.spare.size > kMaxSpare) {  // all but the first page, which holds its place in the list
    ::madvise(reinterpret_cast<char*>(chunk) + kPage, kChunkBytes - kPage, MADV_DONTNEED);
  }
}

Chunk* fresh_chunk(Pool& pool) {
  if (pool.fresh == pool.fresh_end) {
    pool.fresh = static_cast<char*>(std::aligned_alloc(kChunkBytes, kChunkBytes * kChunksAtOnce));
    pool.fresh_end = pool.fresh ? pool.fresh + kChunkBytes * kChunksAtOnce : nullptr;
    if (!pool.fresh) throw std::bad_alloc();
  }
  void* memory = pool.fresh;
  pool.fresh += kChunkBytes;
  return new (memory) Chunk{};
}

/// Allocation state of a thread. A plain aggregate, so that access needs no initialization check.
struct Current {
  Chunk* chunk;
  char *next, *end;    ///< a run of free memory
  uint32_t allocated;  ///< bytes, since the chunk was opened
  size_t window;       ///< start of the part of the chunk that was not searched for free memory
};
thread_local Current current;
/// The state of this thread. Each mention of the variable is a call, which the compiler would rather repeat than keep
/// its address.
Current& here_now() {
  Current* here = &current;
  asm("" : "+r"(here));
  return *here;
}

std::atomic<uint8_t>& free_at(Chunk* chunk, const char* at) {
  return chunk->free[(at - reinterpret_cast<char*>(chunk)) / kWindow];
}
/// Memory in a chunk is free. The last that is done with a node's memory.
void note_free(Chunk* chunk, const char* at, size_t bytes) noexcept {
  const auto place = reinterpret_cast<uintptr_t>(at) % kWindow / kUnit;
  free_at(chunk, at).store(static_cast<uint8_t>(place << 6 | bytes / kUnit), std::memory_order_release);
}
/// Removes the record of free bytes at `at`, and returns their number; 0 if there are none.
size_t take_free(Chunk* chunk, const char* at) {
  std::atomic<uint8_t>& slot = free_at(chunk, at);
  const uint8_t known = slot.load(std::memory_order_acquire);
  if (known == 0 || known >> 6 != reinterpret_cast<uintptr_t>(at) % kWindow / kUnit) return 0;
  slot.store(0, std::memory_order_relaxed);
  return (known & 63) * kUnit;
}

/// The rest of the run, for whoever opens the chunk next.
void leave_run(Current& here) noexcept {
  while (static_cast<size_t>(here.end - here.next) >= kWindow) {
    size_t bytes = here.end - here.next;
    if (bytes > kMaxNodeBytes) bytes = bytes < kMaxNodeBytes + kWindow ? kMaxNodeBytes - kWindow : kMaxNodeBytes;
    note_free(here.chunk, here.next, bytes);
    here.next += bytes;
  }
  here.next = here.end = nullptr;
}

/// The first window from this one on in which free memory is noted; kWindows if there is none.
size_t next_free(const Chunk* chunk, size_t window) {
  // Most windows have none: eight are looked at together.
  static_assert(sizeof(chunk->free[0]) == 1 && kWindows % 8 == 0);
  const auto* bytes = reinterpret_cast<const uint8_t*>(chunk->free.data());
  for (; window < kWindows; ++window) {
    if (chunk->free[window].load(std::memory_order_relaxed) != 0) return window;
    if (window % 8 != 7) continue;
    while (window + 1 < kWindows &&
           __atomic_load_n(reinterpret_cast<const uint64_t*>(bytes + window + 1), __ATOMIC_RELAXED) == 0)
      window += 8;
  }
  return kWindows;
}

/// The next run of free memory in the chunk; false where none is left.
bool next_run(Current& here) {
  leave_run(here);
  Chunk* chunk = here.chunk;
  char* const base = reinterpret_cast<char*>(chunk);
  while ((here.window = next_free(chunk, here.window)) < kWindows) {
    const uint8_t known = chunk->free[here.window].load(std::memory_order_acquire);
    char* end = base + here.window * kWindow + (known >> 6) * kUnit;
    here.next = end;
    while (end != base + kChunkBytes) {
      const size_t more = take_free(chunk, end);
      if (more == 0) break;
      end += more;
    }
    here.end = end;
    here.window = (end - base) / kWindow;  // further than before, since what is free is no smaller than a window
    if (static_cast<size_t>(end - here.next) >= kLeastRun) return true;
    leave_run(here);
  }
  return false;
}

/// Under the lock.
void close_chunk(Pool& pool, Current& here) noexcept {
  if (here.chunk == nullptr) return;
  here.chunk->use = Use::kClosed;
  here.chunk->live.fetch_sub(kOpenBytes - here.allocated, std::memory_order_acq_rel);
  sort_in(pool, here.chunk);
  here = {};
}

/// Closes the chunk of a thread that ends. Nodes made after that, by destructors of other variables, open one that
/// stays.
struct AtThreadEnd {
  bool armed = false;
  ~AtThreadEnd() {
    Current& here = here_now();
    if (here.chunk) leave_run(here);
    std::lock_guard lock(pool().mutex);
    close_chunk(pool(), here);
  }
};
thread_local AtThreadEnd at_thread_end;

void next_chunk(Current& here, bool sparse) {
  at_thread_end.armed = true;
  Pool& from = pool();
  std::lock_guard lock(from.mutex);
  close_chunk(from, here);
  sparse = sparse && !from.spare.first && from.sparse.first;
  Chunk* chunk;
  if (sparse || from.spare.first) {
    FreeList& list = sparse ? from.sparse : from.spare;
    chunk = list.first;
    list.remove(chunk);
  } else {
    chunk = fresh_chunk(from);
  }
  chunk->use = Use::kOpen;
  char* bytes = reinterpret_cast<char*>(chunk);
  if (chunk->live.fetch_add(kOpenBytes, std::memory_order_acq_rel) != 0) {
    here = {chunk, nullptr, nullptr, 0, kHeaderBytes / kWindow};
    return;
  }
  for (std::atomic<uint8_t>& free : chunk->free) free.store(0, std::memory_order_relaxed);
  here = {chunk, bytes + kHeaderBytes, bytes + kChunkBytes, 0, kWindows};
}

[[gnu::noinline]] void find_room(Current& here, size_t bytes) {
  auto fits = [&] { return static_cast<size_t>(here.end - here.next) >= bytes; };
  for (int looked_through = 0;; ++looked_through) {
    while (here.chunk && next_run(here)) {
      if (fits()) return;
    }
    next_chunk(here, looked_through < 4);
    if (fits()) return;
  }
}

size_t rounded(size_t bytes) { return std::max((bytes + kUnit - 1) & ~(kUnit - 1), kWindow); }

}  // namespace

void* allocate_node(size_t bytes) {
  Current& here = here_now();
  bytes = rounded(bytes);
  if (static_cast<size_t>(here.end - here.next) < bytes) find_room(here, bytes);
  here.allocated += static_cast<uint32_t>(bytes);
  char* node = here.next;
  here.next += bytes;
  return node;
}

void free_node(void* node, size_t bytes) noexcept {
  Current& here = here_now();
  bytes = rounded(bytes);
  char* at = static_cast<char*>(node);
  if (at + bytes == here.next) {  // the newest one of this thread: a temporary leaves no hole
    here.next = at;
    here.allocated -= static_cast<uint32_t>(bytes);
    return;
  }
  auto* chunk = reinterpret_cast<Chunk*>(reinterpret_cast<uintptr_t>(at) & ~(kChunkBytes - 1));
  note_free(chunk, at, bytes);
  if (chunk == here.chunk) {  // the sum of both counters is what counts
    here.allocated -= static_cast<uint32_t>(bytes);
    return;
  }
  const uint32_t before = chunk->live.fetch_sub(static_cast<uint32_t>(bytes), std::memory_order_acq_rel);
  const uint32_t live = before - static_cast<uint32_t>(bytes);
  if (live != 0 && (live > kMostLiveBytes || before <= kMostLiveBytes)) return;
  std::lock_guard lock(pool().mutex);
  sort_in(pool(), chunk);
}

#endif

}  // namespace tilewright
