#include "search/database/database_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "search/database/schema.h"
#include "search/database/sqlite.h"

namespace tilewright::search {
namespace {

// The file header, https://www.sqlite.org/fileformat.html section 1.3.
constexpr char kSqliteMagic[] = "SQLite format 3";
constexpr size_t kHeaderSize = 100;
constexpr size_t kPageSizeAt = 16, kChangeCounterAt = 24, kPageCountAt = 28, kApplicationIdAt = 68,
                 kVersionValidAt = 92;

uint32_t big_endian(const unsigned char* bytes, int count) {
  uint32_t value = 0;
  for (int i = 0; i < count; ++i) value = value << 8 | bytes[i];
  return value;
}

Diagnostic not_ours(const std::string& path, const std::string& what) {
  return resource_error("database/not-a-database", fmt::format("{}: {}", path, what),
                        "choose another path; this file is left as it is");
}

Diagnostic cannot_open(const std::string& path, int error) {
  return resource_error("database/cannot-open", fmt::format("{}: cannot be opened ({})", path, std::strerror(error)),
                        "check the path and its permissions");
}

Diagnostic truncated(const std::string& path, uint64_t size, const std::string& expected) {
  return resource_error(
      "database/damaged", fmt::format("{}: the database is truncated: {} bytes, {}", path, size, expected),
      "keep a copy of the file; `sqlite3 FILE .recover` saves what can be read; delete it to start anew");
}

bool file_exists(const std::string& path) {
  struct stat info;
  return ::stat(path.c_str(), &info) == 0;
}

/// The temporary file with its side files, gone on every way out.
struct ScratchFile {
  std::string path;
  ~ScratchFile() {
    for (const char* suffix : {"", "-wal", "-shm", "-journal"}) ::unlink((path + suffix).c_str());
  }
};

Status fill_new_file(sql::Connection& connection) {
  TW_RETURN_IF_ERROR(connection.run(fmt::format("PRAGMA application_id = {}", kApplicationId)));
  TW_RETURN_IF_ERROR(migrate(connection, migrations()));
  TW_RETURN_IF_ERROR(connection.run("PRAGMA journal_mode = WAL"));
  return Ok{};
}

}  // namespace

Result<bool> recognize_database(const std::string& path) {
  // A named pipe is not to be opened: that waits for a writer.
  struct stat info;
  if (::stat(path.c_str(), &info) != 0) {
    if (errno == ENOENT) return false;
    return cannot_open(path, errno);
  }
  if (!S_ISREG(info.st_mode)) return not_ours(path, "is not a regular file");
  TW_TRY(start, sqlite::read_start(path, kHeaderSize));
  const auto* header = reinterpret_cast<const unsigned char*>(start.data());
  const auto size = static_cast<uint64_t>(info.st_size);
  // Without a log, an empty file is what a program makes that wants a name, mktemp for instance.
  if (size == 0 && !file_exists(path + "-wal")) return false;
  if (size == 0) return truncated(path, size, "so not even a header");
  if (std::memcmp(header, kSqliteMagic, std::min<size_t>(size, sizeof kSqliteMagic)) != 0)
    return not_ours(path, "is not a database");
  if (size < kHeaderSize) return truncated(path, size, "less than its header");
  if (big_endian(header + kApplicationIdAt, 4) != kApplicationId)
    return not_ours(path, "is an SQLite database, but not one of Tilewright's");
  uint64_t page_size = big_endian(header + kPageSizeAt, 2);
  if (page_size == 1) page_size = 65536;
  // The page count is meaningful when the two counters agree, and the file complete when no log waits to be merged.
  const bool count_is_valid = big_endian(header + kChangeCounterAt, 4) == big_endian(header + kVersionValidAt, 4);
  const uint64_t expected = page_size * big_endian(header + kPageCountAt, 4);
  if (count_is_valid && size < expected && !file_exists(path + "-wal"))
    return truncated(path, size, fmt::format("its header says {}", expected));
  return true;
}

Status create_database(const std::string& path) {
  if (file_exists(path)) {
    // Empty: SQLite takes it for a database without anything in it, and its locks keep others out meanwhile.
    TW_TRY(connection, sqlite::open(path));
    return fill_new_file(*connection);
  }
  static std::atomic<int> counter{0};
  const ScratchFile scratch{fmt::format("{}.new-{}-{}", path, ::getpid(), counter++)};
  {
    sqlite::OpenOptions options;
    options.create = true;
    auto connection = sqlite::open(scratch.path, options);
    Status made = connection.ok() ? fill_new_file(**connection) : Status(std::move(connection.error()));
    if (!made.ok()) {
      // The user knows nothing of the scratch file.
      Diagnostic& error = made.error();
      if (error.message.starts_with(scratch.path)) error.message.replace(0, scratch.path.size(), path);
      return error;
    }
  }
  if (::link(scratch.path.c_str(), path.c_str()) == 0 || errno == EEXIST) return Ok{};
  // A file system without hard links: the small window between test and rename is the best it can do.
  if (!file_exists(path) && ::rename(scratch.path.c_str(), path.c_str()) == 0) return Ok{};
  return cannot_open(path, errno);
}

}  // namespace tilewright::search
