// Handles whose loop or block is gone: the error says which step took it out of the program.
#pragma once

#include <vector>

#include "python/schedule_objects.h"

namespace tilewright::python {

/// An error of a step or a lookup, with the step named where it is about one of these handles being gone.
Diagnostic with_remover(const PySchedule& self, const std::vector<uint32_t>& handles, Diagnostic error);
/// The numbers of the loops and blocks among the arguments of a step.
std::vector<uint32_t> handles_in(const std::vector<std::optional<schedule::Value>>& arguments);

/// Where the loop or the block stands.
template <class RV>
schedule::Place place_of(const PySchedule& self, RV rv) {
  auto place = self.schedule.state().find(rv);
  if (!place.ok()) fail(with_remover(self, {rv.index}, std::move(place.error())));
  return *place;
}

}  // namespace tilewright::python
