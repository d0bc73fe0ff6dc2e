// Records which diagnostic codes a test run has raised. tools/check_codes.py compares them with the codes in the
// source.
#pragma once

#include <string_view>

namespace tilewright {

/// Appends the code, once, to this process's file in the folder that the environment variable TILEWRIGHT_RAISED_CODES
/// names. Does nothing without that variable.
void note_raised(std::string_view code);

}  // namespace tilewright
