// Handles the messages of helpers, and candidates whose helper does not answer or dies.
#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "search/measure/control_block.h"
#include "search/measure/pipeline_loop.h"
#include "search/measure/process_limits.h"
#include "support/ranges.h"

namespace tilewright::search {
namespace {

constexpr int kMaxFailedStarts = 3;
/// Times its limit that a helper may take where other programs leave it no processor.
constexpr double kMostWaiting = 100;
/// Tries of a candidate whose helper is killed from outside, for instance by a system without memory. The kill may have
/// been meant for another process, but twice is no coincidence.
constexpr int kMaxRetries = 2;

/// A signal that a process does not raise by computing something.
bool killed_from_outside(int wait_status) {
  if (wait_status == -1 || !WIFSIGNALED(wait_status)) return false;
  const int signal = WTERMSIG(wait_status);
  return signal == SIGKILL || signal == SIGTERM || signal == SIGINT || signal == SIGHUP || signal == SIGQUIT;
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

std::string milliseconds(double seconds) { return fmt::format("{:.3g} ms", seconds * 1e3); }

/// LLVM, libstdc++ and the sanitizers abort when an allocation fails, with these words.
bool complains_of_memory(const std::string& log) {
  for (const char* words : {"out of memory", "std::bad_alloc", "out-of-memory"}) {
    if (log.find(words) != std::string::npos) return true;
  }
  return false;
}

/// Returns ": " and the first line of the helper's log; empty if it has written nothing.
std::string with_log(const HelperProcess& process) {
  const std::string line = first_line(process.log_text());
  return line.empty() ? "" : ": " + line;
}

}  // namespace

void MeasurePipeline::Loop::on_readable(Worker& worker) {
  if (worker.state == State::kDying || worker.state == State::kNone) return;
  const bool open = worker.process->read_some();
  while (worker.state != State::kDying) {
    auto frame = worker.process->next_frame();
    if (!frame.ok()) {
      kill(worker, worker.measures ? Outcome::kRunCrash : Outcome::kBuildCrash, frame.error());
      return;
    }
    if (!*frame) break;
    on_frame(worker, **frame);
  }
  if (!open && worker.state != State::kDying) lose(worker);
}

void MeasurePipeline::Loop::on_frame(Worker& worker, const Frame& frame) {
  bool understood = false;
  switch (worker.state) {
    case State::kStarting:
      understood = on_start_message(worker, frame);
      break;
    case State::kBuilding:
      understood = on_built(worker, frame);
      break;
    case State::kChecking:
      understood = on_checked(worker, frame);
      break;
    case State::kTiming:
      understood = on_measured(worker, frame);
      break;
    case State::kFinals:
      understood = on_timed(worker, frame);
      break;
    case State::kNone:
    case State::kIdle:
    case State::kDying:
      break;
  }
  if (!understood) {
    kill(worker, worker.measures ? Outcome::kRunCrash : Outcome::kBuildCrash,
         resource_error("measure/garbage", "the process sent a message that answers nothing"));
  }
}

bool MeasurePipeline::Loop::on_start_message(Worker& worker, const Frame& frame) {
  Hello hello;
  if (decode_message(frame, hello)) {
    if (hello.version != kProtocolVersion) {
      halt(resource_error("measure/helper-version",
                          fmt::format("the helper {} belongs to another version of Tilewright (protocol {}, not {})",
                                      helper_, hello.version, kProtocolVersion),
                          "reinstall Tilewright"));
      return true;
    }
    worker.process->post(encode_message(setup_for(worker)));
    return true;
  }
  Ready ready;
  if (!decode_message(frame, ready)) return false;
  worker.state = State::kIdle;
  worker.was_ready = true;
  failed_starts_ = 0;
  return true;
}

HelperSetup MeasurePipeline::Loop::setup_for(const Worker& worker) const {
  HelperSetup setup;
  setup.cpus = worker.measures || worker.is_guest ? plan_.measure : plan_.build;
  setup.memory_limit = worker.measures ? options_.run_memory : options_.build_memory;
  setup.threads = options_.threads;
  if (worker.measures && options_.device) setup.driver_cache = driver_cache_.path();
  if (worker.measures) {
    setup.arguments = arguments_->specs();
    setup.scalars = arguments_->scalars();
  }
  return setup;
}

MeasurePipeline::Loop::Job MeasurePipeline::Loop::take_job(Worker& worker) {
  worker.state = State::kIdle;
  return *std::exchange(worker.job, std::nullopt);
}

bool MeasurePipeline::Loop::on_built(Worker& worker, const Frame& frame) {
  BuildReply reply;
  if (!decode_message(frame, reply) || reply.id != worker.request) return false;
  Job job = take_job(worker);
  job.result.build_seconds = last_build_seconds_ = reply.seconds;
  if (reply.outcome != Outcome::kOk) {
    finish(std::move(job), reply.outcome, resource_error(reply.code, reply.message, reply.hint));
    return true;
  }
  job.result.object = std::make_shared<const std::string>(std::move(reply.object));
  job.candidate.module.clear();
  if (job.candidate.build_only) {
    finish(std::move(job), Outcome::kOk);
  } else {
    to_measure_.push_back(std::move(job));
  }
  return true;
}

bool MeasurePipeline::Loop::on_checked(Worker& worker, const Frame& frame) {
  CheckedReply reply;
  if (!decode_message(frame, reply) || reply.id != worker.request) return false;
  if (reply.outcome != Outcome::kOk) {
    Job job = take_job(worker);
    const std::string code = !reply.code.empty()                      ? reply.code
                             : reply.outcome == Outcome::kOutOfMemory ? "measure/memory"
                                                                      : "measure/run-error";
    finish(std::move(job), reply.outcome, resource_error(code, reply.message));
    if (reply.ends) lose(worker);
    return true;
  }
  if (worker.job->candidate.reference) return on_reference(worker, reply);
  Proceed proceed;
  proceed.id = reply.id;
  proceed.rules = options_.race;
  proceed.rules.incumbent = worker.job->candidate.is_baseline ? std::numeric_limits<double>::infinity() : incumbent();
  proceed.fastest = fastest_;
  proceed.best_probe = best_probe_;
  CheckReport& check = worker.job->result.check;
  check = arguments_->check_outputs(&cancel_);
  proceed.go = check.ok() && !worker.job->candidate.check_only;
  worker.process->post(encode_message(proceed));
  if (check.canceled) return true;  // halt() is about to take the candidate
  if (check.ok() && !proceed.go) {
    Job job = take_job(worker);
    job.result.seconds = {std::max(reply.first.wall, 0.0)};
    finish(std::move(job), Outcome::kOk);
    return true;
  }
  if (!proceed.go) {
    Job job = take_job(worker);
    const std::string message = job.result.check.message;
    finish(std::move(job), Outcome::kWrongResult,
           resource_error("measure/wrong-result", message, "the candidate is not stored"));
    return true;
  }
  worker.state = State::kTiming;
  // Beyond the budget comes at most one call, a few times slower than the first; cold calls flush the caches between.
  const double extra = options_.cold ? 10.0 : 2.0;
  begin_limit(worker, 2 * options_.race.budget_seconds + 5 * std::max(reply.first.wall, 0.0) + extra);
  return true;
}

bool MeasurePipeline::Loop::on_reference(Worker& worker, const CheckedReply& reply) {
  Proceed stop;
  stop.id = reply.id;
  worker.process->post(encode_message(stop));
  const Status adopted = arguments_->adopt_outputs();
  Job job = take_job(worker);
  if (!adopted.ok()) {
    finish(std::move(job), Outcome::kWrongResult, adopted.error());
    return true;
  }
  const double seconds = std::max(reply.first.wall, 0.0);
  job.result.seconds = {seconds};
  run_timeout_ = std::min(std::max(options_.run_timeout, 2 * seconds), std::max(1.0, 10 * seconds));
  finish(std::move(job), Outcome::kOk);
  return true;
}

bool MeasurePipeline::Loop::on_measured(Worker& worker, const Frame& frame) {
  MeasureReply reply;
  if (!decode_message(frame, reply) || reply.id != worker.request) return false;
  Job job = take_job(worker);
  best_probe_ = std::max(best_probe_, reply.best_probe);
  Measured& result = job.result;
  result.seconds = std::move(reply.seconds);
  result.contender = reply.contender;
  result.noisy = reply.noisy;
  result.rejected = reply.rejected;
  result.incumbent_seconds = reply.incumbent_seconds;
  if (reply.incumbent_seconds > 0) set_incumbent(fastest_.now(reply.incumbent_seconds));
  // A kernel may be right once and wrong later: threads that race, memory that it leaves dirty.
  CheckReport last;
  if (reply.outcome == Outcome::kOk && reply.has_last_outputs) last = arguments_->check_outputs(&cancel_);
  if (last.wrong > 0) {
    result.seconds.clear();
    result.check = last;
    finish(std::move(job), Outcome::kWrongResult,
           resource_error("measure/wrong-result", "right in the first call, wrong in a later one: " + last.message,
                          "the candidate is not stored"));
  } else if (reply.outcome == Outcome::kOk) {
    if (reply.incumbent_seconds > 0) fastest_.add(result.median(), reply.incumbent_seconds);
    set_incumbent(std::min(incumbent(), result.median()));
    finish(std::move(job), Outcome::kOk);
  } else if (reply.outcome == Outcome::kSlowStopped) {
    const std::string message =
        fmt::format("{} a call, the best so far takes {}", milliseconds(result.median()), milliseconds(incumbent()));
    finish(std::move(job), Outcome::kSlowStopped, resource_error("measure/slow", message));
  } else {
    const bool memory = reply.outcome == Outcome::kOutOfMemory;
    result.seconds.clear();
    finish(std::move(job), reply.outcome,
           resource_error(memory ? "measure/memory" : "measure/run-error", reply.message));
  }
  if (reply.ends) lose(worker);
  return true;
}

bool MeasurePipeline::Loop::on_timed(Worker& worker, const Frame& frame) {
  TurnsReply reply;
  if (!decode_message(frame, reply) || reply.id != worker.request) return false;
  if (reply.seconds.size() != reply.disturbed.size()) return false;
  worker.state = State::kIdle;
  FinalsResult result;
  const size_t kernels = finals_->kernels.size();
  result.seconds.resize(kernels);
  result.disturbed.resize(kernels);
  for (size_t i : indices_of(reply.seconds)) {
    if (reply.seconds[i] < 0) continue;
    result.seconds[i % kernels].push_back(reply.seconds[i]);
    result.disturbed[i % kernels].push_back(reply.disturbed[i] != 0);
  }
  if (!reply.message.empty()) result.error = resource_error("measure/run-error", reply.message);
  finish_finals(std::move(result));
  return true;
}

void MeasurePipeline::Loop::begin_limit(Worker& worker, double seconds) {
  worker.since = Clock::now();
  worker.limit = seconds;
  worker.deadline = worker.since + from_seconds(seconds);
  worker.times = worker.process->thread_times();
}

bool MeasurePipeline::Loop::extend_limit(Worker& worker, double taken, double limit) {
  const double own = worker.process->own_since(worker.times, taken);
  if (own >= limit || taken >= kMostWaiting * limit) return false;
  // Somebody may have stopped it, and who has forgotten it would end the search.
  worker.process->resume();
  worker.deadline = Clock::now() + from_seconds(std::max(limit - own, 1e-3));
  return true;
}

void MeasurePipeline::Loop::look_at_call(Worker& worker) {
  const uint64_t began = arguments_->control().call_began, clock = monotonic_ns();
  const double running = began != 0 && began <= clock ? 1e-9 * static_cast<double>(clock - began) : 0.0;
  // Loading has the time of a build.
  const double all = worker.limit + options_.build_timeout;
  const double taken = std::chrono::duration<double>(Clock::now() - worker.since).count();
  if (running < worker.limit && taken < all) {
    worker.deadline = Clock::now() + from_seconds(std::max(std::min(worker.limit - running, all - taken), 1e-3));
    return;
  }
  const bool called = running >= worker.limit;
  if (!worker.job->candidate.reference && extend_limit(worker, called ? running : taken, called ? worker.limit : all)) {
    return;
  }
  if (called && worker.limit < run_timeout_ && !worker.job->candidate.reference) {
    kill(worker, Outcome::kSlowStopped,
         resource_error("measure/slow", fmt::format("stopped after {} in its first call, the best so far takes {}",
                                                    milliseconds(running), milliseconds(incumbent()))));
    return;
  }
  on_timeout(worker);
}

void MeasurePipeline::Loop::on_timeout(Worker& worker) {
  switch (worker.state) {
    case State::kStarting:
      kill(worker, Outcome::kCanceled, resource_error("measure/helper-start", "the helper does not answer"));
      break;
    case State::kBuilding:
      last_build_seconds_ = options_.build_timeout;
      kill(worker, Outcome::kBuildTimeout,
           resource_error("measure/build-timeout",
                          fmt::format("the build was killed after {} s", options_.build_timeout),
                          "unroll less: the time to compile grows with the size of the code"));
      break;
    case State::kChecking:
    case State::kTiming:
    case State::kFinals:
      kill(worker, Outcome::kRunTimeout,
           resource_error(
               "measure/run-timeout",
               fmt::format("the kernel did not come back in time ({:.3g} s for a call) and was killed",
                           worker.job && worker.job->candidate.reference ? options_.reference_timeout : run_timeout_)));
      break;
    case State::kNone:
    case State::kIdle:
    case State::kDying:
      break;
  }
}

void MeasurePipeline::Loop::kill(Worker& worker, Outcome outcome, Diagnostic error) {
  worker.verdict.emplace();
  worker.verdict->outcome = outcome;
  worker.verdict->error = std::move(error);
  lose(worker);
}

void MeasurePipeline::Loop::lose(Worker& worker) {
  worker.process->kill();
  worker.state = State::kDying;
  worker.deadline = Clock::now();
}

void MeasurePipeline::Loop::on_dead(Worker& worker, int wait_status) {
  const bool was_ready = worker.was_ready;
  const bool from_outside = !worker.verdict && killed_from_outside(wait_status);
  const Measured death = worker.verdict ? std::move(*worker.verdict) : explain_death(worker, wait_status);
  std::optional<Job> job = std::exchange(worker.job, std::nullopt);
  worker.process.reset();
  worker.state = State::kNone;
  worker.verdict.reset();
  if (stopping_) return;
  {
    const std::lock_guard lock(mutex_);
    ++counters_.helpers_lost;
  }
  if (job && from_outside && job->retries < kMaxRetries) {
    ++job->retries;
    // A built candidate is measured again, another one is built again.
    (job->result.object ? to_measure_ : to_build_).push_front(std::move(*job));
  } else if (job) {
    finish(std::move(*job), death.outcome, death.error);
  } else if (finals_ && worker.measures && was_ready && !(from_outside && finals_retries_++ < kMaxRetries)) {
    finish_finals(FinalsResult{.error = death.error});
  }
  if (!was_ready && ++failed_starts_ >= kMaxFailedStarts) {
    halt(resource_error("measure/helper-start",
                        fmt::format("the helper {} does not start: {}", helper_, death.error.message),
                        "check the installation; run the program named here in a terminal to see what is missing"));
  }
}

Measured MeasurePipeline::Loop::explain_death(const Worker& worker, int wait_status) {
  const HelperProcess& process = *worker.process;
  const bool signaled = wait_status != -1 && WIFSIGNALED(wait_status);
  const int exit_code = wait_status != -1 && WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 0;
  const bool aborted = signaled && WTERMSIG(wait_status) == SIGABRT;
  const bool out_of_memory = exit_code == kExitOutOfMemory || (aborted && complains_of_memory(process.log_text()));
  Measured death;
  if (out_of_memory) {
    const uint64_t limit = worker.measures ? options_.run_memory : options_.build_memory;
    death.outcome = Outcome::kOutOfMemory;
    death.error = resource_error("measure/memory", fmt::format("more than the {} MiB that a {} may use", limit >> 20,
                                                               worker.measures ? "kernel" : "build"));
    return death;
  }
  std::string message = fmt::format("the {} was {}", worker.measures ? "kernel" : "build", describe_exit(wait_status));
  if (!signaled)
    message = fmt::format("the {}'s process {}", worker.measures ? "kernel" : "build", describe_exit(wait_status));
  std::string hint;
  if (signaled && WTERMSIG(wait_status) == SIGKILL)
    hint = "not by Tilewright: perhaps by the system, because memory ran out";
  if (worker.measures) {
    const std::string story = describe_crash(arguments_->control(), arguments_->specs());
    message += story.empty() ? with_log(process) : ": " + story;
    death.outcome = Outcome::kRunCrash;
    death.error = resource_error("measure/run-crash", std::move(message), std::move(hint));
  } else {
    death.outcome = Outcome::kBuildCrash;
    death.error = resource_error("measure/build-crash", message + with_log(process), std::move(hint));
  }
  return death;
}

void MeasurePipeline::Loop::finish(Job job, Outcome outcome, std::optional<Diagnostic> error) {
  Measured result = std::move(job.result);
  result.outcome = outcome;
  if (error) result.error = std::move(*error);
  const std::lock_guard lock(mutex_);
  const auto kind = static_cast<size_t>(outcome);
  if (counters_.count[kind]++ == 0) counters_.first_message[kind] = result.error.message;
  outbox_.push_back(std::move(result));
  changed_.notify_all();
}

void MeasurePipeline::Loop::finish_finals(FinalsResult result) {
  finals_.reset();
  const std::lock_guard lock(mutex_);
  finals_outbox_ = std::move(result);
  changed_.notify_all();
}

}  // namespace tilewright::search
