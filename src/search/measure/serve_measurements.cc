// The measuring helper: one kernel at a time is loaded, called once on the memory that the parent sees, and, when the
// parent finds the result right, timed.
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "runtime/abi.h"
#include "runtime/device.h"
#include "runtime/roofs.h"
#include "runtime/runtime.h"
#include "search/measure/control_block.h"
#include "search/measure/crash_handler.h"
#include "search/measure/device_arguments.h"
#include "search/measure/incumbent_times.h"
#include "search/measure/mapped_arguments.h"
#include "search/measure/messages.h"
#include "search/measure/process_limits.h"
#include "search/measure/serve.h"
#include "search/measure/slice_timer.h"
#include "support/ranges.h"

namespace tilewright::search {
namespace {

/// Largest number of calls in one slice, for kernels that the clock cannot resolve.
constexpr int64_t kMostCalls = 1'000'000;
/// The duration of a slice of the incumbent.
constexpr double kIncumbentSeconds = 1e-3;
/// Largest number of slices of the incumbent before a candidate, to get an undisturbed one.
constexpr int kIncumbentTries = 4;
/// Kernels take turns at least so long where other work disturbs them all the time.
constexpr double kBusySeconds = 1;
/// The share of the seconds of the finals that each baseline may take.
constexpr double kBaselineShare = 0.1;

/// Returns the number of slices after which the environment lets a race or the finals end, however disturbed they are,
/// so that tests on a busy machine do not wait for undisturbed ones; 0: it names none.
int32_t slices_of_environment() {
  const char* const text = std::getenv("TILEWRIGHT_MEASURE_SLICES");
  return text ? static_cast<int32_t>(std::clamp(std::strtol(text, nullptr, 10), 0L, 1000L)) : 0;
}

class Server {
 public:
  Server(const LoadFunction& load, HelperSetup setup, std::unique_ptr<MappedArguments> arguments)
      : load_(load), setup_(std::move(setup)), arguments_(std::move(arguments)) {
    tw_set_num_threads(setup_.threads);
    tw_ctx_init(&context_);
    context_.user = this;
    context_.max_threads = setup_.threads;
    context_.set_error = [](tw_ctx* context, int32_t, const char* message) {
      static_cast<Server*>(context->user)->error_ = message ? message : "";
    };
  }

  /// False: the connection is closed or the parent talks nonsense.
  bool serve(const Frame& frame) {
    MeasureRequest measure_request;
    if (decode_message(frame, measure_request)) return measure(measure_request) && !is_broken_;
    TurnsRequest turns_request;
    if (decode_message(frame, turns_request)) return take_turns(turns_request);
    return false;
  }

 private:
  bool measure(const MeasureRequest& request) {
    CheckedReply checked;
    checked.id = request.id;
    Result<CallableKernel> kernel = load_(request.object, request.entry);
    if (!kernel.ok()) {
      checked.outcome = Outcome::kBuildError;
      checked.code = kernel.error().code;
      checked.message = kernel.error().message;
      return write_message(kConnectionFd, checked);
    }
    arguments_->save_in_out();
    if (!begin_on_device(*kernel, checked)) return write_message(kConnectionFd, checked);
    context_.workspace_acquire = acquire_poisoned;
    tw_device_poison(1);
    const auto call_once = [&](int64_t calls) {
      return call(*kernel, is_on_device(*kernel) ? device_->tensors() : arguments_->shared(), calls);
    };
    const bool returned = time(*kernel, 1, call_once, checked.first);
    tw_device_poison(0);
    context_.workspace_acquire = tw_workspace_acquire;
    if (!returned) {
      checked.outcome = code_ == TW_ERROR_MEMORY ? Outcome::kOutOfMemory : Outcome::kRunError;
      checked.message = error_;
      checked.ends = is_broken_ = is_on_device(*kernel);
      return write_message(kConnectionFd, checked);
    }
    if (is_on_device(*kernel) && !device_->show_outputs()) {
      checked.outcome = Outcome::kWrongResult;
      checked.code = "measure/wrong-result";
      checked.message = device_->problem();
      checked.ends = is_broken_ = true;
      return write_message(kConnectionFd, checked);
    }
    if (!write_message(kConnectionFd, checked)) return false;

    Proceed proceed;
    const auto frame = read_frame(kConnectionFd);
    if (!frame || !decode_message(*frame, proceed)) return false;
    return !proceed.go || write_message(kConnectionFd, race(request, *kernel, checked.first, proceed));
  }

