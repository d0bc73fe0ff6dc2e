#include "codegen/loader.h"

#include <llvm/ExecutionEngine/JITLink/JITLink.h>
#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/ExecutionEngine/Orc/ObjectLinkingLayer.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/TargetSelect.h>

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "codegen/symbols.h"
#include "runtime/runtime.h"

namespace tilewright::codegen {
namespace {

Diagnostic load_error(llvm::Error error) {
  return resource_error("codegen/load", "the object code cannot be loaded: " + llvm::toString(std::move(error)));
}

/// Writes the addresses of functions to /tmp/perf-PID.map, as `perf report` reads it.
class PerfMap : public llvm::orc::ObjectLinkingLayer::Plugin {
 public:
  void modifyPassConfig(llvm::orc::MaterializationResponsibility&, llvm::jitlink::LinkGraph&,
                        llvm::jitlink::PassConfiguration& passes) override {
    passes.PostFixupPasses.push_back([this](llvm::jitlink::LinkGraph& graph) {
      write(graph);
      return llvm::Error::success();
    });
  }
  llvm::Error notifyFailed(llvm::orc::MaterializationResponsibility&) override { return llvm::Error::success(); }
  llvm::Error notifyRemovingResources(llvm::orc::JITDylib&, llvm::orc::ResourceKey) override {
    return llvm::Error::success();
  }
  void notifyTransferringResources(llvm::orc::JITDylib&, llvm::orc::ResourceKey, llvm::orc::ResourceKey) override {}

 private:
  void write(llvm::jitlink::LinkGraph& graph) {
    std::string lines;
    for (const llvm::jitlink::Symbol* symbol : graph.defined_symbols()) {
      if (!symbol->hasName() || !symbol->isCallable() || symbol->getSize() == 0) continue;
      lines +=
          fmt::format("{:x} {:x} {}\n", symbol->getAddress().getValue(), symbol->getSize(), symbol->getName().str());
    }
    std::lock_guard lock(mutex_);
    // A map that cannot be written is no reason to refuse the kernel.
    if (std::FILE* file = std::fopen(fmt::format("/tmp/perf-{}.map", ::getpid()).c_str(), "a")) {
      std::fputs(lines.c_str(), file);
      std::fclose(file);
    }
  }

  std::mutex mutex_;
};

bool is_perf_map_wanted() {
  const char* wanted = std::getenv("TILEWRIGHT_PERF_MAP");
  return wanted && *wanted && std::strcmp(wanted, "0") != 0;
}

/// One linker per process; each object is a library of its own in it, removed with its kernel.
struct Linker {
  std::unique_ptr<llvm::orc::LLJIT> jit;
  llvm::orc::JITDylib* symbols = nullptr;
  std::atomic<uint64_t> next{0};

  static Result<Linker*> get() {
    // Never destroyed: kernels may outlive static destruction.
    static Linker* linker = nullptr;
    static std::mutex mutex;
    std::lock_guard lock(mutex);
    if (linker) return linker;
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    auto made = std::make_unique<Linker>();
    auto jit = llvm::orc::LLJITBuilder()
                   .setLinkProcessSymbolsByDefault(false)
                   .setPlatformSetUp(llvm::orc::setUpInactivePlatform)
                   .create();
    if (!jit) return load_error(jit.takeError());
    made->jit = std::move(*jit);
    auto* layer = llvm::dyn_cast<llvm::orc::ObjectLinkingLayer>(&made->jit->getObjLinkingLayer());
    if (layer && is_perf_map_wanted()) layer->addPlugin(std::make_shared<PerfMap>());
    auto library = made->jit->createJITDylib("runtime");
    if (!library) return load_error(library.takeError());
    made->symbols = &*library;
    if (llvm::Error error = made->define_symbols()) return load_error(std::move(error));
    linker = made.release();
    return linker;
  }

  llvm::Error define_symbols() {
    llvm::orc::SymbolMap map;
    auto add = [&](std::string_view name, void* address) {
      auto flags = llvm::JITSymbolFlags::Exported | llvm::JITSymbolFlags::Callable;
      map[jit->mangleAndIntern(llvm::StringRef(name.data(), name.size()))] = {llvm::orc::ExecutorAddr::fromPtr(address),
                                                                              flags};
    };
    int32_t count = 0;
    const tw_runtime_symbol* runtime = tw_runtime_symbols(&count);
    for (int32_t i = 0; i < count; ++i) add(runtime[i].name, runtime[i].address);
    for (const Symbol& symbol : library_symbols()) add(symbol.name, symbol.address);
    return symbols->define(llvm::orc::absoluteSymbols(std::move(map)));
  }
};

/// The code of one object; unmapped when the last kernel that uses it is gone.
struct Code {
  Linker* linker;
  llvm::orc::JITDylib* library;
  Code(Linker* l, llvm::orc::JITDylib* d) : linker(l), library(d) {}
  Code(const Code&) = delete;
  ~Code() {
    // If this fails, there is no caller to report to: the memory stays.
    llvm::consumeError(linker->jit->getExecutionSession().removeJITDylib(*library));
  }
};

}  // namespace

const tw_export* LoadedKernel::find(std::string_view name) const {
  for (int32_t i = 0; i < table_->num_exports; ++i) {
    if (name == table_->exports[i].name) return &table_->exports[i];
  }
  return nullptr;
}

Result<LoadedKernel> load_object(std::string_view bytes) {
  TW_TRY(linker, Linker::get());
  llvm::orc::LLJIT& jit = *linker->jit;
  auto library = jit.getExecutionSession().createJITDylib("kernel." + std::to_string(linker->next.fetch_add(1)));
  if (!library) return load_error(library.takeError());
  auto code = std::make_shared<Code>(linker, &*library);
  library->addToLinkOrder(*linker->symbols);
  auto buffer = llvm::MemoryBuffer::getMemBufferCopy(llvm::StringRef(bytes.data(), bytes.size()), "kernel");
  if (llvm::Error error = jit.addObjectFile(*library, std::move(buffer))) return load_error(std::move(error));
  auto table = jit.lookup(*library, TW_MODULE_SYMBOL);
  if (!table) return load_error(table.takeError());
  LoadedKernel kernel;
  kernel.code_ = std::move(code);
  kernel.table_ = table->toPtr<const tw_module*>();
  if (kernel.table_->abi_version == TW_ABI_VERSION) return kernel;
  return resource_error("library/version",
                        fmt::format("the object code has version {} of the kernel interface, this is version {}",
                                    kernel.table_->abi_version, TW_ABI_VERSION),
                        "compile the kernel again with this version of Tilewright");
}

}  // namespace tilewright::codegen
