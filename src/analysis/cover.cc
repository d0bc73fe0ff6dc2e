#include "analysis/cover.h"

#include <algorithm>

#include "analysis/axis_condition.h"
#include "analysis/binding_reads.h"
#include "analysis/block_access_region.h"
#include "analysis/block_facts.h"
#include "analysis/brief.h"
#include "analysis/cover_mask.h"
#include "analysis/cover_mirror.h"
#include "analysis/findings.h"
#include "analysis/isolation.h"
#include "analysis/kept_bounds.h"
#include "analysis/loop_digits.h"
#include "analysis/scope.h"
#include "analysis/sizes.h"
#include "analysis/threads.h"
#include "analysis/two_names.h"
#include "arith/buffer_values.h"
#include "ir/build.h"
#include "ir/structural.h"
#include "ir/substitute.h"
#include "ir/traverse.h"
#include "support/ranges.h"
#include "target/memory_scope.h"

namespace tilewright::analysis {
namespace {

/// Whether only loops and statements without control flow are between the two; with `or_conditions`, also conditions.
bool only_loops_between(const Tree& tree, int from, int block, bool or_conditions) {
  for (int at = tree[block].parent; at != from; at = tree[at].parent) {
    const Kind kind = tree[at].node->kind;
    bool known =
        kind == Kind::kFor || kind == Kind::kSeqStmt || kind == Kind::kAllocateConst || kind == Kind::kDeclBuffer;
    if (!known && !(or_conditions && kind == Kind::kIfThenElse)) return false;
  }
  return true;
}

}  // namespace

bool is_unconditional(const Tree& tree, int from, int block) { return only_loops_between(tree, from, block, false); }

std::optional<std::vector<int>> loops_between(const Tree& tree, int from, int block) {
  if (!is_unconditional(tree, from, block)) return std::nullopt;
  std::vector<int> loops;
  loops.reserve(16);
  for (int at = tree[block].parent; at != from; at = tree[at].parent) {
    if (tree[at].is_loop) loops.push_back(at);
  }
  std::ranges::reverse(loops);
  return loops;
}

arith::IterDomains inputs_of(const Tree& tree, const std::vector<int>& loops) {
  arith::IterDomains inputs;
  for (int at : loops) {
    const For& loop = tree.for_at(at);
    inputs.emplace_back(loop.loop_var, range(loop.min, loop.extent));
  }
  return inputs;
}

std::optional<arith::Counters> counters_of(const Tree& tree, const std::vector<int>& loops) {
  arith::Counters counters;
  counters.reserve(loops.size());
  for (int at : loops) {
    const For& loop = tree.for_at(at);
    if (!arith::add_counter(counters, loop.loop_var, loop.min, loop.extent)) return std::nullopt;
  }
  return counters;
}

arith::Domains domains_of(const Tree& tree, const std::vector<int>& loops) {
  arith::Domains domains;
  for (int at : loops) {
    const For& loop = tree.for_at(at);
    domains.emplace(loop.loop_var, arith::IntSet::of_range(range(loop.min, loop.extent)));
  }
  return domains;
}

VarMap units_of(const arith::IterDomains& inputs) {
  VarMap units;
  for (const auto& [loop_var, range] : inputs) {
    if (is_const_int(range->extent, 1)) units.emplace(loop_var, substitute(range->min, units));
  }
  return units;
}

arith::Analyzer analyzer_above(const Tree& tree, int at, const std::vector<int>& except) {
  arith::Analyzer analyzer;
  assume_sizes(analyzer, tree);
  for (int around = at; around != Tree::kNone; around = tree[around].parent) {
    if (!tree[around].is_block) continue;
    for (const BufferDomain& domain : buffer_domains(tree.block_at(around))) arith::assume(analyzer, domain);
  }
  for (; at != Tree::kNone; at = tree[at].parent) {
    if (is_contained(except, at)) continue;
    if (tree[at].is_loop) {
      const For& loop = tree.for_at(at);
      analyzer.bind(loop.loop_var, loop.min, loop.extent);
    } else if (tree[at].is_block) {
      for (const Ref<IterVar>& axis : tree.block_at(at).iter_vars) analyzer.bind(axis->var, axis->dom);
    }
  }
  return analyzer;
}

arith::Region bound_region(const BlockRealize& realize, const Ref<BufferRegion>& region) {
  const auto& axes = realize.block->iter_vars;
  VarMap map;
  auto bound = [&](const Expr& e) -> Expr {
    if (e.is<IntImm>()) return e;
    if (e.is<Var>()) {  // most indices are variables
      for (size_t i = 0; i < axes.size(); ++i) {
        if (axes[i]->var == e) return realize.iter_values[i];
      }
      return e;
    }
    if (map.empty()) {
      for (size_t i : indices_of(axes)) map.emplace(axes[i]->var, realize.iter_values[i]);
    }
    return substitute(e, map);
  };
  arith::Region result;
  result.reserve(region->region.size());
  for (const Ref<Range>& r : region->region) result.push_back(range(bound(r->min), bound(r->extent)));
  return result;
}

bool is_one_to_one(const std::vector<Expr>& values, const arith::IterDomains& inputs, const Expr& predicate,
                   arith::Analyzer& analyzer, arith::IterMapResult* map) {
  // A predicate only removes iterations, so it is used only if the map is not bijective without it.
  *map = arith::detect_iter_map(values, inputs, {}, arith::IterMapLevel::kBijective, analyzer);
  if (!map->ok() && !is_true(predicate)) {
    *map = arith::detect_iter_map(values, inputs, predicate, arith::IterMapLevel::kBijective, analyzer);
  }
  return map->ok();
}

bool limits_reduction(const BlockRealize& realize) {
  return uses_any_var(condition_beyond_domains(realize), [&](const Ref<Var>& v) {
    for (size_t i : indices_of(realize.iter_values)) {
      if (is_reduction_axis(realize.block->iter_vars[i]) && uses_var(realize.iter_values[i], v)) return true;
    }
    return false;
  });
}

namespace {

/// The elements that `write` can reach at all, where each of its indices is an axis.
std::optional<arith::Box> reachable(const BlockRealize& realize, const Ref<BufferRegion>& write) {
  arith::Box box;
  for (const Ref<Range>& r : write->region) {
    const auto& axes = realize.block->iter_vars;
    auto axis = find_if(axes, [&](const Ref<IterVar>& a) { return a->var == r->min; });
    if (axis == axes.end() || !is_const_int(r->extent, 1)) return std::nullopt;
    box.push_back(arith::IntSet::of_range((*axis)->dom));
  }
  return box;
}

/// The region that a block writes, with the axes that `joins` selects as further dimensions: a box of them holds every
/// combination.
struct Instances {
  arith::Region region;
  size_t dims;                        ///< number of dimensions of the buffer
  std::vector<arith::IntSet> domain;  ///< domains of the other dimensions

