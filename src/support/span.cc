#include "support/span.h"

#include <algorithm>
#include <deque>
#include <fstream>
#include <map>
#include <mutex>
#include <sstream>
#include <unordered_map>
#include <vector>

#include "support/characters.h"

namespace tilewright {
namespace {

struct Record {
  uint32_t file = 0;
  int line = 0, column = 0, end_line = 0, end_column = 0;
  SpanId parent = 0;
  bool operator==(const Record&) const = default;
};
struct RecordHash {
  size_t operator()(const Record& r) const {
    uint64_t h = 0;
    for (uint64_t part : {uint64_t{r.file} << 32 | static_cast<uint32_t>(r.line),
                          uint64_t{static_cast<uint32_t>(r.column)} << 32 | static_cast<uint32_t>(r.end_line),
                          uint64_t{static_cast<uint32_t>(r.end_column)} << 32 | r.parent}) {
      h = (h ^ part) * 0x9E3779B97F4A7C15u;
      h ^= h >> 29;
    }
    return h;
  }
};

struct Table {
  std::mutex mutex;
  std::deque<Record> spans{Record{}};
  std::unordered_map<Record, SpanId, RecordHash> ids;
  std::deque<std::string> files{""};
  std::unordered_map<std::string, uint32_t> file_ids{{"", 0}};
  std::map<std::string, std::string> sources;
};

Table& table() {
  static Table* instance = new Table;  // leaked on purpose: nodes may die after static destruction began
  return *instance;
}

thread_local SpanId current = 0;

/// The `number`-th (1-based) line of the file, empty when it cannot be read.
std::string source_line(const std::string& file, int number) {
  std::string text;
  {
    std::lock_guard lock(table().mutex);
    auto it = table().sources.find(file);
    if (it != table().sources.end()) text = it->second;
  }
  if (text.empty()) {
    std::ifstream stream(file);
    std::stringstream buffer;
    buffer << stream.rdbuf();
    text = buffer.str();
  }
  std::istringstream lines(text);
  std::string line;
  for (int i = 0; i < number; ++i) {
    if (!std::getline(lines, line)) return {};
  }
  return line;
}

constexpr int kLongestLine = 400;  ///< in characters
constexpr int kContext = 150;      ///< characters shown before the column in a longer line

/// Returns the byte offset of each character, and the size of the line.
std::vector<size_t> character_offsets(const std::string& line) {
  std::vector<size_t> offsets;
  for (size_t i = 0; i < line.size(); ++i) {
    if (starts_character(line[i])) offsets.push_back(i);
  }
  offsets.push_back(line.size());
  return offsets;
}

std::string render_one(const Span& span) {
  std::string where = " --> " + span.file + ":" + std::to_string(span.line) + ":" + std::to_string(span.column);
  std::string line = source_line(span.file, span.line);
  if (line.empty()) return where;
  const std::vector<size_t> offsets = character_offsets(line);
  const int length = static_cast<int>(offsets.size()) - 1;
  int end = span.end_line == span.line ? span.end_column : length + 1;
  int width = end > span.column ? end - span.column : 1;
  int column = std::max(span.column, 1);
  if (length > kLongestLine) {
    // Shorten a very long line to the part around the column.
    const int first = std::min(column > kContext ? column - kContext : 0, length);
    const int last = std::min(first + kLongestLine, length);
    const std::string before = first > 0 ? "... " : "", after = last < length ? " ..." : "";
    line = before + line.substr(offsets[first], offsets[last] - offsets[first]) + after;
    if (first > 0) column = std::max(column + static_cast<int>(before.size()) - first, 1);
    const int shown = last - first + static_cast<int>(before.size() + after.size());
    width = std::clamp(width, 1, std::max(1, shown + 1 - column));
  }
  std::string number = std::to_string(span.line);
  std::string pad(number.size(), ' ');
  return where + "\n" + pad + " |\n" + number + " | " + line + "\n" + pad + " | " + std::string(column - 1, ' ') +
         std::string(width, '^');
}

}  // namespace

uint32_t intern_file(const std::string& file) {
  std::lock_guard lock(table().mutex);
  auto [it, inserted] = table().file_ids.try_emplace(file, static_cast<uint32_t>(table().files.size()));
  if (inserted) table().files.push_back(file);
  return it->second;
}

SpanId intern_span(uint32_t file, int line, int column, int end_line, int end_column, SpanId parent) {
  Record record{file, line, column, end_line, end_column, parent};
  std::lock_guard lock(table().mutex);
  auto [it, inserted] = table().ids.try_emplace(record, static_cast<SpanId>(table().spans.size()));
  if (inserted) table().spans.push_back(record);
  return it->second;
}

SpanId intern_span(const Span& span) {
  return intern_span(intern_file(span.file), span.line, span.column, span.end_line, span.end_column, span.parent);
}

Span span_of(SpanId id) {
  std::lock_guard lock(table().mutex);
  if (id >= table().spans.size()) return {};
  const Record& r = table().spans[id];
  return {table().files[r.file], r.line, r.column, r.end_line, r.end_column, r.parent};
}

void register_source(const std::string& file, const std::string& text) {
  std::lock_guard lock(table().mutex);
  table().sources[file] = text;
}

std::string render_span(SpanId id) {
  std::string text;
  for (int level = 0; id != 0 && level < 16; ++level) {
    Span span = span_of(id);
    if (!text.empty()) text += "\n called from";
    text += render_one(span);
    id = span.parent;
  }
  return text;
}

SpanId current_span() { return current; }
SpanScope::SpanScope(SpanId id) : previous_(current) { current = id; }
SpanScope::~SpanScope() { current = previous_; }

}  // namespace tilewright