  static bool is_on_device(const CallableKernel& kernel) { return kernel.device_type != kDLCPU; }

  /// Copies the arguments to the device, and calls the kernel once: drivers compile at the first launch, which counts
  /// as loading. Does nothing for a kernel of the host. False: the reply says what failed.
  bool begin_on_device(const CallableKernel& kernel, CheckedReply& reply) {
    if (!is_on_device(kernel)) return true;
    error_.clear();
    if (!put_on_device(kernel)) {
      reply.outcome = Outcome::kOutOfMemory;
      reply.message = error_;
    } else if (code_ = kernel.function(&context_, device_->tensors(), arguments_->scalars());
               code_ != TW_OK || tw_device_wait(&context_, device_->device()) != TW_OK) {
      reply.outcome = code_ == TW_ERROR_MEMORY ? Outcome::kOutOfMemory : Outcome::kBuildError;
      reply.message = error_;
    } else if (device_->upload()) {
      double ignored = 0;
      tw_device_elapsed(&context_, device_->device(), &ignored);
      return true;
    } else {
      reply.outcome = Outcome::kRunError;
      reply.message = device_->problem();
    }
    reply.ends = is_broken_ = true;
    return false;
  }

  /// False: error_ says why the device has no memory.
  bool put_on_device(const CallableKernel& kernel) {
    if (!device_) {
      device_ = DeviceArguments::create(static_cast<DLDeviceType>(kernel.device_type), setup_.arguments,
                                        arguments_->shared(), error_);
      if (!device_) return false;
    }
    if (device_->upload()) return true;
    error_ = device_->problem();
    return false;
  }

  /// Like time_slice(); for a kernel on a device, measures the time on the device.
  bool time(const CallableKernel& kernel, int64_t calls, const std::function<bool(int64_t)>& spend, Slice& slice) {
    if (!time_slice(calls, threads_for(kernel), spend, slice)) return false;
    if (is_on_device(kernel)) slice.wall = slice.cpu = std::max(elapsed_, 1e-9);
    return true;
  }
  /// The calling thread sleeps while a device computes, as it may while other threads do.
  int threads_for(const CallableKernel& kernel) const {
    return is_on_device(kernel) ? std::max(setup_.threads, 2) : setup_.threads;
  }

  MeasureReply race(const MeasureRequest& request, const CallableKernel& kernel, const Slice& first,
                    const Proceed& proceed) {
    MeasureReply reply;
    reply.id = request.id;
    best_probe_ = std::max(best_probe_, proceed.best_probe);
    const bool has_incumbent = take_incumbent(request);
    RaceRules rules = proceed.rules;
    if (most_slices_ > 0 && !rules.keeps_all) {
      rules.screen_slices = rules.full_slices = most_slices_;
      rules.keeps_all = true;
    }
    if (has_incumbent && prepare_timing(kernel)) {
      // Use the current speed: the machine may have been faster an hour ago.
      reply.incumbent_seconds = time_incumbent(request.cold, kIncumbentTries);
      if (reply.incumbent_seconds > 0 && rules.incumbent < std::numeric_limits<double>::infinity())
        rules.incumbent = proceed.fastest.now(incumbent_.times.fastest(now()));
    }
    Race race(rules, threads_for(kernel));
    race.observe(first);
    if (race.next_calls() > 0 && !prepare_timing(kernel)) {
      reply.outcome = Outcome::kOutOfMemory;
      reply.message = "no memory for a second set of arguments";
      return reply;
    }
    IncumbentTimes times;
    while (const int64_t calls = race.next_calls()) {
      if (has_incumbent) time_incumbent(request.cold, 1);
      Slice slice;
      const double begin = now();
      if (!timed_slice(kernel, calls, request.cold, slice)) {
        reply.outcome = code_ == TW_ERROR_MEMORY ? Outcome::kOutOfMemory : Outcome::kRunError;
        reply.message = error_;
        reply.ends = is_broken_ = is_on_device(kernel);
        return reply;
      }
      race.observe(slice);
      add_slice(times, begin, slice, kernel);
      if (race.wants_probe()) race.observe_probe(probe());
    }
    reply.outcome = race.verdict() == Race::Verdict::kSlow ? Outcome::kSlowStopped : Outcome::kOk;
    reply.contender = race.verdict() == Race::Verdict::kContender;
    reply.seconds = race.seconds();
    reply.noisy = race.is_noisy();
    reply.rejected = race.rejected();
    reply.best_probe = best_probe_;
    // Slices of the incumbent that ran between those of the candidate are a better reference than earlier ones.
    if (const double beside = incumbent_.times.median(now()); beside > 0) reply.incumbent_seconds = beside;
    if (reply.outcome == Outcome::kOk) show_last_outputs(kernel, reply);
    if (reply.contender && reply.outcome == Outcome::kOk) contender_ = {request.object, request.entry, times};
    return reply;
  }

