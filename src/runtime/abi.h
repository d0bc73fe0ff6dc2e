/* The contract between a compiled kernel and whoever calls it. Serves C11 and C++11.
 *
 * A kernel has one entry,
 *
 *     int32_t NAME(tw_ctx* ctx, const DLTensor* const* tensors, const tw_scalar* scalars);
 *
 * that returns TW_OK or a code of `tw_error`, and leaves the message in the context's error sink. `tensors` holds the
 * tensor parameters and `scalars` the scalar parameters, each in the order of the parameter list. A NULL context stands
 * for the calling thread's default one. A context serves one call at a time.
 *
 * The entry checks its arguments by a table, `tw_signature`, and calls the raw body:
 *
 *     if (!ctx) ctx = tw_default_ctx();
 *     int64_t symbols[S]; void* data[T];
 *     int32_t code = tw_check_args(ctx, &signature, tensors, scalars, symbols, data);
 *     return code ? code : NAME_body(ctx, data[0], data[1], ..., symbols[0], ...);
 *
 * The entry is compiled for the baseline of the architecture; only the body uses what `signature.features` lists. */
#ifndef TILEWRIGHT_RUNTIME_ABI_H_
#define TILEWRIGHT_RUNTIME_ABI_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- DLPack ----------------------------------------------------------------------------------------------------
 * The part of DLPack 1.x that kernels and callers exchange. Names and layout are those of the public DLPack header, and
 * so is the include guard: whichever of the two comes first, the other one is skipped, so a program may include both.
 * A program that needs parts of DLPack that are not here includes its own copy first. */
#ifndef DLPACK_DLPACK_H_
#define DLPACK_DLPACK_H_

#define DLPACK_MAJOR_VERSION 1
#define DLPACK_MINOR_VERSION 1

typedef struct {
  uint32_t major;
  uint32_t minor;
} DLPackVersion;

