#include "python/call.h"

#include <fmt/format.h>
#include <nanobind/stl/string.h>
#include <structmember.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "python/call_arguments.h"
#include "python/device_array.h"
#include "python/interrupts.h"
#include "python/module.h"
#include "runtime/device.h"
#include "runtime/library.h"
#include "support/diagnostic.h"

namespace tilewright::python {
namespace {

// ---- Errors

struct CodeName {
  int32_t code;
  const char* name;
};
constexpr CodeName kCodeNames[] = {
    {TW_ERROR_NULL, "call/null"},           {TW_ERROR_NDIM, "call/ndim"},
    {TW_ERROR_DTYPE, "call/dtype"},         {TW_ERROR_SHAPE, "call/shape"},
    {TW_ERROR_STRIDES, "call/strides"},     {TW_ERROR_OFFSET, "call/offset"},
    {TW_ERROR_ALIGNMENT, "call/alignment"}, {TW_ERROR_DEVICE, "call/device"},
    {TW_ERROR_OVERLAP, "call/overlap"},     {TW_ERROR_SIZE, "call/size"},
    {TW_ERROR_READ_ONLY, "call/read-only"}, {TW_ERROR_SCALAR, "call/scalar"},
    {TW_ERROR_COUNT, "call/count"},         {TW_ERROR_OTHER_ARGUMENT, "call/argument"},
    {TW_ERROR_ABI, "call/version"},         {TW_ERROR_CPU_FEATURE, "call/cpu-feature"},
    {TW_ERROR_MEMORY, "call/memory"},       {TW_ERROR_ASSERTION, "call/assertion"},
    {TW_ERROR_EXTENT, "call/extent"},       {TW_ERROR_NO_DEVICE, "call/no-device"},
    {TW_ERROR_LAUNCH, "call/launch"},
};

Diagnostic diagnostic_of(int32_t code, std::string message, std::string hint) {
  std::string name = "call/failed";
  for (const CodeName& entry : kCodeNames) {
    if (entry.code == code) name = entry.name;
  }
  if (tw_is_argument_error(code) || code == TW_ERROR_ASSERTION) return argument_error(name, message, hint);
  if (code == TW_ERROR_CPU_FEATURE || code == TW_ERROR_MEMORY || code == TW_ERROR_ABI || code == TW_ERROR_NO_DEVICE ||
      code == TW_ERROR_LAUNCH)
    return resource_error(name, message, hint);
  return internal_error(name, fmt::format("a kernel returned code {}: {}", code, message), hint);
}

}  // namespace

void raise_kernel_error(int32_t code, std::string message) {
  std::string hint;
  if (size_t at = message.find(TW_HINT_PREFIX); at != std::string::npos) {
    hint = message.substr(at + sizeof(TW_HINT_PREFIX) - 1);
    message.resize(at);
  }
  Diagnostic diagnostic = diagnostic_of(code, message, hint);
  // The interpreter finds more than a kernel does, and writes what it calls it before the message; so does a kernel of
  // another platform.
  const bool is_named = message.starts_with("[interpret/") || message.starts_with("[call/platform]");
  size_t end = is_named ? message.find("] ") : std::string::npos;
  if (end != std::string::npos) {
    diagnostic.code = message.substr(1, end - 1);
    diagnostic.message = message.substr(end + 2);
    // Failed assertions of a program concern its arguments; other errors are bugs of the program.
    bool program = code == TW_ERROR_ASSERTION && diagnostic.code.starts_with("interpret/") &&
                   diagnostic.code != "interpret/assertion" && diagnostic.code != "interpret/extent" &&
                   diagnostic.code != "interpret/argument";
    if (program) diagnostic.blame = Blame::kScript;
  }
  set_python_error(diagnostic);
}

std::string describe(const tw_signature* signature, const tw_param* param) {
  char text[512];
  tw_describe_param(signature, param, text, sizeof text);
  return text;
}

bool refuse(const tw_signature* signature, const tw_param* param, int32_t code, const std::string& what,
            const std::string& hint) {
  const auto is_alike = [&](const tw_param& other) { return std::strcmp(other.name, param->name) == 0; };
  const auto alike = std::count_if(signature->params, signature->params + signature->num_params, is_alike);
  const std::string which = alike > 1 ? fmt::format(" (parameter {})", param - signature->params) : "";
  set_python_error(
      diagnostic_of(code, fmt::format("{}: argument {}{}: {}", signature->name, param->name, which, what), hint));
  return false;
}

namespace {

// ---- The object

struct Kernel {
  PyObject_HEAD vectorcallfunc vectorcall;
  tw_kernel entry;
  const tw_signature* signature;
  PyObject* keep_alive;
  void* user;
  int max_threads;
  bool copies_strides;  ///< whether arguments with unsupported strides are copied
};

Kernel* as_kernel(PyObject* object) { return reinterpret_cast<Kernel*>(object); }

PyTypeObject* kernel_type = nullptr;

// ---- Calling

/// `count` objects: on the stack for the usual few.
template <class T, size_t Inline>
class Few {
 public:
  explicit Few(size_t count) : data_(inline_) {
    if (count > Inline) {
      heap_ = std::make_unique_for_overwrite<T[]>(count);
      data_ = heap_.get();
    }
  }
  T& operator[](size_t i) { return data_[i]; }
  T* data() { return data_; }

