#include "search/tuner.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <deque>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "ir/structural.h"
#include "lower/pipeline.h"
#include "search/cost_model/forgiving.h"
#include "search/database/damage.h"
#include "search/earlier_records.h"
#include "search/finals.h"
#include "search/measure/away_from_measuring.h"
#include "search/measure/candidate.h"
#include "search/record_parts.h"
#include "search/space/space_generator.h"
#include "search/spending.h"

namespace tilewright::search {
namespace {

using Clock = std::chrono::steady_clock;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr size_t kFinalists = 4;
/// In the order of Activity.
constexpr std::array<const char*, kNumActivities> kActivityNames = {"nothing",  "starting",  "building", "reference",
                                                                    "checking", "measuring", "finals"};
/// The program as it was written takes part in the finals where its first call, which finds nothing in the caches, took
/// at most so many times as long as the best candidate, or so little time.
constexpr double kFirstCallFactor = 4, kShortFirstCall = 2e-3;
/// How many times as long as the program as it was written the best candidate has to take for that to be delivered.
constexpr double kClearlySlower = 1.02;
/// Likewise what came first, where nothing but times of the search are known.
constexpr double kFarSlower = 1.25;
/// So near to what the machine allows nothing more is to be gained.
constexpr double kNearBound = 1.03;
/// What is faster than that by so much is no bound: terms that are left out count in it, or data that lie nearer.
constexpr double kBeyondBound = 0.9;
/// Batches without a candidate that a strategy may give before it counts as out of candidates.
constexpr int kMostEmpty = 100;
/// Seconds that the finals may take; of a search of few seconds, this share of them.
constexpr double kFinalsSeconds = 5, kFinalsShare = 0.1;
/// The finals of a search whose time is over: enough for some rounds of short kernels.
constexpr double kLeastFinalsSeconds = 0.2;
/// Records of earlier sessions that a cost model learns from at most.
constexpr size_t kRecordsToLearn = 512;
/// Of the time of the finals, how much one call of the program as it was written may take to be timed in them.
constexpr double kBaselineCallShare = 0.1;
/// Numbers that no candidate has.
constexpr uint64_t kReferenceId = UINT64_MAX, kHeuristicId = UINT64_MAX - 1, kFirstFinalistId = uint64_t{1} << 63;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

void note(Reasons& reasons, const Diagnostic& error) {
  auto& [count, message] = reasons[error.code.empty() ? "unknown" : error.code];
  if (count++ == 0) message = error.message;
}

}  // namespace

struct Tuner::Impl {
  struct Trial {
    int64_t index = 0;
    std::string trace, decisions;
    size_t batch = 0, place = 0;  ///< where its result belongs
  };

  struct Lowered {
    Ref<Module> from;  ///< kept, so that nothing else comes to lie in its place
    Result<Ref<Module>> made;
  };

  /// Candidates that were drawn together.
  struct Batch {
    MeasureCandidates candidates;
    RunnerResults results;
    size_t missing = 0;
  };

  /// A candidate that was measured and is right.
  struct Good {
    int64_t record = 0;  ///< in the database
    double seconds = 0;
    std::string trace;
    /// As it is delivered, and checked; of earlier sessions none before the finals.
    std::shared_ptr<const std::string> object;
  };

  TuneTask task;
  TunerOptions options;
  std::shared_ptr<Database> database;
  std::shared_ptr<Arguments> arguments;
  std::unique_ptr<MeasurePipeline> pipeline;
  Hash128 workload;
  std::string target;
  Clock::time_point started = Clock::now();

