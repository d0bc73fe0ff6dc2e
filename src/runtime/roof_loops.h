/* The inner loops of the roof probes. */
#ifndef TILEWRIGHT_RUNTIME_ROOF_LOOPS_H_
#define TILEWRIGHT_RUNTIME_ROOF_LOOPS_H_

#include <stdint.h>

#include "runtime/roofs.h"

/* Executes the loop `count` times, at least once. */
typedef void (*tw_compute_loop)(int64_t count);

/* Reads [from, from + count * TW_READ_STEP) once; aligned to 64 bytes. */
typedef void (*tw_read_loop)(const void* from, int64_t count);
enum { TW_READ_STEP = 1024 };

typedef struct tw_compute_probe {
  tw_compute_loop loop; /* NULL: not on this machine */
  double operations;    /* of one execution */
} tw_compute_probe;

typedef struct tw_roof_loops {
  int32_t best_level;
  tw_compute_probe f32[TW_NUM_LEVELS];
  tw_compute_probe f64[TW_NUM_LEVELS];
  tw_compute_probe i32_add, i32_mul, i8_dot, bf16_dot;
  tw_read_loop read;
} tw_roof_loops;

/* The loops that this processor can execute. */
void tw_find_roof_loops(tw_roof_loops* loops);

#endif /* TILEWRIGHT_RUNTIME_ROOF_LOOPS_H_ */
