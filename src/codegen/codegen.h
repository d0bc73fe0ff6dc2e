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
  bool compile_kernels = true;  ///< else kernels of a device stay text, where it does not run text
  bool quick = false;           ///< compile faster, into slower code: for kernels that are only compared
};

/// Something the user may want to know about, though the code is correct: of all places in a function.
struct CodeNote {
  std::string code, function, message;
};

struct ObjectCode {
  std::string bytes;                   ///< the object file
  std::vector<std::string> functions;  ///< names of the entries
  std::string llvm_ir;                 ///< after optimization
  std::string assembly;
  std::string device_source;   ///< source of the kernels, for devices
  CudaProgram device_program;  ///< result of compiling it, for devices that run no source
  std::vector<CodeNote> notes;
  std::string platform;  ///< "aarch64-linux-gnu" where this process cannot run it; else empty
};

/// The one way to machine code: what a search measures, what tw.compile delivers and what an export contains are the
/// same code. `lowered` is what lower::lower returns. Every function with a "global_symbol" gets an entry of that name;
/// the rest is private to the object. `quick` is for tests that compare results.
Result<ObjectCode> compile(const Ref<Module>& lowered, const Target& target, const CompileOptions& options);

/// "19.1.7"
std::string_view llvm_version();

}  // namespace tilewright::codegen
