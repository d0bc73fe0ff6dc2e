// Coverage: whether everything that one block reads has been written completely by another block. This is the condition
// for moving blocks (see block_facts.h).
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

/// The reason why a condition does not hold, for error messages, and the statements that the message underlines.
struct Obstacle {
  std::string why;
  std::vector<NodeRef> nodes;
};

/// Returns the loops strictly between a statement `from` and a block below it, outermost first. Nothing if there are
/// other nodes between than loops, sequences and unconditional statements.
std::optional<std::vector<int>> loops_between(const Tree& tree, int from, int block);
/// Whether loops_between() returns a value.
bool is_unconditional(const Tree& tree, int from, int block);
/// Returns loops as inputs of an iteration map, and as domains for relaxing a region.
arith::IterDomains inputs_of(const Tree& tree, const std::vector<int>& loops);
arith::Domains domains_of(const Tree& tree, const std::vector<int>& loops);
/// Returns the only value of the variable of each loop with one iteration, as an expression of the other loops.
VarMap units_of(const arith::IterDomains& inputs);
/// Returns the loops as counters for arith/digits.h; nothing if a bound is not constant.
std::optional<arith::Counters> counters_of(const Tree& tree, const std::vector<int>& loops);
/// An analyzer that knows the loops above a statement, itself included, up to the root of the function, and the axes of
/// the blocks between, but not the loops `except`.
arith::Analyzer analyzer_above(const Tree& tree, int at, const std::vector<int>& except = {});
/// A region of the block in terms of the loops around it.
arith::Region bound_region(const BlockRealize& realize, const Ref<BufferRegion>& region);

/// The terms of a conjunction that do not depend on the inputs.
Expr outer_condition(const Expr& predicate, const arith::IterDomains& inputs);
/// Makes the analyzer assume all terms of a conjunction.
void assume_all(const Expr& predicate, arith::Analyzer& analyzer);
/// Returns a lower bound of the accessed region: a box in which each point is in `region` for at least one value of the
/// inputs that satisfies the predicate. Nothing if no such box is known. Conditions on a single dimension are applied
/// to the box separately; arith::region_lower_bound() does the rest.
std::optional<arith::Box> surely_reached(const arith::Region& region, const arith::IterDomains& inputs,
                                         const Expr& predicate, arith::Analyzer& analyzer);
/// Whether different values of the inputs give different `values`. All inputs must occur in them.
bool is_one_to_one(const std::vector<Expr>& values, const arith::IterDomains& inputs, const Expr& predicate,
                   arith::Analyzer& analyzer, arith::IterMapResult* map);

/// Whether the block's condition may skip steps of a reduction, such as the first one, other than those of partial
/// tiles outside the domain.
bool limits_reduction(const BlockRealize& realize);

/// Returns the box of `write` whose elements the block has completed, including all steps of reductions, after `loops`
/// have run.
std::optional<arith::Box> produced(const BlockRealize& realize, const Ref<BufferRegion>& write, const Tree& tree,
                                   const std::vector<int>& loops, arith::Analyzer& analyzer);
/// Like produced(), for reductions whose predicate skips some steps but never the first one, such as k <= i.
std::optional<arith::Box> produced_by_sums(const Tree& tree, int block, const Ref<BufferRegion>& write,
                                           const std::vector<int>& loops, arith::Analyzer& analyzer);
/// The elements of `box` for which `mask` holds: a condition on axes, such as j <= i.
struct MaskedBox {
  arith::Box box;
  Expr mask;
};
/// Like produced(), for a block whose predicate masks elements. The mask is a condition on the axes that are the
/// indices of `write`.
std::optional<MaskedBox> produced_under_mask(const Tree& tree, int block, const Ref<BufferRegion>& write,
                                             const std::vector<int>& loops, arith::Analyzer& analyzer);
/// Returns a box that contains `region` for all iterations of `loops` that satisfy the predicate (null: always true).
arith::Box relaxed(const arith::Region& region, const Tree& tree, const std::vector<int>& loops,
                   arith::Analyzer& analyzer, const Expr& predicate = {});
/// Returns a box that contains the elements of `region`, a read or write of the block, that are accessed in `loops`.
arith::Box touched(const BlockRealize& realize, const Ref<BufferRegion>& region, const Tree& tree,
                   const std::vector<int>& loops, arith::Analyzer& analyzer);
/// Returns a box that contains the elements of `read` that the block needs in `loops`, within the region `exists` of
/// the buffer.
arith::Box required(const BlockRealize& realize, const Ref<BufferRegion>& read, const arith::Region& exists,
                    const Tree& tree, const std::vector<int>& loops, arith::Analyzer& analyzer);

/// Returns why the regions of `buffer` that `consumer` reads might not all be complete, written by `producer` in the
/// same iteration of the loops around both, or by threads that share the buffer (threads.h). Nothing if they are.
/// `exists`: the region of the buffer that exists; its shape if empty. A cache that holds part of another buffer has to
/// contain everything that is read of it.
std::optional<Obstacle> why_not_covered(const Tree& tree, int producer, int consumer, const Ref<Buffer>& buffer,
                                        const arith::Region& exists = {});

/// Returns why `later` might store to elements of `buffer` that `earlier` has not stored to in the same iteration of
/// the loops around both. Nothing if it only overwrites elements that `earlier` has stored.
std::optional<Obstacle> why_not_overwritten(const Tree& tree, int earlier, int later, const Ref<Buffer>& buffer);

/// Returns why the inputs of `block` might not be complete when it runs; nothing if they are. They are complete if each
/// buffer that the scope writes and the block reads has one writer, a complete or reduction block (or a complete block
/// and its update), and the writer covers the read region.
std::optional<Obstacle> why_inputs_incomplete(const Tree& tree, int block);

/// Returns why, in the loops below `from`, a step of the block's reduction might run before its init. Such a
/// step adds to the old value of the element, and the init then overwrites its result. A loop that no axis depends on
/// repeats the init, which has the same effect.
std::optional<Obstacle> why_init_not_first(const Tree& tree, int from, int block);

/// Returns why the reduction of a block might go wrong in another order of loops, or is not done exactly once for each
/// of its elements: a loop that drives no axis runs inside one that drives a reduction, an axis is not an affine
/// function of the loops, ... `from`: loops above and including it are constant. With `once`, no loop at all may repeat
/// the block: a reduction without an init would accumulate twice.
std::optional<Obstacle> why_irregular_reduction(const Tree& tree, int from, int block, bool once = false);

}  // namespace tilewright::analysis
