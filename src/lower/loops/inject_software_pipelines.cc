// Overlaps the stages of a loop's iterations: while one iteration computes, a later one loads.
//
//   Before                                         After
//   for k in T.serial(8, annotations={             S = T.alloc_buffer((2, 32))
//       "software_pipeline_stage": [0, 1],         S[0, ...] = A[0, ...]
//       "software_pipeline_order": [0, 1]}):       for k in range(1, 8):
//     S = T.alloc_buffer((32,))                      S[k % 2, ...] = A[k, ...]
//     S[...] = A[k, ...]                             B[k - 1, ...] = S[(k - 1) % 2, ...]
//     B[k, ...] = S[...]                           B[7, ...] = S[7 % 2, ...]
//
// With n stages, the prologue runs the first n - 1 time steps, in which the later stages have nothing to do yet, and
// the epilogue the last n - 1. Statements of the prologue and the epilogue have a condition where the extent is not
// known, or is less than n - 1. In a loop that runs at most once, invalid stage and order lists are ignored. A buffer
// that each iteration owns gets as many versions as iterations overlap (pipeline_plan.h). A block with
// "double_buffer_scope" has two versions of the buffer that it writes, in any serial loop. If no iteration of a serial
// loop owns the buffer, a note "lower/single-buffer" is issued.
//
// Asynchronous stages. CUDA devices from sm_80 on copy in the background. For these, the statements of stages in
// "software_pipeline_async_stages" get the attribute "async_scope", for lower_async_copies. Each time step commits a
// group of copies by T.ptx_commit_group(), even if it is empty: so the number of later groups, which may still be
// pending after the T.ptx_wait_group() before a statement that uses a copy, is a constant. Other targets copy
// synchronously.
//
// Needs      blocks without axes, and no views; a loop does not change what its bounds read
// Ensures    no loop has the annotations of pipelines
// Placement  buffers have their final shapes; before wait_between_blocks, as versions decide which threads have to wait
#include <algorithm>
#include <charconv>

#include "ir/async_copy.h"
#include "ir/build.h"
#include "ir/substitute.h"
#include "ir/traverse.h"
#include "lower/gpu/kernel.h"
#include "lower/loops/async_copy_groups.h"
#include "lower/loops/multi_buffering.h"
#include "lower/loops/pipeline_plan.h"
#include "lower/passes.h"
#include "support/ranges.h"

namespace tilewright::lower {
namespace {

bool copies_in_background(const Target& target) {
  if (target.kind != TargetKind::kCuda) return false;
  int number = 0;
  const std::string digits = target.arch.starts_with("sm_") ? target.arch.substr(3) : "";
  std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return target.arch.empty() || number >= 80;
}

class Injector {
 public:
  Injector(const Ref<PrimFunc>& func, PassContext& context)
      : buffering_(func->body), async_(copies_in_background(context.target)) {
    assume_sizes(*func, analyzer_);
  }

  Result<Stmt> run(const Stmt& body) {
    Stmt result = rewrite(body, [&](const Ref<For>& loop, Rewriter& r) -> Stmt {
      analyzer_.bind(loop->loop_var, loop->min, loop->extent);
      if (is_bound(*loop)) threads_.push_back(loop);
      Ref<For> inner = r.descend(loop);
      if (is_bound(*loop)) threads_.pop_back();
      if (error_) return inner;
      auto plan = plan_pipeline(inner, threads_, analyzer_);
      if (auto extent = const_int(inner->extent); !plan.ok() && extent && *extent <= 1) {
        inner = without_pipeline(inner);
        plan = plan_pipeline(inner, threads_, analyzer_);
      }
      if (!plan.ok()) {
        error_ = std::move(plan.error());
        return inner;
      }
      return *plan ? pipelined(inner, **plan) : Stmt(inner);
    });
    if (error_) return *error_;
    return result;
  }

  /// Issues a note for each block whose double_buffer_scope had no effect.
  void note_single_buffered(const Stmt& body, PassContext& context) const {
    visit(body, [&](const Ref<Block>& block) {
      Ref<Buffer> buffer = doubled_buffer(*block);
      if (!buffer.defined() || multi_versioned_.contains(buffer->data)) return;
      context.notes.push_back(
          {"lower/single-buffer", context.function,
           "buffer '" + buffer->name + "' has one version in spite of double_buffer_scope at block '" +
               block->name_hint +
               "': no iteration of a serial loop has it for itself (move the block below such a loop)",
           block.span()});
    });
  }

 private:
  /// Removes the stage and order lists of a loop. A loop that runs once has nothing to overlap, and the lists of a
  /// schedule rule do not count the init that decompose_reduction moved into it.
  static Ref<For> without_pipeline(const Ref<For>& loop) {
    For once = *loop;
    for (const char* key : {kPipelineStage, kPipelineOrder, kPipelineAsync}) once.annotations.erase(key);
    return make(std::move(once), loop.span());
  }

  // ---- time steps

  struct TimeStep {
    Expr stage0_iteration;
    std::optional<int64_t> prologue_step = {};  ///< in the prologue: the number of this time step
    std::optional<int64_t> epilogue_step = {};  ///< in the epilogue: the number of this time step
    bool is_steady = false;
  };

  /// Returns the condition under which a statement of `stage` runs at this time step; null: never.
  Expr condition_at(const TimeStep& time, int64_t stage, const Expr& extent) {
    if (time.is_steady) return bool_imm(true);
    if (time.prologue_step) {
      if (*time.prologue_step < stage) return {};
      return analyzer_.simplify(lt(int_imm(extent.dtype(), *time.prologue_step - stage), extent));
    }
    if (*time.epilogue_step >= stage) return {};
    return analyzer_.simplify(
        lt(max(extent, int_imm(extent.dtype(), last_stage_)) + (*time.epilogue_step - stage), extent));
  }

