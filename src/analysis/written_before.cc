#include "analysis/written_before.h"

#include <algorithm>
#include <unordered_set>

#include "analysis/cover.h"
#include "analysis/cover_mirror.h"
#include "ir/build.h"
#include "ir/regions.h"
#include "ir/structural.h"
#include "ir/traverse.h"
#include "support/ranges.h"

namespace tilewright::analysis {
namespace {

/// The maximum number of tracked writes; unrolled programs have more.
constexpr size_t kWrites = 64;

/// The loops, blocks and conditions around an access from index `from` on, which are not around the other access.
template <class Around>
class Inside {
 public:
  Inside(const Around& around, size_t from) : around_(around), from_(from) {}

  /// Substitutes the bindings of axes, the innermost ones first.
  Expr resolved(Expr e) const {
    for (size_t i = around_.size(); i-- > from_;) {
      if (around_[i].binding.defined()) e = substitute(e, {{around_[i].var, around_[i].binding}});
    }
    return e;
  }
  arith::Region resolved(const arith::Region& region) const {
    arith::Region result;
    for (const Ref<Range>& r : region) result.push_back(range(resolved(r->min), resolved(r->extent)));
    return result;
  }
  Expr condition() const {
    Expr all = bool_imm(true);
    for (size_t i = from_; i < around_.size(); ++i) {
      if (around_[i].condition.defined()) all = logical_and(all, resolved(around_[i].condition));
    }
    return all;
  }
  /// Returns the condition with each loop that the region does not depend on in its first iteration: later iterations
  /// of such a loop access the same elements.
  Expr condition_for(const arith::Region& region) const {
    VarMap first;
    for (size_t i = from_; i < around_.size(); ++i) {
      const auto& each = around_[i];
      if (!each.domain.defined() || each.binding.defined() || uses_var(region, each.var)) continue;
      first.emplace(each.var, substitute(resolved(each.domain->min), first));
    }
    return substitute(condition(), first);
  }
  arith::IterDomains loops_of(const arith::Region& region) const {
    arith::IterDomains loops;
    for (size_t i = from_; i < around_.size(); ++i) {
      const auto& each = around_[i];
      if (each.domain.defined() && !each.binding.defined() && uses_var(region, each.var)) {
        loops.emplace_back(each.var, range(resolved(each.domain->min), resolved(each.domain->extent)));
      }
    }
    return loops;
  }
  arith::Domains domains() const {
    arith::Domains domains;
    for (size_t i = from_; i < around_.size(); ++i) {
      const auto& each = around_[i];
      if (each.domain.defined() && !each.binding.defined()) {
        domains.emplace(each.var,
                        arith::IntSet::of_range(range(resolved(each.domain->min), resolved(each.domain->extent))));
      }
    }
    return domains;
  }
  bool is_sure() const {
    return std::all_of(around_.begin() + static_cast<std::ptrdiff_t>(from_), around_.end(),
                       [](const auto& each) { return each.is_sure; });
  }

