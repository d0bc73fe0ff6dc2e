// The tables and how an older file becomes a current one. kMigrations in schema.cc has all columns; in outline:
//
//   meta(key, value)
//   workload(hash)                  a task: 128-bit structural hash of the program and its sizes, its script
//   target(text)                    what it was compiled for, canonical text
//   host(text)                      a machine that measured: processor, cores, features, system; columns are read off
//                                   the text, a JSON object
//   libraries(text)                 a JSON object with the versions of Tilewright, LLVM, Python, ...
//   session(workload, target, space, seed)   a search that can be resumed, with the strategy's own state
//   record(workload, target, session?, position, trace, decisions, seconds, median, outcome, error,
//          verification, host?, libraries?)
//
// Files and servers have the same tables, whose names begin with "tilewright_" on a server. The number of the schema is
// PRAGMA user_version of a file, the comment on the table of facts of a server. PRAGMA application_id marks a file as
// ours.
#pragma once

#include <span>

#include "search/database/sql.h"

namespace tilewright::search {

/// "TlWr". Stands at offset 68 of the file, where it can be read without SQLite.
inline constexpr uint32_t kApplicationId = 0x546c5772;

/// Changes from one version to the next. Released migrations never change.
struct Migration {
  const char* tables;
  /// Run on SQLite only: servers have had this schema since version 4, so they have no older rows.
  const char* rows_of_files = "";
  const char* then = "";  ///< run on both, after that
};

/// Migration i takes tables from version i to i + 1.
std::span<const Migration> migrations();

/// Brings the schema up to the last of `steps`, all or nothing. That of a later version is refused.
Status migrate(sql::Connection& connection, std::span<const Migration> steps);

}  // namespace tilewright::search
