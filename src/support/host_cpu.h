/* What the processor and the operating system offer to this process. C, because compiled kernels use it too. */
#ifndef TILEWRIGHT_SUPPORT_HOST_CPU_H_
#define TILEWRIGHT_SUPPORT_HOST_CPU_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Instruction sets -------------------------------------------------------------------------------------------- */

enum tw_cpu_feature {
#define TW_X86_FEATURE(identifier, name, leaf, subleaf, reg, bit, state) TW_CPU_##identifier,
#define TW_ARM_FEATURE(identifier, name, word, bit) TW_CPU_##identifier,
#include "support/cpu_features.def"
#undef TW_X86_FEATURE
#undef TW_ARM_FEATURE
  TW_NUM_CPU_FEATURES
};

/* A set of tw_cpu_feature: bit i of word i / 64. */
#define TW_CPU_FEATURE_WORDS 2
typedef struct tw_cpu_features {
  uint64_t words[TW_CPU_FEATURE_WORDS];
} tw_cpu_features;

/* Instruction sets that both the processor and the operating system support; empty on other architectures than x86-64
 * and 64-bit Arm. Found once, then remembered. */
const tw_cpu_features* tw_host_cpu_features(void);

/* As LLVM spells it; NULL beyond the last. */
const char* tw_cpu_feature_name(int feature);

/* 1 for instruction sets of 64-bit Arm, 0 for those of x86-64. */
int tw_is_arm_feature(int feature);

/* The feature called by the first `length` characters of `name`, or -1. */
int tw_cpu_feature_from_name(const char* name, int length);

/* Reads "avx2,fma,..." into `set`; a leading '+' of an entry is ignored. Returns 0, or the length of the first entry
 * that is unknown, which then starts at *unknown. */
int tw_parse_features(const char* list, tw_cpu_features* set, const char** unknown);

static inline int tw_has_cpu_feature(const tw_cpu_features* set, int feature) {
  return (int)(set->words[feature / 64] >> (feature % 64) & 1);
}

/* Asks the kernel for the use of AMX tiles, which Linux grants per process on request. Returns 1 if they may be used.
 */
int tw_request_amx(void);

/* ---- Model and caches -------------------------------------------------------------------------------------------- */

typedef struct tw_host_cpu {
  char vendor[16]; /* "GenuineIntel", "AuthenticAMD", ... */
  char brand[64];  /* marketing name; may be empty */
  int32_t family;  /* extended family and model included */
  int32_t model;
  int32_t stepping;
  int32_t line_bytes;
  int64_t l1_bytes; /* data, one core; 0 where unknown, as below */
  int64_t l2_bytes; /* one instance */
  int64_t l3_bytes; /* one instance, which l3_sharers processors share */
  int32_t l3_sharers;
} tw_host_cpu;

const tw_host_cpu* tw_host_cpu_info(void);

/* ---- How many -------------------------------------------------------------------------------------------------- */

/* Logical processors in this process's affinity mask, at least 1. */
int tw_count_processors(void);

/* Fills `cpus` with one processor of each physical core in the affinity mask, as far as `capacity` goes. Returns how
 * many such cores there are; 0 where the mask cannot be read. */
int tw_list_cores(int* cpus, int capacity);

/* Threads that can usefully compute at once: physical cores in the affinity mask, limited by the CPU quota of the
 * control groups; at least 1. */
int tw_count_cores(void);

/* CPU time per time that the control groups of this process grant, in processors; 0: no limit. `proc_cgroup` is
 * normally /proc/self/cgroup and `root` /sys/fs/cgroup. */
double tw_cgroup_quota(const char* proc_cgroup, const char* root);

#ifdef __cplusplus
}
#endif

#endif /* TILEWRIGHT_SUPPORT_HOST_CPU_H_ */
