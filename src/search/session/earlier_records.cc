#include "search/session/earlier_records.h"

#include <algorithm>

#include "search/module_equality.h"

namespace tilewright::search {
namespace {

/// Each is a schedule that is made again, in about a millisecond.
constexpr ptrdiff_t kMostReplayed = 512;

}  // namespace

Result<std::vector<TuningRecord>> EarlierRecords::top_k(const Ref<Module>&, size_t count) {
  TW_TRY(records, database_->records(key_.workload, key_.target));
  std::erase_if(records, [&](const Record& record) { return record.id > last_ || !record.is_ok(); });
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

Result<schedule::Schedule> replayed(const Ref<Module>& module, const std::string& trace) {
  TW_TRY(steps, schedule::Trace::from_json(trace));
  TW_TRY(schedule, schedule::Schedule::make(module));
  TW_RETURN_IF_ERROR(schedule::replay(steps, schedule));
  return std::move(schedule);
}

Status EarlierPrograms::read() {
  known_.emplace();
  if (last_ == 0) return Ok{};
  TW_TRY(records, database_->records(key_.workload, key_.target));
  std::erase_if(records, [&](const Record& record) {
    return record.id > last_ || !record.is_ok() || record.host != host_ || record.versions != versions_;
  });
  if (std::ssize(records) > kMostReplayed) records.erase(records.begin(), records.end() - kMostReplayed);
  for (Record& record : records) {
    auto again = replayed(workload_, record.trace);
    if (!again.ok()) continue;  // of a version that could do other things
    known_->insert_or_assign(module_hash(again->module(), ModuleEquality::kStructural), std::move(record));
  }
  return Ok{};
}

Result<const Record*> EarlierPrograms::find(const Ref<Module>& program) {
  if (!known_) TW_RETURN_IF_ERROR(read());
  if (known_->empty()) return nullptr;
  auto found = known_->find(module_hash(program, ModuleEquality::kStructural));
  return found == known_->end() ? nullptr : &found->second;
}

}  // namespace tilewright::search
