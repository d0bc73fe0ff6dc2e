#include "codegen/interpreted.h"

#include "codegen/in_place.h"
#include "ir/build.h"
#include "ir/strides.h"
#include "runtime/runtime.h"
#include "support/ranges.h"

namespace tilewright::codegen {
namespace {

int32_t report(tw_ctx* ctx, const Diagnostic& diagnostic) {
  int32_t code = diagnostic.blame == Blame::kResource ? TW_ERROR_MEMORY : TW_ERROR_ASSERTION;
  std::string text = "[" + diagnostic.code + "] " + diagnostic.message;
  if (!diagnostic.hint.empty()) text += TW_HINT_PREFIX + diagnostic.hint;
  return tw_report(ctx, code, text.c_str());
}

/// Copies the bytes of a contiguous tensor.
std::vector<char> bytes_of(const DLTensor& tensor, const void* data) {
  int64_t size = tw_element_bytes(tensor.dtype);
  for (int32_t d = 0; d < tensor.ndim; ++d) size *= tensor.shape[d];
  const char* begin = static_cast<const char*>(data);
  return {begin, begin + size};
}

/// Sets the in-place flags of the compiled kernel, so that both accept the same calls. run() copies such inputs, so the
/// interpreter itself needs no proof.
void allow_in_place(Signature& signature, const InterpretedKernel::Lowered& lowered) {
  const auto is_written = [](const Signature::Param& param) { return param.written; };
  const auto output = find_if(signature.params, is_written);
  if (output == signature.params.end()) return;
  const bool has_candidates = any_of(signature.params, [&](const auto& param) {
    return !param.written && param.buffer.defined() && has_layout_of(*param.buffer, *output->buffer);
  });
  const Ref<PrimFunc> func = has_candidates ? lowered() : Ref<PrimFunc>();
  if (!func.defined() || func->params.size() != signature.params.size()) return;
  const std::unordered_set<NodeRef> in_place = parameters_in_place(func);
  for (size_t i : indices_of(signature.params)) {
    const Ref<Buffer> buffer = func->buffer_of(func->params[i]);
    signature.params[i].in_place = buffer.defined() && in_place.contains(buffer->data);
  }
}

}  // namespace

InterpretedKernel::InterpretedKernel(Ref<Module> module, std::string name, std::string platform, Signature signature)
    : module_(std::move(module)),
      name_(std::move(name)),
      platform_(std::move(platform)),
      signature_(std::move(signature)) {
  auto to_tw_dim = [](const Signature::Dim& dim) { return tw_dim{dim.value, dim.kind, 0}; };
  dims_.reserve(2 * signature_.params.size());  // shape and strides of each parameter
  auto list = [&](const std::vector<Signature::Dim>& source) -> const tw_dim* {
    if (source.empty()) return nullptr;
    std::vector<tw_dim>& dims = dims_.emplace_back();
    for (const Signature::Dim& dim : source) dims.push_back(to_tw_dim(dim));
    return dims.data();
  };
  for (const Signature::Param& source : signature_.params) {
    bool tensor = source.buffer.defined();
    tw_param param{};
    param.name = source.name.c_str();
    param.shape = list(source.shape);
    param.strides = list(source.strides);
    param.elem_offset = to_tw_dim(source.elem_offset);
    param.kind = tensor ? TW_PARAM_TENSOR : TW_PARAM_SCALAR;
    param.dtype = dlpack_type(tensor ? source.buffer->dtype : source.var.dtype());
    param.ndim = static_cast<int32_t>(source.shape.size());
    param.flags = (source.written ? TW_PARAM_WRITTEN : 0) | (source.in_place ? TW_PARAM_IN_PLACE : 0);
    param.alignment = static_cast<int32_t>(source.alignment);
    param.symbol = source.symbol;
    params_.push_back(param);
  }
  for (const Signature::Symbol& symbol : signature_.symbols) {
    symbols_.push_back({symbol.name.c_str(), symbol.bits, 0});
  }
  abi_signature_.abi_version = TW_ABI_VERSION;
  abi_signature_.device_type = kDLCPU;
  abi_signature_.name = signature_.name.c_str();
  abi_signature_.params = params_.data();
  abi_signature_.symbols = symbols_.data();
  abi_signature_.features = "";
  abi_signature_.num_params = static_cast<int32_t>(params_.size());
  abi_signature_.num_tensors = signature_.num_tensors;
  abi_signature_.num_scalars = signature_.num_scalars;
  abi_signature_.num_symbols = static_cast<int32_t>(symbols_.size());
}

Result<std::shared_ptr<const InterpretedKernel>> InterpretedKernel::make(const Ref<Module>& given,
                                                                         const std::string& name,
                                                                         const Lowered& lowered,
                                                                         const std::string& platform) {
  Ref<Module> module = with_all_strides(given);
  Ref<PrimFunc> func = module->get(name).cast<PrimFunc>();
  TW_CHECK(func.defined(), name);
  TW_TRY(signature, signature_of(func, name));
  allow_in_place(signature, lowered);
  return std::shared_ptr<const InterpretedKernel>(new InterpretedKernel(module, name, platform, std::move(signature)));
}

int32_t InterpretedKernel::entry(tw_ctx* ctx, const DLTensor* const* tensors, const tw_scalar* scalars) {
  return static_cast<const InterpretedKernel*>(ctx->user)->run(ctx, tensors, scalars);
}

int32_t InterpretedKernel::run(tw_ctx* ctx, const DLTensor* const* tensors, const tw_scalar* scalars) const {
  ctx->error_code = TW_OK;
  if (!platform_.empty()) {
    return report(ctx,
                  argument_error("call/platform", "this kernel is code for " + platform_ + ", not for this machine",
                                 "export it, and link the object with a program there"));
  }
  std::vector<int64_t> slots(signature_.symbols.size());
  std::vector<void*> data(static_cast<size_t>(signature_.num_tensors));
  int32_t code = tw_check_args(ctx, &abi_signature_, tensors, scalars, slots.data(), data.data());
  if (code) return code;
  std::vector<InterpretArg> args;
  std::vector<std::vector<char>> copies;  // inputs that share memory with the output
  for (const Signature::Param& param : signature_.params) {
    size_t position = static_cast<size_t>(param.position);
    if (!param.buffer.defined()) {
      DataType type = param.var.dtype();
      args.push_back(
          ScalarArg{type, type.is_float() ? 0 : scalars[position].i, type.is_float() ? scalars[position].f : 0});
      continue;
    }
    const DLTensor& tensor = *tensors[position];
    TensorArg arg;
    arg.data = data[position];
    if (param.in_place && !param.written) arg.data = copies.emplace_back(bytes_of(tensor, arg.data)).data();
    arg.dtype = param.buffer->dtype;
    arg.shape.assign(tensor.shape, tensor.shape + tensor.ndim);
    if (tensor.strides) arg.strides.assign(tensor.strides, tensor.strides + tensor.ndim);
    arg.writable = param.written;
    args.push_back(std::move(arg));
  }
  // interpret() checks extents that are expressions of sizes.
  try {
    InterpretOptions options;
    options.keep_going = [ctx] { return tw_interrupted(ctx) == TW_OK; };
    Status status = interpret(module_, name_, args, options);
    if (!status.ok() && status.error().code == "interpret/stopped") return TW_ERROR_INTERRUPTED;
    return status.ok() ? TW_OK : report(ctx, status.error());
  } catch (const Exception& failure) {
    return report(ctx, failure.diagnostic());
  }
}

}  // namespace tilewright::codegen
