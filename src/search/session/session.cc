#include "search/session/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <deque>
#include <limits>
#include <nlohmann/json.hpp>

#include "search/cost_model/forgiving.h"
#include "search/measure/away_from_measuring.h"
#include "search/measure/candidate.h"
#include "search/scoped_timer.h"
#include "search/session/final_round.h"
#include "search/session/known_results.h"
#include "search/session/record_parts.h"
#include "search/space/space_generator.h"

namespace tilewright::search {
namespace {

using Clock = std::chrono::steady_clock;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr size_t kFinalists = 4;
/// In the order of Activity.
constexpr std::array<const char*, kNumActivities> kActivityNames = {"nothing",  "starting",  "building", "reference",
                                                                    "checking", "measuring", "finals"};
/// Seconds that the finals may take; of a search of few seconds, this share of them.
constexpr double kFinalsSeconds = 5, kFinalsShare = 0.1;
/// The finals of a search whose time is over: enough for some rounds of short kernels.
constexpr double kLeastFinalsSeconds = 0.2;
/// Records of earlier sessions that a cost model learns from at most.
constexpr size_t kRecordsToLearn = 512;
/// A number that no candidate has.
constexpr uint64_t kReferenceId = UINT64_MAX;
/// Another reserved number: the incumbent, whose calls are interleaved with those of candidates on other hosts.
constexpr uint64_t kIncumbentId = (uint64_t{1} << 63) - 1;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

void note(Reasons& reasons, const Diagnostic& error) {
  auto& [count, message] = reasons[error.code.empty() ? "unknown" : error.code];
  if (count++ == 0) message = error.message;
}

/// The one implementation.
struct RunningSession final : TuningSession {
  struct Trial {
    int64_t index = 0;
    std::string trace, decisions;
    size_t batch = 0, place = 0;  ///< where its result belongs
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

  TuneTask task;
  SessionOptions options;
  std::shared_ptr<Database> database;
  std::string target;
  TaskProgress so_far;
  std::shared_ptr<KnownResults> known;  // which strategies ask, too
  std::shared_ptr<Arguments> arguments;
  std::unique_ptr<Measurer> pipeline;
  Clock::time_point started = Clock::now();

  int64_t next_index = 0;
  std::deque<Batch> batches;                   // that the strategy has not seen the results of
  size_t reported = 0;                         // batches before those
  std::map<const NodeBase*, Lowered> lowered;  // of the batch that is being sampled
  std::map<uint64_t, Trial> in_flight;
  bool began = false;                                   // the strategy, which has to be notified of the end
  std::map<int64_t, Finalist> good;                     // by index
  std::shared_ptr<const std::string> reference_object;  // of the program as it was written
  std::string program_check = "unchecked";
  int64_t last_record = 0;  // the latest that this process knows of
  std::vector<double> build_seconds;
  bool dropped = false;  // what was under way when the time was over
  std::optional<FinalRound> finals;
  TuneProgress status;
  TuneResult outcome;

  RunningSession(TuneTask searched, SessionOptions asked, std::shared_ptr<Database> kept)
      : task(std::move(searched)),
        options(std::move(asked)),
        database(std::move(kept)),
        target(options.target.str()),
        so_far(options.trials, options.stops),
        known(std::make_shared<KnownResults>(database, SessionKey{task.workload, target, task.space, options.seed},
                                             task.module, task.relatives, options.host, options.versions)) {}

