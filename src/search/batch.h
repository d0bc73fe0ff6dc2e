// Parallel for over the items of a batch.
#pragma once

#include <cstddef>
#include <functional>

namespace tilewright::search {

/// Calls `work` once for each number below `count`, in any order, on up to `threads` threads, this one among them. Of
/// the exceptions that it throws, one is passed on.
void on_threads(int threads, size_t count, const std::function<void(size_t)>& work);

}  // namespace tilewright::search
