#include "analysis/sure_reads.h"

#include <algorithm>

#include "analysis/accesses.h"
#include "analysis/binding_reads.h"
#include "analysis/cover.h"
#include "ir/build.h"
#include "ir/substitute.h"
#include "ir/traverse.h"
#include "support/ranges.h"

namespace tilewright::analysis {
namespace {

/// Whether the access happens whenever its block runs: it is under no condition, and the loops around it iterate.
bool is_sure(const Access& access) {
  if (access.form != Access::Form::kElement || !access.reads || access.in_init || access.mask().defined()) return false;
  return none_of(access.around, [](const Surrounding& s) {
    switch (s.kind) {
      case Surrounding::Kind::kCondition:
      case Surrounding::Kind::kAssertion:
      case Surrounding::Kind::kWhile:
        return true;
      case Surrounding::Kind::kLoop:
        return const_int(s.node.as<For>()->extent).value_or(0) < 1;
      default:
        return false;
    }
  });
}

/// Whether the load, or one of its indices, reads a buffer that the block writes.
bool reads_own_results(const NodeRef& load, const Block& block) {
  return any_node(load, [&](const Ref<BufferLoad>& inner) {
    return any_of(block.writes, [&](const auto& write) { return write->buffer->data == inner->buffer->data; });
  });
}

/// The load with axes of inner blocks and let variables replaced by their values.
Ref<BufferLoad> seen_from_outside(const Access& access) {
  Expr load(access.site.borrow<BufferLoad>());
  for (const Surrounding& s : reversed(access.around)) {
    const bool is_name = s.kind == Surrounding::Kind::kAxis || s.kind == Surrounding::Kind::kLet;
    if (is_name && s.set.is_point()) load = substitute(load, {{s.var, s.set.min}});
  }
  return load.borrow<BufferLoad>();
}

}  // namespace

void SureReads::add(const Tree& tree, int outside, int block, arith::Analyzer& analyzer, const std::vector<int>& run) {
  const BlockRealize& realize = *tree.realize_at(block);
  const auto loops = loops_between(tree, outside, block);
  if (!loops || !is_true(realize.predicate)) return;
  const bool all_run = all_of(*loops, [&](int at) {
    const Expr& extent = tree.for_at(at).extent;
    return is_contained(run, at) || analyzer.can_prove(gt(extent, 0));
  });
  if (!all_run) return;
  VarMap axes;
  for (size_t i : indices_of(realize.iter_values)) {
    axes[realize.block->iter_vars[i]->var] = realize.iter_values[i];
  }
  const size_t known = loads_.size();
  add(realize.block);
  for (size_t i = known; i < loads_.size(); ++i) loads_[i] = substitute(Expr(loads_[i]), axes).borrow<BufferLoad>();
  for_each_bound(realize, [&](const Expr& e) {
    for_each_access(e, Nested::kEnter, [&](const Access& access) {
      if (is_sure(access)) loads_.push_back(seen_from_outside(access));
    });
  });
}

void SureReads::add(const Ref<Block>& block) {
  for_each_access(block, Nested::kEnter, [&](const Access& access) {
    if (is_sure(access) && !reads_own_results(access.site, *block)) loads_.push_back(seen_from_outside(access));
  });
}

bool SureReads::contains(const Ref<BufferLoad>& load, arith::Analyzer& analyzer) const {
  return any_of(loads_, [&](const Ref<BufferLoad>& known) {
    return known->buffer == load->buffer &&
           std::ranges::equal(known->indices, load->indices, [&](const Expr& a, const Expr& b) {
             return a.dtype() == b.dtype() && a.dtype().is_scalar() && analyzer.can_prove_equal(a, b);
           });
  });
}

}  // namespace tilewright::analysis