 private:
  T* data_;
  std::unique_ptr<T[]> heap_;
  T inline_[Inline];
};

std::string parameter_list(const tw_signature* signature) {
  std::string list;
  for (int32_t i = 0; i < signature->num_params; ++i) {
    list += fmt::format("{}{}", i ? ", " : "", signature->params[i].name);
  }
  return list;
}

bool refuse_call(const tw_signature* signature, const std::string& got) {
  set_python_error(
      diagnostic_of(TW_ERROR_COUNT,
                    fmt::format("{} takes {} argument{} ({}), got {}", signature->name, signature->num_params,
                                signature->num_params == 1 ? "" : "s", parameter_list(signature), got),
                    "pass each once: in this order, or by these names"));
  return false;
}

bool refuse_ambiguous(const tw_signature* signature, const char* name, int32_t first, int32_t second) {
  set_python_error(argument_error(
      "call/ambiguous",
      fmt::format("{} is called with {}=..., and its parameters {} and {}, counted from 0, have this name",
                  signature->name, name, first, second),
      "pass them in order, without names"));
  return false;
}

/// Brings positional and named arguments into the order of the parameters.
bool order_arguments(const tw_signature* signature, PyObject* const* args, Py_ssize_t positional, PyObject* names,
                     PyObject** ordered) {
  Py_ssize_t named = names ? PyTuple_GET_SIZE(names) : 0;
  if (positional > signature->num_params || (named == 0 && positional < signature->num_params))
    return refuse_call(signature, std::to_string(positional + named));
  for (int32_t i = 0; i < signature->num_params; ++i) ordered[i] = i < positional ? args[i] : nullptr;
  for (Py_ssize_t k = 0; k < named; ++k) {
    const char* name = PyUnicode_AsUTF8(PyTuple_GET_ITEM(names, k));
    if (!name) {  // a lone surrogate, which no parameter has
      PyErr_Clear();
      name = "?";
    }
    const auto is_it = [&](int32_t i) { return std::strcmp(name, signature->params[i].name) == 0; };
    int32_t at = 0;
    while (at < signature->num_params && !is_it(at)) ++at;
    if (at == signature->num_params) return refuse_call(signature, fmt::format("an unknown one, {}", name));
    for (int32_t other = at + 1; other < signature->num_params; ++other) {
      if (is_it(other)) return refuse_ambiguous(signature, name, at, other);
    }
    if (ordered[at]) return refuse_call(signature, fmt::format("{} twice", name));
    ordered[at] = args[positional + k];
  }
  for (int32_t i = 0; i < signature->num_params; ++i) {
    if (!ordered[i]) return refuse_call(signature, fmt::format("none for {}", signature->params[i].name));
  }
  return true;
}

/// The context of this thread, with the kernel's own settings while this lives. Kernels whose entry calls back into
/// Python may call others.
class BorrowedContext {
 public:
  BorrowedContext(const Kernel* kernel, const DLTensor* on_device)
      : ctx_(tw_default_ctx()), user_(ctx_->user), stream_(ctx_->stream), threads_(ctx_->max_threads) {
    ctx_->user = kernel->user;
    ctx_->max_threads = kernel->max_threads;
    // A library has a runtime of its own, which would not find the queue of the array.
    if (on_device && !stream_) ctx_->stream = tw_device_stream(ctx_, on_device->device);
  }
  ~BorrowedContext() {
    ctx_->user = user_;
    ctx_->stream = stream_;
    ctx_->max_threads = threads_;
  }
  tw_ctx* get() { return ctx_; }

