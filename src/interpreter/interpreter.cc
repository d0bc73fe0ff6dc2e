#include "interpreter/interpreter.h"

#include "ir/strides.h"

#include <algorithm>

#include "interpreter/compile.h"
#include "interpreter/machine.h"
#include "ir/numeric.h"
#include "ir/strides.h"
#include "ir/tensor_intrin.h"
#include "support/ranges.h"

namespace tilewright {
namespace interpreter {
namespace {

std::string text_of(const std::vector<int64_t>& numbers) {
  std::string text = "(";
  for (size_t i : indices_of(numbers)) text += (i ? ", " : "") + std::to_string(numbers[i]);
  return text + (numbers.size() == 1 ? ",)" : ")");
}

Diagnostic bad_argument(const Ref<Var>& param, const std::string& name, const std::string& what,
                        std::string hint = {}) {
  Diagnostic d = argument_error("interpret/argument", "parameter '" + name + "' " + what, std::move(hint));
  d.nodes.push_back(keep(param));
  return d;
}

bool is_compact(const TensorArg& arg) {
  // Without elements, no stride is ever used.
  if (is_contained(arg.shape, 0)) return true;
  int64_t expected = 1;
  for (size_t i = arg.shape.size(); i-- > 0;) {
    if (!arg.strides.empty() && arg.shape[i] > 1 && arg.strides[i] != expected) return false;
    expected *= arg.shape[i];
  }
  return true;
}

}  // namespace

Machine::Machine(const Program& program, const InterpretOptions& options)
    : program_(program),
      options_(options),
      constants_(program.constants.size(), 0),
      step_limit_(options.max_steps ? options.max_steps : UINT64_MAX) {
  deadline_ =
      std::chrono::steady_clock::now() + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                                             std::chrono::duration<double>(std::min(options.timeout_seconds, 1e9)));
}

void Machine::push_frame(Thread& thread, const Function& function) {
  Frame frame;
  frame.function = &function;
  size_t constants = function.constants.size();
  frame.memory.reset(new Slot[constants + static_cast<size_t>(function.frame_size)]());
  std::ranges::reverse_copy(function.constants, frame.memory.get());
  frame.slots = frame.memory.get() + constants;
  thread.frames.push_back(std::move(frame));
}

void Machine::store_returned(const Function& function, Slot value) {
  const PrimType* type = function.func->ret_type.as<PrimType>();
  if (!options_.returned || !type) return;
  options_.returned->dtype = type->dtype;
  if (type->dtype.is_float()) {
    options_.returned->as_float = value.f;
  } else {
    options_.returned->as_int = value.i;
  }
}

Status Machine::bind_tensor(const Ref<Var>& param, const Ref<Buffer>& buffer, const TensorArg& arg, Slot& slot) {
  std::string name = buffer.defined() ? buffer->name : param->name_hint;
  if (buffer.defined()) {
    if (arg.dtype != buffer->dtype) {
      return bad_argument(param, name, "is " + buffer->dtype.str() + ", and the argument is " + arg.dtype.str(),
                          "convert the array, for instance with astype");
    }
    if (arg.shape.size() != buffer->shape.size()) {
      return bad_argument(param, name,
                          "has " + std::to_string(buffer->shape.size()) +
                              " dimensions, and the argument has the shape " + text_of(arg.shape));
    }
    if (buffer->strides.empty() && !is_compact(arg)) {
      return bad_argument(param, name,
                          "is row-major and compact, and the argument has the strides " + text_of(arg.strides),
                          "copy it, for instance with np.ascontiguousarray");
    }
  }
  // With negative strides, elements precede the one at the data pointer.
  int64_t first = 0, last = 0, bytes = int64_t{arg.dtype.bytes()} * arg.dtype.lanes;
  bool empty = false;
  for (size_t i : indices_of(arg.shape)) {
    int64_t reach = (arg.shape[i] - 1) * arg.stride(i);
    empty = empty || arg.shape[i] == 0;
    (reach < 0 ? first : last) += reach;
  }
  if (!empty && !arg.data) return bad_argument(param, name, "is given without memory");
  if (empty) first = 0, last = -1;
  auto* lowest = static_cast<std::byte*>(arg.data) + first * bytes;
  slot.i = memory_.adopt(lowest, (last - first + 1) * bytes, bytes, arg.writable, name) - first * bytes;
  return Ok{};
}

Status Machine::bind_scalar(const Ref<Var>& param, const ScalarArg& arg, Slot& slot) {
  DataType type = param.dtype();
  if (type.is_float() != arg.dtype.is_float() || type.is_handle() || !type.is_scalar()) {
    return bad_argument(param, param->name_hint, "is " + type.str() + ", and the argument is " + arg.dtype.str());
  }
  if (type.is_float()) {
    slot.f = round_float(type, arg.as_float);
    return Ok{};
  }
  if (wrap_int(type, arg.as_int) != arg.as_int) {
    return bad_argument(param, param->name_hint,
                        "is " + type.str() + ", which does not hold " + std::to_string(arg.as_int));
  }
  slot.i = arg.as_int;
  return Ok{};
}

Status Machine::bind(const Function& function, const std::vector<InterpretArg>& args) {
  const PrimFunc& func = *function.func;
  if (args.size() != func.params.size()) {
    return argument_error("interpret/argument",
                          "function '" + function.name + "' takes " + std::to_string(func.params.size()) +
                              " arguments and is called with " + std::to_string(args.size()),
                          "give one array or number for each parameter");
  }
  Slot* slots = threads_.front()->frames.back().slots;
  for (size_t i : indices_of(args)) {
    const Ref<Var>& param = func.params[i];
    Ref<Buffer> buffer = func.buffer_of(param);
    Slot& slot = slots[function.param_slots[i]];
    if (const TensorArg* tensor = std::get_if<TensorArg>(&args[i])) {
      if (!buffer.defined() && !param.dtype().is_handle()) {
        return bad_argument(param, param->name_hint,
                            "is the scalar type " + param.dtype().str() + ", and the argument is an array");
      }
      TW_RETURN_IF_ERROR(bind_tensor(param, buffer, *tensor, slot));
    } else {
      if (buffer.defined()) return bad_argument(param, buffer->name, "is an array, and the argument is a number");
      TW_RETURN_IF_ERROR(bind_scalar(param, std::get<ScalarArg>(args[i]), slot));
    }
  }
  return Ok{};
}

bool Machine::argument_size(const Frame& frame, const Insn& in, Slot* r) {
  const Ref<Var>& param = frame.function->func->params[in.a];
  const TensorArg* tensor = frame.args ? std::get_if<TensorArg>(&(*frame.args)[in.a]) : nullptr;
  if (!tensor) {
    failure_ = bad_argument(param, param->name_hint,
                            "gives '" + frame.function->name + "' its sizes, and was passed as a pointer",
                            "pass the sizes as parameters of their own");
    return false;
  }
  auto dimension = static_cast<size_t>(in.b);
  r[in.dst].i = in.op == Op::kArgDimension ? tensor->shape[dimension] : size_of_stride(frame, in.a, dimension);
  return true;
}

/// The stride that a variable stands for: that of the first argument in which it leads to a second element. Where there
/// is none, that of a compact argument.
int64_t Machine::size_of_stride(const Frame& frame, int param, size_t dimension) {
  const PrimFunc& func = *frame.function->func;
  const Expr& size = func.buffer_of(func.params[param])->strides[dimension];
  for (size_t i : indices_of(*frame.args)) {
    const Ref<Buffer> buffer = func.buffer_of(func.params[i]);
    const TensorArg* other = std::get_if<TensorArg>(&(*frame.args)[i]);
    for (size_t d = buffer.defined() && other ? buffer->strides.size() : 0; d-- > 0;) {
      if (buffer->strides[d] == size && other->uses_stride(d)) return other->stride(d);
    }
  }
  return std::get<TensorArg>((*frame.args)[param]).compact_stride(dimension);
}

bool Machine::check_argument(const Frame& frame, const ArgCheck& check, const Slot* r) {
  const TensorArg* tensor = frame.args ? std::get_if<TensorArg>(&(*frame.args)[check.arg]) : nullptr;
  if (!tensor) return true;  // a pointer from another function
  auto dimension = static_cast<size_t>(check.dimension);
  bool is_shape = check.what == ArgCheck::What::kDimension;
  int64_t actual = is_shape ? tensor->shape[dimension] : tensor->stride(dimension);
  int64_t expected = r[check.expected].i;
  if (actual == expected || (!is_shape && !tensor->uses_stride(dimension))) return true;
  const Ref<Var>& param = frame.function->func->params[check.arg];
  failure_ = bad_argument(param, frame.function->func->buffer_of(param)->name,
                          std::string("has ") + (is_shape ? "extent " : "stride ") + std::to_string(expected) +
                              " in dimension " + std::to_string(check.dimension) + ", and the argument has " +
                              std::to_string(actual));
  return false;
}

Status Machine::run(int number, const std::vector<InterpretArg>& args) {
  const Function& function = *program_.functions[number];
  threads_.push_back(std::make_unique<Thread>());
  Thread& root = *threads_.front();
  root.place = threads_.begin();
  push_frame(root, function);
  TW_RETURN_IF_ERROR(bind(function, args));
  root.frames.back().args = &args;
  return schedule();
}

}  // namespace interpreter

Status interpret(const Ref<Module>& module, std::string_view name, const std::vector<InterpretArg>& args,
                 const InterpretOptions& options) {
  // Replace tensor intrinsics by their descriptions.
  Ref<Module> meaning = with_all_strides(described(module));
  interpreter::Program program;
  interpreter::Compiler compiler(*meaning, program, options);
  TW_TRY(number, compiler.compile(std::string(name)));
  return interpreter::Machine(program, options).run(number, args);
}

}  // namespace tilewright
