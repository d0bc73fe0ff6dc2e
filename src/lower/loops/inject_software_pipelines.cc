// Let the stages of a loop's iterations overlap: while one iteration computes, a later one loads.
//
//   Before                                         After
//   for k in T.serial(8, annotations={             S = T.alloc_buffer((2, 32))
//       "software_pipeline_stage": [0, 1],         S[0, ...] = A[0, ...]
//       "software_pipeline_order": [0, 1]}):       for k in range(1, 8):
//     S = T.alloc_buffer((32,))                      S[k % 2, ...] = A[k, ...]
//     S[...] = A[k, ...]                             B[k - 1, ...] = S[(k - 1) % 2, ...]
//     B[k, ...] = S[...]                           B[7, ...] = S[7 % 2, ...]
//
// With n stages, the prologue runs the first n - 1 times, in which the later stages have nothing to do yet, and the
// epilogue the last n - 1. Statements of the prologue and the epilogue have a condition where the extent is not known,
// or is less than n - 1. Wrong lists of a loop that runs at most once do not count. Of buffers that each iteration has
// for itself, as many versions are kept as overlap (pipeline_plan.h). A block with "double_buffer_scope" has two
// versions of the buffer that it writes, in any serial loop. There is a note where no iteration of such a loop has the
// buffer for itself.
//
// Asynchronous stages. Devices of CUDA from sm_80 on copy in the background. For these, the statements of stages in
// "software_pipeline_async_stages" are put under the attribute "async_scope", for lower_async_copies. At each time, a
// group of copies is closed by T.ptx_commit_group(), even if it is empty: so the number of later groups, which
// T.ptx_wait_group() leaves running in front of a statement that uses a copy, is a constant. Elsewhere, copies are
// ordinary ones.
//
// Needs      blocks without axes, and no views; a loop does not change what its bounds read
// Ensures    no loop has the annotations of pipelines
// Placement  buffers have their final shapes; before wait_between_blocks, as versions decide which threads have to wait
#include <algorithm>
#include <charconv>

#include "ir/async_copy.h"
#include "ir/build.h"
#include "ir/fragments.h"
#include "ir/refuse_at.h"
#include "ir/substitute.h"
#include "ir/traverse.h"
#include "lower/gpu/kernel.h"
#include "lower/loops/pipeline_plan.h"
#include "lower/passes.h"
#include "support/ranges.h"

