// A folder that is created on first use and removed with its owner.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

namespace tilewright::search {

class TemporaryFolder {
 public:
  TemporaryFolder() = default;
  ~TemporaryFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;

  /// Returns the path; empty if no folder can be made.
  const std::string& path() {
    if (!path_.empty()) return path_;
    std::error_code error;
    const std::filesystem::path parent = std::filesystem::temp_directory_path(error);
    std::string pattern = ((error ? "/tmp" : parent) / "tilewright-XXXXXX").string();
    if (::mkdtemp(pattern.data())) path_ = pattern;
    return path_;
  }

 private:
  std::string path_;
};

}  // namespace tilewright::search
