// Which postprocessors follow where the user does not say.
#pragma once

#include <string_view>

#include "search/postprocs/postproc.h"

namespace tilewright::search {

/// By the kind of target, see rules/defaults.h. ArgumentError "space/no-defaults" where none are known.
Result<std::vector<std::shared_ptr<Postproc>>> default_postprocs(std::string_view kind);

}  // namespace tilewright::search
