// A module of lowered functions becomes one LLVM module: raw bodies, entries, tables.
#include <llvm/Config/llvm-config.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>

#include <algorithm>
#include <map>
#include <set>

#include "codegen/c_names.h"
#include "codegen/c_writer/c_writer.h"
#include "codegen/kernel_alignment.h"
#include "codegen/llvm/emitter.h"
#include "codegen/llvm/machine.h"
#include "ir/annotations.h"
#include "ir/traverse.h"
#include "runtime/device.h"
#include "support/deep_stack.h"
#include "support/interruption.h"
#include "support/raised_codes.h"
#include "support/ranges.h"

namespace tilewright::codegen {

llvm::Constant* ModuleState::text(const std::string& value) {
  llvm::GlobalVariable*& known = strings[value];
  if (!known) {
    llvm::Constant* data = llvm::ConstantDataArray::getString(context(), value);
    known = new llvm::GlobalVariable(module, data->getType(), true, llvm::GlobalValue::PrivateLinkage, data, "text");
    known->setUnnamedAddr(llvm::GlobalValue::UnnamedAddr::Global);
  }
  return known;
}

void ModuleState::set_target(llvm::Function& function) const {
  function.addFnAttr("target-cpu", target.cpu);
  function.addFnAttr("target-features", target.llvm_features());
  function.addFnAttr("prefer-vector-width", std::to_string(target.vector_bits));
  function.addFnAttr("min-legal-vector-width", std::to_string(target.vector_bits));
}

llvm::FunctionCallee ModuleState::external(const std::string& name, llvm::FunctionType* type) {
  return module.getOrInsertFunction(name, type);
}

namespace {

struct Compiled {
  std::string name;  ///< key in the module
  Ref<PrimFunc> func;
  Signature signature;
  std::string symbol;  ///< name of the entry; empty: private
  bool is_called =
      false;  ///< by another function, whose arguments nothing checks: they may overlap, and begin anywhere
  llvm::Function* body = nullptr;
};

class ModuleEmitter {
 public:
  ModuleEmitter(ModuleState& state, const Ref<Module>& lowered) : state_(state), lowered_(lowered) {}

  Result<std::vector<std::string>> run() {
    for (const auto& [name, func] : lowered_->functions) {
      if (const PrimFunc* prim = func.as<PrimFunc>(); prim && is_kernel(*prim)) {
        state_.kernels.emplace(name, func.cast<PrimFunc>());
      } else if (prim) {
        Compiled item{.name = name, .func = func.cast<PrimFunc>(), .signature = {}, .symbol = {}};
        if (const StringImm* symbol = prim->attrs.get("global_symbol").as<StringImm>()) item.symbol = symbol->value;
        TW_TRY(signature, signature_of(item.func, item.symbol.empty() ? name : item.symbol, lowered_));
        item.signature = std::move(signature);
        if (!item.symbol.empty() && !returns_nothing(*prim)) {
          return script_error("codegen/return-value", "function '" + item.symbol + "' returns a value",
                              "only private functions can; store it to a buffer of one element");
        }
        items_.push_back(std::move(item));
      }
    }
    std::set<std::string> symbols;
    for (const Compiled& item : items_) {
      if (!item.symbol.empty() && !symbols.insert(item.symbol).second) {
        return script_error("codegen/same-name", "two functions of the module are exported as '" + item.symbol + "'",
                            "give each a global_symbol of its own");
      }
    }
    const Calls calls = calls_of_functions();
    TW_RETURN_IF_ERROR(refuse_recursion(calls));
    if (state_.dialect && state_.dialect->requires_vector_alignment()) {
      for (Compiled& item : items_) align_for_kernels(item.signature, *item.func, lowered_);
    }
    std::set<std::string> called;
    for (const auto& [caller, callees] : calls) called.insert(callees.begin(), callees.end());
    for (Compiled& item : items_) {
      item.is_called = called.count(item.name) != 0;
      declare(item);
    }
    std::vector<std::string> names;
    std::vector<Entry> entries;
    c_names_ = c_kernel_names(lowered_);
    std::string features;
    for (const std::string& name : state_.target.feature_names()) features += (features.empty() ? "" : ",") + name;
    for (Compiled& item : items_) {
      define(item);
      if (item.symbol.empty()) continue;
      llvm::GlobalVariable* table = emit_signature(state_, item.signature, features);
      entries.push_back({item.symbol, define_entry(item, table), table});
      names.push_back(item.symbol);
    }
    emit_module_table(state_, entries);
    if (state_.error) return *state_.error;
    return names;
  }

 private:
  static bool returns_nothing(const PrimFunc& func) {
    const TupleType* tuple = func.ret_type.as<TupleType>();
    return !func.ret_type.defined() || (tuple && tuple->fields.empty());
  }

  using Calls = std::map<std::string, std::set<std::string>>;  ///< callees of each function

