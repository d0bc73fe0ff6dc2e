// Whether a tiled block works on copies of its buffers, where they are made, and in which memory.
#pragma once

#include <string>
#include <vector>

#include "support/result.h"

namespace tilewright::search {

struct ReuseType {
  enum class Requirement { kNo, kMay, kMust };
  Requirement requirement = Requirement::kNo;
  std::vector<int64_t> levels;  ///< levels of tiles, from 1 on: the copy is made under the last loop of that level
  std::string scope;

  /// "no", "may" or "must"; ArgumentError "reuse/requirement" for anything else.
  static Result<Requirement> parse(const std::string& text);
};

}  // namespace tilewright::search
