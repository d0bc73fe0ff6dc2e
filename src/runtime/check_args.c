/* The argument check on the path of every call: nothing here allocates, formats or calls out until something is wrong.
 * What is wrong is then worked out again, with words, in explain.c. */
#include <pthread.h>
#include <string.h>

#include "runtime/runtime.h"
#include "support/host_cpu.h"

_Static_assert(TW_FEATURE_WORDS == TW_CPU_FEATURE_WORDS, "signatures carry the feature sets of support/host_cpu.h");

/* No tensor is larger; keeps all arithmetic on byte offsets clear of overflow. */
static const int64_t kMostElements = (int64_t)1 << 46;

/* [low, high) in memory; empty for tensors without elements. A memory object of OpenCL is a space of its own. */
typedef struct range {
  uintptr_t low, high;
  const void* space;
} range;

typedef struct verdict {
  int32_t code;
  int32_t detail;
} verdict;

static const verdict kFine = {TW_OK, 0};

static inline verdict wrong(int32_t code, int32_t detail) {
  verdict v = {code, detail};
  return v;
}

static inline int fits(int64_t value, int32_t bits) { return bits >= 64 || value >> (bits - 1) == 0; }

/* The symbols of a call. A symbol is open while only strides that reach no second element have it: any value would do,
 * so the next tensor that uses it decides. */
typedef struct binding {
  const tw_signature* signature;
  int64_t* symbols;
  char* is_open;
} binding;

/* Compares one value with its entry, or binds it; returns TW_OK, `mismatch`, or TW_ERROR_SIZE. */
static inline int32_t check_dim(const binding* b, const tw_dim* dim, int64_t value, int32_t mismatch) {
  switch (dim->kind) {
    case TW_DIM_CONSTANT:
      return value == dim->value ? TW_OK : mismatch;
    case TW_DIM_SYMBOL:
      if (!b->is_open[dim->value]) return value == b->symbols[dim->value] ? TW_OK : mismatch;
      /* fall through */
    case TW_DIM_BIND:
      if (!fits(value < 0 ? ~value : value, b->signature->symbols[dim->value].bits)) return TW_ERROR_SIZE;
      b->symbols[dim->value] = value;
      b->is_open[dim->value] = 0;
      return TW_OK;
    default:
      return TW_OK;
  }
}

/* The element offset; `data` receives what the body indexes from. */
static inline verdict check_offset(const binding* b, const tw_param* param, const DLTensor* tensor, void** data) {
  const tw_dim* offset = &param->elem_offset;
  if (offset->kind == TW_DIM_CONSTANT && offset->value == 0) {
    *data = (char*)tensor->data + tensor->byte_offset;
    return kFine;
  }
  uint64_t bytes = (uint64_t)tw_element_bytes(param->dtype);
  *data = tensor->data;
  if (tensor->byte_offset >> 60 || tensor->byte_offset % bytes) return wrong(TW_ERROR_OFFSET, 0);
  return wrong(check_dim(b, offset, (int64_t)(tensor->byte_offset / bytes), TW_ERROR_OFFSET), 0);
}

/* Shape: compares every extent; `empty` says whether there are no elements. */
static inline verdict check_shape(const binding* b, const tw_param* param, const DLTensor* tensor, int* empty) {
  *empty = 0;
  if (param->ndim > 0 && !tensor->shape) return wrong(TW_ERROR_NULL, 0);
  for (int32_t d = 0; d < param->ndim; ++d) {
    int64_t extent = tensor->shape[d];
    if (extent < 0) return wrong(TW_ERROR_SHAPE, d);
    int32_t code = check_dim(b, &param->shape[d], extent, TW_ERROR_SHAPE);
    if (code) return wrong(code, d);
    *empty |= extent == 0;
  }
  return kFine;
}

