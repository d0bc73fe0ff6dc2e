// What is known when a search begins: to strategies the best of earlier sessions of the program, and schedules of
// others like it; to the tuner which programs need not be measured again.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "schedule/schedule.h"
#include "search/database/database.h"
#include "search/database/tuning_database.h"

namespace tilewright::search {

class EarlierRecords final : public TuningDatabase {
 public:
  /// `last`: the latest record that earlier sessions wrote. `relatives`: traces (JSON) of the others, without times.
  EarlierRecords(std::shared_ptr<Database> database, const SessionKey& key, int64_t last,
                 std::vector<std::string> relatives)
      : database_(std::move(database)), key_(key), last_(last), relatives_(std::move(relatives)) {}
  ModuleEquality module_equality() const override { return ModuleEquality::kStructural; }
  Result<std::vector<TuningRecord>> top_k(const Ref<Module>& module, size_t count) override;

 private:
  std::shared_ptr<Database> database_;
  SessionKey key_;
  int64_t last_;
  std::vector<std::string> relatives_;
};

/// The program with the steps of a trace (JSON) applied.
Result<schedule::Schedule> replayed(const Ref<Module>& module, const std::string& trace);

/// What other sessions of a workload, for one target and on this machine, measured, by the programs that resulted: the
/// spaces that they came from do not matter.
class EarlierPrograms {
 public:
  /// `last`: the latest record that counts; 0 for none. `host` and `versions` are those of this process.
  EarlierPrograms(std::shared_ptr<Database> database, const SessionKey& key, Ref<Module> workload, int64_t last,
                  std::string host, std::string versions)
      : database_(std::move(database)),
        key_(key),
        workload_(std::move(workload)),
        last_(last),
        host_(std::move(host)),
        versions_(std::move(versions)) {}
  /// The record of a program; null where there is none. It lives as long as this object.
  Result<const Record*> find(const Ref<Module>& program);

 private:
  Status read();

  std::shared_ptr<Database> database_;
  SessionKey key_;
  Ref<Module> workload_;
  int64_t last_;
  std::string host_, versions_;
  std::optional<std::map<Hash128, Record>> known_;  ///< once it was asked for
};

}  // namespace tilewright::search
