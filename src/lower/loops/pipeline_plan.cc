#include "lower/loops/pipeline_plan.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <unordered_set>

#include "analysis/threads.h"
#include "ir/build.h"
#include "ir/numeric.h"
#include "ir/op.h"
#include "ir/refuse_at.h"
#include "ir/substitute.h"
#include "ir/traverse.h"
#include "support/ranges.h"
#include "target/memory_scope.h"

namespace tilewright::lower {
namespace {

bool is_trivial(const BlockRealize& realize) {
  return is_true(realize.predicate) && realize.block->iter_vars.empty() && realize.block->match_buffers.empty() &&
         !realize.block->init.defined();
}

/// The statements of a loop that a pipeline takes apart, and the buffers that each iteration has for itself.
struct PipelineBody {
  std::vector<Stmt> stmts;
  std::vector<Ref<Buffer>> buffers;

  static PipelineBody of(const Ref<For>& loop) {
    PipelineBody found;
    Stmt body = loop->body;
    while (const BlockRealize* realize = body.as<BlockRealize>()) {
      const Block& block = *realize->block;
      const bool encloses = block.body.is<SeqStmt>() || block.body.is<BlockRealize>() || !block.alloc_buffers.empty();
      if (!is_trivial(*realize) || !encloses) break;
      found.enter(block);
      Stmt inner = block.body;
      body = std::move(inner);
    }
    const SeqStmt* all = body.as<SeqStmt>();
    found.stmts = all ? all->seq : std::vector<Stmt>{body};
    return found;
  }

  /// Returns the body with the parts of blocks in place of blocks; for an inner pipeline: the parts before, in and
  /// behind its loop.
  PipelineBody in_parts() const {
    PipelineBody found{{}, buffers};
    for (const Stmt& item : stmts) {
      const BlockRealize* realize = item.as<BlockRealize>();
      const SeqStmt* parts = realize && is_trivial(*realize) ? realize->block->body.as<SeqStmt>() : nullptr;
      if (parts) found.enter(*realize->block);
      for (const Stmt& part : parts ? parts->seq : std::vector<Stmt>{item}) found.stmts.push_back(part);
    }
    return found;
  }

 private:
  void enter(const Block& block) { append_range(buffers, block.alloc_buffers); }
};

std::optional<std::vector<int64_t>> numbers(const NodeRef& annotation) {
  const List* list = annotation.as<List>();
  if (!list) return {};
  std::vector<int64_t> result;
  for (const NodeRef& item : list->items) {
    const IntImm* number = item.as<IntImm>();
    if (!number) return {};
    result.push_back(number->value);
  }
  return result;
}

/// The buffers that a block of the statement asks to have twice.
std::unordered_set<NodeRef> doubled(const std::vector<Stmt>& stmts) {
  std::unordered_set<NodeRef> found;
  for (const Stmt& s : stmts) {
    visit(s, [&](const Ref<Block>& block, Visitor& v) {
      v.descend(block);
      if (Ref<Buffer> buffer = doubled_buffer(*block); buffer.defined()) found.insert(buffer);
    });
  }
  return found;
}

using Regions = std::vector<Ref<BufferRegion>>;

class PipelinePlanner {
 public:
  PipelinePlanner(const Ref<For>& loop, const std::vector<Ref<For>>& threads, arith::Analyzer& analyzer)
      : loop_(loop), analyzer_(analyzer) {
    for (const Ref<For>& thread : threads) {
      auto axis = analysis::thread_axis(*thread);
      if (!axis || axis->level == ThreadAxis::Level::kBlock) continue;
      Ref<Var> other = var(thread->loop_var->name_hint, thread->loop_var.dtype());
      analyzer_.bind(other, thread->min, thread->extent);
      threads_.push_back({*axis, thread->loop_var, other});
    }
  }

