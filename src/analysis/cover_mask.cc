#include "analysis/cover_mask.h"

#include "analysis/accesses.h"
#include "analysis/cover.h"
#include "ir/build.h"
#include "ir/conjunction.h"
#include "ir/substitute.h"
#include "support/ranges.h"

namespace tilewright::analysis {
namespace {

/// The conditions under which an access of a block happens, in terms of the loops around the block and inside of it.
class AccessConditions {
 public:
  AccessConditions(const Tree& tree, int block, Surroundings around) {
    const BlockRealize& realize = *tree.realize_at(block);
    analyzer_ = analyzer_above(tree, tree[block].parent);
    assume_all(stable_terms(realize.predicate), analyzer_);
    for (size_t i : indices_of(realize.iter_values)) {
      map_.emplace(realize.block->iter_vars[i]->var, realize.iter_values[i]);
    }
    for (const Surrounding& each : around) {
      if (!each.var.defined() || !each.set.is_bounded()) continue;
      if (each.kind == Surrounding::Kind::kLoop) {
        const Expr min = substitute(each.set.min, map_);
        analyzer_.bind(each.var, range(min, substitute(each.set.max, map_) - min + 1));
      } else if (each.set.is_point()) {
        map_.emplace(each.var, substitute(each.set.min, map_));
      }
    }
    assume_all(substitute(known_conditions(around), map_), analyzer_);
  }

  bool proves(const Expr& condition) {
    const std::vector<Expr> terms = conjuncts(substitute(condition, map_));
    return all_of(terms, [&](const Expr& term) { return analyzer_.can_prove(term); });
  }

 private:
  arith::Analyzer analyzer_;
  VarMap map_;
};

}  // namespace

bool reads_only_under_mask(const Tree& tree, int reader, const Ref<BufferRegion>& write, const Expr& mask) {
  bool only = true;
  for_each_access(tree.block_ref(reader), Nested::kEnter, [&](const Access& access) {
    if (!only || !access.reads) return;
    const Ref<BufferRegion> region = access.region();
    const Ref<Var> data = region.defined() ? region->buffer->data : access.pointer;
    if (data.defined() && data != write->buffer->data) return;
    const std::vector<Expr>* indices = access.form == Access::Form::kElement ? access.indices() : nullptr;
    only = indices && access.named == write->buffer && indices->size() == write->region.size() &&
           all_of(*indices, [](const Expr& index) { return index.dtype().is_scalar(); });
    if (!only) return;
    VarMap element;
    for (size_t d : indices_of(*indices)) {
      element.emplace(write->region[d]->min, cast(write->region[d]->min.dtype(), (*indices)[d]));
    }
    only = AccessConditions(tree, reader, access.around).proves(substitute(mask, element));
  });
  return only;
}

}  // namespace tilewright::analysis
