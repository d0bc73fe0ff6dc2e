// Default mutators of candidates.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "search/mutators/mutator.h"

namespace tilewright::search {

/// Each with its probability, by the kind of target, see rules/defaults.h. ArgumentError "space/no-defaults" where none
/// are known.
Result<std::vector<std::pair<std::shared_ptr<Mutator>, double>>> default_mutators(std::string_view kind);

}  // namespace tilewright::search
