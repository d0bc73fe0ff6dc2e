// Which statements of a loop run in which stage of a software pipeline, and how many versions of each buffer that
// takes.
//
// At time t, statement j runs its iteration t - stage(j); at one time, statements run by their order. Two iterations of
// a buffer that each iteration has for itself may share memory if every access by the one comes before every access by
// the other that it conflicts with. A buffer that iterations share keeps the order of all conflicting accesses, or the
// pipeline is refused. What threads share, any two of them may access: `S[tx]` and `S[tx + 1]` meet.
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

/// Returns the regions that a statement reads and writes. A block without axes that declares nothing, as around its own
/// buffer, counts by its content. `own`: buffers that do not count.
analysis::BlockAccess accesses_of(const Stmt& s, const std::vector<Def<Buffer>>& own = {});

/// The buffer of which the block asks for two versions; null if it asks for none.
Ref<Buffer> doubled_buffer(const Block& block);

struct PipelineStep {
  Stmt stmt;
  int64_t stage = 0, order = 0;
  bool is_async = false;  ///< its stage is one of asynchronous copies
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
  /// Whether `later` uses what `earlier` writes to the memory behind one of these pointers; all memory for none.
  static bool uses_result(const PipelineStep& later, const PipelineStep& earlier);
};

/// Returns nothing for a loop without a pipeline. Codes of errors: lower/pipeline-list, lower/pipeline-loop,
/// lower/pipeline-order.
/// `threads`: the loops around that are bound to threads.
Result<std::optional<PipelinePlan>> plan_pipeline(const Ref<For>& loop, const std::vector<Ref<For>>& threads,
                                                  arith::Analyzer& analyzer);

}  // namespace tilewright::lower