  int64_t next_index = 0;
  int64_t last_earlier = 0;  // the latest record that other sessions had written when this one began
  std::map<std::string, Record> measured_before;  // by trace: another version may draw in another order
  std::unique_ptr<EarlierPrograms> earlier_programs;
  std::set<int64_t> taken;                     // numbers of candidates that records of the session have
  std::deque<Batch> batches;                   // that the strategy has not been told of
  size_t told = 0;                             // batches before those
  std::map<const NodeBase*, Lowered> lowered;  // of the batch that is being drawn
  std::map<uint64_t, Trial> in_flight;
  int64_t trials_at_best = 0;
  bool began = false;            // the strategy, which has to be told of the end
  std::map<int64_t, Good> good;  // by index
  std::vector<Good> finalists;
  std::shared_ptr<const std::string> heuristic_object;   // once built and checked
  std::optional<int64_t> heuristic_record;               // of the candidate that is the heuristic schedule
  std::optional<size_t> heuristic_place, written_place;  // among the kernels of the finals
  int64_t first_record = 0;                              ///< of the candidate that came first, if it is right
  int64_t winner_before = 0;                             ///< of earlier finals, likewise
  size_t unbuilt_finalists = 0;                          // that are being built and checked
  std::shared_ptr<const std::string> reference_object;   // of the program as it was written
  std::string program_check = "unchecked";
  int64_t last_record = 0;  // the latest that this process knows of
  std::vector<double> build_seconds;
  bool out_of_candidates = false;
  int empty_batches = 0;  // one after the other
  bool dropped = false;   // what was under way when the time was over
  TuneProgress status;
  TuneResult outcome;

