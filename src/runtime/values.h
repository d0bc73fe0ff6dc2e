/* Validates and sorts the index arrays of sparse tensors, which users pass. All functions run in parallel on the
 * threads of a context. */
#ifndef TILEWRIGHT_RUNTIME_VALUES_H_
#define TILEWRIGHT_RUNTIME_VALUES_H_

#include "runtime/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Signed integers of 32 or 64 bits. */
typedef struct tw_integers {
  const void* data;
  int64_t count;
  int32_t bits;
} tw_integers;

/* The first position of each kind; -1 where there is none. */
typedef struct tw_value_faults {
  int64_t outside; /* not in [low, end) */
  int64_t descent; /* less than the value before it in its segment */
  int64_t repeat;  /* equal to the value before it in its segment */
} tw_value_faults;

/* Examines all values in one pass. `segments` are offsets: segment s is [segments[s], segments[s + 1]); without any
 * (count 0) all values are one segment. Offsets that descend or leave the array make `descent` and `repeat`
 * meaningless; nothing is read outside of the arrays. Returns TW_OK, or the code of a failed loop. */
int32_t tw_examine_values(tw_ctx* ctx, tw_integers values, int64_t low, int64_t end, tw_integers segments,
                          tw_value_faults* faults);

/* Finds the first value in [0, end) that its segment holds earlier, in any order; -1 where there is none. Values
 * outside of [0, end) are skipped. Returns TW_OK, or TW_ERROR_MEMORY. */
int32_t tw_find_duplicate(tw_ctx* ctx, tw_integers values, int64_t end, tw_integers segments, int64_t* position);

/* Sorts positions by keys in [0, num_keys), stably: permutation[offsets[k] ...] are the positions of key k, ascending.
 * `offsets` has num_keys + 1 entries; both results have as many bits as `keys`. Returns TW_OK, or TW_ERROR_MEMORY.
 * Knuth, The Art of Computer Programming, volume 3, section 5.2, algorithm D; each thread counts a range. */
int32_t tw_sort_by_key(tw_ctx* ctx, tw_integers keys, int64_t num_keys, void* offsets, void* permutation);

/* Sorts segments by a key of their length, stably: segment i is [segments[i], segments[i + 1]), and its key in
 * [0, num_keys) is table[length]; longer ones have the last key of the table. The results are those of
 * tw_sort_by_key(), with as many bits as `segments`. Returns TW_OK, or TW_ERROR_MEMORY. */
int32_t tw_sort_by_length(tw_ctx* ctx, tw_integers segments, const int32_t* table, int64_t num_lengths,
                          int64_t num_keys, void* offsets, void* permutation);

#ifdef __cplusplus
}
#endif

#endif /* TILEWRIGHT_RUNTIME_VALUES_H_ */
