// Parallel loops and teams of threads. Threads take turns only at barriers, in the order of their indices, so that
// what runs is one of the orders the program allows, always the same.
#include "interpreter/machine.h"

#include <algorithm>

#include "support/ranges.h"

namespace tilewright::interpreter {
namespace {

/// Beyond this many iterations a report of a race no longer knows the number of the other one.
constexpr size_t kMaxHistory = size_t{1} << 20;

void begin_slice(LoopLevel& level, uint32_t stamp) {
  level.start = stamp;
  if (level.fork->starts.size() >= kMaxHistory) return;
  level.fork->starts.push_back(stamp);
  level.fork->indices.push_back(level.index);
}

}  // namespace

void Machine::enter(Thread& thread, const Insn& in) {
  if (thread.num_loop_runs == thread.loop_runs.size()) thread.loop_runs.push_back(std::make_unique<LoopRun>());
  LoopRun& loop_run = *thread.loop_runs[thread.num_loop_runs++];
  loop_run.fork.site = in.extra;
  loop_run.fork.begin = ++clock_;
  loop_run.fork.starts.clear();
  loop_run.fork.indices.clear();
  loop_run.level = {&loop_run.fork, loop_run.fork.begin, 0, next_level_++, false};
  if (program_.loops[in.extra].is_thread) {
    begin_shared(thread);
    loop_run.occurrences = thread.occurrences;
  }
  thread.levels.push_back(&loop_run.level);
}

void Machine::iterate(Thread& thread, int64_t index) {
  LoopLevel& level = *thread.levels.back();
  level.index = index;
  begin_slice(level, ++clock_);
  if (thread.shared && program_.loops[level.fork->site].is_thread) {
    thread.occurrences = thread.loop_runs[thread.num_loop_runs - 1]->occurrences;
  }
}

bool Machine::leave(Thread& thread) {
  thread.levels.pop_back();
  --thread.num_loop_runs;
  return end_shared(thread);
}

void Machine::begin_shared(Thread& thread) {
  if (thread.shared) return;
  thread.shared = std::make_shared<Shared>();
  thread.shared_level = thread.levels.size();
}

/// Ends the shared memory with the outermost loop over threads.
bool Machine::end_shared(Thread& thread) {
  if (!thread.shared || thread.shared_level != thread.levels.size()) return true;
  for (const auto& [key, pointer] : *thread.shared) memory_.release(pointer);
  thread.shared = nullptr;
  thread.shared_level = kInherited;
  return !has_unwritten();
}

/// Starts one thread for each iteration. The forking thread continues after the loop when all have joined.
bool Machine::fork(Thread& thread, const Insn& in) {
  Frame& frame = thread.frames.back();
  int64_t start = frame.slots[in.a].i, count = frame.slots[in.b].i;
  frame.pc = static_cast<size_t>(in.c);
  if (count <= 0) return false;
  begin_shared(thread);
  teams_.push_back(std::make_unique<Team>());
  Team& team = *teams_.back();
  team.fork.site = in.extra;
  team.fork.begin = ++clock_;
  team.fork.count = count;
  thread.running_children = static_cast<int>(count);
  auto place = std::next(thread.place);
  size_t constants = frame.function->constants.size();
  size_t size = constants + static_cast<size_t>(frame.function->frame_size);
  for (int64_t t = 0; t < count; ++t) {
    auto child = std::make_unique<Thread>();
    Frame copy;
    copy.function = frame.function;
    copy.memory.reset(new Slot[size]);
    std::copy_n(frame.memory.get(), size, copy.memory.get());
    copy.slots = copy.memory.get() + constants;
    copy.slots[in.dst].i = start + t;
    copy.pc = static_cast<size_t>(&in - frame.function->code.data()) + 1;
    child->frames.push_back(std::move(copy));
    child->levels = thread.levels;
    child->level = {&team.fork, 0, start + t, next_level_++, true};
    child->levels.push_back(&child->level);
    child->shared = thread.shared;
    child->occurrences = thread.occurrences;
    child->parent = &thread;
    child->team = &team;
    auto it = threads_.insert(place, std::move(child));
    (*it)->place = it;
  }
  return true;
}

/// Makes the thread the running one. If another thread of its team ran before, a new slice of its iteration begins.
void Machine::resume(Thread& thread) {
  current_ = &thread;
  bool same = true;
  for (size_t i : indices_of(thread.levels)) {
    same = same && i < previous_.size() && previous_[i] == thread.levels[i]->id;
    if (!same && thread.levels[i]->in_team) begin_slice(*thread.levels[i], ++clock_);
  }
}

bool Machine::release_barrier() {
  if (has_unwritten()) return false;
  int site = kNone;
  for (const auto& thread : threads_) {
    if (thread->warp_step) {
      current_ = thread.get();
      return fail_warp(*thread->warp_step);
    }
    if (thread->barrier == kNone) continue;
    current_ = thread.get();
    if (thread->team->finished > 0) {
      return fail("interpret/barrier",
                  where(thread->barrier) + ": some threads wait at a barrier that others never reach", thread->barrier,
                  "every thread of the team has to come to each barrier");
    }
    if (site != kNone && program_.sites[site].node != program_.sites[thread->barrier].node) {
      return fail("interpret/barrier", where(site) + ": threads of one team wait at different barriers", site,
                  "a barrier inside a branch holds up those who take the other one");
    }
    site = thread->barrier;
  }
  ++clock_;
  for (const auto& thread : threads_) thread->barrier = kNone;
  for (const auto& team : teams_) {
    team->fork.begin = clock_;
    team->fork.starts.clear();
    team->fork.indices.clear();
  }
  previous_.clear();
  return true;
}

Status Machine::schedule() {
  auto it = threads_.begin();
  while (!threads_.empty()) {
    if (it == threads_.end()) {
      // All threads wait: for other lanes of their warp, at a barrier, or for child threads that wait.
      if (!run_warps() && (failure_ || !release_barrier())) return std::move(*failure_);
      it = threads_.begin();
    }
    Thread& thread = **it;
    if (thread.barrier != kNone || thread.warp_step || thread.running_children > 0) {
      ++it;
      continue;
    }
    resume(thread);
    Stop stop = execute(thread);
    previous_.clear();
    for (const LoopLevel* level : thread.levels) previous_.push_back(level->id);
    if (stop == Stop::kFailed) return std::move(*failure_);
    if (stop != Stop::kFinished) {
      ++it;
      continue;
    }
    Thread* parent = thread.parent;
    Team* team = thread.team;
    auto next = std::next(it);
    if (parent) {
      ++team->finished;
      if (--parent->running_children == 0) {
        parent->occurrences = std::move(thread.occurrences);
        std::erase_if(teams_, [&](const auto& t) { return t.get() == team; });
        if (!end_shared(*parent)) return std::move(*failure_);
        next = parent->place;
      }
    }
    current_ = nullptr;
    threads_.erase(it);
    it = next;
  }
  return Ok{};
}

}  // namespace tilewright::interpreter
