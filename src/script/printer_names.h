// Allocates names for variables: valid Python identifiers that are unique among those in scope.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>

namespace tilewright::script {

/// Converts `hint` to a Python identifier, with `_` for other characters. Returns `fallback` if nothing is left.
std::string to_identifier(std::string_view hint, std::string_view fallback);
/// Whether the text is a Python identifier, and not a keyword.
bool is_identifier(std::string_view text);

class NameTable {
 public:
  /// Allocates `hint`, or the first of hint_1, hint_2, ... that is not in scope.
  const std::string& take(std::string_view hint, std::string_view fallback);
  /// Allocates a name that no scope, open or closed, has used, for a declaration in front of all scopes.
  const std::string& take_unused(std::string_view hint, std::string_view fallback);
  void release(const std::string& name);
  /// Starts a new function, in which names that only closed scopes used count as unused.
  void forget_released() {
    std::erase_if(uses_, [](const auto& entry) { return entry.second.in_scope == 0; });
  }

 private:
  struct Use {
    int in_scope = 0;
    int next = 1;         ///< suffixes below are in scope
    int next_unused = 1;  ///< suffixes below have been in scope
    Use* base = nullptr;
    int suffix = 0;
  };
  std::unordered_map<std::string, Use> uses_;
};

}  // namespace tilewright::script
