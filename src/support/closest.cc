#include "support/closest.h"

#include <algorithm>
#include <cctype>

namespace tilewright {
namespace {

constexpr double kAlike = 0.6;

/// The length of the longest common subsequence.
size_t common_length(std::string_view a, std::string_view b) {
  const auto same = [](char x, char y) {
    return std::tolower(static_cast<unsigned char>(x)) == std::tolower(static_cast<unsigned char>(y));
  };
  std::vector<size_t> row(b.size() + 1);
  for (char letter : a) {
    size_t diagonal = 0;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t above = row[j];
      row[j] = same(letter, b[j - 1]) ? diagonal + 1 : std::max(above, row[j - 1]);
      diagonal = above;
    }
  }
  return row[b.size()];
}

}  // namespace

std::string closest_name(std::string_view wanted, const std::vector<std::string>& known) {
  std::string found;
  double best = kAlike;
  for (const std::string& name : known) {
    const double share = 2.0 * static_cast<double>(common_length(wanted, name)) /
                         static_cast<double>(std::max<size_t>(1, wanted.size() + name.size()));
    if (share < best) continue;
    best = share;
    found = name;
  }
  return found;
}

}  // namespace tilewright
