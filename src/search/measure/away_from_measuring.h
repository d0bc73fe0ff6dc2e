// While it lives, the calling thread stays off the processors of the kernel that is being measured.
#pragma once

#include <sched.h>

#include "search/measure/pipeline.h"
#include "search/measure/process_limits.h"

namespace tilewright::search {

class AwayFromMeasuring {
 public:
  explicit AwayFromMeasuring(const CpuPlan& plan) {
    if (plan.exclusive || ::sched_getaffinity(0, sizeof before_, &before_) != 0) return;
    stay_on(plan.build);
    moved_ = true;
  }
  ~AwayFromMeasuring() {
    if (moved_) ::sched_setaffinity(0, sizeof before_, &before_);
  }
  AwayFromMeasuring(const AwayFromMeasuring&) = delete;
  AwayFromMeasuring& operator=(const AwayFromMeasuring&) = delete;

 private:
  cpu_set_t before_;
  bool moved_ = false;
};

}  // namespace tilewright::search
