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

/// Whether the loops, outermost first, go through one piece of memory, each element once, in order.
bool is_contiguous(const Buffer& buffer, const std::vector<Expr>& indices, const std::vector<Ref<For>>& loops);

/// The annotation's list of integers; empty where it is none.
std::vector<int64_t> integer_list(const NodeRef& annotation);
/// The statements that a software pipeline takes apart: those of the body, below blocks around all of them.
std::vector<Stmt> pipeline_steps(Stmt body);

}  // namespace tilewright::search
