// The extension module tilewright._core, and how errors of the core become Python exceptions.
#include "python/module.h"

#include <nanobind/stl/string.h>

#include "support/diagnostic.h"

namespace nb = nanobind;

namespace tilewright::python {

void set_python_error(const Diagnostic& diagnostic) {
  try {
    nb::object cls = nb::module_::import_("tilewright.errors").attr(std::string(blame_name(diagnostic.blame)).c_str());
    nb::object error = cls(diagnostic.render());
    error.attr("code") = diagnostic.code;
    error.attr("message") = diagnostic.message;
    error.attr("hint") = diagnostic.hint;
    error.attr("span") = diagnostic.span;
    PyErr_SetObject(cls.ptr(), error.ptr());
  } catch (nb::python_error& failure) {
    failure.restore();
  }
}

}  // namespace tilewright::python

NB_MODULE(_core, m) {
  nb::set_leak_warnings(false);
  nb::register_exception_translator(
      [](const std::exception_ptr& pointer, void*) {
        try {
          std::rethrow_exception(pointer);
        } catch (const tilewright::Exception& e) {
          tilewright::python::set_python_error(e.diagnostic());
        }
      },
      nullptr);
  tilewright::python::bind_ir(m);
  tilewright::python::bind_arith(m);
  tilewright::python::bind_machine(m);
  tilewright::python::bind_call(m);
  tilewright::python::bind_compile(m);
  tilewright::python::bind_script(m);
  tilewright::python::bind_printer(m);
  tilewright::python::bind_interpreter(m);
  tilewright::python::bind_schedule(m);
  tilewright::python::bind_search(m);
  tilewright::python::bind_analysis(m);
}
