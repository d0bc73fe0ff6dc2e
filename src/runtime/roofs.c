#define _GNU_SOURCE
#include "runtime/roofs.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "runtime/abi.h"
#include "runtime/roof_loops.h"
#include "support/host_cpu.h"

enum { kRounds = 8, kMostThreads = 1024 };
static const double kComputeSlice = 0.8e-3, kCacheSlice = 0.8e-3, kMemorySlice = 5e-3;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t greatest(int64_t a, int64_t b) { return a > b ? a : b; }

/* ---- Threads that start each slice together
 * -------------------------------------------------------------------------- */

typedef struct member {
  struct team* team;
  int32_t index;
  int32_t cpu; /* to run on; -1: anywhere */
  pthread_t thread;
  /* Of the current slice. */
  double start, end;
  int64_t count;
} member;

typedef struct team {
  int32_t size;
  atomic_int go;
  atomic_int waiting;
  atomic_uint generation;
  member* members;
  tw_roof_loops loops;
  char* memory; /* `share` bytes a thread */
  int64_t share;
  int64_t cache_bytes[3]; /* what a thread reads to stay in L1, L2, L3; 0: no such cache */
  tw_roofs* roofs;
} team;

static void meet(team* t) {
  unsigned generation = atomic_load(&t->generation);
  if (atomic_fetch_add(&t->waiting, 1) + 1 == t->size) {
    atomic_store(&t->waiting, 0);
    atomic_fetch_add(&t->generation, 1);
    return;
  }
  for (int i = 0; atomic_load(&t->generation) == generation; ++i) {
    if (i > 2000) sched_yield();
  }
}

/* ---- Slices
 * ---------------------------------------------------------------------------------------------------------- */

/* A compute loop, or reads of [from, from + bytes), executed `count` times. */
typedef struct work {
  tw_compute_loop loop;
  tw_read_loop read;
  const char* from;
  int64_t bytes;
  int64_t count;
} work;

static void execute(const work* w) {
  if (w->loop) {
    w->loop(w->count);
  } else {
    for (int64_t i = 0; i < w->count; ++i) w->read(w->from, w->bytes / TW_READ_STEP);
  }
}

/* Sets the count so that one execution takes about `seconds`. */
static void calibrate(work* w, double seconds) {
  for (w->count = 1;; w->count *= 2) {
    double begin = now();
    execute(w);
    double elapsed = now() - begin;
    if (elapsed > seconds / 8 || w->count > (int64_t)1 << 40) {
      w->count = greatest(1, (int64_t)((double)w->count * seconds / elapsed));
      return;
    }
  }
}

/* Executes slices on all threads at once; the first thread returns the best rate of a round, in counts times `units`.
 * All threads call this with the same arguments but for the memory. */
static double best_rate(member* m, work w, double units, double seconds) {
  team* t = m->team;
  calibrate(&w, seconds);
  m->count = w.count;
  double best = 0;
  for (int round = 0; round < kRounds; ++round) {
    meet(t);
    m->start = now();
    execute(&w);
    m->end = now();
    meet(t);
    if (m->index > 0) continue;
    double first = m->start, last = m->end, total = 0;
    for (int32_t i = 0; i < t->size; ++i) {
      if (t->members[i].start < first) first = t->members[i].start;
      if (t->members[i].end > last) last = t->members[i].end;
      total += units * (double)t->members[i].count;
    }
    if (last > first && total / (last - first) > best) best = total / (last - first);
  }
  meet(t); /* the first thread is done with the others' figures */
  return best;
}

static double compute_rate(member* m, tw_compute_probe probe) {
  if (!probe.loop) return 0;
  work w = {.loop = probe.loop};
  return best_rate(m, w, probe.operations, kComputeSlice);
}

static double read_rate(member* m, int64_t bytes, double seconds) {
  bytes = least(bytes, m->team->share) & ~(int64_t)(TW_READ_STEP - 1);
  if (bytes <= 0 || !m->team->loops.read) return 0;
  work w = {.read = m->team->loops.read, .from = m->team->memory + m->index * m->team->share, .bytes = bytes};
  return best_rate(m, w, (double)bytes, seconds);
}

static void run_on(int32_t cpu) {
  cpu_set_t* set = CPU_ALLOC(cpu + 1);
  if (!set) return;
  size_t bytes = CPU_ALLOC_SIZE(cpu + 1);
  CPU_ZERO_S(bytes, set);
  CPU_SET_S(cpu, bytes, set);
  sched_setaffinity(0, bytes, set);
  CPU_FREE(set);
}

