// Which codes of diagnostics really came to be: tools/check_codes.py compares them with those in the source after a run
// of all tests.
#pragma once

#include <string_view>

namespace tilewright {

/// Where the environment variable TILEWRIGHT_RAISED_CODES names a folder, adds the code to this process's file there,
/// once; otherwise does nothing.
void note_raised(std::string_view code);

}  // namespace tilewright
