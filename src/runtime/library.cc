#include "runtime/library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <filesystem>

#include "runtime/runtime.h"

namespace tilewright::runtime {

Result<std::shared_ptr<const Library>> Library::open(const std::string& path) {
  // A name without a slash would be searched for in the system's folders.
  std::error_code error;
  std::string absolute = std::filesystem::absolute(path, error).string();
  void* handle = error ? nullptr : dlopen(absolute.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    const char* reason = error ? nullptr : dlerror();
    return resource_error("library/open",
                          fmt::format("{} cannot be loaded: {}", path, reason ? reason : error.message()),
                          "give the path of a shared library that kernel.export() wrote");
  }
  const auto* module = static_cast<const tw_module*>(dlsym(handle, TW_MODULE_SYMBOL));
  std::shared_ptr<const Library> library(new Library(handle, module));
  if (!module)
    return resource_error("library/module",
                          fmt::format("{} holds no kernels: it has no symbol {}", path, TW_MODULE_SYMBOL),
                          "give the path of a shared library that kernel.export() wrote");
  if (module->abi_version != TW_ABI_VERSION)
    return resource_error("library/version",
                          fmt::format("{} has version {} of the kernel interface, this is version {}", path,
                                      module->abi_version, TW_ABI_VERSION),
                          "export the kernel again with this version of Tilewright");
  for (const tw_export& kernel : library->exports()) {
    char defect[256] = "a kernel without a name, entry or signature";
    if (!kernel.name || !kernel.entry || !kernel.signature ||
        tw_verify_signature(kernel.signature, defect, sizeof defect) != TW_OK)
      return resource_error("library/signature", fmt::format("{} is damaged: {}", path, defect),
                            "export the kernel again");
  }
  return library;
}

Library::~Library() { dlclose(handle_); }

std::string Library::calls() const {
  const auto* text = static_cast<const char*>(dlsym(handle_, kCallsSymbol));
  return text ? text : "";
}

std::string Library::producer() const { return module_->producer ? module_->producer : ""; }

}  // namespace tilewright::runtime
