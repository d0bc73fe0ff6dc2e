// Properties of indices for code generators: the parts that change in each loop, intervals, alignment, and how the
// lanes of an access are arranged in memory.
//
// An index is taken apart into c0 + c1 * x1 + c2 * x2 + ..., the terms of outer loops first. With the address built in
// this order, ((data + outer) + inner) + c0, loop-invariant parts leave their loops, rows of a register tile share one
// pointer, and the constants become displacements of the instructions.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "ir/stmt.h"
#include "target/target.h"

namespace tilewright::codegen {

/// Range of an integer, ends included.
struct Interval {
  int64_t low, high;
};

/// Whether variables of the type are held at 64 bits, where addresses are computed.
bool is_held_at_64_bits(DataType type);
/// Whether 64-bit arithmetic on the operands gives the value: false for unsigned and small integers, which wrap.
bool has_no_overflow(const Expr& e);

class IndexAnalysis {
 public:
  /// Defines `v` inside of the loops entered so far; its interval is that of its type.
  void define(const Ref<Var>& v);
  void define(const Ref<Var>& v, Interval interval);
  /// Defines `v` as another name for `value`.
  void define(const Ref<Var>& v, const Expr& value);
  /// `unique`: memory that no other variable points to.
  void define_pointer(const Ref<Var>& v, int64_t alignment, bool unique);
  /// Copies what `elsewhere` knows about `v`.
  void define(const Ref<Var>& v, const IndexAnalysis& elsewhere);

  void enter_loop() { ++depth_; }
  void leave_loop() { --depth_; }
  int depth() const { return depth_; }

  bool is_defined(const Ref<Var>& v) const { return facts_.contains(v); }
  bool is_unique(const Ref<Var>& v) const { return facts_.at(v).unique; }
  /// The alignment of a pointer in bytes; 0 where nothing is known.
  int64_t alignment_of(const Ref<Var>& v) const;
  /// The largest power of two, up to 64, that divides the address of an access.
  int64_t alignment_of(const Buffer& buffer, const Expr& index) const;

  std::optional<Interval> interval_of(const Expr& e) const;
  /// The interval of the loop's variable.
  Interval interval_of(const For& loop) const;
  bool is_nonnegative(const Expr& e) const;

  struct Term {
    Expr value;
    int64_t factor;
    int depth;  ///< depth of the innermost loop that the value depends on
  };
  struct Linear {
    std::vector<Term> terms;  ///< the outermost first
    int64_t constant = 0;
    bool may_wrap = false;  ///< intermediate products or sums may overflow 64 bits although the index does not
  };
  /// Returns the index in scalar elements of the buffer. Factors and the constant are modulo 2^64, as addresses are.
  Linear linear(const Buffer& buffer, const Expr& index) const;

 private:
  struct Fact {
    int depth = 0;  ///< loops around the definition
    std::optional<Interval> interval;
    int64_t alignment = 0;
    bool unique = false;
  };
  int depth_of(const Expr& e) const;
  void collect(const Expr& e, uint64_t factor, Linear& into) const;

  std::unordered_map<NodeRef, Fact> facts_;
  int depth_ = 0;
};

/// How the lanes of an access are arranged in memory.
struct LaneLayout {
  enum Form : uint8_t {
    kContiguous,
    kReversed,  ///< contiguous, the last lane first
    kSame,      ///< one element for all lanes
    kStrided,   ///< a constant number of elements apart
    kScattered,
  } form;
  Expr first;          ///< index of the first element in memory; of kStrided, of the first lane
  int64_t stride = 0;  ///< for kStrided
};
LaneLayout lane_layout(const Buffer& buffer, const Expr& index);

/// Returns each lane's index as a scalar expression if the indices are contiguous loads, as in
/// X[J[p * 16:p * 16 + 16]]: loading an index is cheaper than extracting it from a vector. Empty otherwise.
std::vector<Expr> loaded_indices(const Expr& index);

/// Whether to load a strided access as whole registers and drop the elements between.
bool loads_with_gaps_pay(const Target& target, DataType element, int lanes, int64_t stride);

}  // namespace tilewright::codegen
