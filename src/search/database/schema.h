// The tables and how an older file becomes a current one.
//
//   meta(key, value)
//   workload(hash)                  a task: 128-bit structural hash of the program and its sizes, its script
//   target(text)                    what it was compiled for, canonical text
//   host(text)                      a machine that measured: processor, cores, features, system; columns are read off
//                                   the text, a JSON object
//   libraries(text)                 the versions that took part, of Tilewright, LLVM, Python, ...; likewise
//   session(workload, target, space, seed)   a search that can be resumed, with the strategy's own state
//   record(workload, target, session?, position, trace, decisions, seconds, median, outcome, error,
//          verification, host?, libraries?)
//
// PRAGMA application_id marks a file as ours; PRAGMA user_version is the number of migrations it has seen.
#pragma once

#include <span>

#include "search/database/sqlite.h"

namespace tilewright::search {

/// "TlWr". Stands at offset 68 of the file, where it can be read without SQLite.
inline constexpr uint32_t kApplicationId = 0x546c5772;

/// Migration i takes a file from version i to i + 1. Released entries never change.
std::span<const char* const> migrations();

/// Brings the schema up to the last of `steps`, all or nothing. A file of a later version is refused.
Status migrate(sqlite::Connection& connection, std::span<const char* const> steps);

}  // namespace tilewright::search
