#include "interpreter/interpret_at.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <new>
#include <unordered_set>

#include "interpreter/slice.h"
#include "ir/build.h"
#include "ir/numeric.h"
#include "ir/substitute.h"
#include "ir/tensor_intrin.h"
#include "ir/traverse.h"
#include "support/ranges.h"

namespace tilewright {
namespace {

using Clock = std::chrono::steady_clock;

int64_t offset_of(const TensorArg& tensor, const std::vector<int64_t>& index) {
  int64_t offset = 0;
  for (size_t d : indices_of(index)) offset += index[d] * tensor.stride(d);
  return offset * tensor.dtype.bytes() * tensor.dtype.lanes;
}

/// The arguments, with separate memory for those that a program may write to.
class Scratch {
 public:
  explicit Scratch(std::vector<InterpretArg> args) : original_(args), args_(std::move(args)), memory_(args_.size()) {}

  /// Copies the original contents of these arguments to scratch memory. Returns false if allocation fails.
  bool refresh(const std::vector<size_t>& written) {
    for (size_t at : written) {
      const TensorArg* tensor = std::get_if<TensorArg>(&original_[at]);
      if (!tensor || !tensor->writable) continue;
      if (std::ranges::find(tensor->shape, 0) != tensor->shape.end()) continue;  // no element
      int64_t first = 0, last = 0;  // elements from the one that `data` points to
      for (size_t d : indices_of(tensor->shape)) {
        const int64_t reach = (tensor->shape[d] - 1) * tensor->stride(d);
        (reach < 0 ? first : last) += reach;
      }
      const auto size = static_cast<int64_t>(tensor->dtype.bytes()) * tensor->dtype.lanes;
      if (!memory_[at]) memory_[at].reset(new (std::nothrow) std::byte[(last - first + 1) * size]);
      if (!memory_[at]) return false;
      const auto* from = static_cast<const std::byte*>(tensor->data) + first * size;
      std::copy(from, from + (last - first + 1) * size, memory_[at].get());
      std::get<TensorArg>(args_[at]).data = memory_[at].get() - first * size;
    }
    return true;
  }

  const std::vector<InterpretArg>& args() const { return args_; }

  ScalarArg read(const ElementOfArgument& element) const {
    const TensorArg& tensor = std::get<TensorArg>(args_[element.param]);
    const auto* at = static_cast<const std::byte*>(tensor.data) + offset_of(tensor, element.index);
    ScalarArg value{tensor.dtype};
    if (tensor.dtype.is_float()) {
      value.as_float = load_float(tensor.dtype, at);
    } else {
      value.as_int = load_int(tensor.dtype, at);
    }
    return value;
  }

