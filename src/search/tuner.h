// Random search over a user's space of schedules: draw, build, measure, keep.
//
//   TW_TRY(tuner, Tuner::start(task, options));
//   while (!tuner->finished()) {
//     TW_RETURN_IF_ERROR(tuner->step(0.1));          // returns at the latest after about that many seconds
//     show(tuner->progress());
//     if (interrupted) tuner->cancel();
//   }
//   const TuneResult& result = tuner->result();
//
// Candidates are drawn in turn: every other one, once some results are there, is a neighbor of a good one, the others
// are any point of the space. A draw that the schedule refuses, or that gives a program seen before, costs an attempt
// but no trial.
//
// Given the same results, the same seed draws the same candidates in every run, however many threads work: candidate n
// depends on the results of the candidates up to n - kLag alone. So a session that was interrupted goes on where it
// stopped, and one that is finished measures nothing.
//
// The program as it was written is run first, in the measuring helper; what it computes is what candidates are compared
// with. All candidates are built as the user will get them; at the end the best are timed against one another.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "search/candidate_source.h"
#include "search/database/database.h"
#include "search/measure/pipeline.h"
#include "target/target.h"

namespace tilewright::search {

struct TuneTask {
  Ref<Module> module;  ///< the program as the user wrote it
  std::string function;
  std::string name, script;  ///< for the database
  Hash128 space;             ///< what tells this space from another one
  std::shared_ptr<CandidateSource> source;
  /// Makes inputs and tolerances; called when something has to be measured.
  std::function<Result<std::shared_ptr<Arguments>>()> arguments;
  /// Compares what the program as it was written has computed with what it should; says how much of it was compared
  /// ("full", "sampled", "unchecked"), for the records. An error ends the search: that program is wrong.
  std::function<Result<std::string>(const Arguments&)> judge_reference;
};

struct TunerOptions {
  int64_t trials = 64;
  double seconds = 0;  ///< wall time for the whole search; 0: no limit
  uint64_t seed = 0;
  bool fresh = false;  ///< forget what an earlier session of the same seed measured
  Target target;       ///< complete; num_cores is the number of threads
  PipelineOptions pipeline;
  std::string versions = "{}";  ///< JSON for the records
};

struct TuneProgress {
  int64_t trials = 0, total = 0;  ///< measured or failed, of earlier sessions too
  int64_t earlier = 0;            ///< of them, from the database
  double best_seconds = 0;        ///< infinity when nothing is correct yet
  int64_t best_index = -1;
  double elapsed = 0;  ///< seconds since start()
  std::map<std::string, int64_t> outcomes;
  /// By code of the failure: how often, and the first message.
  std::map<std::string, std::pair<int64_t, std::string>> failures;
  int64_t attempts = 0, refused = 0, duplicates = 0;
  /// Of the refused draws alone, likewise.
  std::map<std::string, std::pair<int64_t, std::string>> refusals;
  double reference_seconds = 0;  ///< one call of the program as it was written; 0: not run
  double median_build_seconds = 0;
  std::string phase;  ///< "reference", "search", "finals", "done"
};

struct TuneResult {
  std::string stop_reason;     ///< "trials", "seconds", "exhausted", "canceled"
  std::optional<Record> best;  ///< of all sessions of this program and target
  /// The code of the best, if the finals were held in this session: it was checked and timed as it is delivered.
  std::shared_ptr<const std::string> object;
};

/// How far the results that a candidate is drawn from lie back: as many may be built or measured at a time.
inline constexpr int64_t kLag = 8;
/// Candidates before the first one that is a neighbor of another.
inline constexpr int64_t kRandomStart = 16;

class Tuner {
 public:
  static Result<std::unique_ptr<Tuner>> start(TuneTask task, TunerOptions options, std::shared_ptr<Database> database);
  ~Tuner();

  /// Works for at most about `seconds`. An error ends the search: the database or the helpers failed.
  Status step(double seconds);
  bool finished() const;
  /// Stops measuring at once; what was measured is stored.
  void cancel();
  /// Ends the helper processes; progress and result stay.
  void close();
  TuneProgress progress() const;
  const TuneResult& result() const;

 private:
  struct Impl;
  explicit Tuner(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tilewright::search
