// What can be said of any database by means of the questions that its subclass answers.
#include "search/database/database.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "search/database/damage.h"

namespace tilewright::search {

double Record::median() const {
  if (seconds.empty()) return std::numeric_limits<double>::infinity();
  std::vector<double> sorted = seconds;
  std::sort(sorted.begin(), sorted.end());
  const size_t middle = sorted.size() / 2;
  return sorted.size() % 2 ? sorted[middle] : 0.5 * (sorted[middle - 1] + sorted[middle]);
}

void Database::examine(Record& record) {
  mark_damage(record);
  if (record.outcome != kDamaged) return;
  const std::lock_guard lock(remarks_mutex_);
  if (!damaged_.insert(record.id).second) return;
  remarks_.push_back(fmt::format(
      "{}: record {} of program {} is damaged ({}): it is left out, and kept as it is\n  hint: take a copy of "
      "the database from before, or forget such records: tilewright db {} --forget-damaged",
      path(), record.id, record.workload.hex().substr(0, 12), record.error, path()));
}

std::vector<std::string> Database::take_remarks() {
  const std::lock_guard lock(remarks_mutex_);
  return std::exchange(remarks_, {});
}

Result<std::optional<Workload>> Database::workload(const Hash128& hash) {
  TW_TRY(all, workloads());
  for (Workload& each : all) {
    if (each.hash == hash) return std::optional<Workload>(std::move(each));
  }
  return std::optional<Workload>();
}

/// What came after the finals and beats their winner, the winner, then all others by time: what is kept when records
/// are pruned is what stands first in a list.
Result<std::vector<Record>> Database::top_k(const Hash128& workload, const std::string& target, size_t count) {
  TW_TRY(found, records(workload, target));
  std::erase_if(found, [](const Record& record) { return !record.is_ok(); });
  std::map<std::string, std::optional<Finals>> known;
  std::map<std::string, double> best;  // the winners' medians
  for (Record& record : found) {
    auto place = known.find(record.target);
    if (place == known.end()) {
      TW_TRY(finals, this->finals(workload, record.target));
      place = known.emplace(record.target, std::move(finals)).first;
    }
    if (!place->second || place->second->winner != record.id) continue;
    record.seconds = place->second->seconds;
    best[record.target] = record.median();
  }
  const auto lost = [&](const Record& record) {
    const std::optional<Finals>& finals = known[record.target];
    if (!finals || record.id == finals->winner) return false;
    const auto winner = best.find(record.target);
    return record.id <= finals->last_record || (winner != best.end() && record.median() >= winner->second);
  };
  std::stable_sort(found.begin(), found.end(), [&](const Record& a, const Record& b) {
    return lost(a) != lost(b) ? lost(b) : a.median() < b.median();
  });
  if (found.size() > count) found.erase(found.begin() + static_cast<ptrdiff_t>(count), found.end());
  return found;
}

Result<std::optional<Record>> Database::best(const Hash128& workload, const std::string& target) {
  TW_TRY(records, top_k(workload, target, 1));
  return records.empty() ? std::optional<Record>() : std::optional<Record>(std::move(records.front()));
}

Result<std::map<std::string, int64_t>> Database::count_outcomes(const Hash128& workload, const std::string& target) {
  TW_TRY(all, records(workload, target));
  std::map<std::string, int64_t> counts;
  for (const Record& record : all) ++counts[record.outcome];
  return counts;
}

Result<int64_t> Database::size() {
  TW_TRY(all, workloads());
  int64_t count = 0;
  for (const Workload& workload : all) {
    TW_TRY(found, records(workload.hash, ""));
    count += static_cast<int64_t>(found.size());
  }
  return count;
}

}  // namespace tilewright::search
