// Sets of integers as intervals with symbolic ends: what values an expression takes while some variables run over
// their domains and the others stay what they are; and what region of a buffer loops touch.
//
//   Domains loops{{i, IntSet::of_range(...)}};
//   eval_set(i * 4 + n, loops, analyzer)           // [n, n + 60] for i in [0, 16)
//   relax_region(region, loops, analyzer)          // the box that holds region for all iterations
#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "arith/analyzer.h"

namespace tilewright::arith {

/// All integers from min to max, both included. A null end is open.
struct IntSet {
  Expr min, max;
  bool is_nothing = false;

  static IntSet nothing() { return {{}, {}, true}; }
  static IntSet everything() { return {}; }
  static IntSet point(const Expr& e) { return {e, e, false}; }
  static IntSet interval(const Expr& min, const Expr& max) { return {min, max, false}; }
  /// [min, min + extent): nothing when the extent is a constant below 1.
  static IntSet of_range(const Ref<Range>& range);

  bool is_everything() const { return !is_nothing && !min.defined() && !max.defined(); }
  bool is_point() const { return min.defined() && min == max; }
  bool is_bounded() const { return !is_nothing && min.defined() && max.defined(); }
  /// Returns the set as a range; null if an end is open or the set is empty.
  Ref<Range> to_range(Analyzer& analyzer) const;
};

/// Variables that run, each over its set; a set may mention other variables of the map.
using Domains = std::unordered_map<NodeRef, IntSet>;

IntSet unite(const IntSet& a, const IntSet& b, Analyzer& analyzer);
IntSet intersect(const IntSet& a, const IntSet& b, Analyzer& analyzer);
/// Every member of `inner` is proved to be one of `outer`.
bool proves_subset(const IntSet& inner, const IntSet& outer, Analyzer& analyzer);

/// A set that holds every value `e` takes while `predicate` (null: nothing) holds. Its ends mention no variable of
/// `domains`.
IntSet eval_set(const Expr& e, const Domains& domains, Analyzer& analyzer, const Expr& predicate = {});

/// One set for each dimension; null extent stands for 1.
using Box = std::vector<IntSet>;
using Region = std::vector<Ref<Range>>;

Box box_of(const Region& region);
/// A box that holds `region` for all values of the variables: an upper bound.
Box relax_region(const Region& region, const Domains& domains, Analyzer& analyzer, const Expr& predicate = {});
Box unite(const Box& a, const Box& b, Analyzer& analyzer);
Box intersect(const Box& a, const Box& b, Analyzer& analyzer);
bool proves_subset(const Box& inner, const Box& outer, Analyzer& analyzer);
/// Ranges of the box, clipped to the buffer's shape; dimensions with an open end become the whole dimension.
Region clip_to_shape(const Box& box, const std::vector<Expr>& shape, Analyzer& analyzer);

}  // namespace tilewright::arith
