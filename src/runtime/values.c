/* A chunk of values is examined in two passes. The first compares each value with the one before it, whatever the
 * segments are: no branches, so that it is vectorized and as fast as memory. The second walks over the segments that
 * begin in the chunk, and takes back what the first has counted there. Only a chunk in which something remains is
 * searched for its first position. */
#include "runtime/values.h"

#include <stdatomic.h>
#include <string.h>

#include "runtime/runtime.h"

enum {
  kChunk = 1 << 15, /* counters of 32 bits do not overflow, and the second pass finds the values in L2 */
  kMostRanges = 64,
  kWays = 4, /* ranges whose counters are incremented alternately: as many as there are registers for */
  kFewKeys = 256
};

static int64_t value_at(tw_integers integers, int64_t i) {
  return integers.bits == 64 ? ((const int64_t*)integers.data)[i] : ((const int32_t*)integers.data)[i];
}

/* The first segment that begins at `position` or behind it. */
static int64_t segment_from(tw_integers segments, int64_t position) {
  int64_t low = 0, high = segments.count;
  while (low < high) {
    int64_t middle = low + (high - low) / 2;
    if (value_at(segments, middle) < position) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

static void lower(atomic_llong* least, int64_t position) {
  long long known = atomic_load_explicit(least, memory_order_relaxed);
  while (position < known && !atomic_compare_exchange_weak(least, &known, position)) {
  }
}

/* ---- Examining --------------------------------------------------------------------------------------------------- */

typedef struct examination {
  tw_integers values, segments;
  int64_t low, end;
  atomic_llong outside, descent, repeat;
} examination;

typedef struct counts {
  int32_t outside, descents, repeats;
} counts;

/* The first pass, over [begin, end). A range is one comparison of unsigned numbers. */
#define DEFINE_COUNT(T, U)                                                                \
  static counts count_##T(const T* v, int64_t begin, int64_t end, int64_t low, U width) { \
    counts found = {0, 0, 0};                                                             \
    if (begin == 0 && end > 0) {                                                          \
      found.outside += (U)((U)v[0] - (U)low) >= width;                                    \
      begin = 1;                                                                          \
    }                                                                                     \
    for (int64_t p = begin; p < end; ++p) {                                               \
      found.outside += (U)((U)v[p] - (U)low) >= width;                                    \
      found.descents += v[p] < v[p - 1];                                                  \
      found.repeats += v[p] == v[p - 1];                                                  \
    }                                                                                     \
    return found;                                                                         \
  }
DEFINE_COUNT(int32_t, uint32_t)
DEFINE_COUNT(int64_t, uint64_t)

static counts count_all(const examination* e, int64_t begin, int64_t end) {
  if (e->values.bits == 64)
    return count_int64_t(e->values.data, begin, end, e->low, (uint64_t)e->end - (uint64_t)e->low);
  /* Clip the range to what 32 bits hold; an empty one has no width. */
  int64_t low = e->low<INT32_MIN ? INT32_MIN : e->low, last = e->end>(1LL << 31) ? (1LL << 31) : e->end;
  if (last - low == 1LL << 32) { /* all values: one more than the width can say */
    counts found = count_int32_t(e->values.data, begin, end, low, UINT32_MAX);
    found.outside = 0;
    return found;
  }
  return count_int32_t(e->values.data, begin, end, low, last > low ? (uint32_t)(last - low) : 0);
}

/* The second pass: takes back what was counted at the beginnings of segments that hold values. */
#define DEFINE_TAKE_BACK(T, S)                                                                              \
  static void take_back_##T##_##S(const examination* e, int64_t begin, int64_t end, counts* found) {        \
    const T* v = e->values.data;                                                                            \
    const S* offsets = e->segments.data;                                                                    \
    int64_t last = e->segments.count - 1;                                                                   \
    for (int64_t s = segment_from(e->segments, begin > 0 ? begin : 1); s < last && offsets[s] < end; ++s) { \
      int64_t p = offsets[s];                                                                               \
      if (p <= 0 || p >= e->values.count) continue;                                                         \
      int32_t is_first = offsets[s + 1] > p;                                                                \
      found->descents -= is_first & (v[p] < v[p - 1]);                                                      \
      found->repeats -= is_first & (v[p] == v[p - 1]);                                                      \
    }                                                                                                       \
  }
