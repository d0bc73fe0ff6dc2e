// Executes the code of a program.
#pragma once

#include <array>
#include <chrono>
#include <list>
#include <map>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "interpreter/code.h"
#include "interpreter/interpreter.h"
#include "interpreter/memory.h"
#include "interpreter/race_levels.h"

namespace tilewright::interpreter {

class Machine {
 public:
  Machine(const Program& program, const InterpretOptions& options);
  Status run(int function, const std::vector<InterpretArg>& args);

 private:
  struct Frame {
    const Function* function = nullptr;
    std::unique_ptr<Slot[]> memory;
    Slot* slots = nullptr;
    size_t pc = 0;                                    // next instruction
    const std::vector<InterpretArg>* args = nullptr;  // null: called by a function of the program
    int result = kNone, result_lanes = 1;             // slots of the caller
  };
  /// Team-shared allocations, by (instruction, execution count in this thread, indices along thread axes that do not
  /// share the memory).
  using SharedKey = std::tuple<const Insn*, int, std::vector<int64_t>>;
  using Shared = std::map<SharedKey, int64_t>;
  using Occurrences = std::map<const Insn*, int>;
  /// An execution of a parallel loop whose iterations this thread runs one after another.
  struct LoopRun {
    Fork fork;
    LoopLevel level;
    Occurrences occurrences;  ///< at the start of the loop; each iteration starts from these
  };
  static constexpr size_t kInherited = SIZE_MAX;
  struct Team;
  /// An asynchronous store that has not completed.
  struct PendingStore {
    int64_t pointer = 0;  ///< address including the offset
    int site = 0;
    std::vector<std::byte> value;
  };
  struct Thread {
    std::vector<Frame> frames;
    std::vector<LoopLevel*> levels;                   // enclosing parallel loops, outermost first
    std::vector<std::unique_ptr<LoopRun>> loop_runs;  // those beyond the first `num_loop_runs` are free for reuse
    size_t num_loop_runs = 0;
    std::vector<PendingStore> open_group;                   // since the last group was committed
    std::vector<std::vector<PendingStore>> pending_groups;  // committed groups that have not completed, oldest first
    std::shared_ptr<Shared> shared;                         // team-shared memory; null outside of teams
    size_t shared_level = kInherited;                       // levels.size() when this thread created `shared`
    Occurrences occurrences;
    Thread* parent = nullptr;
    Team* team = nullptr;
    LoopLevel level;  // in its team
    int running_children = 0;
    int barrier = kNone;              // site, while waiting there
    const Insn* warp_step = nullptr;  // warp instruction at which the thread waits for its warp
    std::list<std::unique_ptr<Thread>>::iterator place;
  };
  struct Team {
    Fork fork;
    int finished = 0;
  };
  enum class Stop { kFinished, kForked, kBarrier, kFailed };

  // calls and arguments (interpreter.cc)
  Status bind(const Function& function, const std::vector<InterpretArg>& args);
  Status bind_tensor(const Ref<Var>& param, const Ref<Buffer>& buffer, const TensorArg& arg, Slot& slot);
  Status bind_scalar(const Ref<Var>& param, const ScalarArg& arg, Slot& slot);
  void push_frame(Thread& thread, const Function& function);
  void store_returned(const Function& function, Slot value);

  // A bool result is false after a failure, which is then in failure_.

  // execution (run.cc)
  Stop execute(Thread& thread);
  bool effect(Thread& thread, const Insn& in, Slot* r);
  bool return_from(Thread& thread, const Insn& in);
  bool check_axis(const Insn& in, const Slot* r);
  /// Counts one step and checks the limits.
  bool check_limits(int site);
  bool call(Thread& thread, const CallSite& site);
  bool arithmetic(const Insn& in, Slot* r);
  bool divide(const Insn& in, Slot* r);
  void compare(const Insn& in, Slot* r);
  void math(const Insn& in, Slot* r);
  void convert(const Insn& in, Slot* r);
  void print(const PrintSite& site, const Slot* r);
  bool check_argument(const Frame& frame, const ArgCheck& check, const Slot* r);
  bool argument_size(const Frame& frame, const Insn& in, Slot* r);
  static int64_t size_of_stride(const Frame& frame, int param, size_t dimension);

