/* Workspaces: a stack allocator per thread, whose memory is kept between calls.
 *
 * The stack consists of blocks, of which the newest serves requests. Each block is at least as large as all older
 * blocks together, so there are few. If everything has been released and there are several blocks, the next request
 * replaces them by one block of their total size. From its second call on, a kernel thus has all workspaces in one
 * block. */
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/runtime.h"

enum { kAlignment = 64, kSmallestBlock = 64 * 1024 };

typedef struct block {
  struct block* older;
  int64_t capacity;
  int64_t used;
  char padding[kAlignment - sizeof(void*) - 2 * sizeof(int64_t)];
} block;

_Static_assert(sizeof(block) == kAlignment, "the memory behind the header is aligned");

static __thread block* newest;
static pthread_key_t exit_key;
static pthread_once_t exit_key_once = PTHREAD_ONCE_INIT;

static char* memory_of(block* b) { return (char*)b + sizeof(block); }

static void free_blocks(block* b) {
  while (b) {
    block* older = b->older;
    free(b);
    b = older;
  }
}

static void on_thread_exit(void* unused) {
  (void)unused;
  free_blocks(newest);
  newest = NULL;
}

static void make_exit_key(void) {
  tw_pin_library();
  pthread_key_create(&exit_key, on_thread_exit);
}

static int is_idle(void) {
  for (block* b = newest; b; b = b->older) {
    if (b->used > 0) return 0;
  }
  return 1;
}

static int64_t total_capacity(void) {
  int64_t total = 0;
  for (block* b = newest; b; b = b->older) total += b->capacity;
  return total;
}

/* Pushes a block with room for `bytes`; returns NULL if there is no memory. */
static block* push_block(int64_t bytes) {
  int64_t capacity = total_capacity();
  if (is_idle()) {
    free_blocks(newest);
    newest = NULL;
  }
  if (capacity < bytes) capacity = bytes;
  if (capacity < kSmallestBlock) capacity = kSmallestBlock;
  block* b = aligned_alloc(kAlignment, sizeof(block) + (size_t)capacity);
  if (!b && capacity > bytes) { /* try again without the extra room */
    capacity = bytes;
    b = aligned_alloc(kAlignment, sizeof(block) + (size_t)capacity);
  }
  if (!b) return NULL;
  b->older = newest;
  b->capacity = capacity;
  b->used = 0;
  newest = b;
  pthread_once(&exit_key_once, make_exit_key);
  pthread_setspecific(exit_key, b); /* not NULL, so that the exit handler runs */
  return b;
}

void* tw_workspace_acquire(tw_ctx* ctx, int64_t bytes) {
  if (bytes < 0 || bytes > LLONG_MAX / 4) {
    tw_report(ctx, TW_ERROR_MEMORY, "the kernel asks for a workspace larger than the address space");
    return NULL;
  }
  bytes = (bytes + kAlignment - 1) & ~(int64_t)(kAlignment - 1);
  if (bytes == 0) bytes = kAlignment; /* so that workspaces have distinct addresses */
  block* b = newest;
  if (!b || b->capacity - b->used < bytes || (b->used == 0 && b->older && is_idle())) b = push_block(bytes);
  if (!b) {
    tw_report(ctx, TW_ERROR_MEMORY,
              "out of memory for a workspace of the kernel" TW_HINT_PREFIX
              "use fewer threads, or a schedule with smaller cached copies");
    return NULL;
  }
  void* memory = memory_of(b) + b->used;
  b->used += bytes;
  return memory;
}

void tw_workspace_release(tw_ctx* ctx, void* memory) {
  (void)ctx;
  if (!memory) return;
  block* b = newest;
  while (b && b->used == 0) b = b->older; /* skip empty blocks above a block in use */
  if (b) b->used = (char*)memory - memory_of(b);
}

int64_t tw_workspace_held(void) { return total_capacity(); }
