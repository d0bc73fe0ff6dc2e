// Iteration maps: index expressions that take loops apart and put them together again, digit by digit.
//
//   i in [0, 16), j in [0, 4):   [(i * 4 + j) // 8, (i * 4 + j) % 8]   is a bijection onto [0, 8) x [0, 8)
//
// Such a map is described by splits: digit `x // lower_factor % extent` of an iterator x, and sums of scaled splits.
// An iterator (IterMark) is an input variable or itself a sum, and may be shortened by a predicate:
// i0 * 32 + i1 with i0 * 32 + i1 < 100 is an iterator of extent 100.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "arith/analyzer.h"

namespace tilewright::arith {

struct IterMark;
using IterMarkPtr = std::shared_ptr<const IterMark>;

/// source // lower_factor % extent * scale
struct IterSplitExpr {
  IterMarkPtr source;
  Expr lower_factor, extent, scale;
};
/// The sum of args plus base; base mentions no input variable. Args go from the most significant to the least.
struct IterSumExpr {
  std::vector<IterSplitExpr> args;
  Expr base;
};
/// Runs over [0, extent): var - min, or the sum.
struct IterMark {
  Ref<Var> var;
  Expr min;
  std::optional<IterSumExpr> sum;  ///< instead of var
  Expr extent;
  int depth = 0;               ///< iterators in each other, of those that Python makes
  bool is_predicated = false;  ///< a predicate makes the extent smaller than what the sum reaches by itself
};

enum class IterMapLevel : uint8_t {
  kBijective,   ///< each point of the box that the indices span is reached exactly once, and all inputs take part
  kSurjective,  ///< each point is reached
  kNoCheck,     ///< only the form is recognized; splits may be longer than what is reached
};

/// Input variables with their ranges, outer loop first.
using IterDomains = std::vector<std::pair<Ref<Var>, Ref<Range>>>;

struct IterMapResult {
  std::vector<IterSumExpr> indices;  ///< empty when there are errors
  std::vector<std::string> errors;
  bool ok() const { return errors.empty(); }
};

/// `predicate` (null: true) restricts the inputs: a conjunction of comparisons, which some iteration has to fulfill.
/// Other variables count as constants.
/// Input variables of extent 1 are replaced by their only value, unless `keep_trivial`.
IterMapResult detect_iter_map(const std::vector<Expr>& indices, const IterDomains& inputs, const Expr& predicate,
                              IterMapLevel level, Analyzer& analyzer, bool keep_trivial = false);

/// The inputs, those that start at 0 grown to a multiple of the constants that `indices` divide them by. A map that is
/// one to one on the larger domains is so on the given ones, where i // 3 and i % 3 may span no box.
IterDomains rounded_up(const std::vector<Expr>& indices, IterDomains inputs);

/// Converts back to an expression of the input variables.
Expr normalize_iter_map_to_expr(const IterSumExpr& sum, Analyzer& analyzer);
Expr normalize_iter_map_to_expr(const IterSplitExpr& split, Analyzer& analyzer);
Expr normalize_iter_map_to_expr(const IterMark& mark, Analyzer& analyzer);

/// The indices, simplified through the map where there is one, else by the analyzer.
std::vector<Expr> iter_map_simplify(const std::vector<Expr>& indices, const IterDomains& inputs, const Expr& predicate,
                                    IterMapLevel level, Analyzer& analyzer);

/// Returns the input variables of a bijective map in terms of the values of the indices.
std::unordered_map<NodeRef, Expr> inverse_affine_iter_map(const std::vector<IterSumExpr>& indices,
                                                          const std::vector<Expr>& outputs, Analyzer& analyzer);

/// index = outer * inner_extent + inner, where inner depends on the inner variables only and outer on the others only.
/// outer runs over [0, outer_extent), inner over [base, base + inner_extent), where base is what the index is at the
/// start of all loops.
struct Division {
  Expr outer, inner;
  Expr outer_extent, inner_extent;
};
struct SubspaceDivision {
  std::vector<Division> indices;
  Expr outer_predicate;  ///< part of the predicate over outer variables alone
  Expr inner_predicate;  ///< the other parts, such as comparisons of inner with outer variables
};
enum class SubspaceForm : uint8_t {
  kExact,  ///< bases are 0, extents those of the loops, and no part of the predicate compares inner with outer
           ///< variables
  /// A predicate that does not fit the map leaves the extents as they are without it. A variable that is divided by c
  /// is padded to a multiple of c: the extents are those of the padded loops, and predicates mask the padding.
  kGeneral,
};
/// Returns nothing if the indices are no map of the level or do not divide; `errors` (may be null) gets the reason.
std::optional<SubspaceDivision> subspace_divide(const std::vector<Expr>& indices, const IterDomains& inputs,
                                                const std::vector<Ref<Var>>& inner_vars, const Expr& predicate,
                                                IterMapLevel level, Analyzer& analyzer,
                                                std::vector<std::string>* errors = nullptr,
                                                SubspaceForm form = SubspaceForm::kExact);

}  // namespace tilewright::arith
