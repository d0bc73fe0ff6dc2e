// From the printer's output to the final text: late declarations are moved to their position, marked ranges underlined,
// lines numbered, and lines far from any mark omitted.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace tilewright::script {

/// Whole lines that belong in front of the line that starts at `at`.
struct Insertion {
  size_t at;
  std::string text;
};

/// A range of the emitted text that the reader asked about.
struct Mark {
  size_t begin, end;
  bool underline;
  std::string note;  ///< shown as a comment: above the first line where it opens a body, else behind it
};

struct Layout {
  bool line_numbers = false;
  int context_lines = -1;  ///< negative: all
};

std::string finish_text(std::string text, std::vector<Insertion> insertions, std::vector<Mark> marks,
                        const Layout& layout);

/// Line by line, "- " for lines only in `lhs`, "+ " for lines only in `rhs`, with three lines of context.
std::string diff_text(std::string_view lhs, std::string_view rhs);

}  // namespace tilewright::script
