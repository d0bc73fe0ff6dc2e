// Conversions of schedules, and methods that Python overrides, for the files that bind components of the search.
//
// A component is an abstract class of src/search/; its binding has a trampoline, so that Python may subclass it:
//
//   struct PythonRule final : search::ScheduleRule {
//     NB_TRAMPOLINE(search::ScheduleRule);
//     Result<search::Schedules> apply(schedule::Schedule schedule, schedule::BlockRV block) const
//     override {
//       return in_python("space/exception", [&]() -> Result<search::Schedules> {
//         SchedulePtr copy = to_python(std::move(schedule));
//         return schedules_of(overridden<search::ScheduleRule>(this, "apply")(copy, PyBlock{copy, block}), ...);
//       });
//     }
//   };
#pragma once

#include <nanobind/stl/map.h>
#include <nanobind/trampoline.h>

#include <functional>

#include "python/schedule_objects.h"
#include "search/measure_candidate.h"
#include "search/strategy/refusals.h"
#include "search/tune_context.h"

namespace tilewright::python {

/// The object that Python sees; it has the program of the schedule before its first step only where `original` says.
SchedulePtr to_python(schedule::Schedule schedule, Ref<Module> original = {});
/// A list of them, `original` as above.
nb::list schedules_to_python(Result<search::Schedules> schedules, const Ref<Module>& original = {});
/// A list of schedules, a single one, or None (no schedules), as what a function of Python returned. `who` begins what
/// is said of other things, such as "Rule.apply() gave", and `hint` says what they should be.
Result<search::Schedules> schedules_of(nb::handle answer, const std::string& who, const char* hint);

/// Returns a copy of the schedule that a Python object holds, and converts a schedule derived from such a copy back.
schedule::Schedule taken(const SchedulePtr& object);
SchedulePtr to_python(schedule::Schedule schedule, const PySchedule& made_from);

/// The object of the context that Python knows, else a copy.
nb::object context_to_python(const search::TuneContext& context);

/// Converts a Python exception to a Diagnostic and clears it. The code is that of a tilewright.Error, else `code`. If
/// the diagnostic is raised again in this process, Python sees the original exception.
Diagnostic diagnostic_of(nb::python_error& error, const char* code);
/// The exception behind a diagnostic of diagnostic_of(); none for other diagnostics.
nb::object exception_behind(const Diagnostic& diagnostic);

/// The items of a list or of something like it, in a list; `name` is the parameter's, `what` they are. As
/// tilewright.support.limits.items().
nb::list items_of(const char* name, nb::handle given, const char* what);
/// The results in objects with `run_secs` and `error_msg`, one for each of `count` candidates; refuses others.
search::RunnerResults results_of(nb::handle given, size_t count);

/// Refuses an object of a Python subclass whose `__init__` has not called the `__init__` of our class.
void require_begun(nb::handle part);

/// Returns the truth value of a Python object; propagates exceptions of `__bool__`.
bool truth_of(nb::handle answer);

/// A Python function that C++ stores, and may release on any thread.
struct __attribute__((visibility("hidden"))) HeldCallable {
  explicit HeldCallable(nb::callable held) : callable(std::move(held)) {}
  ~HeldCallable() {
    nb::gil_scoped_acquire gil;
    callable.reset();
  }
  HeldCallable(const HeldCallable&) = delete;
  HeldCallable& operator=(const HeldCallable&) = delete;
  nb::callable callable;
};

/// Calls `body` with the GIL held, and converts exceptions to diagnostics, except KeyboardInterrupt.
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

/// Whether the class of the Python object behind a trampoline defines the method.
template <class Base>
bool overrides(const Base* self, const char* name) {
  return !nb::find(self).type().attr(name).is(nb::type<Base>().attr(name));
}

/// Raises NotImplementedError.
template <class Base>
[[noreturn]] void not_defined(const Base* self, const char* name) {
  std::string of = nb::cast<std::string>(nb::find(self).type().attr("__name__"));
  PyErr_SetString(PyExc_NotImplementedError, (of + " does not define " + name + "()").c_str());
  throw nb::python_error();
}

/// Returns the method of the Python object behind a trampoline; raises NotImplementedError if its class does not define
/// it.
template <class Base>
nb::object overridden(const Base* self, const char* name) {
  if (!overrides(self, name)) not_defined(self, name);
  return nb::find(self).attr(name);
}

/// Returns clone() of the Python object behind a trampoline, or the object itself if its class has none.
template <class Base>
std::shared_ptr<Base> cloned(const Base* self) {
  nb::gil_scoped_acquire gil;
  nb::object object = nb::find(self);
  if (overrides<Base>(self, "clone")) object = object.attr("clone")();
  std::shared_ptr<Base> copy;
  if (!nb::try_cast(object, copy) || !copy) {
    fail(argument_error("search/clone", class_name(nb::find(self)) + ".clone() gave a '" + class_name(object) + "'",
                        "it gives a copy, or the part itself where that may be shared"));
  }
  return copy;
}

/// Reasons as Python sees them: counts, and the first message of each.
template <class Class, class Reasons>
void bind_reasons(Class& cls, Reasons reasons, const char* counts_doc, const char* messages_doc) {
  using Self = typename Class::Type;
  cls.def_prop_ro(
      "refusals", [reasons](const Self& self) { return search::counts_of(std::invoke(reasons, self)); }, counts_doc);
  cls.def_prop_ro(
      "first_refusals", [reasons](const Self& self) { return search::first_messages_of(std::invoke(reasons, self)); },
      messages_doc);
}

/// Sends warnings of components to the logger of the search.
void listen_to_warnings();

Bind bind_auto_tensorize;
Bind bind_tune_context;
Bind bind_rules;
Bind bind_space;
Bind bind_postprocs;
Bind bind_mutators;
Bind bind_search_strategy;
Bind bind_trace_apply;
Bind bind_cost_models;

}  // namespace tilewright::python
