#pragma once

#include "schedule/instruction_fields.h"

namespace tilewright::schedule {

struct GetSpIters {
  std::string name;
  std::string func_name;
  using Members = Fields<&GetSpIters::name, &GetSpIters::func_name>;
  using Returns = std::vector<LoopRV>;
  static constexpr int kRequired = 1;
  static constexpr Family kFamily = Family::kLookup;
  static constexpr std::string_view kDoc = R"(Give the variables of the iteration over sparse axes with a name.

Args:
    name: the iteration's name; exactly one iteration of the function has it.
    func_name: the function to look in; by default the one being worked on.

Returns:
    A handle for each axis, in their order, for sparse_reorder and sparse_fuse. They end with lower_sparse_iter.)";
};

Result<Plan> plan(const State& state, const GetSpIters& instruction);

}  // namespace tilewright::schedule