  // memory (access.cc)
  template <bool kWrite>
  bool access(const Insn& in, const Access& access, Slot* r);
  /// Whether the access goes to the flat view of an argument with negative strides. Elsewhere elements never precede
  /// the data pointer; here they do, so only the allocation bounds the access.
  bool is_negative_stride_view(const Access& access, const Slot* r);
  bool locate(const Access& access, const Slot* r, int lane, int64_t& byte, Allocation*& allocation);
  /// Completes all but the last `running` groups of asynchronous stores.
  bool complete_groups(Thread& thread, size_t running);
  bool fail_warp(const Insn& in);
  bool fail_mask(int site);
  bool fail_lane(int site, int64_t lane, int64_t source);
  bool fail_pending_store(const Access& access, const Slot* r, int lane);
  bool address(const Insn& in, Slot* r);
  bool atomic(const Insn& in, Slot* r);
  bool search(const Insn& in, Slot* r);
  bool allocate(Thread& thread, const Insn& in, Slot* r);
  /// Whether the threads of the team share the memory that is allocated at the site.
  static bool is_shared(const Thread& thread, const AllocationSite& site);
  std::vector<int64_t> owner_of(const Thread& thread, const MemoryScope& scope) const;
  void release(Thread& thread, const Insn& in, const Slot* r);
  void record_writes_of(const Allocation& allocation);
  bool fail_unwritten(const Allocation& allocation, int64_t byte, const Access& access, const Slot* r, int lane);
  bool defer_unwritten(const Allocation& allocation, int64_t byte, const Access& access, const Slot* r, int lane);
  /// Reports a deferred read of unwritten memory once the team has joined; returns whether there was one.
  bool has_unwritten();
  int64_t constant_memory(int number);
  // note_*: check an access for races, and record it.
  bool note_read(Allocation& allocation, int64_t byte, const Access& access, const Slot* r, int lane);
  bool note_write(Allocation& allocation, int64_t byte, const Access& access, const Slot* r, int lane,
                  const std::byte* value);
  bool note_update(Allocation& allocation, int64_t byte, const Access& access, const Slot* r, int lane);
  /// Returns the level on which an access at `stamp` is unordered with the current access; null if it is ordered.
  const LoopLevel* unordered(uint32_t stamp) const;
  /// Whether both accesses belong to one reduction block whose steps are divided among threads, which then combine
  /// their results. False if each thread executes all steps of an element.
  bool are_combined_by_threads(const LoopLevel& level, int site, int other) const;
  /// Whether both are steps of one reduction in different iterations of a loop over lanes, each of which has a partial
  /// result; or one is a step and the other the init that it starts from, which comes before the lanes.
  bool are_reduction_steps(const LoopLevel& level, int site, int other) const;
  /// Whether lockstep execution of lanes orders both accesses: lanes execute each part of a statement together before
  /// the next, so an access of an earlier iteration at an earlier position of the body comes first in that order, too.
  bool ordered_in_lockstep(const LoopLevel& level, int site, int earlier) const;

  // threads (threads.cc)
  Status schedule();
  void enter(Thread& thread, const Insn& in);
  void iterate(Thread& thread, int64_t index);
  bool leave(Thread& thread);
  void begin_shared(Thread& thread);
  bool end_shared(Thread& thread);
  bool fork(Thread& thread, const Insn& in);
  void resume(Thread& thread);
  bool release_barrier();
  // warp_steps.cc
  using Warp = std::array<Thread*, kWarpLanes>;  ///< null: the thread does not exist or has finished
  std::vector<int64_t> warp_of(const Thread& thread, int64_t& lane);
  bool run_warp(const Warp& warp, const Insn& in);
  bool run_warps();

  // errors (report.cc)
  std::string where(int site) const;
  std::string element(const Access& access, const Slot* r, int lane) const;
  bool fail(std::string code, std::string message, int site, std::string hint = {});
  bool fail(Diagnostic failure, int site);
  bool fail_with(int message);
  bool fail_assumption(const Insn& in, const Slot* r);
  bool fail_bounds(const Access& access, const Slot* r, int lane);
  bool fail_race(const LoopLevel& level, uint32_t stamp, int other_site, const char* other_does, const Access& access,
                 const char* does, const Slot* r, int lane);

  const Program& program_;
  const InterpretOptions& options_;
  Memory memory_;
  std::vector<int64_t> constants_;
  /// Per AllocationSite: stamps of last writes to freed memory of parallel iterations (explains uninitialized reads).
  std::unordered_map<int, std::vector<uint32_t>> freed_writes_;
  std::list<std::unique_ptr<Thread>> threads_;
  std::list<std::unique_ptr<Team>> teams_;
  Thread* current_ = nullptr;
  std::vector<uint64_t> previous_;  // levels of the thread that ran last; empty after a barrier
  uint64_t next_level_ = 1;
  uint32_t clock_ = 1;
  uint64_t steps_ = 0, step_limit_;
  std::chrono::steady_clock::time_point deadline_;
  std::optional<Diagnostic> failure_;
  std::optional<Diagnostic> unwritten_;  ///< a deferred read of unwritten memory by a running thread
};

}  // namespace tilewright::interpreter
