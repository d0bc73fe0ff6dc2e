#include "script/printer_names.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <tuple>
#include <utility>

#include "support/ranges.h"

namespace tilewright::script {
namespace {

constexpr std::array<std::string_view, 35> kKeywords = {
    "False", "None",     "True",  "and",    "as",   "assert", "async",  "await",    "break",
    "class", "continue", "def",   "del",    "elif", "else",   "except", "finally",  "for",
    "from",  "global",   "if",    "import", "in",   "is",     "lambda", "nonlocal", "not",
    "or",    "pass",     "raise", "return", "try",  "while",  "with",   "yield"};

bool is_ascii_letter(unsigned char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(unsigned char c) { return c >= '0' && c <= '9'; }

/// Letters beyond ASCII that Python takes in identifiers and that its normalization (NFKC) leaves as they are. Not all
/// of them: the alphabets that occur in formulas and names, by whole blocks.
bool is_letter(uint32_t c) {
  return (c >= 0xC0 && c <= 0xFF && c != 0xD7 && c != 0xF7) || (c >= 0x391 && c <= 0x3C9 && c != 0x3A2) ||
         (c >= 0x410 && c <= 0x44F) || (c >= 0x4E00 && c <= 0x9FA5);
}

/// Length in bytes and value of the UTF-8 character at `at`; length 1 and value 0 where it is malformed.
std::pair<size_t, uint32_t> decode(std::string_view text, size_t at) {
  auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  unsigned char first = byte(at);
  size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : first >= 0xC2 ? 2 : 1;
  if (length == 1 || at + length > text.size()) return {1, 0};
  uint32_t value = first & (0xFF >> (length + 1));
  for (size_t i = 1; i < length; ++i) {
    if ((byte(at + i) & 0xC0) != 0x80) return {1, 0};
    value = value << 6 | (byte(at + i) & 0x3F);
  }
  return {length, value};
}

bool is_keyword(std::string_view text) { return is_contained(kKeywords, text); }

}  // namespace

std::string to_identifier(std::string_view hint, std::string_view fallback) {
  std::string text;
  text.reserve(hint.size());
  for (size_t i = 0; i < hint.size();) {
    unsigned char c = static_cast<unsigned char>(hint[i]);
    if (is_ascii_letter(c) || is_digit(c)) {
      if (text.empty() && is_digit(c)) text += '_';
      text += hint[i++];
      continue;
    }
    auto [length, value] = c < 0x80 ? std::pair<size_t, uint32_t>{1, 0} : decode(hint, i);
    if (is_letter(value)) {
      text += hint.substr(i, length);
    } else {
      text += '_';
    }
    i += length;
  }
  if (text.empty()) text = fallback;
  if (is_keyword(text)) text += '_';
  return text;
}

bool is_identifier(std::string_view text) { return !text.empty() && to_identifier(text, "") == text; }

const std::string& NameTable::take(std::string_view hint, std::string_view fallback) {
  auto [it, fresh] = uses_.try_emplace(to_identifier(hint, fallback));
  if (it->second.in_scope == 0) {
    it->second.in_scope = 1;
    return it->first;
  }
  Use& base = it->second;
  for (int suffix = base.next;; ++suffix) {
    auto [next, unseen] = uses_.try_emplace(it->first + "_" + std::to_string(suffix));
    if (next->second.in_scope != 0) continue;
    next->second.in_scope = 1;
    next->second.base = &base;
    next->second.suffix = suffix;
    base.next = suffix + 1;
    return next->first;
  }
}

const std::string& NameTable::take_unused(std::string_view hint, std::string_view fallback) {
  auto [base, fresh] = uses_.try_emplace(to_identifier(hint, fallback));
  auto it = base;
  for (int& suffix = base->second.next_unused; !fresh; ++suffix) {
    std::tie(it, fresh) = uses_.try_emplace(base->first + "_" + std::to_string(suffix));
  }
  it->second.in_scope = 1;
  return it->first;
}

void NameTable::release(const std::string& name) {
  auto* found = find_value(uses_, name);
  if (!found) return;
  Use& use = *found;
  use.in_scope = 0;
  if (use.base) use.base->next = std::min(use.base->next, use.suffix);
  use.base = nullptr;
}

}  // namespace tilewright::script
