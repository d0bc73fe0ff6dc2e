// Kinds of the loops around a block, for rules and postprocessors.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/tree.h"
#include "schedule/schedule.h"

namespace tilewright::search {

enum class LoopUse {
  kSpatial,    ///< drives data-parallel axes only
  kReduction,  ///< drives reduction axes only
  kOther,
};

/// Classifies a loop by the blocks directly below it.
LoopUse loop_use(const analysis::Tree& tree, int loop);
/// Whether the loop is serial, without annotation and thread binding.
bool is_plain(const For& loop);
/// Whether the body of the loop is one statement.
bool has_single_body(const For& loop);

/// A handle to a block found by its position, through its name.
Result<schedule::BlockRV> handle_of(schedule::Schedule& schedule, uint32_t func, const Block& block);

/// A block somewhere in a module.
struct FoundBlock {
  uint32_t func;
  Ref<Block> block;
};
/// Returns all blocks with handles of all functions, in pre-order.
std::vector<FoundBlock> blocks_of(const schedule::State& state);

/// The value of an annotation; none if there is none, or it is not an integer.
std::optional<int64_t> integer_annotation(const Annotations& annotations, std::string_view key);
std::optional<std::string> text_annotation(const Annotations& annotations, std::string_view key);

}  // namespace tilewright::search
