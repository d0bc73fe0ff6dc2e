/* The thread pool of parallel loops, with work stealing.
 *
 * A loop occupies a slot. Its caller and all pool threads that join execute it. Its iterations are divided into one
 * region per thread, each with an atomic counter from which threads take chunks. A thread starts in its own region, the
 * same in each loop, because its caches may still contain the data of this region; then it steals chunks from other
 * regions. Slots are static, so a thread may inspect one at any time. It may read the fields of the loop only while it
 * holds a reference, which it takes by a compare-and-swap that succeeds only on open slots. The caller closes the slot,
 * and waits for all references to be released before it returns.
 *
 * Idle pool threads wait for a change of `epoch`, which every new loop increments: they spin for some microseconds,
 * then sleep in futex(). */
#define _GNU_SOURCE
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "runtime/runtime.h"
#include "support/host_cpu.h"

enum {
  kSlots = 8,
  kChunksPerThread = 4, /* balances interrupted threads and chunks of different cost */
  kRoundedChunk = 16,   /* chunk size from which on rounding it up does not matter */
  kRegions = 64,        /* more threads share them */
  /* Waking a sleeping thread takes several times as long as a short loop. */
  kDefaultSpinMicroseconds = 50,
  kMaxThreads = 4096
};

/* Bits of slot.state; references count in units of kReference. */
enum { kOpen = 1, kCallerSleeps = 2, kReference = 4 };

/* The remaining iterations of a region. */
typedef struct region {
  _Alignas(64) atomic_llong next;
  atomic_llong end;
} region;

typedef struct slot {
  _Alignas(64) atomic_int taken;
  atomic_uint state;
  tw_parallel_body body;
  void* closure;
  tw_ctx* ctx;
  int64_t chunk;
  uint32_t float_mode;
  atomic_int max_helpers;
  atomic_int num_regions;
  _Alignas(64) atomic_int status;
  region regions[kRegions];
} slot;

static struct {
  slot slots[kSlots];
  _Alignas(64) atomic_uint epoch;
  _Alignas(64) atomic_int sleepers;
  atomic_int alive;      /* pool threads that exist */
  atomic_int wanted;     /* pool threads that should exist; -1: not decided yet */
  pthread_mutex_t mutex; /* guards creation and `alive` against fork */
} pool = {.wanted = -1, .mutex = PTHREAD_MUTEX_INITIALIZER};

static pthread_once_t setup_once = PTHREAD_ONCE_INIT;
static int64_t spin_nanoseconds;
static __thread int inside_loop;

/* ---- Waiting ----------------------------------------------------------------------------------------------------- */