namespace tilewright::lower {
namespace {

/// Each version of a buffer begins at a multiple of this many bytes, the widest vector access.
constexpr int64_t kVersionAlignment = 16;

bool copies_in_background(const Target& target) {
  if (target.kind != TargetKind::kCuda) return false;
  int number = 0;
  const std::string digits = target.arch.starts_with("sm_") ? target.arch.substr(3) : "";
  std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return target.arch.empty() || number >= 80;
}

/// A buffer with all its versions.
struct Versions {
  Ref<Buffer> buffer;
  int64_t count = 1;
  Expr stride;  ///< distance of two versions, in elements
  Expr size;    ///< elements of one version, without padding
};

Versions in_versions(const Ref<Buffer>& buffer, int64_t count) {
  Buffer copy = *buffer;
  Expr size = i32(1);
  for (const Expr& extent : buffer->shape) size = size * extent;
  Expr stride = size;
  if (!buffer->strides.empty() && !buffer->shape.empty()) stride = buffer->strides[0] * buffer->shape[0];
  const int64_t bytes = buffer->dtype.bytes() * buffer->dtype.lanes;
  auto known = const_int(stride);
  const bool is_padded = is_shared_scope(buffer->scope()) && known && *known * bytes % kVersionAlignment != 0 &&
                         kVersionAlignment % bytes == 0;
  if (is_padded) {
    const int64_t unit = kVersionAlignment / bytes;
    stride = int_imm(stride.dtype(), (*known + unit - 1) / unit * unit);
    if (copy.strides.empty()) {
      copy.strides.resize(copy.shape.size());
      Expr inner = one(stride.dtype());
      for (size_t d = copy.shape.size(); d-- > 0;) {
        copy.strides[d] = inner;
        inner = inner * copy.shape[d];
      }
    }
  }
  if (!copy.strides.empty()) copy.strides.insert(copy.strides.begin(), stride);
  const DataType index = buffer->shape.empty() ? DataType::int_(32) : buffer->shape[0].dtype();
  copy.shape.insert(copy.shape.begin(), int_imm(index, count));
  return {make(std::move(copy), buffer.span()), count, stride, size};
}

/// The arguments of a call that are pointers to a buffer, each followed by the offset there.
struct PointerArguments {
  std::vector<size_t> at;
  bool counts_fragments = false;  ///< the place is the number of a fragment, else of an element
};

PointerArguments pointer_arguments(const Call& call) {
  switch (intrinsic_of(call)) {
    case Intrinsic::k_tvm_access_ptr:
      return {{1}};
    case Intrinsic::k_tvm_mma_sync:
      return {{0, 2, 4, 6}, true};
    case Intrinsic::k_ptx_ldmatrix:
      return {{3, 5}};
    case Intrinsic::k_ptx_mma:
      return {{6, 8, 10}};
    case Intrinsic::k_mma_fill:
      return {{1}};
    case Intrinsic::k_mma_store:
      return {{3}};
    default:
      return {};
  }
}

class Injector {
 public:
  Injector(const Ref<PrimFunc>& func, PassContext& context)
      : fragments_(func->body), async_(copies_in_background(context.target)) {
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

  /// Notes the blocks that ask for two versions of a buffer in vain.
  void note_single(const Stmt& body, PassContext& context) const {
    visit(body, [&](const Ref<Block>& block) {
      Ref<Buffer> buffer = doubled_buffer(*block);
      if (!buffer.defined() || doubled_.contains(buffer->data)) return;
      context.notes.push_back(
          {"lower/single-buffer", context.function,
           "buffer '" + buffer->name + "' has one version in spite of double_buffer_scope at block '" +
               block->name_hint +
               "': no iteration of a serial loop has it for itself (move the block below such a loop)",
           block.span()});
    });
  }

 private:
  // ---- versions

  /// A loop without its lists. There is nothing to overlap in a loop that runs once, and the lists of a schedule rule
  /// do not count the init that decompose_reduction moved into it.
  static Ref<For> without_pipeline(const Ref<For>& loop) {
    For once = *loop;
    for (const char* key : {kPipelineStage, kPipelineOrder, kPipelineAsync}) once.annotations.erase(key);
    return make(std::move(once), loop.span());
  }

  /// The step with the version of its iteration in place of each buffer.
  Stmt in_version(const Ref<For>& loop, const Stmt& step) {
    const Expr iteration = loop->loop_var - loop->min;
    auto slot = [&](const Versions& versions) { return floormod(iteration, versions.count); };
    auto indices = [&](const Versions& versions, const std::vector<Expr>& before) {
      std::vector<Expr> after = {cast(versions.buffer->shape[0].dtype(), slot(versions))};
      append_range(after, before);
      return after;
    };
    return rewrite(
        step,
        [&](const Ref<BufferLoad>& load, Rewriter& r) -> Expr {
          Ref<BufferLoad> inner = r.descend(load);
          const Versions* found = find(load->buffer->data);
          if (!found) return inner;
          return make<BufferLoad>({found->buffer, indices(*found, inner->indices), inner->predicate}, load.span());
        },
        [&](const Ref<BufferStore>& store, Rewriter& r) -> Stmt {
          Ref<BufferStore> inner = r.descend(store);
          const Versions* found = find(store->buffer->data);
          if (!found) return inner;
          return make<BufferStore>({found->buffer, inner->value, indices(*found, inner->indices), inner->predicate},
                                   store.span());
        },
        [&](const Ref<BufferRegion>& region, Rewriter& r) -> NodeRef {
          Ref<BufferRegion> inner = r.descend(region);
          const Versions* found = find(region->buffer->data);
          if (!found) return inner;
          BufferRegion copy{found->buffer, inner->region};
          const DataType type = found->buffer->shape[0].dtype();
          copy.region.insert(copy.region.begin(), range(cast(type, slot(*found)), one(type)));
          return make(std::move(copy), region.span());
        },
        [&](const Ref<Call>& call, Rewriter& r) -> Expr { return in_version(r.descend(call), slot); },
        [&](const Ref<Buffer>& buffer, Rewriter&) -> NodeRef { return buffer; });
  }

  template <class F>
  Expr in_version(const Ref<Call>& call, const F& slot) {
    PointerArguments pointers = pointer_arguments(*call);
    const bool is_step = is_fragment_step(call);
    Call copy = *call;
    auto move = [&](size_t pointer, size_t place, bool counts_fragments) {
      const Versions* found = place < copy.args.size() ? find(copy.args[pointer]) : nullptr;
      if (!found) return;
      Expr by = found->stride;
      if (counts_fragments) {
        auto shape = fragments_.shape_of(copy.args[pointer]);
        auto all = const_int(found->size);
        const int64_t elements = shape ? shape->rows() * shape->columns() : 0;
        if (!all || elements == 0 || *all % elements != 0 || *all != const_int(found->stride))
          return fail_pointer(call);
        by = i32(*all / elements);
      }
      const Expr before(copy.args[place]);
      copy.args[place] = before + cast(before.dtype(), slot(*found) * by);
    };
    if (is_step && !pointers.counts_fragments) {
      move(0, 4, true);
    } else {
      for (size_t pointer : pointers.at) move(pointer, pointer + 1, pointers.counts_fragments);
    }
    for (size_t i : indices_of(call->args)) {
      const bool known = (is_step && i == 0) || is_contained(pointers.at, i);
      if (!known && find(call->args[i])) fail_pointer(call);
    }
    return make(std::move(copy), call.span());
  }

  void fail_pointer(const Ref<Call>& call) {
    if (error_) return;
    error_ = refuse_at(call, "lower/pipeline-order",
                       "a software pipeline needs several versions of a buffer, and this call takes a pointer to it",
                       "pass T.access_ptr of the buffer, or give the statements that use it one stage");
  }

  const Versions* find(const NodeRef& data) const { return find_value(versions_, data); }

  // ---- times

  struct Time {
    Expr at;                            ///< the iteration of stage 0
    std::optional<int64_t> since = {};  ///< in the prologue: the same, counted from the first one
    std::optional<int64_t> until = {};  ///< in the epilogue: counted from the end of the loop
    bool is_steady = false;
  };

  /// Whether the statement of a stage runs at a time: null: it never does.
  Expr runs(const Time& time, int64_t stage, const Expr& extent) {
    if (time.is_steady) return bool_imm(true);
    if (time.since) {
      if (*time.since < stage) return {};
      return analyzer_.simplify(lt(int_imm(extent.dtype(), *time.since - stage), extent));
    }
    if (*time.until >= stage) return {};
    return analyzer_.simplify(lt(max(extent, int_imm(extent.dtype(), last_stage_)) + (*time.until - stage), extent));
  }

  std::vector<Stmt> at(const Time& time, const Ref<For>& loop, const PipelinePlan& plan,
                       const std::vector<Stmt>& steps) {
    std::vector<Stmt> result;
    std::optional<int64_t> running;  // at most so many groups of copies
    for (const Event& event : events_) {
      if (event.step < 0) {
        result.push_back(commit_group());
        if (running) ++*running;
        continue;
      }
      const PipelineStep& step = plan.steps[event.step];
      Expr condition = runs(time, step.stage, loop->extent);
      if (!condition.defined() || is_false(condition)) continue;
      if (event.leaves && (!running || *running > *event.leaves)) {
        result.push_back(wait_group(*event.leaves));
        running = event.leaves;
      }
      const Expr iteration = analyzer_.simplify(time.at - step.stage);
      Stmt s = renew_defs(substitute(steps[event.step], {{loop->loop_var, iteration}}));
      if (!is_true(condition)) s = make<IfThenElse>({condition, s, {}}, s.span());
      if (event.is_async) s = make<AttrStmt>({i32(0), "async_scope", i32(1), s}, s.span());
      result.push_back(s);
    }
    return result;
  }

  /// Events in order of time: steps, and ends of groups of copies (step -1).
  struct Event {
    int64_t step;
    bool is_async = false;
    std::optional<int64_t> leaves = {};  ///< before the step, all groups but so many have to arrive
  };

  /// Numbers the groups of copies at each time by order: `group_of` a step, -1 for ordinary steps.
  std::vector<int64_t> groups_of(const PipelinePlan& plan, const std::vector<size_t>& order, int64_t& count) const {
    std::vector<int64_t> group_of(plan.steps.size(), -1);
    std::vector<size_t> open;
    count = 0;
    for (size_t number : order) {
      const PipelineStep& step = plan.steps[number];
      const bool is_async = async_ && step.is_async;
      const bool waits = any_of(open, [&](size_t other) { return PipelinePlan::uses_result(step, plan.steps[other]); });
      if (!open.empty() && (!is_async || waits)) {
        ++count;
        open.clear();
      }
      if (!is_async) continue;
      group_of[number] = count;
      open.push_back(number);
    }
    if (!open.empty()) ++count;
    return group_of;
  }

  /// Groups that may go on running in front of `user`: those closed after the one of the step that it uses.
  static int64_t groups_behind(const PipelinePlan& plan, size_t user, size_t copy, int64_t group, int64_t count,
                               int64_t closed) {
    const int64_t times = plan.steps[user].stage - plan.steps[copy].stage;
    return times == 0 ? closed - group - 1 : (count - 1 - group) + count * (times - 1) + closed;
  }

  void plan_events(const PipelinePlan& plan) {
    events_.clear();
    const std::vector<size_t> order = plan.by_order();
    int64_t count = 0, closed = 0;
    const std::vector<int64_t> group_of = groups_of(plan, order, count);
    auto close = [&] {
      events_.push_back({-1});
      ++closed;
    };
    for (size_t place : indices_of(order)) {
      const size_t number = order[place];
      const bool ends = place > 0 && group_of[order[place - 1]] >= 0 && group_of[number] != group_of[order[place - 1]];
      if (ends) close();
      std::optional<int64_t> allowed;
      for (size_t other : indices_of(plan.steps)) {
        if (group_of[other] < 0 || other == number) continue;
        if (!PipelinePlan::uses_result(plan.steps[number], plan.steps[other])) continue;
        // Before the copy of the iteration, another one may have used the same memory, and has waited for it.
        const bool own = is_own(plan, plan.steps[other]);
        if (own && other > number) continue;
        const int64_t behind = own ? groups_behind(plan, number, other, group_of[other], count, closed) : 0;
        allowed = std::min(allowed.value_or(behind), behind);
      }
      events_.push_back({static_cast<int64_t>(number), group_of[number] >= 0, allowed});
    }
    if (!order.empty() && group_of[order.back()] >= 0) close();
  }

  /// Whether all elements that the step writes belong to one iteration.
  static bool is_own(const PipelinePlan& plan, const PipelineStep& step) {
    return step.access.opaque.empty() && all_of(step.access.writes, [&](const Ref<BufferRegion>& region) {
             return any_of(plan.buffers,
                           [&](const PipelineBuffer& own) { return own.buffer->data == region->buffer->data; });
           });
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
    versions_.clear();
    std::vector<Def<Buffer>> buffers;
    for (const PipelineBuffer& own : plan.buffers) {
      if (own.versions == 1) {
        buffers.emplace_back(own.buffer);
        continue;
      }
      Versions versions = in_versions(own.buffer, own.versions);
      buffers.emplace_back(versions.buffer);
      doubled_.insert(own.buffer->data);
      versions_.emplace(own.buffer->data, std::move(versions));
    }
    std::vector<Stmt> steps;
    for (const PipelineStep& step : plan.steps) steps.push_back(in_version(loop, step.stmt));
    plan_events(plan);
    last_stage_ = plan.last_stage;
    std::vector<Stmt> parts;
    auto part = [&](std::vector<Stmt> stmts) {
      if (!stmts.empty()) parts.push_back(block_of(std::move(stmts), {}));
    };
    std::vector<Stmt> before, behind;
    const Expr skipped = int_imm(loop->extent.dtype(), last_stage_);
    for (int64_t t = 0; t < last_stage_; ++t) {
      for (Stmt& s : at({.at = loop->min + t, .since = t}, loop, plan, steps)) before.push_back(std::move(s));
    }
    const Expr end = analyzer_.simplify(max(loop->extent, skipped));
    for (int64_t t = 0; t < last_stage_; ++t) {
      const Expr time = loop->min + cast(loop->min.dtype(), end + t);
      for (Stmt& s : at({.at = time, .until = t}, loop, plan, steps)) behind.push_back(std::move(s));
    }
    if (writes_shared_copies(plan)) behind.push_back(wait_group(0));
    part(std::move(before));
    For steady = *loop;
    steady.loop_var = var(loop->loop_var->name_hint, loop->loop_var.dtype());
    steady.min = loop->min + last_stage_;
    steady.extent = analyzer_.simplify(end - skipped);
    for (const char* key : {kPipelineStage, kPipelineOrder, kPipelineAsync}) steady.annotations.erase(key);
    analyzer_.bind(steady.loop_var, steady.min, steady.extent);
    steady.body = block_of(at({.at = steady.loop_var, .is_steady = true}, loop, plan, steps), {});
    // An empty loop stays: lists of a pipeline around count three parts.
    if (is_const_int(steady.extent, 0) && last_stage_ > 0) steady.body = nop();
    parts.push_back(make(std::move(steady), loop.span()));
    part(std::move(behind));
    return block_of(std::move(parts), std::move(buffers));
  }

  /// Whether copies go to memory that statements behind the loop may read.
  bool writes_shared_copies(const PipelinePlan& plan) const {
    return async_ && any_of(plan.steps, [&](const PipelineStep& step) { return step.is_async && !is_own(plan, step); });
  }

  Fragments fragments_;
  bool async_;
  arith::Analyzer analyzer_;
  std::vector<Ref<For>> threads_;                   ///< loops around that are bound
  std::unordered_set<NodeRef> doubled_;             ///< pointers of buffers with several versions
  std::unordered_map<NodeRef, Versions> versions_;  ///< by data pointer
  std::vector<Event> events_;
  int64_t last_stage_ = 0;
  std::optional<Diagnostic> error_;
};

}  // namespace

PassResult inject_software_pipelines(const Ref<PrimFunc>& func, PassContext& context) {
  Injector injector(func, context);
  TW_TRY(body, injector.run(func->body));
  injector.note_single(func->body, context);
  return with_body(func, std::move(body));
}

}  // namespace tilewright::lower
