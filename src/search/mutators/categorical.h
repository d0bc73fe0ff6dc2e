// Drawing another one of the candidates of a step.
#pragma once

#include <optional>

#include "schedule/primitives/sample_categorical.h"
#include "search/tune_context.h"

namespace tilewright::search {

/// The step that gives a value, if it is a SampleCategorical with a decision; none otherwise.
std::optional<size_t> categorical_step(const Trace& trace, uint32_t value);
/// Whether a SampleCategorical could have drawn anything else.
bool has_alternative(const schedule::SampleCategorical& sample);
/// The trace with another position drawn at the step, by the probabilities of those that are left.
Result<std::optional<Trace>> draw_other(const Trace& trace, size_t step, Random& random);

}  // namespace tilewright::search
