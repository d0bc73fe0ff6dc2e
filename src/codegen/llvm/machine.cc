#include "codegen/llvm/machine.h"

#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/TargetParser/Host.h>
#include <llvm/TargetParser/SubtargetFeature.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/LICM.h>
#include <llvm/Transforms/Scalar/LoopPassManager.h>
#include <llvm/Transforms/Scalar/LoopUnrollPass.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>
#include <llvm/Transforms/Utils/Cloning.h>
#include <llvm/Transforms/Utils/Mem2Reg.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "support/host_cpu.h"

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
  std::string error;
  const llvm::Target* found = llvm::TargetRegistry::lookupTarget(target.triple, error);
  if (!found) return nullptr;
  return std::unique_ptr<llvm::TargetMachine>(found->createTargetMachine(
      target.triple, target.cpu, target.features, llvm::TargetOptions(), llvm::Reloc::PIC_, llvm::CodeModel::Small, level));
}

/// Features of this machine as differences from what LLVM assumes of its CPU: a hypervisor hides some.
std::string host_differences(const std::string& triple, const std::string& cpu) {
  std::string error;
  const llvm::Target* found = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!found) return {};
  std::unique_ptr<llvm::MCSubtargetInfo> info(found->createMCSubtargetInfo(triple, cpu, ""));
  llvm::StringMap<bool> host = llvm::sys::getHostCPUFeatures();
  std::vector<std::string> differences;
  for (const llvm::SubtargetFeatureKV& feature : info->getAllProcessorFeatures()) {
    auto it = host.find(feature.Key);
    if (it == host.end()) continue;
    bool assumed = info->getFeatureBits().test(feature.Value);
    if (assumed != it->second) differences.push_back((it->second ? "+" : "-") + std::string(feature.Key));
  }
  std::sort(differences.begin(), differences.end());
  std::string text;
  for (const std::string& d : differences) text += (text.empty() ? "" : ",") + d;
  return text;
}

const llvm::MCSubtargetInfo& subtarget(const Target& target) { return *machine_for(target, Effort::kTuning).getMCSubtargetInfo(); }

}  // namespace

Result<Target> complete(Target target) {
  if (target.kind != TargetKind::kLlvm) return target;
  initialize_llvm();
  bool native = target.cpu.empty() || target.cpu == "native";
  std::string host_triple = llvm::sys::getProcessTriple();
  if (target.triple.empty()) target.triple = host_triple;
  std::string error;
  const llvm::Target* found = llvm::TargetRegistry::lookupTarget(target.triple, error);
  if (!found) {
    return argument_error("target/triple", "no code can be generated for '" + target.triple + "'",
                          "this build generates code for " + host_triple);
  }
  if (native) {
    target.cpu = llvm::sys::getHostCPUName().str();
    if (target.features.empty()) target.features = host_differences(target.triple, target.cpu);
  }
  std::unique_ptr<llvm::MCSubtargetInfo> info(found->createMCSubtargetInfo(target.triple, "", ""));
  if (!info->isCPUStringValid(target.cpu)) {
    return argument_error("target/cpu", "LLVM knows no CPU '" + target.cpu + "' for " + target.triple,
                          "use \"native\", or a name such as x86-64-v3, znver3, skylake-avx512");
  }
  llvm::SubtargetFeatures listed(target.features);
  for (const std::string& feature : listed.getFeatures()) {
    std::string name = llvm::SubtargetFeatures::StripFlag(feature).str();
    auto known = info->getAllProcessorFeatures();
    if (std::none_of(known.begin(), known.end(), [&](const auto& kv) { return name == kv.Key; })) {
      return argument_error("target/feature", "LLVM knows no feature '" + name + "' of " + target.triple);
    }
  }
  bool avx512 = has_feature(target, "avx512f") && has_feature(target, "avx512vl");
  bool avx = has_feature(target, "avx");
  bool prefers_256 = has_feature(target, "prefer-256-bit");
  if (!target.vector_bits) target.vector_bits = avx512 && !prefers_256 ? 512 : avx ? 256 : 128;
  target.vector_registers = avx512 ? 32 : 16;
  if (!target.num_cores) target.num_cores = tw_count_cores();
  return target;
}

llvm::TargetMachine& machine_for(const Target& target, Effort effort) {
  initialize_llvm();
  thread_local std::map<std::string, std::unique_ptr<llvm::TargetMachine>> machines;
  std::string key = target.triple + " " + target.cpu + " " + target.features + (effort == Effort::kFinal ? " 3" : " 2");
  auto& machine = machines[key];
  if (!machine) {
    machine = make_machine(target, effort == Effort::kFinal ? llvm::CodeGenOptLevel::Aggressive
                                                            : llvm::CodeGenOptLevel::Default);
    TW_CHECK(machine, "no machine for " + target.str());
  }
  return *machine;
}

bool has_feature(const Target& target, const std::string& name) { return subtarget(target).checkFeatures("+" + name); }

std::string required_features(const Target& target) {
  const llvm::MCSubtargetInfo& info = subtarget(target);
  std::string text;
  for (const llvm::SubtargetFeatureKV& feature : info.getAllProcessorFeatures()) {
    std::string name = feature.Key;
    if (!info.getFeatureBits().test(feature.Value)) continue;
    if (tw_cpu_feature_from_name(name.c_str(), static_cast<int>(name.size())) < 0) continue;
    text += (text.empty() ? "" : ",") + name;
  }
  return text;
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
