// The paths of the files that belong to this library.
#pragma once

#include <string>

#include "support/result.h"

namespace tilewright::codegen {

/// The folder of the shared library that this code is part of: libtilewright_runtime.a and include/ are beside it.
Result<std::string> package_folder();

}  // namespace tilewright::codegen
