#include "analysis/sure_writes.h"

#include <algorithm>

#include "analysis/accesses.h"
#include "analysis/block_facts.h"
#include "analysis/cover.h"
#include "arith/region_bound.h"
#include "ir/build.h"
#include "ir/structural.h"
#include "ir/substitute.h"
#include "ir/traverse.h"
#include "support/ranges.h"

namespace tilewright::analysis {
namespace {

using MaybeBox = std::optional<arith::Box>;
constexpr int kMostBranches = 8;

/// Whether the mask surely selects all lanes.
bool is_whole(const Expr& mask) {
  const Broadcast* all = mask.as<Broadcast>();
  return !mask.defined() || (all && is_true(all->value));
}

class Stores {
 public:
  Stores(const Ref<Buffer>& buffer, const Block& block, arith::Analyzer& analyzer)
      : buffer_(buffer), analyzer_(analyzer) {
    for (const Ref<MatchBufferRegion>& match : block.match_buffers) views_[match->buffer] = match->source;
  }

  MaybeBox of(const Stmt& stmt) {
    if (!stmt.defined()) return std::nullopt;
    if (const BufferStore* store = stmt.as<BufferStore>()) return of_store(*store);
    if (const SeqStmt* sequence = stmt.as<SeqStmt>()) {
      MaybeBox all;
      for (const Stmt& part : sequence->seq) all = both(std::move(all), of(part));
      return all;
    }
    if (const For* loop = stmt.as<For>()) return of_loop(*loop);
    if (const IfThenElse* branch = stmt.as<IfThenElse>()) return of_branch(*branch);
    if (const LetStmt* let = stmt.as<LetStmt>()) return of(substitute(let->body, VarMap{{let->var, let->value}}));
    if (const AssertStmt* assertion = stmt.as<AssertStmt>()) return of(assertion->body);
    if (const AttrStmt* attribute = stmt.as<AttrStmt>()) return of(attribute->body);
    if (const Allocate* allocate = stmt.as<Allocate>()) return of(allocate->body);
    if (const AllocateConst* allocate = stmt.as<AllocateConst>()) return of(allocate->body);
    if (const DeclBuffer* decl = stmt.as<DeclBuffer>()) return of(decl->body);
    if (const BlockRealize* realize = stmt.as<BlockRealize>()) return of_block(*realize);
    return std::nullopt;
  }

 private:
  MaybeBox both(MaybeBox a, MaybeBox b) {
    if (!a || !b) return a ? std::move(a) : std::move(b);
    return arith::unite_lower_bound(*a, *b, analyzer_);
  }

  MaybeBox of_store(const BufferStore& store) {
    if (!is_whole(store.predicate)) return std::nullopt;
    for (const Expr& index : store.indices) {
      const Ramp* ramp = index.as<Ramp>();
      if (!index.dtype().is_scalar() && (!ramp || !is_const_int(ramp->stride, 1))) return std::nullopt;
    }
    return reached(region_of_element(store.buffer, store.indices));
  }

  /// If a view has another shape than its source, its elements in the source are unknown.
  MaybeBox reached(Ref<BufferRegion> region) {
    while (auto* view = find_value(views_, region->buffer)) {
      const BufferRegion& source = **view;
      size_t skipped = source.region.size() - std::min(source.region.size(), region->region.size());
      for (size_t d : indices_of(source.region)) {
        bool follows = d < skipped ? is_const_int(source.region[d]->extent, 1)
                                   : structural_equal(region->buffer->shape[d - skipped], source.region[d]->extent);
        if (!follows) return std::nullopt;
      }
      region = behind_views(region, Views{{region->buffer, *view}});
    }
    if (region->buffer != buffer_) return std::nullopt;
    for (const auto& [loop_var, domain] : loops_) {
      // A loop that does not select what is written has to run at all.
      bool selects = any_of(region->region, [&](const Ref<Range>& r) { return uses_var(r->min, loop_var); });
      if (!selects && !analyzer_.can_prove_greater_equal(domain->extent, 1)) return std::nullopt;
    }
    return surely_reached(region->region, loops_, predicate_, analyzer_);
  }

  MaybeBox of_loop(const For& loop) {
    if (effect_of(loop.min) != Effect::kPure || effect_of(loop.extent) != Effect::kPure) return std::nullopt;
    analyzer_.bind(loop.loop_var, range(loop.min, loop.extent));
    loops_.emplace_back(loop.loop_var, range(loop.min, loop.extent));
    MaybeBox result = of(loop.body);
    loops_.pop_back();
    return result;
  }

  MaybeBox of_branch(const IfThenElse& branch) {
    MaybeBox either;
    if (branches_ == kMostBranches) return either;  // each is looked at twice
    ++branches_;
    either = of_either(branch);
    --branches_;
    return either;
  }

  MaybeBox of_either(const IfThenElse& branch) {
    MaybeBox either;
    if (branch.else_case.defined()) {
      MaybeBox yes = of(branch.then_case), no = of(branch.else_case);
      if (yes && no && arith::proves_subset(*yes, *no, analyzer_)) {
        either = std::move(yes);
      } else if (yes && no && arith::proves_subset(*no, *yes, analyzer_)) {
        either = std::move(no);
      }
    }
    if (either || effect_of(branch.condition) != Effect::kPure) return either;
    Expr outer = std::exchange(predicate_, logical_and(predicate_, branch.condition));
    either = of(branch.then_case);
    if (branch.else_case.defined()) {
      predicate_ = logical_and(outer, logical_not(branch.condition));
      either = both(std::move(either), of(branch.else_case));
    }
    predicate_ = outer;
    return either;
  }

  MaybeBox of_block(const BlockRealize& realize) {
    const BlockFacts& facts = BlockFacts::of(realize.block);
    if (effect_of(realize.predicate) != Effect::kPure) return std::nullopt;
    Expr outer = std::exchange(predicate_, logical_and(predicate_, realize.predicate));
    MaybeBox all;
    for (size_t i : indices_of(realize.block->writes)) {
      const Ref<BufferRegion>& write = realize.block->writes[i];
      if (!facts.writes_all[i]) continue;
      all = both(std::move(all), reached(make<BufferRegion>({write->buffer, bound_region(realize, write)})));
    }
    predicate_ = outer;
    return all;
  }

  const Ref<Buffer>& buffer_;
  arith::Analyzer& analyzer_;
  Views views_;
  arith::IterDomains loops_;
  Expr predicate_ = bool_imm(true);
  int branches_ = 0;
};

/// "C[v] = ..." alone, for the most frequent of all blocks.
bool is_one_store(const Stmt& stmt, const Ref<BufferRegion>& region) {
  const BufferStore* store = stmt.as<BufferStore>();
  if (!store || store->predicate.defined() || store->buffer != region->buffer) return false;
  for (size_t d : indices_of(store->indices)) {
    if (!is_const_int(region->region[d]->extent, 1) || !same_expr(store->indices[d], region->region[d]->min)) {
      return false;
    }
  }
  return true;
}

}  // namespace

bool surely_writes(const Stmt& stmt, const Block& block, const Ref<BufferRegion>& region, arith::Analyzer& analyzer) {
  if (is_one_store(stmt, region)) return true;
  MaybeBox box;
  with_stack_for(stmt.depth(), [&] { box = Stores(region->buffer, block, analyzer).of(stmt); });
  return box && arith::proves_subset(arith::box_of(region->region), *box, analyzer);
}

}  // namespace tilewright::analysis
