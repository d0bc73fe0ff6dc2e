// Times calls the way `race.h` wants to hear it: wall time, processor time and interruptions of the calling thread.
#pragma once

#include <functional>

#include "search/measure/race.h"

namespace tilewright::search {

/// `spend` makes so many calls in a row, and returns false to give up; then so does this function.
bool time_slice(int64_t calls, int threads, const std::function<bool(int64_t)>& spend, Slice& slice);

/// Memory larger than the caches, to be read between two calls when a cold kernel is timed.
class CacheFlusher {
 public:
  CacheFlusher();
  void flush();

 private:
  std::vector<char> memory_;
};

}  // namespace tilewright::search
