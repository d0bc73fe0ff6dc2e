// From the printer's output to the final text: late declarations are moved to their position, marked ranges underlined,
// lines numbered, and lines far from any mark omitted.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace tilewright::script {

/// Whole lines to insert before the line that starts at offset `at`.
struct Insertion {
  size_t at;
  std::string text;
};

/// A range of the emitted text to underline or to annotate.
struct Mark {
  size_t begin, end;
  bool underline;
  std::string note;  ///< shown as a comment: above the first line if it opens a body, else after it
};

struct Layout {
  bool line_numbers = false;
  int context_lines = -1;  ///< negative: all
};

std::string finish_text(std::string text, std::vector<Insertion> insertions, std::vector<Mark> marks,
                        const Layout& layout);

std::vector<std::string_view> split_lines(std::string_view text);

}  // namespace tilewright::script
