#include "search/measure/pipeline_loop.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <system_error>

#include "search/measure/control_block.h"
#include "search/measure/process_limits.h"
#include "support/ranges.h"

namespace tilewright::search {
namespace {

constexpr double kStartSeconds = 30;
/// Between two looks at a process that was killed and is not gone yet.
constexpr auto kReapInterval = std::chrono::milliseconds(1);
/// More builders than this would wait for the one that measures.
constexpr int kMaxDefaultBuilders = 4;
/// A build that is this short does not delay measurements much.
constexpr double kShortBuildSeconds = 0.1;
/// Candidates built per builder before the first is measured, if building and measuring alternate.
constexpr size_t kBatchPerBuilder = 4;

}  // namespace

// Never destroyed: threads of the host program may be at work until the process is gone.
std::mutex& MeasurePipeline::Loop::all_mutex() {
  static auto* const mutex = new std::mutex;
  return *mutex;
}
std::vector<MeasurePipeline::Loop*>& MeasurePipeline::Loop::all() {
  static auto* const loops = new std::vector<Loop*>;
  return *loops;
}

MeasurePipeline::Loop::Loop(std::shared_ptr<Arguments> arguments, const PipelineOptions& options, CpuPlan plan,
                            std::string helper)
    : arguments_(std::move(arguments)),
      options_(options),
      plan_(std::move(plan)),
      helper_(std::move(helper)),
      owner_(::getpid()),
      incumbent_(options.race.incumbent),
      run_timeout_(options.run_timeout) {
  const int available = std::clamp(static_cast<int>(plan_.build.size()), 1, kMaxDefaultBuilders);
  const int builders = options.measures_only ? 0 : options.builders > 0 ? options.builders : available;
  const bool has_guest = builders > 0 && options.builders == 0 && !plan_.exclusive;
  workers_.resize(static_cast<size_t>(builders) + 1 + (has_guest ? 1 : 0));
  workers_.front().measures = true;
  workers_.back().is_guest = has_guest;
}

Status MeasurePipeline::Loop::start() {
  wake_fd_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake_fd_ < 0) {
    return resource_error("measure/helper-start", fmt::format("no event descriptor ({})", std::strerror(errno)),
                          "check the limit on open files (ulimit -n)");
  }
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error& error) {
    return resource_error("measure/helper-start", fmt::format("no thread for the helpers ({})", error.what()),
                          "check the limit on processes (ulimit -u)");
  }
  const std::lock_guard lock(all_mutex());
  all().push_back(this);
  return Ok{};
}

MeasurePipeline::Loop::~Loop() {
  {
    const std::lock_guard lock(all_mutex());
    std::erase(all(), this);
  }
  cancel();
  if (thread_.joinable()) thread_.join();
  if (wake_fd_ >= 0) ::close(wake_fd_);
}

void MeasurePipeline::Loop::run() {
  // Signals belong to the host program's threads; those that a write to a dead helper would raise come as error codes.
  sigset_t all;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
  stay_on(options_.measures_only ? plan_.measure : plan_.build);
  while (true) {
    try {
      if (step()) break;
    } catch (const std::bad_alloc&) {
      halt(resource_error("measure/memory", "no memory left in this process", "measure fewer candidates at once"));
    }
  }
  ended_ = true;
}

bool MeasurePipeline::Loop::step() {
  if (cancel_ && !stopping_) halt(std::nullopt);
  take_inbox();
  if (drop_.exchange(false) && !stopping_) drop_all();
  if (!stopping_) dispatch();
  publish_pids();
  if (stopping_ && is_finished()) return true;
  wait_for_events();
  for (Worker& worker : workers_) look_at_deadline(worker);
  return false;
}

bool MeasurePipeline::Loop::is_finished() const {
  const auto is_gone = [](const Worker& worker) { return worker.state == State::kNone; };
  if (!all_of(workers_, is_gone)) return false;
  const std::lock_guard lock(mutex_);
  return inbox_.empty() && !finals_inbox_;
}

