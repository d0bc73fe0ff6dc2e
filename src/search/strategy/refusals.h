// Why candidates were dropped: data for reports, never the end of a search.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>

namespace tilewright::search {

/// Counts by code. Several threads may add at once.
class Refusals {
 public:
  void add(const std::string& code) {
    std::lock_guard lock(mutex_);
    ++counts_[code];
  }
  std::map<std::string, int64_t> counts() const {
    std::lock_guard lock(mutex_);
    return counts_;
  }
  void clear() {
    std::lock_guard lock(mutex_);
    counts_.clear();
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, int64_t> counts_;
};

}  // namespace tilewright::search
