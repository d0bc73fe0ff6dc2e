// The extension module tilewright._core, and how errors of the core become Python exceptions.
#include "python/module.h"

#include <csignal>

#include "python/bind_cluster.h"
#include "python/node_caster.h"
#include "python/process_exit.h"
#include "python/running_vars.h"
#include "python/search_components.h"
#include "support/diagnostic.h"
#include "support/raised_codes.h"

namespace nb = nanobind;

namespace tilewright::python {

namespace {

/// Messages quote what they complain about, which need not be UTF-8.
nb::object lenient_text(const std::string& text) {
  return nb::steal(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace"));
}

volatile std::sig_atomic_t interrupted_while_loading = 0;

/// Ctrl-C waits until the module is there: classes are made by Python code, and nanobind ends the process when an
/// exception gets in its way.
class InterruptsWait {
 public:
  InterruptsWait() {
    if (PyErr_CheckSignals() != 0) {
      interrupted_while_loading = 1;
      PyErr_Clear();
    }
    struct sigaction note = {};
    note.sa_handler = [](int) { interrupted_while_loading = 1; };
    sigaction(SIGINT, &note, &before_);
    if (before_.sa_handler == SIG_IGN) sigaction(SIGINT, &before_, nullptr);
  }
  ~InterruptsWait() {
    sigaction(SIGINT, &before_, nullptr);
    if (interrupted_while_loading) std::raise(SIGINT);
  }
  InterruptsWait(const InterruptsWait&) = delete;
  InterruptsWait& operator=(const InterruptsWait&) = delete;

 private:
  struct sigaction before_ = {};
};

}  // namespace

namespace {

/// The class that also is one of Python's own, where Python programs expect that; else the one of the blame.
std::string class_of(const Diagnostic& diagnostic) {
  static constexpr std::pair<std::string_view, std::string_view> kClasses[] = {
      {"arguments/items", "ArgumentTypeError"},   {"arguments/types", "ArgumentTypeError"},
      {"schedule/handle", "HandleError"},         {"schedule/expired", "ScheduleValueError"},
      {"schedule/argument", "ArgumentTypeError"}, {"schedule/program", "ArgumentTypeError"},
      {"get_block/P1", "ScheduleValueError"},     {"add_unit_loop/P1", "ScheduleValueError"},
  };
  for (const auto& [code, name] : kClasses) {
    if (diagnostic.code == code) return std::string(name);
  }
  return std::string(blame_name(diagnostic.blame));
}

}  // namespace

void set_python_error(const Diagnostic& diagnostic) {
  try {
    // Exceptions from the user's Python code are raised unchanged.
    if (nb::object exception = exception_behind(diagnostic); exception.is_valid()) {
      PyErr_SetObject(exception.type().ptr(), exception.ptr());
      return;
    }
    if (diagnostic.blame == Blame::kSchedule && diagnostic.hint.empty()) {
      note_raised("without a hint: " + diagnostic.code);
    }
    nb::object cls = nb::module_::import_("tilewright.errors").attr(class_of(diagnostic).c_str());
    nb::object error = cls(lenient_text(diagnostic.render()));
    error.attr("code") = diagnostic.code;
    error.attr("message") = lenient_text(diagnostic.message);
    error.attr("hint") = lenient_text(diagnostic.hint);
    error.attr("span") = diagnostic.span;
    nb::list nodes;
    for (const ObjectPtr& object : diagnostic.nodes) nodes.append(node_to_python(kept(object)));
    error.attr("nodes") = nb::tuple(nodes);
    PyErr_SetObject(cls.ptr(), error.ptr());
  } catch (nb::python_error& failure) {
    failure.restore();
  }
}

}  // namespace tilewright::python

NB_MODULE(_core, m) {
  using namespace tilewright::python;
  InterruptsWait until_all_is_there;
  nb::set_leak_warnings(false);
  nb::register_exception_translator(
      [](const std::exception_ptr& pointer, void*) {
        try {
          std::rethrow_exception(pointer);
        } catch (const tilewright::Exception& e) {
          set_python_error(e.diagnostic());
          // a bad item of a list or a dict, after the arguments themselves were accepted
        } catch (const std::bad_cast&) {
          set_python_error(tilewright::argument_error(
              "arguments/items", "a list or dict among the arguments holds something that is not taken there",
              "help(...) of the function says what its arguments hold"));
        }
      },
      nullptr);
  for (Bind* bind : {bind_ir,       bind_arith,         bind_device,       bind_machine,      bind_call,
                     bind_compile,  bind_script,        bind_running_vars, bind_printer,      bind_interpreter,
                     bind_schedule, bind_search,        bind_measure,      bind_cluster,      bind_search_components,
                     bind_analysis, bind_tensor_intrin, bind_structures,   bind_process_exit, explain_wrong_arguments})
    bind(m);
}
