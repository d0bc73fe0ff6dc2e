// Emits device kernels as C-like source (OpenCL C, CUDA C++). A Dialect supplies what differs between the languages.
//
// A value in the source has the type of its expression, except floats of fewer than 32 bits: they are computed as
// float, rounded after each operation, and stored in 16 or 8 bits in memory only. An index is computed in 32 bits where
// its interval, and those of its parts, fit; else in 64.
//
// Operations have the semantics of docs/meaning.md in all cases (overflow, NaN, division by zero). Where the language
// leaves a case undefined, the source calls a helper function that the writer emits before the kernels.
#pragma once

#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "codegen/index_analysis.h"
#include "ir/fragments.h"
#include "ir/op.h"
#include "ir/warp_steps.h"
#include "support/result.h"

namespace tilewright::codegen {

/// An operation on matrix fragments: load, store, fill or product (ir/fragments.h).
struct FragmentStep {
  Intrinsic intrinsic = Intrinsic::kUnknown;
  /// Shape of the fragment; for a product: of the result, both operands, the accumulator.
  std::vector<FragmentShape> shapes;
  std::vector<std::string> registers;  ///< the address of the first register of each fragment
  std::string pointer, stride, value;  ///< the memory of a load or store; the value of a fill
  bool is_col_major = false;           ///< layout of that memory
};

/// Row INTEGER of c_writer/intrinsics.def.
struct IntegerSpelling {
  std::string_view opencl, cuda, cuda_64;
};

/// Spellings of one device language. Methods return source text, unless they say otherwise.
class Dialect {
 public:
  virtual ~Dialect() = default;
  virtual std::string_view name() const = 0;
  /// The type of a value: "int", "float"; of a bool, "bool".
  virtual std::string type(DataType type) const = 0;
  /// The qualifiers of a helper function that kernels call: "static ".
  virtual std::string_view function_head() const = 0;
  /// The qualifier of a pointer to memory of the scope: "__global ".
  virtual std::string address_space(const std::string& scope) const = 0;
  /// The qualifier of a pointer without aliases: "restrict".
  virtual std::string_view restrict_word() const = 0;
  /// Whether an argument may point to any byte of an allocation. If not, a kernel has two parameters for each array:
  /// the allocation, and an offset in bytes.
  virtual bool has_addresses() const { return true; }
  /// The head of a kernel up to the opening brace. `threads`: threads of a block along x, y and z; 0: unknown.
  virtual std::string kernel_head(const std::string& name, const std::vector<std::string>& parameters,
                                  const std::array<int64_t, 3>& threads) const = 0;
  /// The index along "blockIdx.x", as an int.
  virtual std::string thread_index(const std::string& tag) const = 0;
  /// A barrier statement. `fences_global`: it also orders accesses to global memory.
  virtual std::string barrier(bool fences_global) const = 0;
  /// Whether to repeat the barrier at the end of a branch that contains one. All threads of a block take the same
  /// branch.
  virtual bool ends_branches_with_barriers() const { return false; }
  /// A condition, evaluated by all threads of a block: whether `value`, a bool, is true on one of them. Threads may
  /// then return while others of their block wait at barriers. Empty if they must not.
  virtual std::string any_of_block(const std::string& /*value*/) const { return ""; }
  /// The body of a function of `error`, the error word, `number` and `value`, that stores both if the word is 0.
  virtual std::string note_failure() const = 0;
  /// The maximum bytes of statically declared shared arrays; larger arrays are dynamic, with the size given at launch.
  virtual int64_t max_static_shared_bytes() const = 0;
  /// Declarations of static and dynamic shared arrays at the beginning of a kernel.
  virtual std::string shared_array(const std::string& type, const std::string& name, int64_t count) const = 0;
  virtual std::string dynamic_shared_array(const std::string& type, const std::string& name) const = 0;
  /// The declaration of a constant array at file scope, up to its "=".
  virtual std::string constant_array(const std::string& type, const std::string& name, int64_t count) const = 0;
  /// The name of the function on floats or doubles; empty if the language has none.
  virtual std::string math(Intrinsic intrinsic, DataType type) const = 0;
  /// Literals of infinity and NaN.
  virtual std::string infinity(DataType type) const = 0;
  virtual std::string nan(DataType type) const = 0;
  /// The bits of `value` as another type of the same size.
  virtual std::string reinterpret(DataType from, DataType to, const std::string& value) const = 0;
  /// Returns the spelling of this dialect for an integer of `bits` bits.
  virtual std::string_view integer_function(const IntegerSpelling& spelling, int bits) const = 0;
  /// Function bodies that convert the float16 `bits` to float, and the float `x` to bits, rounding to nearest even.
  virtual std::string load_half() const = 0;
  virtual std::string store_half() const = 0;
  /// The number and type of a fragment's registers per thread; 0 if the dialect does not support the fragment.
  virtual int64_t fragment_registers(const FragmentShape&) const { return 0; }
  virtual std::string fragment_type(const FragmentShape&) const { return ""; }
  /// Name and text of a function that executes a step; empty if there is no such instruction.
  virtual std::pair<std::string, std::string> fragment_function(const FragmentStep&) const { return {}; }
  /// Name and text of the helper for an asynchronous copy: (to, from, condition) copies `number` bytes; () commits a
  /// group; () waits until at most `number` groups are pending. Empty if unsupported.
  virtual std::pair<std::string, std::string> async_function(Intrinsic, int64_t /*number*/) const { return {}; }
  /// Name and text of the helper for a warp instruction: (sums, a, b) multiplies tiles in registers; (registers, row)
  /// loads them. Empty if unsupported.
  virtual std::pair<std::string, std::string> warp_function(const Expr& /*step*/) const { return {}; }
  /// An expression for a warp shuffle, or for the mask of active lanes. Empty if the dialect has no warps.
  virtual std::string shuffle(Intrinsic, const std::vector<std::string>& /*arguments*/) const { return ""; }
  /// `body` of a function (to, value) that updates `*to` atomically and returns the old value; `front`: declarations
  /// emitted before it. Both are empty if the language has no such operation.
  struct AtomicFunction {
    std::string body, front;
  };
  virtual AtomicFunction atomic_function(Intrinsic, DataType type, const std::string& address_space) const = 0;
  /// Whether a vector access must be aligned to its size.
  virtual bool requires_vector_alignment() const { return true; }
  /// `expression` copies `lanes` contiguous elements at once: 4, 8 or 16 bytes. `name` and `text`: a helper function
  /// that it calls; may be empty.
  struct VectorCopy {
    std::string expression, name, text;
  };
  virtual VectorCopy vector_copy(const std::string& type, int lanes, int64_t bytes, const std::string& to,
                                 const std::string& from) const = 0;
  /// An expression that loads four bytes as an unsigned 32-bit word.
  virtual std::string load_word(const std::string& pointer) const = 0;
  /// The body of a function (a, b, c) that returns c plus the dot product of the four bytes in word `a` and in word
  /// `b`. Empty if the device has no such instruction.
  virtual std::string dot4(DataType /*a*/, DataType /*b*/) const { return ""; }
  /// The alignment attribute of a private array that instructions access by 32 bits or more.
  virtual std::string_view private_array_alignment() const { return ""; }
  /// The initializer of a private array that is written conditionally.
  virtual std::string_view private_initializer() const { return ""; }
  /// Returns the beginning of the source. `is_double`: the source computes with doubles.
  virtual std::string prelude(bool is_double) const = 0;
};

/// Returns the source of all kernels of a lowered module. ScriptError "codegen/not-on-device" names an operation that
/// the language lacks.
Result<std::string> write_kernels(const Ref<Module>& lowered, const Dialect& dialect);
/// Bytes of dynamic shared memory of a kernel.
int64_t dynamic_shared_bytes(const Stmt& kernel, const Dialect& dialect);
/// Returns the name of a kernel in the source, from its name in the module.
std::string kernel_symbol(const std::string& name);
/// The assertions of a kernel. Their positions are their numbers in the error word, less one.
std::vector<Ref<AssertStmt>> assertions_of(const Stmt& kernel);

/// OpenCL C 1.2 (codegen/opencl).
const Dialect& opencl_dialect();
/// CUDA C++ that needs no header (codegen/cuda).
const Dialect& cuda_dialect();

}  // namespace tilewright::codegen
