#include "codegen/export.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "codegen/c_names.h"
#include "codegen/package.h"
#include "codegen/subprocess.h"
#include "runtime/library.h"
#include "support/ranges.h"

namespace tilewright::codegen {

namespace fs = std::filesystem;

Result<std::string> package_folder() {
  Dl_info info;
  if (!dladdr(reinterpret_cast<void*>(&package_folder), &info) || !info.dli_fname) {
    return internal_error("export/package", "the file of this library is not known");
  }
  // Links are not followed: the other files are in the folder from which the library was loaded.
  return fs::absolute(info.dli_fname).parent_path().string();
}

namespace {

/// A file in the making; takes its name when it is complete.
class PendingFile {
 public:
  explicit PendingFile(fs::path target)
      : target_(std::move(target)), path_(fmt::format("{}.{}.{}.part", target_.string(), getpid(), next_++)) {}
  ~PendingFile() {
    std::error_code ignored;
    if (!kept_) fs::remove(path_, ignored);
  }
  PendingFile(const PendingFile&) = delete;

  const fs::path& path() const { return path_; }

  Status write(std::string_view bytes) {
    std::ofstream file(path_, std::ios::binary | std::ios::trunc);
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    file.close();
    if (!file) return failed(errno);
    return Ok{};
  }
  Status keep() {
    std::error_code error;
    fs::rename(path_, target_, error);
    if (error) return failed(error.value());
    kept_ = true;
    return Ok{};
  }

 private:
  Diagnostic failed(int error) const {
    return resource_error("export/write", "'" + target_.string() + "' cannot be written: " + std::strerror(error),
                          "export to another folder, or make room");
  }
  static inline std::atomic<uint64_t> next_ = 0;  ///< several threads may export to one folder
  fs::path target_, path_;
  bool kept_ = false;
};

/// Returns C source for a string constant, as numbers, so that no character needs an escape.
std::string constant_in_c(const char* name, const std::string& text) {
  std::string source = std::string("const char ") + name + "[] = {";
  for (char c : text) source += std::to_string(static_cast<int>(static_cast<signed char>(c))) + ",";
  return source + "0};\n";
}

Status link(const fs::path& object, const fs::path& constants, const fs::path& version_script, const fs::path& library,
            const std::string& soname) {
  TW_TRY(package, package_folder());
  std::string runtime = package + "/libtilewright_runtime.a";
  if (!fs::exists(runtime)) {
    return resource_error("export/package", "'" + runtime + "' is missing",
                          "it belongs to the installed package: install Tilewright again");
  }
  std::vector<std::string> tail = {"-o", library.string(), object.string(), "-x",  "c",         constants.string(),
                                   "-x", "none",           runtime,         "-lm", "-lpthread", "-ldl"};
  std::vector<std::string> drivers;
  if (const char* chosen = std::getenv("CC"); chosen && *chosen) drivers.push_back(chosen);
  for (const char* name : {"cc", "gcc", "clang"}) drivers.push_back(name);
  std::string output;
  for (const std::string& driver : drivers) {
    std::vector<std::string> command = {driver,
                                        "-shared",
                                        "-Xlinker",  // unlike of -Wl, what follows may contain commas
                                        "--version-script=" + version_script.string(),
                                        "-Wl,--gc-sections",
                                        "-Wl,--as-needed",
                                        "-Wl,--no-undefined",
                                        "-Wl,-Bsymbolic",
                                        "-Wl,-z,noexecstack",
                                        "-Xlinker",
                                        "-soname=" + soname};
    append_range(command, tail);
    Outcome outcome = run_program(command);
    if (!outcome.found) continue;
    if (WIFEXITED(outcome.status) && WEXITSTATUS(outcome.status) == 0) return Ok{};
    if (WIFEXITED(outcome.status) && WEXITSTATUS(outcome.status) == 127) continue;  // not found, on older systems
    return resource_error("export/link", library.string() + ": the linker failed:\n" + outcome.output,
                          "is the disk full, or the size of files limited (ulimit -f)? Nothing was left in the folder");
  }
  return resource_error("export/link", "no C compiler was found to link a shared library with",
                        "apt-get install gcc, or set CC");
}

bool is_plain_name(const std::string& name) {
  const auto is_special = [](char c) { return c == '/' || static_cast<unsigned char>(c) < ' '; };
  return !name.empty() && none_of(name, is_special) && name[0] != '.' && name[0] != '-';
}

}  // namespace

Result<ExportedFiles> export_files(const Ref<Module>& lowered, const ObjectCode& code, const std::string& folder,
                                   const std::string& name, const std::string& calls) {
  if (!is_plain_name(name)) {
    return argument_error("export/name", "'" + name + "' cannot be the name of files",
                          "use a name without slashes and control characters that begins with neither '.' nor '-'");
  }
  TW_TRY(header_text, write_header(lowered, name));
  std::error_code error;
  fs::path base = folder.empty() ? fs::path(".") : fs::path(folder);
  fs::create_directories(base, error);
  if (error) {
    return resource_error("export/folder", "folder '" + folder + "' cannot be made: " + error.message(),
                          "name a folder that you may write to");
  }
  // Compilers take a relative path such as "-folder/kernel.o" for an option.
  const fs::path absolute = fs::absolute(base, error);
  if (error) return resource_error("export/folder", "folder '" + folder + "' has no absolute path: " + error.message());
  PendingFile object(absolute / (name + ".o")), header(absolute / (name + ".h")), library(absolute / (name + ".so")),
      script(absolute / (name + ".version")), constants(absolute / (name + ".c"));
  TW_RETURN_IF_ERROR(object.write(code.bytes));
  TW_RETURN_IF_ERROR(header.write(header_text));
  if (!code.platform.empty()) {
    TW_RETURN_IF_ERROR(object.keep());
    TW_RETURN_IF_ERROR(header.keep());
    return ExportedFiles{"", (base / (name + ".o")).string(), (base / (name + ".h")).string()};
  }
  std::string visible = std::string(TW_MODULE_SYMBOL "; ") + runtime::kCallsSymbol + "; ";
  for (const auto& [symbol, function] : c_kernel_names(lowered))
    visible += function + "; " + function + "_last_error; ";
  TW_RETURN_IF_ERROR(script.write("{ global: " + visible + "local: *; };\n"));
  TW_RETURN_IF_ERROR(constants.write(constant_in_c(runtime::kCallsSymbol, calls)));
  TW_RETURN_IF_ERROR(link(object.path(), constants.path(), script.path(), library.path(), name + ".so"));
  TW_RETURN_IF_ERROR(object.keep());
  TW_RETURN_IF_ERROR(header.keep());
  TW_RETURN_IF_ERROR(library.keep());
  return ExportedFiles{(base / (name + ".so")).string(), (base / (name + ".o")).string(),
                       (base / (name + ".h")).string()};
}

}  // namespace tilewright::codegen