DEFINE_TAKE_BACK(int32_t, int32_t)
DEFINE_TAKE_BACK(int32_t, int64_t)
DEFINE_TAKE_BACK(int64_t, int32_t)
DEFINE_TAKE_BACK(int64_t, int64_t)

static void take_back(const examination* e, int64_t begin, int64_t end, counts* found) {
  if (e->segments.count < 2) return;
  int wide = e->values.bits == 64, wide_offsets = e->segments.bits == 64;
  if (wide && wide_offsets) {
    take_back_int64_t_int64_t(e, begin, end, found);
  } else if (wide) {
    take_back_int64_t_int32_t(e, begin, end, found);
  } else if (wide_offsets) {
    take_back_int32_t_int64_t(e, begin, end, found);
  } else {
    take_back_int32_t_int32_t(e, begin, end, found);
  }
}

/* The first positions of a chunk in which there are some. */
static void search(examination* e, int64_t begin, int64_t end) {
  int64_t s = segment_from(e->segments, begin), last = e->segments.count - 1;
  for (int64_t p = begin; p < end; ++p) {
    int64_t value = value_at(e->values, p);
    if (value < e->low || value >= e->end) lower(&e->outside, p);
    int is_first = p == 0;
    for (; s <= last && value_at(e->segments, s) <= p; ++s) is_first |= value_at(e->segments, s) == p;
    if (is_first) continue;
    int64_t before = value_at(e->values, p - 1);
    if (value < before) lower(&e->descent, p);
    if (value == before) lower(&e->repeat, p);
  }
}

/* Whether a chunk in which something was counted may have the first position of it. */
static int may_lower(atomic_llong* least, int64_t begin, int32_t count) {
  return count != 0 && begin < atomic_load_explicit(least, memory_order_relaxed);
}

static int32_t examine_chunks(tw_ctx* ctx, int64_t first, int64_t last, void* closure) {
  (void)ctx;
  examination* e = closure;
  for (int64_t chunk = first; chunk < last; ++chunk) {
    int64_t begin = chunk * kChunk, end = begin + kChunk < e->values.count ? begin + kChunk : e->values.count;
    counts found = count_all(e, begin, end);
    if (found.descents || found.repeats) take_back(e, begin, end, &found);
    if (may_lower(&e->outside, begin, found.outside) || may_lower(&e->descent, begin, found.descents) ||
        may_lower(&e->repeat, begin, found.repeats)) {
      search(e, begin, end);
    }
  }
  return TW_OK;
}

static int64_t found_or_none(atomic_llong* least) {
  int64_t position = atomic_load(least);
  return position == INT64_MAX ? -1 : position;
}

int32_t tw_examine_values(tw_ctx* ctx, tw_integers values, int64_t low, int64_t end, tw_integers segments,
                          tw_value_faults* faults) {
  examination e = {.values = values, .segments = segments, .low = low, .end = end};
  atomic_init(&e.outside, INT64_MAX);
  atomic_init(&e.descent, INT64_MAX);
  atomic_init(&e.repeat, INT64_MAX);
  int64_t chunks = (values.count + kChunk - 1) / kChunk;
  int32_t code = ctx->parallel_for(ctx, examine_chunks, &e, chunks, 4);
  faults->outside = found_or_none(&e.outside);
  faults->descent = found_or_none(&e.descent);
  faults->repeat = found_or_none(&e.repeat);
  return code;
}

/* ---- Duplicates -------------------------------------------------------------------------------------------------- */

typedef struct duplicates {
  tw_integers values, segments;
  int64_t end;
  int64_t ranges;
  atomic_llong first;
} duplicates;

static int64_t clamp(int64_t position, int64_t count) { return position < 0 ? 0 : position > count ? count : position; }

