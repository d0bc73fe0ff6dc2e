// How often a candidate is called before its time is known well enough. Most candidates are slow, which one call shows.
// Repetitions are for candidates that may be the fastest.
//
//   first call    slower than `first_stop_ratio` x the incumbent, and by more than cold caches explain: stopped
//   warm-up       at least `warm_up_seconds` of calls
//   any time      after `doubt_seconds` of calls the fastest is still slower than `stop_ratio` x: stopped
//   screening     `screen_slices` slices; the fastest slower than `contend_ratio` x: kept as it is
//   contention    up to `full_slices` slices; what chance may explain shrinks with them, and with it how much slower
//   than
//                 the incumbent one may be that goes on
//
// A slice is about `slice_seconds` of calls. It counts only when the thread was not interrupted: no involuntary context
// switch, and wall time within 2 % of processor time. Every ten slices a probe of the machine's peak follows; when it
// falls short of the best probe, something else ran meanwhile and the ten are dropped. The class decides and keeps the
// samples; it measures nothing, so it can be tested with made-up times.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace tilewright::search {

struct RaceRules {
  double incumbent = std::numeric_limits<double>::infinity();  ///< seconds per call of the best so far
  double first_stop_ratio = 2.0;
  double cold_slack = 5e-4;  ///< seconds that the first call may take longer because everything is new to it
  double stop_ratio = 1.5;
  double contend_ratio = 1.1;
  int32_t screen_slices = 5;
  int32_t full_slices = 20;
  double slice_seconds = 1e-3;
  double warm_up_seconds = 1e-3;
  /// Duration of a disturbance: other work on the machine slows down everything for some milliseconds at a time (a
  /// neighbor on the same core of a virtual machine: 1.9 times for 3 to 10 ms). A short kernel is not rejected as slow
  /// before that.
  double doubt_seconds = 5e-3;
  double budget_seconds = 0.1;  ///< time for calls, after which the results so far have to do

  int64_t least_calls = 1;  ///< least number of calls of a slice
  bool keeps_all = false;   ///< slices count whatever disturbed them

  /// Times every candidate alike: so many slices, each of so many calls and so many seconds at least.
  static RaceRules steady(int32_t slices, int64_t calls, double seconds, double budget) {
    constexpr double kAny = std::numeric_limits<double>::infinity();
    return {.first_stop_ratio = kAny,
            .stop_ratio = kAny,
            .contend_ratio = kAny,
            .screen_slices = slices,
            .full_slices = slices,
            .slice_seconds = seconds,
            .budget_seconds = budget,
            .least_calls = calls,
            .keeps_all = true};
  }

  template <class A>
  void fields(A& a) {
    a(incumbent, first_stop_ratio, cold_slack, stop_ratio, contend_ratio, screen_slices, full_slices, slice_seconds,
      warm_up_seconds, doubt_seconds, budget_seconds, least_calls, keeps_all);
  }
};

/// Time of one uninterrupted run of `calls` calls.
struct Slice {
  int64_t calls = 1;
  double wall = 0;                   ///< seconds of all calls together
  double cpu = 0;                    ///< processor seconds of the calling thread
  int64_t involuntary_switches = 0;  ///< involuntary context switches of the calling thread
};

/// Whether a slice measures the kernel's speed. With more than one thread the caller may sleep while others finish, so
/// its processor time is no measure then.
bool is_undisturbed(const Slice& slice, int threads);

class Race {
 public:
  enum class Verdict : uint8_t {
    kSlow,       ///< clearly slower than the incumbent
    kScreened,   ///< not the best, timed well enough to learn from
    kContender,  ///< timed with all slices
  };

  Race(const RaceRules& rules, int threads) : rules_(rules), threads_(threads) {}

  /// The calls of the next slice; 0: the race is over.
  int64_t next_calls() const;
  void observe(const Slice& slice);
  /// A probe should follow now.
  bool wants_probe() const { return !over_ && !rules_.keeps_all && group_.size() + group_rejected_ >= kGroup; }
  /// `fraction`: this probe against the best one of the run.
  void observe_probe(double fraction);

  Verdict verdict() const { return verdict_; }
  /// Seconds per call of the slices that count. Never empty once a call was observed: where every slice was disturbed,
  /// it holds the fastest of them, and is_noisy() says so.
  std::vector<double> seconds() const;
  bool is_noisy() const { return accepted() == 0; }
  /// Slices that did not count.
  int rejected() const { return rejected_; }

 private:
  enum class Stage : uint8_t { kFirst, kWarmUp, kTimed };
  static constexpr size_t kGroup = 10;
  static constexpr double kProbeShortfall = 0.95;

  size_t accepted() const { return kept_.size() + group_.size(); }
  void end(Verdict verdict);
  void decide();
  double may_be_slower(int32_t slices) const;

  RaceRules rules_;
  int threads_;
  Stage stage_ = Stage::kFirst;
  bool over_ = false;
  Verdict verdict_ = Verdict::kScreened;
  double fastest_ = std::numeric_limits<double>::infinity();  // per call, of all slices, disturbed ones included
  double spent_ = 0;
  double warmed_ = 0;
  int warm_up_slices_ = 0;
  std::vector<double> kept_, group_;  // accepted samples: confirmed by a probe; since the last probe
  size_t group_rejected_ = 0;
  int rejected_ = 0;
};

}  // namespace tilewright::search
