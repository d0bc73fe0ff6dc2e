// The name that was meant by one that there is not: "znver5" for "zen5".
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tilewright {

/// The name of `known` with most letters in the same order, of equal ones the last, whatever their case; empty where
/// none shares 60 % of the letters of both.
std::string closest_name(std::string_view wanted, const std::vector<std::string>& known);

}  // namespace tilewright