  Calls calls_of_functions() {
    Calls calls;
    for (const Compiled& item : items_) {
      visit(item.func->body, [&](const Ref<Call>& call) {
        if (const GlobalVar* callee = call->op.as<GlobalVar>()) calls[item.name].insert(callee->name_hint);
      });
    }
    return calls;
  }

  /// Refuses recursive functions: a deep recursion would overflow the stack of the process.
  static Status refuse_recursion(const Calls& calls) {
    for (const auto& [name, callees] : calls) {
      std::vector<std::string> reached(callees.begin(), callees.end());
      std::set<std::string> seen(callees.begin(), callees.end());
      while (!reached.empty()) {
        const std::string at = reached.back();
        reached.pop_back();
        if (at == name) {
          return script_error("codegen/recursion", "function '" + name + "' calls itself, directly or through others",
                              "write a loop; ir.interpret runs functions that call themselves");
        }
        auto* next = find_value(calls, at);
        if (!next) continue;
        for (const std::string& callee : *next) {
          if (seen.insert(callee).second) reached.push_back(callee);
        }
      }
    }
    return Ok{};
  }

  llvm::Type* type_of(DataType type) {
    llvm::LLVMContext& c = state_.context();
    if (type.is_handle()) return llvm::PointerType::getUnqual(c);
    if (type.is_float() && type.bits < 32) return llvm::IntegerType::get(c, type.bits <= 8 ? 8 : 16);
    if (type.is_float()) return type.bits == 64 ? llvm::Type::getDoubleTy(c) : llvm::Type::getFloatTy(c);
    return llvm::IntegerType::get(c, type.bits);
  }

  void declare(Compiled& item) {
    llvm::LLVMContext& c = state_.context();
    llvm::Type* pointer = llvm::PointerType::getUnqual(c);
    std::vector<llvm::Type*> types{pointer};
    for (const Signature::Param& p : item.signature.params)
      types.push_back(p.buffer.defined() ? pointer : type_of(p.var.dtype()));
    for (size_t i = 0; i < item.signature.shape_slots().size(); ++i) types.push_back(llvm::Type::getInt64Ty(c));
    if (!returns_nothing(*item.func)) types.push_back(pointer);
    item.body = llvm::Function::Create(llvm::FunctionType::get(llvm::Type::getInt32Ty(c), types, false),
                                       llvm::Function::InternalLinkage,
                                       (item.symbol.empty() ? item.name : item.symbol) + ".body", state_.module);
    llvm::Function& f = *item.body;
    state_.set_target(f);
    f.addFnAttr(llvm::Attribute::NoUnwind);
    f.addFnAttr(llvm::Attribute::NoInline);  // the entry has other features
    for (unsigned i = 0; i < item.signature.params.size(); ++i) {
      const Signature::Param& p = item.signature.params[i];
      if (!p.buffer.defined()) continue;
      f.addParamAttr(i + 1, llvm::Attribute::NoCapture);
      f.addParamAttr(i + 1, llvm::Attribute::getWithAlignment(c, llvm::Align(alignment_of(p, item.is_called))));
      if (!item.is_called) f.addParamAttr(i + 1, llvm::Attribute::NoAlias);
      if (!p.written) f.addParamAttr(i + 1, llvm::Attribute::ReadOnly);
    }
    state_.bodies[item.name] = item.body;
  }

  /// The alignment of what the body gets for the tensor: for a device, a tw_device_pointer.
  uint64_t alignment_of(const Signature::Param& p, bool is_called) const {
    if (state_.image) return alignof(tw_device_pointer);
    int64_t bytes = std::max<int64_t>(is_called ? 1 : p.alignment, p.buffer->dtype.bytes());
    return static_cast<uint64_t>(bytes & -bytes);
  }

  void define(const Compiled& item) {
    state_.compiled = item.name;
    with_stack_for(Stmt(item.func->body).depth(), [&] {
      FunctionEmitter emitter(state_, item.body);
      unsigned position = 1;
      for (const Signature::Param& p : item.signature.params) {
        llvm::Value* argument = item.body->getArg(position++);
        argument->setName(p.name);
        if (p.buffer.defined()) {
          // A compact tensor without an offset is indexed from its first element, which the check saw to be aligned.
          emitter.bind_pointer(p.buffer->data, argument, static_cast<int64_t>(alignment_of(p, item.is_called)),
                               !item.is_called);
        } else {
          emitter.bind(p.var, argument);
        }
      }
      for (int slot : item.signature.shape_slots()) {
        const Signature::Symbol& symbol = item.signature.symbols[slot];
        llvm::Value* argument = item.body->getArg(position++);
        argument->setName(symbol.name);
        emitter.bind_size(symbol.var, argument);
      }
      if (!returns_nothing(*item.func)) emitter.set_result(item.body->getArg(position));
      emitter.emit_body(item.func->body);
    });
  }

