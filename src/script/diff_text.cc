#include "script/diff_text.h"

#include <algorithm>
#include <vector>

#include "script/printer_text.h"
#include "support/ranges.h"

namespace tilewright::script {
namespace {

constexpr size_t kDiffContext = 3;
/// With more edits, the lines between the common beginning and the common end are shown as replaced: the search for the
/// shortest edit takes time proportional to lines * edits.
constexpr size_t kMaxEdits = 2000;

struct Edit {
  char sign;  // ' ', '-' or '+'
  std::string_view line;
};

/// The shortest edit by Myers' greedy algorithm ("An O(ND) difference algorithm and its variations", 1986).
std::vector<Edit> shortest_edit(const std::vector<std::string_view>& a, const std::vector<std::string_view>& b) {
  const auto n = static_cast<std::ptrdiff_t>(a.size()), m = static_cast<std::ptrdiff_t>(b.size());
  const auto limit = static_cast<std::ptrdiff_t>(std::min(a.size() + b.size(), kMaxEdits));
  std::vector<std::vector<std::ptrdiff_t>> history;
  std::vector<std::ptrdiff_t> furthest(2 * limit + 3, 0);
  std::ptrdiff_t edits = 0;
  bool found = false;
  for (; edits <= limit && !found; ++edits) {
    history.emplace_back(furthest.begin() + (limit + 1 - edits), furthest.begin() + (limit + 2 + edits));
    for (std::ptrdiff_t k = -edits; k <= edits && !found; k += 2) {
      std::ptrdiff_t* at = &furthest[k + limit + 1];
      std::ptrdiff_t x = k == -edits || (k != edits && at[-1] < at[1]) ? at[1] : at[-1] + 1;
      while (x < n && x - k < m && a[x] == b[x - k]) ++x;
      *at = x;
      found = x >= n && x - k >= m;
    }
  }
  std::vector<Edit> result;
  if (!found) {
    for (std::string_view line : a) result.push_back({'-', line});
    for (std::string_view line : b) result.push_back({'+', line});
    return result;
  }
  std::ptrdiff_t x = n, y = m;
  for (std::ptrdiff_t d = edits - 1; d > 0; --d) {
    const std::vector<std::ptrdiff_t>& row = history[d];  // diagonals -d .. d, as they were before round d
    auto reached = [&](std::ptrdiff_t k) { return row[k + d]; };
    std::ptrdiff_t k = x - y;
    bool down = k == -d || (k != d && reached(k - 1) < reached(k + 1));
    std::ptrdiff_t from = down ? k + 1 : k - 1;
    std::ptrdiff_t from_x = reached(from), from_y = from_x - from;
    for (; x > from_x + (down ? 0 : 1); --x, --y) result.push_back({' ', a[x - 1]});
    result.push_back(down ? Edit{'+', b[from_y]} : Edit{'-', a[from_x]});
    x = from_x;
    y = from_y;
  }
  for (; x > 0; --x) result.push_back({' ', a[x - 1]});
  std::ranges::reverse(result);
  return result;
}

}  // namespace

std::string diff_text(std::string_view lhs, std::string_view rhs) {
  std::vector<std::string_view> a = split_lines(lhs), b = split_lines(rhs);
  // The common beginning and the common end need no search.
  size_t head = 0, tail = 0;
  while (head < a.size() && head < b.size() && a[head] == b[head]) ++head;
  while (tail + head < a.size() && tail + head < b.size() && a[a.size() - 1 - tail] == b[b.size() - 1 - tail]) ++tail;
  std::vector<Edit> edits;
  for (size_t i = 0; i < head; ++i) edits.push_back({' ', a[i]});
  std::vector<Edit> middle =
      shortest_edit({a.begin() + static_cast<std::ptrdiff_t>(head), a.end() - static_cast<std::ptrdiff_t>(tail)},
                    {b.begin() + static_cast<std::ptrdiff_t>(head), b.end() - static_cast<std::ptrdiff_t>(tail)});
  append_range(edits, middle);
  for (size_t i = a.size() - tail; i < a.size(); ++i) edits.push_back({' ', a[i]});

  std::vector<bool> shown(edits.size(), false);
  bool different = false;
  for (size_t i : indices_of(edits)) {
    if (edits[i].sign == ' ') continue;
    different = true;
    for (size_t j = i > kDiffContext ? i - kDiffContext : 0; j < edits.size() && j <= i + kDiffContext; ++j)
      shown[j] = true;
  }
  if (!different) return {};
  std::string result;
  bool gap = false;
  for (size_t i : indices_of(edits)) {
    if (!shown[i]) {
      gap = true;
      continue;
    }
    if (gap) result += "  ...\n";
    gap = false;
    result += edits[i].sign;
    result += ' ';
    result += edits[i].line;
    result += '\n';
  }
  if (gap) result += "  ...\n";
  result.pop_back();
  return result;
}

}  // namespace tilewright::script
