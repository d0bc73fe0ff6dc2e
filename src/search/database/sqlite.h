// SQLite behind sql::Connection. No file outside this folder sees its C API.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "search/database/sql.h"

namespace tilewright::search::sqlite {

/// The first `count` bytes of a file, of which SQLite makes nothing yet; zeros beyond its end. Closing a file gives up
/// all locks that this process has on it (POSIX, fcntl), those of open connections, too; SQLite knows its own, and
/// closes the file after them.
Result<std::string> read_start(const std::string& path, size_t count);

struct OpenOptions {
  bool read_only = false;
  bool immutable = false;  ///< nobody writes meanwhile: needs no lock and no side file, works in a read-only folder
  bool create = false;
  std::chrono::milliseconds busy_timeout{5000};
};

/// `path` is what messages name; ":memory:" opens a private database in memory. Of a file that may not be written, a
/// connection that only reads comes back.
Result<std::unique_ptr<sql::Connection>> open(const std::string& path, const OpenOptions& options = {});
bool is_read_only(const sql::Connection& connection);

}  // namespace tilewright::search::sqlite