  llvm::Function* define_entry(const Compiled& item, llvm::GlobalVariable* table) {
    llvm::LLVMContext& c = state_.context();
    llvm::Type* pointer = llvm::PointerType::getUnqual(c);
    auto* type = llvm::FunctionType::get(llvm::Type::getInt32Ty(c), {pointer, pointer, pointer}, false);
    auto* entry =
        llvm::Function::Create(type, llvm::Function::ExternalLinkage, c_names_.at(item.symbol), state_.module);
    // Runs before anything is known about the processor: no more than every one of its kind has.
    entry->addFnAttr("target-cpu", state_.module.getTargetTriple().starts_with("x86_64") ? "x86-64" : "generic");
    entry->addFnAttr("target-features", "");
    entry->addFnAttr(llvm::Attribute::NoUnwind);
    FunctionEmitter(state_, entry).emit_entry(item.signature, table, item.body);
    define_last_error(*entry);
    return entry;
  }

  /// NAME_last_error: libraries of kernels each have a runtime of their own, so one name for all would not do.
  void define_last_error(const llvm::Function& entry) {
    llvm::Type* pointer = llvm::PointerType::getUnqual(state_.context());
    auto* type = llvm::FunctionType::get(pointer, false);
    auto* function =
        llvm::Function::Create(type, llvm::Function::ExternalLinkage, entry.getName() + "_last_error", state_.module);
    for (llvm::Attribute attribute : entry.getAttributes().getFnAttrs()) function->addFnAttr(attribute);
    llvm::IRBuilder<> at(llvm::BasicBlock::Create(state_.context(), "", function));
    at.CreateRet(at.CreateCall(state_.external("tw_last_error", type)));
  }

  ModuleState& state_;
  const Ref<Module>& lowered_;
  std::map<std::string, std::string> c_names_;  ///< names of the entries
  std::vector<Compiled> items_;
};

}  // namespace

/// Returns the architectures to compile kernels for: that of the target, or by default sm_80 and sm_90a.
static std::vector<std::string> architectures(const Target& target) {
  if (!target.arch.empty()) return {target.arch};
  return {"sm_80", "sm_90a"};
}

Result<ObjectCode> compile(const Ref<Module>& lowered, const Target& compiled_for, const CompileOptions& options) {
  TW_RETURN_IF_ERROR(compiled_for.check_has_code());
  const bool has_device = compiled_for.is_in(TargetSet::kGpu);
  const Target target = has_device ? compiled_for.host_target() : compiled_for;
  std::string device_source;
  CudaProgram device_program;
  const bool is_cuda = compiled_for.kind == TargetKind::kCuda;
  const Dialect& dialect = is_cuda ? cuda_dialect() : opencl_dialect();
  if (has_device) {
    TW_TRY(source, write_kernels(lowered, dialect));
    device_source = std::move(source);
    if (is_cuda && options.compile_kernels) {
      TW_TRY(program, compile_cuda(device_source, architectures(compiled_for)));
      device_program = std::move(program);
    }
  }
  llvm::TargetMachine& machine = machine_for(target, options.quick);
  llvm::LLVMContext context;
  llvm::Module module("tilewright", context);
  module.setTargetTriple(machine.getTargetTriple().str());
  module.setDataLayout(machine.createDataLayout());
  ModuleState state{.module = module,
                    .target = target,
                    .has_fma = target.has("fma") || target.is_arm(),
                    .has_f16c = target.has("f16c") || target.is_arm()};
  if (has_device) {
    state.image = emit_image(state, compiled_for, device_source, device_program.binaries);
    state.dialect = &dialect;
  }
  TW_TRY(names, ModuleEmitter(state, lowered).run());
  std::string problem;
  llvm::raw_string_ostream problems(problem);
  bool broken = llvm::verifyModule(module, &problems);
  TW_CHECK(!broken, problems.str());
  bool complete = optimize(module, machine, state.deep, options.quick);
  if (!complete) return interruption_error();
  ObjectCode code;
  code.device_source = std::move(device_source);
  code.device_program = std::move(device_program);
  if (!target.runs_here()) code.platform = target.triple();
  for (const auto& [where, count] : state.library_calls) {
    note_raised("codegen/scalar-call");
    code.notes.push_back({"codegen/scalar-call", where.first,
                          "T." + where.second + " is a call of the C library for each number, in " +
                              std::to_string(count) + (count == 1 ? " place" : " places")});
  }
  code.functions = std::move(names);
  if (options.keep_llvm) {
    llvm::raw_string_ostream stream(code.llvm_ir);
    module.print(stream, nullptr);
  }
  if (options.keep_assembly) code.assembly = emit_assembly(module, machine);
  code.bytes = emit_object(module, machine);
  return code;
}

std::string_view llvm_version() { return LLVM_VERSION_STRING; }

}  // namespace tilewright::codegen
