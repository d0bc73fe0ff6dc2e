// Binds interpret(), the reference interpreter on NumPy arrays and Python numbers, and verify().
#include <chrono>

#include "analysis/allocation_locations.h"
#include "analysis/skipped_init.h"
#include "analysis/verify_accesses.h"
#include "interpreter/interpret_at.h"
#include "ir/scalable.h"
#include "ir/verify.h"
#include "python/module.h"
#include "python/node_caster.h"
#include "python/process_exit.h"
#include "script/printer.h"
#include "support/ranges.h"

namespace tilewright::python {
namespace {

using Clock = std::chrono::steady_clock;

/// An array by its __array_interface__: works for every dtype that NumPy holds, those of ml_dtypes included.
TensorArg tensor_from_python(nb::handle array) {
  TensorArg arg;
  nb::object dtype = array.attr("dtype");
  if (!nb::try_cast<DataType>(dtype, arg.dtype)) {
    throw Exception(
        argument_error("interpret/argument",
                       "an array of type " + std::string(nb::str(dtype).c_str()) + " has no counterpart in a program",
                       "give an array of numbers or bools"));
  }
  auto interface = nb::cast<nb::dict>(array.attr("__array_interface__"));
  auto data = nb::cast<nb::tuple>(interface["data"]);
  arg.data = reinterpret_cast<void*>(nb::cast<uintptr_t>(data[0]));
  arg.writable = !nb::cast<bool>(data[1]);
  arg.shape = nb::cast<std::vector<int64_t>>(array.attr("shape"));
  auto item = nb::cast<int64_t>(array.attr("itemsize"));
  for (int64_t bytes : nb::cast<std::vector<int64_t>>(array.attr("strides"))) {
    if (item == 0 || bytes % item != 0) {
      throw Exception(argument_error("interpret/argument", "an array whose strides are not whole elements",
                                     "copy it, for instance with np.ascontiguousarray"));
    }
    arg.strides.push_back(bytes / item);
  }
  return arg;
}

InterpretArg arg_from_python(nb::handle object) {
  if (nb::hasattr(object, "__array_interface__") && nb::cast<int>(nb::getattr(object, "ndim", nb::int_(1))) >= 0 &&
      !nb::isinstance(object, nb::module_::import_("numpy").attr("generic"))) {
    return tensor_from_python(object);
  }
  NodeRef value = constant_from_python(object);
  if (const IntImm* number = value.as<IntImm>()) return ScalarArg{number->dtype, number->value, 0};
  if (const FloatImm* number = value.as<FloatImm>()) return ScalarArg{DataType::float_(64), 0, number->value};
  throw Exception(argument_error(
      "interpret/argument",
      "an argument of type " + std::string(nb::str(object.type()).c_str()) + " is neither a NumPy array nor a number",
      "convert it: numpy.asarray(x)"));
}

/// A plain float keeps all its digits: constants of programs would round it to float32.
InterpretArg exact_arg_from_python(nb::handle object) {
  if (PyFloat_Check(object.ptr())) return ScalarArg{DataType::float_(64), 0, PyFloat_AsDouble(object.ptr())};
  return arg_from_python(object);
}

nb::object returned_to_python(const ScalarArg& value) {
  if (value.dtype.is_void()) return nb::none();
  if (value.dtype.is_float()) return nb::float_(value.as_float);
  if (value.dtype.is_bool()) return nb::bool_(value.as_int != 0);
  if (value.dtype.is_uint()) return nb::int_(static_cast<uint64_t>(value.as_int));
  return nb::int_(value.as_int);
}

std::vector<InterpretArg> args_from_python(const nb::args& arguments) {
  std::vector<InterpretArg> args;
  for (nb::handle argument : arguments) args.push_back(exact_arg_from_python(argument));
  return args;
}

/// Signals are answered, and T.print writes where Python does.
InterpretOptions options_in_python(double timeout) {
  InterpretOptions options;
  options.timeout_seconds = timeout;
  options.keep_going = [next_poll = Clock::now()]() mutable {
    if (is_process_ending()) return false;
    if (Clock::now() < next_poll) return true;
    next_poll = Clock::now() + std::chrono::milliseconds(50);
    nb::gil_scoped_acquire locked;
    return PyErr_CheckSignals() == 0;
  };
  options.print = [](std::string_view line) {
    nb::gil_scoped_acquire locked;
    nb::module_::import_("sys").attr("stdout").attr("write")(line);
  };
  return options;
}

/// Checks inits statically: a run cannot show that memory of an argument was not initialized.
void require_inits(const Ref<Module>& module) {
  if (Status status = analysis::verify_inits(module); !status.ok()) {
    throw Exception(script::located(std::move(status.error()), module));
  }
}

nb::object interpret_python(const Ref<Module>& module, const std::string& name, const nb::args& arguments,
                            uint64_t max_steps, double timeout, bool check_races, bool check_uninitialized,
                            bool lanes_in_step, int vscale) {
  if (!is_contained(kVscales, vscale)) {
    throw Exception(argument_error("interpret/argument", "vscale is " + std::to_string(vscale),
                                   "it is a power of two, up to " + std::to_string(kMaxVscale)));
  }
  require_inits(module);
  const std::vector<InterpretArg> args = args_from_python(arguments);
  ScalarArg returned{DataType::void_()};
  InterpretOptions options = options_in_python(timeout);
  options.max_steps = max_steps;
  options.check_races = check_races;
  options.check_uninitialized = check_uninitialized;
  options.lanes_in_step = lanes_in_step;
  options.vscale = vscale;
  options.returned = &returned;
  Status status = gil_released([&] { return interpret(analysis::with_private_buffers(module), name, args, options); });
  if (PyErr_Occurred()) throw nb::python_error();
  raise_if_process_ends();
  if (!status.ok()) throw Exception(script::located(std::move(status.error()), module));
  return returned_to_python(returned);
}

/// The position of the tensor parameter that a key of `points` means: the position itself, or the name of its buffer.
size_t parameter_meant(const Ref<Module>& module, const std::string& function, nb::handle key) {
  const Func found = module->get(function);
  const PrimFunc* func = found.as<PrimFunc>();
  const std::string shown = nb::repr(key).c_str();
  std::vector<size_t> meant;
  for (size_t i = 0; func && i < func->params.size(); ++i) {
    const Ref<Buffer> buffer = func->buffer_of(func->params[i]);
    if (!buffer.defined()) continue;
    const bool is_it =
        nb::isinstance<nb::str>(key) ? buffer->name == nb::cast<std::string>(key) : key.equal(nb::int_(i));
    if (is_it) meant.push_back(i);
  }
  if (meant.size() == 1) return meant[0];
  if (meant.empty()) {
    throw Exception(argument_error("interpret/argument", "'" + function + "' has no tensor parameter " + shown,
                                   "points are given by the names of the buffers, or by positions of parameters"));
  }
  throw Exception(
      argument_error("interpret/argument", "several parameters of '" + function + "' have the name " + shown,
                     "give the points by the position of the parameter, such as " + std::to_string(meant[0])));
}

nb::dict interpret_at_python(const Ref<Module>& module, const std::string& name, const nb::args& arguments,
                             const nb::dict& points, double timeout) {
  require_inits(module);
  const std::vector<InterpretArg> args = args_from_python(arguments);
  std::vector<ElementOfArgument> elements;
  for (auto [buffer, indices] : points) {
    const size_t param = parameter_meant(module, name, buffer);
    for (nb::handle index : indices) elements.push_back({param, nb::cast<std::vector<int64_t>>(index)});
  }
  const InterpretOptions options = options_in_python(timeout);
  auto values =
      gil_released([&] { return interpret_at(analysis::with_private_buffers(module), name, args, elements, options); });
  if (PyErr_Occurred()) throw nb::python_error();
  raise_if_process_ends();
  if (!values.ok()) throw Exception(script::located(std::move(values.error()), module));
  nb::dict result;
  size_t next = 0;
  for (auto [buffer, indices] : points) {
    nb::list of_buffer;
    for (size_t i = 0; i < nb::len(indices); ++i, ++next) {
      of_buffer.append((*values)[next] ? returned_to_python(*(*values)[next]) : nb::none());
    }
    result[buffer] = of_buffer;
  }
  return result;
}

void verify_python(const NodeRef& node, const std::string& stage) {
  std::optional<Stage> named;
  for (Stage known : {Stage::kSparse, Stage::kScheduled, Stage::kLowered}) {
    if (stage == stage_name(known)) named = known;
  }
  if (!named) {
    throw Exception(
        argument_error("verify/stage-name", "there is no stage '" + stage + "'", "use sparse, scheduled or lowered"));
  }
  Status status = verify(node, *named);
  if (status.ok()) status = analysis::verify_accesses(node);
  if (status.ok()) status = analysis::verify_inits(node);
  if (!status.ok()) throw Exception(script::located(std::move(status.error()), node));
}

}  // namespace

void bind_interpreter(nb::module_& m) {
  m.def("verify_inits", &require_inits, "module"_a,
        "Raises verify/init-skipped where the init of a reduction is not proved to run first.");
  m.def("interpret", &interpret_python, "module"_a, "name"_a, "args"_a, "max_steps"_a = 0, "timeout"_a = 0.0,
        "check_races"_a = true, "check_uninitialized"_a = true, "lanes_in_step"_a = false, "vscale"_a = 2,
        "Runs a function of the module in the reference interpreter, which checks every access.\n\n"
        "Args:\n"
        "    module: the module.\n"
        "    name: of the function.\n"
        "    args: NumPy arrays (those of ml_dtypes too) and numbers, in the order of the parameters.\n"
        "    max_steps: loop iterations and calls after which the program is stopped; 0: no limit.\n"
        "    timeout: seconds after which it is stopped; 0: no limit.\n"
        "    check_races: report iterations of parallel loops that depend on each other.\n"
        "    check_uninitialized: report reads of memory that nothing has written.\n"
        "    lanes_in_step: iterations of vectorized loops may read what later ones write, as in lowered programs,\n"
        "        where each statement is done for all of them before the next one.\n"
        "    vscale: what T.vscale() is.\n\n"
        "Returns:\n    What the function returns, or None.\n\n"
        "Raises:\n"
        "    tilewright.ScriptError: the program did something undefined; the message names block, buffer and index.\n"
        "    tilewright.ArgumentError: the arguments do not fit the parameters.\n"
        "    tilewright.ResourceError: a limit was reached.");
  m.def(
      "interpret_at", &interpret_at_python, "module"_a, "name"_a, "args"_a, "points"_a, "timeout"_a = 0.0,
      "Computes single elements of what a function writes, at the cost of what they depend on.\n\n"
      "Each element is the result of a backward slice of the program, which the reference interpreter runs with all\n"
      "its checks; the arguments stay as they are. A program that cannot be sliced (calls of other functions, views,\n"
      "scatters) runs as a whole, once for all elements.\n\n"
      ">>> tw.ir.interpret_at(module, \"main\", a, b, c, points={\"C\": [(0, 0), (511, 3)]})\n"
      "{'C': [-1.25, 7.5]}\n\n"
      "Args:\n"
      "    module: the module.\n"
      "    name: of the function.\n"
      "    args: NumPy arrays and numbers, in the order of the parameters, of the sizes that are meant.\n"
      "    points: by the name of a buffer, or the position of its parameter, the indices of its elements.\n"
      "    timeout: seconds for all of them; 0: no limit.\n\n"
      "Returns:\n    By the same name or position, a value for each index; None for those that the time did not "
      "suffice "
      "for.\n\n"
      "Raises:\n"
      "    tilewright.ScriptError: the program did something undefined.\n"
      "    tilewright.ArgumentError: the arguments do not fit the parameters, or an index is out of bounds.");
  m.def("verify", &verify_python, "node"_a, "stage"_a = "scheduled",
        "Checks that a program is well formed.\n\n"
        "Args:\n"
        "    node: a module or function; anything else may have free variables.\n"
        "    stage: 'sparse' (with sparse axes), 'scheduled' (with blocks) or 'lowered' (without).\n\n"
        "Raises:\n    tilewright.ScriptError: with the code of the rule (verify/...) and the place, underlined.");
}

}  // namespace tilewright::python
