// Statements: loops, branches, allocations, assertions, parallel loops.
#include <llvm/IR/MDBuilder.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

#include "analysis/size_limits.h"
#include "codegen/llvm/emitter.h"
#include "codegen/work.h"
#include "ir/annotations.h"
#include "ir/strides.h"
#include "ir/substitute.h"
#include "ir/traverse.h"
#include "support/ranges.h"

namespace tilewright::codegen {
namespace {

/// The size of all arrays that a function has on the stack: threads of a pool may have small ones.
constexpr int64_t kMostStackBytes = 16 << 10;

/// Operations, as Operations counts them, between two polls of a loop for interruption: at least 20 microseconds. Loops
/// with less work than `kShortWork`, some milliseconds, do not poll.
constexpr int64_t kWorkBetweenPolls = 1 << 20;
constexpr int64_t kShortWork = 20'000'000;
/// Maximum number of nested loops of unknown length that poll, apart from innermost loops.
constexpr int kMaxPollingLoops = 6;
/// Loops in one another, after which passes over them are bounded.
constexpr int kDeep = 12;

bool is_long(int64_t each, int64_t extent) { return extent > 0 && each > kShortWork / extent; }

/// Whether the statement may end the function: iterations behind the one that does never run.
bool may_return(const Stmt& s) {
  return any_node(s, [&](const Ref<Call>& call) { return intrinsic_of(*call) == Intrinsic::k_ret; });
}

}  // namespace

FunctionEmitter::FunctionEmitter(ModuleState& state, llvm::Function* function)
    : state_(state), function_(function), builder_(state.context()) {
  entry_ = llvm::BasicBlock::Create(state.context(), "entry", function);
  ctx_ = function->getArg(0);
  llvm::BasicBlock* start = new_block("start");
  builder_.SetInsertPoint(entry_);
  builder_.CreateBr(start);
  builder_.SetInsertPoint(start);
  llvm::FastMathFlags flags;
  flags.setAllowContract();
  builder_.setFastMathFlags(flags);
}

llvm::BasicBlock* FunctionEmitter::new_block(const char* name) {
  return llvm::BasicBlock::Create(state_.context(), name, function_);
}

void FunctionEmitter::emit_body(const Stmt& body) {
  emit(body);
  return_code(builder_.getInt32(TW_OK));
}

void FunctionEmitter::emit(const Stmt& s) {
  switch (s.kind()) {
    case Kind::kSeqStmt:
      for (const Stmt& child : s.as<SeqStmt>()->seq) emit(child);
      return;
    case Kind::kFor:
      return emit_loop(s.borrow<For>());
    case Kind::kWhile:
      return emit_while(*s.as<While>());
    case Kind::kIfThenElse:
      return emit_if(*s.as<IfThenElse>());
    case Kind::kBufferStore:
      return emit_store(s.borrow<BufferStore>());
    case Kind::kEvaluate:
      if (const Expr& value = s.as<Evaluate>()->value; value.is<Call>()) {
        emit_call(value.borrow<Call>(), false);
      } else if (!value.is<IntImm>()) {
        emit(value);
      }
      return;
    case Kind::kLetStmt: {
      const LetStmt& let = *s.as<LetStmt>();
      bind_let(let.var, let.value);
      return emit(let.body);
    }
    case Kind::kAttrStmt:
      return emit(s.as<AttrStmt>()->body);
    case Kind::kDeclBuffer:
      return emit(s.as<DeclBuffer>()->body);
    case Kind::kAssertStmt:
      emit_assert(*s.as<AssertStmt>());
      return emit(s.as<AssertStmt>()->body);
    case Kind::kAllocate:
      return emit_allocate(*s.as<Allocate>(), [&] { emit(s.as<Allocate>()->body); });
    case Kind::kAllocateConst:
      return emit_constant(*s.as<AllocateConst>());
    default:
      state_.fail(internal_error("codegen/not-lowered", "a " + kind_name(s.kind()) + " reached code generation"));
  }
}

// ---- control -----------------------------------------------------------------------------------------------------

void FunctionEmitter::emit_loop(const Ref<For>& loop) {
  if (loop->kind == ForKind::kParallel && !in_parallel_ && !may_return(loop->body)) return emit_parallel(loop);
  if (loop->kind == ForKind::kThreadBinding) {
    unsupported(DataType::void_(),
                "loop '" + loop->loop_var->name_hint + "' is bound to " + loop->thread_binding->thread_tag +
                    ", which a CPU does not have",
                "use sch.parallel");
    return;
  }
  Value* begin = emit_index(loop->min);
  auto extent = const_int(loop->extent);
  if (extent && *extent <= 0) return;
  Value* end = builder_.CreateNSWAdd(begin, emit_index(loop->extent));
  emit_serial(*loop, begin, end, extent.has_value());
}

namespace {

/// Attaches loop metadata to the branch that ends the loop: `hint`, with or without a number.
void add_loop_hint(llvm::BranchInst* latch, const char* hint, llvm::Constant* number = nullptr) {
  llvm::LLVMContext& c = latch->getContext();
  std::vector<llvm::Metadata*> parts{llvm::MDString::get(c, hint)};
  if (number) parts.push_back(llvm::ConstantAsMetadata::get(number));
  llvm::MDNode* node = llvm::MDNode::getDistinct(c, {nullptr, llvm::MDNode::get(c, parts)});
  node->replaceOperandWith(0, node);
  latch->setMetadata(llvm::LLVMContext::MD_loop, node);
}

constexpr const char* kStaysRolled = "llvm.loop.unroll.disable";

}  // namespace

/// Hints for LLVM: unroll where the program requests it, and do not vectorize loops that already are vector code.
void FunctionEmitter::attach_loop_hints(llvm::BranchInst* latch, const For& loop) {
  const IntImm* count = loop.annotations.get(kUnrollHint).as<IntImm>();
  if (count && count->value > 1) {
    add_loop_hint(latch, "llvm.loop.unroll.count", builder_.getInt32(static_cast<uint32_t>(count->value)));
  } else if (count || has_vector_code(loop.body)) {
    add_loop_hint(latch, kStaysRolled);
  }
}

/// `runs_once`: there is at least one iteration.
void FunctionEmitter::emit_serial(const For& loop, Value* begin, Value* end, bool runs_once) {
  if (is_const_int(loop.extent, 1) && loop.kind != ForKind::kParallel) {
    bind(loop.loop_var, begin, index_.interval_of(loop));
    return emit(loop.body);
  }
  Value* most = iterations_between_polls(loop);
  if (!most) return emit_iterations(loop, begin, end, runs_once);
  // Strip-mine the loop, and poll the context between strips.
  llvm::BasicBlock* before = builder_.GetInsertBlock();
  llvm::BasicBlock* part = new_block("part");
  llvm::BasicBlock* poll = new_block("poll");
  llvm::BasicBlock* after = new_block("after");
  if (runs_once) {
    builder_.CreateBr(part);
  } else {
    builder_.CreateCondBr(builder_.CreateICmpSLT(begin, end), part, after);
  }
  builder_.SetInsertPoint(part);
  llvm::PHINode* start = builder_.CreatePHI(builder_.getInt64Ty(), 2, "start");
  start->addIncoming(begin, before);
  Value* left = builder_.CreateNSWSub(end, start);
  Value* is_last = builder_.CreateICmpSLE(left, most);
  Value* stop = builder_.CreateSelect(is_last, end, builder_.CreateNSWAdd(start, most));
  ++polling_loops_;
  emit_iterations(loop, start, stop, true);
  --polling_loops_;
  builder_.CreateCondBr(is_last, after, poll, llvm::MDBuilder(state_.context()).createLikelyBranchWeights());
  builder_.SetInsertPoint(poll);
  emit_poll();
  start->addIncoming(stop, builder_.GetInsertBlock());
  // Polling takes long anyway: keep LLVM from analyzing whether to unroll the loop.
  add_loop_hint(builder_.CreateBr(part), kStaysRolled);
  builder_.SetInsertPoint(after);
}

/// Returns the number of iterations of a loop between two polls. Null if the loop is short, or if every iteration
/// executes a loop that polls.
llvm::Value* FunctionEmitter::iterations_between_polls(const For& loop) {
  Expr each = operations_.of_iteration(loop);
  auto known = const_int(each), extent = const_int(loop.extent);
  if (known && polls(loop.body)) return nullptr;
  if (known && extent && loop.kind != ForKind::kParallel && !is_long(*known, *extent)) return nullptr;
  if (known) return builder_.getInt64(static_cast<uint64_t>(std::max<int64_t>(kWorkBetweenPolls / *known, 1)));
  if (polling_loops_ >= kMaxPollingLoops) return nullptr;
  Value* most = builder_.CreateSDiv(builder_.getInt64(kWorkBetweenPolls), emit_index(max(each, i64(1))));
  return builder_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, most, builder_.getInt64(1));
}