#ifdef __cplusplus
typedef enum : int32_t {
#else
typedef enum {
#endif
  kDLCPU = 1,
  kDLCUDA = 2,
  kDLCUDAHost = 3,
  kDLOpenCL = 4,
  kDLVulkan = 7,
  kDLMetal = 8,
  kDLVPI = 9,
  kDLROCM = 10,
  kDLROCMHost = 11,
  kDLExtDev = 12,
  kDLCUDAManaged = 13,
  kDLOneAPI = 14,
  kDLWebGPU = 15,
  kDLHexagon = 16,
  kDLMAIA = 17,
  kDLTrn = 18
} DLDeviceType;

typedef struct {
  DLDeviceType device_type;
  int32_t device_id;
} DLDevice;

typedef enum {
  kDLInt = 0,
  kDLUInt = 1,
  kDLFloat = 2,
  kDLOpaqueHandle = 3,
  kDLBfloat = 4,
  kDLComplex = 5,
  kDLBool = 6,
  kDLFloat8_e3m4 = 7,
  kDLFloat8_e4m3 = 8,
  kDLFloat8_e4m3b11fnuz = 9,
  kDLFloat8_e4m3fn = 10,
  kDLFloat8_e4m3fnuz = 11,
  kDLFloat8_e5m2 = 12,
  kDLFloat8_e5m2fnuz = 13,
  kDLFloat8_e8m0fnu = 14,
  kDLFloat6_e2m3fn = 15,
  kDLFloat6_e3m2fn = 16,
  kDLFloat4_e2m1fn = 17
} DLDataTypeCode;

/* One element is `lanes` values of `bits` bits. */
typedef struct {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
} DLDataType;

/* A borrowed view of memory. Element (i0, i1, ...) is stored at data + byte_offset + (i0 * strides[0] + ...) elements;
 * strides count elements, and NULL stands for row-major and compact. */
typedef struct {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
} DLTensor;

/* The exchange without versions, still what many producers hand out. */
typedef struct DLManagedTensor {
  DLTensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(struct DLManagedTensor* self);
} DLManagedTensor;

#define DLPACK_FLAG_BITMASK_READ_ONLY (1UL << 0UL)
#define DLPACK_FLAG_BITMASK_IS_COPIED (1UL << 1UL)
#define DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED (1UL << 2UL)

/* Everything up to `flags` keeps its place in all versions, so that `deleter` can always be called. */
typedef struct DLManagedTensorVersioned {
  DLPackVersion version;
  void* manager_ctx;
  void (*deleter)(struct DLManagedTensorVersioned* self);
  uint64_t flags;
  DLTensor dl_tensor;
} DLManagedTensorVersioned;

#endif /* DLPACK_DLPACK_H_ */

#define TW_ABI_VERSION 1

/* ---- Errors -------------------------------------------------------------------------------------------------- */

typedef enum tw_error {
  TW_OK = 0,
  TW_ERROR_ABI = 1,         /* context or signature of another version */
  TW_ERROR_CPU_FEATURE = 2, /* this processor lacks an instruction set the kernel was compiled for */
  TW_ERROR_MEMORY = 3,      /* no memory for a workspace */
  TW_ERROR_ASSERTION = 4,   /* an assertion of the program failed */
  TW_ERROR_INTERNAL = 5,    /* a defect of the compiler or of this runtime */
  TW_ERROR_INTERRUPTED = 6, /* tw_ctx.interrupted asked the call to end; what it wrote is incomplete */

  /* What is wrong with the arguments; see tw_is_argument_error. */
  TW_ERROR_NULL = 32,
  TW_ERROR_NDIM = 33,
  TW_ERROR_DTYPE = 34,
  TW_ERROR_SHAPE = 35,
  TW_ERROR_STRIDES = 36,
  TW_ERROR_OFFSET = 37,
  TW_ERROR_ALIGNMENT = 38,
  TW_ERROR_DEVICE = 39,
  TW_ERROR_OVERLAP = 40,
  TW_ERROR_SIZE = 41,
  TW_ERROR_READ_ONLY = 42,
  TW_ERROR_SCALAR = 43,
  TW_ERROR_COUNT = 44,
  TW_ERROR_OTHER_ARGUMENT = 45,
  TW_ERROR_EXTENT = 46 /* an extent made of the sizes of the arguments leaves its type */
} tw_error;

static inline int tw_is_argument_error(int32_t code) { return code >= 32 && code < 64; }

/* A message may end in one line of advice, which starts with this. */
#define TW_HINT_PREFIX "\n  hint: "

/* ---- Context ------------------------------------------------------------------------------------------------- */

/* Integers of every width travel in `i` (uint64 as its bits, bool as 0 or 1), floating point of every width in `f`. */
typedef union tw_scalar {
  int64_t i;
  double f;
  void* p;
} tw_scalar;

typedef struct tw_ctx tw_ctx;

/* Runs iterations [begin, end) of a loop. Returns TW_OK or a code whose message it has left in the error sink. */
typedef int32_t (*tw_parallel_body)(tw_ctx* ctx, int64_t begin, int64_t end, void* closure);

/* What a kernel may use of its surroundings. A host may replace every function; a kernel calls them from any thread
 * that executes one of its parallel bodies, always with the context it was called with. */
struct tw_ctx {
  uint32_t abi_version; /* TW_ABI_VERSION of whoever made it */
  uint32_t struct_size; /* sizeof(tw_ctx) of whoever made it; later versions only append */

  /* Covers [0, extent) by calls of `body` on disjoint ranges, in any order, of at least `grain` iterations each except
   * the last. Returns the code of the first failure, after which no new range is started. */
  int32_t (*parallel_for)(tw_ctx* ctx, tw_parallel_body body, void* closure, int64_t extent, int64_t grain);

  /* 64-byte aligned memory of the calling thread, released by that thread in reverse order. NULL, with an error
   * reported, when there is none. Contents are arbitrary; the memory is kept for the next call. */
  void* (*workspace_acquire)(tw_ctx* ctx, int64_t bytes);
  void (*workspace_release)(tw_ctx* ctx, void* memory);

  /* Stores an error. tw_report calls it for the first error of a call only. */
  void (*set_error)(tw_ctx* ctx, int32_t code, const char* message);

  void* stream; /* queue of the device: a cl_command_queue or CUstream; NULL: the runtime's own; unused on a CPU */
  void* user;   /* belongs to whoever made the context */
  int32_t max_threads; /* upper limit for parallel_for; 0: as many as there are */
  int32_t error_code;  /* TW_OK until the first error of a call; tw_check_args resets it */

  /* Polled by long-running kernels, on every thread: a nonzero result ends the call with TW_ERROR_INTERRUPTED. NULL:
   * never. */
  int32_t (*interrupted)(tw_ctx* ctx);

  /* Queue of the kernels of the current call. Set by the runtime in every call. */
  void* device_queue;
};

typedef int32_t (*tw_kernel)(tw_ctx* ctx, const DLTensor* const* tensors, const tw_scalar* scalars);

/* ---- Signatures: constant data emitted beside each kernel ---------------------------------------------------- */

enum tw_dim_kind {
  TW_DIM_CONSTANT = 0, /* equals `value` */
  TW_DIM_BIND = 1,     /* first occurrence of a symbol: defines slot `value` */
  TW_DIM_SYMBOL = 2,   /* equals what slot `value` holds already */
  TW_DIM_ANY = 3       /* not checked */
};

/* Symbols are bound in this order: scalar parameters; then for each tensor parameter the shape, the strides from the
 * last to the first, the element offset. A dimension that is an expression (n + 1) binds a slot of its own, which the
 * entry compares afterwards and reports with tw_fail_dim. */
typedef struct tw_dim {
  int64_t value;
  int32_t kind; /* tw_dim_kind */
  int32_t reserved;
} tw_dim;

typedef struct tw_symbol {
  const char* name;
  int32_t bits; /* width of the integer type the script gave it: larger sizes are refused */
  int32_t reserved;
} tw_symbol;

enum tw_param_kind { TW_PARAM_TENSOR = 0, TW_PARAM_SCALAR = 1 };

enum tw_param_flags {
  TW_PARAM_WRITTEN = 1, /* stored to: must not be read-only, and must not overlap other arguments or itself */
  TW_PARAM_IN_PLACE = 2 /* exception: may share memory with other parameters that have this flag */
};

typedef struct tw_param {
  const char* name;
  const tw_dim* shape;   /* ndim entries; NULL for scalars */
  const tw_dim* strides; /* ndim entries counting elements, or NULL: row-major and compact */

  /* Where element (0, ..., 0) is stored, in elements. Constant 0: wherever the argument says, and data[] of
   * tw_check_args points to it. Otherwise data[] points to DLTensor.data and byte_offset has to agree (or is bound). */
  tw_dim elem_offset;

  int64_t max_elements; /* largest distance of two elements that the index arithmetic can take; 0: no limit */
  int32_t kind;         /* tw_param_kind */
  DLDataType dtype;     /* bool is kDLBool with 8 bits; elements of less than a byte take a byte each */
  int32_t ndim;
  int32_t flags;     /* tw_param_flags */
  int32_t alignment; /* of element (0, ..., 0), in bytes; 0: that of the element type */
  int32_t symbol;    /* scalars: the slot that takes the value, or -1 */
} tw_param;

/* Bit sets over the features of runtime/cpu_features.def. */
#define TW_FEATURE_WORDS 2

typedef struct tw_signature {
  uint32_t abi_version; /* TW_ABI_VERSION */
  int32_t device_type;  /* DLDeviceType; kernels for kDLOpenCL and kDLCUDA also take tensors of the host */
  const char* name;     /* of the function, as the script spells it */
  const tw_param* params;
  const tw_symbol* symbols;
  const char* features; /* instruction sets that the body uses, as LLVM spells them, separated by commas */
  uint64_t feature_words[TW_FEATURE_WORDS]; /* the same for the check, from tw_parse_features */
  int32_t num_params;
  int32_t num_tensors;
  int32_t num_scalars;
  int32_t num_symbols;
} tw_signature;

/* What a shared library of kernels contains, under the symbol TW_MODULE_SYMBOL (weak, so that objects can be linked
 * into one program). */
typedef struct tw_export {
  const char* name;
  tw_kernel entry;
  const tw_signature* signature;
} tw_export;

typedef struct tw_module {
  uint32_t abi_version;
  int32_t num_exports;
  const tw_export* exports;
  const char* producer; /* "tilewright 0.1.0" */
} tw_module;

#define TW_MODULE_SYMBOL "tilewright_module"

/* ---- What generated code calls ------------------------------------------------------------------------------- */

/* The calling thread's own context: the shared pool, per-thread workspaces, and a buffer for tw_last_error. */
tw_ctx* tw_default_ctx(void);

/* Compares arguments with the table. Fills `symbols` (num_symbols) and `data` (num_tensors: the address that the body
 * indexes from). Returns TW_OK, or reports the first mismatch and returns its code. */
int32_t tw_check_args(tw_ctx* ctx, const tw_signature* signature, const DLTensor* const* tensors,
                      const tw_scalar* scalars, int64_t* symbols, void** data);

/* Reports that dimension `dim` of tensor parameter number `tensor` is not `expected`, the value of `expression`. `dim`
 * counts the dimensions, then the strides in the same order, then the element offset. Returns TW_OK for a stride that
 * is not checked because it is never used: of a dimension with at most one element, or of an empty tensor. */
int32_t tw_fail_dim(tw_ctx* ctx, const tw_signature* signature, const DLTensor* const* tensors, int32_t tensor,
                    int32_t dim, const char* expression, int64_t expected);

/* TW_OK, or TW_ERROR_INTERRUPTED, reported, when the context wants the call to end. */
int32_t tw_interrupted(tw_ctx* ctx);

/* Hands an error to the context's sink unless the call has one already. Returns `code`. */
int32_t tw_report(tw_ctx* ctx, int32_t code, const char* message);

/* Reports the text "before", the number, "after". */
int32_t tw_report_value(tw_ctx* ctx, int32_t code, const char* before, int64_t value, const char* after);

/* ---- What callers use ------------------------------------------------------------------------------------------
 * These are in the runtime library, for programs that are linked with it. A kernel's shared library keeps its own to
 * itself: it has NAME_last_error(), and the environment variable TILEWRIGHT_NUM_THREADS is how many threads it takes.
 */

/* The message of the last error that the calling thread's default context took; "" if there was none. */
const char* tw_last_error(void);

/* Threads that a parallel loop may use, the caller included; 0 restores the default (one per core that this process
 * may use). The pool is shared by the whole process. */
void tw_set_num_threads(int32_t count);
int32_t tw_get_num_threads(void);

/* Fills a context of the caller's own with the default functions; the caller then replaces what it wants. */
void tw_ctx_init(tw_ctx* ctx);

#ifdef __cplusplus
}
#endif

#endif /* TILEWRIGHT_RUNTIME_ABI_H_ */
