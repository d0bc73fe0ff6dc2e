// Warnings of a component: obstacles that it skipped without ending the search.
#pragma once

#include <functional>
#include <mutex>
#include <set>
#include <string>

namespace tilewright::search {

/// Sets the function that receives warnings; none by default. It is called on any thread, without locks of this file.
void set_warning_listener(std::function<void(const std::string&)> listener);

/// The warnings of one component in one task: many candidates meet the same obstacle, which is reported once.
class Warnings {
 public:
  Warnings() = default;
  /// Copies start empty: a copied component belongs to another task.
  Warnings(const Warnings&) {}
  Warnings& operator=(const Warnings&) = delete;

  /// Reports the text, once per subject.
  void once(const std::string& subject, const std::string& text) const;
  void clear();

 private:
  mutable std::mutex mutex_;
  mutable std::set<std::string> reported_;
};

}  // namespace tilewright::search
