#include "search/tuner.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "ir/structural.h"
#include "lower/pipeline.h"
#include "search/measure/candidate.h"
#include "search/measure/process_limits.h"

namespace tilewright::search {
namespace {

using Clock = std::chrono::steady_clock;
using schedule::Random;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
/// So many attempts in a row that give nothing new mean that nothing new is left: a point that is drawn once in 400
/// attempts is missed with a probability of 0.7 %.
constexpr int64_t kFruitlessAttempts = 2000;
/// A space that does not return costs its deadline each time.
constexpr int64_t kMaxOverdueDraws = 3;
constexpr size_t kFinalists = 4;
/// Of so many best candidates one is drawn whose neighbor is tried.
constexpr size_t kParents = 4;
/// Another stream than those of the candidates themselves.
constexpr uint64_t kWhichParent = 2;
/// Numbers that no candidate has.
constexpr uint64_t kReferenceId = UINT64_MAX, kFirstFinalistId = uint64_t{1} << 63;
/// Longer steps would keep the caller from showing progress, and from Ctrl-C.
constexpr double kRefillSeconds = 0.05;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

struct Trial {
  int64_t index = 0;
  std::string trace, decisions;
};

/// A candidate that was measured and is right.
struct Good {
  int64_t record = 0;  ///< in the database
  double seconds = 0;
  std::string trace;
  /// As it is delivered, and checked; of earlier sessions none before the finals.
  std::shared_ptr<const std::string> object;
};

std::string decisions_json(const std::string& trace) {
  // The second half of [[instructions], [[step, decision], ...]].
  auto json = nlohmann::json::parse(trace, nullptr, false);
  return json.is_array() && json.size() == 2 ? json[1].dump() : "[]";
}

std::string tolerances_json(const Arguments& arguments) {
  std::string text;
  for (size_t i = 0; i < arguments.specs().size(); ++i) {
    const ArgumentSpec& spec = arguments.specs()[i];
    if (spec.role == Role::kInput) continue;
    text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", nlohmann::json(spec.name).dump(),
                        arguments.tolerance(i).to_json());
  }
  return text;
}

using Reasons = std::map<std::string, std::pair<int64_t, std::string>>;

void note(Reasons& reasons, const Diagnostic& error) {
  auto& [count, message] = reasons[error.code.empty() ? "unknown" : error.code];
  if (count++ == 0) message = error.message;
}

/// Keeps the calling thread off the processors of the kernel that is being measured.
class AwayFromMeasuring {
 public:
  explicit AwayFromMeasuring(const CpuPlan& plan) {
    if (plan.exclusive || ::sched_getaffinity(0, sizeof before_, &before_) != 0) return;
    stay_on(plan.build);
    moved_ = true;
  }
  ~AwayFromMeasuring() {
    if (moved_) ::sched_setaffinity(0, sizeof before_, &before_);
  }
  AwayFromMeasuring(const AwayFromMeasuring&) = delete;
  AwayFromMeasuring& operator=(const AwayFromMeasuring&) = delete;

 private:
  cpu_set_t before_;
  bool moved_ = false;
};

}  // namespace

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
  int64_t fruitless = 0, overdue = 0;
  std::unordered_set<int64_t> measured_before;
  std::unordered_set<Hash128> seen;
  std::map<uint64_t, Trial> in_flight;
  std::map<int64_t, Good> good;  // by index
  std::vector<Good> finalists;
  size_t unbuilt_finalists = 0;  // that are being built and checked
  std::string program_check = "unchecked";
  int64_t last_record = 0;  // the latest that this process knows of
  std::vector<double> build_seconds;
  bool out_of_candidates = false;
  bool draining = false;  // where drawing and measuring take turns: what was drawn is being measured
  TuneProgress status;
  TuneResult outcome;

  Status open();
  Status resume();
  Result<bool> had_finals();
  Status submit_reference();
  Status refill();
  std::string draw_parent() const;
  std::optional<Diagnostic> draw_one();
  Status take(const Measured& measured);
  Status take_reference(const Measured& measured);
  Status note_good(int64_t index, Good candidate);
  Status settle(const std::string& reason);
  Status begin_finals();
  Status take_finalist(const Measured& measured);
  Status begin_turns();
  Status end_finals(const FinalsResult& result);
  Status finish_search();
  void note_failure(const Diagnostic& error);
  void note_refusal(const Diagnostic& error);
  SessionKey key() const { return {workload, target, task.space, options.seed}; }
  bool is_full();
  bool wants_more() const { return outcome.stop_reason.empty() && next_index < options.trials && !out_of_candidates; }
};