 private:
  tw_ctx* ctx_;
  void *user_, *stream_;
  int32_t threads_;
};

/// The first argument in memory of the kernel's kind of device; null if there is none.
const DLTensor* argument_on_device(const tw_signature* signature, const DLTensor* const* tensors) {
  if (signature->device_type == kDLCPU) [[likely]]
    return nullptr;
  for (int32_t i = 0; i < signature->num_tensors; ++i) {
    if (static_cast<int32_t>(tensors[i]->device.device_type) == signature->device_type) return tensors[i];
  }
  return nullptr;
}

bool run(const Kernel* kernel, const DLTensor* const* tensors, const tw_scalar* scalars, int64_t calls = 1) {
  BorrowedContext context(kernel, argument_on_device(kernel->signature, tensors));
  Interrupts interrupts(context.get());
  int32_t code = TW_OK;
  Py_BEGIN_ALLOW_THREADS;
  for (int64_t i = 0; i < calls && code == TW_OK; ++i) code = kernel->entry(context.get(), tensors, scalars);
  Py_END_ALLOW_THREADS;
  if (code == TW_OK) [[likely]]
    return true;
  if (code == TW_ERROR_INTERRUPTED) {
    interrupts.raise();
    return false;
  }
  if (!PyErr_Occurred()) raise_kernel_error(code, tw_last_error());
  return false;
}

/// Waits for calls that do not wait themselves; false with a Python error.
bool wait_for(DLDevice device) {
  tw_ctx* const context = tw_default_ctx();
  Interrupts interrupts(context);
  int32_t code = TW_OK;
  Py_BEGIN_ALLOW_THREADS;
  code = tw_device_wait(context, device);
  Py_END_ALLOW_THREADS;
  if (code == TW_ERROR_INTERRUPTED)
    interrupts.raise();
  else if (code != TW_OK)
    raise_kernel_error(code, tw_last_error());
  return code == TW_OK;
}

/// A call that was refused: the subclass may know what to pass instead. Its method gets the arguments and returns what
/// the call returns, or NotImplemented: "_complete" where some were omitted, "_copied" where strides do not fit.
PyObject* call_again(const char* method, PyObject* self, PyObject* const* args, Py_ssize_t positional,
                     PyObject* names) {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyObject* list = PyTuple_New(positional);
  for (Py_ssize_t i = 0; list && i < positional; ++i) PyTuple_SET_ITEM(list, i, Py_NewRef(args[i]));
  PyObject* named = PyDict_New();
  for (Py_ssize_t i = 0; named && names && i < PyTuple_GET_SIZE(names); ++i) {
    PyDict_SetItem(named, PyTuple_GET_ITEM(names, i), args[positional + i]);
  }
  PyObject* name = PyUnicode_FromString(method);
  PyObject* const callee[] = {self, list, named};
  PyObject* result = list && named && name ? PyObject_VectorcallMethod(name, callee, 3, nullptr) : nullptr;
  Py_XDECREF(name);
  Py_XDECREF(named);
  Py_XDECREF(list);
  if (result == Py_NotImplemented) {
    Py_CLEAR(result);
    PyErr_Restore(type, value, traceback);
    return nullptr;
  }
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(traceback);
  return result;
}

/// Whether the Python error says that strides of an argument do not fit: nothing was computed then.
bool is_of_strides() {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  PyObject* code = value ? PyObject_GetAttrString(value, "code") : nullptr;
  const bool found = code && PyUnicode_Check(code) && PyUnicode_CompareWithASCIIString(code, "call/strides") == 0;
  Py_XDECREF(code);
  PyErr_Clear();
  PyErr_Restore(type, value, traceback);
  return found;
}

/// A call of a kernel for CUDA is on the current stream of the library of its first tensor that has one, such as
/// PyTorch. Arrays of this package come from the default stream, and go back to it.
class CallStream {
 public:
  CallStream(const tw_signature* signature, PyObject* const* ordered) {
    if (signature->device_type != kDLCUDA) [[likely]]
      return;
    tw_ctx* const ctx = tw_default_ctx();
    if (ctx->stream) return;  // the caller's
    for (int32_t i = 0; i < signature->num_params; ++i) {
      if (signature->params[i].kind != TW_PARAM_TENSOR) continue;
      has_own_ |= device_array_of(ordered[i]) != nullptr;
      if (!ctx_ && find_stream(ordered[i], device_, stream_)) ctx_ = ctx;
    }
    if (ctx_) ctx_->stream = stream_;
  }
  ~CallStream() {
    if (ctx_) ctx_->stream = nullptr;
  }
  CallStream(const CallStream&) = delete;

