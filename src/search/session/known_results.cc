#include "search/session/known_results.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "search/database/damage.h"
#include "search/module_equality.h"

namespace tilewright::search {
namespace {

/// Each is a schedule that is made again, in about a millisecond.
constexpr ptrdiff_t kMostReplayed = 512;

}  // namespace

Result<schedule::Schedule> replayed(const Ref<Module>& module, const std::string& trace) {
  TW_TRY(steps, schedule::Trace::from_json(trace));
  TW_TRY(schedule, schedule::Schedule::make(module));
  TW_RETURN_IF_ERROR(schedule::replay(steps, schedule));
  return std::move(schedule);
}

Result<std::vector<Record>> KnownResults::open(bool fresh) {
  reuses_ = !fresh;
  if (fresh) TW_RETURN_IF_ERROR(database_->forget_session(key_));
  TW_TRY(session, database_->session(key_));
  if (session) {
    // A damaged state is ignored; the records remain.
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
    TW_TRY(before, database_->records(key_.workload, key_.target));
    for (const Record& record : before) last_earlier_ = std::max(last_earlier_, record.id);
    TW_RETURN_IF_ERROR(database_->save_session(key_, state()));
  }
  TW_TRY(stored, database_->session_records(key_));
  std::vector<Record> records = names_.of_entry(std::move(stored));
  std::erase_if(records, [](const Record& record) { return record.outcome == kDamaged; });  // measured again
  for (const Record& record : records) {
    by_trace_.emplace(record.trace, record);
    numbers_.insert(record.index);
  }
  return records;
}

std::string KnownResults::state() const {
  return nlohmann::json{{"earlier", last_earlier_}, {"relatives", relatives_}}.dump();
}

Result<std::vector<Record>> KnownResults::earlier() const {
  if (last_earlier_ == 0) return std::vector<Record>();
  TW_TRY(records, database_->records(key_.workload, key_.target));
  std::erase_if(records, [&](const Record& record) { return record.id > last_earlier_; });
  return names_.of_entry(std::move(records));
}

Result<std::vector<TuningRecord>> KnownResults::top_k(const Ref<Module>&, size_t count) {
  TW_TRY(records, earlier());
  std::erase_if(records, [](const Record& record) { return !record.is_ok(); });
  std::ranges::stable_sort(records, {}, &Record::median);
  std::vector<TuningRecord> best;
  for (const Record& record : records) {
    if (best.size() == count) break;
    auto trace = schedule::Trace::from_json(record.trace);
    if (trace.ok()) best.push_back({std::move(*trace), record.seconds});
  }
  for (const std::string& relative : relatives_) {
    auto trace = schedule::Trace::from_json(relative);
    if (trace.ok()) best.push_back({std::move(*trace), {}});
  }
  return best;
}

std::optional<Record> KnownResults::take(const std::string& trace) {
  auto found = by_trace_.extract(trace);
  return found.empty() ? std::nullopt : std::optional(std::move(found.mapped()));
}

Status KnownResults::read_others() {
  others_.emplace();
  if (!reuses_) return Ok{};
  TW_TRY(records, earlier());
  std::erase_if(records, [&](const Record& record) {
    return !record.is_ok() || record.host != host_ || record.versions != versions_;
  });
  if (std::ssize(records) > kMostReplayed) records.erase(records.begin(), records.end() - kMostReplayed);
  for (Record& record : records) {
    auto again = replayed(program_, record.trace);
    if (!again.ok()) continue;  // a record of a version with other primitives
    others_->insert_or_assign(module_hash(again->module(), ModuleEquality::kStructural), std::move(record));
  }
  return Ok{};
}

Result<const Record*> KnownResults::of_others(const Ref<Module>& program) {
  if (!others_) TW_RETURN_IF_ERROR(read_others());
  if (others_->empty()) return nullptr;
  auto found = others_->find(module_hash(program, ModuleEquality::kStructural));
  return found == others_->end() ? nullptr : &found->second;
}

int64_t KnownResults::number(int64_t index) {
  if (numbers_.contains(index)) index = *numbers_.rbegin() + 1;
  numbers_.insert(index);
  return index;
}

}  // namespace tilewright::search
