// Recognizes the reducer of a block, its combine operation and identity, from its init and body. rfactor and reductions
// over threads need it.
//
//   init: C[vi] = 0.0                         sum of A[vi, vk], identity 0.0
//   C[vi] = C[vi] + A[vi, vk]
//
//   init: I[vi] = -1; V[vi] = min_value                  argmax: the pair (vk, A[vi, vk]) with the largest value
//   i = T.Select(V[vi] >= A[vi, vk], I[vi], vk)          and the first of tied pairs; with > the last one. The
//   v = T.Select(V[vi] >= A[vi, vk], V[vi], A[vi, vk])   condition may be a let variable.
//   I[vi] = i; V[vi] = v
//
//   S[vi] = S[vi] + A[vi, vk]                 several independent sums
//   Q[vi] = Q[vi] + A[vi, vk] * A[vi, vk]
//
// The steps of a recognized reduction may be split into groups that each start from the init's value, if the partial
// results are combined in the order of the groups' first steps. Every operation here is associative, floating-point
// sums and products up to rounding. The init's value is an identity, or combining it again changes nothing. The
// exception are pairs with ties resolved to the last: their init must not be combined after a step.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/reduction_step.h"
#include "ir/stmt.h"

namespace tilewright::analysis {

/// An argmin- or argmax-like step, which selects the accumulated or the new pair: part p of the result is that of the
/// accumulated pair where `keeps[p]` holds.
struct PairSelect {
  /// Which pair wins a tie: that with the smaller or larger other part, or the first or last one.
  enum class Tie { kSmaller, kLarger, kFirst, kLast };

  Expr keeps[2];                 ///< comparisons of the variables below
  Ref<Var> before[2], added[2];  ///< stand for the parts of the accumulated and of the new pair in `keeps`
  Tie tie = Tie::kFirst;
};

struct Reducer {
  std::vector<ReductionStep> steps;  ///< the operation of each buffer; empty for pairs
  std::optional<PairSelect> pairs;
  std::vector<Ref<Buffer>> buffers;  ///< two for pairs, in the order in which their parts are computed
  std::vector<Expr> indices;         ///< indices of the element, the same in all buffers
  std::vector<Expr> starts;          ///< values that the init stores, per buffer
  std::vector<Expr> operands;        ///< values that a step combines into the element, per buffer

  bool is_sum() const { return steps.size() == 1 && steps[0].is_sum(); }
  /// Whether the order of steps decides which of several tied pairs is the result.
  bool depends_on_order() const {
    return pairs && (pairs->tie == PairSelect::Tie::kFirst || pairs->tie == PairSelect::Tie::kLast);
  }
  /// Whether the last of several tied pairs is the result, so that combining the init again may replace a pair.
  bool keeps_last() const { return pairs && pairs->tie == PairSelect::Tie::kLast; }
  /// Returns the element, per buffer, after one more step.
  std::vector<Expr> step(const std::vector<Expr>& element, const std::vector<Expr>& operand) const;
  /// Combines two partial results: a (op) b. Partial results of subtractions are added.
  std::vector<Expr> combine(const std::vector<Expr>& a, const std::vector<Expr>& b) const;
};

struct FoundReducer {
  std::optional<Reducer> reducer;
  std::string why_not;  ///< "its init is not a store", where there is none
};

/// Returns the reducer of a block with an init.
FoundReducer find_reducer(const Block& block);
/// Returns the reducer of a block without an init, which accumulates into the current elements. `starts` are the
/// identities.
FoundReducer find_accumulation(const Block& block);

/// Whether a block of the program is an argmin- or argmax-like reduction, for which ties may depend on the order of
/// steps.
bool selects_pairs(const NodeRef& program);

/// Returns the statement that applies one reduction step with `operands` to the elements of the buffers at these
/// indices. The step subtracts them if the reduction does.
Stmt step_into(const Reducer& reducer, const std::vector<Ref<Buffer>>& buffers, const std::vector<Expr>& indices,
               const std::vector<Expr>& operands);
/// Returns the statement that combines partial results, `operands`, into the elements of the buffers at these indices.
Stmt combine_into(const Reducer& reducer, const std::vector<Ref<Buffer>>& buffers, const std::vector<Expr>& indices,
                  const std::vector<Expr>& operands);
/// Returns the statements buffers[i][indices] = values[i].
Stmt store_all(const std::vector<Ref<Buffer>>& buffers, const std::vector<Expr>& values,
               const std::vector<Expr>& indices);

}  // namespace tilewright::analysis
