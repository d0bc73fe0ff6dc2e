// Results that are known when a session begins. Its own earlier parts are continued. Measurements by other sessions of
// the program on this machine are not repeated. Strategies and models also get the best of all these, and schedules of
// similar programs.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "schedule/schedule.h"
#include "search/database/database.h"
#include "search/database/tuning_database.h"
#include "search/session/entry_names.h"

namespace tilewright::search {

/// The program with the steps of a trace (JSON) applied.
Result<schedule::Schedule> replayed(const Ref<Module>& module, const std::string& trace);

class KnownResults final : public TuningDatabase {
 public:
  /// `relatives`: traces (JSON) of the same operator at other shapes, for a session that begins. `host` and `versions`
  /// are those of this process.
  KnownResults(std::shared_ptr<Database> database, SessionKey key, Ref<Module> program, EntryNames names,
               std::vector<std::string> relatives, std::string host, std::string versions)
      : database_(std::move(database)),
        key_(std::move(key)),
        program_(std::move(program)),
        names_(std::move(names)),
        relatives_(std::move(relatives)),
        host_(std::move(host)),
        versions_(std::move(versions)) {}

  /// Goes on with the session, or begins it; `fresh` measures all of it again. Gives the records of its earlier parts.
  Result<std::vector<Record>> open(bool fresh);
  /// Returns state that a session stores beside its records, so that its later parts begin with the same: JSON.
  std::string state() const;

  /// Returns records for strategies to begin with: the best of earlier ones, then those of similar programs, without
  /// times.
  Result<std::vector<TuningRecord>> top_k(const Ref<Module>& module, size_t count) override;
  ModuleEquality module_equality() const override { return ModuleEquality::kStructural; }
  /// Returns all measurements of other sessions when this one began.
  Result<std::vector<Record>> earlier() const;

  /// The record of an earlier part with this trace; each is found once.
  std::optional<Record> take(const std::string& trace);
  /// Returns the measurement of a program by another session on this machine, from any space. Null if there is none;
  /// valid as long as this object.
  Result<const Record*> of_others(const Ref<Module>& program);
  /// The number of a new candidate: this one, unless a record of an earlier part has it, as of versions that sampled in
  /// another order.
  int64_t number(int64_t index);

 private:
  Status read_others();

  std::shared_ptr<Database> database_;
  SessionKey key_;
  Ref<Module> program_;
  EntryNames names_;
  std::vector<std::string> relatives_;
  std::string host_, versions_;
  int64_t last_earlier_ = 0;                         ///< the latest record that there was when the session began
  bool reuses_ = true;                               ///< whether measurements of others are used
  std::map<std::string, Record> by_trace_;           ///< another version may sample in another order
  std::set<int64_t> numbers_;                        ///< numbers of candidates in records of the session
  std::optional<std::map<Hash128, Record>> others_;  ///< loaded on first use
};

}  // namespace tilewright::search
