#include "search/session/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "search/cost_model/forgiving.h"
#include "search/measure/away_from_measuring.h"
#include "search/measure/candidate.h"
#include "search/scoped_timer.h"
#include "search/session/record_parts.h"
#include "search/space/space_generator.h"
#include "support/ranges.h"

namespace tilewright::search {
namespace {

using Clock = std::chrono::steady_clock;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr size_t kFinalists = 4;
/// Names in the order of Activity.
constexpr std::array<const char*, kNumActivities> kActivityNames = {"nothing",  "starting",  "building", "reference",
                                                                    "checking", "measuring", "finals"};
/// Maximum seconds of the finals; in a short search, this share of its time.
constexpr double kFinalsSeconds = 5, kFinalsShare = 0.1;
/// Seconds of the finals of a search whose time is over: enough for some rounds of short kernels.
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

}  // namespace

double seconds_for_finals(double limit) { return std::min(kFinalsSeconds, kFinalsShare * limit); }

Result<std::unique_ptr<TuningSession>> TuningSession::start(TuneTask task, SessionOptions options,
                                                            std::shared_ptr<Database> database) {
  std::unique_ptr<TuningSession> session(new TuningSession(std::move(task), std::move(options), std::move(database)));
  if (std::shared_ptr<CostModel>& model = session->task_.cost_model) {
    auto report = [to = session.get()](const Diagnostic& error) { to->note_failure(error); };
    model = std::make_shared<ForgivingModel>(std::move(model), std::move(report));
  }
  TW_RETURN_IF_ERROR(session->open());
  return session;
}

TuningSession::TuningSession(TuneTask task, SessionOptions options, std::shared_ptr<Database> database)
    : task_(std::move(task)),
      options_(std::move(options)),
      database_(std::move(database)),
      names_(task_.module, task_.entry.value_or(Ref<Module>())),
      target_(options_.target.str()),
      task_progress_(options_.trials, options_.stops),
      known_(std::make_shared<KnownResults>(database_, SessionKey{task_.workload, target_, task_.space, options_.seed},
                                            task_.module, names_, task_.relatives, options_.host, options_.versions)),
      started_(Clock::now()) {}

double TuningSession::seconds_left() const {
  if (options_.seconds <= 0) return kInfinity;
  return options_.seconds - seconds_for_finals(options_.seconds) - seconds_since(started_);
}

void TuningSession::note_failure(const Diagnostic& error) { note(status_.failures, error); }

double TuningSession::share_needed() const { return task_.context.search_strategy->runs_ahead() ? 0 : 1; }

Status TuningSession::open() {
  status_.total = options_.trials;
  status_.best_seconds = kInfinity;
  status_.phase = "reference";
  TW_RETURN_IF_ERROR(database_->commit_workload(task_.workload, task_.name, task_.script, task_.sizes));
  TW_RETURN_IF_ERROR(resume());
  TW_TRY(compared, had_finals());
  task_progress_.look_whether_to_stop();
  if (compared && !task_progress_.wants_more()) return settle(task_progress_.end_reason());
  TW_RETURN_IF_ERROR(begin_strategy());
  {
    const ScopedTimer timer(status_.seconds, "inputs");
    TW_TRY(made, task_.arguments(task_.reduction_length));
    arguments_ = made;
  }
  TW_RETURN_IF_ERROR(start_measuring());
  TW_TRY(written, reference_candidate(kReferenceId, task_.module, options_.target, task_.function));
  pipeline_->submit(std::move(written));
  return task_.measurer ? submit_incumbent() : Status(Ok{});
}

Status TuningSession::start_measuring() {
  if (task_.measurer) {
    TW_TRY(elsewhere, task_.measurer(arguments_));
    pipeline_ = std::move(elsewhere);
    return Ok{};
  }
  TW_RETURN_IF_ERROR(check_runs_here(options_.target));
  // Another host may be faster: no kernel is stopped because it is slower than the best one was there.
  if (fastest_host_ == options_.host) options_.pipeline.race.incumbent = status_.best_seconds;
  TW_TRY(here, MeasurePipeline::start(arguments_, options_.pipeline));
  pipeline_ = std::move(here);
  return Ok{};
}

/// If the incumbent cannot be rebuilt, there is none, and times are compared with the first candidate.
Status TuningSession::submit_incumbent() {
  auto* best = find_value(finalists_, status_.best_index);
  if (!best) return Ok{};
  auto again = replayed(task_.module, best->trace);
  if (!again.ok()) return Ok{};
  auto made = lower_candidate(again->module(), options_.target);
  if (!made.ok()) return Ok{};
  Candidate candidate = make_candidate(kIncumbentId, *made, options_.target, task_.function);
  candidate.is_baseline = true;
  candidate.known_seconds = best->seconds;
  pipeline_->submit(std::move(candidate));
  return Ok{};
}

Status TuningSession::resume() {
  TW_TRY(records, known_->open(options_.fresh));
  for (const Record& record : records) {
    ++status_.outcomes[record.outcome];
    last_record_ = std::max(last_record_, record.id);
    const bool is_best = task_progress_.known(record.is_ok() ? record.median() : kInfinity);
    if (is_best) fastest_host_ = record.host;
    if (record.is_ok()) add_finalist(record.index, {record.id, record.median(), record.trace, {}}, is_best);
  }
  status_.earlier = status_.trials = task_progress_.trials();
  return Ok{};
}

/// The best of what is known were timed against one another.
Result<bool> TuningSession::had_finals() {
  if (finalists_.empty()) return true;
  TW_TRY(earlier, database_->finals(task_.workload, target_));
  return earlier && earlier->last_record >= last_record_;
}

void TuningSession::add_finalist(int64_t index, Finalist candidate, bool is_best) {
  if (is_best) {
    status_.best_seconds = candidate.seconds;
    status_.best_index = index;
  }
  finalists_.emplace(index, std::move(candidate));
  drop_slow_finalists();
}

/// Drops candidates that will not be in the finals. The first one is kept: the best is compared with it.
void TuningSession::drop_slow_finalists() {
  if (finalists_.size() % 64 != 0) return;
  std::vector<std::pair<double, int64_t>> times;  // the first of equally fast ones are in the finals
  for (const auto& [index, candidate] : finalists_) times.emplace_back(candidate.seconds, index);
  std::nth_element(times.begin(), times.begin() + kFinalists, times.end());
  std::erase_if(finalists_, [&](const auto& each) {
    return each.first > 0 && std::pair(each.second.seconds, each.first) > times[kFinalists];
  });
}

/// Stops the task when its time is over, and drops the candidates in flight.
Status TuningSession::check_time_limit() {
  if (task_progress_.stop_reason().empty() && seconds_left() <= 0) task_progress_.stop("seconds");
  if (task_progress_.stop_reason() != "seconds" || dropped_) return Ok{};
  if (status_.phase == "finals" && seconds_since(started_) <= options_.seconds) return Ok{};
  dropped_ = true;
  pipeline_->drop();
  if (status_.phase != "reference" || !finalists_.empty()) return Ok{};
  if (auto failure = pipeline_->failure()) return *failure;  // such as: there was no worker
  return resource_error(
      "tune/reference",
      fmt::format("'{}' as it was written, which results are compared with, did not come back before the "
                  "time of this search was over",
                  task_.name),
      "does it end? If so, give the search more seconds, or tune it for smaller shapes");
}

/// Returns the result of `poll`, and records how long this thread waited for it.
template <class Poll>
auto TuningSession::while_waiting(Poll poll) {
  const Activities before = pipeline_->activities();
  auto done = poll();
  const Activities after = pipeline_->activities();
  for (size_t i = 0; i < kNumActivities; ++i) {
    const double seconds = after.seconds[i] - before.seconds[i];
    if (seconds > 0) status_.seconds[kActivityNames[i]] += seconds;
  }
  status_.beside = after.beside();
  return done;
}

Status TuningSession::begin_strategy() {
  const ScopedTimer timer(status_.seconds, "sampling");
  TW_TRY(spaces, task_.context.space_generator->generate_design_space(task_.module));
  // Whole batches, of which the first may be a short one, so that a longer session continues with the same candidates.
  const int64_t trials = options_.trials + 2 * options_.batch;
  TuningPlan plan{trials, options_.batch, std::move(spaces), nullptr, task_.cost_model};
  plan.database = known_;
  // A candidate whose tile does not fit into registers is never the fastest: do not spend time on building it.
  plan.refuse = [this](const MeasureCandidate& candidate) -> Status {
    const Result<Ref<Module>>& made = lower_once(candidate.schedule.module());
    if (made.ok() || made.error().code != "lower/not-in-registers") return Ok{};
    return made.error();
  };
  TW_RETURN_IF_ERROR(learn_from_earlier());
  TW_RETURN_IF_ERROR(task_.context.search_strategy->pre_tuning(std::move(plan)));
  began_ = true;
  return Ok{};
}

Status TuningSession::learn_from_earlier() {
  if (!task_.cost_model) return Ok{};
  TW_TRY(records, known_->earlier());
  if (records.size() > kRecordsToLearn) records.erase(records.begin(), records.end() - kRecordsToLearn);
  Batch learned;
  for (const Record& record : records) {
    auto again = replayed(task_.module, record.trace);
    if (!again.ok()) continue;  // a record of a version with other primitives
    learned.candidates.push_back({std::move(*again), {}});
    learned.results.push_back(result_of(record));
  }
  if (learned.candidates.empty()) return Ok{};
  const ScopedTimer timer(status_.seconds, "learning");
  return task_.cost_model->update(task_.context, learned.candidates, learned.results);
}

const Result<Ref<Module>>& TuningSession::lower_once(const Ref<Module>& module) {
  auto found = lowered_.find(module.get());
  if (found == lowered_.end()) {
    const ScopedTimer timer(status_.seconds, "lowering");
    found = lowered_.emplace(module.get(), Lowered{module, lower_candidate(module, options_.target)}).first;
  }
  return found->second.made;
}

bool TuningSession::may_sample() const {
  // Where the kernel has the whole machine, sampling waits until nothing is being measured.
  if (pipeline_->cpu_plan().exclusive && !in_flight_.empty()) return false;
  return task_progress_.due(share_needed()) == 0 || batches_.front().missing == 0;
}

Status TuningSession::report(const Batch& batch) {
  if (task_.cost_model) {
    const ScopedTimer timer(status_.seconds, "learning");
    TW_RETURN_IF_ERROR(task_.cost_model->update(task_.context, batch.candidates, batch.results));
  }
  const ScopedTimer timer(status_.seconds, "reporting");
  return task_.context.search_strategy->notify_runner_results(batch.candidates, batch.results);
}

Status TuningSession::sample_batch() {
  if (task_progress_.due(share_needed()) > 0) {
    TW_RETURN_IF_ERROR(report(batches_.front()));
    task_progress_.reported(std::ssize(batches_.front().candidates));
    batches_.pop_front();
    ++reported_;
  }
  std::optional<ScopedTimer> timer(std::in_place, status_.seconds, "sampling");
  TW_TRY(sampled_batch, task_.context.search_strategy->generate_measure_candidates());
  timer.reset();
  task_progress_.sampled(sampled_batch ? std::optional(std::ssize(*sampled_batch)) : std::nullopt);
  if (task_progress_.is_exhausted() || sampled_batch->empty()) return Ok{};
  Batch& batch = batches_.emplace_back();
  batch.candidates = std::move(*sampled_batch);
  batch.results.resize(batch.candidates.size());
  for (size_t place : indices_of(batch.candidates)) TW_RETURN_IF_ERROR(begin_trial(place));
  lowered_.clear();
  return Ok{};
}

/// Begins a trial of the batch that was sampled last.
Status TuningSession::begin_trial(size_t place) {
  Batch& batch = batches_.back();
  int64_t index = next_index_++;
  const schedule::Schedule& schedule = batch.candidates[place].schedule;
  std::string trace = schedule.trace().as_json();
  if (auto before = known_->take(trace)) {
    batch.results[place] = result_of(*before);
    return Ok{};
  }
  TW_TRY(earlier, known_->of_others(schedule.module()));
  if (earlier) {
    // No trial: it takes part in the finals as what it is, a record of another session.
    batch.results[place] = result_of(*earlier);
    const double seconds = earlier->median();
    add_finalist(index, {earlier->id, seconds, earlier->trace, {}}, task_progress_.beats(seconds));
    return Ok{};
  }
  if (task_progress_.is_used_up()) {
    batch.results[place].error_msg = "not measured: all trials are used up";
    return Ok{};
  }
  index = known_->number(index);
  const auto id = static_cast<uint64_t>(index);
  std::string decisions = decisions_json(trace);
  in_flight_.emplace(id, Trial{index, std::move(trace), std::move(decisions), reported_ + batches_.size() - 1, place});
  task_progress_.submitted();
  ++batch.missing;
  const Result<Ref<Module>>& made = lower_once(schedule.module());
  if (made.ok()) {
    Candidate candidate = make_candidate(id, *made, options_.target, task_.function);
    candidate.is_baseline = index == 0;
    pipeline_->submit(std::move(candidate));
    return Ok{};
  }
  // A candidate that cannot be lowered is a trial like any other that fails: it is recorded.
  Measured failed;
  failed.outcome = Outcome::kBuildError;
  failed.error = made.error();
  failed.id = id;
  return handle(failed);
}

Status TuningSession::refill() {
  // One batch at a time: a step must stay short, or the caller does not come to show progress.
  return task_progress_.wants_more() && may_sample() ? sample_batch() : Status(Ok{});
}

Status TuningSession::handle_reference(const Measured& measured) {
  if (measured.outcome == Outcome::kCanceled) return Ok{};
  if (measured.is_ok()) {
    status_.reference_seconds = measured.median();
    reference_object_ = measured.object;
    if (task_.judge_reference) {
      const ScopedTimer timer(status_.seconds, "judging");
      TW_TRY(extent, task_.judge_reference(*arguments_));
      program_check_ = extent;
    }
    status_.phase = "search";
    return Ok{};
  }
  return reference_failure(task_.name, measured);
}

Status TuningSession::handle(const Measured& measured) {
  if (measured.id == kReferenceId) return handle_reference(measured);
  if (measured.id == kIncumbentId) return Ok{};
  if (FinalRound::is_finalist(measured.id)) {
    TW_TRY(goes_on, finals_->take(measured));
    return goes_on ? Status(Ok{}) : end_finals({});
  }
  auto it = in_flight_.find(measured.id);
  TW_CHECK(it != in_flight_.end(), "candidate " + std::to_string(measured.id) + " came back twice");
  Trial trial = std::move(it->second);
  in_flight_.erase(it);
  if (measured.outcome == Outcome::kCanceled) {
    task_progress_.dropped();
    return Ok{};
  }
  const Record record = record_of(trial, measured);
  Batch& batch = batches_[trial.batch - reported_];
  batch.results[trial.place] = result_of(record);
  --batch.missing;
  auto committed = [&] {
    const ScopedTimer timer(status_.seconds, "recording");
    return database_->commit(names_.to_entry(record), {task_.space, known_->state()});
  }();
  if (!committed.ok()) return std::move(committed.error());
  last_record_ = std::max(last_record_, *committed);
  const bool is_best = task_progress_.measured(record.is_ok() ? record.median() : kInfinity);
  status_.trials = task_progress_.trials();
  ++status_.outcomes[record.outcome];
  if (!measured.is_ok() && measured.outcome != Outcome::kSlowStopped) note_failure(measured.error);
  if (measured.build_seconds > 0) build_seconds_.push_back(measured.build_seconds);
  if (record.is_ok()) {
    add_finalist(trial.index, {*committed, record.median(), record.trace, measured.object}, is_best);
  }
  return Ok{};
}

Record TuningSession::record_of(const Trial& trial, const Measured& measured) const {
  Record record;
  record.workload = task_.workload;
  record.target = target_;
  record.trace = trial.trace;
  record.decisions = trial.decisions;
  record.index = trial.index;
  record.seconds = measured.seconds;
  record.outcome = outcome_name(measured.outcome);
  record.error = measured.error.message;
  record.host = measured.host.empty() ? options_.host : measured.host;
  record.incumbent_seconds = measured.incumbent_seconds;
  record.incumbent_reference = measured.incumbent_reference;
  record.seed = options_.seed;
  record.versions = options_.versions;
  const double largest = measured.check.largest;
  const std::string& note = measured.note;
  record.verification = fmt::format(
      R"({{"tolerance": {{{}}}, "largest_share_of_allowed": {}, "program": {}{}}})", tolerances_json(*arguments_),
      // JSON has no infinity
      std::isfinite(largest) ? fmt::format("{:.6g}", largest) : "null", nlohmann::json(program_check_).dump(),
      note.empty() ? "" : fmt::format(R"(, "host": {})", nlohmann::json(note).dump()));
  return record;
}

Status TuningSession::begin_finals() {
  std::vector<Finalist> fastest;
  for (const auto& [index, candidate] : finalists_) fastest.push_back(candidate);
  std::ranges::stable_sort(fastest, [](auto& a, auto& b) { return a.seconds < b.seconds; });
  if (fastest.size() > kFinalists) fastest.resize(kFinalists);
  TW_TRY(written, schedule::Schedule::make(task_.module));
  FinalRoundTask round{task_.module,
                       names_,
                       task_.function,
                       options_.target,
                       task_.heuristic,
                       record_of({-1, written.trace().as_json(), "[]"}, {}),
                       options_.target.is_in(TargetSet::kGpu) ? nullptr : reference_object_,
                       status_.reference_seconds,
                       status_.best_seconds,
                       kFinalsSeconds,
                       last_record_};
  if (options_.seconds > 0) {
    round.budget_seconds = std::clamp(options_.seconds - seconds_since(started_), kLeastFinalsSeconds, kFinalsSeconds);
  }
  status_.phase = "finals";
  finals_.emplace(std::move(round), database_, *pipeline_, [this](const Diagnostic& error) { note_failure(error); });
  TW_TRY(goes_on, finals_->begin(std::move(fastest), find_value(finalists_, 0)));
  return goes_on ? Status(Ok{}) : end_finals({});
}

Status TuningSession::end_finals(const FinalsResult& result) {
  const std::string& reason = task_progress_.stop_reason();
  if (reason == "canceled") return settle(reason);
  TW_RETURN_IF_ERROR(finals_->end(result));
  outcome_.object = finals_->object();
  outcome_.finals = finals_->times();
  if (!outcome_.finals.empty()) outcome_.last_record = finals_->last_record();
  TW_RETURN_IF_ERROR(settle(reason));
  // If no candidate passes the finals as delivered, there is no best one.
  if (!finals_->has_winner()) outcome_.best.reset();
  return Ok{};
}

Status TuningSession::finish_search() {
  if (task_progress_.stop_reason().empty() && seconds_left() <= 0) task_progress_.stop("seconds");
  task_progress_.stop(task_progress_.end_reason());
  TW_TRY(compared, had_finals());
  const std::string& reason = task_progress_.stop_reason();
  return reason == "canceled" || compared ? settle(reason) : begin_finals();
}

Status TuningSession::settle(const std::string& reason) {
  outcome_.stop_reason = reason;
  TW_TRY(best, database_->best(task_.workload, target_));
  if (best) outcome_.best = names_.of_entry(*best);
  // The times of the finals: the lowest of many times of the search is low by chance, too.
  if (best && best->seed == options_.seed && (best->index < 0 || finalists_.contains(best->index))) {
    status_.best_seconds = best->median();
    status_.best_index = best->index;
  }
  status_.phase = "done";
  return began_ ? task_.context.search_strategy->post_tuning() : Status(Ok{});
}

Status TuningSession::step(double seconds) {
  if (finished()) return Ok{};
  const Clock::time_point start = Clock::now();
  const AwayFromMeasuring away(pipeline_->cpu_plan());
  while (!finished()) {
    const double left = seconds - seconds_since(start);
    if (left <= 0) return Ok{};
    auto wait = std::chrono::milliseconds(static_cast<int64_t>(std::clamp(left, 0.001, 0.05) * 1000));
    const bool is_final = status_.phase == "finals";
    if (is_final && !finals_->is_building()) {
      auto result = while_waiting([&] { return pipeline_->poll_finals(wait); });
      if (result) TW_RETURN_IF_ERROR(end_finals(*result));
      continue;
    }
    TW_RETURN_IF_ERROR(check_time_limit());
    if (!is_final) {
      TW_RETURN_IF_ERROR(refill());
      if (task_progress_.wants_more() && may_sample()) wait = std::chrono::milliseconds(0);
    }
    for (const Measured& measured : while_waiting([&] { return pipeline_->poll(wait); })) {
      TW_RETURN_IF_ERROR(handle(measured));
    }
    if (auto failure = pipeline_->failure()) return *failure;
    if (!is_final && pipeline_->outstanding() == 0 && !task_progress_.wants_more()) {
      TW_RETURN_IF_ERROR(finish_search());
    }
  }
  return Ok{};
}

void TuningSession::cancel() {
  if (finished()) return;
  task_progress_.stop("canceled");
  if (pipeline_) pipeline_->cancel();
}

TuneProgress TuningSession::progress() const {
  TuneProgress copy = status_;
  const SampleCounts counts = task_.context.search_strategy->sample_counts();
  copy.attempts = counts.tries;
  copy.duplicates = counts.duplicates;
  copy.refusals = counts.refused;
  for (const auto& [code, reason] : counts.refused) {
    copy.refused += reason.first;
    auto [place, is_new] = copy.failures.emplace(code, reason);
    if (!is_new) place->second.first += reason.first;
  }
  copy.elapsed = seconds_since(started_);
  if (!build_seconds_.empty()) {
    std::vector<double> sorted = build_seconds_;
    std::nth_element(sorted.begin(), sorted.begin() + sorted.size() / 2, sorted.end());
    copy.median_build_seconds = sorted[sorted.size() / 2];
  }
  return copy;
}

}  // namespace tilewright::search
