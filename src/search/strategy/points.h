// Points of a space that can be measured: sampled at random, varied, made again from their traces. None comes twice.
//
// A space whose steps are always the same is one schedule whose trace is done again with other decisions, from the
// first one that differs, on several threads; a FunctionSpace is run anew. What comes out follows from the streams that
// are given and from what was made before, whichever threads do it.
#pragma once

#include <functional>
#include <unordered_set>

#include "search/module_equality.h"
#include "search/space/function_space.h"
#include "search/strategy/candidates.h"
#include "search/strategy/decision_tree.h"
#include "search/strategy/thread_bounds.h"
#include "support/ranges.h"

namespace tilewright::search {

struct Point {
  Schedule schedule;  ///< postprocessed
  Hash128 hash;       ///< hash of its program
  size_t space = 0;   ///< space of the point
  std::vector<std::string> decisions{};

  /// Whether it differs in one decision.
  bool is_neighbor_of(const Point& other) const;
};

/// A change of a point: the trace with another decision.
struct Variation {
  const Point* of;
  size_t sample;  ///< number among its sampling steps
  schedule::Value decision;
};

class Points {
 public:
  using Stream = std::function<Random(size_t)>;

  /// `context` has been initialized; its strategy is not used.
  void start(const TuneContext& context, Schedules design_spaces, ModuleEquality equality);
  /// The design spaces with the decisions that they come with.
  std::vector<Point> as_they_are();
  /// At random, at most `count` that are new; the i-th follows from stream(i).
  Result<std::vector<Point>> sample(size_t count, const Stream& stream);
  Result<std::vector<Point>> vary(const std::vector<Variation>& variations, const Stream& stream);
  /// By a mutator of the space: what it makes of each of these.
  Result<std::vector<Point>> mutate(const std::vector<const Point*>& parents, const Stream& stream);
  /// From other traces of this program, or of one of another shape: a trace that cannot be done as it stands lends its
  /// decisions.
  Result<std::vector<Point>> remake(const std::vector<Trace>& traces, const Stream& stream);

  /// Whether functions are run anew for points of some space.
  bool reruns() const {
    return any_of(functions_, [](const FunctionSpace* known) { return known; });
  }
  bool has_mutators() const { return !mutators_.empty(); }
  /// Whether all points were sampled, or too many tries in a row gave nothing new.
  bool is_exhausted() const;
  SampleCounts counts() const;
  Refusals& refusals() { return refusals_; }
  const Refusals& refusals() const { return refusals_; }

  /// Equality by which points are the same.
  ModuleEquality equality() const { return equality_; }

 private:
  struct Wish {
    size_t space = 0;
    const Schedule* from = nullptr;            ///< schedule whose steps are shared; null: that of the space
    std::optional<Trace> trace{};              ///< to be done
    std::vector<schedule::Value> decisions{};  ///< otherwise: of the first sampling steps
    size_t certain = 0;                        ///< decisions that are meant; those after them may give way
    Random random{};
    int64_t refused = 0;  ///< samples that were refused before this one was replayed
    std::optional<Schedule> made{};
    std::vector<Branch> path{};
  };
  Result<std::vector<Point>> make(std::vector<Wish> wishes);
  void replay(Wish& wish);
  Status rerun(Wish& wish);
  void keep(Wish& wish, std::vector<Point>& points);

  Ref<Module> module_;
  std::shared_ptr<const SpaceGenerator> generator_;  ///< generator that the functions belong to
  Schedules spaces_;
  std::vector<const FunctionSpace*> functions_;  ///< function of each space; null if its steps are replayed
  std::vector<DecisionTree> trees_;
  std::vector<ThreadBounds> bounds_;  ///< by space, of GPUs
  Postprocs postprocs_;
  Mutators mutators_;
  int num_threads_ = 1;
  ModuleEquality equality_ = ModuleEquality::kStructural;
  std::unordered_set<Hash128> known_;
  int64_t tries_ = 0, duplicates_ = 0, fruitless_ = 0, overdue_ = 0;
  Refusals refusals_;
};

/// Other decisions that a sampling step may take, near ones where they have a distance.
std::vector<schedule::Value> alternatives(const schedule::Step& sample);

}  // namespace tilewright::search
