// Source locations of IR nodes. Spans are interned; a node stores only the 32-bit id.
//
// A span may have a parent: code that a macro expanded points at the macro's body, and its parent at the call.
#pragma once

#include <cstdint>
#include <string>

namespace tilewright {

using SpanId = uint32_t;  // 0: unknown

struct Span {
  std::string file;
  int line = 0, column = 0;          ///< 1-based; columns count characters
  int end_line = 0, end_column = 0;  ///< the column behind the last character
  SpanId parent = 0;
};

SpanId intern_span(const Span& span);
/// Interns a file name, to intern many spans of the file quickly.
uint32_t intern_file(const std::string& file);
SpanId intern_span(uint32_t file, int line, int column, int end_line, int end_column, SpanId parent);
/// Returns a copy, since other threads may grow the table.
Span span_of(SpanId id);

/// Text of a source file for messages; scripts given as text register themselves under a made-up file name.
void register_source(const std::string& file, const std::string& text);

/// " --> file:line:column", the line and carets, one paragraph per level of the parent chain.
std::string render_span(SpanId id);

/// Returns the span that new nodes of this thread get.
SpanId current_span();

class SpanScope {
 public:
  explicit SpanScope(SpanId id);
  ~SpanScope();
  SpanScope(const SpanScope&) = delete;
  SpanScope& operator=(const SpanScope&) = delete;

 private:
  SpanId previous_;
};

}  // namespace tilewright
