// The helper's side: loops that take requests until the connection is closed.
//
// The functions that compile modules and load objects are arguments, so that this folder does not depend on codegen and
// tests can pass misbehaving functions. The helper executable connects them with codegen.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "runtime/abi.h"
#include "support/result.h"

namespace tilewright::search {

/// Serialized lowered module and options -> object code.
using CompileFunction = std::function<Result<std::string>(std::string_view module, std::string_view options)>;

/// A kernel that can be called as long as the object lives.
struct CallableKernel {
  std::shared_ptr<const void> keep_alive;
  tw_kernel function = nullptr;
  int32_t device_type = kDLCPU;  ///< device of the kernel
};
using LoadFunction = std::function<Result<CallableKernel>(std::string_view object, const std::string& entry)>;

/// File descriptors of the connection to the parent and of the shared memory, in a helper process.
inline constexpr int kConnectionFd = 3, kSharedMemoryFd = 4;

/// Serves requests until the connection closes; returns the process's exit status.
int serve_builds(const CompileFunction& compile);
int serve_measurements(const LoadFunction& load);

/// The helper's main: `PROGRAM build|measure PARENT_PID`.
int helper_main(int argc, char** argv, const CompileFunction& compile, const LoadFunction& load);

}  // namespace tilewright::search