  bool begin() const { return order(nullptr, stream_); }
  bool end() const { return order(stream_, nullptr); }

 private:
  /// False with a Python error.
  bool order(void* before, void* after) const {
    if (!has_own_ || !stream_) return true;
    tw_ctx* const ctx = tw_default_ctx();
    const int32_t code = tw_device_order(ctx, device_, before, after);
    if (code != TW_OK) raise_kernel_error(code, tw_last_error());
    return code == TW_OK;
  }

  tw_ctx* ctx_ = nullptr;
  DLDevice device_{};
  void* stream_ = nullptr;
  bool has_own_ = false;
};

/// Calls `work(tensors, scalars)` with the arguments, one for each parameter, as the kernel takes them; false with a
/// Python error.
template <class Work>
bool with_arguments(const Kernel* kernel, PyObject* const* ordered, Work&& work) {
  const tw_signature* signature = kernel->signature;
  Few<TensorArgument, 4> tensors(signature->num_tensors);
  Few<const DLTensor*, 8> views(signature->num_tensors);
  Few<tw_scalar, 8> scalars(signature->num_scalars);
  int32_t num_tensors = 0, num_scalars = 0;
  const CallStream stream(signature, ordered);
  bool fine = stream.begin();
  for (int32_t i = 0; fine && i < signature->num_params; ++i) {
    const tw_param* param = &signature->params[i];
    if (param->kind == TW_PARAM_TENSOR) {
      TensorArgument& argument = tensors[num_tensors];
      argument.clear();
      views[num_tensors++] = &argument.tensor;
      fine = read_tensor(ordered[i], signature, param, argument);
    } else {
      fine = read_scalar(ordered[i], signature, param, scalars[num_scalars++]);
    }
  }
  fine = fine && work(views.data(), scalars.data()) && stream.end();
  while (num_tensors > 0) tensors[--num_tensors].release();
  return fine;
}

PyObject* call(PyObject* self, PyObject* const* args, size_t flags, PyObject* names) {
  const Kernel* kernel = as_kernel(self);
  const tw_signature* signature = kernel->signature;
  Few<PyObject*, 8> ordered(signature->num_params);
  if (!order_arguments(signature, args, PyVectorcall_NARGS(flags), names, ordered.data())) {
    if (Py_TYPE(self) == kernel_type) return nullptr;
    return call_again("_complete", self, args, PyVectorcall_NARGS(flags), names);
  }
  const bool fine = with_arguments(kernel, ordered.data(),
                                   [&](auto* tensors, auto* scalars) { return run(kernel, tensors, scalars); });
  if (!fine) {
    if (!kernel->copies_strides || Py_TYPE(self) == kernel_type || !is_of_strides()) return nullptr;
    return call_again("_copied", self, ordered.data(), signature->num_params, nullptr);
  }
  Py_RETURN_NONE;
}

double time_calls(nb::handle object, int64_t calls, const nb::args& arguments) {
  if (!PyObject_TypeCheck(object.ptr(), kernel_type))
    throw Exception(argument_error("arguments/types", "time_calls takes a kernel", "tw.compile(program) gives one"));
  const Kernel* kernel = as_kernel(object.ptr());
  std::vector<PyObject*> args;
  for (nb::handle argument : arguments) args.push_back(argument.ptr());
  Few<PyObject*, 8> ordered(kernel->signature->num_params);
  const auto count = static_cast<Py_ssize_t>(args.size());
  if (!order_arguments(kernel->signature, args.data(), count, nullptr, ordered.data())) throw nb::python_error();
  std::chrono::duration<double> spent{};
  const bool fine = with_arguments(kernel, ordered.data(), [&](auto* tensors, auto* scalars) {
    const auto start = std::chrono::steady_clock::now();
    bool ran = run(kernel, tensors, scalars, calls);
    if (const DLTensor* on_device = ran ? argument_on_device(kernel->signature, tensors) : nullptr)
      ran = wait_for(on_device->device);
    spent = std::chrono::steady_clock::now() - start;
    return ran;
  });
  if (!fine) throw nb::python_error();
  return spent.count();
}

// ---- Everything else of the type

PyObject* allocate(PyTypeObject* type, tw_kernel entry, const tw_signature* signature, PyObject* keep_alive, void* user,
                   int max_threads) {
  PyObject* object = type->tp_alloc(type, 0);
  if (!object) return nullptr;
  Kernel* kernel = as_kernel(object);
  kernel->vectorcall = call;
  kernel->entry = entry;
  kernel->signature = signature;
  kernel->keep_alive = Py_XNewRef(keep_alive);
  kernel->user = user;
  kernel->max_threads = max_threads;
  kernel->copies_strides = false;
  return object;
}

/// KernelBase(kernel): the same kernel once more; how subclasses are made.
PyObject* create(PyTypeObject* type, PyObject* args, PyObject* names) {
  PyObject* source = nullptr;
  if ((names && PyDict_Size(names) > 0) || !PyArg_ParseTuple(args, "O!", kernel_type, &source)) {
    PyErr_Clear();
    PyErr_SetString(PyExc_TypeError, "kernels are made by tilewright.compile() and tilewright.load()");
    return nullptr;
  }
  Kernel* kernel = as_kernel(source);
  return allocate(type, kernel->entry, kernel->signature, kernel->keep_alive, kernel->user, kernel->max_threads);
}

int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(as_kernel(self)->keep_alive);
  Py_VISIT(Py_TYPE(self));
  return 0;
}

int clear(PyObject*) { return 0; }  // the code must outlive whatever calls it: keep_alive is dropped with the object

void destroy(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  Py_XDECREF(as_kernel(self)->keep_alive);
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* represent(PyObject* self) {
  const tw_signature* signature = as_kernel(self)->signature;
  std::string text = fmt::format("<Kernel {}(", signature->name);
  for (int32_t i = 0; i < signature->num_params; ++i) {
    const tw_param& param = signature->params[i];
    text += fmt::format("{}{}: {}", i ? ", " : "", param.name, describe(signature, &param));
  }
  const int threads = as_kernel(self)->max_threads;
  text += threads ? fmt::format("), on {} thread{}>", threads, threads == 1 ? "" : "s") : "), on all cores>";
  return PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size()));
}

