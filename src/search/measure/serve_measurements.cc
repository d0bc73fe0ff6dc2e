// The measuring helper: one kernel at a time is loaded, called once on the memory that the parent sees, and, when the
// parent finds the result right, timed.
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <limits>

#include "runtime/abi.h"
#include "runtime/roofs.h"
#include "runtime/runtime.h"
#include "search/measure/control_block.h"
#include "search/measure/crash_handler.h"
#include "search/measure/mapped_arguments.h"
#include "search/measure/messages.h"
#include "search/measure/process_limits.h"
#include "search/measure/serve.h"
#include "search/measure/slice_timer.h"

namespace tilewright::search {
namespace {

/// In one slice, of kernels that the clock cannot see.
constexpr int64_t kMostCalls = 1'000'000;
/// A slice of the incumbent comes after so many of a candidate, and has about so many seconds of calls.
constexpr int64_t kSlicesPerIncumbent = 8;
constexpr double kIncumbentSeconds = 1e-3;
/// Kernels take turns at least so long where other work disturbs them all the time.
constexpr double kBusySeconds = 1;
/// Of the seconds of the finals, what each baseline may take.
constexpr double kBaselineShare = 0.1;

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
    if (decode_message(frame, measure_request)) return measure(measure_request);
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
    context_.workspace_acquire = acquire_poisoned;
    const auto call_once = [&](int64_t calls) { return call(*kernel, arguments_->shared(), calls); };
    const bool returned = time_slice(1, setup_.threads, call_once, checked.first);
    context_.workspace_acquire = tw_workspace_acquire;
    if (!returned) {
      checked.outcome = code_ == TW_ERROR_MEMORY ? Outcome::kOutOfMemory : Outcome::kRunError;
      checked.message = error_;
      return write_message(kConnectionFd, checked);
    }
    if (!write_message(kConnectionFd, checked)) return false;

    Proceed proceed;
    const auto frame = read_frame(kConnectionFd);
    if (!frame || !decode_message(*frame, proceed)) return false;
    return !proceed.go || write_message(kConnectionFd, race(request, *kernel, checked.first, proceed));
  }

  MeasureReply race(const MeasureRequest& request, const CallableKernel& kernel, const Slice& first,
                    const Proceed& proceed) {
    MeasureReply reply;
    reply.id = request.id;
    best_probe_ = std::max(best_probe_, proceed.best_probe);
    const bool has_incumbent = take_incumbent(request);
    std::vector<double> incumbent;
    RaceRules rules = proceed.rules;
    if (has_incumbent && arguments_->prepare_own()) {
      // As fast as it is now: the time of an hour ago is that of another machine.
      time_incumbent(request.cold, incumbent);
      if (!incumbent.empty() && rules.incumbent < std::numeric_limits<double>::infinity())
        rules.incumbent = incumbent.front();
    }
    Race race(rules, setup_.threads);
    race.observe(first);
    if (race.next_calls() > 0 && !arguments_->prepare_own()) {
      reply.outcome = Outcome::kOutOfMemory;
      reply.message = "no memory for a second set of arguments";
      return reply;
    }
    for (int64_t slices = 1; const int64_t calls = race.next_calls(); ++slices) {
      if (has_incumbent && slices % kSlicesPerIncumbent == 0) time_incumbent(request.cold, incumbent);
      Slice slice;
      if (!timed_slice(kernel, calls, request.cold, slice)) {
        reply.outcome = code_ == TW_ERROR_MEMORY ? Outcome::kOutOfMemory : Outcome::kRunError;
        reply.message = error_;
        return reply;
      }
      race.observe(slice);
      if (race.wants_probe()) race.observe_probe(probe());
    }
    reply.outcome = race.verdict() == Race::Verdict::kSlow ? Outcome::kSlowStopped : Outcome::kOk;
    reply.contender = race.verdict() == Race::Verdict::kContender;
    reply.seconds = race.seconds();
    reply.noisy = race.is_noisy();
    reply.rejected = race.rejected();
    reply.best_probe = best_probe_;
    if (!incumbent.empty()) {
      const auto middle = incumbent.begin() + std::ssize(incumbent) / 2;
      std::nth_element(incumbent.begin(), middle, incumbent.end());
      reply.incumbent_seconds = *middle;
    }
    if (reply.outcome == Outcome::kOk) reply.has_last_outputs = arguments_->show_own_outputs();
    return reply;
  }

  /// Loads the incumbent of a request unless it is that of the request before; whether there is one.
  bool take_incumbent(const MeasureRequest& request) {
    if (request.incumbent.empty()) return false;
    if (request.incumbent == incumbent_.object && request.entry == incumbent_.entry) return incumbent_.calls > 0;
    incumbent_ = {request.incumbent, request.entry, {}, 0, false};
    Result<CallableKernel> kernel = load_(request.incumbent, request.entry);
    if (!kernel.ok()) return false;
    incumbent_.kernel = std::move(*kernel);
    incumbent_.calls = 1;
    return true;
  }

