#include "search/strategy/decision_tree.h"

#include <fmt/format.h>

#include "schedule/primitives/sample_categorical.h"
#include "support/ranges.h"

namespace tilewright::search {

using schedule::Value;

std::vector<double> weights_of(const schedule::Instruction& instruction) {
  const auto* sample = instruction.as<schedule::SampleCategorical>();
  return sample ? sample->probs : std::vector<double>();
}

std::vector<Branch> branches_of(const Trace& trace) {
  std::vector<Branch> path;
  std::vector<Value> decisions = trace.decisions();
  std::vector<size_t> samples = trace.sampling_steps();
  for (size_t i : indices_of(samples)) path.push_back({weights_of(trace[samples[i]].instruction), decisions[i]});
  return path;
}

std::string text_of(const Value& decision) {
  if (const auto* list = decision.as<Value::List>()) {
    std::string text = "[";
    for (const Value& item : *list) text += text_of(item) + ",";
    return text + "]";
  }
  const auto* number = decision.as<int64_t>();
  return number ? fmt::format("{}", *number) : std::string("?");
}

bool DecisionTree::Node::has_open_way() const {
  if (weights.empty()) return true;
  for (size_t way : indices_of(weights)) {
    if (weights[way] <= 0) continue;
    auto* child = find_value(children, std::to_string(way));
    if (!child || !(*child)->is_done) return true;
  }
  return false;
}

bool DecisionTree::Node::has_way(const Value& decision) const {
  const auto* way = decision.as<int64_t>();
  return weights.empty() || (way && *way >= 0 && *way < static_cast<int64_t>(weights.size()) && weights[*way] > 0);
}

void DecisionTree::choose(const Node* node, Random& random, std::vector<Value>& decisions) {
  while (!node->weights.empty() && !node->is_done) {
    std::vector<double> open = node->weights;
    for (size_t way : indices_of(open)) {
      auto* child = find_value(node->children, std::to_string(way));
      if (child && (*child)->is_done) open[way] = 0;
    }
    size_t way = random.categorical(open);
    decisions.emplace_back().data = static_cast<int64_t>(way);
    auto* child = find_value(node->children, std::to_string(way));
    if (!child) return;
    node = child->get();
  }
}

std::vector<Value> DecisionTree::choose(Random& random) const {
  std::vector<Value> decisions;
  choose(&root_, random, decisions);
  return decisions;
}

std::optional<std::vector<Value>> DecisionTree::fitted(std::vector<Value> decisions, Random& random) const {
  const Node* node = &root_;
  size_t fit = 0;
  for (; fit < decisions.size() && !node->is_done && node->has_way(decisions[fit]); ++fit) {
    auto* child = find_value(node->children, text_of(decisions[fit]));
    if (!child) return decisions;
    node = child->get();
  }
  if (node->is_done) return std::nullopt;
  decisions.resize(fit);
  choose(node, random, decisions);
  return decisions;
}

bool DecisionTree::take(const std::vector<Branch>& path) {
  std::vector<Node*> nodes{&root_};
  for (const Branch& branch : path) {
    // A decision sampled before a refusal that is unknown does not determine the other alternatives.
    if (branch.decision.is_none()) return true;
    Node* node = nodes.back();
    node->weights = branch.weights;
    std::unique_ptr<Node>& child = node->children[text_of(branch.decision)];
    if (!child) child = std::make_unique<Node>();
    nodes.push_back(child.get());
  }
  if (nodes.back()->is_done) return false;
  nodes.back()->is_done = true;
  for (size_t i = nodes.size() - 1; i-- > 0 && !nodes[i]->has_open_way();) nodes[i]->is_done = true;
  return true;
}

}  // namespace tilewright::search
