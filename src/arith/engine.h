// Implementation of the Analyzer: its context, its caches, and the steps of simplification (not for other layers).
//
// engine.cc            variables, facts, scopes, memoized results
// bounds_of.cc         intervals and residue classes of expressions
// quotient_bound.cc    intervals of quotients by divisors that are not constant
// simplify.cc          dispatch over kinds; kinds without a file of their own
// simplify_index.cc    sums and products of index expressions
// divide_constant.cc   their division by a positive constant
// divide_symbolic.cc   their other divisions
// recombine.cc         terms of a sum that belong together
// simplify_compare.cc  comparisons, logic, min, max, select
// simplify_vector.cc   Ramp and Broadcast
// apply_rules.cc       the rules of rules.cc, after the steps above
// prove_plain.cc       orders that need no facts
// prove.cc             inequalities from facts
// prove_cases.cc       proofs by cases over min and max
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "arith/analyzer.h"
#include "arith/linear.h"
#include "arith/node_table.h"
#include "ir/buffer_domain.h"

namespace tilewright::arith {

class Engine {
 public:
  // ---- context
  void bind(const Ref<Var>& var, const Expr& min, const Expr& extent);
  void bind(const Ref<Var>& var, const Expr& value);
  void assume(const Expr& condition);
  void assume(const BufferDomain& domain);
  size_t enter(const Expr& condition);
  void leave(size_t mark);
  /// Whether `mark` belongs to the innermost scope that is still open.
  bool is_innermost(size_t mark) const { return mark + 1 == marks_.size(); }
  /// Clears the memoized results if they have outgrown the processor's caches. Called between queries.
  void trim();

  // ---- queries
  ConstIntBound bound(const Expr& e);
  ConstIntBound bound(const Linear& linear);
  ModularSet residues(const Expr& e);
  ModularSet residues(const Linear& linear);
  Fingerprint fp(const Expr& e) { return wraps(e) ? value_fingerprints_(e) : fingerprints_(e); }
  Expr simplify(const Expr& e);
  Expr simplify_value(const Expr& e);
  /// The normal form of an index expression, which it simplifies; `bad` when a coefficient overflows.
  Linear linear(const Expr& e);
  /// The terms of an expression that simplify() returned: splits its sums, and simplifies nothing.
  Linear flat(const Expr& e);
  /// Declared properties of the elements of a buffer.
  struct Elements {
    bool known = false;
    Expr min, max;                           ///< bounds of each element
    bool ascends = false, strictly = false;  ///< each element is not less than the one before it, or greater
  };
  /// Returns null for a load from a buffer without a declaration.
  const Elements* elements(const Expr& load) const;
  bool prove(const Expr& condition);
  bool prove_ge0(const Linear& linear);
  bool prove_less(const Expr& a, const Expr& b, bool or_equal);
  /// Proves the inequality for each order of the operands of min and max, where prove_less() fails.
  bool prove_less_equal_by_cases(const Expr& a, const Expr& b);
  bool prove_equal(const Expr& a, const Expr& b);
  /// Multiplies products of sums out, as far as the result stays small.
  Linear expanded(const Linear& linear);

  /// Whether a sum or product of loaded values in it may overflow its type.
  bool may_wrap(const Expr& e);

 private:
  struct VarInfo {
    bool known = false;
    Expr value;  ///< null unless bound to an expression
    ConstIntBound bound;
    std::vector<Linear> facts;  ///< each is >= 0: symbolic ends of the range
  };
  /// The interval of a sum of terms (divided by their content, sign normalized).
  struct KnownBound {
    Fingerprint terms;
    ConstIntBound bound;
  };
  struct KnownTruth {
    Fingerprint condition;
    bool value;
  };
  struct KnownResidues {
    Fingerprint value;
    ModularSet set;
  };
  struct Mark {
    size_t facts, bounds, truths, residues;
  };

  // engine.cc
  void clear_caches();
  void learn(const Expr& condition, bool value);
  void learn_ge0(Linear linear);
  void learn_nonzero(const Linear& linear);
  void learn_residue(const Expr& a, const Expr& b);
  ConstIntBound known_bound(Fingerprint terms) const;
  std::optional<bool> known_truth(Fingerprint condition) const;
  /// Returns null for a variable without facts.
  const VarInfo* info(const NodeBase* var) const;
  const VarInfo* info(const Expr& var) const { return info(var.get()); }
  void set_info(const Ref<Var>& var, VarInfo info);

