#include "support/hash.h"

namespace tilewright {

std::string Hash128::hex() const {
  std::string text(32, '0');
  for (int i = 0; i < 16; ++i) {
    text[15 - i] = "0123456789abcdef"[hi >> (4 * i) & 15];
    text[31 - i] = "0123456789abcdef"[lo >> (4 * i) & 15];
  }
  return text;
}

void Hasher::bytes(std::string_view text) {
  word(text.size());
  while (text.size() >= 8) {
    uint64_t chunk;
    std::memcpy(&chunk, text.data(), 8);
    word(chunk);
    text.remove_prefix(8);
  }
  uint64_t rest = 0;
  if (!text.empty()) std::memcpy(&rest, text.data(), text.size());
  word(rest);
}

}  // namespace tilewright
