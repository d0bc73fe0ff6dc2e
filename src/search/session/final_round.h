// The end of a session: its best candidates are built as they are delivered, checked, and timed against one another
// with what everybody has without this search (finals.h says who wins).
//
//   begin()   the fastest ones, the first candidate, the best of before; what has no object code is built
//   take()    of those that are built, until none is missing; then their turns begin
//   end()     of the times: the winner is committed
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "search/database/database.h"
#include "search/session/entry_names.h"
#include "search/session/finals.h"
#include "target/target.h"

namespace tilewright::search {

/// A candidate that was measured and is right.
struct Finalist {
  int64_t record = 0;  ///< in the database
  double seconds = 0;
  std::string trace;
  /// Object code as it is delivered, and checked; null for earlier sessions before the finals.
  std::shared_ptr<const std::string> object;
};

/// Inputs of the finals of a session.
struct FinalRoundTask {
  Ref<Module> module;
  EntryNames names;
  std::string function;
  Target target;
  std::string heuristic;  ///< trace (JSON) of the heuristic schedule; empty: there is none
  Record written;         ///< record of the unscheduled program without times; it has no number, as it is no trial
  std::shared_ptr<const std::string> written_object;
  double written_seconds = 0;  ///< seconds of the first call of the unscheduled program
  double best_seconds = 0;     ///< seconds of the fastest candidate
  double budget_seconds = 0;
  int64_t last_record = 0;  ///< the latest that could take part
};

class FinalRound {
 public:
  FinalRound(FinalRoundTask task, std::shared_ptr<Database> database, Measurer& pipeline,
             std::function<void(const Diagnostic&)> note_failure)
      : task_(std::move(task)),
        database_(std::move(database)),
        pipeline_(pipeline),
        note_failure_(std::move(note_failure)) {}

  /// Starts the round with the fastest candidates, the fastest first. `first`: the first candidate of the session,
  /// which is timed as the baseline; null if its results were wrong. Returns whether there is anything to build or
  /// time.
  Result<bool> begin(std::vector<Finalist> fastest, const Finalist* first);
  static bool is_finalist(uint64_t id);
  bool is_building() const { return unbuilt_ > 0; }
  /// Handles a result of the final round. Returns as begin().
  Result<bool> take(const Measured& measured);
  Status end(const FinalsResult& result);

  /// Whether some candidate was built as it is delivered, and is right.
  bool has_winner() const { return !finalists_.empty(); }
  std::shared_ptr<const std::string> object() const { return object_; }
  const std::vector<FinalTime>& times() const { return times_; }
  int64_t last_record() const { return task_.last_record; }

 private:
  void add(Finalist added);
  void build(uint64_t id, const Ref<Module>& module);
  void build_heuristic();
  Result<bool> begin_turns();
  bool written_may_win() const;
  void keep_times(const FinalsResult& result, size_t winner, int64_t winner_record);

  FinalRoundTask task_;
  std::shared_ptr<Database> database_;
  Measurer& pipeline_;
  std::function<void(const Diagnostic&)> note_failure_;
  std::vector<Finalist> finalists_;
  std::vector<int64_t> standing_;                          ///< records of what is known already
  std::shared_ptr<const std::string> heuristic_object_;    ///< once built and checked
  std::optional<int64_t> heuristic_record_;                ///< record of the candidate that is the heuristic schedule
  std::optional<size_t> heuristic_place_, written_place_;  ///< among the kernels
  size_t unbuilt_ = 0;                                     ///< number of finalists that are being built and checked
  std::shared_ptr<const std::string> object_;              ///< object code of the winner
  std::vector<FinalTime> times_;
};

}  // namespace tilewright::search
