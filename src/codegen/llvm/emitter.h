// Emits one function of the module: statements and expressions of the lowered form become LLVM IR.
//
// A value in LLVM has the type of its expression, with two exceptions. Floats of fewer than 32 bits are kept as
// integers with their bits and computed in float, rounded after each operation: few processors have arithmetic on these
// types, and compiler-rt, which LLVM would call for it, is not linked. Loop variables and sizes are 64 bits wide: index
// arithmetic does not overflow, so it is done at the width of addresses whatever its type, without a sign extension in
// the loop.
//
// The first error is stored in ModuleState and the failed value becomes poison, so callers need not check.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "codegen/index_analysis.h"
#include "codegen/signature.h"
#include "codegen/work.h"
#include "ir/build.h"
#include "target/target.h"

namespace tilewright::codegen {

class Dialect;
struct DeviceBinary;

/// State that the functions of one module share.
struct ModuleState {
  llvm::Module& module;
  const Target& target;
  bool has_fma = false;
  bool has_f16c = false;
  std::unordered_map<std::string, llvm::Function*> bodies = {};  ///< by name of the function in the module
  std::optional<Diagnostic> error = {};                          ///< the first one
  std::unordered_map<std::string, llvm::GlobalVariable*> strings = {};
  std::set<const llvm::Function*> deep = {};  ///< functions with deeply nested loops
  std::string compiled = {};                  ///< name of the function being compiled
  std::map<std::pair<std::string, std::string>, int> library_calls =
      {};                                             ///< calls of libm functions, by calling function and callee
  std::map<std::string, Ref<PrimFunc>> kernels = {};  ///< device kernels by name
  llvm::GlobalVariable* image = nullptr;  ///< embedded device program; null if the module has no device kernels
  const Dialect* dialect = nullptr;       ///< language of the device source
  int32_t device_type = kDLCPU;           ///< device of the kernels

  llvm::LLVMContext& context() { return module.getContext(); }
  void fail(Diagnostic diagnostic) {
    if (!error) error = std::move(diagnostic);
  }
  /// Returns a constant C string.
  llvm::Constant* text(const std::string& value);
  /// Sets the CPU and the features of the target on a function.
  void set_target(llvm::Function& function) const;
  /// A function outside of the module, declared on first use.
  llvm::FunctionCallee external(const std::string& name, llvm::FunctionType* type);
};

class FunctionEmitter {
 public:
  /// `function` has the context as its first argument and returns a code.
  FunctionEmitter(ModuleState& state, llvm::Function* function);

  void bind(const Ref<Var>& v, llvm::Value* value);
  void bind(const Ref<Var>& v, llvm::Value* value, Interval interval);
  void bind_pointer(const Ref<Var>& v, llvm::Value* value, int64_t alignment, bool unique);
  void bind_size(const Ref<Var>& v, llvm::Value* value);  ///< size in a shape: not negative
  void emit_entry(const Signature& signature, llvm::GlobalVariable* table, llvm::Function* body);
  void set_result(llvm::Value* pointer) { result_ = pointer; }
  void emit_body(const Stmt& body);

 private:
  using Value = llvm::Value;

  // ---- emit_expr.cc
  Value* emit(const Expr& e);
  Value* emit_binary(Kind kind, const Expr& a, const Expr& b);
  Value* emit_arithmetic(Kind kind, DataType type, Value* a, Value* b);
  Value* emit_division(Kind kind, DataType type, Value* a, Value* b, bool nonnegative);
  /// a if a < b (min) or a > b (max), else b, also for NaN; one x86 instruction.
  Value* emit_ordered_min_max(Kind kind, DataType type, Value* a, Value* b);
  Value* emit_float_min_max(Kind kind, DataType type, Value* a, Value* b);
  Value* emit_compare(Kind kind, DataType type, Value* a, Value* b);
  Value* emit_fused(const Expr& e);  ///< a * b + c in one operation, or null
  Value* emit_cast(const Expr& value, DataType to);
  Value* convert(Value* value, DataType from, DataType to);
  Value* float_to_int(Value* value, DataType to);
  Value* emit_ramp(const Ramp& ramp, DataType type);
  Value* emit_shuffle(const Shuffle& shuffle);
  Value* emit_var(const Ref<Var>& v);
  void bind_let(const Ref<Var>& v, const Expr& value);
  /// Stores the value of a variable, extended to 64 bits if it is an index.
  void set_variable(const Ref<Var>& v, Value* value);
  Value* select_lanes(const Expr& condition, const Expr& yes, const Expr& no);
  Value* emit_if_then_else(const Expr& condition, const Expr& yes, const Expr& no);
  bool is_cheap(const Expr& e) const;

  // ---- emit_numbers.cc: floats below 32 bits
  static bool is_low_precision_float(DataType type) { return type.is_float() && type.bits < 32; }
  Value* extend_float(Value* value, DataType from);
  Value* truncate_float(Value* value, DataType to);

