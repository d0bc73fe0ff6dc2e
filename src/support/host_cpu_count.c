#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "support/host_cpu.h"

/* ---- Affinity ---------------------------------------------------------------------------------------------------- */

/* This process's mask, sized to what the kernel knows; NULL if it cannot be read. Freed with CPU_FREE. */
static cpu_set_t* affinity_mask(int* processors) {
  for (int count = 1024; count <= 1 << 18; count *= 4) {
    cpu_set_t* mask = CPU_ALLOC(count);
    if (!mask) return NULL;
    if (sched_getaffinity(0, CPU_ALLOC_SIZE(count), mask) == 0) {
      *processors = count;
      return mask;
    }
    CPU_FREE(mask);
    if (errno != EINVAL) return NULL; /* EINVAL: the kernel's mask is larger */
  }
  return NULL;
}

int tw_count_processors(void) {
  int limit;
  cpu_set_t* mask = affinity_mask(&limit);
  if (!mask) return 1;
  int count = CPU_COUNT_S(CPU_ALLOC_SIZE(limit), mask);
  CPU_FREE(mask);
  return count > 0 ? count : 1;
}

/* The lowest-numbered processor that shares a core with `cpu`; `cpu` itself where the topology is hidden. A compilation
 * counts cores several times, and a file of sysfs takes as long to read as a small pass: each is read once. */
static int first_sibling(int cpu) {
  static atomic_int known[1024]; /* the answer + 1; 0: not read yet */
  const int capacity = (int)(sizeof(known) / sizeof(known[0]));
  int remembered = cpu < capacity ? atomic_load_explicit(&known[cpu], memory_order_relaxed) : 0;
  if (remembered) return remembered - 1;
  char path[96];
  snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu);
  FILE* stream = fopen(path, "re");
  if (!stream) return cpu;
  int first = cpu;
  if (fscanf(stream, "%d", &first) != 1) first = cpu;
  fclose(stream);
  if (cpu < capacity) atomic_store_explicit(&known[cpu], first + 1, memory_order_relaxed);
  return first;
}

int tw_list_cores(int* cpus, int capacity) {
  int limit;
  cpu_set_t* mask = affinity_mask(&limit);
  if (!mask) return 0;
  size_t bytes = CPU_ALLOC_SIZE(limit);
  cpu_set_t* seen = CPU_ALLOC(limit);
  if (!seen) {
    CPU_FREE(mask);
    return 0;
  }
  CPU_ZERO_S(bytes, seen);
  int count = 0;
  for (int cpu = 0; cpu < limit; ++cpu) {
    if (!CPU_ISSET_S(cpu, bytes, mask)) continue;
    int first = first_sibling(cpu);
    if (CPU_ISSET_S(first, bytes, seen)) continue;
    CPU_SET_S(first, bytes, seen);
    if (count < capacity) cpus[count] = cpu;
    ++count;
  }
  CPU_FREE(seen);
  CPU_FREE(mask);
  return count;
}

/* ---- Control groups ------------------------------------------------------------------------------------------------
 */

/* Processors granted by one directory; 0: it sets no limit. `unified` is version 2 of the interface. */
static double quota_of(const char* directory, int unified) {
  char path[1200];
  double quota = 0, period = 0;
  if (unified) {
    snprintf(path, sizeof(path), "%s/cpu.max", directory);
    FILE* stream = fopen(path, "re");
    if (!stream) return 0;
    if (fscanf(stream, "%lf %lf", &quota, &period) != 2) quota = 0; /* "max 100000" */
    fclose(stream);
  } else {
    const char* files[2] = {"cpu.cfs_quota_us", "cpu.cfs_period_us"};
    double* values[2] = {&quota, &period};
    for (int i = 0; i < 2; ++i) {
      snprintf(path, sizeof(path), "%s/%s", directory, files[i]);
      FILE* stream = fopen(path, "re");
      if (!stream) return 0;
      if (fscanf(stream, "%lf", values[i]) != 1) *values[i] = 0;
      fclose(stream);
    }
  }
  return quota > 0 && period > 0 ? quota / period : 0;
}

/* The tightest limit of root/mount/group and all groups above it. */
static double quota_of_branch(const char* root, const char* mount, const char* group, int unified) {
  char directory[1024];
  if (snprintf(directory, sizeof(directory), "%s%s%s", root, mount, group) >= (int)sizeof(directory)) return 0;
  size_t top = strlen(root) + strlen(mount);
  double tightest = 0;
  for (;;) {
    double quota = quota_of(directory, unified);
    if (quota > 0 && (tightest == 0 || quota < tightest)) tightest = quota;
    char* slash = strrchr(directory + top, '/');
    if (!slash) return tightest;
    *slash = '\0';
  }
}

double tw_cgroup_quota(const char* proc_cgroup, const char* root) {
  FILE* stream = fopen(proc_cgroup, "re");
  if (!stream) return 0;
  char line[900];
  double tightest = 0;
  while (fgets(line, sizeof(line), stream)) {
    /* number:controllers:path; version 2 has number 0 and no controllers. */
    line[strcspn(line, "\n")] = '\0';
    char* controllers = strchr(line, ':');
    char* group = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!group) continue;
    *group++ = '\0';
    ++controllers;
    double quota = 0;
    if (controllers[0] == '\0') {
      quota = quota_of_branch(root, "", group, 1);
    } else if (strcmp(controllers, "cpu") == 0 || strcmp(controllers, "cpu,cpuacct") == 0 ||
               strcmp(controllers, "cpuacct,cpu") == 0) {
      /* Most systems link "cpu" to the joint mount. */
      quota = quota_of_branch(root, "/cpu", group, 0);
    }
    if (quota > 0 && (tightest == 0 || quota < tightest)) tightest = quota;
  }
  fclose(stream);
  return tightest;
}

int tw_count_cores(void) {
  int cores = tw_list_cores(NULL, 0);
  double quota = tw_cgroup_quota("/proc/self/cgroup", "/sys/fs/cgroup");
  if (quota > 0 && quota < cores) cores = (int)(quota + 0.999);
  return cores > 0 ? cores : 1;
}
