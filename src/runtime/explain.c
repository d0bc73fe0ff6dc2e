/* Words for what tw_check_args found wrong: function, parameter, expected, got, hint. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "runtime/runtime.h"
#include "support/host_cpu.h"

typedef struct text {
  size_t length;
  char chars[1800];
} text;

__attribute__((format(printf, 2, 3))) static void put(text* t, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(t->chars + t->length, sizeof(t->chars) - t->length, format, arguments);
  va_end(arguments);
  if (length > 0) t->length += (size_t)length;
  if (t->length >= sizeof(t->chars)) t->length = sizeof(t->chars) - 1;
}

/* The call under examination. */
typedef struct call {
  const tw_signature* signature;
  const DLTensor* const* tensors;
  const tw_scalar* scalars;
  int32_t num_checked; /* tensors from the first on whose shapes may be read */
} call;

/* ---- Parts of texts ---------------------------------------------------------------------------------------------- */

static void put_dtype(text* t, DLDataType dtype) {
  static const char* const kNames[] = {
      [kDLInt] = "int",
      [kDLUInt] = "uint",
      [kDLFloat] = "float",
      [kDLOpaqueHandle] = "handle",
      [kDLBfloat] = "bfloat",
      [kDLComplex] = "complex",
      [kDLBool] = "bool",
      [kDLFloat8_e3m4] = "float8_e3m4",
      [kDLFloat8_e4m3] = "float8_e4m3",
      [kDLFloat8_e4m3b11fnuz] = "float8_e4m3b11fnuz",
      [kDLFloat8_e4m3fn] = "float8_e4m3fn",
      [kDLFloat8_e4m3fnuz] = "float8_e4m3fnuz",
      [kDLFloat8_e5m2] = "float8_e5m2",
      [kDLFloat8_e5m2fnuz] = "float8_e5m2fnuz",
      [kDLFloat8_e8m0fnu] = "float8_e8m0fnu",
      [kDLFloat6_e2m3fn] = "float6_e2m3fn",
      [kDLFloat6_e3m2fn] = "float6_e3m2fn",
      [kDLFloat4_e2m1fn] = "float4_e2m1fn",
  };
  if (dtype.code >= sizeof(kNames) / sizeof(kNames[0])) {
    put(t, "type code %d with %d bits", dtype.code, dtype.bits);
  } else {
    put(t, "%s", kNames[dtype.code]);
    int named_by_bits = dtype.code <= kDLComplex && dtype.code != kDLOpaqueHandle;
    if (named_by_bits) put(t, "%d", dtype.bits);
  }
  if (dtype.lanes != 1) put(t, "x%d", dtype.lanes);
}

static void put_tuple(text* t, const int64_t* values, int32_t count) {
  put(t, "(");
  for (int32_t i = 0; i < count; ++i) put(t, i ? ", %" PRId64 : "%" PRId64, values[i]);
  put(t, count == 1 ? ",)" : ")");
}

/* What the signature asks for. */
static void put_dims(text* t, const call* c, const tw_dim* dims, int32_t count) {
  put(t, "(");
  for (int32_t i = 0; i < count; ++i) {
    if (i) put(t, ", ");
    if (dims[i].kind == TW_DIM_CONSTANT) {
      put(t, "%" PRId64, dims[i].value);
    } else if (dims[i].kind == TW_DIM_ANY) {
      put(t, "any");
    } else {
      put(t, "%s", c->signature->symbols[dims[i].value].name);
    }
  }
  put(t, count == 1 ? ",)" : ")");
}

static void put_strides(text* t, const DLTensor* tensor) {
  if (tensor->strides) {
    put_tuple(t, tensor->strides, tensor->ndim);
  } else {
    put(t, "none, which means compact");
  }
}

static void put_device(text* t, DLDevice device) {
  static const struct {
    int32_t type;
    const char* name;
  } kDevices[] = {{kDLCPU, "the CPU"}, {kDLCUDA, "cuda"}, {kDLOpenCL, "opencl"}, {kDLVulkan, "vulkan"},
                  {kDLMetal, "metal"}, {kDLROCM, "rocm"}, {kDLOneAPI, "oneapi"}, {kDLCUDAManaged, "cuda (managed)"}};
  for (size_t i = 0; i < sizeof(kDevices) / sizeof(kDevices[0]); ++i) {
    if (kDevices[i].type != (int32_t)device.device_type) continue;
    put(t, "%s", kDevices[i].name);
    if (device.device_type != kDLCPU) put(t, ":%d", device.device_id);
    return;
  }
  put(t, "device type %d:%d", (int)device.device_type, device.device_id);
}

