// One task of a search: a program, the machine it is for, and the components that work on it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "schedule/schedule.h"
#include "target/target.h"

namespace tilewright::search {

class SearchStrategy;
class SpaceGenerator;

using schedule::BlockRV;
using schedule::LoopRV;
using schedule::Random;
using schedule::Schedule;
using schedule::Trace;
using Schedules = std::vector<Schedule>;

/// Components see it when they are initialized, and copy what they need; they do not keep it.
struct TuneContext {
  Ref<Module> module;            ///< null: none yet
  std::optional<Target> target;  ///< none: components that need one refuse
  std::shared_ptr<SpaceGenerator> space_generator;
  std::shared_ptr<SearchStrategy> search_strategy;
  std::string task_name = "main";
  uint64_t seed = 0;
  int num_threads = 1;  ///< threads that sample candidates

  /// Initializes the space generator, then the strategy.
  Status initialize();
};

}  // namespace tilewright::search
