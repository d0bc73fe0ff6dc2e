// SQL as the store speaks it to a file (SQLite) and to a server (PostgreSQL).
//
// Statements are written once, in what both understand: `?1` is a parameter, `#record` one of our tables. What the
// dialects call otherwise (types, the number of the schema) stands in one table, Dialect.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "support/hash.h"
#include "support/result.h"

namespace tilewright::search::sql {

struct Blob {
  std::string bytes;
};
/// The first is NULL.
using Value = std::variant<std::monostate, int64_t, double, std::string, Blob>;
using Row = std::vector<Value>;

inline Value to_value(int64_t value) { return value; }
inline Value to_value(uint64_t value) { return static_cast<int64_t>(value); }
inline Value to_value(double value) { return value; }
inline Value to_value(std::string value) { return value; }
inline Value to_value(const char* value) { return std::string(value); }
inline Value to_value(Value value) { return value; }
Value to_value(const Hash128& hash);
/// A JSON list with the shortest digits that read back the same.
Value to_value(const std::vector<double>& values);
/// NULL where it is empty.
template <class T>
Value to_value(const std::optional<T>& value) {
  return value ? to_value(*value) : Value();
}

/// Reads a column as SQLite does: a number becomes another type of number, or a text. NULL leaves a number or a text as
/// it is, and empties an optional. False: a text where a number is expected, or anything but a list of numbers.
bool read(const Value& value, int64_t& into);
bool read(const Value& value, uint64_t& into);
bool read(const Value& value, double& into);
bool read(const Value& value, std::string& into);
bool read(const Value& value, Hash128& into);
bool read(const Value& value, std::vector<double>& into);
template <class T>
bool read(const Value& value, std::optional<T>& into) {
  into.reset();
  if (std::holds_alternative<std::monostate>(value)) return true;
  T found{};
  const bool is_read = read(value, found);
  if (is_read) into = std::move(found);
  return is_read;
}

struct Dialect {
  /// Words in statements and their replacements in this dialect; applied in order.
  std::vector<std::pair<std::string, std::string>> words;
  const char* begin;        ///< a transaction that writes
  const char* lock_schema;  ///< in such a transaction: nobody else changes the tables
  const char* version;      ///< statement for the version of the schema, 0 without tables
  const char* set_version;  ///< statement to set it, with {} for the number
  const char* flush;
};
extern const Dialect kSqlite, kPostgres;

class Connection {
 public:
  Connection(const Dialect& dialect, std::string path) : dialect(dialect), path(std::move(path)) {}
  virtual ~Connection() = default;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// Runs one statement or several; the rows are those of the last one.
  template <class... Args>
  Result<std::vector<Row>> run(const std::string& text, const Args&... args) {
    return run_row(text, {to_value(args)...});
  }
  /// The first column of the first row.
  template <class T, class... Args>
  Result<std::optional<T>> find(const std::string& text, const Args&... args) {
    TW_TRY(rows, run(text, args...));
    std::optional<T> found;
    if (!rows.empty()) read(rows[0][0], found.emplace());
    return found;
  }
  Result<std::vector<Row>> run_row(const std::string& text, const Row& values);
  virtual void close() {}

  const Dialect& dialect;
  const std::string path;  ///< path for messages

 private:
  /// `text` is written in the dialect.
  virtual Result<std::vector<Row>> run_here(const std::string& text, const Row& values) = 0;
};

/// Begins now; ROLLBACK in the destructor unless commit() succeeded.
class Transaction {
 public:
  static Result<Transaction> begin(Connection& connection) { return begin(connection, connection.dialect.begin); }
  static Result<Transaction> begin(Connection& connection, const char* how);
  Transaction(Transaction&& other) noexcept : connection_(std::exchange(other.connection_, nullptr)) {}
  Transaction& operator=(Transaction&&) = delete;
  ~Transaction();
  Status commit();

 private:
  explicit Transaction(Connection* connection) : connection_(connection) {}
  Connection* connection_;
};

}  // namespace tilewright::search::sql
