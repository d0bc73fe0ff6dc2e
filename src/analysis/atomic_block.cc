#include "analysis/atomic_block.h"

#include <unordered_set>

#include "analysis/accesses.h"
#include "ir/annotations.h"
#include "ir/atomic_operation.h"
#include "ir/traverse.h"
#include "support/ranges.h"

namespace tilewright::analysis {
namespace {

class UpdateWalk {
 public:
  explicit UpdateWalk(const Block& block) { enter(block); }

  /// Returns whether atomic operations are the only effect of the block.
  bool run(const Ref<Block>& block) {
    walk(*block);
    if (fails_ || operations.empty()) return false;
    for_each_access(block, Nested::kEnter, [&](const Access& access) {
      if (access.form == Access::Form::kView) return;
      const Ref<BufferRegion> region = access.region();
      if (access.is_atomic) {
        fails_ |= !operations.contains(region->buffer->data.get());  // behind a view
      } else {
        fails_ |= !region.defined() || operations.contains(region->buffer->data.get());
      }
    });
    return !fails_;
  }

  std::map<const NodeBase*, Intrinsic> operations;

 private:
  void enter(const Block& block) {
    for (const Def<Buffer>& buffer : block.alloc_buffers) own_.insert(buffer->data.get());
  }

  /// The statements of a block, and of those in it.
  void walk(const Block& block) {
    if (block.init.defined())
      visit(block.init, [&](const Ref<BufferStore>& store) { fails_ |= !is_own(store->buffer); });
    visit(
        block.body,
        [&](const Ref<BlockRealize>& realize, Visitor&) {
          enter(*realize->block);
          walk(*realize->block);
        },
        [&](const Ref<Evaluate>& evaluate, Visitor& v) {
          auto step = AtomicOperation::of(evaluate->value);
          if (!step) return v(evaluate->value);
          note(*step);
          for (const Expr& index : step->indices) v(index);
          v(step->value);
        },
        [&](const Ref<BufferStore>& store) {
          auto step = is_atomic_block(block) ? AtomicOperation::of(*store) : std::nullopt;
          if (step) {
            note(*step);
          } else if (!is_own(store->buffer)) {
            fails_ = true;
          }
        },
        [&](const Ref<Call>& call) {
          // This includes an atomic operation whose result is used: the result depends on the order.
          fails_ |= intrinsic_row(intrinsic_of(*call)).effect == Effect::kUpdateState;
        });
  }

  bool is_own(const Ref<Buffer>& buffer) const { return own_.contains(buffer->data.get()); }

  void note(const AtomicOperation& step) {
    auto [known, is_new] = operations.try_emplace(step.buffer->data.get(), step.intrinsic);
    fails_ |= (!is_new && known->second != step.intrinsic) || !is_commutative_atomic(step.intrinsic);
  }

  std::unordered_set<const NodeBase*> own_;
  bool fails_ = false;
};

}  // namespace

const AtomicUpdates& AtomicUpdates::of(const Ref<Block>& block) {
  return block->id.memo.get<AtomicUpdates>([&] {
    AtomicUpdates updates;
    if (block->init.defined()) return updates;
    UpdateWalk walk(*block);
    if (walk.run(block)) updates.operations_ = std::move(walk.operations);
    return updates;
  });
}

bool AtomicUpdates::agree(const AtomicUpdates& other, const Ref<Buffer>& buffer) const {
  auto *mine = find_value(operations_, buffer->data.get()), *others = find_value(other.operations_, buffer->data.get());
  return mine && others && *mine == *others;
}

}  // namespace tilewright::analysis