static void relax(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

static int64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void sleep_while(atomic_uint* word, unsigned value) {
  syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static void wake(atomic_uint* word, int count) { syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0); }

/* Spins until `word` is no longer `value`; returns whether it changed in time. */
static int spin_while(atomic_uint* word, unsigned value) {
  if (spin_nanoseconds <= 0) return 0;
  int64_t deadline = now() + spin_nanoseconds;
  do {
    for (int i = 0; i < 16; ++i) {
      if (atomic_load_explicit(word, memory_order_acquire) != value) return 1;
      relax();
    }
  } while (now() < deadline);
  return 0;
}

/* ---- Floating-point mode --------------------------------------------------------------------------------------------
 * Rounding mode and flushing of denormals are per thread. Pool threads use those of the loop's caller. */

#if defined(__x86_64__)
static uint32_t float_mode(void) { return __builtin_ia32_stmxcsr() & ~0x3fu; /* without the sticky flags */ }
static void set_float_mode(uint32_t mode) { __builtin_ia32_ldmxcsr(mode); }
#else
static uint32_t float_mode(void) { return 0; }
static void set_float_mode(uint32_t mode) { (void)mode; }
#endif

/* ---- Executing --------------------------------------------------------------------------------------------------- */

static int is_used_up(region* r) {
  return atomic_load_explicit(&r->next, memory_order_relaxed) >= atomic_load_explicit(&r->end, memory_order_relaxed);
}

static int32_t run_region(slot* s, region* r) {
  int64_t last = atomic_load_explicit(&r->end, memory_order_relaxed);
  while (!is_used_up(r)) {
    int64_t begin = atomic_fetch_add_explicit(&r->next, s->chunk, memory_order_relaxed);
    if (begin >= last) break;
    int32_t code = s->body(s->ctx, begin, last - begin < s->chunk ? last : begin + s->chunk, s->closure);
    if (code != TW_OK) return code;
  }
  return TW_OK;
}

/* Runs chunks of region `first`, then chunks of the other regions. */
static void run_chunks(slot* s, int first) {
  int count = atomic_load_explicit(&s->num_regions, memory_order_relaxed);
  int32_t code = TW_OK;
  inside_loop = 1;
  for (int i = 0; i < count && code == TW_OK; ++i) code = run_region(s, &s->regions[(first + i) % count]);
  if (code != TW_OK) {
    int none = TW_OK;
    atomic_compare_exchange_strong(&s->status, &none, code);
    for (int i = 0; i < count; ++i) {
      region* r = &s->regions[i];
      atomic_store_explicit(&r->next, atomic_load_explicit(&r->end, memory_order_relaxed), memory_order_relaxed);
    }
  }
  inside_loop = 0;
}

static int has_chunks_left(slot* s) {
  int count = atomic_load_explicit(&s->num_regions, memory_order_relaxed);
  for (int i = 0; i < count; ++i) {
    if (!is_used_up(&s->regions[i])) return 1;
  }
  return 0;
}

/* Joins the loop of a slot, if there is one with chunks left, as pool thread number `id`. Returns whether it did. */
static int help(slot* s, int id) {
  unsigned state = atomic_load_explicit(&s->state, memory_order_relaxed);
  do {
    if (!(state & kOpen) || !has_chunks_left(s)) return 0;
    if ((int)(state / kReference) >= atomic_load_explicit(&s->max_helpers, memory_order_relaxed)) return 0;
  } while (!atomic_compare_exchange_weak_explicit(&s->state, &state, state + kReference, memory_order_acquire,
                                                  memory_order_relaxed));
  uint32_t own_mode = float_mode();
  if (own_mode != s->float_mode) set_float_mode(s->float_mode);
  /* The first region is the caller's. */
  int others = atomic_load_explicit(&s->num_regions, memory_order_relaxed) - 1;
  run_chunks(s, others > 0 ? 1 + id % others : 0);
  if (float_mode() != own_mode) set_float_mode(own_mode);
  state = atomic_fetch_sub_explicit(&s->state, kReference, memory_order_acq_rel) - kReference;
  if (state == kCallerSleeps) wake(&s->state, 1);
  return 1;
}

/* Whether this thread is surplus; if so, decrements the number of threads. */
static int retire(void) {
  if (atomic_load_explicit(&pool.alive, memory_order_relaxed) <=
      atomic_load_explicit(&pool.wanted, memory_order_relaxed))
    return 0;
  pthread_mutex_lock(&pool.mutex);
  int surplus = atomic_load(&pool.alive) > atomic_load(&pool.wanted);
  if (surplus) atomic_fetch_sub(&pool.alive, 1);
  pthread_mutex_unlock(&pool.mutex);
  return surplus;
}

static void* pool_thread(void* number) {
  int id = (int)(intptr_t)number;
  while (!retire()) {
    unsigned seen = atomic_load(&pool.epoch);
    int helped = 0;
    for (int i = 0; i < kSlots; ++i) helped |= help(&pool.slots[i], id);
    if (helped || spin_while(&pool.epoch, seen)) continue;
    /* Either the thread that advances the epoch sees this sleeper, or futex() sees the new epoch. */
    atomic_fetch_add(&pool.sleepers, 1);
    sleep_while(&pool.epoch, seen);
    atomic_fetch_sub(&pool.sleepers, 1);
  }
  return NULL;
}

/* ---- Threads -------------------------------------------------------------------------------------------------------
 */

static int64_t environment_number(const char* name, int64_t fallback, int64_t low, int64_t high) {
  const char* text = getenv(name);
  if (!text || !*text) return fallback;
  char* end;
  long long value = strtoll(text, &end, 10);
  if (*end == '\0' && value >= low && value <= high) return value;
  fprintf(stderr, "tilewright: %s=%.40s is ignored: it is not a number from %lld to %lld\n", name, text,
          (long long)low, (long long)high);
  return fallback;
}

static int default_threads(void) {
  return (int)environment_number("TILEWRIGHT_NUM_THREADS", tw_count_cores(), 1, kMaxThreads);
}

static void before_fork(void) { pthread_mutex_lock(&pool.mutex); }
static void after_fork_in_parent(void) { pthread_mutex_unlock(&pool.mutex); }

/* Resets the pool in the child of a fork, where only the forking thread exists. */
static void after_fork_in_child(void) {
  memset(pool.slots, 0, sizeof(pool.slots));
  atomic_store(&pool.epoch, 0);
  atomic_store(&pool.sleepers, 0);
  atomic_store(&pool.alive, 0);
  pthread_mutex_init(&pool.mutex, NULL);
}

static void set_up(void) {
  int several = tw_count_processors() > 1; /* on one processor, a spinning thread would block the others */
  spin_nanoseconds =
      several ? 1000 * environment_number("TILEWRIGHT_SPIN_US", kDefaultSpinMicroseconds, 0, 1000000) : 0;
  int undecided = -1;
  atomic_compare_exchange_strong(&pool.wanted, &undecided, default_threads() - 1);
  tw_pin_library();
  pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

/* Starts the missing threads, as far as the system permits. */
static void start_threads(void) {
  pthread_mutex_lock(&pool.mutex);
  sigset_t all, previous;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &previous); /* signals are for the threads of the host */
  while (atomic_load(&pool.alive) < atomic_load(&pool.wanted)) {
    pthread_t thread;
    void* number = (void*)(intptr_t)atomic_load(&pool.alive);
    if (pthread_create(&thread, NULL, pool_thread, number) != 0) {
      atomic_store(&pool.wanted, atomic_load(&pool.alive));
      break;
    }
    pthread_setname_np(thread, "tilewright");
    pthread_detach(thread);
    atomic_fetch_add(&pool.alive, 1);
  }
  pthread_sigmask(SIG_SETMASK, &previous, NULL);
  pthread_mutex_unlock(&pool.mutex);
}

void tw_set_num_threads(int32_t count) {
  pthread_once(&setup_once, set_up);
  if (count <= 0) count = default_threads();
  if (count > kMaxThreads) count = kMaxThreads;
  atomic_store(&pool.wanted, count - 1);
  atomic_fetch_add(&pool.epoch, 1);
  wake(&pool.epoch, INT_MAX); /* so that surplus threads notice */
}

int32_t tw_get_num_threads(void) {
  pthread_once(&setup_once, set_up);
  return atomic_load_explicit(&pool.wanted, memory_order_relaxed) + 1;
}

int32_t tw_pool_size(void) { return atomic_load(&pool.alive); }

/* ---- Loops ---------------------------------------------------------------------------------------------------------
 */

static slot* take_slot(void) {
  for (int i = 0; i < kSlots; ++i) {
    int free_slot = 0;
    if (!atomic_load_explicit(&pool.slots[i].taken, memory_order_relaxed) &&
        atomic_compare_exchange_strong_explicit(&pool.slots[i].taken, &free_slot, 1, memory_order_acquire,
                                                memory_order_relaxed))
      return &pool.slots[i];
  }
  return NULL;
}

/* Waits until all references to a closed slot are released. */
static void wait_for_helpers(slot* s) {
  unsigned state = atomic_load_explicit(&s->state, memory_order_acquire);
  while (state != 0) {
    if (!spin_while(&s->state, state)) {
      if (state & kCallerSleeps) {
        sleep_while(&s->state, state);
      } else if (!atomic_compare_exchange_strong(&s->state, &state, state | kCallerSleeps)) {
        continue;
      }
    }
    state = atomic_load_explicit(&s->state, memory_order_acquire);
    if (state == kCallerSleeps) break;
  }
  atomic_store_explicit(&s->state, 0, memory_order_relaxed);
}

int32_t tw_parallel_for(tw_ctx* ctx, tw_parallel_body body, void* closure, int64_t extent, int64_t grain) {
  if (extent <= 0) return TW_OK;
  if (grain < 1) grain = 1;
  pthread_once(&setup_once, set_up);
  int64_t threads = atomic_load_explicit(&pool.wanted, memory_order_relaxed) + 1;
  if (ctx->max_threads > 0 && ctx->max_threads < threads) threads = ctx->max_threads;
  if (inside_loop || threads <= 1 || extent <= grain || extent > LLONG_MAX / 4) return body(ctx, 0, extent, closure);
  slot* s = take_slot();
  if (!s) return body(ctx, 0, extent, closure);
  if (atomic_load_explicit(&pool.alive, memory_order_relaxed) <
      atomic_load_explicit(&pool.wanted, memory_order_relaxed))
    start_threads();

  int64_t chunk = extent / (threads * kChunksPerThread);
  if (chunk < grain) chunk = grain;
  int64_t chunks = (extent + chunk - 1) / chunk;
  if (chunks > threads && chunks % threads != 0 && chunk >= kRoundedChunk) {
    /* The same number of chunks for each thread, all of one size: of three chunks, one of two threads would get two. */
    chunks -= chunks % threads;
    chunk = (extent + chunks - 1) / chunks;
    chunks = (extent + chunk - 1) / chunk;
  }
  int64_t helpers = chunks - 1;
  if (helpers > threads - 1) helpers = threads - 1;
  s->body = body;
  s->closure = closure;
  s->ctx = ctx;
  s->chunk = chunk;
  s->float_mode = float_mode();
  atomic_store_explicit(&s->status, TW_OK, memory_order_relaxed);
  atomic_store_explicit(&s->max_helpers, (int)helpers, memory_order_relaxed);
  int64_t regions = helpers + 1 < kRegions ? helpers + 1 : kRegions;
  int64_t begin = 0;
  for (int64_t i = 0; i < regions; ++i) {
    int64_t end = begin + (chunks / regions + (i < chunks % regions)) * chunk;
    if (end > extent) end = extent;
    atomic_store_explicit(&s->regions[i].next, begin, memory_order_relaxed);
    atomic_store_explicit(&s->regions[i].end, end, memory_order_relaxed);
    begin = end;
  }
  atomic_store_explicit(&s->num_regions, (int)regions, memory_order_relaxed);
  atomic_store_explicit(&s->state, kOpen, memory_order_release);
  atomic_fetch_add(&pool.epoch, 1);
  if (atomic_load(&pool.sleepers) > 0) wake(&pool.epoch, (int)helpers);

  run_chunks(s, 0);

  atomic_fetch_and_explicit(&s->state, ~(unsigned)kOpen, memory_order_acq_rel);
  wait_for_helpers(s);
  int32_t status = atomic_load_explicit(&s->status, memory_order_relaxed);
  atomic_store_explicit(&s->taken, 0, memory_order_release);
  return status;
}