/* Marks each value with its segment's number, counted within the range so that 32 bits are enough. */
static int32_t find_in_ranges(tw_ctx* ctx, int64_t first, int64_t last, void* closure) {
  duplicates* d = closure;
  int64_t segments = d->segments.count - 1, per_range = (segments + d->ranges - 1) / d->ranges;
  uint32_t* marks = ctx->workspace_acquire(ctx, d->end * (int64_t)sizeof(uint32_t));
  if (!marks) return TW_ERROR_MEMORY;
  for (int64_t range = first; range < last; ++range) {
    memset(marks, 0, (size_t)d->end * sizeof(uint32_t));
    int64_t begin = range * per_range, end = clamp(begin + per_range, segments);
    for (int64_t s = begin; s < end; ++s) {
      int64_t from = clamp(value_at(d->segments, s), d->values.count);
      int64_t to = clamp(value_at(d->segments, s + 1), d->values.count);
      uint32_t mark = (uint32_t)(s - begin + 1);
      for (int64_t p = from; p < to; ++p) {
        int64_t value = value_at(d->values, p);
        if (value < 0 || value >= d->end) continue;
        if (marks[value] == mark) lower(&d->first, p);
        marks[value] = mark;
      }
    }
  }
  ctx->workspace_release(ctx, marks);
  return TW_OK;
}

int32_t tw_find_duplicate(tw_ctx* ctx, tw_integers values, int64_t end, tw_integers segments, int64_t* position) {
  int64_t count = segments.count - 1;
  *position = -1;
  if (count <= 0 || end <= 0) return TW_OK;
  /* Each range clears the marks once: as few ranges as keep threads busy. */
  int64_t ranges = tw_get_num_threads() < kMostRanges ? tw_get_num_threads() : kMostRanges;
  duplicates d = {.values = values, .segments = segments, .end = end, .ranges = ranges < count ? ranges : count};
  if (count / d.ranges >= INT32_MAX) d.ranges = count / INT32_MAX + 1;
  atomic_init(&d.first, INT64_MAX);
  int32_t code = ctx->parallel_for(ctx, find_in_ranges, &d, d.ranges, 1);
  *position = found_or_none(&d.first);
  return code;
}

/* ---- Sorting ----------------------------------------------------------------------------------------------------- */

typedef struct sorting {
  tw_integers keys;     /* of positions; with a table, the offsets of segments instead */
  const int32_t* table; /* the key of a segment by its length; longer ones have the last key */
  int64_t num_lengths;
  int64_t count, num_keys, ranges, ways;
  uint8_t* bytes; /* the keys once more, if they are less than kFewKeys */
  void* counters; /* [ranges][num_keys]: of each range, how many; then where its next one goes */
  void* permutation;
} sorting;

/* The ranges that one call of a loop visits alternately: a counter that is incremented twice in a row waits for itself,
 * and most keys of a sort by few keys are equal. */
typedef struct ways {
  int64_t begin[kWays], end[kWays];
  int64_t common; /* positions that each of kWays ranges has */
} ways;

static ways ways_of(const sorting* s, int64_t task) {
  ways w = {.common = 0};
  int64_t size = (s->count + s->ranges - 1) / s->ranges;
  for (int64_t i = 0; i < s->ways; ++i) {
    w.begin[i] = clamp((task * s->ways + i) * size, s->count);
    w.end[i] = clamp(w.begin[i] + size, s->count);
  }
  if (s->ways == kWays) w.common = w.end[kWays - 1] - w.begin[kWays - 1]; /* the last range is the shortest */
  return w;
}

/* Two loops over the positions of a task: over those of its ranges alternately, and over what is left of each. Pointers
 * are copied to variables that no store through one of them may change, so that they stay in registers.
 *
 * T: type of positions and of counters. K: type of what keys are read from. KEY: key of position n of a range that is
 * read from `from`. BODY: what is done with `key`, position `p`, and the `counter` of a range. */