PyObject* get_name(PyObject* self, void*) { return PyUnicode_FromString(as_kernel(self)->signature->name); }

PyObject* get_parameters(PyObject* self, void*) {
  const tw_signature* signature = as_kernel(self)->signature;
  PyObject* result = PyTuple_New(signature->num_params);
  for (int32_t i = 0; result && i < signature->num_params; ++i) {
    const tw_param& param = signature->params[i];
    PyObject* entry = Py_BuildValue("(ssO)", param.name, describe(signature, &param).c_str(),
                                    param.flags & TW_PARAM_WRITTEN ? Py_True : Py_False);
    if (!entry) {
      Py_CLEAR(result);
      break;
    }
    PyTuple_SET_ITEM(result, i, entry);
  }
  return result;
}

PyObject* get_threads(PyObject* self, void*) { return PyLong_FromLong(as_kernel(self)->max_threads); }

int set_threads(PyObject* self, PyObject* value, void*) {
  long threads = value ? PyLong_AsLong(value) : -1;
  PyErr_Clear();
  if (threads < 0 || threads > 4096) {
    set_python_error(
        argument_error("call/threads", "threads is an integer from 0 (all) to 4096", "leave it out to use all"));
    return -1;
  }
  as_kernel(self)->max_threads = static_cast<int>(threads);
  return 0;
}

PyObject* get_strides(PyObject* self, void*) {
  return PyUnicode_FromString(as_kernel(self)->copies_strides ? "copy" : "refuse");
}

