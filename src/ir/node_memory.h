// Memory of IR nodes, in the order in which they are made.
//
// A program is made by one thread, children before parents, and then walked many times. Nodes that are stored in
// creation order share pages and cache lines with their neighbors in the tree, which a general allocator that fills the
// holes of freed nodes cannot offer (decision 0009).
#pragma once

#include <cstddef>

namespace tilewright {

/// At most a few hundred bytes, aligned as for a pointer. Throws std::bad_alloc.
void* allocate_node(size_t bytes);
/// Frees memory of allocate_node() with the same size, from any thread.
void free_node(void* node, size_t bytes) noexcept;

}  // namespace tilewright