/* "A", or "A (parameter 0)" where several have this name */
static void put_name(text* t, const tw_signature* signature, const tw_param* param) {
  put(t, "%s", param->name);
  int32_t alike = 0;
  for (int32_t i = 0; i < signature->num_params; ++i) alike += strcmp(signature->params[i].name, param->name) == 0;
  if (alike > 1) put(t, " (parameter %d)", (int)(param - signature->params));
}

static int binds(const tw_dim* dim, int64_t slot) { return dim->kind == TW_DIM_BIND && dim->value == slot; }

static int is_symbol(const tw_dim* dim, int64_t slot) {
  return (dim->kind == TW_DIM_BIND || dim->kind == TW_DIM_SYMBOL) && dim->value == slot;
}

/* Whether a stride leads to a second element. */
static int is_stride_used(const DLTensor* tensor, int32_t d) {
  for (int32_t i = 0; i < tensor->ndim; ++i) {
    if (tensor->shape[i] == 0) return 0;
  }
  return tensor->shape[d] > 1;
}

static int64_t stride_of(const DLTensor* tensor, int32_t d) {
  if (tensor->strides) return tensor->strides[d];
  int64_t compact = 1;
  for (int32_t i = tensor->ndim - 1; i > d; --i) compact *= tensor->shape[i];
  return compact;
}

/* "s, from stride 0 of A, is 128": of the first parameter for which it matters, which has decided. */
static void put_stride_symbol(text* t, const call* c, int64_t slot) {
  const tw_signature* signature = c->signature;
  for (int32_t i = 0, tensor = 0; i < signature->num_params && tensor < c->num_checked; ++i) {
    const tw_param* param = &signature->params[i];
    if (param->kind != TW_PARAM_TENSOR) continue;
    const DLTensor* argument = c->tensors[tensor++];
    for (int32_t d = param->strides ? param->ndim - 1 : -1; d >= 0; --d) {
      if (!is_symbol(&param->strides[d], slot) || !is_stride_used(argument, d)) continue;
      put(t, "%s, from stride %d of ", signature->symbols[slot].name, d);
      put_name(t, signature, param);
      put(t, ", is %" PRId64, stride_of(argument, d));
      return;
    }
  }
}

/* "n = 128, from dimension 0 of A" */
static void put_symbol(text* t, const call* c, int64_t slot) {
  const tw_signature* signature = c->signature;
  const char* name = signature->symbols[slot].name;
  int32_t scalar = 0, tensor = 0;
  for (int32_t i = 0; i < signature->num_params; ++i) {
    const tw_param* param = &signature->params[i];
    if (param->kind == TW_PARAM_SCALAR) {
      if (param->symbol == slot) {
        put(t, "%s = %" PRId64 ", from parameter ", name, c->scalars[scalar].i);
        put_name(t, signature, param);
      }
      ++scalar;
      continue;
    }
    const DLTensor* argument = c->tensors[tensor++];
    for (int32_t d = 0; d < param->ndim; ++d) {
      if (binds(&param->shape[d], slot)) {
        put(t, "%s = %" PRId64 ", from dimension %d of ", name, argument->shape[d], d);
        put_name(t, signature, param);
      }
      if (param->strides && binds(&param->strides[d], slot)) put_stride_symbol(t, c, slot);
    }
    if (binds(&param->elem_offset, slot)) {
      put(t, "%s is the element offset of ", name);
      put_name(t, signature, param);
    }
  }
}

/* ---- One function per kind of mismatch ------------------------------------------------------------------------------
 */

static void explain_null(text* t, const tw_param* param, const DLTensor* tensor) {
  if (!tensor) {
    put(t, "expected a tensor, got a null pointer");
  } else if (param->ndim > 0 && !tensor->shape) {
    put(t, "expected a shape of %d dimensions, got a null pointer", param->ndim);
  } else {
    put(t, "expected data for shape ");
    put_tuple(t, tensor->shape, tensor->ndim);
    put(t, ", got a null pointer");
  }
}

static void explain_dtype(text* t, const tw_param* param, const DLTensor* tensor) {
  put(t, "expected dtype ");
  put_dtype(t, param->dtype);
  put(t, ", got ");
  put_dtype(t, tensor->dtype);
  put(t, TW_HINT_PREFIX "convert it to ");
  put_dtype(t, param->dtype);
  put(t, " first");
}

