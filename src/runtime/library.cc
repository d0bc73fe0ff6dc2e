#include "runtime/library.h"

#include <dlfcn.h>
#include <elf.h>
#include <fmt/format.h>
#include <link.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <tuple>

#include "runtime/runtime.h"

namespace tilewright::runtime {
namespace {

/// A file that an interrupted copy or a full disk left has not all that its headers promise. The system maps such a
/// file and ends the process when it touches what is not there.
bool is_cut_off(const std::string& path) {
  std::error_code error;
  const uintmax_t size = std::filesystem::file_size(path, error);
  std::ifstream file(path, std::ios::binary);
  Elf64_Ehdr header;
  if (error || !file.read(reinterpret_cast<char*>(&header), sizeof header)) return false;
  if (std::string_view(reinterpret_cast<const char*>(header.e_ident), SELFMAG) != ELFMAG) return false;
  if (header.e_ident[EI_CLASS] != ELFCLASS64) return false;
  auto beyond = [&](uint64_t begin, uint64_t bytes) { return begin > size || bytes > size - begin; };
  if (beyond(header.e_shoff, uint64_t{header.e_shnum} * header.e_shentsize)) return true;
  if (header.e_phentsize != sizeof(Elf64_Phdr)) return false;
  file.seekg(static_cast<std::streamoff>(header.e_phoff));
  for (int i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr part;
    if (!file.read(reinterpret_cast<char*>(&part), sizeof part) || beyond(part.p_offset, part.p_filesz)) return true;
  }
  return false;
}

/// dlopen() returns the library that is already loaded under a path, even if the file has been replaced since. So if a
/// file was exported again while its former version is in use, it is loaded by another spelling of its path (`/./`).
class LoadedFiles {
 public:
  /// The name to load `path` by; `release` it when the library is closed.
  std::string name_for(const std::filesystem::path& path) {
    struct stat status{};
    if (stat(path.c_str(), &status) != 0) return path.string();
    const Contents contents{status.st_dev, status.st_ino, status.st_size, status.st_mtim.tv_sec,
                            status.st_mtim.tv_nsec};
    std::scoped_lock lock(mutex_);
    std::string folder = path.parent_path().string() + "/";
    for (;; folder += "./") {
      std::string name = folder + path.filename().string();
      auto it = files_.find(name);
      if (it == files_.end()) {
        if (is_taken(name)) continue;
        it = files_.emplace(name, File{contents, 0}).first;
      }
      if (it->second.contents != contents) continue;
      ++it->second.users;
      return name;
    }
  }

  void release(const std::string& name) {
    std::scoped_lock lock(mutex_);
    auto it = files_.find(name);
    if (it == files_.end() || --it->second.users > 0) return;
    if (!is_taken(name)) files_.erase(it);  // a library whose threads run stays
  }

 private:
  using Contents = std::tuple<dev_t, ino_t, off_t, time_t, long>;
  struct File {
    Contents contents;
    int users;
  };

  /// Whether something with unknown contents is loaded under this name. The loader also finds the same file under
  /// another name, such as a link; that has the current contents, and does not count.
  static bool is_taken(const std::string& name) {
    void* handle = dlopen(name.c_str(), RTLD_LAZY | RTLD_NOLOAD);
    if (!handle) return false;
    const link_map* loaded = nullptr;
    const bool is_known = dlinfo(handle, RTLD_DI_LINKMAP, &loaded) == 0;
    const bool taken = !is_known || name == loaded->l_name;
    dlclose(handle);
    return taken;
  }

  std::mutex mutex_;
  std::map<std::string, File> files_;
};

LoadedFiles& loaded_files() {
  static auto* files = new LoadedFiles;  // libraries may be closed while the process ends
  return *files;
}

}  // namespace

Result<std::shared_ptr<const Library>> Library::open(const std::string& path) {
  // A name without a slash would be searched for in the system's folders.
  std::error_code error;
  std::string absolute = std::filesystem::absolute(path, error).string();
  if (!error && is_cut_off(absolute)) {
    return resource_error("library/open", fmt::format("{} is cut off: there is less of it than its headers say", path),
                          "copy or export it again");
  }
  const std::string name = error ? absolute : loaded_files().name_for(absolute);
  void* handle = error ? nullptr : dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    // The text of dlerror() is gone at the next call to the loader, also one that release() makes.
    const char* error_text = error ? nullptr : dlerror();
    const std::string reason = error_text ? error_text : error.message();
    loaded_files().release(name);
    return resource_error("library/open", fmt::format("{} cannot be loaded: {}", path, reason),
                          "give the path of a shared library that kernel.export() wrote");
  }
  const auto* module = static_cast<const tw_module*>(dlsym(handle, TW_MODULE_SYMBOL));
  std::shared_ptr<const Library> library(new Library(handle, name, module));
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

Library::~Library() {
  dlclose(handle_);
  loaded_files().release(name_);
}

std::string Library::calls() const {
  const auto* text = static_cast<const char*>(dlsym(handle_, kCallsSymbol));
  return text ? text : "";
}

std::string Library::producer() const { return module_->producer ? module_->producer : ""; }

}  // namespace tilewright::runtime
