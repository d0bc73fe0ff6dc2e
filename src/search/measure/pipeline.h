// Builds and measures candidates in helper processes, many at a time, without ever blocking the caller for long.
//
//   TW_TRY(arguments, Arguments::create(...));                    // inputs, expected outputs: arguments.h
//   TW_TRY(pipeline, MeasurePipeline::start(arguments, options));
//   pipeline->submit({.id = 0, .module = bytes, .options = {}, .entry = "main"});   // the first may be the .reference
//   while (pipeline->outstanding() > 0) {
//     for (const Measured& result : pipeline->poll(std::chrono::milliseconds(50))) {
//       if (result.is_ok()) database->commit(record_of(result));
//     }
//     if (interrupted) pipeline->cancel();                        // Ctrl-C
//     if (auto failure = pipeline->failure()) return *failure;    // the helper cannot be started
//   }
//   pipeline->begin_finals({.kernels = {best, second}});          // builders pause; A B A B ...
//   while (!(finals = pipeline->poll_finals(std::chrono::milliseconds(50)))) ...
//
// Every candidate that is submitted comes back exactly once, in any order, whatever happens to it: the outcome says how
// it ended. Builders and the measuring helper are processes of their own; one that dies, hangs or talks garbage is
// replaced and the candidate it had is counted. A candidate whose result was not compared with the expected outputs, or
// differs from them, is never `kOk`.
//
// All of it happens on one thread of the pipeline's own. The functions below may be called from any thread.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ir/fields.h"
#include "search/measure/arguments.h"
#include "search/measure/cpu_plan.h"
#include "search/measure/outcome.h"
#include "search/measure/race.h"
#include "support/result.h"

namespace tilewright::search {

struct PipelineOptions {
  int builders = 0;           ///< building processes; 0: for each processor, that of the kernel while it does not run
  int threads = 1;            ///< threads of the kernel; its processors are reserved for measuring
  bool cold = false;          ///< the caches hold other data before each call
  double build_timeout = 10;  ///< seconds
  /// Seconds for one call. With a reference: at least twice its time, at most ten times (but not below a second).
  double run_timeout = 10;
  double reference_timeout = 300;  ///< seconds for the call of the reference
  /// Beyond `race.first_stop_ratio` times the incumbent and this, a call is killed: less would cost more in new
  /// processes than it saves.
  double kill_grace = 0.02;
  uint64_t build_memory = uint64_t{4} << 30;  ///< bytes for one build
  uint64_t run_memory = uint64_t{4} << 30;    ///< bytes for a kernel's workspaces
  RaceRules race;            ///< rules of the race with the incumbent of an earlier session, if there is one
  bool builds_only = false;  ///< nothing is ever measured
  /// Nothing is built here. The thread of the pipeline then runs on the processors of the kernel, which are idle while
  /// it checks results. On the processors of builds, it would compete with the builds of other pipelines, and delay the
  /// next measurement.
  bool measures_only = false;
  bool device = false;  ///< kernels run on a device
  std::string helper;   ///< path of the executable; empty: find_helper()
  using Members = Fields<&PipelineOptions::threads, &PipelineOptions::cold, &PipelineOptions::reference_timeout,
                         &PipelineOptions::builders, &PipelineOptions::build_timeout, &PipelineOptions::run_timeout,
                         &PipelineOptions::race, &PipelineOptions::builds_only, &PipelineOptions::measures_only,
                         &PipelineOptions::device>;
};

struct Candidate {
  uint64_t id = 0;      ///< the caller's; comes back with the result
  std::string module;   ///< argument of the helper's compile function
  std::string options;  ///< argument of the helper's compile function
  std::string entry;    ///< name of the kernel in the object
  /// Called once, before all others: its outputs are what theirs are compared with (Arguments::set_tolerance). While
  /// there is none that succeeds, the others wait.
  bool reference = false;
  /// Called once and compared, like any other, but not timed: the finals will do that.
  bool check_only = false;
  /// Timed to the end, however much slower than the incumbent it seems: others are compared with it.
  bool is_baseline = false;
  /// The time of a kernel that an earlier session measured: others are compared with it; 0: this is not one.
  double known_seconds = 0;
  /// The object code, where it was built elsewhere.
  std::shared_ptr<const std::string> object{};
  /// The kernel whose calls are interleaved with this one's; it has the same entry.
  std::shared_ptr<const std::string> incumbent{};
  bool build_only = false;  ///< comes back when it is built
};

struct Measured {
  uint64_t id = 0;
  Outcome outcome = Outcome::kOk;
  /// Seconds per call of each slice. Of a candidate that was stopped as slow, what is known; of other failures, empty.
  std::vector<double> seconds;
  bool contender = false;  ///< timed with all slices, not only screened
  bool noisy = false;      ///< no slice was undisturbed; `seconds` holds the fastest of all
  int rejected = 0;        ///< slices that did not count
  CheckReport check;       ///< check of the first call
  Diagnostic error;        ///< message of a failure: what, why, what to do
  double build_seconds = 0;
  std::shared_ptr<const std::string> object;  ///< the object code, when it was built
  std::string entry;
  /// The description of another host, as records have it; empty: this one.
  std::string host;
  /// Seconds of a call of the incumbent, interleaved with this candidate's calls on the same host; 0: there was none.
  double incumbent_seconds = 0;
  /// Reference time of that incumbent in the session: its time on the host where the first candidate was measured.
  double incumbent_reference = 0;
  std::string note;  ///< disturbance of the host meanwhile; empty: none

