/* Measures the roofline of this machine: peak arithmetic rates and bandwidths. Data sheets do not state sustained
 * clocks, ports and shared caches.
 *
 * Each rate is the best of several short measurements, so short disturbances do not matter. On shared machines, rates
 * still vary from minute to minute: compare with kernels that were measured in the same run. */
#ifndef TILEWRIGHT_RUNTIME_ROOFS_H_
#define TILEWRIGHT_RUNTIME_ROOFS_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Vector instruction sets that differ in peak rate. */
enum tw_level {
  TW_LEVEL_BASELINE = 0, /* SSE2: multiply and add apart */
  TW_LEVEL_AVX2 = 1,     /* AVX2 with FMA */
  TW_LEVEL_AVX512 = 2,
  TW_NUM_LEVELS = 3
};

/* Per second, for all threads together; 0 where the machine lacks it, or where there is no probe (other architectures
 * than x86-64). */
typedef struct tw_roofs {
  int32_t threads;
  int32_t best_level; /* tw_level */

  /* Floating-point operations, a fused multiply-add being two, by level. */
  double f32_flops[TW_NUM_LEVELS];
  double f64_flops[TW_NUM_LEVELS];

  /* Integer operations at the best level. A dot-product instruction counts every product and every addition. */
  double i32_add;
  double i32_mul;
  double i8_dot;

  /* Products of bfloat16 summed in float32, by an instruction for that; counted like i8_dot. */
  double bf16_dot;

  /* Bytes read from data that is in the cache, or in memory. */
  double l1_read;
  double l2_read;
  double l3_read;
  double dram_read;
} tw_roofs;

/* Measures with `threads` threads, each on a core of its own while there are enough; 0: one per core that this process
 * may use. Takes a few tenths of a second. Returns TW_OK or TW_ERROR_MEMORY, when there is no room for the buffers. */
int32_t tw_measure_roofs(int32_t threads, tw_roofs* roofs);

/* Floating-point operations (float32) per second at the best level, over 0.1 to 0.2 ms on the calling thread. Beside
 * the best value seen so far it shows whether something else ran meanwhile. */
double tw_probe_peak(void);

/* Runs the widest floating-point instructions for so long. Processors lower their clock when wide instructions begin;
 * what is timed in the first millisecond is neither one speed nor the other. */
void tw_warm_up(double seconds);

#ifdef __cplusplus
}
#endif

#endif /* TILEWRIGHT_RUNTIME_ROOFS_H_ */
