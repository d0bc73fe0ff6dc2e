#include "search/tuner.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <nlohmann/json.hpp>

#include "ir/structural.h"
#include "lower/pipeline.h"
#include "search/measure/candidate.h"

namespace tilewright::search {
namespace {

using Clock = std::chrono::steady_clock;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
/// Attempts a trial may cost on average before the space counts as exhausted.
constexpr int64_t kAttemptsPerTrial = 50;
constexpr size_t kFinalists = 3;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

struct Trial {
  int64_t index = 0;
  std::string trace, decisions;
};

std::string decisions_json(const std::string& trace) {
  // The second half of [[instructions], [[step, decision], ...]].
  auto json = nlohmann::json::parse(trace, nullptr, false);
  return json.is_array() && json.size() == 2 ? json[1].dump() : "[]";
}

Diagnostic refuse_spilled(const lower::Promotion& promotion) {
  return schedule_error("tune/not-in-registers",
                        fmt::format("buffer '{}' has scope \"local\", but cannot live in registers: {}",
                                    promotion.buffer, promotion.reason),
                        "use smaller tiles, and unroll or vectorize the loops that index it");
}

}  // namespace

Result<Drawn> TraceSource::draw(uint64_t seed, uint64_t attempt) {
  TW_TRY(schedule, schedule::Schedule::make(module_));
  schedule.seed(schedule::Random::derive(seed, 0, attempt));
  schedule::ReplayOptions options;
  options.fresh = true;
  TW_RETURN_IF_ERROR(schedule::replay(trace_, schedule, options));
  return Drawn{schedule.module(), schedule.trace().as_json()};
}

struct Tuner::Impl {
  TuneTask task;
  TunerOptions options;
  std::shared_ptr<Database> database;
  std::shared_ptr<Arguments> arguments;
  std::unique_ptr<MeasurePipeline> pipeline;
  Hash128 workload;
  std::string target;
  Clock::time_point started = Clock::now();

  uint64_t next_attempt = 0;
  int64_t next_index = 0;
  std::unordered_set<int64_t> measured_before;
  std::unordered_set<Hash128> seen;
  std::map<uint64_t, Trial> in_flight;
  std::vector<double> build_seconds;
  bool out_of_candidates = false;
  TuneProgress status;
  TuneResult outcome;

