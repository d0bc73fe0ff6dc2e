// External symbols that generated objects may refer to. Any other symbol is an error when the object is loaded, and
// also when it is linked ahead of time.
#pragma once

#include <span>
#include <string_view>

namespace tilewright::codegen {

struct Symbol {
  std::string_view name;
  void* address;
  /// C types of the result and, behind it, of the arguments, as letters: v void, f float, d double, i int, z size_t, p
  /// pointer; a dot at the end for arguments of any number and type.
  std::string_view prototype;
};

/// Functions of libm and libc; those of the runtime are in tw_runtime_symbols() of runtime/runtime.h.
std::span<const Symbol> library_symbols();
/// Null where there is none.
const Symbol* library_symbol(std::string_view name);

}  // namespace tilewright::codegen
