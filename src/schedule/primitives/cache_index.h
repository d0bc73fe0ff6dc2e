#pragma once

#include "schedule/instruction_fields.h"

namespace tilewright::schedule {

struct CacheIndex {
  BlockRV block;
  std::string storage_scope;
  int64_t cse_thresh = 0;
  using Members = Fields<&CacheIndex::block, &CacheIndex::storage_scope, &CacheIndex::cse_thresh>;
  using Returns = std::vector<BlockRV>;
  static constexpr int kRequired = 2;
  static constexpr std::string_view kDoc = R"(Precompute subexpressions of a block's axes in tables.

Such are indices as in A[vi // 4 + vj // 4], and weights of an interpolation. Blocks index_0, index_1, ... fill buffers
index_var_0, index_var_1, ... before the loops around the block, which then reads those.

Args:
    block: the block.
    storage_scope: where the tables live: "global", "local" (registers on a CPU), "shared", ...
    cse_thresh: how often an expression must occur to get a table; those that occur less often are taken apart. 0: the
        largest expressions get one, however often they occur.

Returns:
    The blocks that fill the tables.)";
};

}  // namespace tilewright::schedule