  /// Returns false if there is no memory for the arguments of timed calls; arguments on a device are used for all
  /// calls.
  bool prepare_timing(const CallableKernel& kernel) { return is_on_device(kernel) || arguments_->prepare_own(); }

  /// Sends the results of the last timed call to the parent, which compares them. Red zones on a device are checked
  /// here.
  void show_last_outputs(const CallableKernel& kernel, MeasureReply& reply) {
    if (!is_on_device(kernel)) {
      reply.has_last_outputs = arguments_->show_own_outputs();
    } else if (device_->show_outputs()) {
      reply.has_last_outputs = !device_->has_in_out();
    } else {
      reply.outcome = Outcome::kWrongResult;
      reply.message = device_->problem();
      reply.ends = is_broken_ = true;
    }
  }

  /// Loads the incumbent of a request unless it is that of the request before; whether there is one.
  bool take_incumbent(const MeasureRequest& request) {
    if (request.incumbent.empty()) return false;
    if (request.incumbent == incumbent_.object && request.entry == incumbent_.entry) return incumbent_.calls > 0;
    incumbent_ = {request.incumbent, request.entry, {}, 0, false, {}};
    Result<CallableKernel> kernel = load_(request.incumbent, request.entry);
    if (!kernel.ok()) return false;
    incumbent_.kernel = std::move(*kernel);
    incumbent_.calls = 1;
    const bool was_candidate = request.incumbent == contender_.object && request.entry == contender_.entry;
    if (const double seconds = contender_.times.median(now()); was_candidate && seconds > 0) {
      // Its recent slices as a candidate count, so it need not be timed again at once.
      incumbent_.times = contender_.times;
      incumbent_.is_warm = true;
      incumbent_.calls = calls_of_slice(seconds);
    }
    return true;
  }

  /// Returns how many calls of so many seconds fill a slice of the incumbent.
  static int64_t calls_of_slice(double seconds) {
    return std::clamp<int64_t>(static_cast<int64_t>(kIncumbentSeconds / std::max(seconds, 1e-9)), 1, kMostCalls);
  }

  /// Adds a slice that began at `begin` and has just ended.
  void add_slice(IncumbentTimes& times, double begin, const Slice& slice, const CallableKernel& kernel) const {
    const int threads = threads_for(kernel);
    const bool counts = is_undisturbed(slice, threads);
    const double seconds = counts || threads > 1 ? std::max(slice.wall, 1e-9) : slice.cpu;
    times.add(begin, now(), seconds / static_cast<double>(slice.calls), counts);
  }

  static double now() { return 1e-9 * static_cast<double>(monotonic_ns()); }

  /// Times slices of the incumbent while they are due: at most `tries`, until one is undisturbed. Returns the seconds
  /// of a call; 0: it cannot be called.
  double time_incumbent(bool cold, int tries) {
    // The first calls find cold caches, and their number may not fill a slice.
    for (int more = 2; !incumbent_.is_warm && more > 0 && incumbent_.calls > 0; --more) {
      call_incumbent(cold);
      if (incumbent_.calls == 1) break;
    }
    incumbent_.is_warm = true;
    IncumbentTimes& times = incumbent_.times;
    for (int tried = 0; tried < tries && incumbent_.calls > 0; ++tried) {
      const double begin = now();
      if (tried == 0 ? !times.is_due(begin) : times.is_known(begin)) break;
      const Slice slice = call_incumbent(cold);
      if (incumbent_.calls == 0) break;
      add_slice(times, begin, slice, incumbent_.kernel);
    }
    return incumbent_.calls > 0 ? times.median(now()) : 0;
  }

  /// One slice of the incumbent. Its `calls` become those that fill the next one; 0 if it failed.
  Slice call_incumbent(bool cold) {
    Slice slice;
    if (!timed_slice(incumbent_.kernel, incumbent_.calls, cold, slice)) {
      incumbent_.calls = 0;
      return slice;
    }
    incumbent_.calls = calls_of_slice(slice.wall / static_cast<double>(slice.calls));
    return slice;
  }

