// Which statements of a loop run in which stage of a software pipeline, and how many versions of each buffer that
// takes.
//
// At time step t, statement j runs its iteration t - stage(j); within a time step, statements run by their order. For a
// buffer that each iteration owns, two iterations may share a version if every access by the one comes before every
// conflicting access by the other. For a buffer that iterations share, the pipeline must keep the order of all
// conflicting accesses, or it is refused. Any two threads may access the same element of memory that threads share:
// `S[tx]` and `S[tx + 1]` conflict.
#pragma once

#include <optional>
#include <vector>

#include "analysis/block_access_region.h"
#include "arith/analyzer.h"
#include "lower/pass.h"

namespace tilewright::lower {

inline constexpr const char* kPipelineStage = "software_pipeline_stage";
inline constexpr const char* kPipelineOrder = "software_pipeline_order";
inline constexpr const char* kPipelineAsync = "software_pipeline_async_stages";
inline constexpr const char* kDoubleBuffer = "double_buffer_scope";

/// Returns the regions that a statement reads and writes. For a block without axes or declared regions, such as one
/// that only allocates a buffer, these are the regions of its body. Buffers in `own` are omitted.
analysis::BlockAccess accesses_of(const Stmt& s, const std::vector<Def<Buffer>>& own = {});

/// Returns the buffer for which the block requests two versions ("double_buffer_scope"); null if there is none.
Ref<Buffer> doubled_buffer(const Block& block);

struct PipelineStep {
  Stmt stmt;
  int64_t stage = 0, order = 0;
  bool is_async = false;  ///< its stage is in "software_pipeline_async_stages"
  analysis::BlockAccess access = {};
};

struct PipelineBuffer {
  Ref<Buffer> buffer;  ///< buffer that each iteration of the loop owns
  int64_t versions = 1;
};

struct PipelinePlan {
  std::vector<PipelineStep> steps;  ///< steps in program order
  std::vector<PipelineBuffer> buffers;
  int64_t last_stage = 0;
  std::vector<size_t> by_order() const;
  /// Whether `later` accesses a buffer that `earlier` writes, or may write through a pointer.
  static bool uses_result(const PipelineStep& later, const PipelineStep& earlier);
};

/// Returns nothing for a loop without a pipeline. Codes of errors: lower/pipeline-list, lower/pipeline-loop,
/// lower/pipeline-order.
/// `threads`: the enclosing loops that are bound to threads.
Result<std::optional<PipelinePlan>> plan_pipeline(const Ref<For>& loop, const std::vector<Ref<For>>& threads,
                                                  arith::Analyzer& analyzer);

}  // namespace tilewright::lower
