#include "search/measure/slice_timer.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>

namespace tilewright::search {
namespace {

double seconds_of(clockid_t clock) {
  timespec now;
  ::clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

int64_t involuntary_switches(int threads) {
  struct rusage usage;
  // The other threads of a parallel kernel matter as much as the one that called it.
  ::getrusage(threads > 1 ? RUSAGE_SELF : RUSAGE_THREAD, &usage);
  return usage.ru_nivcsw;
}

}  // namespace

bool time_slice(int64_t calls, int threads, const std::function<bool(int64_t)>& spend, Slice& slice) {
  slice.calls = calls;
  const int64_t switches = involuntary_switches(threads);
  const double cpu = seconds_of(CLOCK_THREAD_CPUTIME_ID);
  const double wall = seconds_of(CLOCK_MONOTONIC);
  const bool going = spend(calls);
  slice.wall = seconds_of(CLOCK_MONOTONIC) - wall;
  slice.cpu = seconds_of(CLOCK_THREAD_CPUTIME_ID) - cpu;
  slice.involuntary_switches = involuntary_switches(threads) - switches;
  return going;
}

CacheFlusher::CacheFlusher() {
  long largest = 0;
  for (int name : {_SC_LEVEL2_CACHE_SIZE, _SC_LEVEL3_CACHE_SIZE, _SC_LEVEL4_CACHE_SIZE})
    largest = std::max(largest, ::sysconf(name));
  // Twice the largest cache, since replacement is not exactly least recently used; 64 MiB where nothing is known.
  memory_.assign(static_cast<size_t>(std::max(2 * largest, 64L << 20)), 1);
}

void CacheFlusher::flush() {
  constexpr size_t kLine = 64;
  // Stores, so that the lines of the kernel's outputs are written back now and not while it runs.
  volatile char* const memory = memory_.data();
  for (size_t i = 0; i < memory_.size(); i += kLine) memory[i] = static_cast<char>(memory[i] + 1);
}

}  // namespace tilewright::search