  /// Memory is often zero the first time, so a kernel that forgets to initialize its workspace would be right once. All
  /// ones are a NaN in every floating-point format.
  static void* acquire_poisoned(tw_ctx* context, int64_t bytes) {
    void* const memory = tw_workspace_acquire(context, bytes);
    if (memory) std::memset(memory, 0xff, static_cast<size_t>(bytes));
    return memory;
  }

  /// Returns the current peak rate as a fraction of the best one seen.
  double probe() {
    const double rate = tw_probe_peak();
    if (rate <= 0) return 1.0;  // no probe for this architecture
    best_probe_ = std::max(best_probe_, rate);
    return rate / best_probe_;
  }

  bool take_turns(const TurnsRequest& request) {
    TurnsReply reply;
    reply.id = request.id;
    time_turns(request, reply);
    return write_message(kConnectionFd, reply);
  }

  void time_turns(const TurnsRequest& request, TurnsReply& reply) {
    tw_warm_up(2e-3);
    std::vector<CallableKernel> kernels;
    std::vector<int64_t> calls;
    std::vector<int64_t> rounds_of;  // rounds that a kernel takes part in
    const size_t contestants = request.objects.size() - std::min<size_t>(request.baselines, request.objects.size());
    double round_seconds = 0;
    for (size_t i = 0; i < request.objects.size() && i < request.entries.size(); ++i) {
      Result<CallableKernel> kernel = load_(request.objects[i], request.entries[i]);
      if (!kernel.ok()) {
        reply.message = kernel.error().message;
        return;
      }
      if (is_on_device(*kernel) ? !put_on_device(*kernel) : !arguments_->prepare_own()) {
        reply.message = is_on_device(*kernel) ? error_ : "no memory for a second set of arguments";
        return;
      }
      // Slices to warm up say how many calls fill one: of a short kernel a single call is as long as a look at the
      // clock.
      int64_t count = 1;
      double seconds = 0;
      for (int again = 0; again < 3; ++again) {
        Slice slice;
        if (!timed_slice(*kernel, count, request.cold, slice)) {
          reply.message = error_;
          return;
        }
        seconds = std::max(slice.wall, 1e-9) / static_cast<double>(slice.calls);
        count = std::clamp<int64_t>(static_cast<int64_t>(request.slice_seconds / seconds), 1, kMostCalls);
        if (again == 1 && count == 1) break;
      }
      calls.push_back(count);
      const double slice = seconds * static_cast<double>(count);
      rounds_of.push_back(std::numeric_limits<int64_t>::max());
      if (i < contestants) {
        round_seconds += slice;
      } else {
        rounds_of.back() = std::max<int64_t>(1, static_cast<int64_t>(kBaselineShare * request.budget_seconds / slice));
      }
      kernels.push_back(std::move(*kernel));
    }
    // Other work of the machine may take its turn for long; three times as many rounds as wanted see past little of it.
    const auto begin = std::chrono::steady_clock::now();
    const auto spent = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(); };
    const double enough = std::min(request.budget_seconds, std::max(kBusySeconds, 3 * request.rounds * round_seconds));
    // undisturbed slices of each kernel, in the same rounds as the first
    std::vector<int32_t> undisturbed(contestants, 0);
    int64_t round = 0;
    do {
      bool is_first = true;
      for (size_t i : indices_of(kernels)) {
        if (round >= rounds_of[i]) {
          reply.seconds.push_back(-1);
          reply.disturbed.push_back(0);
          continue;
        }
        Slice slice;
        if (!timed_slice(kernels[i], calls[i], request.cold, slice)) {
          reply.message = error_;
          return;
        }
        const int threads = threads_for(kernels[i]);
        const bool counts = is_undisturbed(slice, threads);
        // Time in which others had the processor is none of the kernel's.
        const double seconds = counts || threads > 1 ? slice.wall : slice.cpu;
        reply.seconds.push_back(seconds / static_cast<double>(slice.calls));
        reply.disturbed.push_back(counts ? 0 : 1);
        if (i == 0) is_first = counts;
        if (i < contestants) undisturbed[i] += counts && is_first ? 1 : 0;
      }
      ++round;
      if (undisturbed.empty()) break;
    } while (*std::ranges::min_element(undisturbed) < request.rounds && spent() < enough &&
             (most_slices_ == 0 || round < most_slices_));
  }

