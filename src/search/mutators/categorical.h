// Resamples a categorical decision among the other candidates.
#pragma once

#include <optional>

#include "schedule/primitives/sample_categorical.h"
#include "search/tune_context.h"

namespace tilewright::search {

/// The step that gives a value, if it is a SampleCategorical with a decision; none otherwise.
std::optional<size_t> categorical_step(const Trace& trace, uint32_t value);
/// Whether a SampleCategorical has another candidate with a positive probability.
bool has_alternative(const schedule::SampleCategorical& sample);
/// The trace with another position sampled at the step, by the probabilities of the remaining ones.
Result<std::optional<Trace>> sample_other(const Trace& trace, size_t step, Random& random);

}  // namespace tilewright::search
