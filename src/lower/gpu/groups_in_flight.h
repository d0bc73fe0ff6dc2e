// The number of groups of asynchronous copies that a thread may have in flight. T.ptx_wait_group(n) has no effect if at
// most n groups are.
//
//   T.ptx_commit_group()        at most 1
//   T.ptx_commit_group()                2
//   T.ptx_wait_group(1)                 1: the first group is complete
//   T.ptx_commit_group()                2
//   T.ptx_wait_group(2)                 2: waits for no group
#pragma once

#include <optional>

#include "ir/stmt.h"

namespace tilewright::lower {

/// An upper bound; nothing if there is no known one.
using GroupsInFlight = std::optional<int64_t>;

/// Returns the groups in flight after the statement.
GroupsInFlight groups_after(const Stmt& s, GroupsInFlight before);
/// Returns the groups in flight at the start of each iteration of a loop with this body, and after the loop.
GroupsInFlight groups_around(const Stmt& body, GroupsInFlight before);

}  // namespace tilewright::lower
