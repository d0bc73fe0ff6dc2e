// Let a producer keep what the next tile of its consumer reads again, in a buffer that goes round.
//
//   Before                                  After  sch.rolling_buffer(B, 0)
//   B = T.alloc_buffer((18,))               B = T.alloc_buffer((6,))
//   for t in range(4):                      for t in range(4):
//     for i in range(6):                      for i in range(6):
//       with T.block("B"):                      with T.block("B"):
//         v = T.axis.spatial(18, t * 4 + i)       v = T.axis.opaque(18, t * 4 + i)
//         B[v] = A[v] * 2.0                       T.where(t < 1 or 2 <= i)
//     for j in range(4):                          B[v % 6] = A[v] * 2.0
//       with T.block("C"):                    for j in range(4):
//         w = T.axis.spatial(16, t * 4 + j)     with T.block("C"):
//         C[w] = B[w] + B[w + 2]                  w = T.axis.opaque(16, t * 4 + j)
//                                                 C[w] = B[w % 6] + B[(w + 2) % 6]
//
// Tile t reads the window [f(t), f(t) + n) of a dimension, and f grows by at most s from one tile to the next. Theorem:
// if each tile but the first computes the last s elements of its window only, the window holds its values whenever it
// is read. The others were in the window of the tile before; what is computed since is within n elements of them, so
// it has other remainders modulo n. Of several dimensions with loops of their own, the elements that are new in the
// outermost one are computed for all windows of the inner ones, again but for their first elements. Where windows are
// cut off at the ends of the buffer, n is the longest one, and the elements of [f(t), g(t)) from g(t - 1) on are new:
// it suffices that f and g do not decrease, which is evaluated tile by tile. What has been computed twice is one value,
// since each block is a function of its axes.
//
// Where producers of the block roll already, that is seen by undoing it: the program in which each of their buffers has
// all its elements, and in which rolling them gives the program at hand, is the one that is looked at.
//
// Requires  P1 the write exists, and the block is not the root
//           P2 the block, the only writer of the buffer, is complete or a reduction, with inputs that are complete, and
//              so are those that it reads from, or were before they rolled
//           P3 the scope allocates the buffer, other blocks read it, by plain loads, and the block has written what
//              they read
//           P4 a loop holds all of them
//           P5 the loops around are serial, from 0, and each tile comes to the block, in the same iterations of the
//              loops below it as the others
//           P6 along some of them windows overlap: a dimension is a multiple of its variable, or a quotient of that,
//              a constant and what the loops below add, or its window in each tile is a pair of constants; the axes
//              are the indices, and take all values in a window
//           P7 conditions of the block bound its axes by what no loop changes: constants and sizes
#include <algorithm>

#include "analysis/binding_reads.h"
#include "analysis/block_access_region.h"
#include "analysis/block_facts.h"
#include "ir/build.h"
#include "ir/conjunction.h"
#include "ir/op.h"
#include "ir/structural.h"
#include "ir/substitute.h"
#include "ir/traverse.h"
#include "schedule/buffers.h"
#include "schedule/cache.h"
#include "schedule/primitives/rolling_buffer.h"
#include "support/ranges.h"

