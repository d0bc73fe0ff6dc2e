#include "search/measure/process_limits.h"

#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <new>

namespace tilewright::search {
namespace {

[[noreturn]] void out_of_memory() {
  constexpr char kText[] = "out of memory: beyond the limit of this process\n";
  ssize_t ignored = ::write(STDERR_FILENO, kText, sizeof kText - 1);
  (void)ignored;
  ::_exit(kExitOutOfMemory);
}

}  // namespace

bool follow_parent(pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // The parent may have died before the call above.
  if (::getppid() != parent) return false;
  // A crash here is a result, not a mystery to be dumped; and writing a dump would hold up the parent.
  const struct rlimit none{0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
  return true;
}

void close_foreign_files(int first) { ::syscall(SYS_close_range, first, ~0U, 0U); }

void stay_on(const std::vector<int32_t>& cpus) {
  if (cpus.empty()) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  for (int32_t cpu : cpus) {
    if (cpu >= 0 && cpu < CPU_SETSIZE) CPU_SET(cpu, &set);
  }
  // Best effort: a processor may have gone offline since the parent looked.
  ::sched_setaffinity(0, sizeof set, &set);
}

void limit_memory(uint64_t bytes) {
  std::set_new_handler(out_of_memory);
  if (bytes == 0) return;
  unsigned long pages = 0;
  if (std::FILE* file = std::fopen("/proc/self/statm", "re")) {
    if (std::fscanf(file, "%lu", &pages) != 1) pages = 0;
    std::fclose(file);
  }
  struct rlimit limit;
  ::getrlimit(RLIMIT_AS, &limit);
  const rlim_t wanted = static_cast<rlim_t>(pages) * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE)) + bytes;
  if (limit.rlim_max != RLIM_INFINITY && wanted > limit.rlim_max) return;
  limit.rlim_cur = wanted;
  ::setrlimit(RLIMIT_AS, &limit);
}

}  // namespace tilewright::search
