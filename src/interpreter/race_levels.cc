#include "interpreter/race_levels.h"

#include <algorithm>

namespace tilewright::interpreter {

int64_t Fork::index_at(uint32_t stamp) const {
  auto it = std::ranges::upper_bound(starts, stamp);
  return it == starts.begin() ? 0 : indices[it - starts.begin() - 1];
}

}  // namespace tilewright::interpreter
