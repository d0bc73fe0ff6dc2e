// How a block combines values: the operation of its reduction, recognized in its init and its body.
//
//   init: C[vi] = 0.0                         sum of A[vi, vk], beginning with 0.0
//   C[vi] = C[vi] + A[vi, vk]
//
//   init: I[vi] = -1; V[vi] = min_value       the pair (vk, A[vi, vk]) with the largest second part, the first of
//   i = T.Select(V[vi] >= A[vi, vk], I[vi], vk)          equal ones
//   v = T.Select(V[vi] >= A[vi, vk], V[vi], A[vi, vk])
//   I[vi] = i; V[vi] = v                                                               (or the last of them: >);
//                                             the condition may have a name, too: keeps = V[vi] >= A[vi, vk]
//
//   S[vi] = S[vi] + A[vi, vk]                 several sums, each by itself
//   Q[vi] = Q[vi] + A[vi, vk] * A[vi, vk]
//
// Steps of a recognized reduction may be taken in groups, each group from its own start, and the groups combined in the
// order of their first steps: every operation here is associative (floating-point sums and products but for rounding),
// and its start is neutral or may be met any number of times; where the last of equal pairs stays, not after a step.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/reduction_step.h"
#include "ir/stmt.h"

namespace tilewright::analysis {

/// Condition that selects one of two pairs: where `keeps[p]` holds, part p of the old pair, else that of the new one.
struct PairChoice {
  /// Which of the pairs with equal deciding parts is kept.
  enum class Tie { kSmaller, kLarger, kFirst, kLast };

  Expr keeps[2];                 ///< comparisons of the parts below
  Ref<Var> before[2], added[2];  ///< parts of the old pair and of the new one, in `keeps`
  Tie tie = Tie::kFirst;
};

struct Reducer {
  std::vector<ReductionStep> steps;  ///< each part by itself, one for each buffer; none for pairs
  std::optional<PairChoice> pairs;
  std::vector<Ref<Buffer>> buffers;  ///< two for pairs, in the order in which the pair is computed
  std::vector<Expr> indices;         ///< indices of the element, the same in all buffers
  std::vector<Expr> starts;          ///< values that the init stores, per buffer
  std::vector<Expr> operands;        ///< operands that a step adds, per buffer; none reads the buffers

  /// One sum.
  bool is_sum() const { return steps.size() == 1 && steps[0].is_sum(); }
  /// A step with what an element starts from takes the place of an equal element.
  /// Which of equal values it finds depends on the order of its steps.
  bool depends_on_order() const {
    return pairs && (pairs->tie == PairChoice::Tie::kFirst || pairs->tie == PairChoice::Tie::kLast);
  }
  bool takes_last() const { return pairs && pairs->tie == PairChoice::Tie::kLast; }
  /// The parts of an element after one more step.
  std::vector<Expr> step(const std::vector<Expr>& element, const std::vector<Expr>& operand) const;
  /// Two partial results as one: a (op) b, part by part, as the block has it. Those of subtractions are added.
  std::vector<Expr> combine(const std::vector<Expr>& a, const std::vector<Expr>& b) const;
};

struct FoundReducer {
  std::optional<Reducer> reducer;
  std::string why_not;  ///< "its init is not a store", where there is none
};

/// The reducer of a block with an init.
FoundReducer find_reducer(const Block& block);
/// The reducer of a block without an init, which adds to what its elements hold: its starts are what is neutral.
FoundReducer find_accumulation(const Block& block);

/// Whether a block of the program chooses between pairs: which of equal values it finds depends on the order of its
/// steps, unless the other parts decide.
bool chooses_pairs(const NodeRef& program);

/// Returns the statement that applies one reduction step with `operands` to the elements of the buffers at these
/// indices. The step subtracts them if the reduction does.
Stmt step_into(const Reducer& reducer, const std::vector<Ref<Buffer>>& buffers, const std::vector<Expr>& indices,
               const std::vector<Expr>& operands);
/// The statement that combines `operands`, partial results, into the elements of the buffers at these indices.
Stmt combine_into(const Reducer& reducer, const std::vector<Ref<Buffer>>& buffers, const std::vector<Expr>& indices,
                  const std::vector<Expr>& operands);
/// buffers[i][indices] = values[i]
Stmt store_all(const std::vector<Ref<Buffer>>& buffers, const std::vector<Expr>& values,
               const std::vector<Expr>& indices);

}  // namespace tilewright::analysis
