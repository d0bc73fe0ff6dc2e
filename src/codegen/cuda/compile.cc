#include "codegen/cuda/compile.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "codegen/package.h"
#include "codegen/subprocess.h"

namespace tilewright::codegen {

namespace fs = std::filesystem;

namespace {

// ---- the output of ptxas -v

/// The number in front of `what`; 0 if the line does not have it.
int64_t number_before(const std::string& line, const std::string& what) {
  const size_t end = line.find(" " + what);
  if (end == std::string::npos) return 0;
  size_t begin = end;
  while (begin > 0 && std::isdigit(static_cast<unsigned char>(line[begin - 1]))) --begin;
  return begin == end ? 0 : std::stoll(line.substr(begin, end - begin));
}

/// The text in the quotation marks with index `number`.
std::string quoted(const std::string& line, int number) {
  size_t at = 0, end = 0;
  for (int i = 0; i <= number; ++i) {
    at = line.find('\'', end ? end + 1 : 0);
    end = at == std::string::npos ? at : line.find('\'', at + 1);
    if (end == std::string::npos) return "";
  }
  return line.substr(at + 1, end - at - 1);
}

void read_log(const std::string& log, CudaProgram& program) {
  std::istringstream lines(log);
  for (std::string line; std::getline(lines, line);) {
    if (line.find("Compiling entry function") != std::string::npos) {
      program.uses.push_back({.kernel = quoted(line, 0), .arch = quoted(line, 1)});
    } else if (line.find("warning") != std::string::npos || line.find("(C75") != std::string::npos) {
      program.warnings.push_back(line);
    } else if (!program.uses.empty()) {
      KernelUse& use = program.uses.back();
      if (line.find("bytes stack frame") != std::string::npos) {
        use.stack = number_before(line, "bytes stack frame");
        use.spill_stores = number_before(line, "bytes spill stores");
        use.spill_loads = number_before(line, "bytes spill loads");
      } else if (line.find("registers") != std::string::npos) {
        use.registers = number_before(line, "registers");
        use.shared_bytes = number_before(line, "bytes smem");
      }
    }
  }
}

Diagnostic refused(const std::string& compiler, const std::string& archs, const std::string& log) {
  std::string reasons;
  std::istringstream lines(log);
  for (std::string line; std::getline(lines, line);) {
    const bool says_why = line.find("error") != std::string::npos || line.find("fatal") != std::string::npos;
    if (says_why && reasons.size() < 1000) reasons += "\n" + line;
  }
  return script_error("codegen/device-compiler",
                      fmt::format("{} does not compile the kernels for {}:{}", compiler, archs,
                                  reasons.empty() ? "\n" + log.substr(0, 1000) : reasons),
                      "the target may lack an instruction that the kernels use, or have less shared memory");
}

/// Code for sm_90a runs on compute capability 9.0 only; code without a suffix also runs on later devices.
bool is_portable(const std::string& arch) { return !arch.empty() && arch.back() != 'a' && arch.back() != 'f'; }

std::string virtual_arch(const std::string& arch) { return "compute_" + arch.substr(arch.find('_') + 1); }

// ---- NVRTC

struct Nvrtc {
  int (*create)(void**, const char*, const char*, int, const char* const*, const char* const*) = nullptr;
  int (*compile)(void*, int, const char* const*) = nullptr;
  int (*log_size)(void*, size_t*) = nullptr;
  int (*log)(void*, char*) = nullptr;
  int (*cubin_size)(void*, size_t*) = nullptr;
  int (*cubin)(void*, char*) = nullptr;
  int (*ptx_size)(void*, size_t*) = nullptr;
  int (*ptx)(void*, char*) = nullptr;
  int (*destroy)(void**) = nullptr;

  bool open(void* library) {
    auto find = [&](auto& function, const char* name) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
      return function != nullptr;
    };
    return find(create, "nvrtcCreateProgram") && find(compile, "nvrtcCompileProgram") &&
           find(log_size, "nvrtcGetProgramLogSize") && find(log, "nvrtcGetProgramLog") &&
           find(cubin_size, "nvrtcGetCUBINSize") && find(cubin, "nvrtcGetCUBIN") && find(ptx_size, "nvrtcGetPTXSize") &&
           find(ptx, "nvrtcGetPTX") && find(destroy, "nvrtcDestroyProgram");
  }
};

/// The environment variable with the folder of NVRTC.
constexpr const char* kNvrtcFolder = "TILEWRIGHT_NVRTC";

/// Opens all libraries of a folder whose names begin with `prefix`; returns the last one.
void* open_in(const fs::path& folder, const std::string& prefix) {
  void* library = nullptr;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
    if (entry.path().filename().string().starts_with(prefix)) library = dlopen(entry.path().c_str(), RTLD_NOW);
  }
  return library;
}

