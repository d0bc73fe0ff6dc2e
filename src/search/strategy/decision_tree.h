// The points of a space that were sampled already, as a tree with a branch for each decision.
//
// The alternatives of a sampling step are known once the space has reached it. Points are then sampled without
// replacement, so a small space is enumerated without repetition, and its end is noticed. Steps whose alternatives are
// not listed (tiles of a loop) have a branch for each alternative that was seen, and are never exhausted.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "search/tune_context.h"

namespace tilewright::search {

/// Outcome of one sampling step.
struct Branch {
  std::vector<double> weights;  ///< weights of the alternatives, by number; empty if they are not listed
  schedule::Value decision;     ///< none if unknown: the space refused before the decision
};

/// The decisions of a schedule.
std::vector<Branch> branches_of(const Trace& trace);
/// The weights of the alternatives of a sampling step; empty where they are not listed.
std::vector<double> weights_of(const schedule::Instruction& instruction);
/// The text of a decision, such as "[4,16,]".
std::string text_of(const schedule::Value& decision);

class DecisionTree {
 public:
  /// Decisions of the first sampling steps, as far as their alternatives are known; the others are to be sampled.
  std::vector<schedule::Value> choose(Random& random) const;
  /// False where the point was taken before.
  bool take(const std::vector<Branch>& path);
  /// The decisions, of which those from the first invalid one on are replaced by ones that lead to a new point. Nothing
  /// where they are known to lead to a point that was taken.
  std::optional<std::vector<schedule::Value>> fitted(std::vector<schedule::Value> decisions, Random& random) const;
  bool is_exhausted() const { return root_.is_done; }

 private:
  struct Node {
    std::vector<double> weights;
    std::map<std::string, std::unique_ptr<Node>> children;
    bool is_done = false;
    bool has_open_way() const;
    bool has_way(const schedule::Value& decision) const;
  };
  /// Adds decisions behind those that lead to the node.
  static void choose(const Node* node, Random& random, std::vector<schedule::Value>& decisions);
  Node root_;
};

}  // namespace tilewright::search
