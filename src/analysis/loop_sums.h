// Represents index expressions as integer linear combinations of loop variables, to estimate strides, footprints and
// costs of accesses. Features and the analytical cost model read thousands of programs per second this way: no nodes
// are built, and nothing is proved. Passes that transform programs use the Analyzer of arith/ instead.
//
//   LoopSums sums;
//   uint32_t i = sums.add_loop(0, sums.constant(0), 16);       // for i in range(16), the outermost loop
//   sums.bind(i_var, sums.of_atom(i));
//   LoopSum index = sums.read(i_var * 4 + 2);                  // 4 i + 2
//   sums.bounds(index, kAllLevels);                            // [2, 62]
//   sums.bounds(index, 0);                                     // [2, 2]: all loops at their first iterations
//
// Floor divisions and remainders by constants are simplified if loop ranges allow it, as after split and fuse. Other
// expressions that are not linear become opaque atoms, of which only the loops that they depend on are known.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "ir/expr.h"

namespace tilewright::analysis {

/// The integers from lo to hi, both included. Sums and products saturate at +-kFar, which means "unbounded".
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
  std::array<Term, kMaxTerms> terms;  ///< sorted by atom; coefficients are not 0
  int count = 0;
  Span64 constant;  ///< constant term; an interval if the index is a vector, whose lanes it spans

  bool is_constant() const { return count == 0 && constant.lo == constant.hi; }
  const Term* begin() const { return terms.data(); }
  const Term* end() const { return terms.data() + count; }
  friend bool operator==(const LoopSum& a, const LoopSum& b);
};

/// Number of integer operations that computing a sum takes.
struct IndexWork {
  int add = 0, mul = 0, div = 0, cmp = 0;
};

/// A set of loops, with one bit per nesting depth. Depths from 63 on share a bit.
using Levels = uint64_t;
inline Levels level_bit(int depth) { return Levels{1} << (depth < 63 ? depth : 63); }
inline constexpr Levels kAllLevels = ~Levels{0};
/// Returns the loops at `depth` and deeper.
inline Levels levels_from(int depth) { return kAllLevels << (depth < 63 ? depth : 63); }

class LoopSums {
 public:
  /// Opens a loop at a nesting depth, in place of the previous loop of that depth. `extent`: -1 if unknown. Returns its
  /// atom.
  uint32_t add_loop(int depth, const LoopSum& min, int64_t extent);
  /// Sets the value of a variable for later calls of read().
  void bind(const NodeRef& var, const LoopSum& value) { bound_[var.get()] = value; }
  /// Declares 0 <= var < extent, even if the range of the variable's value is larger.
  void limit(const NodeRef& var, int64_t extent) { limits_[var.get()] = extent; }

  static LoopSum constant(int64_t value);
  static LoopSum of_atom(uint32_t atom);
  /// Returns the expression as a sum.
  LoopSum read(const Expr& e);
  /// Returns whether a condition always or never holds; nothing if that is unknown.
  std::optional<bool> decide(const Expr& condition);

  /// Returns the range of values while the loops `free` run and all others are at their first iterations.
  Span64 bounds(const LoopSum& sum, Levels free) const;
  /// Returns the loops that the sum, or the variables in `e`, depend on.
  Levels levels(const LoopSum& sum) const;
  Levels levels(const NodeRef& e) const;
  /// Counts the operations of the sum, with only those divisions and comparisons that depend on one of the loops
  /// `within`.
  IndexWork work(const LoopSum& sum, Levels within = kAllLevels) const;
  /// Returns the stride of the loop: by how much one iteration advances the sum. An estimate if is_even() is false.
  int64_t step_of(const LoopSum& sum, uint32_t loop) const;
  /// Whether all iterations of the loop advance the sum by the same stride.
  bool is_even(const LoopSum& sum, uint32_t loop) const;
  /// The terms that depend on none of the loops `free`, and those that depend on no other loops.
  struct Parts {
    LoopSum outer, inner;  ///< `inner` includes the constant
  };
  /// Splits the sum into such parts. Returns nothing if a term depends on loops of both kinds.
  std::optional<Parts> part(const LoopSum& sum, Levels free) const;

  /// Returns a + b * scale.
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
  LoopSum min_or_max(const LoopSum& a, const LoopSum& b, bool is_max);
  /// Writes `a` as quotient * divisor + remainder, where 0 <= constant of the remainder < divisor and no coefficient of
  /// the remainder is a multiple of the divisor.
  void split(const LoopSum& a, int64_t divisor, LoopSum& quotient, LoopSum& remainder) const;
  void join_quotients(LoopSum& sum);
  const LoopSum* joined(const Atom& div, const Atom& mod) const;
  Span64 bounds_of(const Atom& atom, Levels free) const;

  std::vector<Atom> atoms_;
  std::vector<LoopSum> sums_;  ///< operands of atoms
  std::unordered_map<const NodeBase*, LoopSum> bound_;
  std::unordered_map<const NodeBase*, int64_t> limits_;
};

}  // namespace tilewright::analysis
