// From a lowered module to machine code.
//
//   TW_TRY(target, Target::parse("native"));
//   TW_TRY(lowered, lower::lower(module, target, {}));
//   TW_TRY(object, codegen::compile(lowered, target, {}));        // safe on any thread
//   TW_TRY(kernel, codegen::load_object(object.bytes));           // codegen/loader.h
//
// The object is relocatable ELF; it refers to nothing but the functions of tw_runtime_symbols() and a list of libm's
// (codegen/symbols.h), so one object serves measuring, caching, and export.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "codegen/cuda/compile.h"
#include "ir/stmt.h"
#include "support/result.h"
#include "target/target.h"

namespace tilewright::codegen {

struct CompileOptions {
  bool keep_llvm = false;       ///< fill ObjectCode::llvm_ir
  bool keep_assembly = false;   ///< fill ObjectCode::assembly
  bool compile_kernels = true;  ///< else device source is not compiled, only emitted (CUDA)
  bool quick = false;           ///< optimize less, to compile faster: for tests that compare results, not times
};

/// A remark on generated code, one per function and kind. The code is correct.
struct CodeNote {
  std::string code, function, message;
};

struct ObjectCode {
  std::string bytes;                   ///< the object file
  std::vector<std::string> functions;  ///< names of the entries
  std::string llvm_ir;                 ///< after optimization
  std::string assembly;
  std::string device_source;   ///< source of the kernels, for devices
  CudaProgram device_program;  ///< compiled device source, for devices that do not compile at run time
  std::vector<CodeNote> notes;
  std::string platform;  ///< target triple, e.g. "aarch64-linux-gnu", if this process cannot run the object; else empty
};

/// Compiles a module. What a search measures, what tw.compile returns and what an export contains are the same code.
/// `lowered` is what lower::lower returns. Every function with a "global_symbol" gets an entry of that name; the rest
/// is private to the object.
Result<ObjectCode> compile(const Ref<Module>& lowered, const Target& target, const CompileOptions& options);

/// "19.1.7"
std::string_view llvm_version();

}  // namespace tilewright::codegen
