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
  /// Memory that threads of a team share: by allocation, how often a thread came there, and where along the axes whose
  /// threads have copies of their own the thread is.
  using SharedKey = std::tuple<const Insn*, int, std::vector<int64_t>>;
  using Shared = std::map<SharedKey, int64_t>;
  using Occurrences = std::map<const Insn*, int>;
  struct OwnLevel {
    Fork fork;
    Level level;
    Occurrences occurrences;  ///< when the loop began; each of its threads counts on from there
  };
  static constexpr size_t kInherited = SIZE_MAX;
  struct Team;
  /// A store that is on its way.
  struct Copy {
    int64_t pointer = 0;  ///< address including the offset
    int site = 0;
    std::vector<std::byte> value;
  };
  struct Thread {
    std::vector<Frame> frames;
    std::vector<Level*> levels;                  // parallel loops around, outermost first
    std::vector<std::unique_ptr<OwnLevel>> own;  // levels that this thread runs itself
    size_t own_used = 0;
    std::vector<Copy> copies;               // since the last group was closed
    std::vector<std::vector<Copy>> groups;  // groups that have not arrived, the oldest first
    std::shared_ptr<Shared> shared;         // shared with the threads inside; null outside of teams
    size_t shared_level = kInherited;       // number of levels when this thread made it
    Occurrences occurrences;
    Thread* parent = nullptr;
    Team* team = nullptr;
    Level level;  // in its team
    int running_children = 0;
    int barrier = kNone;              // site, while waiting there
    const Insn* warp_step = nullptr;  // while waiting for the rest of the warp
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

  // execution (run.cc)
  Stop execute(Thread& thread);
  bool effect(Thread& thread, const Insn& in, Slot* r);
  bool return_from(Thread& thread, const Insn& in);
  bool check_axis(const Insn& in, const Slot* r);
  /// At a site, once for each step.
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
  bool shows_mirrored(const Access& access, const Slot* r);
  bool locate(const Access& access, const Slot* r, int lane, int64_t& byte, Allocation*& allocation);
  bool arrive(Thread& thread, size_t running);
  bool fail_warp(const Insn& in);
  bool fail_mask(int site);
  bool fail_lane(int site, int64_t lane, int64_t source);
  bool fail_on_its_way(const Access& access, const Slot* r, int lane);
  bool address(const Insn& in, Slot* r);
  bool atomic(const Insn& in, Slot* r);
  bool search(const Insn& in, Slot* r);
  bool allocate(Thread& thread, const Insn& in, Slot* r);
  /// Threads of the team share what is allocated there.
  static bool is_shared(const Thread& thread, const AllocationSite& site);
  std::vector<int64_t> owner_of(const Thread& thread, const MemoryScope& scope) const;
  void release(Thread& thread, const Insn& in, const Slot* r);
  void remember(const Allocation& allocation);
  bool fail_unwritten(const Allocation& allocation, int64_t byte, const Access& access, const Slot* r, int lane);
  bool defer_unwritten(const Allocation& allocation, int64_t byte, const Access& access, const Slot* r, int lane);
  /// Threads that are together again, or done, have read what none of them has written.
  bool has_unwritten();
  int64_t constant_memory(int number);
  bool note_read(Allocation& allocation, int64_t byte, const Access& access, const Slot* r, int lane);
  bool note_write(Allocation& allocation, int64_t byte, const Access& access, const Slot* r, int lane,
                  const std::byte* value);
  bool note_update(Allocation& allocation, int64_t byte, const Access& access, const Slot* r, int lane);
  /// The level on which an access at `stamp` is unordered with now; null if it is ordered.
  const Level* unordered(uint32_t stamp) const;
  bool is_combined(const Level& level, int site, int other) const;
  bool are_steps(const Level& level, int site, int other) const;
  bool in_step(const Level& level, int site, int earlier) const;

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
  using Warp = std::array<Thread*, kWarpLanes>;  ///< null: there is no such thread any more
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
  bool fail_race(const Level& level, uint32_t stamp, int other_site, const char* other_does, const Access& access,
                 const char* does, const Slot* r, int lane);

  const Program& program_;
  const InterpretOptions& options_;
  Memory memory_;
  std::vector<int64_t> constants_;
  /// For memory that iterations of parallel loops had, by AllocationSite: when the last that wrote an element ended.
  std::unordered_map<int, std::vector<uint32_t>> left_behind_;
  std::list<std::unique_ptr<Thread>> threads_;
  std::list<std::unique_ptr<Team>> teams_;
  Thread* current_ = nullptr;
  std::vector<uint64_t> previous_;  // levels of the thread that ran last; empty behind a barrier
  uint64_t next_level_ = 1;
  uint32_t clock_ = 1;
  uint64_t steps_ = 0, step_limit_;
  std::chrono::steady_clock::time_point deadline_;
  std::optional<Diagnostic> failure_;
  std::optional<Diagnostic> unwritten_;  ///< a read by one of the threads that are running
};

}  // namespace tilewright::interpreter
