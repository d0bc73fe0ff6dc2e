// Index expressions as sums of multiples of loop variables, as plain numbers: for those who judge thousands of programs
// a second by how they walk through memory and need no proofs. The Analyzer of arith/ is for those who transform.
//
//   LoopSums sums;
//   uint32_t i = sums.add_loop(0, sums.constant(0), 16);       // for i in range(16), the outermost loop
//   sums.bind(i_var, sums.of_atom(i));
//   LoopSum index = sums.read(i_var * 4 + 2);                  // 4 i + 2
//   sums.bounds(index, kAllLevels);                            // [2, 62]; while that loop is at its start: [2, 2]
//
// Divisions by constants split where the ranges of the loops allow it, as they do after split and fuse; what is no such
// sum becomes an atom of which only the loops it depends on are known. Total over all expressions; nothing is built.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "ir/expr.h"

namespace tilewright::analysis {

/// Integers from lo to hi, both included. Beyond kFar nothing is known; sums and products stay within it.
struct Span64 {
  static constexpr int64_t kFar = int64_t{1} << 56;
  int64_t lo = 0, hi = 0;
  bool is_known() const { return lo > -kFar && hi < kFar; }
};

struct LoopSum {
  static constexpr int kMaxTerms = 12;
  struct Term {
    uint32_t atom = 0;
    int64_t coeff = 0;
    friend bool operator==(const Term&, const Term&) = default;
  };
  std::array<Term, kMaxTerms> terms;  ///< by ascending atom, without zeros
  int count = 0;
  Span64 constant;  ///< an interval: the lanes of a vector

  bool is_constant() const { return count == 0 && constant.lo == constant.hi; }
  const Term* begin() const { return terms.data(); }
  const Term* end() const { return terms.data() + count; }
  friend bool operator==(const LoopSum& a, const LoopSum& b);
};

/// Operations on integers that compute a sum.
struct IndexWork {
  int add = 0, mul = 0, div = 0, cmp = 0;
};

/// Loops by their depth, one bit each; those from depth 63 on share a bit.
using Levels = uint64_t;
inline Levels level_bit(int depth) { return Levels{1} << (depth < 63 ? depth : 63); }
inline constexpr Levels kAllLevels = ~Levels{0};
/// The loops from a depth on.
inline Levels levels_from(int depth) { return kAllLevels << (depth < 63 ? depth : 63); }

class LoopSums {
 public:
  /// A loop around all that is read until another of this depth is added; an extent of -1 is not known.
  uint32_t add_loop(int depth, const LoopSum& min, int64_t extent);
  /// Sets the value of a variable from now on.
  void bind(const NodeRef& var, const LoopSum& value) { bound_[var.get()] = value; }
  /// Declares 0 <= var < extent, even if the range of the variable's value is larger.
  void limit(const NodeRef& var, int64_t extent) { limits_[var.get()] = extent; }

  static LoopSum constant(int64_t value);
  static LoopSum of_atom(uint32_t atom);
  LoopSum read(const Expr& e);
  /// Whether a condition on sums always or never holds.
  std::optional<bool> decide(const Expr& condition);

  /// Returns the range of values while the loops `free` run and the others are at their starts.
  Span64 bounds(const LoopSum& sum, Levels free) const;
  Levels levels(const LoopSum& sum) const;
  /// The levels of the variables in it.
  Levels levels(const NodeRef& e) const;
  /// The divisions and extrema that depend on one of these loops.
  IndexWork work(const LoopSum& sum, Levels within = kAllLevels) const;
  /// Returns the growth of the sum by one step of the loop; an estimate if the sum is no multiple of its variable.
  int64_t step_of(const LoopSum& sum, uint32_t loop) const;
  /// Whether each step of the loop is the same.
  bool is_even(const LoopSum& sum, uint32_t loop) const;
  /// The terms that depend on none of the loops `free`, and those that depend on no others; nothing where a term
  /// depends on both.
  struct Parts {
    LoopSum outer, inner;  ///< including the constant
  };
  std::optional<Parts> part(const LoopSum& sum, Levels free) const;

  LoopSum add(const LoopSum& a, const LoopSum& b, int64_t scale);
  LoopSum scaled(const LoopSum& a, int64_t factor) const;

 private:
  enum class Form : uint8_t { kLoop, kFloorDiv, kFloorMod, kMin, kMax, kOpaque };
  struct Atom {
    Form form;
    int depth = 0;          ///< depth of a loop
    int64_t extent = 0;     ///< extent of a loop
    int64_t divisor = 0;    ///< divisor of a division
    uint32_t a = 0, b = 0;  ///< operands, in sums_
    Levels levels = 0;
    const NodeBase* node = nullptr;  ///< node that an opaque atom stands for
  };
  uint32_t intern(Atom atom, const LoopSum* a, const LoopSum* b);
  LoopSum opaque(const NodeRef& node, Levels levels);
  LoopSum floor_div(const LoopSum& a, int64_t divisor);
  LoopSum floor_mod(const LoopSum& a, int64_t divisor);
  LoopSum extremum(const LoopSum& a, const LoopSum& b, bool greatest);
  /// q * c + r, where q is a sum, 0 <= constant of r < c and no coefficient of r is a multiple of c.
  void split(const LoopSum& a, int64_t divisor, LoopSum& quotient, LoopSum& rest) const;
  void join_quotients(LoopSum& sum);
  const LoopSum* joined(const Atom& div, const Atom& mod) const;
  Span64 bounds_of(const Atom& atom, Levels free) const;

  std::vector<Atom> atoms_;
  std::vector<LoopSum> sums_;  ///< operands of atoms
  std::unordered_map<const NodeBase*, LoopSum> bound_;
  std::unordered_map<const NodeBase*, int64_t> limits_;
};

}  // namespace tilewright::analysis
