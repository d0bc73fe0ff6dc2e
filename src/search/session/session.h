// One search: a strategy says which candidates, the pipeline builds and measures them, a cost model learns, the
// database keeps what came out.
//
//   TW_TRY(session, TuningSession::start(task, options, database));
//   while (!session->finished()) {
//     TW_RETURN_IF_ERROR(session->step(0.1));          // returns at the latest after about that many seconds
//     show(session->progress());
//     if (interrupted) session->cancel();
//   }
//   const TuneResult& result = session->result();
//
// Candidates come in batches. A strategy that runs ahead samples batch n while batch n - 1 is being built and
// measured, and knows the results of batches up to n - 2, always exactly these, in the order of their candidates. So
// the same seed and the same results give the same candidates in every run, however many threads work: a session that
// was interrupted continues where it stopped, and one that is finished measures nothing. What the cost model and the
// strategy know from earlier sessions is noted when a session begins, so that its later parts begin with the same.
//
// The program as it was written is run first, in the measuring helper; what it computes is what candidates are compared
// with. All candidates are built as the user will get them; at the end the best are timed against one another.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "search/database/database.h"
#include "search/measure/pipeline.h"
#include "search/session/entry_names.h"
#include "search/session/final_round.h"
#include "search/session/known_results.h"
#include "search/session/task_progress.h"
#include "search/strategy/search_strategy.h"
#include "target/target.h"

namespace tilewright::search {

struct TuneTask {
  Ref<Module> module;  ///< the program as the user wrote it
  std::string function;
  std::string name, script;  ///< for the database
  Hash128 workload{};        ///< hash of the program, with the sizes of its calls if it has symbolic ones
  std::string sizes{};       ///< the sizes that the program leaves open, see Workload
  Hash128 space;             ///< identifies the space
  /// The context, with an initialized space generator and strategy.
  TuneContext context;
  std::shared_ptr<CostModel> cost_model;  ///< null: none
  /// Traces (JSON) of the same operator at other shapes, which a new session begins with.
  std::vector<std::string> relatives{};
  int64_t reduction_length = 1;  ///< terms of the longest sum, which roundings grow with
  /// Makes inputs, and tolerances for sums of that length; called when something has to be measured.
  std::function<Result<std::shared_ptr<Arguments>>(int64_t reduction_length)> arguments;
  /// Compares what the program as it was written has computed with what it should; says how much of it was compared
  /// ("full", "sampled", "unchecked"), for the records. An error ends the search: that program is wrong.
  std::function<Result<std::string>(Arguments&)> judge_reference;
  /// Makes the measurer of other machines, instead of the helper processes of this one. Their times are compared by way
  /// of an incumbent.
  std::function<Result<std::unique_ptr<Measurer>>(std::shared_ptr<Arguments>)> measurer{};
  /// The trace (JSON) of the heuristic schedule, which the finals time as a baseline; empty: there is none.
  std::string heuristic{};
  /// The program of the database's entry, where its blocks have other names.
  std::optional<Ref<Module>> entry{};
  using Members =
      Fields<&TuneTask::module, &TuneTask::function, &TuneTask::name, &TuneTask::script, &TuneTask::workload,
             &TuneTask::sizes, &TuneTask::space, &TuneTask::context, &TuneTask::relatives, &TuneTask::reduction_length,
             &TuneTask::arguments, &TuneTask::judge_reference, &TuneTask::heuristic, &TuneTask::cost_model,
             &TuneTask::measurer, &TuneTask::entry>;
  static constexpr size_t kRequired = 13;
};

struct SessionOptions {
  int64_t trials = 64;
  int64_t batch = 8;  ///< candidates that are sampled at a time
  StopRules stops;
  double seconds = 0;  ///< wall time for the whole search, the finals included; 0: no limit
  uint64_t seed = 0;
  bool fresh = false;  ///< forget what an earlier session of the same seed measured
  Target target;       ///< complete; num_cores is the number of threads
  PipelineOptions pipeline;
  std::string host;      ///< JSON for the records
  std::string versions;  ///< JSON for the records
  using Members =
      Fields<&SessionOptions::target, &SessionOptions::pipeline, &SessionOptions::trials, &SessionOptions::stops,
             &SessionOptions::seconds, &SessionOptions::seed, &SessionOptions::fresh, &SessionOptions::host,
             &SessionOptions::versions, &SessionOptions::batch>;
  static constexpr size_t kRequired = 2;
};

/// Returns the seconds to reserve for the finals in a session that may take `limit` seconds.
double seconds_for_finals(double limit);

struct TuneProgress {
  int64_t trials = 0, total = 0;  ///< measured or failed, of earlier sessions too
  int64_t earlier = 0;            ///< trials from the database
  double best_seconds = 0;        ///< infinity when nothing is correct yet
  int64_t best_index = -1;
  double elapsed = 0;  ///< seconds since start()
  std::map<std::string, int64_t> outcomes;
  /// Number of failures and the first message, by code.
  std::map<std::string, std::pair<int64_t, std::string>> failures;
  int64_t attempts = 0, refused = 0, duplicates = 0;
  /// Reasons of the refused samples alone.
  std::map<std::string, std::pair<int64_t, std::string>> refusals;
  double reference_seconds = 0;  ///< one call of the program as it was written; 0: not run
  double median_build_seconds = 0;
  /// Where the time of this thread went: what it did itself ("inputs", "sampling", "lowering", "learning", "reporting",
  /// "judging", "recording"), and what the helpers did while it waited for them ("starting", "reference", "building",
  /// "checking", "measuring", "finals", "nothing").
  std::map<std::string, double> seconds;
  /// Seconds that helpers spent on an activity, whether this thread waited or not: "building" (sum over processes),
  /// "checking", "measuring".
  std::map<std::string, double> beside;
  std::string phase;  ///< "reference", "search", "finals", "done"
  using Members =
      Fields<&TuneProgress::trials, &TuneProgress::total, &TuneProgress::earlier, &TuneProgress::best_seconds,
             &TuneProgress::best_index, &TuneProgress::elapsed, &TuneProgress::outcomes, &TuneProgress::failures,
             &TuneProgress::refusals, &TuneProgress::attempts, &TuneProgress::refused, &TuneProgress::duplicates,
             &TuneProgress::reference_seconds, &TuneProgress::median_build_seconds, &TuneProgress::seconds,
             &TuneProgress::beside, &TuneProgress::phase>;
};

struct TuneResult {
  std::string stop_reason;     ///< "trials", "seconds", "patience", "target", "roofline", "exhausted", "canceled"
  std::optional<Record> best;  ///< best record of all sessions of this program and target
  /// The code of the best, if the finals were held in this session: it was checked and timed as it is delivered.
  std::shared_ptr<const std::string> object;
  /// If these finals timed kernels: all of them, the winner first.
  std::vector<FinalTime> finals;
  int64_t last_record = 0;  ///< id of the last record that could take part in them
};

class TuningSession {
 public:
  static Result<std::unique_ptr<TuningSession>> start(TuneTask task, SessionOptions options,
                                                      std::shared_ptr<Database> database);