  Result<std::optional<PipelinePlan>> run() {
    PipelineBody body = PipelineBody::of(loop_);
    const List* stages = loop_->annotations.get(kPipelineStage).as<List>();
    if (stages && stages->items.size() != body.stmts.size()) {
      PipelineBody parts = body.in_parts();
      if (stages->items.size() == parts.stmts.size()) body = std::move(parts);
    }
    const std::unordered_set<NodeRef> twice = doubled(body.stmts);
    auto is_doubled = [&](const Ref<Buffer>& buffer) { return twice.contains(buffer); };
    const bool has_stages = loop_->annotations.has(kPipelineStage);
    const bool is_serial = loop_->kind == ForKind::kSerial || loop_->kind == ForKind::kUnrolled;
    if (!has_stages && (!is_serial || none_of(body.buffers, is_doubled))) {
      return std::optional<PipelinePlan>();
    }
    TW_RETURN_IF_ERROR(read(body));
    TW_RETURN_IF_ERROR(check_loop(is_serial));
    for (PipelineStep& step : plan_.steps) {
      step.access = accesses_of(step.stmt);
      last_ = std::max(last_, step.stage);
    }
    plan_.last_stage = last_;
    note_changes();
    std::unordered_set<NodeRef> own;
    for (const Ref<Buffer>& buffer : body.buffers) own.insert(buffer->data);
    TW_RETURN_IF_ERROR(check_order(own));
    for (const Ref<Buffer>& buffer : body.buffers) {
      const int64_t least = is_doubled(buffer) ? 2 : 1;
      plan_.buffers.push_back({buffer, std::max(least, versions_of(buffer))});
    }
    return std::optional<PipelinePlan>(std::move(plan_));
  }

 private:
  Diagnostic wrong_list(const std::string& what) const {
    return refuse_at(loop_, "lower/pipeline-list",
                     "the software pipeline of loop '" + loop_->loop_var->name_hint + "' " + what,
                     "give software_pipeline_stage and software_pipeline_order one number for each statement of the "
                     "loop's body, stages from 0 on, and each place of the order once");
  }

  Status read(const PipelineBody& body) {
    const size_t count = body.stmts.size();
    std::vector<int64_t> stages(count, 0), order(count);
    std::iota(order.begin(), order.end(), int64_t{0});
    std::set<int64_t> async;
    for (const char* key : {kPipelineStage, kPipelineOrder}) {
      const NodeRef annotation = loop_->annotations.get(key);
      if (!annotation.defined()) continue;
      auto list = numbers(annotation);
      if (!list) return wrong_list(std::string("has a ") + key + " that is not a list of integers");
      if (list->size() != count) {
        return wrong_list("has " + std::to_string(count) + " statements, and " + key + " has " +
                          std::to_string(list->size()) + " numbers");
      }
      (key == kPipelineStage ? stages : order) = *list;
    }
    if (const NodeRef annotation = loop_->annotations.get(kPipelineAsync); annotation.defined()) {
      auto list = numbers(annotation);
      if (!list) return wrong_list("has a software_pipeline_async_stages that is not a list of integers");
      async.insert(list->begin(), list->end());
    }
    for (int64_t stage : stages) {
      if (stage < 0 || stage > kMostStages) return wrong_list("has a stage " + std::to_string(stage));
    }
    std::vector<int64_t> places = order;
    std::ranges::sort(places);
    if (std::ranges::adjacent_find(places) != places.end()) {
      return wrong_list("has two statements at one place of the order");
    }
    for (int64_t stage : async) {
      if (!is_contained(stages, stage)) {
        return wrong_list("has no statement in the asynchronous stage " + std::to_string(stage));
      }
    }
    for (size_t i = 0; i < count; ++i) {
      plan_.steps.push_back({body.stmts[i], stages[i], order[i], async.contains(stages[i])});
    }
    return Ok{};
  }

  Status check_loop(bool is_serial) const {
    if (is_serial) return Ok{};
    return refuse_at(loop_, "lower/pipeline-loop",
                     "loop '" + loop_->loop_var->name_hint +
                         "' has a software pipeline, and its iterations do not run one after another",
                     "pipeline a serial or an unrolled loop");
  }

  // ---- conflicts

  /// Memory that the loop changes: a load from it in an index is another number in each iteration, and at each place.
  void note_changes() {
    for (const PipelineStep& step : plan_.steps) {
      for (const Ref<BufferRegion>& region : step.access.writes) changed_.insert(region->buffer->data);
      changed_.insert(step.access.opaque.begin(), step.access.opaque.end());
    }
  }

  bool is_fixed(const Range& range) const {
    bool fixed = true;
    auto look = [&](const Ref<BufferLoad>& load, Visitor& v) {
      fixed = fixed && !changed_.contains(load->buffer->data);
      v.descend(load);
    };
    auto reads = [&](const Ref<Call>& call, Visitor& v) {
      fixed = fixed && intrinsic_row(intrinsic_of(*call)).effect == Effect::kPure;
      v.descend(call);
    };
    visit(range.min, look, reads);
    visit(range.extent, look, reads);
    return fixed;
  }