  /// Adds the seconds of a call in one more slice; a disturbed one only where there is no other.
  void time_incumbent(bool cold, std::vector<double>& seconds) {
    // What is called for the first time finds nothing in the caches, and is not known to fill a slice.
    for (int more = incumbent_.is_warm ? 0 : 2; more >= 0 && incumbent_.calls > 0; --more) {
      Slice slice;
      if (!timed_slice(incumbent_.kernel, incumbent_.calls, cold, slice)) {
        incumbent_.calls = 0;
        return;
      }
      const auto calls = static_cast<double>(slice.calls);
      const double each = std::max(slice.wall, 1e-9) / calls;
      incumbent_.calls = std::clamp<int64_t>(static_cast<int64_t>(kIncumbentSeconds / each), 1, kMostCalls);
      if (more > 0) continue;
      const bool counts = is_undisturbed(slice, setup_.threads);
      if (counts || seconds.empty()) seconds.push_back(counts || setup_.threads > 1 ? each : slice.cpu / calls);
    }
    incumbent_.is_warm = true;
  }

  /// Memory is often zero the first time, so a kernel that forgets to initialize its workspace would be right once. All
  /// ones are a NaN in every floating-point format.
  static void* acquire_poisoned(tw_ctx* context, int64_t bytes) {
    void* const memory = tw_workspace_acquire(context, bytes);
    if (memory) std::memset(memory, 0xff, static_cast<size_t>(bytes));
    return memory;
  }

  /// This moment's peak rate as a fraction of the best one seen.
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
    if (!arguments_->prepare_own()) {
      reply.message = "no memory for a second set of arguments";
      return;
    }
    tw_warm_up(2e-3);
    std::vector<CallableKernel> kernels;
    std::vector<int64_t> calls;
    std::vector<int64_t> rounds_of;  // that a kernel takes part in
    const size_t contestants = request.objects.size() - std::min<size_t>(request.baselines, request.objects.size());
    double round_seconds = 0;
    for (size_t i = 0; i < request.objects.size() && i < request.entries.size(); ++i) {
      Result<CallableKernel> kernel = load_(request.objects[i], request.entries[i]);
      if (!kernel.ok()) {
        reply.message = kernel.error().message;
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
    std::vector<int32_t> undisturbed(contestants, 0);  // of each, in the same rounds as the first
    int64_t round = 0;
    do {
      bool is_first = true;
      for (size_t i = 0; i < kernels.size(); ++i) {
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
        const bool counts = is_undisturbed(slice, setup_.threads);
        // Time in which others had the processor is none of the kernel's.
        const double seconds = counts || setup_.threads > 1 ? slice.wall : slice.cpu;
        reply.seconds.push_back(seconds / static_cast<double>(slice.calls));
        reply.disturbed.push_back(counts ? 0 : 1);
        if (i == 0) is_first = counts;
        if (i < contestants) undisturbed[i] += counts && is_first ? 1 : 0;
      }
      ++round;
      if (undisturbed.empty()) break;
    } while (*std::min_element(undisturbed.begin(), undisturbed.end()) < request.rounds && spent() < enough);
  }

  bool timed_slice(const CallableKernel& kernel, int64_t calls, bool cold, Slice& slice) {
    arguments_->restore_in_out();
    if (cold) {
      if (!flusher_) flusher_ = std::make_unique<CacheFlusher>();
      flusher_->flush();
    }
    const auto spend = [&](int64_t count) { return call(kernel, arguments_->own(), count); };
    return time_slice(cold ? 1 : calls, setup_.threads, spend, slice);
  }

  /// So many calls with nothing between them, as a program that only calls the kernel makes them: a look at the clock
  /// takes as long as a short kernel. False: the kernel returned an error, now in code_ and error_.
  bool call(const CallableKernel& kernel, const DLTensor* const* tensors, int64_t calls) {
    auto& began = arguments_->control().call_began;
    error_.clear();
    began.store(monotonic_ns(), std::memory_order_relaxed);
    const tw_kernel function = kernel.function;
    const tw_scalar* const scalars = arguments_->scalars();
    int32_t code = TW_OK;
    for (int64_t i = 0; i < calls && code == TW_OK; ++i) code = function(&context_, tensors, scalars);
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
    int64_t calls = 0;  ///< of a slice; 0: it cannot be called
    bool is_warm = false;
  };

  const LoadFunction& load_;
  HelperSetup setup_;
  Incumbent incumbent_;
  std::unique_ptr<MappedArguments> arguments_;
  std::unique_ptr<CacheFlusher> flusher_;
  tw_ctx context_;
  int32_t code_ = 0;
  std::string error_;
  double best_probe_ = 0;
};

}  // namespace

int serve_measurements(const LoadFunction& load) {
  const auto frame = read_frame(kConnectionFd);
  HelperSetup setup;
  if (!frame || !decode_message(*frame, setup)) return kExitProtocol;
  // Before anything starts a thread, so that all threads stay there.
  stay_on(setup.cpus);
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
