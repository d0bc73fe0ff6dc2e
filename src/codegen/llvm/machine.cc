#include "codegen/llvm/machine.h"

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/PassInstrumentation.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/CommandLine.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/TargetParser/Host.h>
#include <llvm/Transforms/IPO/AlwaysInliner.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <llvm/Transforms/Scalar/DeadStoreElimination.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/GVN.h>
#include <llvm/Transforms/Scalar/IndVarSimplify.h>
#include <llvm/Transforms/Scalar/LICM.h>
#include <llvm/Transforms/Scalar/LoopDeletion.h>
#include <llvm/Transforms/Scalar/LoopIdiomRecognize.h>
#include <llvm/Transforms/Scalar/LoopPassManager.h>
#include <llvm/Transforms/Scalar/LoopUnrollPass.h>
#include <llvm/Transforms/Scalar/SROA.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>
#include <llvm/Transforms/Utils/Cloning.h>

#include <map>
#include <mutex>

#include "codegen/llvm/shared_corrections.h"
#include "support/interruption.h"
#include "support/ranges.h"

namespace tilewright::codegen {
namespace {

/// Blocks that end alike are compared with one another: for hundreds of loops in a row that takes most of a
/// compilation, and what it saves are bytes of code outside of the loops.
void merge_few_tails() {
  constexpr unsigned kMost = 16;
  auto& options = llvm::cl::getRegisteredOptions();
  if (auto* found = find_value(options, "tail-merge-threshold")) {
    static_cast<llvm::cl::opt<unsigned>*>(*found)->setValue(kMost);
  }
}

void initialize_llvm() {
  static std::once_flag once;
  std::call_once(once, [] {
    merge_few_tails();
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    llvm::InitializeNativeTargetAsmParser();
    LLVMInitializeAArch64TargetInfo();
    LLVMInitializeAArch64Target();
    LLVMInitializeAArch64TargetMC();
    LLVMInitializeAArch64AsmPrinter();
  });
}

std::unique_ptr<llvm::TargetMachine> make_machine(const Target& target, bool quick) {
  std::string error, triple = target.runs_here() ? llvm::sys::getProcessTriple() : std::string(target.triple());
  const llvm::Target* found = llvm::TargetRegistry::lookupTarget(triple, error);
  TW_CHECK(found, error);
  llvm::TargetOptions options;
  options.LoopAlignment = 64;  // inner loops of kernels: one line of the instruction cache less to fetch
  return std::unique_ptr<llvm::TargetMachine>(found->createTargetMachine(
      triple, target.cpu, target.llvm_features(), options, llvm::Reloc::PIC_, llvm::CodeModel::Small,
      quick ? llvm::CodeGenOptLevel::None : llvm::CodeGenOptLevel::Aggressive));
}

}  // namespace

llvm::TargetMachine& machine_for(const Target& target, bool quick) {
  initialize_llvm();
  thread_local std::map<std::string, std::unique_ptr<llvm::TargetMachine>> machines;
  auto& machine = machines[target.cpu + " " + target.llvm_features() + (quick ? " quick" : "")];
  if (!machine) {
    machine = make_machine(target, quick);
    TW_CHECK(machine, "no machine for " + target.str());
  }
  return *machine;
}

namespace {

/// Loops inside of one another, in a deep function, that passes look at: the innermost ones.
constexpr int kMostHeight = 4;

int height(const llvm::Loop& loop) {
  int inside = 0;
  for (const llvm::Loop* nested : loop.getSubLoops()) inside = std::max(inside, height(*nested));
  return inside + 1;
}

/// Passes over loops take time with the square of the depth, since each looks at all of a loop and does that for every
/// loop: unrolling measures its body, hoisting forms closed SSA.
bool is_too_deep(llvm::StringRef pass, const llvm::Any& what, const DeepFunctions& deep) {
  if (deep.empty()) return false;
  if (const auto* loop = llvm::any_cast<const llvm::Loop*>(&what)) {
    return deep.count((*loop)->getHeader()->getParent()) != 0 && height(**loop) > kMostHeight;
  }
  const auto* function = llvm::any_cast<const llvm::Function*>(&what);
  return function && deep.count(*function) != 0 && pass == llvm::LoopUnrollPass::name();
}

/// Functions with more basic blocks than this are not unrolled: each unrolled loop invalidates the analyses of all
/// others.
constexpr size_t kManyBlocks = 2000;

bool is_too_long(llvm::StringRef pass, const llvm::Any& what) {
  const bool unrolls = pass == llvm::LoopFullUnrollPass::name() || pass == llvm::LoopUnrollPass::name();
  if (!unrolls) return false;
  const auto* loop = llvm::any_cast<const llvm::Loop*>(&what);
  const auto* function = llvm::any_cast<const llvm::Function*>(&what);
  if (!loop && !function) return false;
  return (loop ? (*loop)->getHeader()->getParent() : *function)->size() > kManyBlocks;
}

}  // namespace

/// Only what the form of our code needs. The SIMD is in the IR already, so none of LLVM's vectorizers runs: the one of
/// loops (19.1.7) turns interleaved accesses that wrap, A[i * 3 % 64], into loads beyond the buffer.
bool optimize(llvm::Module& module, llvm::TargetMachine& machine, const DeepFunctions& deep, bool quick) {
  llvm::PassInstrumentationCallbacks callbacks;
  callbacks.registerShouldRunOptionalPassCallback([&](llvm::StringRef pass, const llvm::Any& what) {
    return !interrupted() && !is_too_deep(pass, what, deep) && !is_too_long(pass, what);
  });
  llvm::PassBuilder builder(&machine, llvm::PipelineTuningOptions(), std::nullopt, &callbacks);
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager graph;
  llvm::ModuleAnalysisManager modules;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(graph);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, graph, modules);
  llvm::ModulePassManager all;
  all.addPass(llvm::AlwaysInlinerPass());  // elementary functions
  if (quick) {
    all.run(module, modules);
    return !interrupted();
  }
  llvm::FunctionPassManager passes;
  passes.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));  // slots of local buffers become values
  passes.addPass(llvm::EarlyCSEPass(/*UseMemorySSA=*/true));     // addresses are emitted once an access
  passes.addPass(llvm::InstCombinePass());
  passes.addPass(llvm::SimplifyCFGPass());
  auto hoist = [&] {  // invariant addresses and loads; sums into one element become values
    passes.addPass(llvm::createFunctionToLoopPassAdaptor(llvm::LICMPass(llvm::LICMOptions()), /*UseMemorySSA=*/true));
  };
  hoist();
  llvm::LoopPassManager shapes;
  shapes.addPass(llvm::LoopIdiomRecognizePass());  // copies and fills
  shapes.addPass(llvm::IndVarSimplifyPass());
  shapes.addPass(llvm::LoopDeletionPass());
  shapes.addPass(llvm::LoopFullUnrollPass());
  passes.addPass(llvm::createFunctionToLoopPassAdaptor(std::move(shapes)));
  passes.addPass(llvm::EarlyCSEPass(/*UseMemorySSA=*/true));
  passes.addPass(llvm::GVNPass());  // forwards a store of one iteration to the load of the next
  passes.addPass(llvm::InstCombinePass());
  passes.addPass(llvm::SimplifyCFGPass());
  hoist();
  passes.addPass(SharedCorrections());
  passes.addPass(llvm::DSEPass());  // removes stores between the steps of an unrolled sum
  passes.addPass(llvm::LoopUnrollPass(llvm::LoopUnrollOptions(3)));  // scalar loops, and where hints ask for it
  passes.addPass(llvm::InstCombinePass());
  all.addPass(llvm::createModuleToFunctionPassAdaptor(std::move(passes)));
  all.run(module, modules);
  return !interrupted();
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
