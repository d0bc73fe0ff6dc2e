#include "support/hash.h"

#include <cstdio>

namespace tilewright {

std::string Hash128::hex() const {
  char text[33];
  std::snprintf(text, sizeof text, "%016llx%016llx", static_cast<unsigned long long>(hi),
                static_cast<unsigned long long>(lo));
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
