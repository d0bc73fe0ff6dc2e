// What the files that bind components of the search share: schedules in and out, and methods that Python overrides.
//
// A component is an abstract class of src/search/; its binding has a trampoline, so that Python may subclass it:
//
//   struct PythonRule final : search::ScheduleRule {
//     NB_TRAMPOLINE(search::ScheduleRule);
//     Result<std::vector<schedule::Schedule>> apply(schedule::Schedule schedule, schedule::BlockRV block) const
//     override {
//       return in_python("rule/exception", [&]() -> Result<std::vector<schedule::Schedule>> {
//         SchedulePtr copy = to_python(std::move(schedule));
//         return schedules_of(overridden<search::ScheduleRule>(this, "apply")(copy, PyBlock{copy, block}));
//       });
//     }
//   };
#pragma once

#include "python/schedule_objects.h"

namespace tilewright::python {

/// The object that Python sees; it has the program of the schedule before its first step only where `original` says.
SchedulePtr to_python(schedule::Schedule schedule, Ref<Module> original = {});
/// A list of schedules, a single one, or None (no schedules), as what a function of Python returned.
Result<std::vector<schedule::Schedule>> schedules_of(nb::handle answer);

/// An exception of Python as data: the code of one of ours, else `code`; the Python error is cleared.
Diagnostic diagnostic_of(nb::python_error& error, const char* code);

/// Calls `body` with the lock of Python held; what it throws comes back as data, but for Ctrl-C.
template <class Body>
auto in_python(const char* code, Body body) -> decltype(body()) {
  nb::gil_scoped_acquire gil;
  try {
    return body();
  } catch (nb::python_error& error) {
    if (error.matches(PyExc_KeyboardInterrupt)) throw;
    return diagnostic_of(error, code);
  } catch (const Exception& error) {
    return error.diagnostic();
  }
}

/// The method of the Python object behind a trampoline; raises NotImplementedError where its class does not have it.
template <class Base>
nb::object overridden(const Base* self, const char* name) {
  nb::object object = nb::find(self);
  if (object.type().attr(name).is(nb::type<Base>().attr(name))) {
    std::string message = nb::cast<std::string>(object.type().attr("__name__")) + " does not define " + name + "()";
    PyErr_SetString(PyExc_NotImplementedError, message.c_str());
    throw nb::python_error();
  }
  return object.attr(name);
}

}  // namespace tilewright::python
