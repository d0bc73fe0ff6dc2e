// The thread behind MeasurePipeline: one poll() over all helpers, no call that blocks, one state for each helper.
//
//           start                 Hello, Ready                 request               reply
//   kNone --------> kStarting ------------------> kIdle ---------------> busy states ------> kIdle
//     ^                                                                      |
//     |  reaped: the candidate it had is finished      connection closed, garbage, deadline: killed
//     +----------------------------------------- kDying <--------------------+
//
// Candidates move by value: inbox -> to_build -> a builder -> to_measure -> the measuring helper -> outbox.
//
// Where nothing waits to be measured, one more builder, the guest, uses the processors that are kept for measuring;
// the next measurement waits for it. That is not done where builds take long, and not where the caller says how many
// builders there are.
#pragma once

#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

#include "search/measure/cpu_plan.h"
#include "search/measure/helper_process.h"
#include "search/measure/messages.h"
#include "search/measure/pipeline.h"
#include "search/measure/temporary_folder.h"

namespace tilewright::search {

class MeasurePipeline::Loop {
 public:
  Loop(std::shared_ptr<Arguments> arguments, const PipelineOptions& options, CpuPlan plan, std::string helper);
  ~Loop();
  Status start();
  bool is_foreign() const { return ::getpid() != owner_; }

  // The functions of MeasurePipeline.
  void submit(Candidate candidate);
  size_t outstanding() const;
  std::vector<Measured> poll(std::chrono::milliseconds timeout);
  void set_incumbent(double seconds);
  double incumbent() const;
  void begin_finals(FinalsRequest request);
  std::optional<FinalsResult> poll_finals(std::chrono::milliseconds timeout);
  void drop();
  void cancel();
  static bool cancel_all(std::chrono::milliseconds wait);
  std::optional<Diagnostic> failure() const;
  Counters counters() const;
  Activities activities() const;
  std::vector<int> helper_pids() const;
  const CpuPlan& cpu_plan() const { return plan_; }

 private:
  /// The loops of this process whose threads were started.
  static std::mutex& all_mutex();
  static std::vector<Loop*>& all();

  using Clock = std::chrono::steady_clock;

  struct Job {
    Candidate candidate;
    Measured result;
    int retries = 0;  // after helpers that somebody else killed
  };
  enum class State { kNone, kStarting, kIdle, kBuilding, kChecking, kTiming, kFinals, kDying };
  struct Worker {
    bool measures = false;
    bool is_guest = false;
    State state = State::kNone;
    std::optional<HelperProcess> process;
    std::optional<Job> job;
    uint64_t request = 0;                            // number of the message that is being answered
    Clock::time_point since;                         // when the helper was asked
    Clock::time_point deadline;                      // when somebody has to look again
    double limit = 0;                                // seconds from `since` on, or of the call in kChecking
    std::map<int, HelperProcess::ThreadTime> times;  // times of the helper's threads when the request was sent
    bool was_ready = false;                          // this process got as far as kIdle
    std::optional<Measured> verdict;                 // why it was killed: outcome and error

    bool is_busy() const { return state != State::kNone && state != State::kStarting && state != State::kIdle; }
  };

  // pipeline_loop.cc: the thread, waiting, starting, handing out work.
  void run();
  bool step();  ///< true: the thread may end
  void take_inbox();
  void dispatch();
  void dispatch_builds();
  void build_next(Worker& worker);
  bool guest_may_build() const;
  bool guest_builds() const { return workers_.back().is_guest && workers_.back().is_busy(); }
  void dispatch_measurement();
  void dispatch_finals();
  bool exclusive_phase_allows(bool building);
  void ensure_process(Worker& worker);
  void wait_for_events();
  void look_at_deadline(Worker& worker);
  void halt(const std::optional<Diagnostic>& why);
  void drop_all();
  void drop_queued();
  bool is_finished() const;
  Diagnostic stop_reason() const;
  void publish_pids();
  /// The time since the last call went to what was done then.
  void account();
  Activity activity() const;

  // pipeline_events.cc: what helpers say, and how they end.
  void on_readable(Worker& worker);
  void on_frame(Worker& worker, const Frame& frame);
  bool on_start_message(Worker& worker, const Frame& frame);
  bool on_built(Worker& worker, const Frame& frame);
  bool on_checked(Worker& worker, const Frame& frame);
  bool on_reference(Worker& worker, const CheckedReply& reply);
  bool on_measured(Worker& worker, const Frame& frame);
  bool on_timed(Worker& worker, const Frame& frame);
  void look_at_call(Worker& worker);
  void on_timeout(Worker& worker);
  /// Gives the helper this many seconds from now on.
  static void begin_limit(Worker& worker, double seconds);
  /// Time in which other programs had the processor is not the helper's own. True: it gets more, up to some limit.
  static bool extend_limit(Worker& worker, double taken, double limit);
  void kill(Worker& worker, Outcome outcome, Diagnostic error);
  void lose(Worker& worker);
  void on_dead(Worker& worker, int wait_status);
  Measured explain_death(const Worker& worker, int wait_status);
  void finish(Job job, Outcome outcome, std::optional<Diagnostic> error = {});
  void finish_finals(FinalsResult result);
  HelperSetup setup_for(const Worker& worker) const;
  /// The candidate of a helper that has answered and is idle now.
  static Job take_job(Worker& worker);

  void wake();
  static std::chrono::nanoseconds from_seconds(double seconds);

  const std::shared_ptr<Arguments> arguments_;
  const PipelineOptions options_;
  const CpuPlan plan_;
  const std::string helper_;
  const int owner_;  // the process that made this
  mutable TemporaryFolder driver_cache_;

  // Shared with callers, under mutex_.
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Candidate> inbox_;
  std::deque<Measured> outbox_;
  std::optional<FinalsRequest> finals_inbox_;
  std::optional<FinalsResult> finals_outbox_;
  size_t outstanding_ = 0;
  double incumbent_;
  Counters counters_;
  Activities activities_;
  Activity activity_ = Activity::kStarting;  // since `accounted_`
  size_t builds_ = 0;                        // concurrent builds since `accounted_`
  Clock::time_point accounted_ = Clock::now();
  std::optional<Diagnostic> failure_;  // written by the thread only, which may read it without the mutex
  std::vector<int> pids_;
  bool halted_ = false;

  std::atomic<bool> cancel_{false}, drop_{false}, ended_{false};
  int wake_fd_ = -1;
  std::thread thread_;

  // The thread's own.
  std::vector<Worker> workers_;  // the measuring one first, the guest last
  std::deque<Job> to_build_, to_measure_;
  std::optional<FinalsRequest> finals_;
  int finals_retries_ = 0;
  uint64_t next_request_ = 1;
  double best_probe_ = 0;
  std::shared_ptr<const std::string> beside_;  // the incumbent of the candidate that was measured last
  FastestBeside fastest_;                      // the fastest candidate that was measured beside it
  double run_timeout_;                         // timeout of options_, adapted to the reference's time
  double last_build_seconds_ = 0;
  int failed_starts_ = 0;
  bool building_phase_ = true;
  bool stopping_ = false;
};

}  // namespace tilewright::search
