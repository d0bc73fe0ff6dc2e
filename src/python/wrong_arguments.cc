// Calls that no signature fits become errors of ours (python/tilewright/support/wrong_arguments.py).
//
// nanobind offers no hook for that, but each of its functions keeps the address that CPython calls, at the offset that
// its type declares to CPython. After all bindings are registered, this vectorcall pointer is replaced by a wrapper
// that calls the original function and inspects the exception that it raised. nanobind uses only a few distinct
// vectorcall functions, so a few wrappers are enough. A call that succeeds costs one extra jump.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <array>
#include <unordered_set>
#include <utility>

#include "ir/dtype.h"
#include "python/module.h"
#include "support/diagnostic.h"

namespace tilewright::python {
namespace {

constexpr size_t kSlots = 16;
std::array<vectorcallfunc, kSlots> originals{};

/// Replaces the error at hand by one of ours, if it is about arguments that no signature fits.
void explain_error(PyObject* const* args, size_t flags, PyObject* keyword_names) {
  if (PyErr_Occurred() != PyExc_TypeError) return;
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  nb::object error = nb::steal(value), cls = nb::steal(type), traceback = nb::steal(trace);
  try {
    std::string text = nb::cast<std::string>(nb::str(error));
    if (text.find("(): incompatible function arguments.") == std::string::npos) {
      PyErr_Restore(cls.release().ptr(), error.release().ptr(), traceback.release().ptr());
      return;
    }
    size_t count = flags & 0xFFFFFFFFU;  // CPython's flag and that of nanobind stand in the bits above
    nb::list positional;
    for (size_t i = 0; i < count; ++i) positional.append(nb::handle(args[i]));
    nb::dict keywords;
    size_t named = keyword_names ? static_cast<size_t>(PyTuple_GET_SIZE(keyword_names)) : 0;
    for (size_t i = 0; i < named; ++i) {
      keywords[nb::handle(PyTuple_GET_ITEM(keyword_names, static_cast<Py_ssize_t>(i)))] = nb::handle(args[count + i]);
    }
    nb::object explained =
        nb::module_::import_("tilewright.support.wrong_arguments").attr("explain")(text, positional, keywords);
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(explained.ptr())), explained.ptr());
  } catch (nb::python_error& failure) {
    failure.restore();
  }
}

template <size_t kSlot>
PyObject* call_checked(PyObject* self, PyObject* const* args, size_t flags, PyObject* keyword_names) {
  PyObject* result = originals[kSlot](self, args, flags, keyword_names);
  if (!result) [[unlikely]]
    explain_error(args, flags, keyword_names);
  return result;
}

template <size_t... kIndex>
constexpr std::array<vectorcallfunc, kSlots> make_stand_ins(std::index_sequence<kIndex...>) {
  return {&call_checked<kIndex>...};
}
constexpr std::array<vectorcallfunc, kSlots> kStandIns = make_stand_ins(std::make_index_sequence<kSlots>());

void stand_in(PyObject* function) {
  auto* place =
      reinterpret_cast<vectorcallfunc*>(reinterpret_cast<char*>(function) + Py_TYPE(function)->tp_vectorcall_offset);
  for (size_t slot = 0; slot < kSlots; ++slot) {
    if (*place == kStandIns[slot]) return;
    if (originals[slot] && originals[slot] != *place) continue;
    originals[slot] = *place;
    *place = kStandIns[slot];
    return;
  }
  TW_CHECK(false, "nanobind has more ways to call functions than there are slots for");
}

class Walk {
 public:
  /// Everything that a module or a class defines, and what is inside of that.
  void members_of(nb::handle owner) {
    if (!seen_.insert(owner.ptr()).second) return;
    nb::list names = nb::list(owner.attr("__dict__").attr("keys")());
    for (nb::handle name : names) member(owner.attr("__dict__")[name]);
  }

 private:
  void member(nb::handle item) {
    PyTypeObject* type = Py_TYPE(item.ptr());
    std::string kind = type->tp_name;
    if (kind.starts_with("nanobind.nb_func") || kind.starts_with("nanobind.nb_method") || kind == "nb_func" ||
        kind == "nb_method") {
      stand_in(item.ptr());
    } else if (kind == "property" || kind.ends_with("nb_static_property")) {
      for (const char* accessor : {"fget", "fset"}) member(nb::getattr(item, accessor, nb::none()));
    } else if (kind == "staticmethod" || kind == "classmethod") {
      member(item.attr("__func__"));
    } else if (PyModule_Check(item.ptr()) || (PyType_Check(item.ptr()) && is_ours(item))) {
      members_of(item);
    }
  }
  static bool is_ours(nb::handle cls) {
    std::string module = nb::cast<std::string>(nb::str(nb::getattr(cls, "__module__", nb::str(""))));
    return module.starts_with("tilewright");
  }
  std::unordered_set<PyObject*> seen_;
};

}  // namespace

void explain_wrong_arguments(nb::module_& m) {
  m.def(
      "is_dtype", [](const std::string& text) { return DataType::parse(text).has_value(); }, "text"_a,
      "Whether the text names a type of scalars or vectors.");
  Walk().members_of(m);
}

}  // namespace tilewright::python
