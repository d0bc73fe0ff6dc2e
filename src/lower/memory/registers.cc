#include "lower/memory/registers.h"

#include "ir/build.h"
#include "target/memory_scope.h"

namespace tilewright::lower {

int64_t register_bytes(const Target& target) {
  if (target.is_in(TargetSet::kGpu)) return int64_t{255} * 4;
  return int64_t{target.vector_bits} / 8 * target.vector_registers;
}

bool is_local(const Buffer& buffer) { return memory_scope(buffer.scope()).on_cpu == Storage::kRegisters; }

bool is_local(const Allocate& allocate) {
  const PointerType* type = allocate.buffer_var->type_annotation.as<PointerType>();
  return type && memory_scope(type->storage_scope).on_cpu == Storage::kRegisters;
}

std::string why_not_in_registers(const Allocate& allocate, const Target& target) {
  auto size = allocate.extents.size() == 1 ? const_int(allocate.extents[0]) : std::nullopt;
  if (!size) return "its size is not a constant";
  int64_t bytes = *size * allocate.dtype.bytes() * allocate.dtype.lanes;
  if (bytes <= register_bytes(target)) return "";
  return "its " + std::to_string(bytes) + " bytes are more than the " + std::to_string(register_bytes(target)) +
         " of all vector registers";
}

bool fits_registers(const Allocate& allocate, const Target& target) {
  return is_local(allocate) && why_not_in_registers(allocate, target).empty();
}

}  // namespace tilewright::lower
