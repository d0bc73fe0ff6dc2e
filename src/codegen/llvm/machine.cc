#include "codegen/llvm/machine.h"

#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/TargetParser/Host.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/LICM.h>
#include <llvm/Transforms/Scalar/LoopPassManager.h>
#include <llvm/Transforms/Scalar/LoopUnrollPass.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>
#include <llvm/Transforms/Utils/Cloning.h>
#include <llvm/Transforms/Utils/Mem2Reg.h>

#include <map>
#include <mutex>

namespace tilewright::codegen {
namespace {

void initialize_llvm() {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    llvm::InitializeNativeTargetAsmParser();
  });
}

std::unique_ptr<llvm::TargetMachine> make_machine(const Target& target, llvm::CodeGenOptLevel level) {
  std::string error, triple = llvm::sys::getProcessTriple();
  const llvm::Target* found = llvm::TargetRegistry::lookupTarget(triple, error);
  TW_CHECK(found, error);
  llvm::TargetOptions options;
  options.LoopAlignment = 64;  // inner loops of kernels: one line of the instruction cache less to fetch
  return std::unique_ptr<llvm::TargetMachine>(found->createTargetMachine(
      triple, target.cpu, target.llvm_features(), options, llvm::Reloc::PIC_, llvm::CodeModel::Small, level));
}

}  // namespace

llvm::TargetMachine& machine_for(const Target& target, Effort effort) {
  initialize_llvm();
  thread_local std::map<std::string, std::unique_ptr<llvm::TargetMachine>> machines;
  std::string key = target.cpu + " " + target.llvm_features() + (effort == Effort::kFinal ? " 3" : " 2");
  auto& machine = machines[key];
  if (!machine) {
    machine = make_machine(target,
                           effort == Effort::kFinal ? llvm::CodeGenOptLevel::Aggressive : llvm::CodeGenOptLevel::Less);
    TW_CHECK(machine, "no machine for " + target.str());
  }
  return *machine;
}

void optimize(llvm::Module& module, llvm::TargetMachine& machine, Effort effort) {
  llvm::PipelineTuningOptions tuning;
  tuning.SLPVectorization = false;  // takes vector code apart to build its own
  tuning.LoopVectorization = true;  // scalar loops only: ours are marked
  llvm::PassBuilder builder(&machine, tuning);
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager graph;
  llvm::ModuleAnalysisManager modules;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(graph);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, graph, modules);
  if (effort == Effort::kFinal) {
    builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O3).run(module, modules);
    return;
  }
  llvm::FunctionPassManager passes;
  passes.addPass(llvm::PromotePass());  // registers: slots of local buffers become values
  passes.addPass(llvm::EarlyCSEPass());
  passes.addPass(llvm::InstCombinePass());
  passes.addPass(llvm::SimplifyCFGPass());
  passes.addPass(llvm::createFunctionToLoopPassAdaptor(llvm::LICMPass(llvm::LICMOptions()), /*UseMemorySSA=*/true));
  passes.addPass(llvm::LoopUnrollPass(llvm::LoopUnrollOptions(2, /*OnlyWhenForced=*/true)));
  llvm::ModulePassManager all;
  all.addPass(llvm::createModuleToFunctionPassAdaptor(std::move(passes)));
  all.run(module, modules);
}

std::string emit_object(llvm::Module& module, llvm::TargetMachine& machine) {
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
  bool refused = machine.addPassesToEmitFile(passes, stream, nullptr, llvm::CodeGenFileType::ObjectFile);
  TW_CHECK(!refused);
  passes.run(module);
  return {bytes.begin(), bytes.end()};
}

std::string emit_assembly(const llvm::Module& module, llvm::TargetMachine& machine) {
  std::unique_ptr<llvm::Module> copy = llvm::CloneModule(module);
  llvm::SmallVector<char, 0> text;
  llvm::raw_svector_ostream stream(text);
  llvm::legacy::PassManager passes;
  bool refused = machine.addPassesToEmitFile(passes, stream, nullptr, llvm::CodeGenFileType::AssemblyFile);
  TW_CHECK(!refused);
  passes.run(*copy);
  return {text.begin(), text.end()};
}

}  // namespace tilewright::codegen
