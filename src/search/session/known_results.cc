#include "search/session/known_results.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "search/database/damage.h"

namespace tilewright::search {
namespace {

/// Records of earlier sessions that a cost model learns from at most.
constexpr size_t kRecordsToLearn = 512;

}  // namespace

Result<std::vector<Record>> KnownResults::open(bool fresh) {
  if (fresh) TW_RETURN_IF_ERROR(database_->forget_session(key_));
  TW_TRY(session, database_->session(key_));
  if (session) {
    // A state that was harmed says nothing; the records do.
    const auto state = nlohmann::json::parse(session->state, nullptr, false);
    if (state.is_object() && state.contains("earlier") && state["earlier"].is_number_integer()) {
      last_earlier_ = state["earlier"].get<int64_t>();
    }
    if (state.is_object() && state.contains("relatives") && state["relatives"].is_array()) {
      relatives_.clear();
      for (const auto& trace : state["relatives"]) {
        if (trace.is_string()) relatives_.push_back(trace.get<std::string>());
      }
    }
  } else {
    TW_TRY(earlier, database_->records(key_.workload, key_.target));
    for (const Record& record : earlier) last_earlier_ = std::max(last_earlier_, record.id);
    TW_RETURN_IF_ERROR(database_->save_session(key_, state()));
  }
  others_.emplace(database_, key_, program_, fresh ? 0 : last_earlier_, host_, versions_);
  TW_TRY(records, database_->session_records(key_));
  std::erase_if(records, [](const Record& record) { return record.outcome == kDamaged; });  // measured again
  for (const Record& record : records) {
    by_trace_.emplace(record.trace, record);
    numbers_.insert(record.index);
  }
  return std::move(records);
}

std::string KnownResults::state() const {
  return nlohmann::json{{"earlier", last_earlier_}, {"relatives", relatives_}}.dump();
}

std::shared_ptr<TuningDatabase> KnownResults::for_strategies() const {
  return std::make_shared<EarlierRecords>(database_, key_, last_earlier_, relatives_);
}

Result<std::vector<Record>> KnownResults::for_models() const {
  if (last_earlier_ == 0) return std::vector<Record>();
  TW_TRY(records, database_->records(key_.workload, key_.target));
  std::erase_if(records, [&](const Record& record) { return record.id > last_earlier_; });
  if (records.size() > kRecordsToLearn) records.erase(records.begin(), records.end() - kRecordsToLearn);
  return std::move(records);
}

std::optional<Record> KnownResults::take(const std::string& trace) {
  auto found = by_trace_.extract(trace);
  return found.empty() ? std::nullopt : std::optional(std::move(found.mapped()));
}

int64_t KnownResults::number(int64_t index) {
  if (numbers_.contains(index)) index = *numbers_.rbegin() + 1;
  numbers_.insert(index);
  return index;
}

}  // namespace tilewright::search
