// What strategies may know when a search begins: the best of earlier sessions of the program, and schedules of others
// like it.
#pragma once

#include <memory>
#include <string>
#include <vector>

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

}  // namespace tilewright::search
