// Exclusive times of the stages of a thread: the time of a nested stage is subtracted from the outer one.
//
//   std::map<std::string, double> seconds;
//   const ScopedTimer sampling(seconds, "sampling");
//   { const ScopedTimer lowering(seconds, "lowering"); lower(); }   // not counted as sampling
#pragma once

#include <chrono>
#include <map>
#include <string>

namespace tilewright::search {

class ScopedTimer {
 public:
  ScopedTimer(std::map<std::string, double>& seconds, const char* what) : all_(seconds), mine_(seconds[what]) {
    innermost_ = this;
  }
  ~ScopedTimer() {
    const double taken = std::chrono::duration<double>(Clock::now() - start_).count();
    mine_ += taken - inside_;
    innermost_ = outer_;
    if (outer_ && &outer_->all_ == &all_) outer_->inside_ += taken;
  }
  ScopedTimer(const ScopedTimer&) = delete;
  ScopedTimer& operator=(const ScopedTimer&) = delete;

 private:
  using Clock = std::chrono::steady_clock;
  inline static thread_local ScopedTimer* innermost_ = nullptr;

  std::map<std::string, double>& all_;
  double& mine_;
  double inside_ = 0;  ///< seconds of nested timers
  ScopedTimer* outer_ = innermost_;
  Clock::time_point start_ = Clock::now();
};

}  // namespace tilewright::search
