// Buffers of scope "local": whether they can be kept in registers.
#pragma once

#include <cstdint>
#include <string>

#include "ir/stmt.h"
#include "target/target.h"

namespace tilewright::lower {

/// Whether a buffer of scope "local" is in registers: the search refuses candidates whose tiles are not.
struct Promotion {
  std::string function, buffer;
  bool promoted = false;
  int registers = 0;   ///< vector registers that its values occupy at once, if promoted
  std::string reason;  ///< why it is in memory, if not promoted
  SpanId span = 0;
};

/// Returns the bytes in all vector registers of a CPU, or in the registers of one GPU thread.
int64_t register_bytes(const Target& target);
/// Whether the buffer is private to one thread (registers, on a CPU).
bool is_local(const Buffer& buffer);
bool is_local(const Allocate& allocate);
/// Returns why a buffer of scope "local" cannot be in registers, however it is accessed; empty if its size allows it.
std::string why_not_in_registers(const Allocate& allocate, const Target& target);
/// Whether the allocation is a buffer of scope "local" that could be in registers.
bool fits_registers(const Allocate& allocate, const Target& target);

}  // namespace tilewright::lower
