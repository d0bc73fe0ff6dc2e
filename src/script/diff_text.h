// Line-by-line differences of two texts.
#pragma once

#include <string>
#include <string_view>

namespace tilewright::script {

/// Returns the differing lines, "- " for lines only in `lhs`, "+ " for lines only in `rhs`, with three lines of
/// context. Empty if the texts are equal.
std::string diff_text(std::string_view lhs, std::string_view rhs);

}  // namespace tilewright::script
