// The SQLite C API behind two small classes that return Result. The only header that other files of database/ need; no
// file outside this folder sees it.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "support/result.h"

struct sqlite3;
struct sqlite3_stmt;

namespace tilewright::search::sqlite {

/// The first `count` bytes of a file, of which SQLite makes nothing yet; zeros beyond its end. Closing a file gives up
/// all locks that this process has on it (POSIX, fcntl), those of open connections, too; SQLite knows its own, and
/// closes the file after them.
Result<std::string> read_start(const std::string& path, size_t count);

/// A prepared statement: bind, step, read columns. Bindings count from 1, columns from 0, as in SQLite.
class Statement {
 public:
  Statement(Statement&& other) noexcept;
  Statement& operator=(Statement&&) = delete;
  ~Statement();

  Statement& bind(int index, int64_t value);
  Statement& bind(int index, double value);
  Statement& bind(int index, std::string_view text);
  Statement& bind_blob(int index, std::span<const unsigned char> bytes);
  Statement& bind_null(int index);

  /// True: there is a row. False: the statement is done.
  Result<bool> step();
  /// For statements without rows.
  Status run();

  int64_t integer(int column) const;
  double real(int column) const;
  std::string text(int column) const;
  std::string blob(int column) const;
  bool is_null(int column) const;

 private:
  friend class Connection;
  Statement(sqlite3* db, sqlite3_stmt* statement, std::string path)
      : db_(db), statement_(statement), path_(std::move(path)) {}

  sqlite3* db_;
  sqlite3_stmt* statement_;
  std::string path_;
  int bind_error_ = 0;  // the first failed bind; step() reports it
};

struct OpenOptions {
  bool read_only = false;
  bool immutable = false;  ///< nobody writes meanwhile: needs no lock and no side file, works in a read-only folder
  bool create = false;
  std::chrono::milliseconds busy_timeout{5000};
};

class Connection {
 public:
  /// `path` is what messages name; ":memory:" opens a private database in memory.
  static Result<Connection> open(const std::string& path, const OpenOptions& options);
  Connection(Connection&& other) noexcept;
  Connection& operator=(Connection&&) = delete;
  ~Connection();

  Result<Statement> prepare(std::string_view sql);
  /// Any number of statements without parameters.
  Status execute(const std::string& sql);
  /// The single integer that a query such as PRAGMA user_version returns.
  Result<int64_t> integer(std::string_view sql);
  bool is_read_only() const;
  int64_t last_insert_id() const;
  /// Rows that the last statement changed.
  int changes() const;
  const std::string& path() const { return path_; }

 private:
  Connection(sqlite3* db, std::string path) : db_(db), path_(std::move(path)) {}

  sqlite3* db_;
  std::string path_;
};

/// BEGIN IMMEDIATE now; ROLLBACK in the destructor unless commit() succeeded. With `sql` "BEGIN" it only reads.
class Transaction {
 public:
  static Result<Transaction> begin(Connection& connection, const char* sql = "BEGIN IMMEDIATE");
  Transaction(Transaction&& other) noexcept;
  Transaction& operator=(Transaction&&) = delete;
  ~Transaction();
  Status commit();

 private:
  explicit Transaction(Connection* connection) : connection_(connection) {}
  Connection* connection_;
};

}  // namespace tilewright::search::sqlite