  Status open();
  Status resume();
  Status refill();
  std::optional<Diagnostic> draw_one();
  Status take(const Measured& measured);
  Status settle(const std::string& reason);
  Status begin_finals();
  void note_failure(const Diagnostic& error);
  SessionKey key() const { return {workload, target, task.space, options.seed}; }
  int64_t window() const;
  bool wants_more() const {
    return status.phase == "search" && outcome.stop_reason.empty() && next_index < options.trials && !out_of_candidates;
  }
};

int64_t Tuner::Impl::window() const {
  // Enough to keep every builder and the measuring helper busy, little enough to stop quickly.
  int builders = std::max(options.pipeline.builders, 1);
  return 2 * builders + 2;
}

void Tuner::Impl::note_failure(const Diagnostic& error) {
  auto& [count, message] = status.failures[error.code.empty() ? "unknown" : error.code];
  if (count++ == 0) message = error.message;
}

Status Tuner::Impl::open() {
  workload = structural_hash(task.module);
  target = options.target.str();
  status.total = options.trials;
  status.best_seconds = kInfinity;
  status.phase = "search";
  TW_RETURN_IF_ERROR(database->commit_workload(workload, task.name, task.script));
  if (options.fresh) TW_RETURN_IF_ERROR(database->forget_session(key()));
  TW_RETURN_IF_ERROR(resume());
  if (next_index + static_cast<int64_t>(measured_before.size()) == 0 || status.trials < options.trials) {
    TW_TRY(made, task.arguments());
    arguments = made;
    TW_RETURN_IF_ERROR(arguments->check_complete());
    if (status.best_seconds < kInfinity) options.pipeline.race.incumbent = status.best_seconds;
    auto started_pipeline = MeasurePipeline::start(arguments, options.pipeline);
    if (!started_pipeline.ok()) return std::move(started_pipeline.error());
    pipeline = std::move(*started_pipeline);
    return Ok{};
  }
  return settle("trials");
}

Status Tuner::Impl::resume() {
  TW_TRY(session, database->session(key()));
  if (!session) return Ok{};
  measured_before.insert(session->indices.begin(), session->indices.end());
  status.earlier = status.trials = static_cast<int64_t>(measured_before.size());
  TW_TRY(records, database->records(workload, target));
  for (const Record& record : records) {
    if (record.seed != options.seed || !measured_before.count(record.index)) continue;
    ++status.outcomes[record.outcome];
    if (record.is_ok() && record.median() < status.best_seconds) {
      status.best_seconds = record.median();
      status.best_index = record.index;
    }
  }
  return Ok{};
}

std::optional<Diagnostic> Tuner::Impl::draw_one() {
  uint64_t attempt = next_attempt++;
  ++status.attempts;
  auto drawn = task.source->draw(options.seed, attempt);
  if (!drawn.ok()) {
    ++status.refused;
    return drawn.error();
  }
  if (!seen.insert(structural_hash(drawn->module)).second) {
    ++status.duplicates;
    return std::nullopt;
  }
  lower::LowerReport report;
  auto lowered = lower::lower(drawn->module, options.target, {}, &report);
  for (const lower::Promotion& promotion : report.promotions) {
    // What was meant for registers and does not fit is never the fastest: no time is spent on building it.
    if (!promotion.promoted) {
      ++status.refused;
      return refuse_spilled(promotion);
    }
  }
  int64_t index = next_index++;
  if (measured_before.count(index)) return std::nullopt;
  Trial trial{index, drawn->trace, decisions_json(drawn->trace)};
  if (!lowered.ok()) {
    // A candidate that cannot be lowered is a trial like any other that fails: it is recorded.
    Measured failed;
    failed.outcome = Outcome::kBuildError;
    failed.error = lowered.error();
    uint64_t id = static_cast<uint64_t>(index);
    failed.id = id;
    in_flight.emplace(id, std::move(trial));
    auto taken = take(failed);
    if (!taken.ok()) return taken.error();
    return std::nullopt;
  }
  in_flight.emplace(static_cast<uint64_t>(index), std::move(trial));
  pipeline->submit(make_candidate(static_cast<uint64_t>(index), *lowered, options.target, task.function));
  return std::nullopt;
}

Status Tuner::Impl::refill() {
  // Redrawing what was measured before is cheap, but a step must stay short.
  Clock::time_point start = Clock::now();
  while (wants_more() && static_cast<int64_t>(in_flight.size()) < window() && seconds_since(start) < 0.05) {
    if (auto error = draw_one()) {
      if (error->blame == Blame::kResource) return *error;
      note_failure(*error);
    }
    if (status.attempts > kAttemptsPerTrial * (next_index + 20)) out_of_candidates = true;
  }
  return Ok{};
}

Status Tuner::Impl::take(const Measured& measured) {
  auto it = in_flight.find(measured.id);
  TW_CHECK(it != in_flight.end(), "candidate " + std::to_string(measured.id) + " came back twice");
  Trial trial = std::move(it->second);
  in_flight.erase(it);
  if (measured.outcome == Outcome::kCanceled) return Ok{};
  Record record;
  record.workload = workload;
  record.target = target;
  record.trace = trial.trace;
  record.decisions = trial.decisions;
  record.seconds = measured.seconds;
  record.outcome = std::string(outcome_name(measured.outcome));
  record.error = measured.error.message;
  record.seed = options.seed;
  record.index = trial.index;
  record.versions = options.versions;
  std::string tolerances;
  for (size_t i = 0; i < arguments->specs().size(); ++i) {
    const ArgumentSpec& spec = arguments->specs()[i];
    if (spec.role == search::Role::kInput) continue;
    tolerances += fmt::format("{}{}: {}", tolerances.empty() ? "" : ", ", nlohmann::json(spec.name).dump(),
                              arguments->tolerance(i).to_json());
  }
  record.verification =
      fmt::format(R"({{"tolerance": {{{}}}, "largest_share_of_allowed": {:.6g}}})", tolerances, measured.check.largest);
  auto committed = database->commit(record, {task.space, fmt::format(R"({{"attempts": {}}})", status.attempts)});
  if (!committed.ok()) return std::move(committed.error());
  ++status.trials;
  ++status.outcomes[record.outcome];
  if (!measured.is_ok() && measured.outcome != Outcome::kSlowStopped) note_failure(measured.error);
  if (measured.build_seconds > 0) build_seconds.push_back(measured.build_seconds);
  if (record.is_ok() && record.median() < status.best_seconds) {
    status.best_seconds = record.median();
    status.best_index = record.index;
  }
  return Ok{};
}

Status Tuner::Impl::settle(const std::string& reason) {
  outcome.stop_reason = reason;
  TW_TRY(best, database->best(workload, target));
  outcome.best = best;
  status.phase = "done";
  return Ok{};
}

Tuner::Tuner(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Tuner::~Tuner() = default;

Result<std::unique_ptr<Tuner>> Tuner::start(TuneTask task, TunerOptions options, std::shared_ptr<Database> database) {
  auto impl = std::make_unique<Impl>();
  impl->task = std::move(task);
  impl->options = std::move(options);
  impl->database = std::move(database);
  TW_RETURN_IF_ERROR(impl->open());
  return std::unique_ptr<Tuner>(new Tuner(std::move(impl)));
}

Status Tuner::step(double seconds) {
  Impl& t = *impl_;
  Clock::time_point start = Clock::now();
  while (!finished()) {
    if (t.options.seconds > 0 && seconds_since(t.started) > t.options.seconds && t.outcome.stop_reason.empty()) {
      t.outcome.stop_reason = "seconds";
    }
    TW_RETURN_IF_ERROR(t.refill());
    double left = seconds - seconds_since(start);
    if (left <= 0) return Ok{};
    auto wait = std::chrono::milliseconds(static_cast<int64_t>(std::clamp(left, 0.001, 0.05) * 1000));
    for (const Measured& measured : t.pipeline->poll(wait)) TW_RETURN_IF_ERROR(t.take(measured));
    if (auto failure = t.pipeline->failure()) return *failure;
    if (t.in_flight.empty() && !t.wants_more()) {
      std::string reason = t.outcome.stop_reason;
      if (reason.empty()) reason = t.out_of_candidates ? "exhausted" : "trials";
      return t.settle(reason);
    }
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