/* Strides from the last dimension on; `low` and `high` receive the offsets of the first and last element. */
static inline verdict check_strides(const binding* b, const tw_param* param, const DLTensor* tensor, int empty,
                                    int64_t* low, int64_t* high) {
  int64_t compact = 1; /* the stride that a compact tensor has here */
  int64_t first = 0, last = 0;
  for (int32_t d = param->ndim - 1; d >= 0; --d) {
    int64_t extent = tensor->shape[d];
    int64_t stride = tensor->strides ? tensor->strides[d] : compact;
    if (extent <= 1 || empty) {
      /* Never multiplied by anything but 0; a symbol still needs a value. */
      if (param->strides && param->strides[d].kind == TW_DIM_BIND) {
        b->symbols[param->strides[d].value] = compact;
        b->is_open[param->strides[d].value] = 1;
      }
    } else {
      if (!param->strides) {
        if (stride != compact) return wrong(TW_ERROR_STRIDES, d);
      } else {
        int32_t code = check_dim(b, &param->strides[d], stride, TW_ERROR_STRIDES);
        if (code) return wrong(code, d);
      }
      int64_t reach;
      if (__builtin_mul_overflow(extent - 1, stride, &reach) || reach > kMostElements || reach < -kMostElements)
        return wrong(TW_ERROR_SIZE, TW_DETAIL_TOO_LARGE);
      if (reach < 0) {
        first += reach;
      } else {
        last += reach;
      }
    }
    if (!empty && __builtin_mul_overflow(compact, extent, &compact)) return wrong(TW_ERROR_SIZE, TW_DETAIL_TOO_LARGE);
  }
  if (last > kMostElements || -first > kMostElements) return wrong(TW_ERROR_SIZE, TW_DETAIL_TOO_LARGE);
  if (param->max_elements && last - first >= param->max_elements) return wrong(TW_ERROR_SIZE, TW_DETAIL_TOO_FAR_APART);
  *low = first;
  *high = last;
  return kFine;
}

/* What is on the host is copied to a device. All else has to be on one device, that of the kernel's kind. */
static inline verdict check_device(const tw_signature* signature, const DLTensor* tensor, const DLTensor** first) {
  if (!tensor) return wrong(TW_ERROR_NULL, 0);
  if (tw_is_on_host(tensor)) return kFine;
  const int32_t type = (int32_t)tensor->device.device_type, wanted = signature->device_type;
  if (wanted == kDLCPU || (type != wanted && !(type == kDLCUDAManaged && wanted == kDLCUDA)))
    return wrong(TW_ERROR_DEVICE, 0);
  if (!*first) *first = tensor;
  return tensor->device.device_id == (*first)->device.device_id ? kFine : wrong(TW_ERROR_DEVICE, 0);
}

static inline verdict check_tensor(const binding* b, const tw_param* param, const DLTensor* tensor, void** data,
                                   range* memory) {
  if (tensor->dtype.code != param->dtype.code || tensor->dtype.bits != param->dtype.bits ||
      tensor->dtype.lanes != param->dtype.lanes)
    return wrong(TW_ERROR_DTYPE, 0);
  if (tensor->ndim != param->ndim) return wrong(TW_ERROR_NDIM, 0);

  int empty;
  verdict v = check_shape(b, param, tensor, &empty);
  if (v.code) return v;
  int64_t first, last;
  v = check_strides(b, param, tensor, empty, &first, &last);
  if (v.code) return v;
  v = check_offset(b, param, tensor, data);
  if (v.code) return v;
  memory->low = memory->high = 0;
  memory->space = (int32_t)tensor->device.device_type == kDLOpenCL ? tensor->data : NULL;
  if (empty) return kFine;

  if (!tensor->data) return wrong(TW_ERROR_NULL, 0);
  uintptr_t address = tw_begin_of(tensor);
  if (address & ((uintptr_t)tw_required_alignment(b->signature, param, tensor) - 1))
    return wrong(TW_ERROR_ALIGNMENT, 0);
  int64_t bytes = tw_element_bytes(param->dtype);
  memory->low = address + (uintptr_t)(first * bytes);
  memory->high = address + (uintptr_t)((last + 1) * bytes);
  return kFine;
}

/* Whether two tensors that share memory are one, for parameters of which the kernel allows it: of the same type and
 * sizes, and compact. */
static int are_in_place(const tw_signature* signature, const DLTensor* const* tensors, const tw_param* param, int32_t t,
                        int32_t other) {
  if (!(param->flags & tw_tensor_param(signature, other)->flags & TW_PARAM_IN_PLACE)) return 0;
  const DLTensor *a = tensors[t], *b = tensors[other];
  return (uintptr_t)a->data + a->byte_offset == (uintptr_t)b->data + b->byte_offset;
}

