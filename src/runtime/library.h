// Shared libraries of exported kernels.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>

#include "runtime/abi.h"
#include "support/result.h"

namespace tilewright::runtime {

/// The symbol of what a library notes of the calls of its kernels: a text that this layer only keeps.
inline constexpr const char* kCallsSymbol = "tilewright_calls";

/// An open library; closed with its last owner. Entries and signatures point into it.
class Library {
 public:
  /// Codes: library/open (no such file, or not a library for this system), library/module (not one that Tilewright
  /// exported), library/version (exported by a version with another kernel interface), library/signature (damaged).
  static Result<std::shared_ptr<const Library>> open(const std::string& path);
  ~Library();
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  std::span<const tw_export> exports() const { return {module_->exports, static_cast<size_t>(module_->num_exports)}; }
  /// Returns the exporter, such as "tilewright 0.1.0".
  std::string producer() const;
  /// Returns the calling conventions that kernel.export() recorded for each kernel; empty if it recorded none.
  std::string calls() const;

 private:
  Library(void* handle, std::string name, const tw_module* module)
      : handle_(handle), name_(std::move(name)), module_(module) {}
  void* handle_;
  std::string name_;  // name in the loader
  const tw_module* module_;
};

}  // namespace tilewright::runtime
