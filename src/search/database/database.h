// The tuning database: what was measured, what was best, and where an interrupted search stopped.
//
//   TW_TRY(db, Database::open("out/tilewright.db"));
//   TW_RETURN_IF_ERROR(db->commit_workload(hash, "matmul", script));
//   TW_TRY(session, db->session({hash, target, space, seed}));        // resume: session->trials, session->state
//   TW_RETURN_IF_ERROR(db->commit(record, SessionStep{space, state})); // one transaction for the record and the state
//   TW_TRY(best, db->best(hash, target));                             // std::optional<Record>
//
// One SQLite file with a write-ahead log, the same in memory, or tables of a PostgreSQL server. Any number of processes
// and threads may use them at once; a writer waits for another of the same file at most `busy_timeout`. Every call
// either does all of its work or nothing, and says why as a ResourceError: database/locked, /full, /read-only,
// /damaged, /not-a-database, /newer-version, /cannot-open, /missing, /failed, /server. A file that is not one of ours
// is never written. damage.h handles corrupt records.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ir/fields.h"
#include "search/database/sql.h"

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
  /// JSON: the values of symbolic sizes, by name; empty if the program has none. `hash` covers program and sizes, so
  /// each combination of sizes is a workload of its own.
  std::string sizes{};
  using Members = Fields<&Workload::hash, &Workload::name, &Workload::script, &Workload::created, &Workload::sizes>;
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
  std::string host;      ///< JSON: processor, cores, ... of the machine that measured; empty if unknown
  std::string versions;  ///< JSON: of Tilewright, LLVM, Python, ... by name
  std::string created;   ///< UTC; set by commit() when empty
  /// In a session on several hosts: seconds of a call of the incumbent, timed alternately with this candidate on the
  /// same host, and its reference time in seconds: the candidate counts as `seconds` times reference over incumbent.
  /// The reference is large enough that no candidate counts as less than its own seconds, converted by the speed of its
  /// host (decision 0045). Both are 0 if the candidate was timed alone.
  double incumbent_seconds = 0, incumbent_reference = 0;

  friend bool operator==(const Record&, const Record&) = default;
  bool is_ok() const { return outcome == "ok" && !seconds.empty(); }
  /// The median of `seconds`; infinity if empty. With an incumbent: by the ratio to it, so that times of different
  /// hosts compare.
  double median() const;
  /// Factor that converts `seconds` to that time scale.
  double host_factor() const {
    return incumbent_seconds > 0 && incumbent_reference > 0 ? incumbent_reference / incumbent_seconds : 1;
  }
  /// Each field is a column: of the table `record` with this name, or as `column_of` in database.cc says. The class of
  /// Python and the lines of exports follow from this list. A column that may be NULL is a std::optional.
  using Members = Fields<&Record::id, &Record::workload, &Record::target, &Record::trace, &Record::decisions,
                         &Record::seconds, &Record::outcome, &Record::error, &Record::verification, &Record::seed,
                         &Record::round, &Record::index, &Record::host, &Record::versions, &Record::created,
                         &Record::incumbent_seconds, &Record::incumbent_reference>;
};

/// The result of a final round, in which the best records were timed alternately. Times measured at different moments
/// vary more than good candidates differ. The winner therefore stays the best record of its workload and target until a
/// later record is faster, or until the next final round.
struct Finals {
  int64_t winner = 0;           ///< id of a record
  std::vector<double> seconds;  ///< per call of the winner, one for each round
  int64_t last_record = 0;      ///< id of the newest record at the time of the final round
  using Members = Fields<&Finals::winner, &Finals::seconds, &Finals::last_record>;
};

/// Identity of a search: another space or seed is another session.
struct SessionKey {
  Hash128 workload;
  std::string target;
  Hash128 space;
  uint64_t seed = 0;
};

struct Session {
  int64_t trials = 0;            ///< number of records, failures included
  std::vector<int64_t> indices;  ///< indices of those records, ascending
  std::string state;             ///< JSON of the strategy, as last committed
};

/// The session that a record belongs to (workload, target and seed are the record's) and the strategy's new state.
struct SessionStep {
  Hash128 space;
  std::string state;
};

/// Where records are kept.
class Database {
 public:
  /// Opens or creates the SQLite file. Does not create folders.
  static Result<std::unique_ptr<Database>> open(const std::string& path, const DatabaseOptions& options = {});
  /// Creates a database in memory, which the disk never sees. `path`: the name in messages, such as the imported file.
  static Result<std::unique_ptr<Database>> in_memory(const std::string& path = ":memory:");
  /// Uses the tables behind a connection; creates or migrates them.
  static Result<std::unique_ptr<Database>> over(std::unique_ptr<sql::Connection> connection);