static void explain_ndim(text* t, const call* c, const tw_param* param, const DLTensor* tensor) {
  put(t, "expected %d dimension%s with shape ", param->ndim, param->ndim == 1 ? "" : "s");
  put_dims(t, c, param->shape, param->ndim);
  put(t, ", got %d", tensor->ndim);
  if (tensor->shape || tensor->ndim == 0) {
    put(t, " with shape ");
    put_tuple(t, tensor->shape, tensor->ndim);
  }
  put(t, TW_HINT_PREFIX "reshape it");
}

static void explain_shape(text* t, const call* c, const tw_param* param, const DLTensor* tensor, int32_t d) {
  put(t, "expected shape ");
  put_dims(t, c, param->shape, param->ndim);
  put(t, ", got ");
  put_tuple(t, tensor->shape, tensor->ndim);
  const tw_dim* dim = &param->shape[d];
  if (tensor->shape[d] < 0) {
    put(t, TW_HINT_PREFIX "dimension %d is negative", d);
  } else if (dim->kind == TW_DIM_CONSTANT) {
    put(t, TW_HINT_PREFIX "dimension %d is %" PRId64 " instead of %" PRId64, d, tensor->shape[d], dim->value);
  } else {
    put(t, TW_HINT_PREFIX "dimension %d is %" PRId64 ", but ", d, tensor->shape[d]);
    put_symbol(t, c, dim->value);
  }
}

static void explain_strides(text* t, const call* c, const tw_param* param, const DLTensor* tensor, int32_t d) {
  if (!param->strides) {
    put(t, "expected compact row-major data, got strides ");
    put_strides(t, tensor);
    put(t, " (in elements) for shape ");
    put_tuple(t, tensor->shape, tensor->ndim);
    if (param->flags & TW_PARAM_WRITTEN) {
      put(t, TW_HINT_PREFIX "the kernel writes to it: pass a contiguous array and copy the result from there");
    } else {
      put(t, TW_HINT_PREFIX "pass a contiguous copy, such as numpy.ascontiguousarray(%s) or %s.contiguous()",
          param->name, param->name);
    }
    return;
  }
  put(t, "expected strides ");
  put_dims(t, c, param->strides, param->ndim);
  put(t, " (in elements), got ");
  put_strides(t, tensor);
  const tw_dim* dim = &param->strides[d];
  put(t, TW_HINT_PREFIX "stride %d differs", d);
  if (dim->kind == TW_DIM_SYMBOL) {
    put(t, ": ");
    put_symbol(t, c, dim->value);
  }
}

static void explain_offset(text* t, const call* c, const tw_param* param, const DLTensor* tensor) {
  put(t, "expected the first element at offset ");
  if (param->elem_offset.kind == TW_DIM_CONSTANT) {
    put(t, "%" PRId64, param->elem_offset.value);
  } else if (param->elem_offset.kind == TW_DIM_SYMBOL) {
    put_symbol(t, c, param->elem_offset.value);
  } else {
    put(t, "that is a whole number of elements");
  }
  put(t, ", got a byte_offset of %" PRIu64, tensor->byte_offset);
}

static void put_begin(text* t, const DLTensor* tensor) {
  put(t, tensor->device.device_type == kDLOpenCL ? "byte offset %" PRIuPTR : "address 0x%" PRIxPTR,
      tw_begin_of(tensor));
}

static void explain_alignment(text* t, const call* c, const tw_param* param, const DLTensor* tensor) {
  uintptr_t address = tw_begin_of(tensor);
  const int32_t required = tw_required_alignment(c->signature, param, tensor);
  put(t, "expected data aligned to %d bytes, got ", required);
  put_begin(t, tensor);
  put(t, ", which is aligned to %" PRIuPTR, address & -address);
  tw_param natural = *param;
  natural.alignment = 0;
  const int32_t of_elements = tw_required_alignment(c->signature, &natural, tensor);
  if (required > of_elements && c->signature->device_type != kDLCPU) {
    put(t,
        TW_HINT_PREFIX
        "kernels access it by vectors: pass a copy, or declare the buffer with align=%d, then they access elements",
        of_elements);
  } else if (required > of_elements) {
    put(t, TW_HINT_PREFIX "the script asks for this alignment: allocate the data accordingly");
  } else {
    put(t, TW_HINT_PREFIX "pass a copy: its elements are not aligned to their size");
  }
}

