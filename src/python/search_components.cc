#include "python/search_components.h"

namespace tilewright::python {

SchedulePtr to_python(schedule::Schedule schedule, Ref<Module> original) {
  auto object = std::make_shared<PySchedule>(PySchedule{std::move(schedule)});
  object->original = std::move(original);
  return object;
}

Result<std::vector<schedule::Schedule>> schedules_of(nb::handle answer) {
  std::vector<schedule::Schedule> schedules;
  auto add = [&](nb::handle item) -> Status {
    SchedulePtr object;
    if (!nb::try_cast(item, object) || !object) {
      return argument_error("search/schedule", "a schedule was expected, not " + class_name(item),
                            "return a Schedule, a list of them, or None");
    }
    schedules.push_back(object->schedule);
    return Ok{};
  };
  if (answer.is_none()) return schedules;
  if (nb::isinstance<nb::list>(answer) || nb::isinstance<nb::tuple>(answer)) {
    for (nb::handle item : answer) TW_RETURN_IF_ERROR(add(item));
  } else {
    TW_RETURN_IF_ERROR(add(answer));
  }
  return schedules;
}

Diagnostic diagnostic_of(nb::python_error& error, const char* code) {
  Diagnostic diagnostic = schedule_error(code, error.what());
  nb::handle value = error.value();
  if (nb::hasattr(value, "code") && nb::hasattr(value, "message")) {
    diagnostic.code = nb::cast<std::string>(value.attr("code"));
    std::string message = nb::cast<std::string>(value.attr("message"));
    diagnostic.message = message.empty() ? nb::cast<std::string>(nb::str(value)) : message;
    diagnostic.hint = nb::cast<std::string>(value.attr("hint"));
    if (diagnostic.code.empty()) diagnostic.code = code;
    if (diagnostic.code == "space/deadline") diagnostic.blame = Blame::kResource;
  }
  return diagnostic;
}

}  // namespace tilewright::python