  // bounds_of.cc
  ConstIntBound compute_bound(const Expr& e);
  ConstIntBound call_bound(const Call& call, const Expr& e);
  ConstIntBound sum_bound(const Linear& linear);
  ModularSet compute_residues(const Expr& e);
  ModularSet call_residues(const Call& call, const Expr& e);
  ModularSet known_residues(Fingerprint value) const;

  // quotient_bound.cc
  class QuotientBound;
  ConstIntBound quotient_bound(const FloorDiv& div);

  // simplify.cc
  Expr compute(const Expr& e);
  Expr decided(const Expr& e);
  Expr rebuild(const Expr& e);
  Expr simplify_cast(const Expr& e);
  bool fits_type(const Expr& e, DataType type);
  Expr narrowed(const Expr& e, DataType type);
  Expr simplify_let(const Expr& e);
  Expr simplify_call(const Expr& e);
  Expr simplify_wrapping(const Expr& e);
  bool reads_data(const Expr& e);
  /// Whether int32 and int64 arithmetic of the expression may wrap: it uses loaded values, and is not an index.
  bool wraps(const Expr& e) { return value_mode_ && reads_data(e); }

  // simplify_index.cc
  Expr simplify_index(const Expr& e);
  void collect(const Expr& e, int64_t scale, Linear& out);
  void collect_flat(const Expr& e, int64_t scale, Linear& out);
  void collect_product(const Expr& a, const Expr& b, int64_t scale, Linear& out);
  Linear compute_linear(const Expr& e);
  Linear atom_of(const Expr& atom);

  // divide_constant.cc
  Linear divide(Linear dividend, int64_t divisor, DataType type);
  Linear modulo(Linear dividend, int64_t divisor, DataType type);
  Linear residue(const Linear& dividend, int64_t divisor, bool merge);
  Linear quotient_atom(const Linear& dividend, int64_t divisor, DataType type);
  Linear remainder_atom(const Linear& dividend, int64_t divisor, DataType type);
  bool stays_inside(const Linear& sum, DataType type, const Linear& dividend = Linear::failed());
  std::pair<__int128, __int128> ends_of(const Linear& sum, DataType type);
  struct Ends {
    bool low, high;
  };
  Ends known_ends(const Expr& e);
  std::optional<Linear> line_of(const Linear& sum, const std::function<int64_t(int64_t)>& f);

  // divide_symbolic.cc
  struct Factored;
  Linear divided(Linear dividend, const Expr& divisor, DataType type, bool quotient);
  Linear divide_symbolic(const Linear& dividend, const Expr& divisor, DataType type, bool quotient);
  bool may_negate(const Linear& sum, DataType type);
  bool divide_by_factor(const Expr& atom, Fingerprint factor, Expr* rest);
  std::optional<Factored> factored(const Linear& sum, DataType type);
  Linear take_multiples(Linear& dividend, const Linear& divisor, const Factored& parts);
  void take_sums(Linear& dividend, const Linear& divisor, Linear& whole);
  Linear cancel_factors(Linear& dividend, Factored& divisor);
  Linear without_remainders(const Linear& dividend, const Linear& divisor, const Factored& parts);
  Linear truncating(const Expr& e);
  Linear truncated(Linear dividend, const Expr& divisor, DataType type, bool quotient);
  Linear truncated_atom(Linear dividend, const Expr& divisor, DataType type, bool quotient);

  // prove_cases.cc
  bool not_negative_by_operands(const Linear& goal, int& sums);
  bool not_negative_in_all_orders(const Expr& e, int& orders);

  // recombine.cc
  void recombine(Linear& sum);
  bool join_quotient_and_remainder(Linear& sum);
  bool join_general(Linear& sum);
  bool exchange_general(Linear& sum);
  bool join_quotients(Linear& sum);
  bool join_rounding(Linear& sum);
  bool join_remainders(Linear& sum);
  std::optional<Linear> joined_quotients(Linear x, Linear y, const Expr& divisor, bool add);
  bool merge_selects(Linear& sum);
  bool exchange_quotient_and_remainder(Linear& sum);
  void drop_exact_quotients(Linear& sum);
  bool drop_exact_quotient(Linear& sum);
  void distribute_products(Linear& sum);