  Status open();
  Status resume();
  Result<bool> had_finals();
  std::vector<Measured> wait_for(std::chrono::milliseconds most);
  std::optional<FinalsResult> wait_for_finals(std::chrono::milliseconds most);
  void note_waiting(const Activities& before);
  Status begin_strategy();
  Status learn_from_earlier();
  Status submit_reference();
  Status refill();
  bool may_draw() const;
  Status draw_batch();
  Status tell(const Batch& batch);
  const Result<Ref<Module>>& lower_once(const Ref<Module>& module);
  Status begin_trial(size_t place);
  void look_whether_to_stop();
  Status look_at_the_clock();
  Status take(const Measured& measured);
  Status take_reference(const Measured& measured);
  Status note_good(int64_t index, Good candidate);
  void forget_slow();
  Status settle(const std::string& reason);
  Status begin_finals();
  void build_to_check(uint64_t id, const Ref<Module>& module);
  void build_heuristic();
  void keep_times(const FinalsResult& result, size_t winner, int64_t winner_record);
  Status take_finalist(const Measured& measured);
  Status begin_turns();
  Status end_finals(const FinalsResult& result);
  Status deliver(const FinalsResult& result);
  bool may_win_as_written() const;
  Result<int64_t> commit_as_written(const std::vector<double>& seconds);
  Record record_of(const std::string& trace, const std::string& decisions, double largest) const;
  Status finish_search();
  void note_failure(const Diagnostic& error);
  std::string state_json() const {
    return nlohmann::json{{"earlier", last_earlier}, {"relatives", task.relatives}}.dump();
  }
  /// Until the finals have to begin; infinity without a limit.
  double seconds_left() const {
    if (options.seconds <= 0) return kInfinity;
    return options.seconds - std::min(kFinalsSeconds, kFinalsShare * options.seconds) - seconds_since(started);
  }
  SessionKey key() const { return {workload, target, task.space, options.seed}; }
  bool is_used_up() const { return status.trials + static_cast<int64_t>(in_flight.size()) >= options.trials; }
  bool wants_more() const { return outcome.stop_reason.empty() && !is_used_up() && !out_of_candidates; }
};

void Tuner::Impl::note_failure(const Diagnostic& error) { note(status.failures, error); }

Status Tuner::Impl::open() {
  workload = task.workload;
  target = options.target.str();
  status.total = options.trials;
  status.best_seconds = kInfinity;
  status.phase = "reference";
  TW_RETURN_IF_ERROR(database->commit_workload(workload, task.name, task.script, task.sizes));
  if (options.fresh) TW_RETURN_IF_ERROR(database->forget_session(key()));
  TW_RETURN_IF_ERROR(resume());
  TW_TRY(compared, had_finals());
  look_whether_to_stop();
  if (!outcome.stop_reason.empty() && compared) return settle(outcome.stop_reason);
  if (status.trials >= options.trials && compared) return settle("trials");
  TW_RETURN_IF_ERROR(begin_strategy());
  {
    const Spending spending(status.seconds, "inputs");
    TW_TRY(made, task.arguments(task.reduction_length));
    arguments = made;
  }
  if (status.best_seconds < kInfinity) options.pipeline.race.incumbent = status.best_seconds;
  auto started_pipeline = MeasurePipeline::start(arguments, options.pipeline);
  if (!started_pipeline.ok()) return std::move(started_pipeline.error());
  pipeline = std::move(*started_pipeline);
  return submit_reference();
}

Status Tuner::Impl::resume() {
  TW_TRY(session, database->session(key()));
  if (session) {
    // A state that was harmed says nothing; the records do.
    const auto state = nlohmann::json::parse(session->state, nullptr, false);
    if (state.is_object() && state.contains("earlier") && state["earlier"].is_number_integer()) {
      last_earlier = state["earlier"].get<int64_t>();
    }
    if (state.is_object() && state.contains("relatives") && state["relatives"].is_array()) {
      task.relatives.clear();
      for (const auto& trace : state["relatives"]) {
        if (trace.is_string()) task.relatives.push_back(trace.get<std::string>());
      }
    }
  } else {
    TW_TRY(earlier, database->records(workload, target));
    for (const Record& record : earlier) last_earlier = std::max(last_earlier, record.id);
    TW_RETURN_IF_ERROR(database->save_session(key(), state_json()));
  }
  // "fresh" measures all of it again.
  const int64_t reused = options.fresh ? 0 : last_earlier;
  earlier_programs =
      std::make_unique<EarlierPrograms>(database, key(), task.module, reused, options.host, options.versions);
  TW_TRY(records, database->session_records(key()));
  for (const Record& record : records) {
    if (record.outcome == kDamaged) continue;  // measured again
    ++status.trials;
    ++status.outcomes[record.outcome];
    last_record = std::max(last_record, record.id);
    if (record.is_ok()) TW_RETURN_IF_ERROR(note_good(record.index, {record.id, record.median(), record.trace, {}}));
    measured_before.emplace(record.trace, record);
    taken.insert(record.index);
  }
  status.earlier = status.trials;
  return Ok{};
}

/// The best of what is known were timed against one another.
Result<bool> Tuner::Impl::had_finals() {
  if (good.empty()) return true;
  TW_TRY(finals, database->finals(workload, target));
  return finals && finals->last_record >= last_record;
}

Status Tuner::Impl::submit_reference() {
  TW_TRY(candidate, reference_candidate(kReferenceId, task.module, options.target, task.function));
  pipeline->submit(std::move(candidate));
  return Ok{};
}

Status Tuner::Impl::note_good(int64_t index, Good candidate) {
  if (candidate.seconds < status.best_seconds) {
    status.best_seconds = candidate.seconds;
    status.best_index = index;
    trials_at_best = status.trials;
  }
  good.emplace(index, std::move(candidate));
  forget_slow();
  return Ok{};
}

/// Of those that will not be in the finals, what they would need there.
void Tuner::Impl::forget_slow() {
  if (good.size() % 64 != 0) return;
  std::vector<double> times;
  for (const auto& [index, candidate] : good) times.push_back(candidate.seconds);
  std::nth_element(times.begin(), times.begin() + kFinalists, times.end());
  for (auto& [index, candidate] : good) {
    if (index > 0 && candidate.seconds > times[kFinalists]) candidate = {candidate.record, candidate.seconds, {}, {}};
  }
}

void Tuner::Impl::look_whether_to_stop() {
  if (!outcome.stop_reason.empty()) return;
  if (options.target_seconds > 0 && status.best_seconds <= options.target_seconds) {
    outcome.stop_reason = "target";
  } else if (status.best_seconds <= kNearBound * options.bound_seconds &&
             status.best_seconds >= kBeyondBound * options.bound_seconds) {
    outcome.stop_reason = "roofline";
  } else if (options.patience > 0 && status.trials - trials_at_best >= options.patience) {
    outcome.stop_reason = "patience";
  }
}

/// Where the time is over: what is under way is not waited for.
Status Tuner::Impl::look_at_the_clock() {
  if (outcome.stop_reason.empty() && seconds_left() <= 0) outcome.stop_reason = "seconds";
  if (outcome.stop_reason != "seconds" || dropped) return Ok{};
  if (status.phase == "finals" && seconds_since(started) <= options.seconds) return Ok{};
  dropped = true;
  pipeline->drop();
  if (status.phase != "reference" || !good.empty()) return Ok{};
  return resource_error(
      "tune/reference",
      fmt::format("'{}' as it was written, which results are compared with, did not come back before the "
                  "time of this search was over",
                  task.name),
      "does it end? If so, give the search more seconds, or tune it for smaller shapes");
}

void Tuner::Impl::note_waiting(const Activities& before) {
  const Activities after = pipeline->activities();
  for (size_t i = 0; i < kNumActivities; ++i) {
    const double seconds = after.seconds[i] - before.seconds[i];
    if (seconds > 0) status.seconds[kActivityNames[i]] += seconds;
  }
  status.beside = after.beside();
}

std::vector<Measured> Tuner::Impl::wait_for(std::chrono::milliseconds most) {
  const Activities before = pipeline->activities();
  std::vector<Measured> done = pipeline->poll(most);
  note_waiting(before);
  return done;
}

std::optional<FinalsResult> Tuner::Impl::wait_for_finals(std::chrono::milliseconds most) {
  const Activities before = pipeline->activities();
  std::optional<FinalsResult> result = pipeline->poll_finals(most);
  note_waiting(before);
  return result;
}

Status Tuner::Impl::begin_strategy() {
  const Spending spending(status.seconds, "drawing");
  TW_TRY(spaces, task.context.space_generator->generate_design_space(task.module));
  // Whole batches, of which the first may be a short one, so that a session with more trials goes on with the same
  // candidates.
  const int64_t trials = options.trials + 2 * options.batch;
  TuningPlan plan{trials, options.batch, std::move(spaces), nullptr, task.cost_model};
  plan.database = std::make_shared<EarlierRecords>(database, key(), last_earlier, task.relatives);
  // What was meant for registers and does not fit is never the fastest: no time is spent on building it.
  plan.refuse = [this](const MeasureCandidate& candidate) -> Status {
    const Result<Ref<Module>>& made = lower_once(candidate.schedule.module());
    if (made.ok() || made.error().code != "lower/not-in-registers") return Ok{};
    return made.error();
  };
  TW_RETURN_IF_ERROR(learn_from_earlier());
  TW_RETURN_IF_ERROR(task.context.search_strategy->pre_tuning(std::move(plan)));
  began = true;
  return Ok{};
}

Status Tuner::Impl::learn_from_earlier() {
  if (!task.cost_model || last_earlier == 0) return Ok{};
  TW_TRY(records, database->records(workload, target));
  std::erase_if(records, [&](const Record& record) { return record.id > last_earlier; });
  if (records.size() > kRecordsToLearn) records.erase(records.begin(), records.end() - kRecordsToLearn);
  Batch known;
  for (const Record& record : records) {
    auto again = replayed(task.module, record.trace);
    if (!again.ok()) continue;  // of a version that could do other things
    known.candidates.push_back({std::move(*again), {}});
    known.results.push_back(result_of(record));
  }
  if (known.candidates.empty()) return Ok{};
  const Spending spending(status.seconds, "learning");
  return task.cost_model->update(task.context, known.candidates, known.results);
}

const Result<Ref<Module>>& Tuner::Impl::lower_once(const Ref<Module>& module) {
  auto known = lowered.find(module.get());
  if (known == lowered.end()) {
    const Spending spending(status.seconds, "lowering");
    known = lowered.emplace(module.get(), Lowered{module, lower_candidate(module, options.target)}).first;
  }
  return known->second.made;
}

bool Tuner::Impl::may_draw() const {
  // Where the kernel has the whole machine, drawing waits until nothing is being measured.
  if (pipeline->cpu_plan().exclusive && !in_flight.empty()) return false;
  const size_t ahead = task.context.search_strategy->runs_ahead() ? 2 : 1;
  return batches.size() < ahead || batches.front().missing == 0;
}

Status Tuner::Impl::tell(const Batch& batch) {
  if (task.cost_model) {
    const Spending spending(status.seconds, "learning");
    TW_RETURN_IF_ERROR(task.cost_model->update(task.context, batch.candidates, batch.results));
  }
  const Spending spending(status.seconds, "drawing");
  return task.context.search_strategy->notify_runner_results(batch.candidates, batch.results);
}

Status Tuner::Impl::draw_batch() {
  const size_t ahead = task.context.search_strategy->runs_ahead() ? 2 : 1;
  if (batches.size() == ahead) {
    TW_RETURN_IF_ERROR(tell(batches.front()));
    batches.pop_front();
    ++told;
  }
  std::optional<Spending> spending(std::in_place, status.seconds, "drawing");
  TW_TRY(drawn, task.context.search_strategy->generate_measure_candidates());
  spending.reset();
  empty_batches = drawn && drawn->empty() ? empty_batches + 1 : 0;
  if (!drawn || empty_batches > kMostEmpty) {
    out_of_candidates = true;
    return Ok{};
  }
  Batch& batch = batches.emplace_back();
  batch.candidates = std::move(*drawn);
  batch.results.resize(batch.candidates.size());
  for (size_t place = 0; place < batch.candidates.size(); ++place) TW_RETURN_IF_ERROR(begin_trial(place));
  lowered.clear();
  return Ok{};
}

/// Of the batch that was drawn last.
Status Tuner::Impl::begin_trial(size_t place) {
  Batch& batch = batches.back();
  int64_t index = next_index++;
  const schedule::Schedule& schedule = batch.candidates[place].schedule;
  std::string trace = schedule.trace().as_json();
  if (auto before = measured_before.find(trace); before != measured_before.end()) {
    batch.results[place] = result_of(before->second);
    measured_before.erase(before);
    return Ok{};
  }
  TW_TRY(earlier, earlier_programs->find(schedule.module()));
  if (earlier) {
    // No trial: it takes part in the finals as what it is, a record of another session.
    batch.results[place] = result_of(*earlier);
    return note_good(index, {earlier->id, earlier->median(), earlier->trace, {}});
  }
  if (taken.contains(index)) index = *taken.rbegin() + 1;
  if (is_used_up()) {
    batch.results[place].error_msg = "not measured: all trials are used up";
    return Ok{};
  }
  taken.insert(index);
  const auto id = static_cast<uint64_t>(index);
  std::string decisions = decisions_json(trace);
  in_flight.emplace(id, Trial{index, std::move(trace), std::move(decisions), told + batches.size() - 1, place});
  ++batch.missing;
  const Result<Ref<Module>>& made = lower_once(schedule.module());
  if (made.ok()) {
    Candidate candidate = make_candidate(id, *made, options.target, task.function);
    candidate.is_baseline = index == 0;
    pipeline->submit(std::move(candidate));
    return Ok{};
  }
  // A candidate that cannot be lowered is a trial like any other that fails: it is recorded.
  Measured failed;
  failed.outcome = Outcome::kBuildError;
  failed.error = made.error();
  failed.id = id;
  return take(failed);
}

Status Tuner::Impl::refill() {
  // One batch at a time: a step must stay short, or the caller does not come to show progress.
  return wants_more() && may_draw() ? draw_batch() : Status(Ok{});
}

Status Tuner::Impl::take_reference(const Measured& measured) {
  if (measured.outcome == Outcome::kCanceled) return Ok{};
  if (measured.is_ok()) {
    status.reference_seconds = measured.median();
    reference_object = measured.object;
    if (task.judge_reference) {
      const Spending spending(status.seconds, "judging");
      TW_TRY(extent, task.judge_reference(*arguments));
      program_check = extent;
    }
    status.phase = "search";
    return Ok{};
  }
  return reference_failure(task.name, measured);
}

Status Tuner::Impl::take(const Measured& measured) {
  if (measured.id == kReferenceId) return take_reference(measured);
  if (measured.id >= kFirstFinalistId) return take_finalist(measured);
  auto it = in_flight.find(measured.id);
  TW_CHECK(it != in_flight.end(), "candidate " + std::to_string(measured.id) + " came back twice");
  Trial trial = std::move(it->second);
  in_flight.erase(it);
  if (measured.outcome == Outcome::kCanceled) return Ok{};
  Record record = record_of(trial.trace, trial.decisions, measured.check.largest);
  record.seconds = measured.seconds;
  record.outcome = std::string(outcome_name(measured.outcome));
  record.error = measured.error.message;
  record.index = trial.index;
  Batch& batch = batches[trial.batch - told];
  batch.results[trial.place] = result_of(record);
  --batch.missing;
  auto committed = [&] {
    const Spending spending(status.seconds, "recording");
    return database->commit(record, {task.space, state_json()});
  }();
  if (!committed.ok()) return std::move(committed.error());
  last_record = std::max(last_record, *committed);
  ++status.trials;
  ++status.outcomes[record.outcome];
  if (!measured.is_ok() && measured.outcome != Outcome::kSlowStopped) note_failure(measured.error);
  if (measured.build_seconds > 0) build_seconds.push_back(measured.build_seconds);
  if (record.is_ok()) {
    TW_RETURN_IF_ERROR(note_good(trial.index, {*committed, record.median(), record.trace, measured.object}));
  }
  look_whether_to_stop();
  return Ok{};
}

Record Tuner::Impl::record_of(const std::string& trace, const std::string& decisions, double largest) const {
  Record record;
  record.workload = workload;
  record.target = target;
  record.trace = trace;
  record.decisions = decisions;
  record.seed = options.seed;
  record.host = options.host;
  record.versions = options.versions;
  record.verification = fmt::format(R"({{"tolerance": {{{}}}, "largest_share_of_allowed": {}, "program": {}}})",
                                    tolerances_json(*arguments),
                                    std::isfinite(largest) ? fmt::format("{:.6g}", largest) : "null",  // as JSON has it
                                    nlohmann::json(program_check).dump());
  return record;
}

/// The program as it was written has no number in the session: it is no trial.
Result<int64_t> Tuner::Impl::commit_as_written(const std::vector<double>& seconds) {
  TW_TRY(written, schedule::Schedule::make(task.module));
  Record record = record_of(written.trace().as_json(), "[]", 0);
  record.seconds = seconds;
  record.index = -1;
  return database->commit(record);
}

bool Tuner::Impl::may_win_as_written() const {
  const double first_call = status.reference_seconds;
  return reference_object && (first_call < kShortFirstCall || first_call < kFirstCallFactor * status.best_seconds);
}

/// The fastest of this session with the candidate that came first, and what was the best before. What this session has
/// not built and checked is built, as it is delivered, and checked now: a record may come from another version.
Status Tuner::Impl::begin_finals() {
  for (const auto& [index, candidate] : good) finalists.push_back(candidate);
  std::stable_sort(finalists.begin(), finalists.end(), [](auto& a, auto& b) { return a.seconds < b.seconds; });
  if (finalists.size() > kFinalists) finalists.resize(kFinalists);
  const auto add = [&](const Good& added) {
    const auto is_it = [&](const Good& candidate) { return candidate.record == added.record; };
    if (std::none_of(finalists.begin(), finalists.end(), is_it)) finalists.push_back(added);
  };
  // What nobody searches for, the first candidate, is what a search is compared with.
  if (auto first = good.find(0); first != good.end()) {
    first_record = first->second.record;
    add(first->second);
  }
  TW_TRY(before, database->best(workload, target));
  if (before) add({before->id, before->median(), before->trace, {}});
  TW_TRY(earlier, database->finals(workload, target));
  if (earlier) {
    TW_TRY(records, database->records(workload, target));
    for (const Record& record : records) {
      if (record.id != earlier->winner || !record.is_ok()) continue;
      winner_before = record.id;
      add({record.id, record.median(), record.trace, {}});
    }
  }
  status.phase = "finals";
  for (size_t i = 0; i < finalists.size(); ++i) {
    if (finalists[i].object) continue;
    auto again = replayed(task.module, finalists[i].trace);
    if (!again.ok()) continue;
    build_to_check(kFirstFinalistId + i, again->module());
  }
  build_heuristic();
  return unbuilt_finalists ? Status(Ok{}) : begin_turns();
}

/// For the finals, as it is delivered. What cannot be built takes no part.
void Tuner::Impl::build_to_check(uint64_t id, const Ref<Module>& module) {
  lower::LowerOptions lowering;
  lowering.check_races = false;
  auto made = lower::lower(module, options.target, lowering);
  if (!made.ok()) return;
  Candidate candidate = make_candidate(id, *made, options.target, task.function);
  candidate.check_only = true;
  pipeline->submit(std::move(candidate));
  ++unbuilt_finalists;
}

/// Unless one of the finalists is the same program.
void Tuner::Impl::build_heuristic() {
  if (task.heuristic.empty() || finalists.empty()) return;
  auto schedule = replayed(task.module, task.heuristic);
  if (!schedule.ok()) return;
  for (const Good& finalist : finalists) {
    auto other = replayed(task.module, finalist.trace);
    if (other.ok() && structural_equal(schedule->module(), other->module())) heuristic_record = finalist.record;
  }
  if (!heuristic_record) build_to_check(kHeuristicId, schedule->module());
}

Status Tuner::Impl::take_finalist(const Measured& measured) {
  if (measured.id == kHeuristicId) {
    if (measured.is_ok()) heuristic_object = measured.object;
  } else if (measured.is_ok()) {
    finalists[measured.id - kFirstFinalistId].object = measured.object;
  } else if (measured.outcome != Outcome::kCanceled) {
    note_failure(measured.error);
  }
  return --unbuilt_finalists ? Status(Ok{}) : begin_turns();
}

Status Tuner::Impl::begin_turns() {
  std::erase_if(finalists, [](const Good& candidate) { return !candidate.object; });
  if (finalists.empty()) return end_finals({});
  FinalsRequest request;
  request.budget_seconds = kFinalsSeconds;
  if (options.seconds > 0) {
    const double left = options.seconds - seconds_since(started);
    request.budget_seconds = std::clamp(left, kLeastFinalsSeconds, kFinalsSeconds);
  }
  const auto add = [&](const std::shared_ptr<const std::string>& object) {
    request.kernels.push_back({object, task.function});
    return request.kernels.size() - 1;
  };
  for (const Good& candidate : finalists) add(candidate.object);
  if (may_win_as_written()) written_place = add(reference_object);
  const size_t contestants = request.kernels.size();
  if (heuristic_object) heuristic_place = add(heuristic_object);
  if (!written_place && reference_object && status.reference_seconds < kBaselineCallShare * request.budget_seconds) {
    written_place = add(reference_object);
  }
  request.baselines = request.kernels.size() - contestants;
  if (request.kernels.size() < 2) return end_finals({});
  pipeline->begin_finals(std::move(request));
  return Ok{};
}

Status Tuner::Impl::end_finals(const FinalsResult& result) {
  if (outcome.stop_reason == "canceled") return settle(outcome.stop_reason);
  if (result.error) note_failure(*result.error);
  if (!finalists.empty()) TW_RETURN_IF_ERROR(deliver(result));
  TW_RETURN_IF_ERROR(settle(outcome.stop_reason));
  // What failed as it would be delivered is not delivered.
  if (finalists.empty()) outcome.best.reset();
  return Ok{};
}

/// Commits the winner.
Status Tuner::Impl::deliver(const FinalsResult& result) {
  const bool timed = !result.error && result.seconds.size() >= finalists.size();
  std::vector<size_t> standing;  // what is known already
  for (const int64_t record : {winner_before, first_record}) {
    for (size_t i = 0; i < finalists.size(); ++i) {
      if (finalists[i].record == record) standing.push_back(i);
    }
  }
  size_t winner = 0;  // in the order of the search
  if (standing.empty()) standing.push_back(winner);
  if (timed) {
    winner = winner_of(result, standing, finalists.size());
  } else if (finalists[standing.front()].seconds < kFarSlower * finalists[winner].seconds) {
    winner = standing.front();
  }
  outcome.object = finalists[winner].object;
  Finals finals{finalists[winner].record, {finalists[winner].seconds}, last_record};
  if (timed) finals.seconds = seconds_in_finals(result, winner);
  if (timed && written_place == finalists.size() && may_win_as_written() &&
      ratio_in_finals(result, winner, *written_place).low > kClearlySlower) {
    winner = *written_place;
    finals.seconds = seconds_in_finals(result, winner);
    TW_TRY(id, commit_as_written(finals.seconds));
    finals.winner = id;
    finals.last_record = last_record = std::max(last_record, id);
    outcome.object = reference_object;
  }
  if (timed) keep_times(result, winner, finals.winner);
  return database->commit_finals(workload, target, finals);
}

/// What the finals measured: of the winner, of the others in the order of the search, and of the baselines.
void Tuner::Impl::keep_times(const FinalsResult& result, size_t winner, int64_t winner_record) {
  const auto keep = [&](const char* kind, int64_t record, size_t kernel) {
    outcome.finals.push_back(time_in_finals(result, kind, record, kernel, winner));
  };
  keep(written_place == winner ? "written" : "trial", winner_record, winner);
  for (size_t i = 0; i < finalists.size(); ++i) {
    if (i != winner) keep("trial", finalists[i].record, i);
    if (heuristic_record == finalists[i].record) heuristic_place = i;
  }
  if (heuristic_place) keep("heuristic", heuristic_record.value_or(0), *heuristic_place);
  if (written_place && written_place != winner) keep("written", 0, *written_place);
  outcome.last_record = last_record;
}

Status Tuner::Impl::finish_search() {
  std::string& reason = outcome.stop_reason;
  if (reason.empty() && seconds_left() <= 0) reason = "seconds";
  if (reason.empty()) reason = out_of_candidates ? "exhausted" : "trials";
  TW_TRY(compared, had_finals());
  return reason == "canceled" || compared ? settle(reason) : begin_finals();
}

Status Tuner::Impl::settle(const std::string& reason) {
  outcome.stop_reason = reason;
  TW_TRY(best, database->best(workload, target));
  outcome.best = best;
  // The times of the finals: the lowest of many times of the search is low by chance, too.
  if (best && best->seed == options.seed && (best->index < 0 || good.contains(best->index))) {
    status.best_seconds = best->median();
    status.best_index = best->index;
  }
  status.phase = "done";
  return began ? task.context.search_strategy->post_tuning() : Status(Ok{});
}

Tuner::Tuner(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Tuner::~Tuner() = default;

Result<std::unique_ptr<Tuner>> Tuner::start(TuneTask task, TunerOptions options, std::shared_ptr<Database> database) {
  auto impl = std::make_unique<Impl>();
  impl->task = std::move(task);
  impl->options = std::move(options);
  impl->database = std::move(database);
  if (std::shared_ptr<CostModel>& model = impl->task.cost_model) {
    auto tell = [to = impl.get()](const Diagnostic& error) { to->note_failure(error); };
    model = std::make_shared<ForgivingModel>(std::move(model), std::move(tell));
  }
  TW_RETURN_IF_ERROR(impl->open());
  return std::unique_ptr<Tuner>(new Tuner(std::move(impl)));
}

Status Tuner::step(double seconds) {
  Impl& t = *impl_;
  if (finished()) return Ok{};
  const Clock::time_point start = Clock::now();
  const AwayFromMeasuring away(t.pipeline->cpu_plan());
  while (!finished()) {
    const double left = seconds - seconds_since(start);
    if (left <= 0) return Ok{};
    auto wait = std::chrono::milliseconds(static_cast<int64_t>(std::clamp(left, 0.001, 0.05) * 1000));
    if (t.status.phase == "finals" && t.unbuilt_finalists == 0) {
      if (auto result = t.wait_for_finals(wait)) TW_RETURN_IF_ERROR(t.end_finals(*result));
      continue;
    }
    TW_RETURN_IF_ERROR(t.look_at_the_clock());
    if (t.status.phase == "finals") {
      for (const Measured& measured : t.wait_for(wait)) TW_RETURN_IF_ERROR(t.take(measured));
      if (auto failure = t.pipeline->failure()) return *failure;
      continue;
    }
    TW_RETURN_IF_ERROR(t.refill());
    if (t.wants_more() && t.may_draw()) wait = std::chrono::milliseconds(0);
    for (const Measured& measured : t.wait_for(wait)) TW_RETURN_IF_ERROR(t.take(measured));
    if (auto failure = t.pipeline->failure()) return *failure;
    if (t.pipeline->outstanding() == 0 && !t.wants_more()) TW_RETURN_IF_ERROR(t.finish_search());
  }
  return Ok{};
}

bool Tuner::finished() const { return impl_->status.phase == "done"; }

void Tuner::cancel() {
  if (finished()) return;
  impl_->outcome.stop_reason = "canceled";
  if (impl_->pipeline) impl_->pipeline->cancel();
}

void Tuner::close() { impl_->pipeline.reset(); }

TuneProgress Tuner::progress() const {
  TuneProgress copy = impl_->status;
  const DrawCounts drawn = impl_->task.context.search_strategy->draw_counts();
  copy.attempts = drawn.attempts;
  copy.duplicates = drawn.duplicates;
  copy.refusals = drawn.refused;
  for (const auto& [code, reason] : drawn.refused) {
    copy.refused += reason.first;
    auto [place, is_new] = copy.failures.emplace(code, reason);
    if (!is_new) place->second.first += reason.first;
  }
  copy.elapsed = seconds_since(impl_->started);
  if (!impl_->build_seconds.empty()) {
    std::vector<double> sorted = impl_->build_seconds;
    std::nth_element(sorted.begin(), sorted.begin() + sorted.size() / 2, sorted.end());
    copy.median_build_seconds = sorted[sorted.size() / 2];
  }
  return copy;
}

const TuneResult& Tuner::result() const { return impl_->outcome; }

}  // namespace tilewright::search
