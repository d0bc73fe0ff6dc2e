// LLVM's view of a target, and the one pipeline of passes.
#pragma once

#include <memory>
#include <string>

#include "codegen/codegen.h"

namespace llvm {
class Module;
class TargetMachine;
}  // namespace llvm

namespace tilewright::codegen {

/// The machine of a target, made once per thread.
llvm::TargetMachine& machine_for(const Target& target);
void optimize(llvm::Module& module, llvm::TargetMachine& machine);
std::string emit_object(llvm::Module& module, llvm::TargetMachine& machine);
std::string emit_assembly(const llvm::Module& module, llvm::TargetMachine& machine);

}  // namespace tilewright::codegen
