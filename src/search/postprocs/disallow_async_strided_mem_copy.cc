// Refuses asynchronous copies that do not move one piece of memory to one piece of memory: hardware that copies in the
// background takes an address, an address and a length.
//
//   for k in T.serial(64, annotations={"software_pipeline_stage": [0, 1], "software_pipeline_async_stages": [0], ...}):
//     for i in range(64): shared[i] = A[k, i]     may be: both sides are contiguous
//     ...
//
// A copy is what the steps of an asynchronous stage store; buffers are taken after compaction.

#include "ir/traverse.h"
#include "search/memory_steps.h"
#include "search/postprocs/compacted.h"
#include "search/postprocs/postprocs.h"
#include "support/ranges.h"

namespace tilewright::search {
namespace {

/// Whether every store below is one of a load, and both are contiguous.
bool is_contiguous_copy(const Stmt& copy) {
  std::vector<Ref<For>> loops;
  bool contiguous = true;
  visit(
      copy,
      [&](const Ref<For>& loop, Visitor& v) {
        loops.push_back(loop);
        v.descend(loop);
        loops.pop_back();
      },
      [&](const Ref<BufferStore>& store) {
        const BufferLoad* load = store->value.as<BufferLoad>();
        contiguous &= load && is_contiguous(*store->buffer, store->indices, loops) &&
                      is_contiguous(*load->buffer, load->indices, loops);
      });
  return contiguous;
}

bool copies_are_contiguous(const For& loop) {
  std::vector<int64_t> stages = integer_list(loop.annotations.get("software_pipeline_stage"));
  std::vector<int64_t> async = integer_list(loop.annotations.get("software_pipeline_async_stages"));
  if (async.empty()) return true;
  std::vector<Stmt> steps = pipeline_steps(loop.body);
  for (size_t i = 0; i < steps.size() && i < stages.size(); ++i) {
    bool is_async = is_contained(async, stages[i]);
    if (is_async && !is_contiguous_copy(steps[i])) return false;
  }
  return true;
}

}  // namespace

Result<bool> DisallowAsyncStridedMemCopy::apply(Schedule& schedule) const {
  TW_TRY(functions, compacted_functions(schedule.module()));
  bool good = true;
  for (const Ref<PrimFunc>& func : functions) {
    visit(func->body, [&](const Ref<For>& loop) { good &= copies_are_contiguous(*loop); });
  }
  return good;
}

}  // namespace tilewright::search
