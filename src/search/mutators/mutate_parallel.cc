// Asks for another number of parallel jobs, one that lets other loops be fused.
//
//   sch.annotate(root, "meta_schedule.parallel", 160)     a nest with outer extents 4, 8, 16, .. has the plans of 1, 2
//                                                         or 3 fused loops, reached by the limits 4, 32, 512
//
// Two limits that fuse the same loops of all blocks are one plan; the present plan is excluded.
#include <map>
#include <set>

#include "analysis/scope.h"
#include "ir/build.h"
#include "schedule/primitives/annotate.h"
#include "search/loop_kinds.h"
#include "search/mutators/mutators.h"
#include "support/ranges.h"

namespace tilewright::search {
namespace {

using analysis::Tree;
using schedule::Annotate;

using Products = std::vector<int64_t>;  ///< products of the extents of the first, of the first two, ... loops

/// Returns the products for each block directly below the root.
std::vector<Products> products_below(const Tree& tree, int root, int64_t limit) {
  std::vector<Products> result;
  for (int block : tree.child_blocks(root)) {
    Products products;
    int64_t product = 1;
    for (int loop : tree.loops_above(block)) {
      auto extent = const_int(tree.for_at(loop).extent);
      if (!extent || loop_use(tree, loop) != LoopUse::kSpatial || product >= limit) break;
      products.push_back(product *= *extent);
    }
    if (!products.empty()) result.push_back(std::move(products));
  }
  return result;
}

/// Returns the number of loops of each block that are fused under a limit.
std::vector<size_t> plan_for(const std::vector<Products>& blocks, int64_t limit) {
  std::vector<size_t> counts;
  for (const Products& products : blocks) {
    size_t count = std::ranges::upper_bound(products, limit) - products.begin();
    if (count > 0 && products[count - 1] == limit) --count;
    counts.push_back(std::min(count + 1, products.size()));
  }
  return counts;
}

struct Found {
  size_t step;
  BlockRV block;
  int64_t limit;
};

/// One for each function that was annotated.
std::vector<Found> annotations_of(const Trace& trace) {
  std::vector<Found> all;
  for (size_t i : indices_of(trace)) {
    const auto* annotate = trace[i].instruction.as<Annotate>();
    if (!annotate || annotate->ann_key != "meta_schedule.parallel") continue;
    const auto* block = std::get_if<BlockRV>(&annotate->block_or_loop);
    const auto* limit = annotate->ann_val.as<int64_t>();
    if (block && limit) all.push_back({i, *block, *limit});
  }
  return all;
}

}  // namespace

Status MutateParallel::initialize(const TuneContext& context) {
  if (!context.target) {
    return argument_error("search/no-target", "MutateParallel needs a target, whose cores it counts",
                          "give the TuneContext a target");
  }
  num_cores_ = std::max(1, context.target->num_cores);
  module_ = context.module;
  return Ok{};
}

Result<std::optional<Trace>> MutateParallel::apply(const Trace& whole, Random& random) const {
  Trace trace = whole.without_postproc();
  const std::vector<Found> annotations = annotations_of(trace);
  if (annotations.empty()) return std::optional<Trace>();
  const Found* annotation = &annotations[annotations.size() > 1 ? random.below(annotations.size()) : 0];
  if (!module_.defined()) {
    return argument_error("search/no-module", "MutateParallel replays a trace, but has no program to do it on",
                          "initialize it by a TuneContext with a module");
  }
  TW_TRY(replayed, schedule::Schedule::make(module_));
  TW_RETURN_IF_ERROR(schedule::replay(trace, replayed));
  // Replay numbers handles anew; the block is that of the same step.
  const auto& annotate = *replayed.trace()[annotation->step].instruction.as<Annotate>();
  TW_TRY(root, replayed.state().find(std::get<BlockRV>(annotate.block_or_loop)));

  int64_t most = num_cores_ * options_.max_jobs_per_core;
  std::vector<Products> blocks = products_below(*root.tree, root.at, most);
  std::map<std::vector<size_t>, int64_t> plans;
  std::set<int64_t> limits;
  for (const Products& products : blocks) {
    for (int64_t limit : products) {
      // If two limits give one plan, the later one counts, as in MetaSchedule.
      if (limit <= most && limits.insert(limit).second) plans.insert_or_assign(plan_for(blocks, limit), limit);
    }
  }
  plans.erase(plan_for(blocks, annotation->limit));
  if (plans.empty()) return std::optional<Trace>();
  int64_t limit = std::next(plans.begin(), static_cast<ptrdiff_t>(random.below(plans.size())))->second;
  Annotate changed = *trace[annotation->step].instruction.as<Annotate>();
  changed.ann_val = {limit};
  TW_TRY(mutated, trace.edited({{annotation->step, schedule::Instruction(std::move(changed))}}));
  return std::optional<Trace>(std::move(mutated));
}

}  // namespace tilewright::search
