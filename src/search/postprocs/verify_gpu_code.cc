// Refuses programs that a GPU cannot run: more threads in a block, or more shared memory, than the target has; loops
// bound to one axis that differ in extent; more than 8 virtual threads along an axis; vectors of more than 16 bytes.
// Also refuses a number of threads around a block outside of the range that rules annotated,
// meta_schedule.thread_extent_low_inclusive to ..._high_inclusive.
//
// Shared memory is counted after compaction, times the copies that a software pipeline keeps in flight. Buffers that
// are never alive together share bytes, as in the compiled kernel (lower/gpu/plan_shared_memory.cc).
#include <algorithm>
#include <map>

#include "analysis/threads.h"
#include "ir/build.h"
#include "ir/strides.h"
#include "ir/substitute.h"
#include "ir/traverse.h"
#include "lower/gpu/shared_arena.h"
#include "search/loop_kinds.h"
#include "search/pipeline_versions.h"
#include "search/postprocs/compacted.h"
#include "search/postprocs/postprocs.h"
#include "target/memory_scope.h"

namespace tilewright::search {
namespace {

constexpr int64_t kMaxVirtualThreads = 8, kMaxVectorBytes = 16;

/// Checks that the number of threads around each annotated block is in the annotated range.
class ThreadExtents {
 public:
  explicit ThreadExtents(int64_t warp_size) : warp_size_(warp_size) {}

  bool check(const Stmt& body) {
    visit(
        body,
        [&](const Ref<For>& loop, Visitor& v) {
          auto axis = analysis::thread_axis(*loop);
          if (!axis || axis->level != ThreadAxis::Level::kThread) return v.descend(loop);
          auto extent = const_int(loop->extent);
          if (!extent) {
            good_ = false;
            return;
          }
          int64_t before = std::exchange(extents_[axis->dimension], *extent);
          v.descend(loop);
          extents_[axis->dimension] = before;
        },
        [&](const Ref<Block>& block, Visitor& v) {
          int64_t before = extents_[0];
          if (block->annotations.has("warp_execution")) extents_[0] = warp_size_;
          auto low = integer_annotation(block->annotations, "meta_schedule.thread_extent_low_inclusive");
          auto high = integer_annotation(block->annotations, "meta_schedule.thread_extent_high_inclusive");
          int64_t threads = extents_[0] * extents_[1] * extents_[2];
          if (low && high && (threads < *low || threads > *high)) good_ = false;
          v.descend(block);
          extents_[0] = before;
        });
    return good_;
  }

 private:
  int64_t warp_size_;
  int64_t extents_[3] = {1, 1, 1};
  bool good_ = true;
};

/// The axis and the extent that a lowered program states ("thread_extent", "virtual_thread").
struct Launch {
  ThreadAxis axis;
  std::string tag;
  std::optional<int64_t> extent;
};
std::optional<Launch> launch_of(const AttrStmt& attr) {
  const IterVar* iter = attr.node.as<IterVar>();
  if (!iter || (attr.attr_key != "thread_extent" && attr.attr_key != "virtual_thread")) return std::nullopt;
  auto axis = ThreadAxis::parse(iter->thread_tag);
  if (!axis) return std::nullopt;
  const IntImm* extent = attr.value.as<IntImm>();
  return Launch{*axis, iter->thread_tag, extent ? std::optional(extent->value) : std::nullopt};
}

/// Checks the resources of one kernel.
class KernelCheck {
 public:
  KernelCheck(const Target& target, bool open_grids) : target_(target), open_grids_(open_grids) {}

  bool check(const Ref<PrimFunc>& func) {
    visit(
        func->body, [&](const Ref<For>& loop, Visitor& v) { enter(loop, v); },
        [&](const Ref<While>& loop, Visitor& v) { kernel_.shared.loop(false, [&] { v.descend(loop); }); },
        [&](const Ref<LetStmt>& let, Visitor& v) {
          v(let->value);
          kernel_.shared.alias(*let);
          v(let->body);
        },
        [&](const Ref<AttrStmt>& attr, Visitor& v) {
          auto launch = launch_of(*attr);
          if (!launch) return v.descend(attr);
          inside(launch->axis, launch->tag, launch->extent, [&] { v.descend(attr); });
        },
        on<Block, Allocate>([&](const auto& node) { allocate(*node); }),
        [&](const Ref<BufferStore>& store, Visitor& v) {
          check_vector(store, store->value.dtype());
          v.descend(store);
          kernel_.shared.touch(store->buffer->data);
          kernel_.shared.next_statement();
        },
        [&](const Ref<Evaluate>& evaluate, Visitor& v) {
          v.descend(evaluate);
          kernel_.shared.next_statement();
        },
        [&](const Ref<Var>& v, Visitor& walk) {  // a pointer that an intrinsic gets
          if (walk.role() == Role::kChild) kernel_.shared.touch(v);
        },
        [&](const Ref<Buffer>&, Visitor&) {},  // to name it is no access
        [&](const Ref<BufferLoad>& load) {
          check_vector(load, Expr(load).dtype());
          kernel_.shared.touch(load->buffer->data);
        },
        [&](const Ref<Cast>& cast) { check_vector(cast, Expr(cast).dtype()); });
    return good_;
  }