void* open_nvrtc() {
  std::vector<fs::path> folders;
  const char* named = std::getenv(kNvrtcFolder);
  if (named) {
    folders.emplace_back(named);
  } else if (auto package = package_folder(); package.ok()) {
    folders.push_back(fs::path(*package).parent_path() / "nvidia" / "cu13" / "lib");
  }
  for (const fs::path& folder : folders) {
    // NVRTC finds its builtins library only on the linker's search path, which does not contain Python packages.
    open_in(folder, "libnvrtc-builtins.so");
    if (void* library = open_in(folder, "libnvrtc.so")) return library;
  }
  if (named) return nullptr;
  for (const char* name : {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"}) {
    if (void* library = dlopen(name, RTLD_NOW)) return library;
  }
  return nullptr;
}

const Nvrtc* nvrtc() {
  static const Nvrtc* found = []() -> const Nvrtc* {
    static Nvrtc functions;
    void* library = open_nvrtc();
    return library && functions.open(library) ? &functions : nullptr;
  }();
  return found;
}

Result<CudaProgram> by_nvrtc(const Nvrtc& api, const std::string& text, const std::vector<std::string>& archs) {
  CudaProgram program;
  DeviceBinary portable;
  for (const std::string& arch : archs) {
    void* handle = nullptr;
    if (api.create(&handle, text.c_str(), "kernels.cu", 0, nullptr, nullptr) != 0) {
      return refused("NVRTC", arch, "no program can be made");
    }
    const std::string wanted = "--gpu-architecture=" + arch;
    const char* options[] = {wanted.c_str(), "--std=c++17", "--diag-suppress=177", "--ptxas-options=-v"};
    const int code = api.compile(handle, static_cast<int>(std::size(options)), options);
    auto get = [&](auto size_of, auto get) {
      size_t size = 0;
      std::string bytes;
      if (size_of(handle, &size) == 0 && size > 0) {
        bytes.resize(size);
        get(handle, bytes.data());
      }
      return bytes;
    };
    const std::string log = get(api.log_size, api.log);
    if (code != 0) {
      api.destroy(&handle);
      return refused("NVRTC", arch, log);
    }
    read_log(log, program);
    program.binaries.push_back({arch, get(api.cubin_size, api.cubin)});
    if (portable.bytes.empty() && is_portable(arch)) portable = {virtual_arch(arch), get(api.ptx_size, api.ptx)};
    api.destroy(&handle);
  }
  if (!portable.bytes.empty()) program.binaries.push_back(std::move(portable));
  return program;
}

// ---- nvcc

/// A folder that is removed with its contents at the end of the scope.
struct TemporaryFolder {
  fs::path path;
  ~TemporaryFolder() {
    std::error_code ignored;
    if (!path.empty()) fs::remove_all(path, ignored);
  }
};

Result<CudaProgram> by_nvcc(const std::string& text, const std::vector<std::string>& archs) {
  std::error_code error;
  std::string pattern = (fs::temp_directory_path(error) / "tilewright-XXXXXX").string();
  if (error || !mkdtemp(pattern.data())) {
    return resource_error("codegen/temporary", "there is no folder for temporary files: " + pattern,
                          "set TMPDIR to a folder that can be written to");
  }
  const TemporaryFolder folder{pattern};
  const fs::path source = folder.path / "kernels.cu", binary = folder.path / "kernels.fatbin";
  std::ofstream(source) << text;
  std::vector<std::string> command = {"nvcc", "-fatbin", "--std=c++17", "-diag-suppress", "177", "-Xptxas", "-v"};
  std::string all;
  bool has_ptx = false;
  for (const std::string& arch : archs) {
    const std::string from = virtual_arch(arch);
    const bool keeps_ptx = !has_ptx && is_portable(arch);
    has_ptx |= keeps_ptx;
    command.insert(command.end(), {"-gencode", keeps_ptx ? fmt::format("arch={0},code=[{1},{0}]", from, arch)
                                                         : fmt::format("arch={},code={}", from, arch)});
    all += (all.empty() ? "" : ",") + arch;
  }
  command.insert(command.end(), {"-o", binary.string(), source.string()});
  const Outcome outcome = run_program(command);
  if (!outcome.found || (WIFEXITED(outcome.status) && WEXITSTATUS(outcome.status) == 127)) return CudaProgram{};
  if (outcome.status != 0) return refused("nvcc", all, outcome.output);
  CudaProgram program;
  read_log(outcome.output, program);
  std::ifstream file(binary, std::ios::binary);
  program.binaries.push_back({all, std::string(std::istreambuf_iterator<char>(file), {})});
  return program;
}

}  // namespace

Result<CudaProgram> compile_cuda(const std::string& text, const std::vector<std::string>& archs) {
  std::error_code error;
  if (const char* folder = std::getenv(kNvrtcFolder); folder && !fs::is_directory(folder, error)) {
    return resource_error(
        "codegen/nvrtc",
        fmt::format("the environment variable {} is \"{}\", which is not a folder", kNvrtcFolder, folder),
        "set it to the folder of libnvrtc.so, or unset it to use the installed compiler");
  }
  const Nvrtc* api = nvrtc();
  return api ? by_nvrtc(*api, text, archs) : by_nvcc(text, archs);
}

}  // namespace tilewright::codegen
