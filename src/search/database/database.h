// The tuning database: what was measured, what was best, and where an interrupted search stopped.
//
//   TW_TRY(db, Database::open("out/tilewright.db"));
//   TW_RETURN_IF_ERROR(db->commit_workload(hash, "matmul", script));
//   TW_TRY(session, db->session({hash, target, space, seed}));        // resume: session->trials, session->state
//   TW_RETURN_IF_ERROR(db->commit(record, SessionStep{space, state})); // one transaction for the record and the state
//   TW_TRY(best, db->best(hash, target));                             // std::optional<Record>
//
// One SQLite file with a write-ahead log. Any number of processes and threads may use it at once; a writer waits for
// another at most `busy_timeout`. Every call either does all of its work or nothing, and says why as a ResourceError:
// database/locked, /full, /read-only, /damaged, /not-a-database, /newer-version, /cannot-open, /missing, /failed.
// A file that is not one of ours is never written.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "support/hash.h"
#include "support/result.h"

namespace tilewright::search {

struct DatabaseOptions {
  /// Opens for queries only; works in a folder that may not be written, and never creates a file.
  bool read_only = false;
  std::chrono::milliseconds busy_timeout{5000};
};

struct Workload {
  Hash128 hash;  ///< structural hash of the program
  std::string name;
  std::string script;
  std::string created;  ///< UTC, "2025-01-31T12:00:00Z"
};

/// One measured candidate, or one that failed. Texts marked JSON are kept as they are.
struct Record {
  int64_t id = 0;  ///< given by commit()
  Hash128 workload;
  std::string target;     ///< canonical text of the target
  std::string trace;      ///< JSON: [instructions, decisions]
  std::string decisions;  ///< JSON
  std::vector<double> seconds;
  std::string outcome = "ok";  ///< outcome_name() of measure/outcome.h
  std::string error;           ///< first line of the failure; empty when ok
  std::string verification;    ///< JSON: the tolerance and the largest difference seen
  uint64_t seed = 0;
  int64_t round = 0;
  int64_t index = 0;     ///< number of the candidate in its session
  std::string versions;  ///< JSON: of Tilewright, LLVM, the CPU
  std::string created;   ///< UTC; set by commit() when empty

  bool is_ok() const { return outcome == "ok" && !seconds.empty(); }
  /// Of `seconds`; infinity when there are none.
  double median() const;
};

/// The best records, timed against one another in turn. Times of different minutes differ by more than good candidates
/// do, so the winner stays the best of its workload and target until a record that came later is faster, or the next
/// finals say otherwise.
struct Finals {
  int64_t winner = 0;           ///< id of a record
  std::vector<double> seconds;  ///< per call of the winner, one for each round
  int64_t last_record = 0;      ///< id of the last record that could take part
};

/// What identifies a search: another space or seed is another session.
struct SessionKey {
  Hash128 workload;
  std::string target;
  Hash128 space;
  uint64_t seed = 0;
};

struct Session {
  int64_t trials = 0;            ///< records it has, failures included
  std::vector<int64_t> indices;  ///< of those records, ascending
  std::string state;             ///< JSON of the strategy, as last committed
};

/// The session that a record belongs to (workload, target and seed are the record's) and the strategy's new state.
struct SessionStep {
  Hash128 space;
  std::string state;
};

class Database {
 public:
  /// Opens the file, or makes it. Folders are not made.
  static Result<std::unique_ptr<Database>> open(const std::string& path, const DatabaseOptions& options = {});
  /// Lives as long as the object; nothing touches the disk.
  static Result<std::unique_ptr<Database>> in_memory();
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  /// ":memory:" when there is no file.
  const std::string& path() const;

  /// Does nothing when the workload is known already.
  Status commit_workload(const Hash128& hash, const std::string& name, const std::string& script);
  Result<std::optional<Workload>> workload(const Hash128& hash);
  Result<std::vector<Workload>> workloads();

  /// Returns the record's id. The workload must have been committed. A trial (session and index) that is stored already
  /// stays as it is, and its id comes back: two processes that run the same session do not disturb one another.
  Result<int64_t> commit(const Record& record);
  Result<int64_t> commit(const Record& record, const SessionStep& step);

  /// The correct records, best first, at most `count`: what beats the winner of the finals or lost to nobody, then
  /// those that had their chance; by time. The winner has the times of the finals. An empty target means any.
  Result<std::vector<Record>> top_k(const Hash128& workload, const std::string& target, size_t count);
  Result<std::optional<Record>> best(const Hash128& workload, const std::string& target);
  /// All, failures included, in the order of their commits.
  Result<std::vector<Record>> records(const Hash128& workload, const std::string& target);
  /// How many records ended in each outcome.
  Result<std::map<std::string, int64_t>> count_outcomes(const Hash128& workload, const std::string& target);
  Result<int64_t> size();

  /// Replaces the finals of a workload and target.
  Status commit_finals(const Hash128& workload, const std::string& target, const Finals& finals);
  Result<std::optional<Finals>> finals(const Hash128& workload, const std::string& target);

  Result<std::optional<Session>> session(const SessionKey& key);
  /// Its records by index, failures included; none when there is no such session.
  Result<std::vector<Record>> session_records(const SessionKey& key);
  /// Stores the state alone, for candidates that end before they are measured.
  Status save_session(const SessionKey& key, const std::string& state);
  /// Starts afresh: the session is gone, its records stay.
  Status forget_session(const SessionKey& key);

  /// Free-form facts about the file.
  Status set_meta(const std::string& key, const std::string& value);
  Result<std::optional<std::string>> meta(const std::string& key);

 private:
  struct Impl;
  explicit Database(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tilewright::search