/* Whether the kernel may write what is at `t` without disturbing another argument, or itself. */
static inline verdict check_written(const tw_signature* signature, const DLTensor* const* tensors, const range* memory,
                                    const tw_param* param, int32_t t) {
  for (int32_t other = 0; other < signature->num_tensors; ++other) {
    if (other == t || memory[t].low >= memory[other].high || memory[other].low >= memory[t].high) continue;
    if (memory[t].space != memory[other].space) continue;
    if (are_in_place(signature, tensors, param, t, other)) continue;
    if (tw_tensors_overlap(tensors[t], tensors[other])) return wrong(TW_ERROR_OVERLAP, other);
  }
  if (param->strides && memory[t].low != memory[t].high && tw_tensor_overlaps_itself(tensors[t]))
    return wrong(TW_ERROR_OVERLAP, t);
  return kFine;
}

static int amx_granted;
static pthread_once_t amx_once = PTHREAD_ONCE_INIT;
static void ask_for_amx(void) { amx_granted = tw_request_amx(); }
static int may_use_amx(void) {
  pthread_once(&amx_once, ask_for_amx);
  return amx_granted;
}

static inline int features_missing(const tw_signature* signature) {
  if (!(signature->feature_words[0] | signature->feature_words[1])) return 0;
  const tw_cpu_features* host = tw_host_cpu_features();
  if ((signature->feature_words[0] & ~host->words[0]) | (signature->feature_words[1] & ~host->words[1])) return 1;
  return (signature->feature_words[TW_CPU_amx_tile / 64] >> (TW_CPU_amx_tile % 64) & 1) && !may_use_amx();
}

int32_t tw_check_args(tw_ctx* ctx, const tw_signature* signature, const DLTensor* const* tensors,
                      const tw_scalar* scalars, int64_t* symbols, void** data) {
  ctx->error_code = TW_OK;
  if (ctx->abi_version != TW_ABI_VERSION || signature->abi_version != TW_ABI_VERSION)
    return tw_report(
        ctx, TW_ERROR_ABI,
        "the kernel and its caller were built for different versions of the kernel interface" TW_HINT_PREFIX
        "export the kernel again, and compile its caller with the header written beside it");
  if (features_missing(signature)) return tw_explain_features(ctx, signature);
  if ((signature->num_tensors > 0 && !tensors) || (signature->num_scalars > 0 && !scalars))
    return tw_report(ctx, TW_ERROR_NULL, "the kernel was called without its array of arguments");

  const tw_param* params = signature->params;
  char is_open[signature->num_symbols > 0 ? signature->num_symbols : 1];
  memset(is_open, 0, sizeof is_open);
  const binding b = {signature, symbols, is_open};
  if (signature->num_scalars > 0) {
    int32_t scalar = 0;
    for (int32_t i = 0; i < signature->num_params; ++i) {
      if (params[i].kind != TW_PARAM_SCALAR) continue;
      if (params[i].symbol >= 0) symbols[params[i].symbol] = scalars[scalar].i;
      ++scalar;
    }
  }
  range memory[signature->num_tensors > 0 ? signature->num_tensors : 1];
  const DLTensor* first = NULL; /* that is not on the host */
  int32_t tensor = 0, written = 0;
  for (int32_t i = 0; i < signature->num_params; ++i) {
    if (params[i].kind != TW_PARAM_TENSOR) continue;
    verdict v = check_device(signature, tensors[tensor], &first);
    if (!v.code) v = check_tensor(&b, &params[i], tensors[tensor], &data[tensor], &memory[tensor]);
    if (v.code) return tw_explain_tensor(ctx, signature, tensors, scalars, v.code, tensor, v.detail);
    written |= params[i].flags & TW_PARAM_WRITTEN;
    ++tensor;
  }
  if (!written) return TW_OK;
  tensor = 0;
  for (int32_t i = 0; i < signature->num_params; ++i) {
    if (params[i].kind != TW_PARAM_TENSOR) continue;
    if (params[i].flags & TW_PARAM_WRITTEN) {
      verdict v = check_written(signature, tensors, memory, &params[i], tensor);
      if (v.code) return tw_explain_tensor(ctx, signature, tensors, scalars, v.code, tensor, v.detail);
    }
    ++tensor;
  }
  return TW_OK;
}
