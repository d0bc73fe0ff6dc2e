// What generated objects may refer to outside of themselves. Anything else fails to load, loudly, and so it does when
// linking ahead of time.
#pragma once

#include <span>
#include <string_view>

namespace tilewright::codegen {

struct Symbol {
  std::string_view name;
  void* address;
};

/// Functions of libm and libc; those of the runtime are in tw_runtime_symbols() of runtime/runtime.h.
std::span<const Symbol> library_symbols();
bool is_library_symbol(std::string_view name);

}  // namespace tilewright::codegen
