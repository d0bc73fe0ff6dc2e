// Hints of compute_at and reverse_compute_at for locations where a block cannot be.
#pragma once

namespace tilewright::schedule {

/// Hints for a location where the block would miss inputs, or its readers would miss its results.
constexpr const char* kInputsIncomplete =
    "what it reads has to be all there: move its producers first, or take a loop further out";
constexpr const char* kResultsMissing =
    "what reads it has to find all of it: take a loop further out, or one around all that reads it";

}  // namespace tilewright::schedule
