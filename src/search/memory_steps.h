// Strides of accesses in memory by loop.
#pragma once

#include <optional>
#include <vector>

#include "ir/stmt.h"

namespace tilewright::search {

/// Returns by how many elements of the buffer one iteration of each loop moves the access; nothing for a loop where
/// this is unknown.
std::vector<std::optional<int64_t>> memory_steps(const Buffer& buffer, const std::vector<Expr>& indices,
                                                 const std::vector<Ref<For>>& loops);

/// Whether the loops, outermost first, traverse a contiguous range of memory, each element once, in order.
bool is_contiguous(const Buffer& buffer, const std::vector<Expr>& indices, const std::vector<Ref<For>>& loops);

/// Returns the annotation's list of integers; empty if it is not such a list.
std::vector<int64_t> integer_list(const NodeRef& annotation);
/// Returns the statements that a software pipeline distributes to stages: those of the loop's body, inside of blocks
/// around all of them.
std::vector<Stmt> pipeline_steps(Stmt body);

}  // namespace tilewright::search
