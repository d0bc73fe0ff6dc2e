#include "search/measure/pipeline.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "search/measure/pipeline_loop.h"
#include "support/ranges.h"

namespace tilewright::search {
namespace {

double median_of(std::vector<double> values) {
  if (values.empty()) return std::numeric_limits<double>::infinity();
  std::ranges::sort(values);
  const size_t middle = values.size() / 2;
  return values.size() % 2 ? values[middle] : 0.5 * (values[middle - 1] + values[middle]);
}

}  // namespace

std::map<std::string, double> Activities::beside() const {
  const auto of = [&](Activity activity) { return seconds[static_cast<size_t>(activity)]; };
  return {{"building", building},
          {"checking", of(Activity::kChecking) + of(Activity::kReference)},
          {"measuring", of(Activity::kMeasuring) + of(Activity::kFinals)}};
}

double Measured::median() const { return median_of(seconds); }

int64_t Counters::done() const { return std::accumulate(count.begin(), count.end(), int64_t{0}); }

// State shared by callers and the thread.

void MeasurePipeline::Loop::wake() {
  const uint64_t one = 1;
  ssize_t ignored = ::write(wake_fd_, &one, sizeof one);
  (void)ignored;
}

void MeasurePipeline::Loop::submit(Candidate candidate) {
  {
    const std::lock_guard lock(mutex_);
    ++outstanding_;
    ++counters_.submitted;
    if (halted_) {
      // The thread may be gone already.
      Measured result;
      result.id = candidate.id;
      result.entry = std::move(candidate.entry);
      result.outcome = Outcome::kCanceled;
      result.error = stop_reason();
      ++counters_.count[static_cast<size_t>(Outcome::kCanceled)];
      outbox_.push_back(std::move(result));
      return;
    }
    inbox_.push_back(std::move(candidate));
  }
  wake();
}

size_t MeasurePipeline::Loop::outstanding() const {
  const std::lock_guard lock(mutex_);
  return outstanding_;
}

std::vector<Measured> MeasurePipeline::Loop::poll(std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, timeout, [&] { return !outbox_.empty() || outstanding_ == 0; });
  std::vector<Measured> results(std::make_move_iterator(outbox_.begin()), std::make_move_iterator(outbox_.end()));
  outbox_.clear();
  outstanding_ -= results.size();
  return results;
}

void MeasurePipeline::Loop::set_incumbent(double seconds) {
  const std::lock_guard lock(mutex_);
  incumbent_ = seconds;
}

double MeasurePipeline::Loop::incumbent() const {
  const std::lock_guard lock(mutex_);
  return incumbent_;
}

void MeasurePipeline::Loop::begin_finals(FinalsRequest request) {
  {
    const std::lock_guard lock(mutex_);
    finals_outbox_.reset();
    if (halted_) {
      finals_outbox_ = FinalsResult{.error = stop_reason()};
      return;
    }
    finals_inbox_ = std::move(request);
  }
  wake();
}

std::optional<FinalsResult> MeasurePipeline::Loop::poll_finals(std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, timeout, [&] { return finals_outbox_.has_value(); });
  return std::exchange(finals_outbox_, std::nullopt);
}

void MeasurePipeline::Loop::drop() {
  drop_ = true;
  wake();
}

void MeasurePipeline::Loop::cancel() {
  cancel_ = true;
  wake();
  // The thread looks at the flag in everything that may take long; should it be late all the same, it will get there.
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, std::chrono::milliseconds(150), [&] { return halted_; });
}