 private:
  void enter(const Ref<For>& loop, Visitor& v) {
    auto extent = const_int(loop->extent);
    if (loop->kind == ForKind::kVectorized) {
      vector_loops_.push_back({loop->loop_var, extent.value_or(kMaxVectorBytes + 1)});
      v.descend(loop);
      vector_loops_.pop_back();
      return;
    }
    around_.push_back(loop);
    const bool is_pipeline = loop->annotations.has("software_pipeline_stage");
    const auto body = [&] { kernel_.shared.loop(is_pipeline, [&] { v.descend(loop); }); };
    auto axis = analysis::thread_axis(*loop);
    if (axis) {
      inside(*axis, loop->thread_binding->thread_tag, extent, body);
    } else {
      body();
    }
    around_.pop_back();
  }

  template <class Descend>
  void inside(const ThreadAxis& axis, const std::string& tag, std::optional<int64_t> extent, Descend descend) {
    if (!extent && !(open_grids_ && axis.level == ThreadAxis::Level::kBlock)) {
      good_ = false;
      return;
    }
    bool outermost = depth_++ == 0;
    if (outermost) kernel_ = {};
    if (extent) bind(axis, tag, *extent);
    descend();
    --depth_;
    if (outermost) finish();
  }

  void bind(const ThreadAxis& axis, const std::string& tag, int64_t extent) {
    if (axis.level == ThreadAxis::Level::kVirtual) {
      good_ &= extent <= kMaxVirtualThreads;
      return;
    }
    auto [known, is_new] = kernel_.extents.emplace(tag, extent);
    good_ &= known->second == extent;
    if (is_new && axis.level == ThreadAxis::Level::kThread) kernel_.threads *= extent;
  }

  void allocate(const Block& block) {
    for (const Def<Buffer>& buffer : block.alloc_buffers) {
      if (memory_scope(buffer->scope()).prefix != "shared") continue;
      auto bytes = bytes_of(*buffer);
      good_ &= bytes.has_value();
      kernel_.shared.allocate(buffer->data, bytes.value_or(0) * copies_of(buffer));
    }
    for (const Ref<MatchBufferRegion>& match : block.match_buffers) {
      kernel_.shared.alias(match->buffer->data, match->source->buffer->data);
    }
  }

  void allocate(const Allocate& allocation) {
    const PointerType* type = allocation.buffer_var->type_annotation.as<PointerType>();
    if (!type || memory_scope(type->storage_scope).prefix != "shared") return;
    auto bytes = known_product(allocation.dtype.bytes() * allocation.dtype.lanes, allocation.extents);
    good_ &= bytes.has_value();
    kernel_.shared.allocate(allocation.buffer_var, bytes.value_or(0));
  }

  /// Returns how many versions of the buffer are in use at once in the pipelines around.
  int64_t copies_of(const Ref<Buffer>& buffer) const {
    int64_t copies = 1;
    for (const Ref<For>& loop : around_) copies = std::max(copies, pipeline_versions(*loop, buffer));
    return copies;
  }

  void check_vector(const NodeRef& node, DataType dtype) {
    int64_t bytes = dtype.bytes() * dtype.lanes;
    for (const auto& [loop_var, extent] : vector_loops_) {
      if (uses_var(node, loop_var)) bytes *= extent;
    }
    good_ &= bytes <= kMaxVectorBytes || bytes == dtype.bytes();
  }

  void finish() {
    auto within = [](int64_t value, int64_t limit) { return limit == 0 || value <= limit; };  // 0: not stated
    good_ &= within(kernel_.threads, target_.max_threads_per_block);
    good_ &= within(kernel_.shared.place(), target_.max_shared_memory_per_block);
  }

  struct Kernel {
    std::map<std::string, int64_t> extents;
    int64_t threads = 1;
    lower::SharedArena shared;
  };
  const Target& target_;
  bool open_grids_;
  int depth_ = 0;
  Kernel kernel_;
  std::vector<std::pair<Ref<Var>, int64_t>> vector_loops_;
  std::vector<Ref<For>> around_;
  bool good_ = true;
};

}  // namespace

Status VerifyGPUCode::initialize(const TuneContext& context) {
  if (!context.target || !context.target->is_in(TargetSet::kGpu)) {
    return argument_error("search/no-threads", "VerifyGPUCode needs a target with blocks of threads",
                          "pass a target like \"nvidia/geforce-rtx-3070\"");
  }
  target_ = context.target;
  return Ok{};
}

Result<bool> VerifyGPUCode::apply(Schedule& schedule) const {
  if (!target_) {
    return argument_error("search/no-threads", "VerifyGPUCode was not initialized",
                          "give it to the space generator of a TuneContext with a target");
  }
  for (const auto& [name, func] : schedule.module()->functions) {
    const PrimFunc* prim = func.as<PrimFunc>();
    if (prim && !ThreadExtents(target_->thread_warp_size).check(prim->body)) return false;
  }
  TW_TRY(functions, compacted_functions(schedule.module()));
  for (const Ref<PrimFunc>& func : functions) {
    if (!KernelCheck(*target_, options_.open_grids).check(func)) return false;
  }
  return true;
}

}  // namespace tilewright::search
