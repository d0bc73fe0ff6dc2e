// LLVM's view of a target, and the one pipeline of passes.
#pragma once

#include <memory>
#include <set>
#include <string>

#include "codegen/codegen.h"

namespace llvm {
class Function;
class Module;
class TargetMachine;
}  // namespace llvm

namespace tilewright::codegen {

/// Functions with so many loops in one another that passes over loops have to be bounded.
using DeepFunctions = std::set<const llvm::Function*>;

/// The machine of a target, made once per thread. `quick`: one that selects instructions without optimization.
llvm::TargetMachine& machine_for(const Target& target, bool quick = false);
/// False: it was interrupted.
bool optimize(llvm::Module& module, llvm::TargetMachine& machine, const DeepFunctions& deep, bool quick = false);
std::string emit_object(llvm::Module& module, llvm::TargetMachine& machine);
std::string emit_assembly(const llvm::Module& module, llvm::TargetMachine& machine);

}  // namespace tilewright::codegen
