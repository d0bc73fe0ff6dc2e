// Names for variables: valid Python identifiers, unique among those in scope.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>

namespace tilewright::script {

/// `hint` made a Python identifier: other characters become `_`; `fallback` where nothing is left.
std::string to_identifier(std::string_view hint, std::string_view fallback);
/// Whether the text is an identifier and no keyword of Python.
bool is_identifier(std::string_view text);

class NameTable {
 public:
  /// Takes `hint`, or the first of hint_1, hint_2, ... that is not in scope.
  const std::string& take(std::string_view hint, std::string_view fallback);
  /// Takes a name that no scope, open or closed, has used: it is declared in front of them.
  const std::string& take_unused(std::string_view hint, std::string_view fallback);
  void release(const std::string& name);
  /// A new function: names that only closed scopes used count as unused again.
  void forget_released() {
    std::erase_if(uses_, [](const auto& entry) { return entry.second.in_scope == 0; });
  }

 private:
  struct Use {
    int in_scope = 0;
    int next = 1;         ///< suffixes below are in scope
    int next_unused = 1;  ///< suffixes below were taken some time
    Use* base = nullptr;
    int suffix = 0;
  };
  std::unordered_map<std::string, Use> uses_;
};

}  // namespace tilewright::script
