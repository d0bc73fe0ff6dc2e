// Which points of a space were drawn already: a tree with a branch for each decision.
//
// The ways of a draw are known once the space has come to it. Points are then chosen without those that are taken, so
// that a small space is gone through without a single repetition, and its end is noticed. Draws whose ways are not
// listed (tiles of a loop) have a branch for each way that was seen, and never count as gone through.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "search/tune_context.h"

namespace tilewright::search {

/// What happened at one draw.
struct Branch {
  std::vector<double> weights;  ///< of the ways, by number; empty where they are not listed
  schedule::Value decision;     ///< none where it is not known: the space refused on the way
};

/// What a schedule has drawn.
std::vector<Branch> branches_of(const Trace& trace);
/// The weights of the ways of a draw; empty where they are not listed.
std::vector<double> weights_of(const schedule::Instruction& instruction);
/// Of a decision, such as "[4,16,]".
std::string text_of(const schedule::Value& decision);

class DecisionTree {
 public:
  /// Decisions of the first draws, as far as their ways are known; the others are to be drawn.
  std::vector<schedule::Value> choose(Random& random) const;
  /// False where the point was taken before.
  bool take(const std::vector<Branch>& path);
  /// These decisions, of which those from the first on that is no way of its draw give way to ones that lead to a new
  /// point. Nothing where they are known to lead to a point that was taken.
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
