#include <stdarg.h>
#include <stdio.h>

#include "runtime/runtime.h"

const tw_param* tw_tensor_param(const tw_signature* signature, int32_t tensor) {
  for (int32_t i = 0; i < signature->num_params; ++i) {
    if (signature->params[i].kind == TW_PARAM_TENSOR && tensor-- == 0) return &signature->params[i];
  }
  return NULL;
}

int32_t tw_required_alignment(const tw_signature* signature, const tw_param* param, const DLTensor* tensor) {
  const int is_copied = signature->device_type != kDLCPU && tw_is_on_host(tensor);
  if (param->alignment > 0 && !is_copied) return param->alignment;
  int32_t bytes = (param->dtype.bits + 7) / 8;
  if (param->dtype.code == kDLComplex) bytes /= 2;
  return bytes > 0 && (bytes & (bytes - 1)) == 0 ? bytes : 1;
}

/* ---- Verification ------------------------------------------------------------------------------------------------ */

enum { kMostSymbols = 256, kMostDims = 64, kMostLanes = 256 };

typedef struct verifier {
  const tw_signature* signature;
  char* message;
  size_t size;
  char bound[kMostSymbols];
} verifier;

__attribute__((format(printf, 2, 3))) static int32_t defect(verifier* v, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(v->message, v->size, format, arguments);
  va_end(arguments);
  return TW_ERROR_INTERNAL;
}

static int32_t bind(verifier* v, const char* where, int64_t slot) {
  if (slot < 0 || slot >= v->signature->num_symbols) return defect(v, "%s: no symbol %lld", where, (long long)slot);
  if (v->bound[slot]) return defect(v, "%s: symbol %s is bound twice", where, v->signature->symbols[slot].name);
  v->bound[slot] = 1;
  return TW_OK;
}

static int32_t verify_dim(verifier* v, const char* where, const tw_dim* dim) {
  switch (dim->kind) {
    case TW_DIM_CONSTANT:
    case TW_DIM_ANY:
      return TW_OK;
    case TW_DIM_BIND:
      return bind(v, where, dim->value);
    case TW_DIM_SYMBOL:
      if (dim->value < 0 || dim->value >= v->signature->num_symbols)
        return defect(v, "%s: no symbol %lld", where, (long long)dim->value);
      if (!v->bound[dim->value])
        return defect(v, "%s: symbol %s is used before it is bound", where, v->signature->symbols[dim->value].name);
      return TW_OK;
    default:
      return defect(v, "%s: unknown kind of dimension %d", where, dim->kind);
  }
}

static int32_t verify_tensor(verifier* v, const tw_param* param) {
  if (param->ndim < 0 || param->ndim > kMostDims) return defect(v, "%s: %d dimensions", param->name, param->ndim);
  if (param->ndim > 0 && !param->shape) return defect(v, "%s: no shape", param->name);
  if (param->dtype.bits == 0 || param->dtype.lanes == 0 || param->dtype.lanes > kMostLanes)
    return defect(v, "%s: element of %d bits and %d lanes", param->name, param->dtype.bits, param->dtype.lanes);
  if (param->alignment < 0 || (param->alignment & (param->alignment - 1)))
    return defect(v, "%s: alignment %d is not a power of two", param->name, param->alignment);
  int32_t code = TW_OK;
  for (int32_t d = 0; !code && d < param->ndim; ++d) code = verify_dim(v, param->name, &param->shape[d]);
  for (int32_t d = param->ndim - 1; !code && param->strides && d >= 0; --d) {
    code = verify_dim(v, param->name, &param->strides[d]);
  }
  return code ? code : verify_dim(v, param->name, &param->elem_offset);
}

static int32_t verify_header(verifier* v) {
  const tw_signature* s = v->signature;
  if (s->abi_version != TW_ABI_VERSION) return defect(v, "interface version %u", s->abi_version);
  if (!s->name) return defect(v, "no name");
  if (s->num_params < 0 || s->num_tensors < 0 || s->num_scalars < 0 || s->num_symbols < 0 ||
      s->num_params != s->num_tensors + s->num_scalars)
    return defect(v, "%d parameters are not %d tensors and %d scalars", s->num_params, s->num_tensors, s->num_scalars);
  if (s->num_params > 0 && !s->params) return defect(v, "no parameters");
  if (s->num_symbols > kMostSymbols) return defect(v, "%d symbols", s->num_symbols);
  if (s->num_symbols > 0 && !s->symbols) return defect(v, "no symbols");
  for (int32_t i = 0; i < s->num_symbols; ++i) {
    if (!s->symbols[i].name) return defect(v, "symbol %d has no name", i);
    if (s->symbols[i].bits < 8 || s->symbols[i].bits > 64)
      return defect(v, "symbol %s has %d bits", s->symbols[i].name, s->symbols[i].bits);
  }
  int32_t tensors = 0;
  for (int32_t i = 0; i < s->num_params; ++i) {
    if (!s->params[i].name) return defect(v, "parameter %d has no name", i);
    if (s->params[i].kind != TW_PARAM_TENSOR && s->params[i].kind != TW_PARAM_SCALAR)
      return defect(v, "%s: unknown kind of parameter %d", s->params[i].name, s->params[i].kind);
    tensors += s->params[i].kind == TW_PARAM_TENSOR;
  }
  if (tensors != s->num_tensors) return defect(v, "%d tensors are announced as %d", tensors, s->num_tensors);
  return TW_OK;
}

int32_t tw_verify_signature(const tw_signature* signature, char* message, size_t size) {
  verifier v = {.signature = signature, .message = message, .size = size};
  int32_t code = verify_header(&v);
  for (int32_t i = 0; !code && i < signature->num_params; ++i) {
    const tw_param* param = &signature->params[i];
    if (param->kind == TW_PARAM_SCALAR && param->symbol >= 0) code = bind(&v, param->name, param->symbol);
  }
  for (int32_t i = 0; !code && i < signature->num_params; ++i) {
    if (signature->params[i].kind == TW_PARAM_TENSOR) code = verify_tensor(&v, &signature->params[i]);
  }
  return code;
}