static void explain_device(text* t, const call* c, const DLTensor* tensor) {
  const tw_signature* signature = c->signature;
  DLDevice wanted = {(DLDeviceType)signature->device_type, 0};
  int32_t first = 0;
  while (c->tensors[first] != tensor && tw_is_on_host(c->tensors[first])) ++first;
  put(t, "expected data on ");
  if (c->tensors[first] != tensor) wanted = c->tensors[first]->device;
  put_device(t, wanted);
  if (c->tensors[first] != tensor) {
    put(t, ", where argument ");
    put_name(t, signature, tw_tensor_param(signature, first));
    put(t, " is");
  }
  put(t, ", got ");
  put_device(t, tensor->device);
  put(t, TW_HINT_PREFIX "copy it to ");
  put_device(t, wanted);
  put(t, " first");
}

static int too_wide(const tw_signature* signature, const tw_dim* dim, int64_t value) {
  int is_symbol = dim->kind == TW_DIM_BIND || dim->kind == TW_DIM_SYMBOL;
  int32_t bits = is_symbol ? signature->symbols[dim->value].bits : 64;
  return bits < 64 && (value < 0 ? ~value : value) >> (bits - 1) != 0;
}

static void explain_size(text* t, const call* c, const tw_param* param, const DLTensor* tensor, int32_t detail) {
  if (detail == TW_DETAIL_TOO_LARGE) {
    put(t, "expected a tensor that fits in memory, got shape ");
    put_tuple(t, tensor->shape, tensor->ndim);
    return;
  }
  if (detail == TW_DETAIL_TOO_FAR_APART) {
    put(t, "expected at most %" PRId64 " elements from first to last, got shape ", param->max_elements);
    put_tuple(t, tensor->shape, tensor->ndim);
    put(t, TW_HINT_PREFIX "give the sizes of the script the type int64");
    return;
  }
  const tw_dim* dim = &param->elem_offset;
  const char* what = "an element offset";
  int64_t value = (int64_t)(tensor->byte_offset / (uint64_t)tw_element_bytes(param->dtype));
  for (int32_t d = param->ndim - 1; d >= 0; --d) {
    if (param->strides && tensor->strides && too_wide(c->signature, &param->strides[d], tensor->strides[d])) {
      dim = &param->strides[d];
      what = "a stride";
      value = tensor->strides[d];
    }
    if (too_wide(c->signature, &param->shape[d], tensor->shape[d])) {
      dim = &param->shape[d];
      what = "a size";
      value = tensor->shape[d];
      break;
    }
  }
  const tw_symbol* symbol = &c->signature->symbols[dim->value];
  put(t, "expected %s that fits in %d bits, the type of %s, got %" PRId64, what, symbol->bits, symbol->name, value);
  put(t, TW_HINT_PREFIX "give %s a wider type in the script", symbol->name);
}

static void put_bytes(text* t, const DLTensor* tensor) {
  put_begin(t, tensor);
  put(t, " with shape ");
  put_tuple(t, tensor->shape, tensor->ndim);
  if (tensor->strides) {
    put(t, " and strides ");
    put_tuple(t, tensor->strides, tensor->ndim);
  }
}

static void explain_overlap(text* t, const call* c, int32_t tensor, int32_t other) {
  if (tensor == other) {
    put(t, "expected a place of its own for each element, since the kernel writes them, got strides ");
    put_strides(t, c->tensors[tensor]);
    put(t, " for shape ");
    put_tuple(t, c->tensors[tensor]->shape, c->tensors[tensor]->ndim);
    put(t, TW_HINT_PREFIX "pass a copy: broadcast and sliding-window views repeat elements");
    return;
  }
  put(t, "expected memory of its own, since the kernel writes to it, but it overlaps argument ");
  put_name(t, c->signature, tw_tensor_param(c->signature, other));
  put(t, ": ");
  put_bytes(t, c->tensors[tensor]);
  put(t, ", and ");
  put_bytes(t, c->tensors[other]);
  put(t, TW_HINT_PREFIX "pass a copy of one of them");
}

/* ---- Entry points ------------------------------------------------------------------------------------------------ */

static void put_place(text* t, const tw_signature* signature, const tw_param* param) {
  put(t, "%s: argument ", signature->name);
  put_name(t, signature, param);
  put(t, ": ");
}

