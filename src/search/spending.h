// Where the time of a thread goes. What is begun inside of something else is taken from that, so nothing counts twice.
//
//   std::map<std::string, double> seconds;
//   const Spending drawing(seconds, "drawing");
//   { const Spending lowering(seconds, "lowering"); lower(); }   // no drawing
#pragma once

#include <chrono>
#include <map>
#include <string>

namespace tilewright::search {

class Spending {
 public:
  Spending(std::map<std::string, double>& seconds, const char* what) : all_(seconds), mine_(seconds[what]) {
    innermost_ = this;
  }
  ~Spending() {
    const double taken = std::chrono::duration<double>(Clock::now() - start_).count();
    mine_ += taken - inside_;
    innermost_ = outer_;
    if (outer_ && &outer_->all_ == &all_) outer_->inside_ += taken;
  }
  Spending(const Spending&) = delete;
  Spending& operator=(const Spending&) = delete;

 private:
  using Clock = std::chrono::steady_clock;
  inline static thread_local Spending* innermost_ = nullptr;

  std::map<std::string, double>& all_;
  double& mine_;
  double inside_ = 0;  ///< of what was begun inside
  Spending* outer_ = innermost_;
  Clock::time_point start_ = Clock::now();
};

}  // namespace tilewright::search
