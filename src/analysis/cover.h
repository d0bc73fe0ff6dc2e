// Whether what one block reads has just been written, and completely, by another: the condition under which blocks may
// be moved (see block_facts.h).
//
//   for i in range(4):                      LCA: the loop i, which counts as constant
//     for j in range(8): B[i * 8 + j] = ..  surely written under it:  B[i * 8 : i * 8 + 8]
//     for j in range(8): C[..] = B[i*8+j]   read under it at most:    B[i * 8 : i * 8 + 8]
#pragma once

#include <optional>
#include <string>

#include "analysis/tree.h"
#include "arith/digits.h"
#include "arith/int_set.h"
#include "arith/iter_map.h"
#include "ir/substitute.h"

namespace tilewright::analysis {

/// A reason against something, for a message, and the statements that it is about.
struct Obstacle {
  std::string why;
  std::vector<NodeRef> nodes;
};

/// The loops strictly between a statement `from` and a block below it, outermost first; nothing where something else
/// than loops, sequences and unconditional statements stands between.
std::optional<std::vector<int>> loops_between(const Tree& tree, int from, int block);
/// Whether nothing else stands there.
bool is_unconditional(const Tree& tree, int from, int block);
/// Returns loops as inputs of an iteration map, and as domains for relaxing a region.
arith::IterDomains inputs_of(const Tree& tree, const std::vector<int>& loops);
arith::Domains domains_of(const Tree& tree, const std::vector<int>& loops);
/// The loops of one iteration, and the only values of their variables, in terms of the other loops.
VarMap units_of(const arith::IterDomains& inputs);
/// The loops as counters for arith/digits.h; nothing where a range has other ends than constants.
std::optional<arith::Counters> counters_of(const Tree& tree, const std::vector<int>& loops);
/// An analyzer that knows the loops above a statement, itself included, up to the root of the function, and the axes of
/// the blocks between, but not the loops `except`.
arith::Analyzer analyzer_above(const Tree& tree, int at, const std::vector<int>& except = {});
/// A region of the block in terms of the loops around it.
arith::Region bound_region(const BlockRealize& realize, const Ref<BufferRegion>& region);

/// The terms of a conjunction that do not depend on the inputs.
Expr outer_condition(const Expr& predicate, const arith::IterDomains& inputs);
/// The analyzer takes all terms of a conjunction for granted.
void assume_all(const Expr& predicate, arith::Analyzer& analyzer);
/// The box of points that `region` covers while the inputs run where the predicate holds, all of it; nothing if that is
/// not known to be a box. arith::region_lower_bound(), with conditions on single dimensions taken apart.
std::optional<arith::Box> surely_reached(const arith::Region& region, const arith::IterDomains& inputs,
                                         const Expr& predicate, arith::Analyzer& analyzer);
/// Different iterations (of inputs that all take part) give different values.
bool is_one_to_one(const std::vector<Expr>& values, const arith::IterDomains& inputs, const Expr& predicate,
                   arith::Analyzer& analyzer, arith::IterMapResult* map);

/// Whether the block's condition may skip steps of a reduction, such as the first one, other than those of partial
/// tiles outside the domain.
bool limits_reduction(const BlockRealize& realize);

/// The box of `write` that the block surely completes while `loops` run, with all its reductions.
std::optional<arith::Box> produced(const BlockRealize& realize, const Ref<BufferRegion>& write, const Tree& tree,
                                   const std::vector<int>& loops, arith::Analyzer& analyzer);
/// The box that sums produce whose condition omits steps, but never the first ones: k <= i.
std::optional<arith::Box> produced_by_sums(const Tree& tree, int block, const Ref<BufferRegion>& write,
                                           const std::vector<int>& loops, arith::Analyzer& analyzer);
/// The elements where a condition on the axes that are indices of `write` selects from the box, j <= i: all of them
/// that it selects.
struct ChosenElements {
  arith::Box box;
  Expr chosen;
};
std::optional<ChosenElements> produced_where_chosen(const Tree& tree, int block, const Ref<BufferRegion>& write,
                                                    const std::vector<int>& loops, arith::Analyzer& analyzer);
/// A box that holds `region` while `loops` run where the predicate (null: nothing) holds.
arith::Box relaxed(const arith::Region& region, const Tree& tree, const std::vector<int>& loops,
                   arith::Analyzer& analyzer, const Expr& predicate = {});
/// A box that holds what of `region`, a read or a write of the block, is touched while `loops` run.
arith::Box touched(const BlockRealize& realize, const Ref<BufferRegion>& region, const Tree& tree,
                   const std::vector<int>& loops, arith::Analyzer& analyzer);
/// The box of `read` that the block needs at most while `loops` run, within what there is of the buffer.
arith::Box required(const BlockRealize& realize, const Ref<BufferRegion>& read, const arith::Region& exists,
                    const Tree& tree, const std::vector<int>& loops, arith::Analyzer& analyzer);

/// Returns why the regions of `buffer` that `consumer` reads might not all be complete, written by `producer` in the
/// same iteration of the loops around both, or by threads that share the buffer (threads.h). Nothing if they are.
/// `exists`: what there is to read of the buffer, its shape if empty; a buffer that stands for part of another one is
/// to hold all that is read of that.
std::optional<Obstacle> why_not_covered(const Tree& tree, int producer, int consumer, const Ref<Buffer>& buffer,
                                        const arith::Region& exists = {});

/// Returns why `later` might store elsewhere in `buffer` than `earlier` has just done, in the same iteration of the
/// loops around both. Nothing if it only stores over that.
std::optional<Obstacle> why_not_overwritten(const Tree& tree, int earlier, int later, const Ref<Buffer>& buffer);

/// Returns why what `block` reads might not be complete when it runs: of each buffer that blocks of the scope write,
/// the writer is one complete or reduction block, or a complete one and an update of it, and covers what is read.
std::optional<Obstacle> why_inputs_incomplete(const Tree& tree, int block);

/// Returns why a step of the block's reduction might run before its init while the loops below `from` run: the value
/// from before would be read, and then forgotten. Loops that drive no axis repeat steps, each after the init.
std::optional<Obstacle> why_init_not_first(const Tree& tree, int from, int block);

/// Returns why the reduction of a block might go wrong in another order of loops, or is not done exactly once for each
/// of its elements: a loop that drives no axis runs inside one that drives a reduction, an axis is not an affine
/// function of the loops, ... `from`: loops above and including it are constant. With `once`, no loop at all may repeat
/// it: what accumulates without an init of its own would accumulate again.
std::optional<Obstacle> why_irregular_reduction(const Tree& tree, int from, int block, bool once = false);

}  // namespace tilewright::analysis
