#include "support/span.h"

#include <gtest/gtest.h>

#include <string>

namespace tilewright {
namespace {

std::string rendered(const std::string& file, const std::string& line, const Span& span) {
  register_source(file, line + "\n");
  return render_span(intern_span(span));
}

/// The last two lines, after their margins.
std::pair<std::string, std::string> line_and_carets(const std::string& text) {
  const size_t carets = text.rfind('\n'), line = text.rfind('\n', carets - 1);
  return {text.substr(line + 5, carets - line - 5), text.substr(carets + 5)};
}

TEST(Span, AShortLineIsShownWithCarets) {
  auto [line, carets] = line_and_carets(rendered("short", "a = b + c", {"short", 1, 5, 1, 10}));
  EXPECT_EQ(line, "a = b + c");
  EXPECT_EQ(carets, "    ^^^^^");
}

TEST(Span, ALongLineIsCutAroundTheColumn) {
  const std::string text = std::string(300, 'x') + "here" + std::string(300, 'y');
  auto [line, carets] = line_and_carets(rendered("long", text, {"long", 1, 301, 1, 305}));
  EXPECT_EQ(line, "... " + std::string(149, 'x') + "here" + std::string(247, 'y') + " ...");
  EXPECT_EQ(carets, std::string(153, ' ') + "^^^^");
}

/// Columns count characters, of which each of these takes two bytes.
TEST(Span, ALongLineIsCutAtCharacters) {
  std::string before, after;
  for (int i = 0; i < 300; ++i) before += "\u00e4", after += "\u00f6";
  auto [line, carets] = line_and_carets(rendered("utf-8", before + "here" + after, {"utf-8", 1, 301, 1, 305}));
  EXPECT_EQ(line, "... " + before.substr(2 * 151) + "here" + after.substr(0, 2 * 247) + " ...");
  EXPECT_EQ(carets, std::string(153, ' ') + "^^^^");
}

TEST(Span, CaretsOfSeveralLinesEndAtTheLastCharacterOfTheFirst) {
  auto [line, carets] = line_and_carets(rendered("lines", "a(\u00e4\u00e4", {"lines", 1, 2, 3, 1}));
  EXPECT_EQ(line, "a(\u00e4\u00e4");
  EXPECT_EQ(carets, " ^^^");
}

}  // namespace
}  // namespace tilewright