/// Whether a statement surely executes a loop of constant extent that is long enough to poll.
bool FunctionEmitter::polls(const Stmt& s) {
  switch (s.kind()) {
    case Kind::kSeqStmt: {
      const auto& all = s.as<SeqStmt>()->seq;
      return llvm::any_of(all, [&](const Stmt& child) { return polls(child); });
    }
    case Kind::kLetStmt:
      return polls(s.as<LetStmt>()->body);
    case Kind::kAllocate:
      return polls(s.as<Allocate>()->body);
    case Kind::kDeclBuffer:
      return polls(s.as<DeclBuffer>()->body);
    case Kind::kAttrStmt:
      return polls(s.as<AttrStmt>()->body);
    case Kind::kFor: {
      const For& loop = *s.as<For>();
      auto each = const_int(operations_.of(loop.body)), extent = const_int(loop.extent);
      return each && extent && is_long(*each, *extent);
    }
    default:
      return false;
  }
}

void FunctionEmitter::emit_poll() {
  auto* type = llvm::FunctionType::get(builder_.getInt32Ty(), {builder_.getPtrTy()}, false);
  llvm::FunctionCallee callee = state_.external("tw_interrupted", type);
  if (auto* function = llvm::dyn_cast<llvm::Function>(callee.getCallee())) {
    // Sums that live in registers stay there.
    function->setMemoryEffects(llvm::MemoryEffects::inaccessibleOrArgMemOnly());
    function->setDoesNotThrow();
  }
  return_if_failed(builder_.CreateCall(callee, {ctx_}));
}

