// Fields and kinds of nodes that were added after the format of stored programs was fixed (version 2 of hash and JSON).
//
// A later field is listed in `is_added_field`. If it is null, empty or zero, it is neither hashed nor written, and
// readers do not require it: stored programs keep their hashes and stay readable. A later kind is appended to kinds.def
// and is hashed by its name.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "ir/stmt.h"

namespace tilewright {

/// The first kinds of kinds.def, which are hashed by their position there. Later kinds are hashed by name.
inline constexpr int kNumberedKinds = 63;

template <class T>
constexpr bool is_added_field(std::string_view field) {
  if constexpr (std::is_same_v<T, Buffer>) return field == "axes" || field == "default_value";
  if constexpr (std::is_same_v<T, PrimFunc>) return field == "axes";
  if constexpr (std::is_same_v<T, Axis>) return field == "flattened";
  return false;
}

/// FNV-1a, 64 bits.
constexpr uint64_t name_tag(std::string_view name) {
  uint64_t tag = 0xcbf29ce484222325ULL;
  for (char c : name) tag = (tag ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return tag;
}

namespace detail {
inline bool is_empty(const NodeRef& field) { return !field.defined(); }
inline bool is_empty(const Annotations& field) { return field.empty(); }
template <class F>
bool is_empty(const std::vector<F>& field) {
  return field.empty();
}
}  // namespace detail

/// Whether the value is null, empty or zero, as an added field is in every program that was stored before it.
template <class F>
bool is_default_field(const F& field) {
  if constexpr (requires { detail::is_empty(field); }) {
    return detail::is_empty(field);
  } else {
    return field == F{};
  }
}

}  // namespace tilewright
