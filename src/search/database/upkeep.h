// What is done to databases from time to time.
#pragma once

#include "search/database/database.h"

namespace tilewright::search {

struct MergeCount {
  int64_t workloads = 0;
  int64_t records = 0;
};

/// Adds what `from` has and `into` has not, and counts that. Records of the same measurement are one; sessions stay
/// where they are.
Result<MergeCount> merge(Database& into, Database& from);

/// Keeps of each program and target the best `keep` records, and forgets the others, failures among them; how many.
/// Damaged ones stay.
Result<int64_t> prune(Database& database, size_t keep);

/// Forgets the damaged records; how many.
Result<int64_t> forget_damaged(Database& database);

/// What makes two records the same measurement.
std::string identity(const Record& record);

}  // namespace tilewright::search