  /// Encodes and decodes the fields for processes of the same version, without the object; see Encoder.
  template <class A>
  void fields(A& a) {
    a(outcome, seconds, contender, noisy, rejected, check.total, check.wrong, check.largest, error.code, error.message,
      error.hint, build_seconds, incumbent_seconds);
  }

  bool is_ok() const { return outcome == Outcome::kOk; }
  double median() const;  ///< infinity without times
};

struct Counters {
  std::array<int64_t, kNumOutcomes> count{};
  std::array<std::string, kNumOutcomes> first_message;  ///< first message of each kind of failure
  int64_t submitted = 0;
  int64_t helpers_started = 0;
  int64_t helpers_lost = 0;  ///< died or were killed, cancelation aside

  int64_t of(Outcome outcome) const { return count[static_cast<size_t>(outcome)]; }
  int64_t done() const;
};

/// Activity of the helpers. If there are several at once, the last one in this list counts.
enum class Activity { kNothing, kStarting, kBuilding, kReference, kChecking, kMeasuring, kFinals };
inline constexpr size_t kNumActivities = 7;

/// Where the time went since the pipeline was started.
struct Activities {
  std::array<double, kNumActivities> seconds{};  ///< these add up to all of it
  double building = 0;                           ///< sum over all building processes, which may run beside others

  /// Seconds that helper processes spent on "building", "checking" and "measuring", whether or not anybody waited.
  std::map<std::string, double> beside() const;
};

/// Kernels to be timed against one another with the machine to themselves.
struct FinalsRequest {
  struct Kernel {
    std::shared_ptr<const std::string> object;
    std::string entry;
  };
  std::vector<Kernel> kernels;
  /// The last so many kernels are measured for comparison and cannot win: of a slow one, the first few rounds are
  /// enough.
  size_t baselines = 0;
  int rounds = 20;  ///< without disturbance, of each other kernel in the same rounds as the first
  double slice_seconds = 1e-3;
  double budget_seconds = 5;
};
struct FinalsResult {
  /// seconds[kernel][round], of a slow baseline the first rounds alone: what other work of the machine disturbed is
  /// among them; with one thread they are seconds of the processor then.
  std::vector<std::vector<double>> seconds{};
  std::vector<std::vector<bool>> disturbed{};  ///< by kernel and round
  std::optional<Diagnostic> error{};
  std::string host{};  ///< see Measured::host
};

/// Builds and measures the candidates of a session, with helper processes of this machine or on other machines.
class Measurer {
 public:
  virtual ~Measurer() = default;

  virtual void submit(Candidate candidate) = 0;
  /// Candidates that were submitted and have not been returned by poll().
  virtual size_t outstanding() const = 0;
  /// Returns finished results. Waits for the first one at most `timeout`, and not at all if nothing is outstanding.
  virtual std::vector<Measured> poll(std::chrono::milliseconds timeout) = 0;
  /// Runs when what is being built and measured is done; nothing else starts before. One request at a time.
  virtual void begin_finals(FinalsRequest request) = 0;
  virtual std::optional<FinalsResult> poll_finals(std::chrono::milliseconds timeout) = 0;
  /// Cancels unfinished work: poll() returns it as kCanceled, and its helpers are replaced.
  virtual void drop() = 0;
  /// Ends all that is under way. What was outstanding comes back from poll() as kCanceled.
  virtual void cancel() = 0;
  /// Why no candidate can be measured any more, if so; what was outstanding came back as kCanceled.
  virtual std::optional<Diagnostic> failure() const = 0;
  virtual Activities activities() const = 0;
  /// Threads of the search that compute a lot should stay on `build`: what shares a processor with the kernel that is
  /// being timed spoils its slices.
  virtual const CpuPlan& cpu_plan() const = 0;
};

class MeasurePipeline final : public Measurer {
 public:
  static Result<std::unique_ptr<MeasurePipeline>> start(std::shared_ptr<Arguments> arguments,
                                                        const PipelineOptions& options = {});
  /// Cancels, and waits until no process is left.
  ~MeasurePipeline() override;
  MeasurePipeline(const MeasurePipeline&) = delete;
  MeasurePipeline& operator=(const MeasurePipeline&) = delete;

  void submit(Candidate candidate) override;
  size_t outstanding() const override;
  std::vector<Measured> poll(std::chrono::milliseconds timeout) override;

  /// The time that candidates race against: at first that of `race` in the options; results lower it.
  double incumbent() const;

  void begin_finals(FinalsRequest request) override;
  std::optional<FinalsResult> poll_finals(std::chrono::milliseconds timeout) override;

  void drop() override;
  /// Kills all helpers. Returns within 200 ms.
  void cancel() override;
  /// Cancels all pipelines of this process; whether all of their threads have ended, and with them the helpers, within
  /// that time.
  static bool cancel_all(std::chrono::milliseconds wait);
  std::optional<Diagnostic> failure() const override;

  Counters counters() const;
  Activities activities() const override;
  /// Process numbers of the helpers that live now, the measuring one first.
  std::vector<int> helper_pids() const;
  const CpuPlan& cpu_plan() const override;

 private:
  class Loop;
  explicit MeasurePipeline(std::unique_ptr<Loop> loop);
  std::unique_ptr<Loop> loop_;
};

/// Ratio of two times, by pairs of the same round: median with a bootstrap 95 % interval (performance protocol: a win
/// needs an interval that excludes 1).
struct PairedRatio {
  double median = 1, low = 1, high = 1;
};
PairedRatio paired_ratio(const std::vector<double>& first, const std::vector<double>& second);

}  // namespace tilewright::search
