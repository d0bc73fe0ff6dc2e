/* Whether strided tensors share memory, exactly.
 *
 * Bytes of two tensors coincide iff their index vectors and byte positions within an element solve
 *
 *     sum of c_k * x_k = target,   0 <= x_k <= u_k,   c_k > 0
 *
 * once every negative step has been reversed (x -> u - x) and the second tensor's terms have been moved over in the
 * same way. Solved by search over the terms from the largest step down: a branch ends where the remaining terms cannot
 * reach the rest, or where their greatest common divisor does not divide it. Tensors that people slice out of arrays
 * are decided in a few steps; after kBudget steps the answer is "may overlap". */
#include "runtime/runtime.h"

enum { kBudget = 20000, kMostTerms = 70 };

typedef struct term {
  int64_t step; /* positive */
  int64_t last; /* largest value of the variable, positive */
} term;

typedef struct equation {
  int32_t count;
  int32_t budget;
  int64_t target;
  term terms[kMostTerms];
  int64_t divisor[kMostTerms + 1]; /* gcd of the steps from here on; 0 behind the last */
  __int128 reach[kMostTerms + 1];  /* sum of step * last from here on */
} equation;

static int64_t greatest_common_divisor(int64_t a, int64_t b) {
  while (b) {
    int64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

/* Adds step * x for x in [0, last], with a sign of either kind. Returns 0 if there is no room. */
static int add_term(equation* e, int64_t step, int64_t last) {
  if (step == 0 || last <= 0) return 1;
  if (step < 0) { /* step * x = step * last + (-step) * (last - x) */
    e->target -= step * last;
    step = -step;
  }
  for (int32_t k = 0; k < e->count; ++k) {
    if (e->terms[k].step == step) { /* the sum of two variables takes every value up to the sum of their limits */
      e->terms[k].last += last;
      return 1;
    }
  }
  if (e->count == kMostTerms) return 0;
  int32_t at = e->count++;
  for (; at > 0 && e->terms[at - 1].step < step; --at) e->terms[at] = e->terms[at - 1];
  e->terms[at].step = step;
  e->terms[at].last = last;
  return 1;
}

static void summarize(equation* e) {
  e->divisor[e->count] = 0;
  e->reach[e->count] = 0;
  for (int32_t k = e->count - 1; k >= 0; --k) {
    e->divisor[k] = greatest_common_divisor(e->terms[k].step, e->divisor[k + 1]);
    e->reach[k] = e->reach[k + 1] + (__int128)e->terms[k].step * e->terms[k].last;
  }
}

/* Whether terms k and following can sum to `rest`; also 1 when the budget is spent. */
static int solvable(equation* e, int32_t k, int64_t rest) {
  if (rest < 0 || rest > e->reach[k]) return 0;
  if (rest == 0) return 1;
  if (rest % e->divisor[k]) return 0;
  if (--e->budget < 0) return 1;
  const term* t = &e->terms[k];
  int64_t most = rest / t->step;
  if (most > t->last) most = t->last;
  for (int64_t x = most; x >= 0; --x) {
    int64_t left = rest - x * t->step;
    if (left > e->reach[k + 1]) return 0; /* and smaller x leave more */
    if (solvable(e, k + 1, left)) return 1;
  }
  return 0;
}

static int64_t stride_of(const DLTensor* t, int32_t dim) {
  if (t->strides) return t->strides[dim];
  int64_t compact = 1;
  for (int32_t d = t->ndim - 1; d > dim; --d) compact *= t->shape[d];
  return compact;
}

static int64_t byte_step(const DLTensor* t, int32_t dim) { return stride_of(t, dim) * tw_element_bytes(t->dtype); }

int tw_tensors_overlap(const DLTensor* a, const DLTensor* b) {
  const int is_opencl = (int32_t)a->device.device_type == kDLOpenCL;
  if (is_opencl != ((int32_t)b->device.device_type == kDLOpenCL)) return 0;
  if (is_opencl && a->data != b->data) return 0;
  equation e;
  e.count = 0;
  e.budget = kBudget;
  /* address(b) + byte in b's element + steps of b = address(a) + byte in a's element + steps of a */
  e.target = (int64_t)(tw_begin_of(b) - tw_begin_of(a));
  int room = add_term(&e, 1, tw_element_bytes(a->dtype) - 1) && add_term(&e, -1, tw_element_bytes(b->dtype) - 1);
  for (int32_t d = 0; room && d < a->ndim; ++d) room = add_term(&e, byte_step(a, d), a->shape[d] - 1);
  for (int32_t d = 0; room && d < b->ndim; ++d) room = add_term(&e, -byte_step(b, d), b->shape[d] - 1);
  if (!room) return 1;
  summarize(&e);
  return solvable(&e, 0, e.target);
}

/* Whether every step is longer than all within one step of the dimension, so that elements are apart. */
static int is_nested(const DLTensor* t) {
  int64_t covered = 0; /* distance of the last element among the dimensions with smaller steps */
  uint64_t done = 0;
  if (t->ndim > 64) return 0;
  for (int32_t round = 0; round < t->ndim; ++round) {
    int32_t smallest = -1;
    int64_t step = 0;
    for (int32_t d = 0; d < t->ndim; ++d) {
      int64_t s = stride_of(t, d);
      if (s < 0) s = -s;
      if (t->shape[d] > 1 && !(done >> d & 1) && (smallest < 0 || s < step)) {
        smallest = d;
        step = s;
      }
    }
    if (smallest < 0) break;
    if (step <= covered) return 0;
    covered += step * (t->shape[smallest] - 1);
    done |= (uint64_t)1 << smallest;
  }
  return 1;
}

int tw_tensor_overlaps_itself(const DLTensor* t) {
  if (is_nested(t)) return 0;
  int64_t bytes = tw_element_bytes(t->dtype);
  int32_t budget = kBudget;
  /* Two index vectors that differ first in dimension `lead`, by at least 1 there and by anything behind it. */
  for (int32_t lead = 0; lead < t->ndim; ++lead) {
    if (t->shape[lead] < 2) continue;
    equation e;
    e.count = 0;
    e.budget = budget;
    e.target = -byte_step(t, lead);
    int room = add_term(&e, byte_step(t, lead), t->shape[lead] - 2) && add_term(&e, 1, bytes - 1) &&
               add_term(&e, -1, bytes - 1);
    for (int32_t d = lead + 1; room && d < t->ndim; ++d) {
      int64_t step = byte_step(t, d), most = t->shape[d] - 1; /* the difference is x - most, x in [0, 2 * most] */
      e.target += step * most;
      room = add_term(&e, step, 2 * most);
    }
    if (!room) return 1;
    summarize(&e);
    if (solvable(&e, 0, e.target)) return 1;
    budget = e.budget;
  }
  return 0;
}
