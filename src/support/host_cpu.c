#include "support/host_cpu.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>
#endif

/* ---- Instruction sets -------------------------------------------------------------------------------------------- */

static const struct {
  const char* name;
  int is_arm;
} kFeatures[] = {
#define TW_X86_FEATURE(identifier, name, leaf, subleaf, reg, bit, state) {name, 0},
#define TW_ARM_FEATURE(identifier, name, word, bit) {name, 1},
#include "support/cpu_features.def"
#undef TW_X86_FEATURE
#undef TW_ARM_FEATURE
};

_Static_assert(TW_NUM_CPU_FEATURES <= 64 * TW_CPU_FEATURE_WORDS, "the feature set is full");

const char* tw_cpu_feature_name(int feature) {
  return feature >= 0 && feature < TW_NUM_CPU_FEATURES ? kFeatures[feature].name : NULL;
}

int tw_is_arm_feature(int feature) { return kFeatures[feature].is_arm; }

int tw_cpu_feature_from_name(const char* name, int length) {
  for (int i = 0; i < TW_NUM_CPU_FEATURES; ++i) {
    const char* known = kFeatures[i].name;
    if ((int)strlen(known) == length && memcmp(known, name, (size_t)length) == 0) return i;
  }
  return -1;
}

int tw_parse_features(const char* list, tw_cpu_features* set, const char** unknown) {
  memset(set, 0, sizeof(*set));
  while (*list) {
    if (*list == '+') ++list;
    int length = (int)strcspn(list, ",");
    if (length > 0) {
      int feature = tw_cpu_feature_from_name(list, length);
      if (feature < 0) {
        *unknown = list;
        return length;
      }
      set->words[feature / 64] |= (uint64_t)1 << (feature % 64);
    }
    list += length;
    if (*list == ',') ++list;
  }
  return 0;
}

#if defined(__x86_64__)

enum { EAX, EBX, ECX, EDX };
enum { STATE_NONE = 0, STATE_AVX = 0x6, STATE_AVX512 = 0xe6, STATE_AMX = 0x60000 };

static void read_leaf(uint32_t leaf, uint32_t subleaf, uint32_t registers[4]) {
  memset(registers, 0, 4 * sizeof(registers[0]));
  if (__get_cpuid_max(leaf & 0x80000000u, NULL) < leaf) return;
  __cpuid_count(leaf, subleaf, registers[EAX], registers[EBX], registers[ECX], registers[EDX]);
}

/* The register states that the operating system saves on a context switch. */
static uint64_t enabled_states(void) {
  uint32_t low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (uint64_t)high << 32 | low;
}

enum { LEAF_1, LEAF_7, LEAF_7_1, LEAF_EXTENDED, NUM_LEAVES };