void tw_describe_param(const tw_signature* signature, const tw_param* param, char* buffer, size_t size) {
  call c = {signature, NULL, NULL, 0};
  text t = {.length = 0};
  put_dtype(&t, param->dtype);
  if (param->kind == TW_PARAM_TENSOR) {
    put(&t, " ");
    put_dims(&t, &c, param->shape, param->ndim);
  }
  snprintf(buffer, size, "%s", t.chars);
}

int32_t tw_explain_tensor(tw_ctx* ctx, const tw_signature* signature, const DLTensor* const* tensors,
                          const tw_scalar* scalars, int32_t code, int32_t tensor, int32_t detail) {
  call c = {signature, tensors, scalars, tensor + 1};
  const tw_param* param = tw_tensor_param(signature, tensor);
  const DLTensor* argument = tensors[tensor];
  text t = {.length = 0};
  put_place(&t, signature, param);
  switch (code) {
    case TW_ERROR_NULL:
      explain_null(&t, param, argument);
      break;
    case TW_ERROR_DTYPE:
      explain_dtype(&t, param, argument);
      break;
    case TW_ERROR_NDIM:
      explain_ndim(&t, &c, param, argument);
      break;
    case TW_ERROR_SHAPE:
      explain_shape(&t, &c, param, argument, detail);
      break;
    case TW_ERROR_STRIDES:
      explain_strides(&t, &c, param, argument, detail);
      break;
    case TW_ERROR_OFFSET:
      explain_offset(&t, &c, param, argument);
      break;
    case TW_ERROR_ALIGNMENT:
      explain_alignment(&t, &c, param, argument);
      break;
    case TW_ERROR_DEVICE:
      explain_device(&t, &c, argument);
      break;
    case TW_ERROR_SIZE:
      explain_size(&t, &c, param, argument, detail);
      break;
    case TW_ERROR_OVERLAP:
      explain_overlap(&t, &c, tensor, detail);
      break;
    default:
      put(&t, "is refused with code %d", code);
  }
  return tw_report(ctx, code, t.chars);
}

int32_t tw_explain_features(tw_ctx* ctx, const tw_signature* signature) {
  const tw_cpu_features* host = tw_host_cpu_features();
  text t = {.length = 0};
  put(&t, "%s: this processor lacks ", signature->name);
  int missing = 0;
  for (int i = 0; i < TW_NUM_CPU_FEATURES; ++i) {
    if ((signature->feature_words[i / 64] >> (i % 64) & 1) && !tw_has_cpu_feature(host, i))
      put(&t, missing++ ? ", %s" : "%s", tw_cpu_feature_name(i));
  }
  if (!missing) put(&t, "permission to use AMX tiles"); /* the instructions exist, the system refuses them */
  put(&t, ", which the kernel was compiled for" TW_HINT_PREFIX
          "compile it for this processor (target=\"native\") or for an older one (target=\"llvm -mcpu=x86-64-v3\")");
  return tw_report(ctx, TW_ERROR_CPU_FEATURE, t.chars);
}

int32_t tw_fail_dim(tw_ctx* ctx, const tw_signature* signature, const DLTensor* const* tensors, int32_t tensor,
                    int32_t dim, const char* expression, int64_t expected) {
  const tw_param* param = tw_tensor_param(signature, tensor);
  const DLTensor* argument = tensors[tensor];
  const int32_t stride = dim - param->ndim;
  if (stride >= 0 && stride < param->ndim && !is_stride_used(argument, stride)) return TW_OK;
  text t = {.length = 0};
  put_place(&t, signature, param);
  if (stride < 0) {
    put(&t, "expected dimension %d to be %s = %" PRId64 ", got %" PRId64, dim, expression, expected,
        argument->shape[dim]);
    return tw_report(ctx, TW_ERROR_SHAPE, t.chars);
  }
  if (stride < param->ndim) {
    put(&t, "expected stride %d to be %s = %" PRId64 " (in elements), got %" PRId64, stride, expression, expected,
        stride_of(argument, stride));
    return tw_report(ctx, TW_ERROR_STRIDES, t.chars);
  }
  put(&t, "expected the first element at offset %s = %" PRId64 ", got a byte_offset of %" PRIu64, expression, expected,
      argument->byte_offset);
  return tw_report(ctx, TW_ERROR_OFFSET, t.chars);
}