bool Tuner::Impl::is_full() {
  draining = draining && !in_flight.empty();
  if (in_flight.empty()) return false;
  const bool full = in_flight.begin()->second.index + kLag <= next_index;
  // Where the kernel has the whole machine, drawing waits until nothing is being measured.
  if (full && pipeline->cpu_plan().exclusive) draining = true;
  return full || draining;
}

void Tuner::Impl::note_failure(const Diagnostic& error) { note(status.failures, error); }

void Tuner::Impl::note_refusal(const Diagnostic& error) {
  note(status.failures, error);
  note(status.refusals, error);
}

Status Tuner::Impl::open() {
  workload = structural_hash(task.module);
  target = options.target.str();
  status.total = options.trials;
  status.best_seconds = kInfinity;
  status.phase = "reference";
  TW_RETURN_IF_ERROR(database->commit_workload(workload, task.name, task.script));
  if (options.fresh) TW_RETURN_IF_ERROR(database->forget_session(key()));
  TW_RETURN_IF_ERROR(resume());
  TW_TRY(compared, had_finals());
  if (status.trials >= options.trials && compared) return settle("trials");
  TW_TRY(made, task.arguments());
  arguments = made;
  if (status.best_seconds < kInfinity) options.pipeline.race.incumbent = status.best_seconds;
  auto started_pipeline = MeasurePipeline::start(arguments, options.pipeline);
  if (!started_pipeline.ok()) return std::move(started_pipeline.error());
  pipeline = std::move(*started_pipeline);
  return submit_reference();
}

Status Tuner::Impl::resume() {
  TW_TRY(records, database->session_records(key()));
  for (const Record& record : records) {
    measured_before.insert(record.index);
    ++status.outcomes[record.outcome];
    last_record = std::max(last_record, record.id);
    if (record.is_ok()) TW_RETURN_IF_ERROR(note_good(record.index, {record.id, record.median(), record.trace, {}}));
  }
  status.earlier = status.trials = static_cast<int64_t>(measured_before.size());
  return Ok{};
}

/// The best of what is known were timed against one another.
Result<bool> Tuner::Impl::had_finals() {
  if (good.empty()) return true;
  TW_TRY(finals, database->finals(workload, target));
  return finals && finals->last_record >= last_record;
}

Status Tuner::Impl::submit_reference() {
  auto lowered = lower::lower(task.module, options.target);
  if (!lowered.ok()) return std::move(lowered.error());
  Candidate candidate = make_candidate(kReferenceId, *lowered, options.target, task.function);
  candidate.reference = true;
  pipeline->submit(std::move(candidate));
  return Ok{};
}

Status Tuner::Impl::note_good(int64_t index, Good candidate) {
  if (candidate.seconds < status.best_seconds) {
    status.best_seconds = candidate.seconds;
    status.best_index = index;
  }
  good.emplace(index, std::move(candidate));
  return Ok{};
}

std::string Tuner::Impl::draw_parent() const {
  if (next_index < kRandomStart || next_attempt % 2 == 0) return "";
  std::vector<const Good*> known;
  for (const auto& [index, candidate] : good) {
    if (index <= next_index - kLag) known.push_back(&candidate);
  }
  if (known.empty()) return "";
  // Stable, so that equal times are told apart by their index.
  std::stable_sort(known.begin(), known.end(), [](const Good* a, const Good* b) { return a->seconds < b->seconds; });
  const size_t count = std::min(known.size(), kParents);
  Random random = Random::derive(options.seed, kWhichParent, next_attempt);
  // The smaller of two: the best is drawn most often.
  const uint64_t first = random.below(count), second = random.below(count);
  return known[std::min(first, second)]->trace;
}

