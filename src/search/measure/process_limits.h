// Limits that a helper sets for itself before it serves: it dies with its parent, keeps no foreign files open, leaves
// no core dump, and stays on its processors and within its memory.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <vector>

namespace tilewright::search {

/// Exit statuses with a meaning for the parent.
inline constexpr int kExitOutOfMemory = 71, kExitProtocol = 72;

/// False: the parent is gone already.
bool follow_parent(pid_t parent);
void close_foreign_files(int first);
void stay_on(const std::vector<int32_t>& cpus);
/// Bytes of address space beyond what is in use now; 0: no limit. An allocation beyond it ends the process with
/// kExitOutOfMemory.
void limit_memory(uint64_t bytes);

}  // namespace tilewright::search