/// The iterations [begin, end).
void FunctionEmitter::emit_iterations(const For& loop, Value* begin, Value* end, bool runs_once) {
  llvm::BasicBlock* before = builder_.GetInsertBlock();
  llvm::BasicBlock* body = new_block(loop.loop_var->name_hint.c_str());
  llvm::BasicBlock* after = new_block("after");
  if (runs_once) {
    builder_.CreateBr(body);
  } else {
    llvm::BasicBlock* preheader = new_block("preheader");
    builder_.CreateCondBr(builder_.CreateICmpSLT(begin, end), preheader, after);
    builder_.SetInsertPoint(preheader);
    builder_.CreateBr(body);
    before = preheader;
  }
  builder_.SetInsertPoint(body);
  llvm::PHINode* i = builder_.CreatePHI(builder_.getInt64Ty(), 2, loop.loop_var->name_hint);
  i->addIncoming(begin, before);
  index_.enter_loop();
  if (index_.depth() > kDeep) state_.deep.insert(function_);
  bind(loop.loop_var, i, index_.interval_of(loop));
  emit(loop.body);
  index_.leave_loop();
  Value* next = builder_.CreateNSWAdd(i, builder_.getInt64(1));
  i->addIncoming(next, builder_.GetInsertBlock());
  llvm::BranchInst* latch = builder_.CreateCondBr(builder_.CreateICmpSLT(next, end), body, after);
  attach_loop_hints(latch, loop);
  builder_.SetInsertPoint(after);
}

void FunctionEmitter::emit_while(const While& loop) {
  llvm::BasicBlock* head = new_block("while");
  llvm::BasicBlock* body = new_block("do");
  llvm::BasicBlock* after = new_block("after");
  // Poll every `most` iterations.
  Expr each = operations_.of(loop.body);
  int64_t most = std::max<int64_t>(kWorkBetweenPolls / std::max<int64_t>(const_int(each).value_or(1 << 10), 1), 1);
  llvm::BasicBlock* before = builder_.GetInsertBlock();
  builder_.CreateBr(head);
  builder_.SetInsertPoint(head);
  llvm::PHINode* count = builder_.CreatePHI(builder_.getInt64Ty(), 3, "count");
  count->addIncoming(builder_.getInt64(0), before);
  index_.enter_loop();
  builder_.CreateCondBr(emit(loop.condition), body, after);
  builder_.SetInsertPoint(body);
  emit(loop.body);
  index_.leave_loop();
  Value* next = builder_.CreateNSWAdd(count, builder_.getInt64(1));
  llvm::BasicBlock* poll = new_block("poll");
  count->addIncoming(next, builder_.GetInsertBlock());
  builder_.CreateCondBr(builder_.CreateICmpSLT(next, builder_.getInt64(static_cast<uint64_t>(most))), head, poll);
  builder_.SetInsertPoint(poll);
  emit_poll();
  count->addIncoming(builder_.getInt64(0), builder_.GetInsertBlock());
  add_loop_hint(builder_.CreateBr(head), kStaysRolled);
  builder_.SetInsertPoint(after);
}