  /// Whether `a` in one iteration and `b` in the iteration `distance` later may touch one element.
  bool may_meet(const BufferRegion& a, const BufferRegion& b, int64_t distance) {
    if (a.buffer->data != b.buffer->data) return false;
    if (a.buffer != b.buffer || a.region.size() != b.region.size()) return true;
    VarMap elsewhere = {{loop_->loop_var, loop_->loop_var + distance}};
    for (const auto& [axis, thread, other] : threads_) {
      if (memory_scope(a.buffer->scope()).is_shared_by(axis)) elsewhere[thread] = other;
    }
    for (size_t d : indices_of(a.region)) {
      if (!is_fixed(*a.region[d]) || !is_fixed(*b.region[d])) continue;
      const Expr &start = a.region[d]->min, &extent = a.region[d]->extent;
      const Expr other = substitute(b.region[d]->min, elsewhere);
      const Expr size = substitute(b.region[d]->extent, elsewhere);
      if (analyzer_.can_prove(le(start + extent, other)) || analyzer_.can_prove(le(other + size, start))) return false;
      if (are_between(other - start, extent, size)) return false;
    }
    return true;
  }

  /// Whether `size` elements at any of the distances are outside of all ranges of `extent` elements, which repeat, as
  /// rows of other threads do: 8 * (ty - tx) + 1.
  bool are_between(const Expr& distance, const Expr& extent, const Expr& size) {
    const arith::ModularSet at = analyzer_.modular_set(analyzer_.simplify(distance));
    auto first = const_int(extent), second = const_int(size);
    if (!first || !second || at.coeff < 1) return false;
    const int64_t offset = floor_mod(at.base, at.coeff);
    return offset >= *first && at.coeff - offset >= *second;
  }

  bool may_meet(const Regions& a, const Regions& b, const NodeRef& data, int64_t distance) {
    return any_of(a, [&](const Ref<BufferRegion>& one) {
      return one->buffer->data == data &&
             any_of(b, [&](const Ref<BufferRegion>& other) { return may_meet(*one, *other, distance); });
    });
  }

  static bool points_to(const PipelineStep& step, const NodeRef& data) {
    return is_contained(step.access.opaque, data);
  }
  static bool touches(const PipelineStep& step, const NodeRef& data) {
    auto names = [&](const Ref<BufferRegion>& region) { return region->buffer->data == data; };
    return points_to(step, data) || any_of(step.access.reads, names) || any_of(step.access.writes, names);
  }

  /// Whether the order of what `a` does in one iteration and `b` does `distance` later matters.
  bool conflict(const PipelineStep& a, const PipelineStep& b, const NodeRef& data, int64_t distance) {
    if (points_to(a, data) || points_to(b, data)) return touches(a, data) && touches(b, data);
    return may_meet(a.access.writes, b.access.writes, data, distance) ||
           may_meet(a.access.writes, b.access.reads, data, distance) ||
           may_meet(a.access.reads, b.access.writes, data, distance);
  }

  /// Whether `b` runs its iteration `distance` later after `a`; if it is the same iteration of the same step, too.
  static bool comes_after(const PipelineStep& a, const PipelineStep& b, int64_t distance) {
    const int64_t time = distance + b.stage - a.stage;
    return time > 0 || (time == 0 && b.order >= a.order);
  }

  std::vector<NodeRef> memory() const {
    std::vector<NodeRef> found;
    auto add = [&](const NodeRef& data) {
      if (!is_contained(found, data)) found.push_back(data);
    };
    for (const PipelineStep& step : plan_.steps) {
      for (const Regions* regions : {&step.access.reads, &step.access.writes}) {
        for (const Ref<BufferRegion>& region : *regions) add(region->buffer->data);
      }
      for (const Ref<Var>& pointer : step.access.opaque) add(pointer);
    }
    return found;
  }

