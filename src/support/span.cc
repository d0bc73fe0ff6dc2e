#include "support/span.h"

#include <deque>
#include <fstream>
#include <map>
#include <mutex>
#include <sstream>
#include <tuple>

namespace tilewright {
namespace {

using Key = std::tuple<std::string, int, int, int, int, SpanId>;

struct Table {
  std::mutex mutex;
  std::deque<Span> spans{Span{}};
  std::map<Key, SpanId> ids;
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

std::string render_one(const Span& span) {
  std::string where = " --> " + span.file + ":" + std::to_string(span.line) + ":" + std::to_string(span.column);
  std::string line = source_line(span.file, span.line);
  if (line.empty()) return where;
  int end = span.end_line == span.line ? span.end_column : static_cast<int>(line.size()) + 1;
  int width = end > span.column ? end - span.column : 1;
  std::string number = std::to_string(span.line);
  std::string pad(number.size(), ' ');
  return where + "\n" + pad + " |\n" + number + " | " + line + "\n" + pad + " | " +
         std::string(span.column > 0 ? span.column - 1 : 0, ' ') + std::string(width, '^');
}

}  // namespace

SpanId intern_span(const Span& span) {
  Key key{span.file, span.line, span.column, span.end_line, span.end_column, span.parent};
  std::lock_guard lock(table().mutex);
  auto [it, inserted] = table().ids.try_emplace(key, static_cast<SpanId>(table().spans.size()));
  if (inserted) table().spans.push_back(span);
  return it->second;
}

Span span_of(SpanId id) {
  std::lock_guard lock(table().mutex);
  return id < table().spans.size() ? table().spans[id] : Span{};
}

void register_source(const std::string& file, const std::string& text) {
  std::lock_guard lock(table().mutex);
  table().sources[file] = text;
}

std::string render_span(SpanId id) {
  std::string text;
  for (int level = 0; id != 0 && level < 16; ++level) {
    Span span = span_of(id);
    if (!text.empty()) text += "\n expanded from";
    text += render_one(span);
    id = span.parent;
  }
  return text;
}

SpanId current_span() { return current; }
SpanScope::SpanScope(SpanId id) : previous_(current) { current = id; }
SpanScope::~SpanScope() { current = previous_; }

}  // namespace tilewright
