#include "search/database/upkeep.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>

#include "search/database/damage.h"

namespace tilewright::search {

std::string identity(const Record& record) {
  // Whoever writes JSON puts blanks where he likes.
  const auto steps = nlohmann::ordered_json::parse(record.trace, nullptr, false);
  const std::string trace = steps.is_discarded() ? record.trace : steps.dump();
  return fmt::format("{}\n{}\n{}\n{}\n{}", record.target, trace, fmt::join(record.seconds, ","), record.outcome,
                     record.index);
}

Result<MergeCount> merge(Database& into, Database& from) {
  TW_TRY(workloads, from.workloads());
  MergeCount count;
  for (const Workload& workload : workloads) {
    TW_TRY(known, into.workload(workload.hash));
    if (!known) {
      TW_RETURN_IF_ERROR(into.commit_workload(workload.hash, workload.name, workload.script, workload.sizes));
      ++count.workloads;
    }
    TW_TRY(present, into.records(workload.hash, ""));
    std::set<std::string> stored;
    for (const Record& record : present) stored.insert(identity(record));
    TW_TRY(records, from.records(workload.hash, ""));
    for (const Record& record : records) {
      if (record.outcome == kDamaged || !stored.insert(identity(record)).second) continue;
      TW_TRY(id, into.commit(record));
      (void)id;
      ++count.records;
    }
  }
  return count;
}

Result<int64_t> prune(Database& database, size_t keep) {
  TW_TRY(workloads, database.workloads());
  std::vector<int64_t> ids;
  for (const Workload& workload : workloads) {
    TW_TRY(all, database.records(workload.hash, ""));
    std::set<std::string> targets;
    for (const Record& record : all) targets.insert(record.target);
    std::set<int64_t> kept;
    for (const std::string& target : targets) {
      TW_TRY(best, database.top_k(workload.hash, target, keep));
      for (const Record& record : best) {
        if (record.target == target) kept.insert(record.id);
      }
    }
    for (const Record& record : all) {
      if (record.outcome != kDamaged && !kept.contains(record.id)) ids.push_back(record.id);
    }
  }
  TW_RETURN_IF_ERROR(database.erase(ids));
  return static_cast<int64_t>(ids.size());
}

Result<int64_t> forget_damaged(Database& database) {
  TW_TRY(workloads, database.workloads());
  std::vector<int64_t> ids;
  for (const Workload& workload : workloads) {
    TW_TRY(all, database.records(workload.hash, ""));
    for (const Record& record : all) {
      if (record.outcome == kDamaged) ids.push_back(record.id);
    }
  }
  TW_RETURN_IF_ERROR(database.erase(ids));
  return static_cast<int64_t>(ids.size());
}

}  // namespace tilewright::search