  /// Steps that conflict keep their order: of buffers of one iteration in that iteration, of others in all of them.
  Status check_order(const std::unordered_set<NodeRef>& own) {
    for (const NodeRef& data : memory()) {
      for (size_t i : indices_of(plan_.steps)) {
        for (size_t j : indices_of(plan_.steps)) {
          const PipelineStep &a = plan_.steps[i], &b = plan_.steps[j];
          const int64_t most = own.contains(data) ? 0 : last_;
          for (int64_t distance = i < j ? 0 : 1; distance <= most; ++distance) {
            if (comes_after(a, b, distance) || !conflict(a, b, data, distance)) continue;
            return refuse_at(b.stmt, "lower/pipeline-order", out_of_order(i, j, data, distance),
                             "give the statement that comes first a smaller stage, or the same stage and an earlier "
                             "place; a buffer that each iteration has for itself can be in several versions");
          }
        }
      }
    }
    return Ok{};
  }

  std::string out_of_order(size_t i, size_t j, const NodeRef& data, int64_t distance) const {
    const std::string of = "of the software pipeline of loop '" + loop_->loop_var->name_hint + "'";
    return "statement " + std::to_string(j) + " " + of + " would run before statement " + std::to_string(i) +
           (distance == 0 ? std::string(" of its iteration")
                          : " of the iteration " + std::to_string(distance) + " before it") +
           ", and both access '" + data.as<Var>()->name_hint + "'";
  }

  /// Iterations that are so far apart, or a multiple of it, may share memory.
  bool may_share(int64_t versions, const NodeRef& data) {
    for (const PipelineStep& a : plan_.steps) {
      for (const PipelineStep& b : plan_.steps) {
        for (int64_t distance = versions; !comes_after(a, b, distance); distance += versions) {
          if (conflict(a, b, data, distance)) return false;
        }
      }
    }
    return true;
  }

  int64_t versions_of(const Ref<Buffer>& buffer) {
    int64_t versions = 1;
    while (!may_share(versions, buffer->data)) ++versions;
    return versions;
  }

  static constexpr int64_t kMostStages = 64;
  /// A loop over threads around, and another one of these threads.
  struct Thread {
    ThreadAxis axis;
    Ref<Var> thread, other;
  };

  const Ref<For>& loop_;
  arith::Analyzer& analyzer_;
  std::vector<Thread> threads_;
  PipelinePlan plan_;
  int64_t last_ = 0;
  std::unordered_set<NodeRef> changed_;  ///< pointers to what the loop writes
};

}  // namespace

Ref<Buffer> doubled_buffer(const Block& block) {
  const IntImm* number = block.annotations.get(kDoubleBuffer).as<IntImm>();
  if (!number || number->value < 0 || number->value >= static_cast<int64_t>(block.writes.size())) return {};
  return block.writes[number->value]->buffer;
}

analysis::BlockAccess accesses_of(const Stmt& s, const std::vector<Def<Buffer>>& own) {
  Block block;
  block.alloc_buffers = own;
  block.body = rewrite(s, [&](const Ref<BlockRealize>& realize, Rewriter& r) -> Stmt {
    const Block& inner = *realize->block;
    if (!is_trivial(*realize) || !inner.reads.empty() || !inner.writes.empty()) return r.descend(realize);
    append_range(block.alloc_buffers, inner.alloc_buffers);
    return r(inner.body);
  });
  return analysis::block_access_region(make(std::move(block)));
}

std::vector<size_t> PipelinePlan::by_order() const {
  std::vector<size_t> result(steps.size());
  std::iota(result.begin(), result.end(), size_t{0});
  std::ranges::sort(result, [&](size_t a, size_t b) { return steps[a].order < steps[b].order; });
  return result;
}

bool PipelinePlan::uses_result(const PipelineStep& later, const PipelineStep& earlier) {
  auto touches = [&](const NodeRef& data) {
    auto names = [&](const Ref<BufferRegion>& region) { return region->buffer->data == data; };
    const analysis::BlockAccess& access = later.access;
    return is_contained(access.opaque, data) || any_of(access.reads, names) || any_of(access.writes, names);
  };
  return any_of(earlier.access.writes,
                [&](const Ref<BufferRegion>& region) { return touches(region->buffer->data); }) ||
         any_of(earlier.access.opaque, touches);
}

Result<std::optional<PipelinePlan>> plan_pipeline(const Ref<For>& loop, const std::vector<Ref<For>>& threads,
                                                  arith::Analyzer& analyzer) {
  return PipelinePlanner(loop, threads, analyzer).run();
}

}  // namespace tilewright::lower