std::optional<Diagnostic> Tuner::Impl::draw_one() {
  const std::string parent = draw_parent();
  const uint64_t attempt = next_attempt++;
  ++status.attempts;
  ++fruitless;
  auto drawn = task.source->draw({options.seed, attempt, parent});
  if (!drawn.ok()) {
    ++status.refused;
    return drawn.error();
  }
  if (!*drawn || !seen.insert(structural_hash((*drawn)->module)).second) {
    ++status.duplicates;
    return std::nullopt;
  }
  // What was meant for registers and does not fit is never the fastest: no time is spent on building it.
  lower::LowerOptions lowering;
  lowering.require_registers = true;
  lowering.check_races = false;
  auto lowered = lower::lower((*drawn)->module, options.target, lowering);
  if (!lowered.ok() && lowered.error().code == "lower/not-in-registers") {
    ++status.refused;
    return lowered.error();
  }
  fruitless = 0;
  const int64_t index = next_index++;
  if (measured_before.count(index)) return std::nullopt;
  const auto id = static_cast<uint64_t>(index);
  in_flight.emplace(id, Trial{index, (*drawn)->trace, decisions_json((*drawn)->trace)});
  if (lowered.ok()) {
    pipeline->submit(make_candidate(id, *lowered, options.target, task.function));
    return std::nullopt;
  }
  // A candidate that cannot be lowered is a trial like any other that fails: it is recorded.
  Measured failed;
  failed.outcome = Outcome::kBuildError;
  failed.error = lowered.error();
  failed.id = id;
  auto taken = take(failed);
  if (!taken.ok()) return taken.error();
  return std::nullopt;
}

Status Tuner::Impl::refill() {
  // Redrawing what was measured before is cheap, but a step must stay short.
  const Clock::time_point start = Clock::now();
  while (wants_more() && !is_full() && seconds_since(start) < kRefillSeconds) {
    if (auto error = draw_one()) {
      if (error->blame == Blame::kResource && error->code != "space/deadline") return *error;
      note_refusal(*error);
      if (error->code == "space/deadline" && ++overdue >= kMaxOverdueDraws) return *error;
    }
    if (fruitless >= kFruitlessAttempts) out_of_candidates = true;
  }
  return Ok{};
}

Status Tuner::Impl::take_reference(const Measured& measured) {
  if (measured.outcome == Outcome::kCanceled) return Ok{};
  if (measured.is_ok()) {
    status.reference_seconds = measured.median();
    if (task.judge_reference) {
      TW_TRY(extent, task.judge_reference(*arguments));
      program_check = extent;
    }
    status.phase = "search";
    return Ok{};
  }
  // The kernel's own words may go on with a hint of theirs.
  const std::string message =
      fmt::format("'{}' as it was written, which results are compared with, failed: {}", task.name,
                  measured.error.message.substr(0, measured.error.message.find('\n')));
  switch (measured.outcome) {
    case Outcome::kRunTimeout:
      return resource_error("tune/reference", message, "does it end? If so, tune it for smaller shapes");
    case Outcome::kOutOfMemory:
      return resource_error("tune/reference", message, "tune it for smaller shapes, or free some memory");
    case Outcome::kBuildError:
    case Outcome::kBuildTimeout:
    case Outcome::kBuildCrash:
      return measured.error;
    default:
      return script_error("tune/reference", message,
                          "arrays that hold indices are given with inputs={name: array}; calling "
                          "tw.compile(program, target='interpreter') names the block and the index");
  }
}

Status Tuner::Impl::take(const Measured& measured) {
  if (measured.id == kReferenceId) return take_reference(measured);
  if (measured.id >= kFirstFinalistId) return take_finalist(measured);
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
  record.verification =
      fmt::format(R"({{"tolerance": {{{}}}, "largest_share_of_allowed": {:.6g}, "program": {}}})",
                  tolerances_json(*arguments), measured.check.largest, nlohmann::json(program_check).dump());
  auto committed = database->commit(record, {task.space, fmt::format(R"({{"attempts": {}}})", status.attempts)});
  if (!committed.ok()) return std::move(committed.error());
  last_record = std::max(last_record, *committed);
  ++status.trials;
  ++status.outcomes[record.outcome];
  if (!measured.is_ok() && measured.outcome != Outcome::kSlowStopped) note_failure(measured.error);
  if (measured.build_seconds > 0) build_seconds.push_back(measured.build_seconds);
  if (!record.is_ok()) return Ok{};
  return note_good(trial.index, {*committed, record.median(), record.trace, measured.object});
}

/// The fastest of this session, and what was the best before. What this session has not built and checked is built, as
/// it is delivered, and checked now: a record may come from another version.
Status Tuner::Impl::begin_finals() {
  for (const auto& [index, candidate] : good) finalists.push_back(candidate);
  std::stable_sort(finalists.begin(), finalists.end(), [](auto& a, auto& b) { return a.seconds < b.seconds; });
  if (finalists.size() > kFinalists) finalists.resize(kFinalists);
  TW_TRY(before, database->best(workload, target));
  const auto is_there = [&](const Good& candidate) { return candidate.record == before->id; };
  if (before && std::none_of(finalists.begin(), finalists.end(), is_there))
    finalists.push_back({before->id, before->median(), before->trace, {}});
  status.phase = "finals";
  for (size_t i = 0; i < finalists.size(); ++i) {
    if (finalists[i].object) continue;
    auto drawn = redraw(task.module, finalists[i].trace);
    if (!drawn.ok()) continue;
    lower::LowerOptions lowering;
    lowering.check_races = false;
    auto lowered = lower::lower(drawn->module, options.target, lowering);
    if (!lowered.ok()) continue;
    Candidate candidate = make_candidate(kFirstFinalistId + i, *lowered, options.target, task.function);
    candidate.check_only = true;
    pipeline->submit(std::move(candidate));
    ++unbuilt_finalists;
  }
  return unbuilt_finalists ? Status(Ok{}) : begin_turns();
}

