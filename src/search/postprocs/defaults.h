// Default postprocessors.
#pragma once

#include <string_view>

#include "search/postprocs/postproc.h"

namespace tilewright::search {

/// Returns the postprocessors of the kind of target, see rules/defaults.h. ArgumentError "space/no-defaults" if there
/// are none.
Result<std::vector<std::shared_ptr<Postproc>>> default_postprocs(std::string_view kind);

}  // namespace tilewright::search
