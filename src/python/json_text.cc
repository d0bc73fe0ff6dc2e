#include "python/json_text.h"

#include "support/diagnostic.h"

namespace nb = nanobind;

namespace tilewright::python {

std::string json_text(nb::handle value, const char* code, const std::string& what) {
  try {
    return nb::cast<std::string>(nb::module_::import_("json").attr("dumps")(value));
  } catch (const nb::python_error& error) {
    const bool unfit =
        error.matches(PyExc_ValueError) || error.matches(PyExc_TypeError) || error.matches(PyExc_RecursionError);
    if (!unfit) throw;
    throw Exception(
        argument_error(code, what + " cannot be written as JSON: " + nb::cast<std::string>(nb::str(error.value())),
                       "it consists of numbers, texts, lists and dicts"));
  }
}

}  // namespace tilewright::python