int set_strides(PyObject* self, PyObject* value, void*) {
  const bool is_text = value && PyUnicode_Check(value);
  const bool copies = is_text && PyUnicode_CompareWithASCIIString(value, "copy") == 0;
  if (!copies && !(is_text && PyUnicode_CompareWithASCIIString(value, "refuse") == 0)) {
    set_python_error(argument_error("call/strides-option", "strides is 'refuse' or 'copy'",
                                    "'copy' passes compact copies of arrays whose strides do not fit"));
    return -1;
  }
  as_kernel(self)->copies_strides = copies;
  return 0;
}

PyGetSetDef properties[] = {
    {"name", get_name, nullptr, "Name of the function, as its script spells it.", nullptr},
    {"parameters", get_parameters, nullptr,
     "For each parameter its name, its type and shape as text, and whether the kernel writes to it.", nullptr},
    {"threads", get_threads, set_threads, "Upper limit of threads that a call uses; 0: all.", nullptr},
    {"strides", get_strides, set_strides, "What becomes of arguments whose strides do not fit: 'refuse', or 'copy'.",
     nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Kernel, vectorcall), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

constexpr const char* kDoc =
    "A compiled kernel. Call it with one argument per parameter: arrays (NumPy, ml_dtypes, anything with a buffer or "
    "with\n"
    "__dlpack__, without copies) and numbers. Results are written to the arrays; the call returns None.\n\n"
    "Raises ArgumentError, which names the parameter, what was expected, what was got and what to do.";

PyType_Slot slots[] = {
    {Py_tp_doc, const_cast<char*>(kDoc)},
    {Py_tp_new, reinterpret_cast<void*>(create)},
    {Py_tp_dealloc, reinterpret_cast<void*>(destroy)},
    {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(clear)},
    {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
    {Py_tp_repr, reinterpret_cast<void*>(represent)},
    {Py_tp_getset, properties},
    {Py_tp_members, members},
    {0, nullptr},
};

PyType_Spec spec = {"tilewright._core.KernelBase", sizeof(Kernel), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL, slots};

/// name -> KernelBase for every kernel of a library, and what it says of how they are called.
nb::tuple load_library(const std::string& path) {
  Result<std::shared_ptr<const runtime::Library>> library = runtime::Library::open(path);
  if (!library.ok()) throw Exception(std::move(library.error()));
  auto* owner = new std::shared_ptr<const runtime::Library>(*library);
  nb::capsule keep_alive(
      owner, [](void* pointer) noexcept { delete static_cast<std::shared_ptr<const runtime::Library>*>(pointer); });
  nb::dict kernels;
  for (const tw_export& kernel : (*library)->exports()) {
    nb::object callable = nb::steal(make_callable(kernel.entry, kernel.signature, keep_alive.ptr()));
    if (!callable.is_valid()) nb::raise_python_error();
    kernels[kernel.name] = callable;
  }
  return nb::make_tuple(kernels, (*library)->calls());
}

void set_num_threads(int64_t count) {
  if (count < 0 || count > 4096)
    throw Exception(argument_error("call/threads",
                                   fmt::format("the number of threads is {}, not from 0 to 4096", count),
                                   "0 stands for one thread per core"));
  tw_set_num_threads(static_cast<int32_t>(count));
}

}  // namespace

PyObject* make_callable(tw_kernel entry, const tw_signature* signature, PyObject* keep_alive, void* user) {
  char defect[256] = "";
  bool consistent = tw_verify_signature(signature, defect, sizeof defect) == TW_OK;
  TW_CHECK(consistent, defect);
  return allocate(kernel_type, entry, signature, keep_alive, user, 0);
}

void bind_call(nb::module_& m) {
  set_main_thread();
  kernel_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  if (!kernel_type) nb::raise_python_error();
  m.attr("KernelBase") = nb::handle(reinterpret_cast<PyObject*>(kernel_type));
  m.def("load_library", load_library, "path"_a,
        "The kernels of a shared library that an export wrote, by name, and what it says of their calls.",
        nb::sig("def load_library(path: str) -> tuple[dict[str, KernelBase], str]"));
  m.def("time_calls", time_calls, "kernel"_a, "calls"_a, "args"_a,
        "Seconds that so many calls in a row take, without what Python adds to each.");
  m.def("set_num_threads", set_num_threads, "count"_a,
        "Sets how many threads parallel loops use, the caller included; 0 restores the default, one per core.");
  m.def("get_num_threads", [] { return tw_get_num_threads(); }, "How many threads parallel loops use.");
}

}  // namespace tilewright::python
