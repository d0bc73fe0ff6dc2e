// Warnings of a component: what did not fit and was skipped, although the search goes on.
#pragma once

#include <functional>
#include <mutex>
#include <set>
#include <string>

namespace tilewright::search {

/// Who hears of it; nobody at first. Called on any thread, with no lock of this file held.
void set_warning_listener(std::function<void(const std::string&)> listener);

/// The warnings of one component in one task: many candidates meet the same obstacle, which is reported once.
class Warnings {
 public:
  Warnings() = default;
  /// A copy of a component is for another task.
  Warnings(const Warnings&) {}
  Warnings& operator=(const Warnings&) = delete;

  /// Reports the text, unless one of the same subject was reported.
  void once(const std::string& subject, const std::string& text) const;
  void clear();

 private:
  mutable std::mutex mutex_;
  mutable std::set<std::string> reported_;
};

}  // namespace tilewright::search