bool MeasurePipeline::Loop::cancel_all(std::chrono::milliseconds wait) {
  const auto end = Clock::now() + wait;
  const auto has_ended = [](const Loop* loop) { return loop->is_foreign() || loop->ended_; };
  while (true) {
    {
      const std::lock_guard lock(all_mutex());
      for (Loop* loop : all()) {
        if (!has_ended(loop) && !loop->cancel_.exchange(true)) loop->wake();
      }
      if (all_of(all(), has_ended)) return true;
    }
    if (Clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

std::optional<Diagnostic> MeasurePipeline::Loop::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

Counters MeasurePipeline::Loop::counters() const {
  const std::lock_guard lock(mutex_);
  return counters_;
}

Activities MeasurePipeline::Loop::activities() const {
  const std::lock_guard lock(mutex_);
  const double seconds = std::chrono::duration<double>(Clock::now() - accounted_).count();
  Activities so_far = activities_;
  so_far.seconds[static_cast<size_t>(activity_)] += seconds;
  so_far.building += static_cast<double>(builds_) * seconds;
  return so_far;
}

std::vector<int> MeasurePipeline::Loop::helper_pids() const {
  const std::lock_guard lock(mutex_);
  return pids_;
}

// The public face.

MeasurePipeline::MeasurePipeline(std::unique_ptr<Loop> loop) : loop_(std::move(loop)) {}

MeasurePipeline::~MeasurePipeline() {
  // After a fork of the host program, the thread and the helpers belong to the parent.
  if (loop_->is_foreign()) (void)loop_.release();
}

Result<std::unique_ptr<MeasurePipeline>> MeasurePipeline::start(std::shared_ptr<Arguments> arguments,
                                                                const PipelineOptions& options) {
  TW_RETURN_IF_ERROR(arguments->check_complete());
  std::string helper = options.helper;
  if (helper.empty()) {
    TW_TRY(found, find_helper());
    helper = found;
  }
  auto loop = std::make_unique<Loop>(std::move(arguments), options, plan_cpus(usable_processors(), options.threads),
                                     std::move(helper));
  TW_RETURN_IF_ERROR(loop->start());
  return std::unique_ptr<MeasurePipeline>(new MeasurePipeline(std::move(loop)));
}

void MeasurePipeline::submit(Candidate candidate) { loop_->submit(std::move(candidate)); }
size_t MeasurePipeline::outstanding() const { return loop_->outstanding(); }
std::vector<Measured> MeasurePipeline::poll(std::chrono::milliseconds timeout) { return loop_->poll(timeout); }
double MeasurePipeline::incumbent() const { return loop_->incumbent(); }
void MeasurePipeline::begin_finals(FinalsRequest request) { loop_->begin_finals(std::move(request)); }
std::optional<FinalsResult> MeasurePipeline::poll_finals(std::chrono::milliseconds timeout) {
  return loop_->poll_finals(timeout);
}
void MeasurePipeline::drop() { loop_->drop(); }
void MeasurePipeline::cancel() { loop_->cancel(); }
bool MeasurePipeline::cancel_all(std::chrono::milliseconds wait) { return Loop::cancel_all(wait); }
std::optional<Diagnostic> MeasurePipeline::failure() const { return loop_->failure(); }
Counters MeasurePipeline::counters() const { return loop_->counters(); }
Activities MeasurePipeline::activities() const { return loop_->activities(); }
std::vector<int> MeasurePipeline::helper_pids() const { return loop_->helper_pids(); }
const CpuPlan& MeasurePipeline::cpu_plan() const { return loop_->cpu_plan(); }

PairedRatio paired_ratio(const std::vector<double>& first, const std::vector<double>& second) {
  std::vector<double> ratios;
  for (size_t i = 0; i < std::min(first.size(), second.size()); ++i) {
    if (second[i] > 0) ratios.push_back(first[i] / second[i]);
  }
  if (ratios.empty()) return {1, 0, std::numeric_limits<double>::infinity()};
  // The percentile bootstrap (Efron, Tibshirani, "An Introduction to the Bootstrap", chapter 13) with a fixed seed.
  constexpr int kSamples = 1000;
  std::mt19937_64 random(1);
  std::vector<double> medians, sample(ratios.size());
  for (int i = 0; i < kSamples; ++i) {
    for (double& value : sample) value = ratios[random() % ratios.size()];
    medians.push_back(median_of(sample));
  }
  std::ranges::sort(medians);
  return {median_of(ratios), medians[kSamples / 40], medians[kSamples - 1 - kSamples / 40]};
}

}  // namespace tilewright::search
