// Find the block with a name, anywhere in a function.
//
// Requires  P1 a function to look in
//           P2 a block of that name
//           P3 only one
#include "schedule/primitives/get_block.h"

#include "schedule/primitive.h"

namespace tilewright::schedule {

Result<Plan> plan(const State& state, const GetBlock& get) {
  TW_TRY(func, function_meant(state, get.func_name, "get_block/P1", "be working on", "get_block(name, func_name=...)"));
  TW_TRY(tree, state.tree(func));
  std::vector<int> matches;
  for (int at : tree->blocks()) {
    if (tree->block_at(at).name_hint == get.name) matches.push_back(at);
  }
  if (matches.empty()) {
    std::string names;
    for (int at : tree->blocks()) names += (names.empty() ? "" : ", ") + tree->block_at(at).name_hint;
    return refuse("get_block/P2", "Cannot find a block with the name: " + get.name, {},
                  "the blocks of '" + state.shown_name(func) + "' are: " + names);
  }
  if (matches.size() > 1) {
    Diagnostic d =
        refuse("get_block/P3", "Found " + std::to_string(matches.size()) + " blocks with the name: " + get.name, {},
               "give the blocks different names in the script, or reach them with get_child_blocks");
    for (int at : matches) d.nodes.push_back(keep(tree->stmt(at)));
    return d;
  }
  Plan plan = give_blocks(func, *tree, matches);
  plan.recorded = GetBlock{get.name, state.function_name(func)};
  return plan;
}

}  // namespace tilewright::schedule