static void detect_features(tw_cpu_features* set) {
  /* Each leaf is read once: under a hypervisor every cpuid is a trip to the host. */
  uint32_t leaves[NUM_LEAVES][4];
  read_leaf(1, 0, leaves[LEAF_1]);
  read_leaf(7, 0, leaves[LEAF_7]);
  memset(leaves[LEAF_7_1], 0, sizeof(leaves[LEAF_7_1]));
  if (leaves[LEAF_7][EAX] >= 1) read_leaf(7, 1, leaves[LEAF_7_1]); /* the number of the last subleaf */
  read_leaf(0x80000001, 0, leaves[LEAF_EXTENDED]);

  uint64_t states = leaves[LEAF_1][ECX] >> 27 & 1 ? enabled_states() : 0; /* OSXSAVE: xgetbv exists */
  memset(set, 0, sizeof(*set));
#define TW_X86_FEATURE(identifier, name, leaf, subleaf, reg, bit, state)                                        \
  {                                                                                                             \
    const uint32_t* r = leaves[leaf == 1 ? LEAF_1 : leaf == 7 ? (subleaf ? LEAF_7_1 : LEAF_7) : LEAF_EXTENDED]; \
    if ((states & STATE_##state) == STATE_##state && (r[reg] >> bit & 1)) {                                     \
      set->words[TW_CPU_##identifier / 64] |= (uint64_t)1 << (TW_CPU_##identifier % 64);                        \
    }                                                                                                           \
  }
#define TW_ARM_FEATURE(identifier, name, word, bit)
#include "support/cpu_features.def"
#undef TW_X86_FEATURE
#undef TW_ARM_FEATURE
}

int tw_request_amx(void) {
  enum { kRequestPermission = 0x1023, kTileData = 18 }; /* ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA */
  if (!tw_has_cpu_feature(tw_host_cpu_features(), TW_CPU_amx_tile)) return 0;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

#elif defined(__aarch64__)

static void detect_features(tw_cpu_features* set) {
  const unsigned long words[] = {0, getauxval(AT_HWCAP), getauxval(AT_HWCAP2)};
  memset(set, 0, sizeof(*set));
#define TW_X86_FEATURE(identifier, name, leaf, subleaf, reg, bit, state)
#define TW_ARM_FEATURE(identifier, name, word, bit) \
  set->words[TW_CPU_##identifier / 64] |= (uint64_t)(words[word] >> bit & 1) << (TW_CPU_##identifier % 64);
#include "support/cpu_features.def"
#undef TW_X86_FEATURE
#undef TW_ARM_FEATURE
}
int tw_request_amx(void) { return 0; }

#else

static void detect_features(tw_cpu_features* set) { memset(set, 0, sizeof(*set)); }
int tw_request_amx(void) { return 0; }

#endif

static tw_cpu_features host_features;
static pthread_once_t host_features_once = PTHREAD_ONCE_INIT;
static void find_features(void) { detect_features(&host_features); }

const tw_cpu_features* tw_host_cpu_features(void) {
  pthread_once(&host_features_once, find_features);
  return &host_features;
}

/* ---- Model and caches -------------------------------------------------------------------------------------------- */

#if defined(__x86_64__)
static void detect_model(tw_host_cpu* cpu) {
  uint32_t r[4];
  read_leaf(0, 0, r);
  memcpy(cpu->vendor, &r[EBX], 4);
  memcpy(cpu->vendor + 4, &r[EDX], 4);
  memcpy(cpu->vendor + 8, &r[ECX], 4);
  read_leaf(1, 0, r);
  cpu->stepping = (int32_t)(r[EAX] & 0xf);
  cpu->family = (int32_t)(r[EAX] >> 8 & 0xf);
  cpu->model = (int32_t)(r[EAX] >> 4 & 0xf);
  if (cpu->family == 6 || cpu->family == 15) cpu->model += (int32_t)(r[EAX] >> 16 & 0xf) << 4;
  if (cpu->family == 15) cpu->family += (int32_t)(r[EAX] >> 20 & 0xff);
  for (uint32_t i = 0; i < 3; ++i) {
    read_leaf(0x80000002u + i, 0, r);
    memcpy(cpu->brand + 16 * i, r, 16);
  }
  size_t length = strlen(cpu->brand);
  while (length > 0 && cpu->brand[length - 1] == ' ') cpu->brand[--length] = '\0';
}
#else
static void detect_model(tw_host_cpu* cpu) { (void)cpu; }
#endif

/* One line of a file below /sys/devices/system/cpu; 0 where there is none. */
static int read_cpu_file(int cpu, const char* file, int index, char* line, int size) {
  char path[128];
  snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/cache/index%d/%s", cpu, index, file);
  FILE* stream = fopen(path, "re");
  if (!stream) return 0;
  int found = fgets(line, size, stream) != NULL;
  fclose(stream);
  return found;
}

/* "32768K" or "1M" in bytes. */
static int64_t parse_size(const char* text) {
  char* end;
  int64_t value = strtoll(text, &end, 10);
  if (*end == 'K') value <<= 10;
  if (*end == 'M') value <<= 20;
  return value;
}

/* The number of processors in a list such as "0-3,8". */
static int32_t count_list(const char* text) {
  int32_t count = 0;
  while (*text >= '0' && *text <= '9') {
    char* end;
    long first = strtol(text, &end, 10), last = first;
    if (*end == '-') last = strtol(end + 1, &end, 10);
    count += (int32_t)(last - first + 1);
    text = *end == ',' ? end + 1 : end;
  }
  return count;
}

static void detect_caches(tw_host_cpu* cpu) {
  char line[256];
  for (int index = 0; index < 8; ++index) {
    if (!read_cpu_file(0, "type", index, line, sizeof(line))) break;
    if (strncmp(line, "Instruction", 11) == 0 || !read_cpu_file(0, "level", index, line, sizeof(line))) continue;
    int level = atoi(line);
    if (!read_cpu_file(0, "size", index, line, sizeof(line))) continue;
    int64_t bytes = parse_size(line);
    if (level == 1) cpu->l1_bytes = bytes;
    if (level == 2) cpu->l2_bytes = bytes;
    if (level == 3) {
      cpu->l3_bytes = bytes;
      if (read_cpu_file(0, "shared_cpu_list", index, line, sizeof(line))) cpu->l3_sharers = count_list(line);
    }
    if (read_cpu_file(0, "coherency_line_size", index, line, sizeof(line))) cpu->line_bytes = atoi(line);
  }
  /* Sandboxes hide the files; the C library then asks the processor. */
  long value;
  if (!cpu->l1_bytes && (value = sysconf(_SC_LEVEL1_DCACHE_SIZE)) > 0) cpu->l1_bytes = value;
  if (!cpu->l2_bytes && (value = sysconf(_SC_LEVEL2_CACHE_SIZE)) > 0) cpu->l2_bytes = value;
  if (!cpu->l3_bytes && (value = sysconf(_SC_LEVEL3_CACHE_SIZE)) > 0) cpu->l3_bytes = value;
  if (!cpu->line_bytes && (value = sysconf(_SC_LEVEL1_DCACHE_LINESIZE)) > 0) cpu->line_bytes = (int32_t)value;
  if (!cpu->line_bytes) cpu->line_bytes = 64;
  if (cpu->l3_bytes && !cpu->l3_sharers) cpu->l3_sharers = 1;
}

static tw_host_cpu host_cpu;
static pthread_once_t host_cpu_once = PTHREAD_ONCE_INIT;
static void find_host_cpu(void) {
  detect_model(&host_cpu);
  detect_caches(&host_cpu);
}

const tw_host_cpu* tw_host_cpu_info(void) {
  pthread_once(&host_cpu_once, find_host_cpu);
  return &host_cpu;
}