static void* measure(void* argument) {
  member* m = argument;
  team* t = m->team;
  while (!atomic_load(&t->go)) sched_yield();
  if (m->cpu >= 0) run_on(m->cpu);
  /* Written by the thread that reads it: on machines with several memories it is then near. */
  memset(t->memory + m->index * t->share, 1, (size_t)t->share);
  tw_roofs r = {.threads = t->size, .best_level = t->loops.best_level};
  for (int level = TW_NUM_LEVELS - 1; level >= 0; --level) {
    r.f32_flops[level] = compute_rate(m, t->loops.f32[level]);
    r.f64_flops[level] = compute_rate(m, t->loops.f64[level]);
  }
  r.i32_add = compute_rate(m, t->loops.i32_add);
  r.i32_mul = compute_rate(m, t->loops.i32_mul);
  r.i8_dot = compute_rate(m, t->loops.i8_dot);
  r.bf16_dot = compute_rate(m, t->loops.bf16_dot);
  r.l1_read = read_rate(m, t->cache_bytes[0], kCacheSlice);
  r.l2_read = read_rate(m, t->cache_bytes[1], kCacheSlice);
  r.l3_read = read_rate(m, t->cache_bytes[2], kCacheSlice);
  r.dram_read = read_rate(m, t->share, kMemorySlice);
  if (m->index == 0) *t->roofs = r;
  return NULL;
}

/* ---- The whole
 * ------------------------------------------------------------------------------------------------------- */

/* Half a cache leaves room for what else a thread touches. */
static void choose_sizes(team* t, int32_t threads) {
  const tw_host_cpu* cpu = tw_host_cpu_info();
  t->cache_bytes[0] = cpu->l1_bytes / 2;
  t->cache_bytes[1] = cpu->l2_bytes / 2;
  t->cache_bytes[2] = 0;
  if (cpu->l3_bytes > 0) {
    int64_t share = cpu->l3_bytes / least(threads, cpu->l3_sharers);
    if (share / 2 >= 2 * cpu->l2_bytes) {
      /* A few times the L2 is beyond it, and stays clear of what neighbors take of a large L3. */
      t->cache_bytes[2] = least(share / 2, 8 * cpu->l2_bytes);
    } else {
      t->cache_bytes[2] = cpu->l2_bytes + share / 2; /* such small ones hold what the L2 does not */
    }
  }
  int64_t beyond_caches = 4 * greatest(cpu->l3_bytes, cpu->l2_bytes);
  int64_t total = least(greatest(beyond_caches, (int64_t)64 << 20), (int64_t)256 << 20);
  t->share = greatest(greatest(total / threads, 2 * t->cache_bytes[2]), (int64_t)4 << 20) & ~(((int64_t)1 << 20) - 1);
}

int32_t tw_measure_roofs(int32_t threads, tw_roofs* roofs) {
  memset(roofs, 0, sizeof(*roofs));
  if (threads <= 0) threads = tw_count_cores();
  if (threads > kMostThreads) threads = kMostThreads;
  team t = {.roofs = roofs};
  choose_sizes(&t, threads);
  tw_find_roof_loops(&t.loops);
  size_t bytes = (size_t)(t.share * threads);
  t.memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  t.members = calloc((size_t)threads, sizeof(member));
  int* cpus = malloc((size_t)threads * sizeof(int));
  int32_t code = TW_ERROR_MEMORY;
  if (t.memory != MAP_FAILED && t.members && cpus) {
    madvise(t.memory, bytes, MADV_HUGEPAGE);
    /* A single thread stays where the system or the caller puts it; several might land on one core. */
    int cores = threads > 1 ? tw_list_cores(cpus, threads) : 0;
    for (int32_t i = 0; i < threads; ++i) {
      member m = {.team = &t, .index = i, .cpu = cores >= threads ? cpus[i] : -1};
      t.members[i] = m;
      if (pthread_create(&t.members[i].thread, NULL, measure, &t.members[i]) != 0) break;
      t.size = i + 1;
    }
    atomic_store(&t.go, 1); /* `size` is final: everybody knows how many to wait for */
    for (int32_t i = 0; i < t.size; ++i) pthread_join(t.members[i].thread, NULL);
    if (t.size > 0) code = TW_OK;
  }
  free(cpus);
  free(t.members);
  if (t.memory != MAP_FAILED) munmap(t.memory, bytes);
  return code;
}

/* ---- Short probes
 * ---------------------------------------------------------------------------------------------------- */

static tw_compute_probe best_f32;
static int64_t count_of_probe; /* 0.15 ms at 3 GHz and two instructions a cycle */
static pthread_once_t best_f32_once = PTHREAD_ONCE_INIT;
static void find_best_f32(void) {
  tw_roof_loops loops;
  tw_find_roof_loops(&loops);
  best_f32 = loops.f32[loops.best_level];
  count_of_probe = loops.best_level == TW_LEVEL_AVX512 ? 37500 : 75000; /* loops of 24 and of 12 */
}

double tw_probe_peak(void) {
  pthread_once(&best_f32_once, find_best_f32);
  if (!best_f32.loop) return 0;
  double begin = now();
  best_f32.loop(count_of_probe);
  return best_f32.operations * (double)count_of_probe / (now() - begin);
}

void tw_warm_up(double seconds) {
  pthread_once(&best_f32_once, find_best_f32);
  double deadline = now() + seconds;
  while (best_f32.loop && now() < deadline) best_f32.loop(1000);
}
