#include "search/earlier_records.h"

#include <algorithm>

namespace tilewright::search {

Result<std::vector<TuningRecord>> EarlierRecords::top_k(const Ref<Module>&, size_t count) {
  TW_TRY(records, database_->records(key_.workload, key_.target));
  std::erase_if(records, [&](const Record& record) { return record.id > last_ || !record.is_ok(); });
  std::stable_sort(records.begin(), records.end(),
                   [](const Record& a, const Record& b) { return a.median() < b.median(); });
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

}  // namespace tilewright::search
