#include "support/json_nesting.h"

namespace tilewright {

bool nests_too_deep(std::string_view text) {
  int depth = 0;
  bool is_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (is_string && c == '\\') {
      ++i;  // the next character does not end the string
    } else if (c == '"') {
      is_string = !is_string;
    } else if (!is_string && (c == '[' || c == '{')) {
      if (++depth > kMostJsonNesting) return true;
    } else if (!is_string && (c == ']' || c == '}')) {
      --depth;
    }
  }
  return false;
}

}  // namespace tilewright
