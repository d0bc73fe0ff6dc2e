#include "script/printer_text.h"

#include <algorithm>
#include <map>

#include "support/ranges.h"

namespace tilewright::script {
namespace {

std::string apply_insertions(const std::string& text, std::vector<Insertion>& insertions, std::vector<Mark>& marks) {
  std::ranges::stable_sort(insertions, [](const Insertion& a, const Insertion& b) { return a.at < b.at; });
  std::string result;
  std::vector<size_t> shift_before(insertions.size() + 1, 0);
  size_t done = 0;
  for (size_t i : indices_of(insertions)) {
    result.append(text, done, insertions[i].at - done);
    result += insertions[i].text;
    done = insertions[i].at;
    shift_before[i + 1] = shift_before[i] + insertions[i].text.size();
  }
  result.append(text, done);
  auto shifted = [&](size_t offset, bool inclusive) {
    auto it = std::ranges::partition_point(insertions, [&](const Insertion& insertion) {
      return inclusive ? insertion.at <= offset : insertion.at < offset;
    });
    return offset + shift_before[it - insertions.begin()];
  };
  for (Mark& mark : marks) {
    mark.end = shifted(mark.end, false);
    mark.begin = shifted(mark.begin, true);
  }
  return result;
}

std::vector<std::string_view> split_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

size_t count_characters(std::string_view text) {
  return std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
}

/// Carets below one line, and notes behind it.
struct Decoration {
  std::string carets;
  std::vector<std::string> notes;
};

void decorate_line(Decoration& decoration, std::string_view line, size_t begin, size_t end) {
  size_t indent = std::min(line.find_first_not_of(' '), line.size());
  begin = std::max(begin, indent);
  end = std::min(end, line.size());
  if (begin >= end) return;
  size_t column = count_characters(line.substr(0, begin));
  size_t width = count_characters(line.substr(begin, end - begin));
  if (decoration.carets.size() < column + width) decoration.carets.resize(column + width, ' ');
  std::fill_n(decoration.carets.begin() + static_cast<std::ptrdiff_t>(column), width, '^');
}

std::map<size_t, Decoration> decorate(const std::string& text, const std::vector<std::string_view>& lines,
                                      const std::vector<Mark>& marks) {
  std::map<size_t, Decoration> decorations;
  std::vector<size_t> starts;
  for (std::string_view line : lines) starts.push_back(line.data() - text.data());
  for (const Mark& mark : marks) {
    size_t line = std::ranges::upper_bound(starts, mark.begin) - starts.begin();
    if (line-- == 0) continue;
    if (std::string note = "# " + mark.note; !mark.note.empty()) {
      // A loop of a grid has two places on its line, and one note.
      std::vector<std::string>& notes = decorations[line].notes;
      if (!is_contained(notes, note)) notes.push_back(std::move(note));
    }
    for (; mark.underline && line < lines.size() && starts[line] < mark.end; ++line) {
      size_t begin = std::max(mark.begin, starts[line]) - starts[line];
      decorate_line(decorations[line], lines[line], begin, mark.end - starts[line]);
    }
  }
  return decorations;
}

std::string assemble(const std::vector<std::string_view>& lines, const std::map<size_t, Decoration>& decorations,
                     const Layout& layout) {
  size_t width = layout.line_numbers ? std::to_string(lines.size()).size() : 0;
  std::vector<bool> shown(lines.size(), layout.context_lines < 0 || decorations.empty());
  auto context = static_cast<size_t>(std::max(layout.context_lines, 0));
  for (const auto& [line, decoration] : decorations) {
    for (size_t i = line > context ? line - context : 0; i < lines.size() && i <= line + context; ++i) shown[i] = true;
  }
  std::string result;
  for (size_t i = 0; i < lines.size();) {
    if (!shown[i]) {
      size_t skipped = std::find(shown.begin() + static_cast<std::ptrdiff_t>(i), shown.end(), true) - shown.begin() - i;
      result += "(... " + std::to_string(skipped) + (skipped == 1 ? " line" : " lines") + " skipped ...)\n";
      i += skipped;
      continue;
    }
    auto it = decorations.find(i);
    static const std::vector<std::string> kNone;
    const std::vector<std::string>& notes = it == decorations.end() ? kNone : it->second.notes;
    const bool opens_body = lines[i].ends_with(':');  // then notes stand above, where they can be long
    const std::string margin(width > 0 ? width + 1 : 0, ' ');
    if (opens_body) {
      std::string indent(lines[i].find_first_not_of(' '), ' ');
      for (const std::string& note : notes) result += margin + indent + note + '\n';
    }
    if (width > 0) {
      std::string number = std::to_string(i + 1);
      result += std::string(width - number.size(), ' ') + number + ' ';
    }
    result += lines[i];
    if (!opens_body) {
      for (const std::string& note : notes) result += "  " + note;
    }
    result += '\n';
    if (it != decorations.end() && !it->second.carets.empty()) {
      result += margin + it->second.carets + '\n';
    }
    ++i;
  }
  return result;
}

void trim_end(std::string& text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
}

}  // namespace

std::string finish_text(std::string text, std::vector<Insertion> insertions, std::vector<Mark> marks,
                        const Layout& layout) {
  if (!insertions.empty()) text = apply_insertions(text, insertions, marks);
  trim_end(text);
  if (marks.empty() && !layout.line_numbers) return text;
  std::vector<std::string_view> lines = split_lines(text);
  std::string result = assemble(lines, decorate(text, lines, marks), layout);
  trim_end(result);
  return result;
}

namespace {

constexpr size_t kDiffContext = 3;
/// Beyond this many edits the middle of the texts is shown as replaced as a whole: the search for the shortest edit
/// costs (lines * edits).
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
  // Equal beginnings and ends need no search.
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
