// Measuring on other machines: from sessions to the object of Python that has workers.
#pragma once

#include <nanobind/nanobind.h>

#include "python/module.h"
#include "search/session/session.h"

namespace tilewright::python {

using MakeMeasurer = decltype(search::TuneTask::measurer);

/// Calls it for an object with the methods of search::Measurer and the attribute `threads`.
MakeMeasurer measurer_by(const nb::object& function);

Bind bind_cluster;

}  // namespace tilewright::python