#define FOR_EACH_KEY(T, K, KEY, BODY)                                     \
  do {                                                                    \
    const int32_t* table = s->table;                                      \
    const int64_t longest = s->num_lengths - 1;                           \
    (void)table, (void)longest;                                           \
    for (int64_t task = first; task < last; ++task) {                     \
      const ways w = ways_of(s, task);                                    \
      T* const counters = (T*)s->counters + task * s->ways * s->num_keys; \
      if (w.common > 0) {                                                 \
        const K* begins[kWays];                                           \
        T* own[kWays];                                                    \
        T numbers[kWays];                                                 \
        for (int i = 0; i < kWays; ++i) {                                 \
          begins[i] = (const K*)source + w.begin[i];                      \
          own[i] = counters + i * s->num_keys;                            \
          numbers[i] = (T)w.begin[i];                                     \
        }                                                                 \
        for (int64_t n = 0; n < w.common; ++n) {                          \
          _Pragma("GCC unroll 4") for (int i = 0; i < kWays; ++i) {       \
            const K* from = begins[i];                                    \
            T* counter = own[i];                                          \
            const T p = numbers[i] + (T)n;                                \
            const int64_t key = KEY;                                      \
            BODY;                                                         \
          }                                                               \
        }                                                                 \
      }                                                                   \
      for (int64_t i = 0; i < s->ways; ++i) {                             \
        const K* from = (const K*)source + w.begin[i];                    \
        T* counter = counters + i * s->num_keys;                          \
        for (int64_t n = w.common; n < w.end[i] - w.begin[i]; ++n) {      \
          const T p = (T)(w.begin[i] + n);                                \
          const int64_t key = KEY;                                        \
          BODY;                                                           \
        }                                                                 \
      }                                                                   \
    }                                                                     \
  } while (0)

#define DEFINE_SORT(NAME, T, K, KEY, SOURCE)                                             \
  static int32_t place_##NAME(tw_ctx* ctx, int64_t first, int64_t last, void* closure) { \
    (void)ctx;                                                                           \
    const sorting* s = closure;                                                          \
    const void* source = SOURCE;                                                         \
    T* permutation = s->permutation;                                                     \
    FOR_EACH_KEY(T, K, KEY, permutation[counter[key]++] = p);                            \
    return TW_OK;                                                                        \
  }
#define GIVEN_KEY from[n]
#define KEY_OF_LENGTH table[at_most(from[n + 1] - from[n], longest)]

static int64_t at_most(int64_t length, int64_t longest) { return length < longest ? length : longest; }

DEFINE_SORT(keys_int32_t, int32_t, int32_t, GIVEN_KEY, s->keys.data)
DEFINE_SORT(keys_int64_t, int64_t, int64_t, GIVEN_KEY, s->keys.data)
DEFINE_SORT(lengths_int32_t, int32_t, int32_t, KEY_OF_LENGTH, s->keys.data)
DEFINE_SORT(lengths_int64_t, int64_t, int64_t, KEY_OF_LENGTH, s->keys.data)
DEFINE_SORT(bytes_int32_t, int32_t, uint8_t, GIVEN_KEY, s->bytes)
DEFINE_SORT(bytes_int64_t, int64_t, uint8_t, GIVEN_KEY, s->bytes)

/* The first pass over the positions of tasks. Keys that fit into bytes are kept for the second pass, as few of them are
 * cheaper to read than what they follow from. */
#define DEFINE_FIRST_PASS(T)                                                                      \
  static int32_t first_pass_##T(tw_ctx* ctx, int64_t first, int64_t last, void* closure) {        \
    (void)ctx;                                                                                    \
    const sorting* s = closure;                                                                   \
    const int64_t of_task = s->ways * s->num_keys;                                                \
    memset((T*)s->counters + first * of_task, 0, (size_t)((last - first) * of_task) * sizeof(T)); \
    const void* source = s->keys.data;                                                            \
    uint8_t* bytes = s->bytes;                                                                    \
    if (bytes && s->table) {                                                                      \
      FOR_EACH_KEY(T, T, KEY_OF_LENGTH, bytes[p] = (uint8_t)key; ++counter[key]);                 \
    } else if (bytes) {                                                                           \
      FOR_EACH_KEY(T, T, GIVEN_KEY, bytes[p] = (uint8_t)key; ++counter[key]);                     \
    } else if (s->table) {                                                                        \
      FOR_EACH_KEY(T, T, KEY_OF_LENGTH, (void)p; ++counter[key]);                                 \
    } else {                                                                                      \
      FOR_EACH_KEY(T, T, GIVEN_KEY, (void)p; ++counter[key]);                                     \
    }                                                                                             \
    return TW_OK;                                                                                 \
  }
