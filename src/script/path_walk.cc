#include "script/path_walk.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <utility>

#include "ir/traverse.h"

namespace tilewright::script {
namespace {

class PathWalk {
 public:
  explicit PathWalk(const NodeRef& root) : node_(root) { chain_.push_back(root.get()); }
  void follow(std::string_view path) {
    if (path.starts_with("<root>")) path.remove_prefix(6);
    while (!path.empty()) {
      if (path[0] == '.') {
        size_t end = std::min(path.find_first_of(".[", 1), path.size());
        if (!field(path.substr(1, end - 1))) return;
        path.remove_prefix(end);
      } else if (path.starts_with("['")) {
        size_t end = path.find("']");
        if (end == std::string_view::npos || !item(path.substr(2, end - 2))) return;
        path.remove_prefix(end + 2);
      } else {
        size_t end = path.find(']');
        size_t index = 0;
        if (end == std::string_view::npos) return;
        std::from_chars(path.data() + 1, path.data() + end, index);
        if (!element(index)) return;
        path.remove_prefix(end + 1);
      }
    }
  }
  std::vector<const NodeBase*> take_chain() { return std::move(chain_); }

 private:
  struct Step {
    std::string key;
    std::vector<NodeRef> nodes;  // one node; a map entry has two: value, then key
  };
  template <class T>
  static void add(std::vector<Step>& steps, const T& value, std::string key = {}) {
    if constexpr (std::is_base_of_v<NodeRef, T>) {
      steps.push_back({std::move(key), {value}});
    } else if constexpr (requires { value.entries(); }) {
      for (const auto& [name, item] : value.entries()) add(steps, item, name);
    } else if constexpr (requires {
                           value.first;
                           value.second;
                         }) {
      if constexpr (std::is_base_of_v<NodeRef, std::remove_cvref_t<decltype(value.first)>>) {
        steps.push_back({std::move(key), {value.second, value.first}});
      } else {
        add(steps, value.second, value.first);
      }
    } else if constexpr (requires { value.begin()->defined(); } || requires { value.begin()->first; }) {
      for (const auto& item : value) add(steps, item);
    }
  }
  template <class T>
  bool find_field(const T& node, std::string_view wanted) {
    bool found = false;
    for_each_field(node, [&](std::string_view name, const auto& value) {
      if (name != wanted) return;
      found = true;
      std::vector<Step> steps;
      add(steps, value);
      constexpr bool single = std::is_base_of_v<NodeRef, std::remove_cvref_t<decltype(value)>>;
      if (single) {
        found = !steps.empty() && step_to(steps[0].nodes);
      } else {
        pending_ = std::move(steps);
      }
    });
    return found;
  }
  bool field(std::string_view name) {
    for (const NodeRef& candidate : current_nodes_) {
      if (try_field(candidate, name)) return true;
    }
    return try_field(node_, name);
  }
  bool try_field(const NodeRef& node, std::string_view name) {
    if (!node.defined()) return false;
    switch (node.kind()) {
#define X(Name, sort, ...) \
  case Kind::k##Name:      \
    return find_field(*node.as<Name>(), name);
#include "ir/kinds.def"
#undef X
    }
    return false;
  }
  bool element(size_t index) { return index < pending_.size() && step_to(pending_[index].nodes); }
  bool item(std::string_view key) {
    for (const Step& step : pending_) {
      if (step.key == key) return step_to(step.nodes);
    }
    return false;
  }
  bool step_to(std::vector<NodeRef> nodes) {
    current_nodes_ = std::move(nodes);
    if (current_nodes_.empty() || !current_nodes_[0].defined()) return false;
    node_ = current_nodes_[0];
    chain_.push_back(node_.get());
    return true;
  }

  std::vector<const NodeBase*> chain_;
  NodeRef node_;
  std::vector<NodeRef> current_nodes_;
  std::vector<Step> pending_;
};

}  // namespace

std::vector<const NodeBase*> nodes_along(const NodeRef& root, std::string_view path) {
  PathWalk walk(root);
  walk.follow(path);
  return walk.take_chain();
}

}  // namespace tilewright::script