  template <class Joins>
  Instances(const BlockRealize& realize, const Ref<BufferRegion>& write, Joins&& joins)
      : region(bound_region(realize, write)), dims(region.size()) {
    for (size_t i : indices_of(realize.iter_values)) {
      const Ref<IterVar>& axis = realize.block->iter_vars[i];
      if (!joins(axis)) continue;
      region.push_back(range(realize.iter_values[i], one(realize.iter_values[i].dtype())));
      domain.push_back(arith::IntSet::of_range(axis->dom));
    }
  }

  /// Whether the box contains the whole domains of these axes; if so, the box is cut to the dimensions of the buffer.
  template <class F>
  bool are_in(arith::Box& box, F&& is_inside) const {
    for (size_t i = dims; i < box.size(); ++i) {
      if (!is_inside(domain[i - dims], box[i])) return false;
    }
    box.resize(dims);
    return true;
  }
};

/// Returns the box written by the instances whose axes run over their whole domains if `joins` says so.
template <class Joins>
std::optional<arith::Box> box_of_instances(const BlockRealize& realize, const Ref<BufferRegion>& write,
                                           const Tree& tree, const std::vector<int>& loops, arith::Analyzer& analyzer,
                                           Joins&& joins) {
  Instances instances(realize, write, joins);
  std::optional<arith::Box> box;
  if (is_true(realize.predicate)) {
    if (auto counters = counters_of(tree, loops)) box = arith::plain_box(instances.region, *counters);
  }
  if (!box) box = surely_reached(instances.region, inputs_of(tree, loops), realize.predicate, analyzer);
  auto inside = [&](const arith::IntSet& a, const arith::IntSet& b) { return arith::proves_subset(a, b, analyzer); };
  return box && instances.are_in(*box, inside) ? std::move(box) : std::nullopt;
}

/// The box where the block's condition only keeps its axes inside of their domains, and is not part of `realize` any
/// more: an instance exists if all its axes are inside, those too that select nothing of what is written.
std::optional<arith::Box> produced_inside(const BlockRealize& realize, const Ref<BufferRegion>& write, const Tree& tree,
                                          const std::vector<int>& loops, arith::Analyzer& analyzer) {
  return box_of_instances(realize, write, tree, loops, analyzer, [&](const Ref<IterVar>& axis) {
    return none_of(write->region, [&](const Ref<Range>& r) { return r->min == axis->var; });
  });
}

/// The box by way of the axes, where indices are digits of them that tiles of the loops do not fit: of all values of
/// an axis v from 0 to 50175, v // 56 and v % 56 reach a box, of its tiles of 32 each they do not.
std::optional<arith::Box> produced_over_axes(const BlockRealize& realize, const Ref<BufferRegion>& write,
                                             const Tree& tree, const std::vector<int>& loops,
                                             arith::Analyzer& analyzer) {
  auto is_axis = [](const Ref<Range>& r) { return r->min.is<Var>(); };
  if (all_of(write->region, is_axis)) return std::nullopt;
  arith::Region points;
  for (const Expr& value : realize.iter_values) points.push_back(range(value, one(value.dtype())));
  auto box = surely_reached(points, inputs_of(tree, loops), realize.predicate, analyzer);
  if (!box) return std::nullopt;
  arith::IterDomains axes;
  for (size_t i : indices_of(*box)) {
    const Ref<IterVar>& axis = realize.block->iter_vars[i];
    const arith::IntSet& reached = (*box)[i];
    bool whole = arith::proves_subset(arith::IntSet::of_range(axis->dom), reached, analyzer);
    if (!reached.is_bounded() || (is_reduction_axis(axis) && !whole)) return std::nullopt;
    // If a condition leaves no value of the axis, nothing is reached. A region without the axis does not show that.
    const bool shows = any_of(write->region, [&](const Ref<Range>& r) { return uses_var(r->min, axis->var); });
    if (!shows && !is_true(realize.predicate) && !analyzer.can_prove(le(reached.min, reached.max))) return std::nullopt;
    axes.emplace_back(axis->var, range(reached.min, analyzer.simplify(reached.max - reached.min + 1)));
  }
  return surely_reached(write->region, axes, bool_imm(true), analyzer);
}

/// Whether the block `at`, for which `realize` stands, completes all of `need` while `loops` run.
bool completes(const BlockRealize& realize, int at, const Ref<BufferRegion>& write, const Tree& tree,
               const std::vector<int>& loops, const arith::Box& need, arith::Analyzer& analyzer) {
  auto has = produced(realize, write, tree, loops, analyzer);
  if (has && arith::proves_subset(need, *has, analyzer)) return true;
  // Tiles that stick out of the domain complete all of themselves that is inside, and sums have no other steps than
  // those that their condition leaves.
  BlockRealize unconditional = realize;
  unconditional.predicate = without_reduction_terms(realize.predicate, tree, at);
  unconditional.predicate = condition_beyond_domains(unconditional);
  auto inside = reachable(realize, write);
  if (unconditional.predicate == realize.predicate || !inside || !arith::proves_subset(need, *inside, analyzer)) {
    return false;
  }
  has = produced_inside(unconditional, write, tree, loops, analyzer);
  return has && arith::proves_subset(need, *has, analyzer);
}

}  // namespace

std::optional<arith::Box> produced(const BlockRealize& realize, const Ref<BufferRegion>& write, const Tree& tree,
                                   const std::vector<int>& loops, arith::Analyzer& analyzer) {
  auto box = box_of_instances(realize, write, tree, loops, analyzer,
                              [](const Ref<IterVar>& axis) { return is_reduction_axis(axis); });
  return box ? box : produced_over_axes(realize, write, tree, loops, analyzer);
}

std::optional<arith::Box> produced_by_sums(const Tree& tree, int block, const Ref<BufferRegion>& write,
                                           const std::vector<int>& loops, arith::Analyzer& analyzer) {
  BlockRealize realize = *tree.realize_at(block);
  const Expr rest = without_reduction_terms(realize.predicate, tree, block);
  auto inside = reachable(realize, write);
  if (rest == realize.predicate || !inside) return std::nullopt;
  realize.predicate = rest;
  auto box = produced(realize, write, tree, loops, analyzer);
  return box ? std::optional(arith::intersect(*box, *inside, analyzer)) : std::nullopt;
}

std::optional<MaskedBox> produced_under_mask(const Tree& tree, int block, const Ref<BufferRegion>& write,
                                             const std::vector<int>& loops, arith::Analyzer& analyzer) {
  BlockRealize realize = *tree.realize_at(block);
  realize.predicate = without_reduction_terms(realize.predicate, tree, block);
  const Expr mask = condition_on_axes(condition_beyond_domains(realize), tree, block);
  auto inside = reachable(realize, write);
  if (!mask.defined() || !inside) return std::nullopt;
  for (const Ref<IterVar>& axis : realize.block->iter_vars) {
    const bool selects = any_of(write->region, [&](const Ref<Range>& r) { return r->min == axis->var; });
    if (!selects && uses_var(mask, axis->var)) return std::nullopt;
  }
  realize.predicate = bool_imm(true);
  auto box = produced_inside(realize, write, tree, loops, analyzer);
  return box ? std::optional(MaskedBox{arith::intersect(*box, *inside, analyzer), mask}) : std::nullopt;
}

arith::Box relaxed(const arith::Region& region, const Tree& tree, const std::vector<int>& loops,
                   arith::Analyzer& analyzer, const Expr& predicate) {
  auto counters = !predicate.defined() || is_true(predicate) ? counters_of(tree, loops) : std::nullopt;
  if (counters) {
    if (auto plain = arith::plain_hull(region, *counters)) return std::move(*plain);
  }
  arith::Domains domains = domains_of(tree, loops);
  const VarMap units = counters ? VarMap() : units_of(inputs_of(tree, loops));
  if (units.empty()) return arith::relax_region(region, domains, analyzer, predicate);
  // A condition may speak of i + j, where the region speaks of i + unit + j.
  arith::Region moving;
  for (const Ref<Range>& r : region) moving.push_back(range(substitute(r->min, units), substitute(r->extent, units)));
  return arith::relax_region(moving, domains, analyzer, predicate.defined() ? substitute(predicate, units) : predicate);
}

arith::Box touched(const BlockRealize& realize, const Ref<BufferRegion>& region, const Tree& tree,
                   const std::vector<int>& loops, arith::Analyzer& analyzer) {
  return relaxed(bound_region(realize, region), tree, loops, analyzer, realize.predicate);
}

arith::Box required(const BlockRealize& realize, const Ref<BufferRegion>& read, const arith::Region& exists,
                    const Tree& tree, const std::vector<int>& loops, arith::Analyzer& analyzer) {
  arith::Box box = touched(realize, read, tree, loops, analyzer);
  arith::Box whole = arith::box_of(exists);
  for (size_t d = whole.size(); d < box.size(); ++d) {
    whole.push_back(arith::IntSet::of_range(range_of(read->buffer->shape[d])));
  }
  return arith::intersect(box, whole, analyzer);
}

namespace {

/// A block with the loops between it and what it has in common with another one.
struct Side {
  Side(const BlockRealize& realize, std::vector<int> around) : given(&realize), loops(std::move(around)) {}

