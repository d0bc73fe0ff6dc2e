// Handles of a schedule, and the one dynamic value that arguments of instructions can be converted to: what recording,
// JSON, printing and the Python binding share.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "ir/node.h"

namespace tilewright::schedule {

/// Handles are numbers of rows in the schedule's table of handles; a trace prints them as l3, b0, v7.
struct LoopRV {
  static constexpr uint32_t kNone = UINT32_MAX;
  uint32_t index = kNone;
  friend bool operator==(const LoopRV&, const LoopRV&) = default;
};
struct BlockRV {
  static constexpr uint32_t kNone = UINT32_MAX;
  uint32_t index = kNone;
  friend bool operator==(const BlockRV&, const BlockRV&) = default;
};
/// A sampled integer.
struct ExprRV {
  static constexpr uint32_t kNone = UINT32_MAX;
  uint32_t index = kNone;
  friend bool operator==(const ExprRV&, const ExprRV&) = default;
};

struct None {
  friend bool operator==(const None&, const None&) = default;
};

struct Value {
  using List = std::vector<Value>;
  using Dict = std::vector<std::pair<std::string, Value>>;  ///< sorted by key
  std::variant<None, bool, int64_t, double, std::string, LoopRV, BlockRV, ExprRV, List, Dict, NodeRef> data;

  template <class T>
  const T* as() const {
    return std::get_if<T>(&data);
  }
  bool is_none() const { return std::holds_alternative<None>(data); }
  /// "an integer", "a list", "a loop": for messages.
  std::string kind() const;
  friend bool operator==(const Value&, const Value&) = default;
};

}  // namespace tilewright::schedule
