// What compute_at and reverse_compute_at say where a block cannot stand.
#pragma once

namespace tilewright::schedule {

/// What helps where the block would not find its inputs, or its readers not its results.
constexpr const char* kInputsIncomplete =
    "what it reads has to be all there: move its producers first, or take a loop further out";
constexpr const char* kResultsMissing =
    "what reads it has to find all of it: take a loop further out, or one around all that reads it";

}  // namespace tilewright::schedule
