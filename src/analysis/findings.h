// A cache of answers that checks need repeatedly, for each loop around the same blocks. It belongs to one version of
// the program.
#pragma once

#include <mutex>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "analysis/tree.h"

#include "support/ranges.h"

namespace tilewright::analysis {

/// "block 'B'", for messages.
[[gnu::cold]] inline std::string quoted(const Block& block) { return "block '" + block.name_hint + "'"; }

/// The cache, stored in the root block. Several threads may use it at once.
class Findings : public Memo::Fact {
 public:
  enum class Question {
    kCovered,    ///< the first block has written all that the second reads of the buffer (cover.h)
    kInjective,  ///< the axes of the block are an injective function of the loops around it
  };
  /// The question, two positions in the tree, and a node.
  using Key = std::tuple<Question, int, int, const NodeBase*>;

  static const Findings& of(const Tree& tree) {
    return tree.block_ref(0)->id.memo.get<Findings>([] { return Findings(); });
  }

  std::optional<bool> known(const Key& key) const {
    std::lock_guard lock(mutex_);
    auto it = find_if(answers_, [&](const auto& answer) { return answer.first == key; });
    return it == answers_.end() ? std::nullopt : std::optional(it->second);
  }
  void note(const Key& key, bool answer) const {
    std::lock_guard lock(mutex_);
    answers_.emplace_back(key, answer);
  }
  template <class F>
  bool answer(const Key& key, F&& find) const {
    if (auto found = known(key)) return *found;
    bool result = find();
    note(key, result);
    return result;
  }

 private:
  mutable std::mutex mutex_;
  mutable std::vector<std::pair<Key, bool>> answers_;  ///< few: it is looked through
};

}  // namespace tilewright::analysis