Diagnostic MeasurePipeline::Loop::stop_reason() const {
  return failure_ ? *failure_ : resource_error("measure/canceled", "the measurement was canceled");
}

void MeasurePipeline::Loop::take_inbox() {
  std::deque<Candidate> arrived;
  {
    const std::lock_guard lock(mutex_);
    arrived.swap(inbox_);
    if (finals_inbox_) finals_ = std::exchange(finals_inbox_, std::nullopt);
  }
  for (Candidate& candidate : arrived) {
    Job job;
    job.result.id = candidate.id;
    job.result.entry = candidate.entry;
    job.candidate = std::move(candidate);
    if (stopping_) {
      finish(std::move(job), Outcome::kCanceled, stop_reason());
    } else if (job.candidate.object) {
      job.result.object = job.candidate.object;
      to_measure_.push_back(std::move(job));
    } else {
      to_build_.push_back(std::move(job));
    }
  }
  if (stopping_ && finals_) finish_finals(FinalsResult{.error = stop_reason()});
}

void MeasurePipeline::Loop::dispatch() {
  if (!options_.builds_only) ensure_process(workers_.front());
  if (finals_) {
    dispatch_finals();
    return;
  }
  if (exclusive_phase_allows(true)) dispatch_builds();
  if (exclusive_phase_allows(false)) dispatch_measurement();
}

bool MeasurePipeline::Loop::exclusive_phase_allows(bool building) {
  if (!plan_.exclusive) return true;
  const bool measuring = workers_.front().is_busy();
  const bool compiling = std::any_of(workers_.begin() + 1, workers_.end(), [](auto& w) { return w.is_busy(); });
  if (building_phase_ && !compiling &&
      (to_build_.empty() || to_measure_.size() >= kBatchPerBuilder * (workers_.size() - 1)))
    building_phase_ = false;
  if (!building_phase_ && !measuring && to_measure_.empty()) building_phase_ = true;
  if (building) return building_phase_ && to_measure_.size() < kBatchPerBuilder * (workers_.size() - 1);
  return !building_phase_;
}

void MeasurePipeline::Loop::dispatch_builds() {
  for (size_t i = 1; i < workers_.size() && !to_build_.empty() && !stopping_; ++i) {
    Worker& worker = workers_[i];
    if (worker.is_guest && !guest_may_build()) continue;
    ensure_process(worker);
    if (worker.state == State::kIdle) build_next(worker);
  }
}

bool MeasurePipeline::Loop::guest_may_build() const {
  return workers_.front().state == State::kIdle && to_measure_.empty() && last_build_seconds_ < kShortBuildSeconds;
}

void MeasurePipeline::Loop::build_next(Worker& worker) {
  worker.job = std::move(to_build_.front());
  to_build_.pop_front();
  worker.request = next_request_++;
  worker.state = State::kBuilding;
  begin_limit(worker, options_.build_timeout);
  worker.process->clear_log();
  worker.process->post(
      encode_message(BuildRequest{worker.request, worker.job->candidate.module, worker.job->candidate.options}));
}

void MeasurePipeline::Loop::dispatch_measurement() {
  Worker& worker = workers_.front();
  if (worker.state != State::kIdle || to_measure_.empty() || guest_builds()) return;
  auto next = to_measure_.begin();
  if (arguments_->expects_reference()) {
    next = std::find_if(next, to_measure_.end(), [](const Job& job) { return job.candidate.reference; });
    if (next == to_measure_.end()) return;
  }
  worker.job = std::move(*next);
  to_measure_.erase(next);
  worker.request = next_request_++;
  worker.state = State::kChecking;
  if (const auto& beside = worker.job->candidate.incumbent; beside && (!beside_ || *beside != *beside_)) {
    beside_ = beside;
    fastest_ = {};
  }
  arguments_->prepare_outputs();
  arguments_->control().call_began = 0;
  arguments_->control().crashed = 0;
  const double best = incumbent();
  const Candidate& candidate = worker.job->candidate;
  begin_limit(worker, candidate.reference ? options_.reference_timeout
                      : candidate.check_only || candidate.is_baseline
                          ? run_timeout_
                          : std::min(run_timeout_, options_.race.first_stop_ratio * best + options_.kill_grace));
  worker.process->clear_log();
  worker.process->post(
      encode_message(MeasureRequest{worker.request, *worker.job->result.object, candidate.entry, options_.cold,
                                    candidate.incumbent ? *candidate.incumbent : std::string()}));
}