void FunctionEmitter::emit_if(const IfThenElse& branch) {
  llvm::BasicBlock* then_block = new_block("then");
  llvm::BasicBlock* after = new_block("after");
  llvm::BasicBlock* else_block = branch.else_case.defined() ? new_block("else") : after;
  builder_.CreateCondBr(emit(branch.condition), then_block, else_block);
  builder_.SetInsertPoint(then_block);
  emit(branch.then_case);
  builder_.CreateBr(after);
  if (branch.else_case.defined()) {
    builder_.SetInsertPoint(else_block);
    emit(branch.else_case);
    builder_.CreateBr(after);
  }
  builder_.SetInsertPoint(after);
}

void FunctionEmitter::emit_assert(const AssertStmt& assertion) {
  const StringImm* message = assertion.message.as<StringImm>();
  Value* holds = emit(assertion.condition);
  llvm::BasicBlock* failed = new_block("assert");
  llvm::BasicBlock* after = new_block("after");
  llvm::MDBuilder weights(state_.context());
  builder_.CreateCondBr(holds, after, failed, weights.createLikelyBranchWeights());
  builder_.SetInsertPoint(failed);
  llvm::Type *pointer = builder_.getPtrTy(), *i32 = builder_.getInt32Ty();
  Value* error = builder_.getInt32(TW_ERROR_ASSERTION);
  if (const Call* parts = assertion.message.as<Call>()) {
    // Arguments of check_bounds: a text, a number, a text.
    Value *before = emit(parts->arg(0)), *number = emit(parts->arg(1)), *behind = emit(parts->arg(2));
    auto* type = llvm::FunctionType::get(i32, {pointer, i32, pointer, builder_.getInt64Ty(), pointer}, false);
    return_code(builder_.CreateCall(state_.external("tw_report_value", type), {ctx_, error, before, number, behind}));
  } else {
    auto* type = llvm::FunctionType::get(i32, {pointer, i32, pointer}, false);
    std::string_view text_of = message ? std::string_view(message->value) : "an assertion of the program failed";
    if (text_of.starts_with(analysis::kExtentMark)) {
      text_of.remove_prefix(analysis::kExtentMark.size());
      error = builder_.getInt32(TW_ERROR_EXTENT);
    }
    Value* text = state_.text(std::string(text_of));
    return_code(builder_.CreateCall(state_.external("tw_report", type), {ctx_, error, text}));
  }
  builder_.SetInsertPoint(after);
}

/// Ends the current block.
void FunctionEmitter::return_code(Value* code) {
  for (Value* workspace : reversed(workspaces_)) emit_release(workspace);
  builder_.CreateRet(code);
}

void FunctionEmitter::return_if_failed(Value* code) {
  llvm::BasicBlock* failed = new_block("failed");
  llvm::BasicBlock* after = new_block("after");
  llvm::MDBuilder weights(state_.context());
  Value* fine = builder_.CreateICmpEQ(code, builder_.getInt32(TW_OK));
  builder_.CreateCondBr(fine, after, failed, weights.createLikelyBranchWeights());
  builder_.SetInsertPoint(failed);
  return_code(code);
  builder_.SetInsertPoint(after);
}

// ---- memory ------------------------------------------------------------------------------------------------------

llvm::Value* FunctionEmitter::emit_size(const Expr& e, Value*& wrong) {
  if (e.is<Cast>() && e.as<Cast>()->value.dtype().is_int() && e.dtype() == DataType::int_(64)) {
    return emit_size(e.as<Cast>()->value, wrong);
  }
  if (!e.is<Mul>()) return emit_index(e);
  Value* a = emit_size(e.as<Mul>()->a, wrong);
  Value* b = emit_size(e.as<Mul>()->b, wrong);
  Value* both = builder_.CreateBinaryIntrinsic(llvm::Intrinsic::smul_with_overflow, a, b);
  wrong = builder_.CreateOr(wrong, builder_.CreateExtractValue(both, 1));
  return builder_.CreateExtractValue(both, 0);
}