  // simplify_compare.cc
  Expr simplify_compare(const Expr& e);
  Expr simplify_order(const Expr& a, const Expr& b, bool or_equal);
  void reduce_order(Linear& terms, int64_t& limit, bool& or_equal);
  Expr as_given_sides(Linear left, Linear right, bool or_equal, const Expr& a, const Expr& b);
  Expr simplify_equality(const Expr& a, const Expr& b, bool negated);
  Expr simplify_logic(const Expr& e);
  Expr simplify_not(const Expr& e);
  Expr simplify_min_max(const Expr& e);
  Expr simplify_select(const Expr& condition, const Expr& true_value, const Expr& false_value, const Expr& original);

  // apply_rules.cc
  Expr rewritten(const Expr& e);

  // simplify_vector.cc
  Expr simplify_vector(const Expr& e);
  Expr lift(Kind kind, const Expr& a, const Expr& b);
  Expr compare_lanes(Kind kind, const Expr& a, const Expr& b);

  // prove_plain.cc
  struct PlainSum {
    struct Item {
      const NodeBase* var;
      int64_t coeff;
    };
    std::array<Item, 12> terms;
    size_t size = 0;
    int64_t constant = 0;
    __int128 low = 0, high = 0;
    bool exact = false;

    bool add(const Expr& e, int64_t scale);
    bool difference(const Engine& engine, const Expr& a, const Expr& b);
  };
  /// The interval of an expression with constant factors and divisors, and its values where all variables are at their
  /// minimum and at their maximum.
  struct Extremes {
    int64_t least, most, at_least, at_most;
  };
  bool runs_freely() const;
  bool extremes(const Expr& e, Extremes& found, bool& exact) const;
  bool extremes_of_binary(const Expr& e, Extremes& found, bool& exact) const;
  std::optional<bool> plain_order(const Expr& a, const Expr& b, bool or_equal) const;
  std::optional<bool> plain_equality(const Expr& a, const Expr& b) const;

  // prove.cc
  using Settles = std::function<bool(const Linear&)>;
  using Holds = std::function<bool(Linear)>;
  bool search(const Linear& goal, int depth, int& budget);
  Linear with_atom_replaced(const Linear& goal, const Term& term, const Expr& value);
  bool prove_by_select(const Linear& goal, const Term& term, const Holds& holds);
  bool prove_by_min_max_operand(const Linear& goal, const Term& term, const Holds& holds);
  bool prove_by_min_max_case(const Linear& goal, const Term& term, const Holds& holds);
  bool any_stated_fact(const Term& term, const Settles& settles);
  bool any_fact_about(const Term& term, const Settles& settles);
  bool any_fact_of_product(const Term& term, const Mul& mul, const Settles& settles);
  bool any_fact_of_quotient(const Term& term, const FloorDiv& div, const Settles& settles);
  bool any_fact_of_remainder(const Term& term, const Expr& dividend, const Expr& divisor, bool floors,
                             const Settles& settles);
  bool any_fact_of_element(const Term& term, const Linear& goal, const Settles& settles);
  bool any_mccormick_bound(const Term& term, const Mul& mul, const Settles& settles);
  bool cancels_after_expanding_remainders(Linear sum);
  bool cancels_after_expanding_quotients(const Linear& sum);
  bool expand_first_remainder(Linear& sum);
  std::optional<Linear> multiply_by_divisor(const Linear& goal, const Term& term);
  Linear multiplied(const Linear& fact, const Expr& factor);

  NodeTable<VarInfo> vars_;
  NodeTable<Elements> elements_;  ///< by the data variable of the buffer
  std::vector<Linear> facts_;     ///< each is >= 0
  size_t cases_ = 0;  ///< the last `cases_` facts hold only in one case of a proof: bound() must ignore them
  std::vector<KnownBound> bounds_;
  std::vector<KnownTruth> truths_;
  std::vector<KnownResidues> residues_;
  std::vector<Mark> marks_;
  bool value_mode_ = false;
  bool has_values_ = false;  ///< a variable stands for an expression, or has one value only
  int rewrites_ = 0;         ///< rules applied so far to the current expression

  Fingerprints fingerprints_, value_fingerprints_{true};
  NodeTable<Expr> simplified_, values_;
  NodeTable<Linear> linears_;
  NodeTable<ConstIntBound> bounds_of_, value_bounds_of_;
  NodeTable<bool> reads_data_;
  NodeTable<ModularSet> residues_of_;
};

}  // namespace tilewright::arith