  const BlockRealize& realize() const { return changed ? *changed : *given; }
  void replace(const VarMap& map) {
    if (!changed) changed = *given;
    for (Expr& value : changed->iter_values) value = substitute(value, map);
    changed->predicate = substitute(changed->predicate, map);
  }

  const BlockRealize* given;
  std::optional<BlockRealize> changed;  ///< block that it counts as, if another one
  std::vector<int> loops;
  std::vector<int> threads;  ///< loops that count as constant, over the same threads on both sides
};

/// A loop that is bound again to an axis runs one iteration for each thread. It counts as a whole where the threads
/// share what they write, which takes loops around that are among `joined`.
Side side_of(const Tree& tree, int block, std::vector<int> loops, const std::vector<int>& joined) {
  Side side(*tree.realize_at(block), std::move(loops));
  std::erase_if(side.loops, [&](int at) {
    int around = same_threads(tree, at);
    if (around == Tree::kNone || is_contained(joined, around)) return false;
    const Ref<Var>& own = tree.for_at(at).loop_var;
    side.replace({{own, cast(own.dtype(), tree.for_at(around).loop_var)}});
    return true;
  });
  return side;
}

/// If each thread has its own copy of the buffer, loops of both sides with the same thread axis run on the same
/// threads, and each thread finds what it has written itself.
void unite_threads(const Tree& tree, const Ref<Buffer>& buffer, Side& writer, Side& reader) {
  std::erase_if(writer.loops, [&](int at) {
    const For& one = tree.for_at(at);
    auto axis = thread_axis(one);
    if (!axis || !axis->is_unique() || memory_scope(buffer->scope()).is_shared_by(*axis)) return false;
    auto other = find_if(reader.loops, [&](int loop) { return thread_axis(tree.for_at(loop)) == axis; });
    if (other == reader.loops.end()) return false;
    // Both loop variables are constant: the writer's stands for the thread.
    const Ref<Var>& own = tree.for_at(*other).loop_var;
    if (structural_equal(one.min, tree.for_at(*other).min) &&
        structural_equal(one.extent, tree.for_at(*other).extent)) {
      writer.threads.push_back(at);
    }
    reader.replace({{own, cast(own.dtype(), one.loop_var)}});
    reader.loops.erase(other);
    return true;
  });
}

bool depends_on(const Side& side, const For& loop) {
  auto depends = [&](const Expr& e) { return uses_var(e, loop.loop_var); };
  const auto& values = side.realize().iter_values;
  return any_of(values, depends) || depends(side.realize().predicate);
}

/// Returns the outer loops that the block depends on, followed by the loops of the side.
std::vector<int> with_outer(const Tree& tree, const std::vector<int>& outer, const Side& side) {
  std::vector<int> loops;
  for (int at : outer) {
    if (depends_on(side, tree.for_at(at))) loops.push_back(at);
  }
  append_range(loops, side.loops);
  return loops;
}

/// Adds these loops to `counters`; false if arith/digits.h does not handle one of them.
bool count_loops(const Tree& tree, const std::vector<int>& outer, const Side& side, arith::Counters& counters) {
  auto add = [&](const For& loop) { return arith::add_counter(counters, loop.loop_var, loop.min, loop.extent); };
  for (int at : outer) {
    if (depends_on(side, tree.for_at(at)) && !add(tree.for_at(at))) return false;
  }
  return all_of(side.loops, [&](int at) { return add(tree.for_at(at)); });
}

/// Two blocks below the statement `lca`, one of which writes what the other reads, or stores over.
struct Flow {
  const Tree& tree;
  int lca, first, second;
  const Ref<Buffer>& buffer;
  const std::vector<Ref<BufferRegion>>& regions;  ///< regions of the second block
  const char* verb;                               ///< how the second block uses them
  bool in_body;                                   ///< whether the regions are those of the body, not of bindings
  const arith::Region& exists;
  Side writer, reader;
};

/// Whether plain digits of loops, without conditions, cover what is read: the usual case, seen without an analyzer.
bool plainly_covered(const Flow& flow, const std::vector<int>& joined) {
  const BlockRealize &writer = flow.writer.realize(), &reader = flow.reader.realize();
  if (!is_true(writer.predicate) || !is_true(reader.predicate)) return false;
  arith::Counters writing, reading;
  if (!count_loops(flow.tree, joined, flow.writer, writing)) return false;
  if (!count_loops(flow.tree, joined, flow.reader, reading)) return false;
  arith::Counters around;  // loops of one iteration are no loops
  for (int at = flow.lca; at != Tree::kNone; at = flow.tree[at].parent) {
    if (!flow.tree[at].is_loop) continue;
    const For& loop = flow.tree.for_at(at);
    if (!arith::add_counter(around, loop.loop_var, loop.min, loop.extent) || around.back().extent > 1) continue;
    writing.push_back(around.back());
    reading.push_back(around.back());
  }
  arith::Bindings written{writer.block->iter_vars, writer.iter_values},
      read_by{reader.block->iter_vars, reader.iter_values};
  // A box of these as well holds every combination.
  std::vector<Expr> reductions;
  std::vector<arith::Reach> domain;
  for (size_t i : indices_of(writer.iter_values)) {
    const Ref<IterVar>& axis = writer.block->iter_vars[i];
    if (!is_reduction_axis(axis)) continue;
    const IntImm *min = axis->dom->min.as<IntImm>(), *extent = axis->dom->extent.as<IntImm>();
    if (!min || !extent) return false;
    reductions.push_back(writer.iter_values[i]);
    domain.push_back({{}, min->value, min->value + extent->value - 1});
  }
  for (const Ref<BufferRegion>& read : flow.regions) {
    if (!flow.tree.same_memory(read->buffer, flow.buffer)) continue;
    auto need = arith::plain_reach(read->region, read_by, reading);
    if (!need) return false;
    append_range(*need, domain);
    bool covered = any_of(writer.block->writes, [&](const Ref<BufferRegion>& write) {
      auto has = write->buffer == read->buffer ? arith::plain_cover(write->region, reductions, written, writing)
                                               : std::nullopt;
      return has && arith::is_inside(*need, *has, around);
    });
    if (!covered) return false;
  }
  return true;
}

/// Whether a write of the writer is what the reader reads, iteration by iteration.
bool is_mirrored(const Flow& flow, const Ref<BufferRegion>& read) {
  const BlockRealize &writer = flow.writer.realize(), &reader = flow.reader.realize();
  const auto writing = inputs_of(flow.tree, flow.writer.loops), reading = inputs_of(flow.tree, flow.reader.loops);
  const auto& writes = writer.block->writes;
  return any_of(writes, [&](const Ref<BufferRegion>& write) {
    return write->buffer == read->buffer && mirrors(writer, write, writing, reader, read, reading);
  });
}

/// Whether the writer completes all that the reader reads where a condition on its axes chooses what it writes.
bool completes_under_mask(const Flow& flow, const Ref<BufferRegion>& write, const std::vector<int>& loops,
                          const arith::Box& need, arith::Analyzer& analyzer) {
  if (!flow.in_body || flow.writer.changed || flow.reader.changed) return false;
  auto has = produced_under_mask(flow.tree, flow.first, write, loops, analyzer);
  return has && arith::proves_subset(need, has->box, analyzer) &&
         reads_only_under_mask(flow.tree, flow.second, write, has->mask);
}

/// Returns why a read may not be covered, if all iterations of the loops `joined` write before any of them reads.
std::optional<Obstacle> why_not_covered(const Flow& flow, const std::vector<int>& joined) {
  const Tree& tree = flow.tree;
  const BlockRealize &writer = flow.writer.realize(), &reader = flow.reader.realize();
  std::vector<int> writer_loops = with_outer(tree, joined, flow.writer);
  std::vector<int> reader_loops = with_outer(tree, joined, flow.reader);
  auto analyzer = analyzer_above(tree, flow.lca, joined);
  for (int at : flow.writer.threads) {
    analyzer.bind(tree.for_at(at).loop_var, tree.for_at(at).min, tree.for_at(at).extent);
  }
  assume_runs_around(analyzer, tree, flow.lca);
  // Assume that the reader runs: otherwise nothing is read.
  assume_runs(analyzer, tree, reader_loops);
  assume_all(outer_condition(reader.predicate, inputs_of(tree, reader_loops)), analyzer);
  for (const Ref<BufferRegion>& read : flow.regions) {
    if (!tree.same_memory(read->buffer, flow.buffer)) continue;
    if (joined.empty() && is_mirrored(flow, read)) continue;
    arith::Box need = required(reader, read, flow.exists, tree, reader_loops, analyzer);
    bool covered = false;
    std::string known;
    for (const Ref<BufferRegion>& write : writer.block->writes) {
      if (write->buffer != read->buffer) continue;
      covered |= completes(writer, flow.first, write, tree, writer_loops, need, analyzer) ||
                 completes_under_mask(flow, write, writer_loops, need, analyzer);
      auto has = covered ? std::nullopt : produced(writer, write, tree, writer_loops, analyzer);
      if (has) known = ", of which " + brief(flow.buffer, *has) + " is complete by then";
    }
    if (!covered) {
      if (known.empty()) known = ", and nothing can be proved to be complete by then";
      std::string pair =
          quoted(*reader.block) + " " + flow.verb + " '" + flow.buffer->name + "' of " + quoted(*writer.block);
      return Obstacle{pair + "; it needs " + brief(flow.buffer, need) + known,
                      {tree.stmt(flow.first), tree.stmt(flow.second)}};
    }
  }
  return std::nullopt;
}

std::optional<Obstacle> why_not_reached(const Tree& tree, int producer, int consumer, const Ref<Buffer>& buffer,
                                        const std::vector<Ref<BufferRegion>>& regions, const char* verb, bool in_body,
                                        const arith::Region& exists) {
  auto both = [&]() -> std::vector<NodeRef> { return {tree.stmt(producer), tree.stmt(consumer)}; };
  int positions[] = {producer, consumer};
  int lca = tree.common_ancestor(positions);
  auto writer_loops = loops_between(tree, lca, producer);
  if (!writer_loops) return Obstacle{quoted(tree.block_at(producer)) + " runs on a condition", both()};
  if (!only_loops_between(tree, lca, consumer, /*or_conditions=*/true)) {
    return Obstacle{quoted(tree.block_at(consumer)) + " stands below a statement that defines variables", both()};
  }
  for (int at : {producer, consumer}) {
    if (auto obstacle = why_not_isolated(tree, at)) return obstacle;
  }
  if (auto obstacle = why_bounds_change(tree, producer, consumer)) return obstacle;
  const BlockFacts& reader_facts = BlockFacts::of(tree.block_ref(consumer));
  // A block that is known but for what is behind pointers reads of other buffers what it declares.
  bool known = reader_facts.undeclared.empty() ||
               (!reader_facts.trusted.empty() && !reaches_by_pointer(tree.block_ref(consumer), buffer));
  if (const std::string& undeclared = reader_facts.undeclared; !known) {
    return Obstacle{"what " + quoted(tree.block_at(consumer)) + " " + verb + " is not known: " + undeclared, both()};
  }
  std::vector<int> reader_loops = tree.loops_above(consumer);
  std::erase_if(reader_loops, [&](int at) { return at <= lca; });
  std::vector<int> joined = joined_loops(tree, lca, buffer);
  Side writer = side_of(tree, producer, *std::move(writer_loops), joined);
  Side reader = side_of(tree, consumer, std::move(reader_loops), joined);
  unite_threads(tree, buffer, writer, reader);
  Flow flow{tree, lca,     producer, consumer,          buffer,           regions,
            verb, in_body, exists,   std::move(writer), std::move(reader)};
  bool together = any_of(joined, [&](int at) { return depends_on(flow.writer, tree.for_at(at)); });
  if (plainly_covered(flow, {}) || (together && plainly_covered(flow, joined))) return std::nullopt;
  auto obstacle = why_not_covered(flow, {});
  return obstacle && together && !why_not_covered(flow, joined) ? std::nullopt : obstacle;
}

}  // namespace

std::optional<Obstacle> why_not_covered(const Tree& tree, int producer, int consumer, const Ref<Buffer>& buffer,
                                        const arith::Region& exists) {
  const Findings& findings = Findings::of(tree);
  const Findings::Key key{Findings::Question::kCovered, producer, consumer, buffer.get()};
  if (exists.empty() && findings.known(key)) return std::nullopt;
  auto obstacle = why_not_reached(tree, producer, consumer, buffer, BlockFacts::of(tree.block_ref(consumer)).live_in,
                                  "reads", true, exists);
  if (auto bound = binding_reads(tree, consumer); !obstacle && !bound.empty()) {
    obstacle = why_not_reached(tree, producer, consumer, buffer, bound, "reads", false, exists);
  }
  if (!obstacle && exists.empty()) findings.note(key, true);
  return obstacle;
}

std::optional<Obstacle> why_not_overwritten(const Tree& tree, int earlier, int later, const Ref<Buffer>& buffer) {
  return why_not_reached(tree, earlier, later, buffer, tree.block_at(later).writes, "writes", false, {});
}

namespace {
/// The elements that say how often loops around the block run, up to its scope.
void add_reads_of_loops(const Tree& tree, int block, std::vector<Ref<BufferRegion>>& regions) {
  for (int at : tree.loops_above(block)) {
    const For& loop = tree.for_at(at);
    for (const Expr& bound : {loop.min, loop.extent}) add_single_reads(bound, regions);
  }
}

/// The obstacle for what is read where the block's axes are bound, for its condition, and for the loops around it.
std::optional<Obstacle> why_binding_incomplete(const Tree& tree, int block, const Scope& scope, int reader) {
  std::vector<Ref<BufferRegion>> regions = binding_reads(tree, block);
  add_reads_of_loops(tree, block, regions);
  for (const Ref<BufferRegion>& region : regions) {
    for (int child : scope.writers(region->buffer)) {
      int writer = scope.position(tree, child);
      if (child == reader) continue;
      if (writer > block) {
        return Obstacle{quoted(tree.block_at(writer)) + " writes '" + region->buffer->name +
                            "' after the axes, or loops, of " + quoted(tree.block_at(block)) + " are bound to it",
                        {tree.stmt(block), tree.stmt(writer)}};
      }
      if (auto obstacle = why_not_reached(tree, writer, block, region->buffer, {region}, "reads", false, {}))
        return obstacle;
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<Obstacle> why_inputs_incomplete(const Tree& tree, int block) {
  const Scope& scope = Scope::of(tree, tree[block].scope);
  int reader = scope.child(tree.block_at(block).id.value);
  if (auto obstacle = why_binding_incomplete(tree, block, scope, reader)) return obstacle;
  for (const Ref<BufferRegion>& read : tree.block_at(block).reads) {
    const Ref<Buffer>& buffer = read->buffer;
    std::vector<int> writers = scope.writers(buffer);
    bool own = is_contained(writers, reader);
    std::erase(writers, reader);
    std::vector<int> at;
    for (int writer : writers) at.push_back(scope.position(tree, writer));
    for (int writer : at) {
      if (writer > block) {
        return Obstacle{quoted(tree.block_at(writer)) + " writes '" + buffer->name + "' after " +
                            quoted(tree.block_at(block)) + " has read it",
                        {tree.stmt(block), tree.stmt(writer)}};
      }
      const BlockFacts& facts = BlockFacts::of(tree.block_ref(writer));
      bool first = writer == at.front();
      bool fits = first ? facts.role == BlockRole::kComplete || facts.role == BlockRole::kReduction
                        : facts.role == BlockRole::kUpdate && !own && at.size() == 2;
      if (!fits) {
        return Obstacle{quoted(tree.block_at(writer)) + ", which writes '" + buffer->name +
                            "', is not a plain producer: " +
                            (facts.role == BlockRole::kOther ? facts.why : "other blocks write it too"),
                        {tree.stmt(writer), tree.stmt(block)}};
      }
      if (auto obstacle = why_not_covered(tree, writer, block, buffer)) return obstacle;
    }
    if (at.size() == 2) {
      if (auto obstacle = why_not_covered(tree, at[0], at[1], buffer)) return obstacle;
      int lca = tree.common_ancestor(at);
      if (auto obstacle = why_irregular_reduction(tree, lca, at[1], true)) return obstacle;
    }
  }
  return std::nullopt;
}

namespace {

/// The value gets larger from one iteration to the next: its digits are those of the loops, outermost first.
bool grows_with_iterations(const Tree& tree, const std::vector<int>& loops, const Expr& value) {
  auto counters = counters_of(tree, loops);
  auto sums = counters ? arith::independent_digits({value}, *counters) : std::nullopt;
  if (!sums) {
    arith::Analyzer analyzer;
    return any_of(loops, [&](int at) {
      const Ref<Var>& v = tree.for_at(at).loop_var;
      Expr rest = analyzer.simplify(value - cast(value.dtype(), v));
      return none_of(loops, [&](int other) { return uses_var(rest, tree.for_at(other).loop_var); });
    });
  }
  std::vector<arith::Digit> digits(sums->front().digits.begin(), sums->front().digits.end());
  auto depth = [&](const arith::Digit& digit) {
    return find_if(*counters, [&](const arith::Counter& c) { return c.var == digit.var; });
  };
  std::ranges::sort(digits, [](const auto& a, const auto& b) { return a.scale > b.scale; });
  for (size_t i = 1; i < digits.size(); ++i) {
    const arith::Digit &high = digits[i - 1], &low = digits[i];
    if (depth(high) > depth(low) || (high.var == low.var && high.lower < low.lower)) return false;
  }
  return true;
}

/// Returns why a condition that skips the first iterations may let another step run before that of the init.
std::optional<Obstacle> why_begun_late(const Tree& tree, int block, const std::vector<int>& loops,
                                       arith::Analyzer& analyzer) {
  const BlockRealize& realize = *tree.realize_at(block);
  if (is_true(realize.predicate)) return std::nullopt;
  VarMap begin;
  for (int at : loops) begin[tree.for_at(at).loop_var] = tree.for_at(at).min;
  for (size_t i : indices_of(realize.iter_values)) {
    const IterVar& axis = *realize.block->iter_vars[i];
    if (!is_reduction_axis(realize.block->iter_vars[i])) continue;
    const Expr& value = realize.iter_values[i];
    if (analyzer.can_prove_equal(substitute(value, begin), axis.dom->min)) continue;
    if (grows_with_iterations(tree, loops, value)) continue;
    return Obstacle{"the reduction axis '" + axis.var->name_hint + "' of " + quoted(*realize.block) +
                        " begins where the condition lets it, which need not be its first iteration",
                    {tree.stmt(block)}};
  }
  return std::nullopt;
}

/// Returns why a step of the reduction might run before the one that runs the init. `loops`: those that drive the axes.
std::optional<Obstacle> why_not_begun_first(const Tree& tree, int from, int block, const std::vector<int>& loops) {
  const BlockRealize& realize = *tree.realize_at(block);
  auto analyzer = analyzer_above(tree, from);
  if (auto obstacle = why_begun_late(tree, block, loops, analyzer)) return obstacle;
  auto counters = counters_of(tree, loops);
  if (counters && arith::plainly_one_to_one(realize.iter_values, *counters)) return std::nullopt;
  arith::IterDomains inputs = inputs_of(tree, loops);
  arith::IterMapResult map;
  std::vector<Expr> values = realize.iter_values;  // elements, and steps without an init, may come in any order
  for (size_t i : indices_of(values)) {
    const Ref<IterVar>& axis = realize.block->iter_vars[i];
    if (is_reduction_axis(axis) && realize.block->init.defined()) continue;
    values[i] = ascending(values[i], axis->dom->min, axis->dom->extent, inputs, realize.predicate, analyzer);
  }
  if (!is_one_to_one(values, inputs, realize.predicate, analyzer, &map)) {
    return Obstacle{"the axes of " + quoted(*realize.block) +
                        " are not an affine, one-to-one function of the loops: " + map.errors.front(),
                    {tree.stmt(block)}};
  }
  // The init runs where all reduction axes are at their starts. The axes are made of different digits of the loops;
  // with the digits of the other axes held, all of theirs at zero is the first step in any order of the loops, if the
  // axes grow with them.
  for (size_t i : indices_of(map.indices)) {
    if (!is_reduction_axis(realize.block->iter_vars[i])) continue;
    for (const arith::IterSplitExpr& split : map.indices[i].args) {
      if (analyzer.can_prove_greater_equal(split.scale, 0)) continue;
      return Obstacle{"the reduction axis '" + realize.block->iter_vars[i]->var->name_hint + "' of " +
                          quoted(*realize.block) + " runs against its loops",
                      {tree.stmt(block)}};
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<Obstacle> why_init_not_first(const Tree& tree, int from, int block) {
  const BlockRealize& realize = *tree.realize_at(block);
  if (!realize.block->init.defined()) return std::nullopt;
  auto between = loops_between(tree, from, block);
  if (!between) return Obstacle{quoted(*realize.block) + " runs on a condition", {tree.stmt(block)}};
  std::erase_if(*between, [&](int at) {
    return none_of(realize.iter_values, [&](const Expr& value) { return uses_var(value, tree.for_at(at).loop_var); });
  });
  return why_not_begun_first(tree, from, block, *between);
}

std::optional<Obstacle> why_irregular_reduction(const Tree& tree, int from, int block, bool once) {
  const BlockRealize& realize = *tree.realize_at(block);
  auto between = loops_between(tree, from, block);
  if (!between) return Obstacle{quoted(*realize.block) + " runs on a condition", {tree.stmt(block)}};
  if (auto obstacle = why_not_isolated(tree, block, from)) return obstacle;
  if (auto obstacle = why_two_names(tree, block)) return obstacle;
  if (BlockFacts::of(realize.block).role == BlockRole::kComplete) return std::nullopt;
  std::vector<const NodeBase*> drives_spatial, drives_reduction;
  for (size_t i : indices_of(realize.iter_values)) {
    auto& drives = is_reduction_axis(realize.block->iter_vars[i]) ? drives_reduction : drives_spatial;
    uses_any_var(realize.iter_values[i], [&](const Ref<Var>& v) {
      drives.push_back(v.get());
      return false;
    });
  }
  std::vector<int> used;
  int outermost_reduction = Tree::kNone;
  for (int at : *between) {
    const For& loop = tree.for_at(at);
    auto is_among = [&](const std::vector<const NodeBase*>& vars) { return is_contained(vars, loop.loop_var.get()); };
    bool spatial = is_among(drives_spatial), reduction = is_among(drives_reduction);
    auto name = [&] { return "loop '" + loop.loop_var->name_hint + "'"; };
    if (spatial && reduction) {
      return Obstacle{name() + " drives both spatial and reduction axes of " + quoted(*realize.block),
                      {tree.stmt(at), tree.stmt(block)}};
    }
    if (spatial || reduction) used.push_back(at);
    if (reduction && outermost_reduction == Tree::kNone) outermost_reduction = at;
    bool idle = !spatial && !reduction && !is_const_int(loop.extent, 1);
    if (idle && (once || outermost_reduction != Tree::kNone)) {
      return Obstacle{name() + " repeats steps of the reduction in " + quoted(*realize.block),
                      {tree.stmt(at), tree.stmt(block)}};
    }
  }
  return why_not_begun_first(tree, from, block, used);
}

}  // namespace tilewright::analysis