Status Tuner::Impl::take_finalist(const Measured& measured) {
  if (measured.is_ok()) {
    finalists[measured.id - kFirstFinalistId].object = measured.object;
  } else if (measured.outcome != Outcome::kCanceled) {
    note_failure(measured.error);
  }
  return --unbuilt_finalists ? Status(Ok{}) : begin_turns();
}

Status Tuner::Impl::begin_turns() {
  std::erase_if(finalists, [](const Good& candidate) { return !candidate.object; });
  if (finalists.size() < 2) return end_finals({});
  FinalsRequest request;
  for (const Good& candidate : finalists) request.kernels.push_back({candidate.object, task.function});
  pipeline->begin_finals(std::move(request));
  return Ok{};
}

Status Tuner::Impl::end_finals(const FinalsResult& result) {
  if (outcome.stop_reason == "canceled") return settle(outcome.stop_reason);
  if (result.error) note_failure(*result.error);
  // Without a round that nothing disturbed, the order stays that of the search.
  Finals finals;
  double best = kInfinity;
  for (size_t i = 0; i < finalists.size(); ++i) {
    Record times;
    const bool timed = !result.error && i < result.seconds.size() && !result.seconds[i].empty();
    times.seconds = timed ? result.seconds[i] : std::vector<double>{finalists[i].seconds};
    if (times.median() >= best) continue;
    best = times.median();
    finals = {finalists[i].record, times.seconds, last_record};
    outcome.object = finalists[i].object;
  }
  if (finals.winner) TW_RETURN_IF_ERROR(database->commit_finals(workload, target, finals));
  TW_RETURN_IF_ERROR(settle(outcome.stop_reason));
  // What failed as it would be delivered is not delivered.
  if (finalists.empty()) outcome.best.reset();
  return Ok{};
}

Status Tuner::Impl::finish_search() {
  std::string& reason = outcome.stop_reason;
  if (reason.empty()) reason = out_of_candidates ? "exhausted" : "trials";
  TW_TRY(compared, had_finals());
  return reason == "canceled" || compared ? settle(reason) : begin_finals();
}

Status Tuner::Impl::settle(const std::string& reason) {
  outcome.stop_reason = reason;
  TW_TRY(best, database->best(workload, target));
  outcome.best = best;
  // The times of the finals: the lowest of many times of the search is low by chance, too.
  if (best && best->seed == options.seed && good.contains(best->index)) {
    status.best_seconds = best->median();
    status.best_index = best->index;
  }
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
  if (finished()) return Ok{};
  const Clock::time_point start = Clock::now();
  const AwayFromMeasuring away(t.pipeline->cpu_plan());
  while (!finished()) {
    const double left = seconds - seconds_since(start);
    if (left <= 0) return Ok{};
    auto wait = std::chrono::milliseconds(static_cast<int64_t>(std::clamp(left, 0.001, 0.05) * 1000));
    if (t.status.phase == "finals" && t.unbuilt_finalists == 0) {
      if (auto result = t.pipeline->poll_finals(wait)) TW_RETURN_IF_ERROR(t.end_finals(*result));
      continue;
    }
    if (t.options.seconds > 0 && seconds_since(t.started) > t.options.seconds && t.outcome.stop_reason.empty()) {
      t.outcome.stop_reason = "seconds";
    }
    if (t.status.phase == "finals") {
      for (const Measured& measured : t.pipeline->poll(wait)) TW_RETURN_IF_ERROR(t.take(measured));
      if (auto failure = t.pipeline->failure()) return *failure;
      continue;
    }
    TW_RETURN_IF_ERROR(t.refill());
    if (t.wants_more() && !t.is_full()) wait = std::chrono::milliseconds(0);
    for (const Measured& measured : t.pipeline->poll(wait)) TW_RETURN_IF_ERROR(t.take(measured));
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
