// Which arguments the tile instructions of a processor load again and again.
//
// A tile of 16 rows of 64 bytes is 16 lines of a cache where the rows begin with lines, and 32 where they begin inside:
// a product then takes twice as long. Arrays of NumPy begin 16 bytes into a line, so that the entry of a function
// copies such an argument before the call, if it does: it is read once for that, and often afterwards.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "ir/stmt.h"

namespace tilewright::codegen {

inline constexpr int64_t kLineBytes = 64;

/// Bytes that tile instructions load through a data pointer, by pointer; of those only whose rows all begin in a line
/// where the first does. Loops whose extent is not known count once.
std::unordered_map<NodeRef, double> bytes_of_tile_loads(const Stmt& body);

/// Bytes of the argument that is held in a buffer, where a copy of it that begins with a line is worth making; else 0.
int64_t bytes_worth_aligning(const Buffer& buffer, double loaded);

}  // namespace tilewright::codegen