  /// Emits the statements of one time step.
  std::vector<Stmt> emit_time_step(const TimeStep& time, const Ref<For>& loop, const PipelinePlan& plan,
                                   const std::vector<Stmt>& steps) {
    std::vector<Stmt> result;
    std::optional<int64_t> max_pending;  // upper bound of the pending groups; nothing: unknown
    for (const PipelineEvent& event : events_) {
      if (event.step < 0) {
        result.push_back(commit_group());
        if (max_pending) ++*max_pending;
        continue;
      }
      const PipelineStep& step = plan.steps[event.step];
      Expr condition = condition_at(time, step.stage, loop->extent);
      if (!condition.defined() || is_false(condition)) continue;
      if (event.max_pending_groups && (!max_pending || *max_pending > *event.max_pending_groups)) {
        result.push_back(wait_group(*event.max_pending_groups));
        max_pending = event.max_pending_groups;
      }
      const Expr iteration = analyzer_.simplify(time.stage0_iteration - step.stage);
      Stmt s = renew_defs(substitute(steps[event.step], {{loop->loop_var, iteration}}));
      if (!is_true(condition)) s = make<IfThenElse>({condition, s, {}}, s.span());
      if (event.is_async) s = make<AttrStmt>({i32(0), "async_scope", i32(1), s}, s.span());
      result.push_back(s);
    }
    return result;
  }

  // ---- the loop

  static Stmt block_of(std::vector<Stmt> stmts, std::vector<Def<Buffer>> buffers) {
    Block block;
    block.alloc_buffers = std::move(buffers);
    block.body = seq(std::move(stmts));
    analysis::BlockAccess access = accesses_of(block.body, block.alloc_buffers);
    block.reads = std::move(access.reads);
    block.writes = std::move(access.writes);
    return realized(make(std::move(block)));
  }

  Stmt pipelined(const Ref<For>& loop, const PipelinePlan& plan) {
    buffering_.clear();
    std::vector<Def<Buffer>> buffers;
    for (const PipelineBuffer& owned : plan.buffers) {
      if (owned.versions == 1) {
        buffers.emplace_back(owned.buffer);
        continue;
      }
      buffers.emplace_back(buffering_.add(owned.buffer, owned.versions));
      multi_versioned_.insert(owned.buffer->data);
    }
    std::vector<Stmt> steps;
    for (const PipelineStep& step : plan.steps) {
      auto versioned = buffering_.use_versions(loop, step.stmt);
      if (!versioned.ok()) {
        error_ = std::move(versioned.error());
        return loop;
      }
      steps.push_back(*versioned);
    }
    events_ = plan_events(plan, async_);
    last_stage_ = plan.last_stage;
    std::vector<Stmt> parts;
    auto add_part = [&](std::vector<Stmt> stmts) {
      if (!stmts.empty()) parts.push_back(block_of(std::move(stmts), {}));
    };
    std::vector<Stmt> prologue, epilogue;
    const Expr prologue_length = int_imm(loop->extent.dtype(), last_stage_);
    for (int64_t t = 0; t < last_stage_; ++t) {
      for (Stmt& s : emit_time_step({.stage0_iteration = loop->min + t, .prologue_step = t}, loop, plan, steps))
        prologue.push_back(std::move(s));
    }
    const Expr end = analyzer_.simplify(max(loop->extent, prologue_length));
    for (int64_t t = 0; t < last_stage_; ++t) {
      const Expr time = loop->min + cast(loop->min.dtype(), end + t);
      for (Stmt& s : emit_time_step({.stage0_iteration = time, .epilogue_step = t}, loop, plan, steps))
        epilogue.push_back(std::move(s));
    }
    if (writes_shared_copies(plan)) epilogue.push_back(wait_group(0));
    add_part(std::move(prologue));
    For steady = *loop;
    steady.loop_var = var(loop->loop_var->name_hint, loop->loop_var.dtype());
    steady.min = loop->min + last_stage_;
    steady.extent = analyzer_.simplify(end - prologue_length);
    for (const char* key : {kPipelineStage, kPipelineOrder, kPipelineAsync}) steady.annotations.erase(key);
    analyzer_.bind(steady.loop_var, steady.min, steady.extent);
    steady.body =
        block_of(emit_time_step({.stage0_iteration = steady.loop_var, .is_steady = true}, loop, plan, steps), {});
    // Keep an empty loop: an enclosing pipeline's lists count prologue, loop and epilogue.
    if (is_const_int(steady.extent, 0) && last_stage_ > 0) steady.body = nop();
    parts.push_back(make(std::move(steady), loop.span()));
    add_part(std::move(epilogue));
    return block_of(std::move(parts), std::move(buffers));
  }

  /// Whether asynchronous copies write memory that statements after the loop may read.
  bool writes_shared_copies(const PipelinePlan& plan) const {
    return async_ && any_of(plan.steps, [&](const PipelineStep& step) {
             return step.is_async && !writes_only_versioned_buffers(plan, step);
           });
  }

  MultiBuffering buffering_;
  bool async_;
  arith::Analyzer analyzer_;
  std::vector<Ref<For>> threads_;                ///< enclosing loops that are bound
  std::unordered_set<NodeRef> multi_versioned_;  ///< pointers of buffers with several versions
  std::vector<PipelineEvent> events_;
  int64_t last_stage_ = 0;
  std::optional<Diagnostic> error_;
};

}  // namespace

PassResult inject_software_pipelines(const Ref<PrimFunc>& func, PassContext& context) {
  Injector injector(func, context);
  TW_TRY(body, injector.run(func->body));
  injector.note_single_buffered(func->body, context);
  return with_body(func, std::move(body));
}

}  // namespace tilewright::lower