  // ---- emit_memory.cc
  Value* emit_index(const Expr& e);
  /// Element count in 64 bits; sets the bit `overflows` if it does not fit.
  Value* emit_size(const Expr& e, Value*& overflows);
  Value* address(const Ref<Buffer>& buffer, const Expr& index);
  Value* emit_load(const Ref<BufferLoad>& load);
  void emit_store(const Ref<BufferStore>& store);
  Value* load_masked_by_register(const Ref<Buffer>& buffer, const Expr& base, int lanes, Value* mask);
  Value* load_contiguous(const Ref<Buffer>& buffer, const Expr& base, int lanes, Value* mask);
  void store_contiguous(const Ref<Buffer>& buffer, const Expr& base, Value* value, Value* mask);
  Value* load_strided(const Ref<Buffer>& buffer, const Expr& base, int64_t stride, int lanes);
  Value* concatenate(std::vector<Value*> parts);
  std::vector<Value*> loaded_offsets(const Expr& index);
  Value* load_scattered(const Ref<Buffer>& buffer, const Expr& index, Value* mask);
  void store_scattered(const Ref<Buffer>& buffer, const Expr& index, Value* value, Value* mask);
  Value* lane_addresses(const Ref<Buffer>& buffer, const Expr& index);
  Value* selected_addresses(const Ref<Buffer>& buffer, const Expr& index, Value* mask);
  Value* lane_address(const Ref<Buffer>& buffer, const LaneLayout& layout, Value* pointers, int lane);
  Value* from_storage(Value* value, DataType type);
  Value* to_storage(Value* value, DataType type);

  // ---- emit_call.cc
  Value* emit_call(const Ref<Call>& call, bool is_value = true);
  Value* emit_intrinsic(const Call& call, Intrinsic intrinsic);
  Value* emit_lane_mask(const Expr& base, const Expr& limit, int lanes);
  Value* emit_float_intrinsic(const Call& call, Intrinsic intrinsic);
  Value* emit_integer_intrinsic(const Call& call, Intrinsic intrinsic);
  Value* emit_libm(const std::string& name, DataType type, const std::vector<Value*>& args);
  Value* emit_extern(const Call& call);
  Value* emit_module_call(const Call& call, const std::string& name);
  Value* emit_address(const Call& call);
  Value* emit_atomic(const Call& call);
  void emit_prefetch(const Call& call);
  void emit_print(const Call& call);

  // ---- emit_device.cc
  Value* call_device(const char* name, llvm::Type* result, std::vector<Value*> args);
  void emit_launch(const Call& call, const std::string& name, const PrimFunc& kernel);
  Value* emit_checks(const std::vector<Ref<AssertStmt>>& assertions);
  void emit_device_memory(const Ref<Var>& pointer, Value* bytes, llvm::function_ref<void()> inside);

  // ---- emit_instruction.cc
  Value* emit_instruction(const Call& call);

  // ---- emit_math.cc
  Value* emit_math(Intrinsic intrinsic, const std::vector<Expr>& args, const std::vector<Value*>& values);
  Value* emit_power(Value* x, double exponent);
  Value* emit_power_double_double(Value* x, int n);

  // ---- emit_stmt.cc
  void emit(const Stmt& s);
  void emit_loop(const Ref<For>& loop);
  void emit_serial(const For& loop, Value* begin, Value* end, bool runs_once);
  void emit_iterations(const For& loop, Value* begin, Value* end, bool runs_once);
  Value* iterations_between_polls(const For& loop);
  bool polls(const Stmt& s);
  void emit_poll();
  void emit_while(const While& loop);
  void emit_if(const IfThenElse& branch);
  void emit_assert(const AssertStmt& assertion);
  void emit_allocate(const Allocate& allocate, llvm::function_ref<void()> inside);
  llvm::CallInst* emit_acquire(Value* bytes);
  void emit_release(Value* memory);
  void emit_constant(const AllocateConst& allocate);
  void emit_parallel(const Ref<For>& loop);
  void emit_range(const For& loop, Value* begin, Value* end);
  void return_if_failed(Value* code);
  void return_code(Value* code);
  void attach_loop_hints(llvm::BranchInst* latch, const For& loop);

  // ---- types
  llvm::Type* element_type(DataType type);  ///< in registers
  llvm::Type* storage_type(DataType type);  ///< in memory
  llvm::Type* type_of(DataType type);
  llvm::BasicBlock* new_block(const char* name);
  Value* lanes_of(Value* scalar, int lanes) { return lanes == 1 ? scalar : builder_.CreateVectorSplat(lanes, scalar); }
  // ---- emit_entry.cc
  Value* emit_aligned(Value* argument, int64_t bytes, std::vector<Value*>& copies);

  static Value* splat(double value, llvm::Type* like) { return llvm::ConstantFP::get(like, value); }
  Value* poison(DataType type) { return llvm::PoisonValue::get(type_of(type)); }
  Value* unsupported(DataType type, std::string what, std::string hint = {});

  ModuleState& state_;
  llvm::Function* function_;
  llvm::IRBuilder<> builder_;
  llvm::BasicBlock* entry_;  ///< allocas only
  Value* ctx_;
  Value* result_ = nullptr;                     ///< address for the value of T.ret
  std::unordered_map<NodeRef, Value*> values_;  ///< indices as i64, sign- or zero-extended; else in register form
  IndexAnalysis index_;
  std::vector<Value*> workspaces_;  ///< to release before a return, innermost last
  Operations operations_;
  int64_t stack_bytes_ = 0;
  int polling_loops_ = 0;  ///< enclosing loops that poll for interruption
  bool in_parallel_ = false;
};

// ---- emit_device.cc
llvm::GlobalVariable* emit_image(ModuleState& state, const Target& device, const std::string& source,
                                 const std::vector<DeviceBinary>& binaries);

// ---- emit_entry.cc
llvm::GlobalVariable* emit_signature(ModuleState& state, const Signature& signature, const std::string& features);
/// A row of the module's export table. `name` is the name in the module; the C symbol may be spelled differently.
struct Entry {
  std::string name;
  llvm::Function* function;
  llvm::GlobalVariable* signature;
};
void emit_module_table(ModuleState& state, const std::vector<Entry>& entries);

}  // namespace tilewright::codegen
