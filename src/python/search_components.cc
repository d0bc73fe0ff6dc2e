#include "python/search_components.h"

#include <deque>

#include "search/warnings.h"
#include "support/ranges.h"

namespace tilewright::python {

namespace {

/// The exceptions that became diagnostics last, by message: those on their way are few. Touched with the lock of Python
/// held; never destroyed, since the interpreter ends before.
struct Remembered {
  std::string text;
  nb::object exception;
};
std::deque<Remembered>& remembered() {
  static auto* list = new std::deque<Remembered>;
  return *list;
}

/// Truncates the exception's traceback to its last raise. An exception object that is raised repeatedly accumulates
/// frames, which makes printing and copying it slower each time. The first frame is the method that was called.
void keep_last_raise(nb::handle exception) {
  try {
    nb::module_::import_("tilewright.support.user_lines").attr("last_raise")(exception);
  } catch (nb::python_error& error) {
    if (error.matches(PyExc_KeyboardInterrupt)) throw;
    // Without room for one more call, as in a recursion without end, the traceback stays as it is.
  }
}

/// Returns the text in UTF-8. Bytes that are not valid text, as file names may have, are escaped.
std::string as_utf8(nb::handle text) {
  nb::object bytes = nb::steal(PyUnicode_AsEncodedString(text.ptr(), "utf-8", "backslashreplace"));
  if (!bytes.is_valid()) throw nb::python_error();
  return std::string(PyBytes_AsString(bytes.ptr()), static_cast<size_t>(PyBytes_Size(bytes.ptr())));
}

/// Returns the traceback as UTF-8, unlike error.what(), which ends the process for other bytes. Returns the name of the
/// exception if Python cannot run any code, as after infinite recursion.
std::string traceback_of(nb::python_error& error) {
  try {
    nb::object trace = error.traceback().is_valid() ? nb::borrow(error.traceback()) : nb::none();
    nb::object lines = nb::module_::import_("traceback").attr("format_exception")(error.type(), error.value(), trace);
    return as_utf8(nb::str("").attr("join")(lines).attr("rstrip")());
  } catch (nb::python_error& failure) {
    if (failure.matches(PyExc_KeyboardInterrupt)) throw;
    return reinterpret_cast<PyTypeObject*>(error.type().ptr())->tp_name;
  }
}

/// Returns the message of the exception with the user's line; the last line of Python's text if Python cannot run any
/// code.
std::string error_text_of(nb::python_error& error) {
  try {
    return as_utf8(nb::module_::import_("tilewright.support.user_lines").attr("error_text")(error.value()));
  } catch (nb::python_error& failure) {
    if (failure.matches(PyExc_KeyboardInterrupt)) throw;
    const std::string text = traceback_of(error);
    return text.substr(text.find_last_of('\n', text.find_last_not_of('\n')) + 1);
  }
}

}  // namespace

SchedulePtr to_python(schedule::Schedule schedule, Ref<Module> original) {
  auto object = std::make_shared<PySchedule>(PySchedule{std::move(schedule)});
  object->original = std::move(original);
  return object;
}

nb::list schedules_to_python(Result<search::Schedules> schedules, const Ref<Module>& original) {
  nb::list result;
  for (schedule::Schedule& item : unwrap(std::move(schedules))) result.append(to_python(std::move(item), original));
  return result;
}

Result<search::Schedules> schedules_of(nb::handle answer, const std::string& who, const char* hint) {
  search::Schedules schedules;
  const bool is_list = nb::isinstance<nb::list>(answer) || nb::isinstance<nb::tuple>(answer);
  auto add = [&](nb::handle item) -> Status {
    SchedulePtr object;
    if (!nb::try_cast(item, object) || !object) {
      return argument_error("search/schedule", who + " a '" + class_name(item) + "'" + (is_list ? " in its list" : ""),
                            hint);
    }
    schedules.push_back(object->schedule);
    return Ok{};
  };
  if (answer.is_none()) return schedules;
  if (is_list) {
    for (nb::handle item : answer) TW_RETURN_IF_ERROR(add(item));
  } else {
    TW_RETURN_IF_ERROR(add(answer));
  }
  return schedules;
}

nb::list items_of(const char* name, nb::handle given, const char* what) {
  return nb::list(nb::module_::import_("tilewright.support.limits").attr("items")(name, given, what));
}

search::RunnerResults results_of(nb::handle given, size_t count) {
  nb::object results_in = nb::module_::import_("tilewright.cost_model.features_of").attr("results_in");
  search::RunnerResults results;
  for (nb::handle item : results_in(given, count)) {
    auto [seconds, error] = nb::cast<std::pair<std::vector<double>, std::optional<std::string>>>(item);
    results.push_back({std::move(seconds), std::move(error)});
  }
  return results;
}

void require_begun(nb::handle part) {
  if (!nb::inst_check(part) || nb::inst_ready(part)) return;
  fail(argument_error("search/parts", class_name(part) + ".__init__() does not call that of its base class",
                      "begin it with super().__init__()"));
}

bool truth_of(nb::handle answer) {
  const int truth = PyObject_IsTrue(answer.ptr());
  if (truth < 0) nb::raise_python_error();
  return truth == 1;
}

schedule::Schedule taken(const SchedulePtr& object) {
  if (!object)
    fail(argument_error("search/schedule", "a schedule was expected, not None", "return the schedule from the method"));
  return object->schedule;
}

SchedulePtr to_python(schedule::Schedule schedule, const PySchedule& made_from) {
  SchedulePtr object = to_python(std::move(schedule), made_from.original);
  for (uint32_t handle : made_from.schedule.forgotten()) object->schedule.forget(handle);
  object->detail = made_from.detail;
  object->debug = made_from.debug;
  return object;
}

Diagnostic diagnostic_of(nb::python_error& error, const char* code) {
  nb::handle value = error.value();
  keep_last_raise(value);
  Diagnostic diagnostic = schedule_error(code, {});
  diagnostic.rendered = traceback_of(error);
  if (nb::hasattr(value, "code") && nb::hasattr(value, "message")) {
    diagnostic.code = as_utf8(nb::str(value.attr("code")));
    std::string message = as_utf8(nb::str(value.attr("message")));
    diagnostic.message = message.empty() ? as_utf8(nb::str(value)) : message;
    diagnostic.hint = as_utf8(nb::str(value.attr("hint")));
    if (diagnostic.code.empty()) diagnostic.code = code;
    if (diagnostic.code == "space/deadline") diagnostic.blame = Blame::kResource;
  } else {
    diagnostic.message = error_text_of(error);
  }
  remembered().push_back({diagnostic.rendered, nb::borrow(value)});
  nb::object forgotten;  // let go of once the list is whole again: its end may run anything, on other threads too
  if (remembered().size() > 32) {
    forgotten = std::move(remembered().front().exception);
    remembered().pop_front();
  }
  return diagnostic;
}

void listen_to_warnings() {
  search::set_warning_listener([](const std::string& text) {
    nb::gil_scoped_acquire gil;
    nb::module_::import_("logging").attr("getLogger")("tilewright.meta_schedule").attr("warning")("%s", text);
  });
}

nb::object exception_behind(const Diagnostic& diagnostic) {
  if (diagnostic.rendered.empty()) return {};
  for (const Remembered& each : reversed(remembered())) {
    if (each.text == diagnostic.rendered) return each.exception;
  }
  return {};
}

}  // namespace tilewright::python
