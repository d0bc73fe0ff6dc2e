#include "search/database/sql.h"

#include <fmt/format.h>

#include <charconv>

namespace tilewright::search::sql {

const Dialect kSqlite{
    .words = {{"#", ""}},
    .begin = "BEGIN IMMEDIATE",
    .lock_schema = "",  // BEGIN IMMEDIATE locks the database
    .version = "PRAGMA user_version",
    .set_version = "PRAGMA user_version = {}",
    .flush = "PRAGMA wal_checkpoint(PASSIVE)",
};

const Dialect kPostgres{
    .words = {{"#", "tilewright_"},
              {"?", "$"},
              {" WITHOUT ROWID", ""},
              {"INTEGER PRIMARY KEY", "bigserial PRIMARY KEY"},
              {"INTEGER AS", "TEXT AS"},
              {"INTEGER", "bigint"},
              {"REAL", "double precision"},
              {"BLOB", "bytea"},
              {" AS (iif(json_valid(text), json_extract(text, '$.", " GENERATED ALWAYS AS (text::json ->> ('"},
              {"'), NULL))", "')) STORED"}},
    .begin = "BEGIN",
    .lock_schema = "SELECT pg_advisory_xact_lock(1952804467)",
    .version = "SELECT coalesce(obj_description(to_regclass('#meta'), 'pg_class'), '0')::bigint",
    .set_version = "COMMENT ON TABLE #meta IS '{}'",
    .flush = "",
};

Value to_value(const Hash128& hash) {
  Blob blob;
  for (const uint64_t word : {hash.hi, hash.lo}) {
    for (int shift = 56; shift >= 0; shift -= 8) blob.bytes += static_cast<char>(word >> shift);
  }
  return blob;
}

Value to_value(const std::vector<double>& values) { return fmt::format("[{}]", fmt::join(values, ",")); }

namespace {

template <class T>
bool read_number(const Value& value, T& into) {
  if (const auto* number = std::get_if<int64_t>(&value)) into = static_cast<T>(*number);
  if (const auto* number = std::get_if<double>(&value)) into = static_cast<T>(*number);
  return !std::holds_alternative<std::string>(value) && !std::holds_alternative<Blob>(value);
}

}  // namespace

bool read(const Value& value, int64_t& into) { return read_number(value, into); }
bool read(const Value& value, uint64_t& into) { return read_number(value, into); }
bool read(const Value& value, double& into) { return read_number(value, into); }

bool read(const Value& value, std::string& into) {
  if (const auto* text = std::get_if<std::string>(&value)) into = *text;
  if (const auto* blob = std::get_if<Blob>(&value)) into = blob->bytes;
  if (const auto* number = std::get_if<int64_t>(&value)) into = std::to_string(*number);
  if (const auto* number = std::get_if<double>(&value)) into = fmt::to_string(*number);
  return true;
}

bool read(const Value& value, Hash128& into) {
  std::string bytes;
  read(value, bytes);
  if (bytes.size() != 16) return true;
  for (int i = 0; i < 8; ++i) {
    into.hi = into.hi << 8 | static_cast<unsigned char>(bytes[i]);
    into.lo = into.lo << 8 | static_cast<unsigned char>(bytes[8 + i]);
  }
  return true;
}

bool read(const Value& value, std::vector<double>& into) {
  std::string text;
  read(value, text);
  if (text.size() < 2 || text.front() != '[' || text.back() != ']') return false;
  const char* at = text.data() + 1;
  const char* const end = text.data() + text.size() - 1;
  std::vector<double> values;
  while (at != end) {
    const auto [next, error] = std::from_chars(at, end, values.emplace_back());
    if (error != std::errc() || (next != end && *next != ',')) return false;
    at = next == end ? end : next + 1;
  }
  into = std::move(values);
  return true;
}

Result<std::vector<Row>> Connection::run_row(const std::string& text, const Row& values) {
  std::string translated = text;
  for (const auto& [word, here] : dialect.words) {
    for (size_t at = 0; (at = translated.find(word, at)) != std::string::npos; at += here.size()) {
      translated.replace(at, word.size(), here);
    }
  }
  return translated.empty() ? std::vector<Row>() : run_here(translated, values);
}

Result<Transaction> Transaction::begin(Connection& connection, const char* how) {
  TW_RETURN_IF_ERROR(connection.run(how));
  return Transaction(&connection);
}

Transaction::~Transaction() {
  if (!connection_) return;
  // Some errors (a full disk) have rolled back already; then there is nothing left to do, and no caller to report to.
  try {
    (void)connection_->run("ROLLBACK");
  } catch (...) {  // Ctrl-C during the request to a server
  }
}

Status Transaction::commit() {
  TW_RETURN_IF_ERROR(connection_->run("COMMIT"));
  connection_ = nullptr;
  return Ok{};
}

}  // namespace tilewright::search::sql