namespace tilewright::schedule {
namespace {

/// Tiles whose windows are evaluated one by one.
constexpr int64_t kTiles = 1 << 12;

/// A dimension in which windows of neighboring tiles overlap.
struct Overlap {
  Ref<Var> tile;  ///< null: they do not
  int64_t extent = 0;
  Expr kept, inner;  ///< first new element of the window, and the index compared with it
};

struct Roll {
  Place block;
  int scope;
  int64_t position;
  Ref<Buffer> buffer;
  std::vector<int> readers;
  std::vector<int> loops;  ///< around all of them, outermost first
  std::vector<Overlap> overlaps;
  size_t axis = 0;  ///< the dimension that goes round
};

/// Checks that plain producers compute everything that the block's values depend on.
std::optional<analysis::Obstacle> why_values_vary(const Tree& tree, const analysis::Scope& scope, int block) {
  std::vector<int> pending{block}, seen;
  while (!pending.empty()) {
    int at = pending.back();
    pending.pop_back();
    if (is_contained(seen, at)) continue;
    seen.push_back(at);
    const auto& facts = analysis::BlockFacts::of(tree.block_ref(at));
    if (facts.role != analysis::BlockRole::kComplete && facts.role != analysis::BlockRole::kReduction) {
      return analysis::Obstacle{describe_block(tree.block_at(at)) + " is neither a complete nor a reduction block" +
                                    (facts.why.empty() ? "" : ": " + facts.why),
                                {tree.stmt(at)}};
    }
    if (auto obstacle = analysis::why_inputs_incomplete(tree, at)) return obstacle;
    for (int child : scope.producers(scope.child(tree.block_at(at).id.value))) {
      pending.push_back(scope.position(tree, child));
    }
  }
  return std::nullopt;
}

/// Something else than loads and stores knows the buffer.
bool has_other_use(const Ref<Block>& scope, const Ref<Buffer>& buffer) {
  bool is_used = uses_pointer(scope, buffer);
  visit(
      scope, [&](const Ref<MatchBufferRegion>& match) { is_used |= match->source->buffer == buffer; },
      [&](const Ref<Prefetch>& prefetch) { is_used |= prefetch->region->buffer == buffer; },
      [&](const Ref<BufferLoad>& load) { is_used |= load->buffer == buffer && load.dtype() != buffer->dtype; },
      [&](const Ref<BufferStore>& store) {
        is_used |= store->buffer == buffer && store->value.dtype() != buffer->dtype;
      });
  return is_used;
}

Result<Roll> find_blocks(const Place& block, const BufferIndex& write) {
  const Tree& tree = *block.tree;
  Roll roll{block, tree[block.at].scope, 0, {}, {}, {}, {}};
  if (roll.scope == Tree::kNone)
    return refuse("rolling_buffer/P1", "the root block is not a producer", block, "name a block inside of it");
  const auto& writes = block.block().writes;
  TW_TRY(position, buffer_position(write, writes, block, "write", "rolling_buffer/P1"));
  roll.position = position;
  roll.buffer = writes[position]->buffer;
  const Block& outer = tree.block_at(roll.scope);
  const analysis::Scope& scope = analysis::Scope::of(tree, roll.scope);
  if (scope.writers(roll.buffer).size() > 1) {
    return refuse("rolling_buffer/P2", "several blocks write '" + roll.buffer->name + "'", block,
                  "take this step before the reduction is decomposed");
  }
  if (auto obstacle = why_values_vary(tree, scope, block.at))
    return refuse("rolling_buffer/P2", *obstacle, "roll what compute_at() has put under the loop of its consumer");
  if (scope.bare_statement()) {
    return refuse("rolling_buffer/P3", "a statement in the scope of " + describe(block) + " is not in a block",
                  {NodeRef(scope.bare_statement())}, "put it into a block");
  }
  bool own = is_contained(outer.alloc_buffers, roll.buffer);
  for (int child : scope.readers(roll.buffer)) {
    int reader = scope.position(tree, child);
    if (reader != block.at) roll.readers.push_back(reader);
    if (analysis::binding_reads(*tree.realize_at(reader), roll.buffer)) {
      return refuse("rolling_buffer/P3",
                    describe_block(tree.block_at(reader)) + " binds its axes to what '" + roll.buffer->name + "' holds",
                    {tree.stmt(reader), block.node()}, "roll buffers that are read by plain loads");
    }
  }
  if (!own || roll.readers.empty() || !roll.buffer->strides.empty() ||
      has_other_use(tree.block_ref(roll.scope), roll.buffer)) {
    return refuse("rolling_buffer/P3",
                  "'" + roll.buffer->name + "' is not a buffer of the scope that other blocks read by plain loads",
                  block, "roll the result of a stage that compute_at() has put under a loop of its consumer");
  }
  for (int reader : roll.readers) {
    if (auto obstacle = analysis::why_not_covered(tree, block.at, reader, roll.buffer)) {
      return refuse("rolling_buffer/P3", *obstacle, "roll right after compute_at(), before other loops are changed");
    }
  }
  std::vector<int> all = roll.readers;
  all.push_back(block.at);
  int common = tree.common_ancestor(all);
  while (tree[common].node->kind == Kind::kSeqStmt) common = tree[common].parent;
  if (!tree[common].is_loop) {
    return refuse("rolling_buffer/P4",
                  "no loop holds both " + describe(block) + " and what reads '" + roll.buffer->name + "'", block,
                  "tile the consumer, and sch.compute_at(producer, loop)");
  }
  roll.loops = tree.loops_above(common);
  roll.loops.push_back(common);
  for (int at = common; at != Tree::kNone; at = tree[at].parent) {
    if (!tree[at].is_loop) continue;
    const For& loop = tree.for_at(at);
    bool inside = is_contained(roll.loops, at);
    bool serial = loop.kind == ForKind::kSerial || loop.kind == ForKind::kUnrolled;
    if (serial && (!inside || is_const_int(loop.min, 0))) continue;
    return refuse("rolling_buffer/P5", describe_loop(loop) + " is not serial, from 0", {tree.stmt(at), block.node()},
                  "a tile takes over from the one before");
  }
  return roll;
}

/// The start of a window as floordiv(tile * factor + a, divisor) + b.
struct Start {
  Ref<Var> tile;
  int64_t factor = 1, divisor = 1;
  int64_t step() const { return (factor + divisor - 1) / divisor; }
};
Expr without_constant(const Expr& e) {
  if (const Add* sum = e.as<Add>(); sum && const_int(sum->b)) return Expr(sum->a);
  if (const Sub* difference = e.as<Sub>(); difference && const_int(difference->b)) return Expr(difference->a);
  return e;
}
std::optional<Start> start_of_window(const Expr& min) {
  Start start;
  Expr e = without_constant(min);
  if (const FloorDiv* quotient = e.as<FloorDiv>()) {
    start.divisor = const_int(quotient->b).value_or(0);
    e = without_constant(Expr(quotient->a));
  }
  if (const Mul* product = e.as<Mul>(); product && product->a.is<Var>()) {
    start.factor = const_int(product->b).value_or(0);
    e = Expr(product->a);
  }
  if (!e.is<Var>() || start.factor < 1 || start.divisor < 1) return std::nullopt;
  start.tile = e.borrow<Var>();
  return start;
}

/// Windows from min to max of varying length: what is new where neighbors overlap, with no tile where they do not. Null
/// where they are not those of one loop with constant ends, which do not decrease, or where the block that computes
/// `index` in a loop below skips some of a window.
std::optional<Overlap> find_varying(const Roll& roll, const Expr& min, const Expr& max, const Expr& index,
                                    const std::vector<int>& below, Ref<Var>& mover, arith::Analyzer& analyzer) {
  const Tree& tree = *roll.block.tree;
  auto moves = [&](int at) {
    return uses_var(min, tree.for_at(at).loop_var) || uses_var(max, tree.for_at(at).loop_var);
  };
  auto counts = [&](int at) { return uses_var(index, tree.for_at(at).loop_var); };
  auto tile = find_if(roll.loops, moves);
  auto inner = find_if(below, counts);
  if (tile == roll.loops.end() || inner == below.end()) return std::nullopt;
  mover = tree.for_at(*tile).loop_var;
  const For& counted = tree.for_at(*inner);
  const auto tiles = const_int(tree.for_at(*tile).extent);
  if (!tiles || *tiles > kTiles || !is_const_int(counted.min, 0)) return std::nullopt;
  if (!analyzer.can_prove_equal(index, min + cast(min.dtype(), counted.loop_var))) return std::nullopt;
  Overlap overlap;
  int64_t begin = 0, end = 0;
  for (int64_t t = 0; t < *tiles; ++t) {
    auto in_tile = [&](const Expr& e) {
      return const_int(analyzer.simplify(substitute(e, {{mover, constant(mover.dtype(), t)}})));
    };
    auto first = in_tile(min), last = in_tile(max), length = in_tile(counted.extent);
    if (!first || !last || !length || *last - *first + 1 != *length) return std::nullopt;
    if (t > 0 && (*first < begin || *last + 1 < end)) return std::nullopt;
    if (t > 0 && *first < end) overlap.tile = mover;
    begin = *first, end = *last + 1;
    overlap.extent = std::max(overlap.extent, *length);
  }
  overlap.kept = analyzer.simplify(substitute(max, {{mover, mover - one(mover.dtype())}}) + one(max.dtype()));
  overlap.inner = index;
  return overlap;
}

/// Finds the windows; false where a dimension that moves is of another form.
bool find_overlaps(Roll& roll) {
  const Tree& tree = *roll.block.tree;
  const BlockRealize& realize = *tree.realize_at(roll.block.at);
  const Block& block = *realize.block;
  const Ref<BufferRegion>& write = block.writes[roll.position];
  auto below = analysis::loops_between(tree, roll.loops.back(), roll.block.at);
  if (!below || write->region.size() > block.iter_vars.size()) return false;
  auto analyzer = analysis::analyzer_above(tree, roll.loops.back());
  arith::Box box =
      arith::relax_region(analysis::bound_region(realize, write), analysis::domains_of(tree, *below), analyzer);
  roll.overlaps.resize(box.size());
  std::vector<Ref<Var>> movers;
  for (size_t d : indices_of(box)) {
    const Range& index = *write->region[d];
    if (index.min != block.iter_vars[d]->var || !is_const_int(index.extent, 1) || !box[d].is_bounded()) return false;
    Expr min = analyzer.simplify(box[d].min);
    auto moves = [&](const Ref<Var>& v) {
      return any_of(roll.loops, [&](int at) { return tree.for_at(at).loop_var == v; });
    };
    if (const_int(min)) {
      // A box that grows from tile to tile: what neighbors have together is not all that the later one needs.
      if (uses_any_var(box[d].max, moves)) return false;
      continue;
    }
    auto start = start_of_window(min);
    auto extent = const_int(analyzer.simplify(box[d].max - box[d].min + 1));
    // Where one loop moves two dimensions, the windows of neighbors do not overlap as boxes do.
    auto is_second = [&](const Ref<Var>& tile) { return is_contained(movers, tile); };
    Overlap& overlap = roll.overlaps[d];
    if (!start || !extent) {
      Ref<Var> mover;
      auto varying =
          find_varying(roll, min, analyzer.simplify(box[d].max), realize.iter_values[d], *below, mover, analyzer);
      if (!varying || is_second(mover)) return false;
      movers.push_back(mover);
      overlap = std::move(*varying);
      continue;
    }
    if (is_second(start->tile)) return false;
    movers.push_back(start->tile);
    if (*extent <= start->step()) continue;
    VarMap at_first{{start->tile, zero(start->tile.dtype())}};
    Expr inner = analyzer.simplify(substitute(realize.iter_values[d] - min, at_first));
    overlap = {start->tile, *extent, constant(inner.dtype(), *extent - start->step()), inner};
    if (!analyzer.can_prove_equal(realize.iter_values[d], min + overlap.inner)) return false;
  }
  for (int at : roll.loops) {
    for (size_t d : indices_of(roll.overlaps)) {
      if (roll.overlaps[d].tile != tree.for_at(at).loop_var) continue;
      roll.axis = d;
      return true;
    }
  }
  return false;
}

/// Whether all iterations of the outermost rolling loop execute the block for the same iterations of the inner loops.
/// Otherwise a tile might reuse elements that the tile before did not compute.
bool tiles_run_alike(const Roll& roll) {
  const Tree& tree = *roll.block.tree;
  auto rolls = [&](int at) {
    return any_of(roll.overlaps, [&](const Overlap& d) { return d.tile == tree.for_at(at).loop_var; });
  };
  const int outermost = *find_if(roll.loops, rolls);
  const auto below = analysis::loops_between(tree, outermost, roll.block.at);
  if (!below) return false;
  auto analyzer = analysis::analyzer_above(tree, roll.block.at);
  const std::vector<Expr>& values = tree.realize_at(roll.block.at)->iter_values;
  return all_of(*below, [&](int at) {
    const For& loop = tree.for_at(at);
    auto varies = [&](const Ref<Var>& v) {
      const int other = tree.loop(v);
      return other == outermost || is_contained(*below, other);
    };
    if (effect_of(loop.extent) == Effect::kPure && !uses_any_var(loop.extent, varies)) return true;
    // The windows are those of such loops below all readers.
    if (is_contained(roll.loops, at)) return false;
    for (size_t d : indices_of(roll.overlaps)) {
      if (uses_var(values[d], loop.loop_var)) return true;
    }
    return analyzer.can_prove(gt(loop.extent, 0));
  });
}

/// Whether the block computes each element of a window, but for those that its condition excludes from all of them.
bool fills_windows(const Roll& roll) {
  const Tree& tree = *roll.block.tree;
  const BlockRealize& realize = *tree.realize_at(roll.block.at);
  const arith::Region region = analysis::bound_region(realize, realize.block->writes[roll.position]);
  const std::vector<int> below = *analysis::loops_between(tree, roll.loops.back(), roll.block.at);
  auto analyzer = analysis::analyzer_above(tree, roll.loops.back());
  const auto reached = analysis::surely_reached(region, analysis::inputs_of(tree, below), bool_imm(true), analyzer);
  return reached && arith::proves_subset(arith::relax_region(region, analysis::domains_of(tree, below), analyzer),
                                         *reached, analyzer);
}

/// Each term compares an axis with what no loop changes: it says the same of an element whichever tile computes it.
bool only_bounds_axes(const Expr& predicate, const BlockRealize& realize, const Tree& tree) {
  arith::Analyzer analyzer;
  const auto is_fixed = [&](const Expr& e) {
    return effect_of(e) == Effect::kPure &&
           !uses_any_var(e, [&](const Ref<Var>& v) { return tree.loop(v) != Tree::kNone; });
  };
  const auto is_bound = [&](const Expr& term) {
    const BinaryOperands sides = binary_operands(term);
    const bool compares = term.is<LT>() || term.is<LE>() || term.is<GT>() || term.is<GE>();
    return compares && any_of(realize.iter_values, [&](const Expr& value) {
             const Expr &a = *sides.a, &b = *sides.b;
             return value.dtype() == a.dtype() &&
                    (is_fixed(analyzer.simplify(a - b - value)) || is_fixed(analyzer.simplify(b - a - value)));
           });
  };
  const std::vector<Expr> terms = conjuncts(predicate);
  return all_of(terms, is_bound);
}

Expr round(const Roll& roll, const Expr& index) {
  return floormod(index, constant(index.dtype(), roll.overlaps[roll.axis].extent));
}

/// The declared regions of one buffer, as the block touches `now` in its place.
void update_regions(Block& block, const Ref<Buffer>& before, const Ref<Buffer>& now, SpanId span) {
  analysis::BlockAccess found = analysis::block_access_region(make<Block>(Block(block), span));
  auto update = [&](std::vector<Ref<BufferRegion>>& declared, const std::vector<Ref<BufferRegion>>& regions) {
    for (Ref<BufferRegion>& old : declared) {
      if (old->buffer != before) continue;
      for (const Ref<BufferRegion>& region : regions) {
        if (region->buffer == now) old = region;
      }
    }
  };
  update(block.reads, found.reads);
  update(block.writes, found.writes);
}

void allocate_instead(Block& block, const Ref<Buffer>& before, const Ref<Buffer>& now) {
  for (Def<Buffer>& own : block.alloc_buffers) {
    if (own == before) own = now;
  }
}

bool touches(const Block& block, const Ref<Buffer>& buffer) {
  auto is_of = [&](const Ref<BufferRegion>& region) { return region->buffer == buffer; };
  return any_of(block.reads, is_of) || any_of(block.writes, is_of);
}

/// A block that touches the buffer depends on the order of its instances now. An axis of a reduction stays one: the
/// init runs at its start alone.
Ref<Block> ordered(Block block, const Roll& roll, const Ref<Buffer>& round_buffer, SpanId span) {
  if (roll.axis < block.iter_vars.size() && block.iter_vars[roll.axis]->iter_type == IterType::kDataPar) {
    IterVar axis = *block.iter_vars[roll.axis];
    axis.iter_type = IterType::kOpaque;
    block.iter_vars[roll.axis] = make(std::move(axis));
  }
  update_regions(block, roll.buffer, round_buffer, span);
  return make(std::move(block), span);
}

/// The condition of the block that makes the elements of a window: those of the first, or new ones.
Expr computes_new(const Overlap& overlap) {
  Expr first = lt(overlap.tile, 1);
  return logical_or(first, le(overlap.kept, overlap.inner));
}

/// The program under `root`, which holds the blocks of the roll.
Ref<Block> rolled(const Roll& roll, const Ref<Block>& root) {
  const Tree& tree = *roll.block.tree;
  uint64_t producer = roll.block.block().id.value, scope = tree.block_at(roll.scope).id.value;
  Buffer smaller = *roll.buffer;
  smaller.shape[roll.axis] = constant(smaller.shape[roll.axis].dtype(), roll.overlaps[roll.axis].extent);
  Ref<Buffer> buffer = make(std::move(smaller), roll.buffer.span());
  auto moved = [&](std::vector<Expr> indices) {
    indices[roll.axis] = round(roll, indices[roll.axis]);
    return indices;
  };
  return rewrite(
      root,
      [&](const Ref<BufferLoad>& old, Rewriter& walk) -> Expr {
        return moved_access(old, walk, roll.buffer, buffer, moved);
      },
      [&](const Ref<BufferStore>& old, Rewriter& walk) -> Stmt {
        return moved_access(old, walk, roll.buffer, buffer, moved);
      },
      [&](const Ref<BlockRealize>& old, Rewriter& walk) -> Stmt {
        BlockRealize realize = *walk.descend(old);
        if (realize.block->id.value != producer) return make(std::move(realize), old.span());
        for (const Overlap& overlap : roll.overlaps) {
          if (overlap.tile.defined()) realize.predicate = logical_and(realize.predicate, computes_new(overlap));
        }
        return make(std::move(realize), old.span());
      },
      [&](const Ref<Block>& old, Rewriter& walk) -> Stmt {
        Block block = *walk.descend(old);
        if (block.id.value == scope) allocate_instead(block, roll.buffer, buffer);
        if (!touches(block, roll.buffer)) return make(std::move(block), old.span());
        return ordered(std::move(block), roll, buffer, old.span());
      });
}

Result<Roll> find_roll(const Place& block, const BufferIndex& write) {
  TW_TRY(roll, find_blocks(block, write));
  if (!find_overlaps(roll)) {
    return refuse(
        "rolling_buffer/P6",
        "no loop moves a window over '" + roll.buffer->name + "' that overlaps with the one before", roll.block,
        "an index has to be tile * step + inner, with more inner values than the step, or the windows have to "
        "begin and end at constants in each tile");
  }
  if (!tiles_run_alike(roll)) {
    return refuse("rolling_buffer/P5",
                  "not every tile comes to " + describe(roll.block) + " in as many iterations as the one before",
                  roll.block, "let the loops below the tiles have extents that no tile changes");
  }
  if (!fills_windows(roll)) {
    return refuse("rolling_buffer/P6",
                  describe(roll.block) + " does not compute all elements between the ends of a window", roll.block,
                  "let each dimension have loops of its own, over all that is between two ends");
  }
  const BlockRealize& realize = *roll.block.tree->realize_at(roll.block.at);
  if (!only_bounds_axes(realize.predicate, realize, *roll.block.tree)) {
    return refuse("rolling_buffer/P7",
                  describe(roll.block) + " runs on the condition " + analysis::brief(realize.predicate), roll.block,
                  "roll before the block is given a condition: tile by factors that divide");
  }
  return roll;
}

/// A buffer that seems to roll already, and that with all its elements.
struct Undone {
  Ref<Buffer> buffer, whole;
  uint64_t writer = 0;
  int64_t position = 0;
  size_t axis = 0;
};

std::vector<Undone> buffers_that_roll(const Tree& tree, int scope_at) {
  std::vector<Undone> result;
  const Block& outer = tree.block_at(scope_at);
  const analysis::Scope& scope = analysis::Scope::of(tree, scope_at);
  for (const Ref<Buffer>& buffer : outer.alloc_buffers) {
    if (scope.writers(buffer).size() != 1) continue;
    const Block& writer = *scope.children()[scope.writers(buffer)[0]]->block;
    for (size_t position : indices_of(writer.writes)) {
      const Ref<BufferRegion>& write = writer.writes[position];
      if (write->buffer != buffer) continue;
      for (size_t d = 0; d < write->region.size() && d < writer.iter_vars.size(); ++d) {
        const IterVar& axis = *writer.iter_vars[d];
        const FloorMod* index = write->region[d]->min.as<FloorMod>();
        bool rolls = axis.iter_type == IterType::kOpaque && index && index->a == axis.var && const_int(index->b) &&
                     const_int(index->b) == const_int(buffer->shape[d]);
        if (!rolls) continue;
        Buffer whole = *buffer;
        whole.shape[d] = cast(buffer->shape[d].dtype(), axis.dom->min + axis.dom->extent);
        result.push_back(
            {buffer, make(std::move(whole), buffer.span()), writer.id.value, static_cast<int64_t>(position), d});
        break;
      }
    }
  }
  return result;
}

/// The condition without the terms that select new elements.
Expr without_computes_new(const Expr& predicate) {
  if (const And* both = predicate.as<And>()) {
    return logical_and(without_computes_new(both->a), without_computes_new(both->b));
  }
  const Or* either = predicate.as<Or>();
  const LT* first = either ? either->a.as<LT>() : nullptr;
  const LE* is_new = either ? either->b.as<LE>() : nullptr;
  bool selects_new = first && first->a.is<Var>() && is_const_int(first->b, 1) && is_new;
  return selects_new ? Expr(bool_imm(true)) : predicate;
}

Ref<Block> undo(const Ref<Block>& root, uint64_t scope, const Undone& undone) {
  auto moved = [&](std::vector<Expr> indices) {
    if (const FloorMod* index = indices[undone.axis].as<FloorMod>()) indices[undone.axis] = index->a;
    return indices;
  };
  return rewrite(
      root,
      [&](const Ref<BufferLoad>& old, Rewriter& walk) -> Expr {
        return moved_access(old, walk, undone.buffer, undone.whole, moved);
      },
      [&](const Ref<BufferStore>& old, Rewriter& walk) -> Stmt {
        return moved_access(old, walk, undone.buffer, undone.whole, moved);
      },
      [&](const Ref<BlockRealize>& old, Rewriter& walk) -> Stmt {
        BlockRealize realize = *walk.descend(old);
        if (realize.block->id.value == undone.writer) realize.predicate = without_computes_new(realize.predicate);
        return make(std::move(realize), old.span());
      },
      [&](const Ref<Block>& old, Rewriter& walk) -> Stmt {
        Block block = *walk.descend(old);
        if (block.id.value == scope) allocate_instead(block, undone.buffer, undone.whole);
        if (!touches(block, undone.buffer)) return make(std::move(block), old.span());
        for (Ref<IterVar>& own : block.iter_vars) {
          if (own->iter_type != IterType::kOpaque) continue;
          IterVar axis = *own;
          axis.iter_type = IterType::kDataPar;
          own = make(std::move(axis));
        }
        update_regions(block, undone.buffer, undone.whole, old.span());
        return make(std::move(block), old.span());
      });
}

/// The program before buffers of the scope rolled: rolling them gives this one again. Null where none has.
Ref<Block> before_rolling(const Place& block, int scope_at) {
  const Ref<Block> now = block.tree->block_ref(0);
  const uint64_t scope = block.tree->block_at(scope_at).id.value;
  std::vector<Undone> found = buffers_that_roll(*block.tree, scope_at);
  if (found.empty()) return {};
  Ref<Block> before = now;
  for (const Undone& undone : found) before = undo(before, scope, undone);
  const Tree& tree = Tree::of(before);
  Ref<Block> again = before;
  for (const Undone& undone : found) {
    auto roll = find_roll(Place{block.func, &tree, tree.block(undone.writer)}, undone.position);
    if (!roll.ok()) return {};
    again = rolled(*roll, again);
  }
  return structural_equal(again, now) ? before : Ref<Block>();
}

}  // namespace

Result<Plan> plan(const State& state, const RollingBuffer& rolling) {
  TW_TRY(block, state.find(rolling.block));
  auto roll = find_roll(block, rolling.write_buffer_index);
  Ref<Block> before;
  const int scope = (*block.tree)[block.at].scope;
  if (!roll.ok() && scope != Tree::kNone) before = before_rolling(block, scope);
  if (before.defined()) {
    const Tree& tree = Tree::of(before);
    auto found = find_roll(Place{block.func, &tree, tree.block(block.block().id.value)}, rolling.write_buffer_index);
    // A buffer that rolls already is not the block's own any more.
    if (found.ok() && block.block().writes[found->position]->buffer == found->buffer) roll = std::move(found);
  }
  if (!roll.ok()) return std::move(roll.error());
  Plan plan = give_loops(block.func, rolled(*roll, block.tree->block_ref(0)), {});
  plan.recorded = recorded_with(rolling, &RollingBuffer::write_buffer_index, roll->position);
  return plan;
}

}  // namespace tilewright::schedule