 private:
  const std::vector<InterpretArg> original_;
  std::vector<InterpretArg> args_;
  std::vector<std::unique_ptr<std::byte[]>> memory_;
};

/// Substitutes the sizes and integer scalars that the arguments determine.
Ref<PrimFunc> with_sizes(const Ref<PrimFunc>& func, const std::vector<InterpretArg>& args) {
  VarMap sizes;
  auto note = [&](const Expr& e, int64_t value) {
    if (e.defined() && e.is<Var>() && e.dtype().is_integral()) sizes.emplace(e, constant(e.dtype(), value));
  };
  for (size_t i : indices_of(func->params)) {
    const Ref<Buffer> buffer = func->buffer_of(func->params[i]);
    if (const ScalarArg* scalar = std::get_if<ScalarArg>(&args[i])) {
      const DataType type = func->params[i].dtype();
      if (type.is_int() && scalar->as_int >= int_min(type) && scalar->as_int <= int_max(type)) {
        note(func->params[i], scalar->as_int);
      }
      continue;
    }
    const TensorArg& tensor = std::get<TensorArg>(args[i]);
    if (!buffer || buffer->shape.size() != tensor.shape.size()) continue;
    for (size_t d : indices_of(tensor.shape)) note(buffer->shape[d], tensor.shape[d]);
  }
  return sizes.empty() ? func : substitute(func, sizes);
}

/// Returns the positions of the parameters whose buffers the function stores to.
std::vector<size_t> stored_params(const Ref<PrimFunc>& func) {
  std::unordered_set<NodeRef> stored;
  // A store through a view (match_buffer) writes the viewed buffer.
  visit(
      func->body, [&](const Ref<BufferStore>& store) { stored.insert(store->buffer); },
      [&](const Ref<MatchBufferRegion>& view, Visitor&) { stored.insert(view->source->buffer); });
  std::vector<size_t> found;
  for (size_t i : indices_of(func->params)) {
    if (stored.contains(func->buffer_of(func->params[i]))) found.push_back(i);
  }
  return found;
}

std::optional<Diagnostic> check_elements(const Ref<PrimFunc>& func, const std::vector<InterpretArg>& args,
                                         const std::vector<ElementOfArgument>& elements) {
  for (const ElementOfArgument& element : elements) {
    const TensorArg* tensor = element.param < args.size() ? std::get_if<TensorArg>(&args[element.param]) : nullptr;
    const std::string name = element.param < args.size() ? func->params[element.param]->name_hint : "";
    bool fits = tensor && func->buffer_of(func->params[element.param]).defined() &&
                tensor->shape.size() == element.index.size();
    for (size_t d = 0; fits && d < element.index.size(); ++d) {
      fits = element.index[d] >= 0 && element.index[d] < tensor->shape[d];
    }
    if (!fits) {
      return argument_error("interpret/argument",
                            "a point of '" + name + "' is not an element of the array passed for it",
                            "a point has one index from 0 on for each dimension");
    }
  }
  return std::nullopt;
}

}  // namespace

Result<std::vector<std::optional<ScalarArg>>> interpret_at(const Ref<Module>& module, std::string_view name,
                                                           const std::vector<InterpretArg>& args,
                                                           const std::vector<ElementOfArgument>& elements,
                                                           const InterpretOptions& options) {
  // Replace tensor intrinsics by their descriptions.
  const Ref<Module> meaning = described(module);
  const Func found = meaning->get(name);
  const Ref<PrimFunc> written = found.is<PrimFunc>() ? found.cast<PrimFunc>() : Ref<PrimFunc>();
  if (!written || written->params.size() != args.size()) {
    // interpret() reports the mismatch.
    TW_RETURN_IF_ERROR(interpret(module, name, args, options));
    TW_CHECK(false, std::string(name) + " runs with arguments that it does not have");
  }
  if (auto error = check_elements(written, args, elements)) return *error;
  const Ref<PrimFunc> func = with_sizes(written, args);
  const Clock::time_point start = Clock::now();
  std::vector<std::optional<ScalarArg>> values(elements.size());
  Scratch scratch(args);
  bool all_ran = false;
  for (size_t i : indices_of(elements)) {
    if (all_ran) {
      values[i] = scratch.read(elements[i]);
      continue;
    }
    const Ref<Buffer> buffer = func->buffer_of(func->params[elements[i].param]);
    const std::optional<Ref<PrimFunc>> part = interpreter::slice(func, buffer, elements[i].index);
    std::vector<size_t> touched = stored_params(func);
    if (!part) {
      touched.clear();
      for (size_t at : indices_of(args)) touched.push_back(at);
    }
    if (!scratch.refresh(touched)) {
      return resource_error("interpret/memory", "no memory for copies of the arguments", "use smaller shapes");
    }
    InterpretOptions limited = options;
    if (options.timeout_seconds > 0) {
      limited.timeout_seconds = options.timeout_seconds - std::chrono::duration<double>(Clock::now() - start).count();
      if (limited.timeout_seconds <= 0) return values;
    }
    const Ref<Module> program = with_function(meaning, std::string(name), part ? *part : func);
    const Status status = interpret(program, name, scratch.args(), limited);
    if (!status.ok() && status.error().code == "interpret/timeout") return values;
    TW_RETURN_IF_ERROR(status);
    values[i] = scratch.read(elements[i]);
    all_ran = !part;
  }
  return values;
}

}  // namespace tilewright
