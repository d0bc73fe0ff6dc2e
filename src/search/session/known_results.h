// What a session needs not measure: its own earlier parts, which it goes on from, and what other sessions of the
// program measured on this machine.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "search/session/earlier_records.h"

namespace tilewright::search {

class KnownResults {
 public:
  /// `relatives`: traces (JSON) of the same operator at other shapes, for a session that begins. `host` and `versions`
  /// are those of this process.
  KnownResults(std::shared_ptr<Database> database, SessionKey key, Ref<Module> program,
               std::vector<std::string> relatives, std::string host, std::string versions)
      : database_(std::move(database)),
        key_(std::move(key)),
        program_(std::move(program)),
        relatives_(std::move(relatives)),
        host_(std::move(host)),
        versions_(std::move(versions)) {}

  /// Goes on with the session, or begins it; `fresh` measures all of it again. Gives the records of its earlier parts.
  Result<std::vector<Record>> open(bool fresh);
  /// What a session keeps beside its records, so that its later parts begin with the same: JSON.
  std::string state() const;
  /// What strategies may know.
  std::shared_ptr<TuningDatabase> for_strategies() const;
  /// What other sessions had measured when this one began, the latest ones, for cost models.
  Result<std::vector<Record>> for_models() const;

  /// The record of an earlier part with this trace; each is found once.
  std::optional<Record> take(const std::string& trace);
  /// The record of another session whose program is this one; null: there is none.
  Result<const Record*> of_others(const Ref<Module>& program) { return others_->find(program); }
  /// The number of a new candidate: this one, unless a record of an earlier part has it, as of versions that sampled in
  /// another order.
  int64_t number(int64_t index);

 private:
  std::shared_ptr<Database> database_;
  SessionKey key_;
  Ref<Module> program_;
  std::vector<std::string> relatives_;
  std::string host_, versions_;
  int64_t last_earlier_ = 0;                ///< the latest record that there was when the session began
  std::map<std::string, Record> by_trace_;  ///< another version may sample in another order
  std::set<int64_t> numbers_;               ///< of candidates that records of the session have
  std::optional<EarlierPrograms> others_;
};

}  // namespace tilewright::search