  /// Works for at most about `seconds`. An error ends the search: the database or the helpers failed.
  Status step(double seconds);
  bool finished() const { return status_.phase == "done"; }
  /// Stops measuring at once; what was measured is stored.
  void cancel();
  /// Ends the helper processes; progress and result stay.
  void close() { pipeline_.reset(); }
  TuneProgress progress() const;
  const TuneResult& result() const { return outcome_; }

 private:
  struct Trial {
    int64_t index = 0;
    std::string trace, decisions;
    size_t batch = 0, place = 0;  ///< position of its result
  };

  struct Lowered {
    Ref<Module> from;  ///< kept alive, so that its address stays unique
    Result<Ref<Module>> made;
  };

  /// Candidates that were sampled together.
  struct Batch {
    MeasureCandidates candidates;
    RunnerResults results;
    size_t missing = 0;
  };

  TuningSession(TuneTask task, SessionOptions options, std::shared_ptr<Database> database);
  Status open();
  Status start_measuring();
  Status submit_incumbent();
  Status resume();
  Result<bool> had_finals();
  template <class Poll>
  auto while_waiting(Poll poll);
  Status begin_strategy();
  Status learn_from_earlier();
  Status refill();
  double share_needed() const;
  bool may_sample() const;
  Status sample_batch();
  Status report(const Batch& batch);
  const Result<Ref<Module>>& lower_once(const Ref<Module>& module);
  Status begin_trial(size_t place);
  Status check_time_limit();
  Status handle(const Measured& measured);
  Status handle_reference(const Measured& measured);
  void add_finalist(int64_t index, Finalist candidate, bool is_best);
  void drop_slow_finalists();
  Status settle(const std::string& reason);
  Status begin_finals();
  Status end_finals(const FinalsResult& result);
  /// Fills all columns. Finals replace the times, and the host, of the unscheduled program.
  Record record_of(const Trial& trial, const Measured& measured) const;
  Status finish_search();
  void note_failure(const Diagnostic& error);
  /// Until the finals have to begin; infinity without a limit.
  double seconds_left() const;

  TuneTask task_;
  SessionOptions options_;
  std::shared_ptr<Database> database_;
  EntryNames names_;
  std::string target_;
  TaskProgress task_progress_;
  std::shared_ptr<KnownResults> known_;  // which strategies ask, too
  std::shared_ptr<Arguments> arguments_;
  std::unique_ptr<Measurer> pipeline_;
  std::chrono::steady_clock::time_point started_;

  int64_t next_index_ = 0;
  std::deque<Batch> batches_;                   // batches whose results the strategy has not seen
  size_t reported_ = 0;                         // batches before those
  std::map<const NodeBase*, Lowered> lowered_;  // modules of the batch that is being sampled
  std::map<uint64_t, Trial> in_flight_;
  bool began_ = false;                                   // the strategy, which has to be notified of the end
  std::map<int64_t, Finalist> finalists_;                // by index; slow ones are dropped
  std::optional<std::string> fastest_host_;              // that measured the best of earlier parts, if there is one
  std::shared_ptr<const std::string> reference_object_;  // object code of the unscheduled program
  std::string program_check_ = "unchecked";
  int64_t last_record_ = 0;  // the latest that this process knows of
  std::vector<double> build_seconds_;
  bool dropped_ = false;  // candidates in flight, since the time was over
  std::optional<FinalRound> finals_;
  TuneProgress status_;
  TuneResult outcome_;
};

}  // namespace tilewright::search