void MeasurePipeline::Loop::dispatch_finals() {
  const bool busy = any_of(workers_, [](auto& w) { return w.is_busy(); });
  Worker& worker = workers_.front();
  if (busy || worker.state != State::kIdle) return;
  TurnsRequest request;
  request.id = worker.request = next_request_++;
  for (const FinalsRequest::Kernel& kernel : finals_->kernels) {
    request.objects.push_back(kernel.object ? *kernel.object : "");
    request.entries.push_back(kernel.entry);
  }
  request.baselines = static_cast<int32_t>(finals_->baselines);
  request.rounds = finals_->rounds;
  request.slice_seconds = finals_->slice_seconds;
  request.budget_seconds = finals_->budget_seconds;
  request.cold = options_.cold;
  worker.state = State::kFinals;
  // The budget is checked between rounds; loading and the last round come on top.
  begin_limit(worker, 2 * finals_->budget_seconds + run_timeout_);
  arguments_->prepare_outputs();
  arguments_->control().crashed = 0;
  worker.process->clear_log();
  worker.process->post(encode_message(request));
}

void MeasurePipeline::Loop::ensure_process(Worker& worker) {
  if (worker.state != State::kNone || stopping_) return;
  Result<HelperProcess> process = HelperProcess::start(helper_, worker.measures ? "measure" : "build",
                                                       worker.measures ? arguments_->shared_fd() : -1);
  if (!process.ok()) {
    halt(process.error());
    return;
  }
  worker.process = std::move(*process);
  worker.state = State::kStarting;
  worker.was_ready = false;
  worker.verdict.reset();
  begin_limit(worker, kStartSeconds);
  const std::lock_guard lock(mutex_);
  ++counters_.helpers_started;
}

void MeasurePipeline::Loop::wait_for_events() {
  std::vector<pollfd> files{{wake_fd_, POLLIN, 0}};
  std::vector<std::pair<Worker*, bool>> owners{{nullptr, false}};
  auto next = Clock::now() + std::chrono::hours(1);
  for (Worker& worker : workers_) {
    if (worker.state == State::kNone) continue;
    if (worker.state != State::kIdle) next = std::min(next, worker.deadline);
    if (worker.state != State::kDying) {
      const bool writes = worker.process->wants_to_write();
      files.push_back({worker.process->connection(), static_cast<short>(writes ? POLLIN | POLLOUT : POLLIN), 0});
      owners.emplace_back(&worker, false);
    }
    if (worker.process->log() >= 0) {
      files.push_back({worker.process->log(), POLLIN, 0});
      owners.emplace_back(&worker, true);
    }
  }
  const auto wait = std::max(next - Clock::now(), Clock::duration::zero());
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(wait);
  account();
  const timespec timeout{seconds.count(), static_cast<long>((wait - seconds).count())};
  if (::ppoll(files.data(), files.size(), &timeout, nullptr) <= 0) return;
  if (files[0].revents) {
    uint64_t count;
    ssize_t ignored = ::read(wake_fd_, &count, sizeof count);
    (void)ignored;
  }
  // Logs first: they explain what the connection is about to report.
  for (size_t i = 1; i < files.size(); ++i) {
    if (files[i].revents && owners[i].second) owners[i].first->process->read_log();
  }
  for (size_t i = 1; i < files.size(); ++i) {
    if (!files[i].revents || owners[i].second) continue;
    if (files[i].revents & POLLOUT) owners[i].first->process->write_some();
    if (files[i].revents & ~POLLOUT) on_readable(*owners[i].first);
    account();
  }
}