/// `inside` emits the statements that use the memory.
void FunctionEmitter::emit_allocate(const Allocate& allocate, llvm::function_ref<void()> inside) {
  DataType type = allocate.dtype;
  llvm::Type* element = storage_type(type.element());
  Expr count = element_count(allocate.extents) * type.lanes;
  auto known = const_int(count);
  if (state_.image) {
    // Only kernels access it.
    Value* overflows = builder_.getFalse();
    Value* size = emit_size(count * i64(type.bytes()), overflows);
    size = builder_.CreateSelect(overflows, builder_.getInt64(INT64_MAX), size);
    return emit_device_memory(allocate.buffer_var, size, inside);
  }
  auto bind_memory = [&](Value* memory) { bind_pointer(allocate.buffer_var, memory, 64, true); };
  bool one_value = known && type.is_vector() && *known == type.lanes;
  if (one_value || (known && stack_bytes_ + *known * type.bytes() <= kMostStackBytes)) {
    // In the entry block, once per call; a slot of registers has the very type of its accesses, so that mem2reg takes
    // it.
    llvm::Type* memory_type = llvm::FixedVectorType::get(element, type.lanes);
    if (!one_value) {
      memory_type = llvm::ArrayType::get(element, static_cast<uint64_t>(std::max<int64_t>(*known, 1)));
      stack_bytes_ += *known * type.bytes();
    }
    llvm::IRBuilder<> at_entry(entry_, entry_->begin());
    llvm::AllocaInst* memory = at_entry.CreateAlloca(memory_type);
    memory->setAlignment(llvm::Align(64));
    memory->setName(allocate.buffer_var->name_hint);
    bind_memory(memory);
    return inside();
  }
  Value* wrong = builder_.getFalse();
  Value* bytes = emit_size(count * i64(type.bytes()), wrong);
  // A buffer of negative extent has no elements, as a loop of negative extent has no iterations.
  bytes = builder_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, bytes, builder_.getInt64(0));
  bytes = builder_.CreateSelect(wrong, builder_.getInt64(INT64_MAX), bytes);
  Value* memory = emit_acquire(bytes);
  Value* missing = builder_.CreateIsNull(memory);
  return_if_failed(builder_.CreateSelect(missing, builder_.getInt32(TW_ERROR_MEMORY), builder_.getInt32(TW_OK)));
  workspaces_.push_back(memory);
  bind_memory(memory);
  inside();
  workspaces_.pop_back();
  emit_release(memory);
}

/// Memory of so many bytes, which begins with a line; null where there is none.
llvm::CallInst* FunctionEmitter::emit_acquire(Value* bytes) {
  llvm::Type* pointer = builder_.getPtrTy();
  Value* slot = builder_.CreateConstGEP1_64(builder_.getInt8Ty(), ctx_, offsetof(tw_ctx, workspace_acquire));
  auto* type = llvm::FunctionType::get(pointer, {pointer, builder_.getInt64Ty()}, false);
  llvm::CallInst* memory = builder_.CreateCall(type, builder_.CreateLoad(pointer, slot), {ctx_, bytes});
  memory->addRetAttr(llvm::Attribute::NoAlias);
  memory->addRetAttr(llvm::Attribute::getWithAlignment(state_.context(), llvm::Align(64)));
  return memory;
}

void FunctionEmitter::emit_release(Value* memory) {
  llvm::Type* pointer = builder_.getPtrTy();
  if (state_.image) {
    call_device("tw_device_release", builder_.getVoidTy(), {memory});
    return;
  }
  Value* slot = builder_.CreateConstGEP1_64(builder_.getInt8Ty(), ctx_, offsetof(tw_ctx, workspace_release));
  auto* type = llvm::FunctionType::get(builder_.getVoidTy(), {pointer, pointer}, false);
  builder_.CreateCall(type, builder_.CreateLoad(pointer, slot), {ctx_, memory});
}

/// The iterations [begin, end) of a parallel loop; memory that its body allocates first is allocated once for all.
void FunctionEmitter::emit_range(const For& loop, Value* begin, Value* end) {
  const Allocate* allocate = loop.body.as<Allocate>();
  if (!allocate || uses_var(allocate->extents[0], loop.loop_var)) return emit_serial(loop, begin, end, false);
  For inner = loop;
  inner.body = allocate->body;
  emit_allocate(*allocate, [&] { emit_range(inner, begin, end); });
}

void FunctionEmitter::emit_constant(const AllocateConst& allocate) {
  llvm::Constant* bytes =
      llvm::ConstantDataArray::getRaw(allocate.data->bytes, allocate.data->bytes.size(), builder_.getInt8Ty());
  auto* global = new llvm::GlobalVariable(state_.module, bytes->getType(), true, llvm::GlobalValue::PrivateLinkage,
                                          bytes, allocate.buffer_var->name_hint);
  global->setAlignment(llvm::Align(64));
  global->setUnnamedAddr(llvm::GlobalValue::UnnamedAddr::Global);
  bind_pointer(allocate.buffer_var, global, 64, false);
  emit(allocate.body);
}

}  // namespace tilewright::codegen
