// How many blocks of a kernel a multiprocessor of an NVIDIA GPU holds at the same time.
//
// Source: the tables "Technical specifications per compute capability" of the CUDA C++ programming guide, and the rules
// of allocation in the occupancy calculator of the CUDA toolkit.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tilewright {

/// What a block of a kernel uses.
struct BlockUse {
  int64_t threads = 1;
  int64_t registers = 0;     ///< registers of a thread
  int64_t shared_bytes = 0;  ///< shared memory of the block
};

/// Resources that the blocks of a multiprocessor share.
struct Multiprocessor {
  int architecture = 0;  ///< its number, as 80 for sm_80
  int64_t warps = 0, blocks = 0;
  int64_t shared_bytes = 0;
  int64_t reserved_bytes = 1024;  ///< bytes of shared memory that the system takes for each block
  int64_t shared_unit = 128;      ///< bytes that are allocated at once

  /// Returns the multiprocessor of an architecture such as "sm_90a"; nothing if it is unknown.
  static std::optional<Multiprocessor> of(std::string_view arch);

  /// Returns the number of blocks that are resident at once; 0 if not even one fits.
  int64_t resident_blocks(const BlockUse& use) const;
  /// Returns the resident warps as a fraction of the warps that the multiprocessor can hold.
  double occupancy(const BlockUse& use) const;
};

}  // namespace tilewright
