// Errors about handles whose loop or block no longer exists: they name the step that removed it.
#pragma once

#include <vector>

#include "python/schedule_objects.h"

namespace tilewright::python {

/// If the error of a step or lookup is that one of these handles has expired, adds the step that removed its loop or
/// block.
Diagnostic with_remover(const PySchedule& self, const std::vector<uint32_t>& handles, Diagnostic error);
/// Returns the handles of loops and blocks among the arguments of a step.
std::vector<uint32_t> handles_in(const std::vector<std::optional<schedule::Value>>& arguments);

/// Returns the location of the loop or block; raises the error above if it no longer exists.
template <class RV>
schedule::Place place_of(const PySchedule& self, RV rv) {
  auto place = self.schedule.state().find(rv);
  if (!place.ok()) fail(with_remover(self, {rv.index}, std::move(place.error())));
  return *place;
}

}  // namespace tilewright::python