DEFINE_FIRST_PASS(int32_t)
DEFINE_FIRST_PASS(int64_t)

#define DEFINE_SCAN(T)                                                              \
  static void scan_##T(const sorting* s, T* offsets) {                              \
    T total = 0;                                                                    \
    for (int64_t key = 0; key < s->num_keys; ++key) {                               \
      offsets[key] = total;                                                         \
      for (int64_t range = 0; range < s->ranges; ++range) {                         \
        T *counter = (T*)s->counters + range * s->num_keys + key, count = *counter; \
        *counter = total;                                                           \
        total += count;                                                             \
      }                                                                             \
    }                                                                               \
    offsets[s->num_keys] = total;                                                   \
  }
DEFINE_SCAN(int32_t)
DEFINE_SCAN(int64_t)

static int32_t run_passes(tw_ctx* ctx, sorting* s, int64_t tasks, void* offsets) {
  const int wide = s->keys.bits == 64;
  int32_t code = ctx->parallel_for(ctx, wide ? first_pass_int64_t : first_pass_int32_t, s, tasks, 1);
  if (code != TW_OK) return code;
  if (wide) {
    scan_int64_t(s, offsets);
    return ctx->parallel_for(ctx,
                             s->bytes   ? place_bytes_int64_t
                             : s->table ? place_lengths_int64_t
                                        : place_keys_int64_t,
                             s, tasks, 1);
  }
  scan_int32_t(s, offsets);
  return ctx->parallel_for(ctx,
                           s->bytes   ? place_bytes_int32_t
                           : s->table ? place_lengths_int32_t
                                      : place_keys_int32_t,
                           s, tasks, 1);
}

static int32_t sort(tw_ctx* ctx, sorting s, void* offsets) {
  int64_t tasks = tw_get_num_threads() < kMostRanges ? tw_get_num_threads() : kMostRanges;
  if (s.count < kChunk) tasks = 1;
  s.ways = kWays * tasks * s.num_keys < s.count ? kWays : 1;
  s.ranges = tasks * s.ways;
  s.counters = ctx->workspace_acquire(ctx, (s.ranges * s.num_keys + 1) * (int64_t)(s.keys.bits / 8));
  if (!s.counters) return TW_ERROR_MEMORY;
  int32_t code = TW_ERROR_MEMORY;
  const int is_few = s.num_keys <= kFewKeys && s.count > 0;
  if (is_few) s.bytes = ctx->workspace_acquire(ctx, s.count);
  if (!is_few || s.bytes) code = run_passes(ctx, &s, tasks, offsets);
  if (s.bytes) ctx->workspace_release(ctx, s.bytes);
  ctx->workspace_release(ctx, s.counters);
  return code;
}

int32_t tw_sort_by_key(tw_ctx* ctx, tw_integers keys, int64_t num_keys, void* offsets, void* permutation) {
  return sort(ctx, (sorting){.keys = keys, .count = keys.count, .num_keys = num_keys, .permutation = permutation},
              offsets);
}

int32_t tw_sort_by_length(tw_ctx* ctx, tw_integers segments, const int32_t* table, int64_t num_lengths,
                          int64_t num_keys, void* offsets, void* permutation) {
  return sort(ctx,
              (sorting){.keys = segments,
                        .table = table,
                        .num_lengths = num_lengths,
                        .count = segments.count - 1,
                        .num_keys = num_keys,
                        .permutation = permutation},
              offsets);
}
