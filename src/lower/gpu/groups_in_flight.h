// How many groups of asynchronous copies a thread may have under way: a wait for all but as many waits for nothing.
//
//   T.ptx_commit_group()        at most 1
//   T.ptx_commit_group()                2
//   T.ptx_wait_group(1)                 1: the first group has arrived
//   T.ptx_commit_group()                2
//   T.ptx_wait_group(2)                 2: no other group has
#pragma once

#include <optional>

#include "ir/stmt.h"

namespace tilewright::lower {

/// At most, or nothing where that is not known.
using GroupsInFlight = std::optional<int64_t>;

/// Behind the statement.
GroupsInFlight groups_behind(const Stmt& s, GroupsInFlight before);
/// At the beginning of any iteration of a loop with this body, and behind the loop.
GroupsInFlight groups_around(const Stmt& body, GroupsInFlight before);

}  // namespace tilewright::lower
