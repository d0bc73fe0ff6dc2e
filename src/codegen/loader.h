// Object code in this process, ready to be called.
//
//   TW_TRY(kernel, codegen::load_object(object.bytes));
//   kernel.find("matmul")->entry(ctx, tensors, scalars);
//
// Copies share the code, which is unmapped with the last of them.
#pragma once

#include <memory>
#include <string_view>

#include "runtime/abi.h"
#include "support/result.h"

namespace tilewright::codegen {

class LoadedKernel {
 public:
  /// Entries and signatures, as an exported library shows them.
  const tw_module& table() const { return *table_; }
  /// Null if there is no such function.
  const tw_export* find(std::string_view name) const;

 private:
  friend Result<LoadedKernel> load_object(std::string_view bytes);
  std::shared_ptr<const void> code_;
  const tw_module* table_ = nullptr;
};

/// Links an object of compile(). ResourceError for bytes that are not one, or refer to what kernels may not.
Result<LoadedKernel> load_object(std::string_view bytes);

}  // namespace tilewright::codegen
