// What a component has to tell although the search goes on: what did not fit, and was left out.
#pragma once

#include <functional>
#include <mutex>
#include <set>
#include <string>

namespace tilewright::search {

/// Who hears of it; nobody at first. Called on any thread, with no lock of this file held.
void set_warning_listener(std::function<void(const std::string&)> listener);

/// Of one component in one task: many candidates meet the same obstacle, which is told once.
class Warnings {
 public:
  Warnings() = default;
  /// A copy of a component is for another task.
  Warnings(const Warnings&) {}
  Warnings& operator=(const Warnings&) = delete;

  /// Tells the text, unless one of the same subject was told.
  void once(const std::string& subject, const std::string& text) const;
  void clear();

 private:
  mutable std::mutex mutex_;
  mutable std::set<std::string> told_;
};

}  // namespace tilewright::search