 private:
  const Around& around_;
  size_t from_;
};

void assume_not_empty(const Buffer& buffer, arith::Analyzer& analyzer) {
  for (const Expr& extent : buffer.shape) {
    if (!const_int(extent)) analyzer.assume(ge(extent, 1));
  }
}

}  // namespace

void WrittenBefore::enter_loop(const For& loop, bool is_sure) {
  around_.push_back({loop.loop_var, range(loop.min, loop.extent), {}, {}, is_sure});
}

void WrittenBefore::enter_block(const BlockRealize& realize, bool is_sure) {
  around_.push_back({var("block"), {}, {}, realize.predicate, is_sure});
  const Block& block = *realize.block;
  for (size_t i : indices_of(block.iter_vars)) {
    around_.push_back({block.iter_vars[i]->var, block.iter_vars[i]->dom, realize.iter_values[i], {}, true});
  }
  for (const Ref<MatchBufferRegion>& match : block.match_buffers) views_[match->buffer.get()] = match->source;
}

void WrittenBefore::enter_condition() { around_.push_back({var("condition"), {}, {}, {}, false}); }

Ref<Buffer> WrittenBefore::source_of(const Ref<Buffer>& buffer) const {
  auto* view = find_value(views_, buffer.get());
  return view ? source_of((*view)->buffer) : buffer;
}

WrittenBefore::Part WrittenBefore::part(const Ref<Buffer>& buffer, const std::vector<Expr>& indices) const {
  Part part{buffer, {}};
  for (const Expr& index : indices) part.region.push_back(range(index, one(index.dtype())));
  while (auto* view = find_value(views_, part.buffer.get())) {
    const auto& ranges = (*view)->region;
    if (ranges.size() < part.region.size()) return part;
    const size_t leading = ranges.size() - part.region.size();
    arith::Region outer;
    for (size_t d : indices_of(ranges)) {
      const Ref<Range>& whole = ranges[d];
      if (d < leading ? !is_const_int(whole->extent, 1) : !same_expr(whole->extent, part.buffer->shape[d - leading])) {
        return part;
      }
      const bool is_point = d < leading;
      outer.push_back(is_point ? whole
                               : range(whole->min + part.region[d - leading]->min, part.region[d - leading]->extent));
    }
    part = {(*view)->buffer, std::move(outer)};
  }
  return part;
}

WrittenBefore::Part WrittenBefore::all_of(const Ref<Buffer>& buffer) { return {buffer, whole_region(buffer->shape)}; }

/// True if each index is its own loop over the whole dimension, or if all indices together map the loops onto the
/// buffer, as indices of tiles do. Axes are replaced by their bindings, since their loops may cover only a part of the
/// domain.
bool WrittenBefore::writes_whole_buffer(const Part& part) const {
  const Inside all(around_, 0);
  const arith::Region region = all.resolved(part.region);
  const arith::IterDomains inputs = all.loops_of(region);
  const Expr condition = all.condition_for(region);
  std::unordered_set<const NodeBase*> used;
  bool is_plain = is_true(condition);
  for (size_t d = 0; d < region.size() && is_plain; ++d) {
    const Expr& extent = part.buffer->shape[d];
    if (same_expr(region[d]->extent, extent)) continue;
    auto moves = [&](const auto& input) {
      return input.first == region[d]->min && is_const_int(input.second->min, 0) &&
             same_expr(input.second->extent, extent);
    };
    is_plain = any_of(inputs, moves) && used.insert(region[d]->min.get()).second;
  }
  if (is_plain) return true;
  for (const Surrounding& each : around_) {
    auto is_bound = [&](const auto& input) { return uses_var(std::vector{input.second}, each.var); };
    if (any_of(inputs, is_bound)) return false;
  }
  arith::Analyzer analyzer;
  assume_not_empty(*part.buffer, analyzer);
  auto reached = surely_reached(region, inputs, condition, analyzer);
  return reached && arith::proves_subset(arith::box_of(all_of(part.buffer).region), *reached, analyzer);
}

void WrittenBefore::write(const Part& part) {
  if (writes_.size() < kWrites) writes_.push_back({part, around_, writes_whole_buffer(part), changes_.size()});
}

void WrittenBefore::change(const Ref<Buffer>& buffer) {
  changes_.push_back(buffer.defined() ? NodeRef(source_of(buffer)->data) : NodeRef());
}

/// Whether an index of the write loads from memory that was changed since.
bool WrittenBefore::is_changed_since(const Write& write) const {
  bool changed = false;
  for (const Ref<Range>& r : write.part.region) {
    visit(r, [&](const Ref<BufferLoad>& load) {
      const NodeRef read = source_of(load->buffer)->data;
      for (size_t i = write.changes; i < changes_.size(); ++i) changed |= !changes_[i].defined() || changes_[i] == read;
    });
  }
  return changed;
}

bool WrittenBefore::has(const Part& part) const {
  return any_of(reversed(writes_),
                [&](const Write& write) { return write.part.buffer == part.buffer && has(write, part); });
}

bool WrittenBefore::has(const Write& write, const Part& part) const {
  // Loops around both accesses are in the same iteration.
  size_t shared = 0;
  while (shared < around_.size() && shared < write.around.size() && around_[shared].var == write.around[shared].var) {
    ++shared;
  }
  const Inside writer(write.around, shared), reader(around_, shared);
  if (!writer.is_sure() || is_changed_since(write)) return false;
  const arith::Region written = writer.resolved(write.part.region);
  const bool moves = std::any_of(around_.begin(), around_.begin() + static_cast<std::ptrdiff_t>(shared),
                                 [&](const Surrounding& each) { return uses_var(written, each.var); });
  if (!moves && write.writes_whole_buffer) return true;
  const arith::Region needed = reader.resolved(part.region);
  const arith::IterDomains writing = writer.loops_of(written);
  if (mirrors({written, writing, writer.condition()}, {needed, reader.loops_of(needed), reader.condition()}))
    return true;
  arith::Analyzer analyzer;
  assume_not_empty(*part.buffer, analyzer);
  for (size_t i = 0; i < shared; ++i) {
    if (around_[i].domain.defined()) analyzer.bind(around_[i].var, around_[i].domain);
  }
  auto reached = surely_reached(written, writing, writer.condition_for(written), analyzer);
  if (!reached) return false;
  const arith::Box read = arith::relax_region(needed, reader.domains(), analyzer, reader.condition());
  return arith::proves_subset(read, *reached, analyzer);
}

}  // namespace tilewright::analysis