void MeasurePipeline::Loop::look_at_deadline(Worker& worker) {
  if (worker.state == State::kNone || worker.state == State::kIdle) return;
  if (worker.state == State::kDying) {
    int wait_status = 0;
    if (worker.process->reap(wait_status)) {
      worker.process->read_log();
      on_dead(worker, wait_status);
    } else {
      worker.deadline = Clock::now() + kReapInterval;
    }
    return;
  }
  if (Clock::now() < worker.deadline) return;
  const double taken = std::chrono::duration<double>(Clock::now() - worker.since).count();
  if (worker.state == State::kChecking) {
    look_at_call(worker);
  } else if (!extend_limit(worker, taken, worker.limit)) {
    on_timeout(worker);
  }
}

void MeasurePipeline::Loop::halt(const std::optional<Diagnostic>& why) {
  stopping_ = true;
  {
    // First: who sees a canceled candidate may ask why.
    const std::lock_guard lock(mutex_);
    failure_ = why;
  }
  for (Worker& worker : workers_) {
    if (worker.job) finish(std::move(*worker.job), Outcome::kCanceled, stop_reason());
    worker.job.reset();
    if (worker.state != State::kNone) lose(worker);
  }
  drop_queued();
  if (finals_) finish_finals(FinalsResult{.error = stop_reason()});
  const std::lock_guard lock(mutex_);
  halted_ = true;
  changed_.notify_all();
}

void MeasurePipeline::Loop::drop_queued() {
  for (std::deque<Job>* queue : {&to_build_, &to_measure_}) {
    for (Job& job : *queue) finish(std::move(job), Outcome::kCanceled, stop_reason());
    queue->clear();
  }
}

void MeasurePipeline::Loop::drop_all() {
  for (Worker& worker : workers_) {
    if (!worker.job) continue;
    finish(std::move(*worker.job), Outcome::kCanceled, stop_reason());
    worker.job.reset();
    if (worker.state != State::kDying) lose(worker);
  }
  drop_queued();
}

void MeasurePipeline::Loop::publish_pids() {
  std::vector<int> pids;
  for (const Worker& worker : workers_) {
    if (worker.process && worker.process->pid() > 0) pids.push_back(worker.process->pid());
  }
  const std::lock_guard lock(mutex_);
  pids_ = std::move(pids);
}

Activity MeasurePipeline::Loop::activity() const {
  const Worker& measuring = workers_.front();
  switch (measuring.state) {
    case State::kChecking:
      return measuring.job && measuring.job->candidate.reference ? Activity::kReference : Activity::kChecking;
    case State::kTiming:
      return Activity::kMeasuring;
    case State::kFinals:
      return Activity::kFinals;
    case State::kNone:
    case State::kStarting:
    case State::kIdle:
    case State::kBuilding:
    case State::kDying:
      break;
  }
  const auto some = [&](State state) {
    return any_of(workers_, [&](const Worker& worker) { return worker.state == state; });
  };
  if (some(State::kBuilding)) return Activity::kBuilding;
  return some(State::kStarting) || some(State::kDying) ? Activity::kStarting : Activity::kNothing;
}

void MeasurePipeline::Loop::account() {
  const auto builds = [](const Worker& worker) { return worker.state == State::kBuilding; };
  const Activity now = activity();
  const std::lock_guard lock(mutex_);
  const Clock::time_point time = Clock::now();
  const double seconds = std::chrono::duration<double>(time - accounted_).count();
  activities_.seconds[static_cast<size_t>(activity_)] += seconds;
  activities_.building += static_cast<double>(builds_) * seconds;
  accounted_ = time;
  activity_ = now;
  builds_ = static_cast<size_t>(std::ranges::count_if(workers_, builds));
}

std::chrono::nanoseconds MeasurePipeline::Loop::from_seconds(double seconds) {
  return std::chrono::nanoseconds(static_cast<int64_t>(std::clamp(seconds, 0.0, 1e6) * 1e9));
}

}  // namespace tilewright::search