  Status step(double seconds) override;
  bool finished() const override { return status.phase == "done"; }
  void cancel() override;
  void close() override { pipeline.reset(); }
  TuneProgress progress() const override;
  const TuneResult& result() const override { return outcome; }

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
  double share_needed() const { return task.context.search_strategy->runs_ahead() ? 0 : 1; }
  bool may_sample() const;
  Status sample_batch();
  Status report(const Batch& batch);
  const Result<Ref<Module>>& lower_once(const Ref<Module>& module);
  Status begin_trial(size_t place);
  Status look_at_the_clock();
  Status take(const Measured& measured);
  Status take_reference(const Measured& measured);
  void note_good(int64_t index, Finalist candidate, bool is_best);
  void forget_slow();
  Status settle(const std::string& reason);
  Status begin_finals();
  Status end_finals(const FinalsResult& result);
  Record record_of(const std::string& trace, const std::string& decisions, double largest,
                   const std::string& note = {}) const;
  Status finish_search();
  void note_failure(const Diagnostic& error) { note(status.failures, error); }
  /// Until the finals have to begin; infinity without a limit.
  double seconds_left() const {
    if (options.seconds <= 0) return kInfinity;
    return options.seconds - std::min(kFinalsSeconds, kFinalsShare * options.seconds) - seconds_since(started);
  }
};

Status RunningSession::open() {
  status.total = options.trials;
  status.best_seconds = kInfinity;
  status.phase = "reference";
  TW_RETURN_IF_ERROR(database->commit_workload(task.workload, task.name, task.script, task.sizes));
  TW_RETURN_IF_ERROR(resume());
  TW_TRY(compared, had_finals());
  so_far.look_whether_to_stop();
  if (compared && !so_far.wants_more()) return settle(so_far.end_reason());
  TW_RETURN_IF_ERROR(begin_strategy());
  {
    const ScopedTimer timer(status.seconds, "inputs");
    TW_TRY(made, task.arguments(task.reduction_length));
    arguments = made;
  }
  TW_RETURN_IF_ERROR(start_measuring());
  TW_TRY(written, reference_candidate(kReferenceId, task.module, options.target, task.function));
  pipeline->submit(std::move(written));
  return task.measurer ? submit_incumbent() : Status(Ok{});
}

Status RunningSession::start_measuring() {
  if (task.measurer) {
    TW_TRY(elsewhere, task.measurer(arguments));
    pipeline = std::move(elsewhere);
    return Ok{};
  }
  TW_RETURN_IF_ERROR(check_runs_here(options.target));
  if (status.best_seconds < kInfinity) options.pipeline.race.incumbent = status.best_seconds;
  TW_TRY(here, MeasurePipeline::start(arguments, options.pipeline));
  pipeline = std::move(here);
  return Ok{};
}

/// What cannot be made again is none; then the first candidate is compared with.
Status RunningSession::submit_incumbent() {
  const auto best = good.find(status.best_index);
  if (best == good.end()) return Ok{};
  auto again = replayed(task.module, best->second.trace);
  if (!again.ok()) return Ok{};
  auto made = lower_candidate(again->module(), options.target);
  if (!made.ok()) return Ok{};
  Candidate candidate = make_candidate(kIncumbentId, *made, options.target, task.function);
  candidate.is_baseline = true;
  candidate.known_seconds = best->second.seconds;
  pipeline->submit(std::move(candidate));
  return Ok{};
}

Status RunningSession::resume() {
  TW_TRY(records, known->open(options.fresh));
  for (const Record& record : records) {
    ++status.outcomes[record.outcome];
    last_record = std::max(last_record, record.id);
    const bool is_best = so_far.known(record.is_ok() ? record.median() : kInfinity);
    if (record.is_ok()) note_good(record.index, {record.id, record.median(), record.trace, {}}, is_best);
  }
  status.earlier = status.trials = so_far.trials();
  return Ok{};
}

/// The best of what is known were timed against one another.
Result<bool> RunningSession::had_finals() {
  if (good.empty()) return true;
  TW_TRY(earlier, database->finals(task.workload, target));
  return earlier && earlier->last_record >= last_record;
}

void RunningSession::note_good(int64_t index, Finalist candidate, bool is_best) {
  if (is_best) {
    status.best_seconds = candidate.seconds;
    status.best_index = index;
  }
  good.emplace(index, std::move(candidate));
  forget_slow();
}

/// Those that will not be in the finals. The first one is kept: the best is compared with it.
void RunningSession::forget_slow() {
  if (good.size() % 64 != 0) return;
  std::vector<std::pair<double, int64_t>> times;  // of equal ones, the first are in the finals
  for (const auto& [index, candidate] : good) times.emplace_back(candidate.seconds, index);
  std::nth_element(times.begin(), times.begin() + kFinalists, times.end());
  std::erase_if(good, [&](const auto& each) {
    return each.first > 0 && std::pair(each.second.seconds, each.first) > times[kFinalists];
  });
}

/// Where the time is over: what is under way is not waited for.
Status RunningSession::look_at_the_clock() {
  if (so_far.stop_reason().empty() && seconds_left() <= 0) so_far.stop("seconds");
  if (so_far.stop_reason() != "seconds" || dropped) return Ok{};
  if (status.phase == "finals" && seconds_since(started) <= options.seconds) return Ok{};
  dropped = true;
  pipeline->drop();
  if (status.phase != "reference" || !good.empty()) return Ok{};
  if (auto failure = pipeline->failure()) return *failure;  // such as: there was no worker
  return resource_error(
      "tune/reference",
      fmt::format("'{}' as it was written, which results are compared with, did not come back before the "
                  "time of this search was over",
                  task.name),
      "does it end? If so, give the search more seconds, or tune it for smaller shapes");
}

/// What it gives, for which this thread waits.
template <class Poll>
auto RunningSession::while_waiting(Poll poll) {
  const Activities before = pipeline->activities();
  auto done = poll();
  const Activities after = pipeline->activities();
  for (size_t i = 0; i < kNumActivities; ++i) {
    const double seconds = after.seconds[i] - before.seconds[i];
    if (seconds > 0) status.seconds[kActivityNames[i]] += seconds;
  }
  status.beside = after.beside();
  return done;
}

Status RunningSession::begin_strategy() {
  const ScopedTimer timer(status.seconds, "drawing");
  TW_TRY(spaces, task.context.space_generator->generate_design_space(task.module));
  // Whole batches, of which the first may be a short one, so that a session with more trials goes on with the same
  // candidates.
  const int64_t trials = options.trials + 2 * options.batch;
  TuningPlan plan{trials, options.batch, std::move(spaces), nullptr, task.cost_model};
  plan.database = known;
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

Status RunningSession::learn_from_earlier() {
  if (!task.cost_model) return Ok{};
  TW_TRY(records, known->earlier());
  if (records.size() > kRecordsToLearn) records.erase(records.begin(), records.end() - kRecordsToLearn);
  Batch learned;
  for (const Record& record : records) {
    auto again = replayed(task.module, record.trace);
    if (!again.ok()) continue;  // of a version that could do other things
    learned.candidates.push_back({std::move(*again), {}});
    learned.results.push_back(result_of(record));
  }
  if (learned.candidates.empty()) return Ok{};
  const ScopedTimer timer(status.seconds, "learning");
  return task.cost_model->update(task.context, learned.candidates, learned.results);
}

const Result<Ref<Module>>& RunningSession::lower_once(const Ref<Module>& module) {
  auto found = lowered.find(module.get());
  if (found == lowered.end()) {
    const ScopedTimer timer(status.seconds, "lowering");
    found = lowered.emplace(module.get(), Lowered{module, lower_candidate(module, options.target)}).first;
  }
  return found->second.made;
}

bool RunningSession::may_sample() const {
  // Where the kernel has the whole machine, sampling waits until nothing is being measured.
  if (pipeline->cpu_plan().exclusive && !in_flight.empty()) return false;
  return so_far.due(share_needed()) == 0 || batches.front().missing == 0;
}

Status RunningSession::report(const Batch& batch) {
  if (task.cost_model) {
    const ScopedTimer timer(status.seconds, "learning");
    TW_RETURN_IF_ERROR(task.cost_model->update(task.context, batch.candidates, batch.results));
  }
  const ScopedTimer timer(status.seconds, "drawing");
  return task.context.search_strategy->notify_runner_results(batch.candidates, batch.results);
}

Status RunningSession::sample_batch() {
  if (so_far.due(share_needed()) > 0) {
    TW_RETURN_IF_ERROR(report(batches.front()));
    so_far.reported(std::ssize(batches.front().candidates));
    batches.pop_front();
    ++reported;
  }
  std::optional<ScopedTimer> timer(std::in_place, status.seconds, "drawing");
  TW_TRY(sampled_batch, task.context.search_strategy->generate_measure_candidates());
  timer.reset();
  so_far.sampled(sampled_batch ? std::optional(std::ssize(*sampled_batch)) : std::nullopt);
  if (so_far.is_exhausted() || sampled_batch->empty()) return Ok{};
  Batch& batch = batches.emplace_back();
  batch.candidates = std::move(*sampled_batch);
  batch.results.resize(batch.candidates.size());
  for (size_t place = 0; place < batch.candidates.size(); ++place) TW_RETURN_IF_ERROR(begin_trial(place));
  lowered.clear();
  return Ok{};
}

/// Begins a trial of the batch that was sampled last.
Status RunningSession::begin_trial(size_t place) {
  Batch& batch = batches.back();
  int64_t index = next_index++;
  const schedule::Schedule& schedule = batch.candidates[place].schedule;
  std::string trace = schedule.trace().as_json();
  if (auto before = known->take(trace)) {
    batch.results[place] = result_of(*before);
    return Ok{};
  }
  TW_TRY(earlier, known->of_others(schedule.module()));
  if (earlier) {
    // No trial: it takes part in the finals as what it is, a record of another session.
    batch.results[place] = result_of(*earlier);
    const double seconds = earlier->median();
    note_good(index, {earlier->id, seconds, earlier->trace, {}}, so_far.beats(seconds));
    return Ok{};
  }
  if (so_far.is_used_up()) {
    batch.results[place].error_msg = "not measured: all trials are used up";
    return Ok{};
  }
  index = known->number(index);
  const auto id = static_cast<uint64_t>(index);
  std::string decisions = decisions_json(trace);
  in_flight.emplace(id, Trial{index, std::move(trace), std::move(decisions), reported + batches.size() - 1, place});
  so_far.submitted();
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

Status RunningSession::refill() {
  // One batch at a time: a step must stay short, or the caller does not come to show progress.
  return so_far.wants_more() && may_sample() ? sample_batch() : Status(Ok{});
}

Status RunningSession::take_reference(const Measured& measured) {
  if (measured.outcome == Outcome::kCanceled) return Ok{};
  if (measured.is_ok()) {
    status.reference_seconds = measured.median();
    reference_object = measured.object;
    if (task.judge_reference) {
      const ScopedTimer timer(status.seconds, "judging");
      TW_TRY(extent, task.judge_reference(*arguments));
      program_check = extent;
    }
    status.phase = "search";
    return Ok{};
  }
  return reference_failure(task.name, measured);
}

Status RunningSession::take(const Measured& measured) {
  if (measured.id == kReferenceId) return take_reference(measured);
  if (measured.id == kIncumbentId) return Ok{};
  if (FinalRound::is_finalist(measured.id)) {
    TW_TRY(goes_on, finals->take(measured));
    return goes_on ? Status(Ok{}) : end_finals({});
  }
  auto it = in_flight.find(measured.id);
  TW_CHECK(it != in_flight.end(), "candidate " + std::to_string(measured.id) + " came back twice");
  Trial trial = std::move(it->second);
  in_flight.erase(it);
  if (measured.outcome == Outcome::kCanceled) {
    so_far.dropped();
    return Ok{};
  }
  Record record = record_of(trial.trace, trial.decisions, measured.check.largest, measured.note);
  record.seconds = measured.seconds;
  if (!measured.host.empty()) record.host = measured.host;
  record.incumbent_seconds = measured.incumbent_seconds;
  record.incumbent_reference = measured.incumbent_reference;
  record.outcome = std::string(outcome_name(measured.outcome));
  record.error = measured.error.message;
  record.index = trial.index;
  Batch& batch = batches[trial.batch - reported];
  batch.results[trial.place] = result_of(record);
  --batch.missing;
  auto committed = [&] {
    const ScopedTimer timer(status.seconds, "recording");
    return database->commit(record, {task.space, known->state()});
  }();
  if (!committed.ok()) return std::move(committed.error());
  last_record = std::max(last_record, *committed);
  const bool is_best = so_far.measured(record.is_ok() ? record.median() : kInfinity);
  status.trials = so_far.trials();
  ++status.outcomes[record.outcome];
  if (!measured.is_ok() && measured.outcome != Outcome::kSlowStopped) note_failure(measured.error);
  if (measured.build_seconds > 0) build_seconds.push_back(measured.build_seconds);
  if (record.is_ok()) {
    note_good(trial.index, {*committed, record.median(), record.trace, measured.object}, is_best);
  }
  return Ok{};
}

Record RunningSession::record_of(const std::string& trace, const std::string& decisions, double largest,
                                 const std::string& note) const {
  Record record;
  record.workload = task.workload;
  record.target = target;
  record.trace = trace;
  record.decisions = decisions;
  record.seed = options.seed;
  record.host = options.host;
  record.versions = options.versions;
  record.verification = fmt::format(R"({{"tolerance": {{{}}}, "largest_share_of_allowed": {}, "program": {}{}}})",
                                    tolerances_json(*arguments),
                                    std::isfinite(largest) ? fmt::format("{:.6g}", largest) : "null",  // as JSON has it
                                    nlohmann::json(program_check).dump(),
                                    note.empty() ? "" : fmt::format(R"(, "host": {})", nlohmann::json(note).dump()));
  return record;
}

Status RunningSession::begin_finals() {
  std::vector<Finalist> fastest;
  for (const auto& [index, candidate] : good) fastest.push_back(candidate);
  std::stable_sort(fastest.begin(), fastest.end(), [](auto& a, auto& b) { return a.seconds < b.seconds; });
  if (fastest.size() > kFinalists) fastest.resize(kFinalists);
  TW_TRY(written, schedule::Schedule::make(task.module));
  FinalRoundTask round{task.module,
                       task.function,
                       options.target,
                       task.heuristic,
                       record_of(written.trace().as_json(), "[]", 0),
                       options.target.is_in(TargetSet::kGpu) ? nullptr : reference_object,
                       status.reference_seconds,
                       status.best_seconds,
                       kFinalsSeconds,
                       last_record};
  round.written.index = -1;
  if (options.seconds > 0) {
    round.budget_seconds = std::clamp(options.seconds - seconds_since(started), kLeastFinalsSeconds, kFinalsSeconds);
  }
  status.phase = "finals";
  finals.emplace(std::move(round), database, *pipeline, [this](const Diagnostic& error) { note_failure(error); });
  const auto first = good.find(0);
  TW_TRY(goes_on, finals->begin(std::move(fastest), first == good.end() ? nullptr : &first->second));
  return goes_on ? Status(Ok{}) : end_finals({});
}

Status RunningSession::end_finals(const FinalsResult& result) {
  const std::string& reason = so_far.stop_reason();
  if (reason == "canceled") return settle(reason);
  TW_RETURN_IF_ERROR(finals->end(result));
  outcome.object = finals->object();
  outcome.finals = finals->times();
  if (!outcome.finals.empty()) outcome.last_record = finals->last_record();
  TW_RETURN_IF_ERROR(settle(reason));
  // What failed as it would be delivered is not delivered.
  if (!finals->has_winner()) outcome.best.reset();
  return Ok{};
}

Status RunningSession::finish_search() {
  if (so_far.stop_reason().empty() && seconds_left() <= 0) so_far.stop("seconds");
  so_far.stop(so_far.end_reason());
  TW_TRY(compared, had_finals());
  const std::string& reason = so_far.stop_reason();
  return reason == "canceled" || compared ? settle(reason) : begin_finals();
}

Status RunningSession::settle(const std::string& reason) {
  outcome.stop_reason = reason;
  TW_TRY(best, database->best(task.workload, target));
  outcome.best = best;
  // The times of the finals: the lowest of many times of the search is low by chance, too.
  if (best && best->seed == options.seed && (best->index < 0 || good.contains(best->index))) {
    status.best_seconds = best->median();
    status.best_index = best->index;
  }
  status.phase = "done";
  return began ? task.context.search_strategy->post_tuning() : Status(Ok{});
}

Status RunningSession::step(double seconds) {
  if (finished()) return Ok{};
  const Clock::time_point start = Clock::now();
  const AwayFromMeasuring away(pipeline->cpu_plan());
  while (!finished()) {
    const double left = seconds - seconds_since(start);
    if (left <= 0) return Ok{};
    auto wait = std::chrono::milliseconds(static_cast<int64_t>(std::clamp(left, 0.001, 0.05) * 1000));
    const bool is_final = status.phase == "finals";
    if (is_final && !finals->is_building()) {
      auto result = while_waiting([&] { return pipeline->poll_finals(wait); });
      if (result) TW_RETURN_IF_ERROR(end_finals(*result));
      continue;
    }
    TW_RETURN_IF_ERROR(look_at_the_clock());
    if (!is_final) {
      TW_RETURN_IF_ERROR(refill());
      if (so_far.wants_more() && may_sample()) wait = std::chrono::milliseconds(0);
    }
    for (const Measured& measured : while_waiting([&] { return pipeline->poll(wait); })) {
      TW_RETURN_IF_ERROR(take(measured));
    }
    if (auto failure = pipeline->failure()) return *failure;
    if (!is_final && pipeline->outstanding() == 0 && !so_far.wants_more()) {
      TW_RETURN_IF_ERROR(finish_search());
    }
  }
  return Ok{};
}

void RunningSession::cancel() {
  if (finished()) return;
  so_far.stop("canceled");
  if (pipeline) pipeline->cancel();
}

TuneProgress RunningSession::progress() const {
  TuneProgress copy = status;
  const SampleCounts counts = task.context.search_strategy->sample_counts();
  copy.attempts = counts.tries;
  copy.duplicates = counts.duplicates;
  copy.refusals = counts.refused;
  for (const auto& [code, reason] : counts.refused) {
    copy.refused += reason.first;
    auto [place, is_new] = copy.failures.emplace(code, reason);
    if (!is_new) place->second.first += reason.first;
  }
  copy.elapsed = seconds_since(started);
  if (!build_seconds.empty()) {
    std::vector<double> sorted = build_seconds;
    std::nth_element(sorted.begin(), sorted.begin() + sorted.size() / 2, sorted.end());
    copy.median_build_seconds = sorted[sorted.size() / 2];
  }
  return copy;
}

}  // namespace

Result<std::unique_ptr<TuningSession>> TuningSession::start(TuneTask task, SessionOptions options,
                                                            std::shared_ptr<Database> database) {
  auto session = std::make_unique<RunningSession>(std::move(task), std::move(options), std::move(database));
  if (std::shared_ptr<CostModel>& model = session->task.cost_model) {
    auto report = [to = session.get()](const Diagnostic& error) { to->note_failure(error); };
    model = std::make_shared<ForgivingModel>(std::move(model), std::move(report));
  }
  TW_RETURN_IF_ERROR(session->open());
  return std::unique_ptr<TuningSession>(std::move(session));
}

}  // namespace tilewright::search
