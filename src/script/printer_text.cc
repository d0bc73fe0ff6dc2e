#include "script/printer_text.h"

#include <algorithm>
#include <map>

#include "support/characters.h"
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

/// Carets below one line, and notes after it.
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
      // Two loops of one T.grid line share one note.
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
    const bool opens_body = lines[i].ends_with(':');  // then notes are printed above it, where they may be long
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

std::vector<std::string_view> split_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

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

}  // namespace tilewright::script
