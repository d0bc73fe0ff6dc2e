// The normal form of index expressions: a sum of integer multiples of atoms, plus a constant.
//
// Atoms are expressions that are no sums themselves: variables, loads, floordiv and floormod that do not split,
// products of two unknowns, ... They are identified by fingerprint and kept in the order of first appearance, so the
// text of a simplified expression depends on its own text only.
#pragma once

#include <functional>
#include <limits>
#include <optional>
#include <vector>

#include "arith/bound.h"
#include "arith/fingerprint.h"

namespace tilewright::arith {

struct Term {
  Expr atom;  ///< simplified; its type may have fewer bits than that of the sum
  int64_t coeff = 0;
  Fingerprint fp;  ///< fingerprint of the atom
};

struct Linear {
  std::vector<Term> terms;
  int64_t constant = 0;
  /// A coefficient or the constant did not fit 64 bits, or is -2^63, whose negative does not; the value is meaningless.
  bool bad = false;

  static Linear of_int(int64_t value) {
    Linear result;
    result.constant = value;
    result.bad = value == std::numeric_limits<int64_t>::min();
    return result;
  }
  static Linear failed() {
    Linear result;
    result.bad = true;
    return result;
  }
  static Linear of_atom(Expr atom, Fingerprint fp) {
    Linear result;
    result.terms.push_back({std::move(atom), 1, fp});
    return result;
  }
  bool is_constant() const { return terms.empty() && !bad; }
  bool is_zero() const { return is_constant() && constant == 0; }
  /// The atom when the form is exactly one atom.
  const Term* single_atom() const {
    return terms.size() == 1 && constant == 0 && terms[0].coeff == 1 && !bad ? &terms[0] : nullptr;
  }
  const Term* find(Fingerprint fp) const;

  void add(const Expr& atom, Fingerprint fp, int64_t coeff);
  void add_constant(int64_t value, int64_t scale = 1);
  void add(const Linear& other, int64_t scale = 1);
  /// The term gives place to scale * other; terms with coefficient 0 go.
  void replace_term(size_t at, const Linear& other, int64_t scale);
  void scale(int64_t factor);
  /// Divides coefficients and constant, which are all multiples of `divisor`.
  void divide_exactly(int64_t divisor);
  /// The gcd of the coefficients, 0 without terms.
  int64_t content() const;
  Fingerprint fingerprint() const;
  /// Returns the fingerprint of the sum without the constant.
  Fingerprint terms_fingerprint() const;
};

Linear operator-(const Linear& a, const Linear& b);

/// Whether the variable runs over all of [0, n) for an n above the divisor, and nothing more is known of it.
using RunsBeyond = std::function<bool(const Expr& variable, int64_t divisor)>;
/// Returns the simplified form of a sum of variables with constant factors, which is the same for every analyzer that
/// knows no value of these variables. Null for other expressions. A quotient or remainder of a variable that runs
/// beyond the divisor is kept as an atom if the sum has one term per variable.
Expr simplified_sum(const Expr& e, const RunsBeyond& runs_beyond = {});

/// Whether the integer type holds the value.
bool fits(int64_t value, DataType type);

/// An operator of two constants whose result leaves the type: it wraps, which no sum over the integers may overlook.
bool is_unfoldable(const Expr& e);

/// The expression in type `type`, to which atoms of smaller types are cast. Nothing when a coefficient does not fit the
/// type.
std::optional<Expr> to_expr(const Linear& linear, DataType type);

/// Whether both are the same tree (of integer operators, variables and constants; other nodes by identity).
bool identical(const Expr& a, const Expr& b);

}  // namespace tilewright::arith