  bool timed_slice(const CallableKernel& kernel, int64_t calls, bool cold, Slice& slice) {
    if (!is_on_device(kernel)) {
      arguments_->restore_in_out();
    } else if (!device_->restore_in_out()) {
      error_ = device_->problem();
      return false;
    }
    if (cold) {
      if (!flusher_) flusher_ = std::make_unique<CacheFlusher>();
      flusher_->flush();
    }
    const DLTensor* const* const tensors = is_on_device(kernel) ? device_->tensors() : arguments_->own();
    const auto spend = [&](int64_t count) { return call(kernel, tensors, count); };
    return time(kernel, cold ? 1 : calls, spend, slice);
  }

  /// Calls the kernel `calls` times back to back: reading the clock takes as long as a short kernel. Returns false if
  /// the kernel returned an error, which is then in code_ and error_.
  bool call(const CallableKernel& kernel, const DLTensor* const* tensors, int64_t calls) {
    auto& began = arguments_->control().call_began;
    error_.clear();
    began.store(monotonic_ns(), std::memory_order_relaxed);
    const tw_kernel function = kernel.function;
    const tw_scalar* const scalars = arguments_->scalars();
    int32_t code = TW_OK;
    for (int64_t i = 0; i < calls && code == TW_OK; ++i) code = function(&context_, tensors, scalars);
    if (is_on_device(kernel)) {
      const int32_t waited = tw_device_elapsed(&context_, device_->device(), &elapsed_);
      if (code == TW_OK) code = waited;
    }
    code_ = code;
    began.store(0, std::memory_order_relaxed);
    if (code_ == TW_OK) return true;
    if (error_.empty()) error_ = "the kernel returned error " + std::to_string(code_);
    return false;
  }

  /// The kernel whose calls are interleaved with those of candidates.
  struct Incumbent {
    std::string object, entry;
    CallableKernel kernel;
    int64_t calls = 0;  ///< calls of a slice; 0: it cannot be called
    bool is_warm = false;
    IncumbentTimes times;
  };

  /// The latest candidate that was timed with all slices; the next incumbent is often this one.
  struct Contender {
    std::string object, entry;
    IncumbentTimes times;
  };

  const LoadFunction& load_;
  HelperSetup setup_;
  const int32_t most_slices_ = slices_of_environment();
  Incumbent incumbent_;
  Contender contender_;
  std::unique_ptr<MappedArguments> arguments_;
  std::unique_ptr<DeviceArguments> device_;  ///< once a kernel on a device was measured
  std::unique_ptr<CacheFlusher> flusher_;
  double elapsed_ = 0;      ///< seconds that the device was busy with the last calls
  bool is_broken_ = false;  ///< a call on the device failed: another process must take over
  tw_ctx context_;
  int32_t code_ = 0;
  std::string error_;
  double best_probe_ = 0;
};

/// Sets variables that drivers read when they are opened, so call it before. Values of the user are kept.
void prepare_drivers(const HelperSetup& setup) {
  ::setenv("POCL_CACHE_DIR", setup.driver_cache.c_str(), 0);
  ::setenv("CUDA_CACHE_PATH", setup.driver_cache.c_str(), 0);
  // PoCL's threads stay where this process may run: more of them would take turns.
  if (!setup.cpus.empty()) ::setenv("POCL_MAX_PTHREAD_COUNT", std::to_string(setup.cpus.size()).c_str(), 0);
  tw_device_profile();
}

}  // namespace

int serve_measurements(const LoadFunction& load) {
  const auto frame = read_frame(kConnectionFd);
  HelperSetup setup;
  if (!frame || !decode_message(*frame, setup)) return kExitProtocol;
  // Set this before any thread is started, so that all threads inherit it.
  stay_on(setup.cpus);
  if (!setup.driver_cache.empty()) prepare_drivers(setup);
  auto arguments = MappedArguments::map(kSharedMemoryFd, setup.arguments, setup.scalars);
  if (!arguments) {
    std::fprintf(stderr, "the arguments cannot be mapped: %s\n", std::strerror(errno));
    return kExitOutOfMemory;
  }
  install_crash_handler(*arguments);
  limit_memory(setup.memory_limit);
  Server server(load, std::move(setup), std::move(arguments));
  if (!write_message(kConnectionFd, Ready{})) return 0;
  while (const auto request = read_frame(kConnectionFd)) {
    if (!server.serve(*request)) break;
  }
  return 0;
}

}  // namespace tilewright::search
