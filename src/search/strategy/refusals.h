// Why candidates were dropped: data for reports, never the end of a search.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "support/result.h"

namespace tilewright::search {

/// By code: how often, and one of the messages.
using Reasons = std::map<std::string, std::pair<int64_t, std::string>>;

inline std::map<std::string, int64_t> counts_of(const Reasons& reasons) {
  std::map<std::string, int64_t> counts;
  for (const auto& [code, reason] : reasons) counts[code] = reason.first;
  return counts;
}

inline std::map<std::string, std::string> first_messages_of(const Reasons& reasons) {
  std::map<std::string, std::string> messages;
  for (const auto& [code, reason] : reasons) messages[code] = reason.second;
  return messages;
}

/// Counts by code. Several threads may add at once.
class Refusals {
 public:
  void add(const std::string& code, const std::string& message = "") {
    std::lock_guard lock(mutex_);
    auto& [count, first] = reasons_[code.empty() ? "unknown" : code];
    if (count++ == 0) first = message;
  }
  void add(const Diagnostic& error) { add(error.code, error.message); }
  Reasons reasons() const {
    std::lock_guard lock(mutex_);
    return reasons_;
  }
  std::map<std::string, int64_t> counts() const { return counts_of(reasons()); }
  void clear() {
    std::lock_guard lock(mutex_);
    reasons_.clear();
  }

 private:
  mutable std::mutex mutex_;
  Reasons reasons_;
};

/// Outcomes of the points that a strategy sampled.
struct SampleCounts {
  int64_t tries = 0, duplicates = 0;
  Reasons refused{};
};

}  // namespace tilewright::search
