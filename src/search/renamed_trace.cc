#include "search/renamed_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ir/build.h"
#include "ir/structural.h"
#include "ir/traverse.h"
#include "schedule/primitives/get_block.h"
#include "support/ranges.h"

namespace tilewright::search {
namespace {

/// Maps names of one program to those of the other; nothing for names that stand for several things.
using NameMap = std::unordered_map<std::string, std::optional<std::string>>;

struct Named {
  std::vector<std::string> blocks, buffers;  ///< in program order
};

Named named_in(const Ref<PrimFunc>& function) {
  Named found;
  visit(
      function, [&](const Ref<Block>& block) { found.blocks.push_back(block->name_hint); },
      [&](const Ref<Buffer>& buffer) { found.buffers.push_back(buffer->name); });
  return found;
}

void match(const std::vector<std::string>& was, const std::vector<std::string>& now, NameMap& names) {
  if (was.size() != now.size()) return;
  for (size_t i : indices_of(was)) {
    const auto [place, is_new] = names.emplace(was[i], now[i]);
    if (!is_new && place->second != now[i]) place->second.reset();
  }
}

/// Suffixes that primitives append to names of blocks; any other suffix belongs to the name of a buffer.
constexpr std::string_view kOfBlocks[] = {"init", "update", "rf", "o", "pad_const", "partition", "common"};

/// Finds the names of one program in the other.
class Renaming {
 public:
  Renaming(const NameMap& blocks, const NameMap& buffers) : blocks_(blocks), buffers_(buffers) {}

  /// Returns nothing for names that are derived from no other.
  std::optional<std::string> block(std::string_view name) { return renamed(name, true); }

 private:
  /// Each prefix is looked up once: a name of many words has as many ways to be split as there are sets of them.
  std::optional<std::string> renamed(std::string_view name, bool is_block) {
    const std::pair key(std::string(name), is_block);
    if (auto* known = find_value(found_, key)) return *known;
    return found_[key] = look_up(name, is_block);
  }

  std::optional<std::string> look_up(std::string_view name, bool is_block) {
    const NameMap& own = is_block ? blocks_ : buffers_;
    if (auto* found = find_value(own, std::string(name))) return *found;
    for (size_t end = name.rfind('_'); end != std::string_view::npos && end > 0; end = name.rfind('_', end - 1)) {
      const std::string_view ending = name.substr(end + 1);
      const bool of_block = is_block && std::ranges::find(kOfBlocks, ending) != std::end(kOfBlocks);
      const auto found = renamed(name.substr(0, end), of_block);
      if (found) return fmt::format("{}_{}", *found, ending);
    }
    return std::nullopt;
  }

  const NameMap &blocks_, &buffers_;
  std::map<std::pair<std::string, bool>, std::optional<std::string>> found_;
};

/// The only function, without attributes, which no step depends on; null where there are several.
Ref<PrimFunc> only_function(const Ref<Module>& module) {
  if (module->functions.size() != 1 || !module->functions.begin()->second.is<PrimFunc>()) return {};
  PrimFunc bare = *module->functions.begin()->second.borrow<PrimFunc>();
  bare.attrs = {};
  return make(std::move(bare));
}

}  // namespace

schedule::Trace renamed_trace(const schedule::Trace& trace, const Ref<PrimFunc>& was, const Ref<PrimFunc>& now,
                              const std::string& function) {
  const Named before = named_in(was), after = named_in(now);
  NameMap blocks, buffers;
  match(before.blocks, after.blocks, blocks);
  match(before.buffers, after.buffers, buffers);
  Renaming names(blocks, buffers);
  std::vector<schedule::TraceEdit> edits;
  const std::vector<const schedule::Step*> steps = trace.steps();
  for (size_t step : indices_of(steps)) {
    const auto* get = steps[step]->instruction.as<schedule::GetBlock>();
    if (!get) continue;
    schedule::GetBlock other{names.block(get->name).value_or(get->name), function};
    if (other.name == get->name && other.func_name == get->func_name) continue;
    edits.push_back({step, schedule::Instruction(std::move(other))});
  }
  return trace.edited(edits).value_or_throw();
}

schedule::Trace as_named_in(const Ref<Module>& now, const Ref<Module>& was, const schedule::Trace& trace) {
  if (now.get() == was.get()) return trace;
  const Ref<PrimFunc> before = only_function(was), after = only_function(now);
  if (!before.defined() || !after.defined() || !structural_equal(before, after)) return trace;
  return renamed_trace(trace, before, after, std::string(now->functions.begin()->first));
}

}  // namespace tilewright::search
