// Limit on the nesting of JSON text. nlohmann::json parses without recursion, but writes and copies values recursively,
// which overflows the stack on damaged text.
#pragma once

#include <string_view>

namespace tilewright {

inline constexpr int kMostJsonNesting = 500;  ///< maximum depth of nested lists and objects; Tilewright writes far less

/// Whether lists and objects of the text are nested deeper than kMostJsonNesting. The text need not be JSON.
bool nests_too_deep(std::string_view text);

}  // namespace tilewright
