// Writes kernels in a language that looks like C. What languages differ in is a Dialect.
//
// A value in the text has the type of its expression, except floats of fewer than 32 bits: they are values of float,
// rounded after each operation, and have their own form in memory only. An index is computed in 32 bits where its
// interval, and those of its parts, fit; else in 64.
//
// What an operation yields at its edges is that of docs/meaning.md: where the language leaves it open, the text calls a
// function that the writer adds in front.
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

/// A step on fragments of matrices (ir/fragments.h).
struct FragmentStep {
  Intrinsic intrinsic = Intrinsic::kUnknown;
  /// shape of the fragment; for a product: of the result, both operands, the accumulator
  std::vector<FragmentShape> shapes;
  std::vector<std::string> registers;  ///< the address of the first register of each
  std::string pointer, stride, value;  ///< the memory of a load or store; the value of a fill
  bool is_col_major = false;           ///< layout of that memory
};

/// Row INTEGER of c_writer/intrinsics.def.
struct IntegerSpelling {
  std::string_view opencl, cuda, cuda_64;
};

class Dialect {
 public:
  virtual ~Dialect() = default;
  virtual std::string_view name() const = 0;
  /// The type of a value: "int", "float"; of a bool, "bool".
  virtual std::string type(DataType type) const = 0;
  /// The qualifiers of a function that kernels call: "static ".
  virtual std::string_view function_head() const = 0;
  /// In front of a pointer to memory of the scope: "__global ".
  virtual std::string address_space(const std::string& scope) const = 0;
  /// The qualifier of a pointer without aliases: "restrict".
  virtual std::string_view restrict_word() const = 0;
  /// Whether arguments may point into memory; else a kernel has two parameters for each: the memory, and an offset in
  /// bytes.
  virtual bool has_addresses() const { return true; }
  /// The head of a kernel up to the opening brace. `threads`: of a block along x, y and z; 0: not known.
  virtual std::string kernel_head(const std::string& name, const std::vector<std::string>& parameters,
                                  const std::array<int64_t, 3>& threads) const = 0;
  /// The index along "blockIdx.x", as an int.
  virtual std::string thread_index(const std::string& tag) const = 0;
  /// A statement; `of_global`: what threads exchange is in main memory, too.
  virtual std::string barrier(bool of_global) const = 0;
  /// Whether a branch with a barrier ends with one: all threads of a block take the same branch.
  virtual bool ends_branches_with_barriers() const { return false; }
  /// A condition, evaluated by all threads of a block: whether `value`, a bool, is true on one of them. Threads may
  /// then return while others of their block wait at barriers. Empty if they must not.
  virtual std::string any_of_block(const std::string& /*value*/) const { return ""; }
  /// The body of a function of `error`, the error word, `number` and `value`, that stores both if the word is 0.
  virtual std::string note_failure() const = 0;
  /// The maximum bytes of statically declared shared arrays; larger arrays are dynamic, with the size given at launch.
  virtual int64_t most_static_shared_bytes() const = 0;
  /// Declarations of static and dynamic shared arrays at the beginning of a kernel.
  virtual std::string shared_array(const std::string& type, const std::string& name, int64_t count) const = 0;
  virtual std::string dynamic_shared_array(const std::string& type, const std::string& name) const = 0;
  /// The declaration of a constant array of the whole text, up to its "=".
  virtual std::string constant_array(const std::string& type, const std::string& name, int64_t count) const = 0;
  /// The function on floats or doubles; empty where there is none.
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
  /// An asynchronous copy: name and text of a function (to, from, condition) that starts one of `number` bytes, or ()
  /// that closes a group, or that waits until `number` groups are left; empty if there is no such instruction.
  virtual std::pair<std::string, std::string> async_function(Intrinsic, int64_t /*number*/) const { return {}; }
  /// Name and text of a function (sums, a, b) that multiplies tiles in registers, or (registers, row) that loads them;
  /// empty if there is no such instruction.
  virtual std::pair<std::string, std::string> warp_function(const Expr& /*step*/) const { return {}; }
  /// An expression: the value of another lane, in the type that the arithmetic of C gives it, or the mask of those that
  /// run; empty if threads have no lanes.
  virtual std::string shuffle(Intrinsic, const std::vector<std::string>& /*arguments*/) const { return ""; }
  /// An atomic operation: the body of a function of `to`, a pointer into the address space, and `value`, that returns
  /// the element before; and lines in front of the function. Empty if there is none.
  struct AtomicFunction {
    std::string body, front;
  };
  virtual AtomicFunction atomic_function(Intrinsic, DataType type, const std::string& address_space) const = 0;
  /// An expression that copies `lanes` neighbors of the type at once, 4, 8 or 16 bytes; a function that it calls is
  /// text by name.
  struct VectorCopy {
    std::string expression, name, text;
  };
  /// Whether what is copied so has to begin at a multiple of its size.
  virtual bool aligns_vectors() const { return true; }
  virtual VectorCopy vector_copy(const std::string& type, int lanes, int64_t bytes, const std::string& to,
                                 const std::string& from) const = 0;
  /// The four bytes at the beginning of an array of a thread, as an unsigned word.
  virtual std::string word(const std::string& pointer) const = 0;
  /// The body of a function of unsigned words `a` and `b` and of `c` that returns c and the sum of the products of
  /// their bytes; empty if there is no instruction for it.
  virtual std::string byte_products(DataType /*a*/, DataType /*b*/) const { return ""; }
  /// In front of an array of a thread that instructions access by 32 bits or more.
  virtual std::string_view by_words() const { return ""; }
  /// Behind the declaration of an array of a thread that is written under conditions: a value to begin with.
  virtual std::string_view private_start() const { return ""; }
  /// Returns the beginning of the source. `is_double`: the source computes with doubles.
  virtual std::string prelude(bool is_double) const = 0;
};

/// The text of all kernels of a lowered module. ScriptError "codegen/not-on-device" names what the language does not
/// have.
Result<std::string> write_kernels(const Ref<Module>& lowered, const Dialect& dialect);
/// Bytes of dynamic shared memory of a kernel.
int64_t dynamic_shared_bytes(const Stmt& kernel, const Dialect& dialect);
/// Names of kernels in the text, by their names in the module.
std::string kernel_symbol(const std::string& name);
/// The assertions of a kernel. Their positions are their numbers in the error word, less one.
std::vector<Ref<AssertStmt>> assertions_of(const Stmt& kernel);

/// OpenCL C 1.2 (codegen/opencl).
const Dialect& opencl_dialect();
/// CUDA C++ that needs no header (codegen/cuda).
const Dialect& cuda_dialect();

}  // namespace tilewright::codegen
