// Suggests a known name for an unknown one, for hints of error messages: "znver5" for "zen5".
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tilewright {

/// Returns the known name with the longest common subsequence of letters, ignoring case; the last of equally good ones.
/// Empty if no name shares 60 % of the letters of both.
std::string closest_name(std::string_view wanted, const std::vector<std::string>& known);

}  // namespace tilewright
