// Counting characters of UTF-8 text.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace tilewright {

/// Whether a byte starts a character: all bytes do except continuation bytes (10xxxxxx).
inline bool starts_character(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; }

inline size_t count_characters(std::string_view text) {
  return static_cast<size_t>(std::ranges::count_if(text, starts_character));
}

}  // namespace tilewright