  /// Path in messages; ":memory:" for a database without a file.
  const std::string& path() const { return path_; }

  /// Does nothing when the workload is known already. `sizes`: see Workload.
  Status commit_workload(const Hash128& hash, const std::string& name, const std::string& script,
                         const std::string& sizes = "");
  Result<std::optional<Workload>> workload(const Hash128& hash);
  Result<std::vector<Workload>> workloads();

  /// Returns the record's id. The workload must have been committed. A trial (session and index) that is stored already
  /// stays as it is, and its id comes back: two processes that run the same session do not disturb one another.
  Result<int64_t> commit(const Record& record) { return store(record, nullptr); }
  Result<int64_t> commit(const Record& record, const SessionStep& step) { return store(record, &step); }

  /// Returns up to `count` correct records, best first; an empty target means any. Without finals, records are sorted
  /// by median time. With finals, the winner and later records that are faster than its finals time come first, by
  /// time; then all others, by time. The winner is returned with its finals times.
  Result<std::vector<Record>> top_k(const Hash128& workload, const std::string& target, size_t count);
  Result<std::optional<Record>> best(const Hash128& workload, const std::string& target);
  /// Returns all records, failures included, in the order of their commits.
  Result<std::vector<Record>> records(const Hash128& workload, const std::string& target);
  Result<int64_t> size();
  /// Forgets records; sessions that they belong to measure those candidates again.
  Status erase(const std::vector<int64_t>& ids);

  /// Replaces the finals of a workload and target.
  Status commit_finals(const Hash128& workload, const std::string& target, const Finals& finals);
  Result<std::optional<Finals>> finals(const Hash128& workload, const std::string& target);

  Result<std::optional<Session>> session(const SessionKey& key);
  /// Returns the records of a session by index, failures included; none if there is no such session.
  Result<std::vector<Record>> session_records(const SessionKey& key);
  /// Stores the state alone, for candidates that end before they are measured.
  Status save_session(const SessionKey& key, const std::string& state);
  /// Starts afresh: the session is gone, its records stay.
  Status forget_session(const SessionKey& key);

  /// Free-form facts about the file.
  Status set_meta(const std::string& key, const std::string& value);
  /// Sets the value if it is `before` (none: if there is none yet), and returns whether it was: another process may
  /// have changed it meanwhile.
  Result<bool> replace_meta(const std::string& key, const std::optional<std::string>& before, const std::string& value);
  Result<std::optional<std::string>> meta(const std::string& key);

  /// Moves what was committed from the log into the file, so that a copy of the file alone has it while the database is
  /// open; closing does the same. What other processes are reading meanwhile waits for them, and this call does not.
  Status flush();
  /// Ends the connection to a server.
  void close() { connection_->close(); }

  /// Called with each record after its commit, and its workload.
  std::function<Status(const Workload&, const Record&)> on_commit;

  /// Returns the warnings since the last call: one sentence per damaged record.
  std::vector<std::string> take_warnings();

 private:
  Database(std::unique_ptr<sql::Connection> connection, std::string path)
      : connection_(std::move(connection)), path_(std::move(path)) {}
  Result<int64_t> store(const Record& record, const SessionStep* step);
  /// Within the caller's transaction.
  Result<int64_t> put(const Record& record, const sql::Row& ids, const sql::Value& session);
  Result<int64_t> put_session(const sql::Row& ids, const Hash128& space, uint64_t seed, const std::string& state);
  Result<std::optional<int64_t>> session_id(const SessionKey& key);
  /// The ids of the rows of a program, a target, a host and libraries; rows of texts are created if there are none.
  Result<sql::Row> ids(const Hash128& workload, const std::string& target, const std::string& host = "",
                       const std::string& libraries = "");
  /// Returns the records that a statement selects. Damaged ones are marked, and reported by take_warnings().
  Result<std::vector<Record>> select(const std::string& rest, const sql::Row& values,
                                     const char* seconds = "r.seconds");

  std::unique_ptr<sql::Connection> connection_;
  std::string path_;
  std::mutex mutex_;  ///< guards the connection and the members below; whoever takes it does not hold the GIL
  std::vector<std::string> warnings_;
  std::set<int64_t> damaged_;
};

}  // namespace tilewright::search
