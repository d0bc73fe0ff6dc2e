// Parallel loops: a function for ranges of iterations, which the pool of the context runs.
//
// A loop that is balanced by offsets is run as a loop over units of work: iteration i is 1 + offsets[i + 1] -
// offsets[i] of them, and begins at unit i + offsets[i] - offsets[0]. A thread that is given units [begin, end) runs
// the iterations that begin there, which it finds by binary search.
//
// Theorem. Whatever the offsets are, each iteration runs exactly once. Let first(t) be the iteration that the search
// finds for unit t. Searches for t < u visit the same iterations until one visits i with t <= work(i) < u; then
// first(t) <= i < first(u). So first() does not decrease, it is 0 at 0 and the number of iterations at the end, and the
// ranges of the chunks do not overlap and cover all iterations.
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "codegen/llvm/emitter.h"
#include "codegen/work.h"
#include "ir/annotations.h"
#include "ir/substitute.h"

namespace tilewright::codegen {
namespace {

using llvm::Value;

/// parallel_grain() takes a loop of unknown length to have 16 iterations.
constexpr int64_t kUnitsPerIteration = 17;

struct Offsets {
  Ref<Var> data;
  DataType type;
  Expr length;
};

/// The offsets of a loop from 0 with a well-formed annotation.
std::optional<Offsets> offsets_of(const For& loop) {
  const List* list = loop.annotations.get(kBalancedBy).as<List>();
  if (!list || list->items.size() != 2 || !list->items[0].is<Var>() || list->items[1].sort() != Sort::kExpr) {
    return std::nullopt;
  }
  Ref<Var> data = list->items[0].borrow<Var>();
  const PointerType* pointer = data->type_annotation.as<PointerType>();
  const PrimType* element = pointer ? pointer->element_type.as<PrimType>() : nullptr;
  const bool is_index = element && element->dtype.is_int() && element->dtype.is_scalar() && element->dtype.bits >= 32;
  if (!is_index || !is_const_int(loop.min, 0)) return std::nullopt;
  return Offsets{data, element->dtype, Expr(list->items[1])};
}

/// A function of the module for offsets of the type; null where it has none yet.
llvm::Function* declare(llvm::Module* module, const std::string& name, DataType type, unsigned numbers) {
  llvm::LLVMContext& c = module->getContext();
  std::vector<llvm::Type*> types{llvm::PointerType::getUnqual(c)};
  types.resize(1 + numbers, llvm::Type::getInt64Ty(c));
  return llvm::Function::Create(llvm::FunctionType::get(llvm::Type::getInt64Ty(c), types, false),
                                llvm::Function::InternalLinkage, name + "." + type.str(), module);
}

Value* load_offset(llvm::IRBuilder<>& at, Value* offsets, DataType type, Value* index) {
  llvm::Type* element = at.getIntNTy(static_cast<unsigned>(type.bits));
  return at.CreateSExt(at.CreateLoad(element, at.CreateGEP(element, offsets, index)), at.getInt64Ty());
}

/// (offsets, iterations, length) -> units of work; -1 where the offsets say nothing: they are too few, or descend.
llvm::Function* find_total_work(llvm::Module* module, DataType type) {
  if (llvm::Function* known = module->getFunction("total_work." + type.str())) return known;
  llvm::Function* function = declare(module, "total_work", type, 2);
  llvm::LLVMContext& c = module->getContext();
  auto block = [&](const char* name) { return llvm::BasicBlock::Create(c, name, function); };
  llvm::BasicBlock *entry = block("entry"), *known = block("known"), *unknown = block("unknown");
  Value *offsets = function->getArg(0), *iterations = function->getArg(1), *length = function->getArg(2);
  llvm::IRBuilder<> at(entry);
  Value* runs = at.CreateICmpSGT(iterations, at.getInt64(0));
  at.CreateCondBr(at.CreateAnd(runs, at.CreateICmpSLT(iterations, length)), known, unknown);
  at.SetInsertPoint(known);
  Value* inside =
      at.CreateSub(load_offset(at, offsets, type, iterations), load_offset(at, offsets, type, at.getInt64(0)));
  Value* work = at.CreateAdd(inside, iterations);
  at.CreateRet(at.CreateSelect(at.CreateICmpSLT(inside, at.getInt64(0)), at.getInt64(-1), work));
  at.SetInsertPoint(unknown);
  at.CreateRet(at.getInt64(-1));
  return function;
}

/// (offsets, iterations, work, unit) -> the first iteration that begins at the unit or behind it; where the work is not
/// known, the units are the iterations.
llvm::Function* find_first_iteration(llvm::Module* module, DataType type) {
  if (llvm::Function* known = module->getFunction("first_iteration." + type.str())) return known;
  llvm::Function* function = declare(module, "first_iteration", type, 3);
  llvm::LLVMContext& c = module->getContext();
  auto block = [&](const char* name) { return llvm::BasicBlock::Create(c, name, function); };
  llvm::BasicBlock *entry = block("entry"), *same = block("same"), *begin = block("begin"), *search = block("search");
  llvm::BasicBlock *step = block("step"), *done = block("done");
  Value *offsets = function->getArg(0), *iterations = function->getArg(1), *work = function->getArg(2);
  Value* unit = function->getArg(3);
  llvm::IRBuilder<> at(entry);
  at.CreateCondBr(at.CreateICmpSLT(work, at.getInt64(0)), same, begin);
  at.SetInsertPoint(same);
  at.CreateRet(unit);
  at.SetInsertPoint(begin);
  Value* none = at.getInt64(0);
  Value* lowest = at.CreateSelect(at.CreateICmpSGE(unit, work), iterations, none);
  Value* highest = at.CreateSelect(at.CreateICmpSLE(unit, none), none, iterations);
  Value* base = load_offset(at, offsets, type, none);
  at.CreateBr(search);
  at.SetInsertPoint(search);
  llvm::PHINode *low = at.CreatePHI(at.getInt64Ty(), 2), *high = at.CreatePHI(at.getInt64Ty(), 2);
  at.CreateCondBr(at.CreateICmpSLT(low, high), step, done);
  at.SetInsertPoint(step);
  Value* middle = at.CreateLShr(at.CreateAdd(low, high), 1);
  Value* before = at.CreateAdd(at.CreateSub(load_offset(at, offsets, type, middle), base), middle);
  Value* is_behind = at.CreateICmpSGE(before, unit);
  Value* next = at.CreateAdd(middle, at.getInt64(1));
  low->addIncoming(lowest, begin);
  low->addIncoming(at.CreateSelect(is_behind, low, next), step);
  high->addIncoming(highest, begin);
  high->addIncoming(at.CreateSelect(is_behind, middle, high), step);
  at.CreateBr(search);
  at.SetInsertPoint(done);
  at.CreateRet(low);
  return function;
}

}  // namespace

/// The body becomes a function of its own. What it uses of the surroundings is stored in a closure on the stack, which
/// a wrapper takes apart: as arguments of the inner function, pointers keep the knowledge that they do not overlap.
void FunctionEmitter::emit_parallel(const Ref<For>& loop) {
  llvm::LLVMContext& c = state_.context();
  llvm::Type *pointer = builder_.getPtrTy(), *i64 = builder_.getInt64Ty(), *i32 = builder_.getInt32Ty();
  std::vector<Ref<Var>> captured;
  auto capture = [&](const Ref<Var>& v) {
    if (v == loop->loop_var || llvm::is_contained(captured, v)) return;
    if (values_.contains(v)) captured.push_back(v);
  };
  for_each_free_var(loop->body, capture);
  // If the work of iterations differs, how often the loop polls depends on the work of the middle one.
  for_each_free_var(operations_.of_iteration(*loop), capture);
  Value *first = emit_index(loop->min), *extent = emit_index(loop->extent);
  std::vector<Value*> values{first};
  for (const Ref<Var>& v : captured) values.push_back(values_.at(v));
  std::vector<llvm::Type*> types;
  for (Value* value : values) types.push_back(value->getType());
  // Fields that only the wrapper needs come last.
  std::vector<llvm::Type*> stored = types;
  int64_t grain = parallel_grain(*loop);
  std::optional<Offsets> offsets = offsets_of(*loop);
  llvm::Function* first_iteration = nullptr;
  if (offsets && values_.contains(offsets->data)) {
    first_iteration = find_first_iteration(&state_.module, offsets->type);
    Value* table = values_.at(offsets->data);
    Value* length = emit_index(offsets->length);
    Value* work = builder_.CreateCall(find_total_work(&state_.module, offsets->type), {table, extent, length});
    for (Value* value : {table, extent, work}) {
      values.push_back(value);
      stored.push_back(value->getType());
    }
    extent = builder_.CreateSelect(builder_.CreateICmpSLT(work, builder_.getInt64(0)), extent, work);
    grain *= kUnitsPerIteration;
  }
  llvm::StructType* closure_type = llvm::StructType::get(c, stored);

  std::string name = function_->getName().str() + "." + loop->loop_var->name_hint;
  std::vector<llvm::Type*> inner_types{pointer, i64, i64};
  llvm::append_range(inner_types, types);
  auto* inner = llvm::Function::Create(llvm::FunctionType::get(i32, inner_types, false),
                                       llvm::Function::InternalLinkage, name + ".body", state_.module);
  auto* outer = llvm::Function::Create(llvm::FunctionType::get(i32, {pointer, i64, i64, pointer}, false),
                                       llvm::Function::InternalLinkage, name, state_.module);
  for (llvm::Function* f : {inner, outer}) {
    for (llvm::Attribute attribute : function_->getAttributes().getFnAttrs()) f->addFnAttr(attribute);
  }
  inner->addFnAttr(llvm::Attribute::NoInline);

  {
    FunctionEmitter body(state_, inner);
    body.in_parallel_ = true;
    for (size_t i = 0; i < captured.size(); ++i) {
      const Ref<Var>& v = captured[i];
      unsigned position = static_cast<unsigned>(i) + 4;
      llvm::Argument* argument = inner->getArg(position);
      body.index_.define(v, index_);
      body.set_variable(v, argument);
      if (!argument->getType()->isPointerTy()) continue;
      if (index_.is_unique(v)) inner->addParamAttr(position, llvm::Attribute::NoAlias);
      if (const int64_t alignment = index_.alignment_of(v); alignment > 1) {
        inner->addParamAttr(position,
                            llvm::Attribute::getWithAlignment(c, llvm::Align(static_cast<uint64_t>(alignment))));
      }
    }
    Value* start = body.builder_.CreateNSWAdd(inner->getArg(1), inner->getArg(3));
    Value* stop = body.builder_.CreateNSWAdd(inner->getArg(2), inner->getArg(3));
    body.emit_range(*loop, start, stop);
    body.return_code(body.builder_.getInt32(TW_OK));
  }
  {
    llvm::IRBuilder<> at(llvm::BasicBlock::Create(c, "entry", outer));
    std::vector<Value*> arguments{outer->getArg(0), outer->getArg(1), outer->getArg(2)};
    for (unsigned i = 0; i < stored.size(); ++i) {
      arguments.push_back(at.CreateLoad(stored[i], at.CreateStructGEP(closure_type, outer->getArg(3), i)));
    }
    if (first_iteration) {
      const std::vector<Value*> of_offsets(arguments.end() - 3, arguments.end());
      arguments.resize(arguments.size() - 3);
      for (size_t end : {1, 2}) {
        arguments[end] = at.CreateCall(first_iteration, {of_offsets[0], of_offsets[1], of_offsets[2], arguments[end]});
      }
    }
    at.CreateRet(at.CreateCall(inner, arguments));
  }
  llvm::IRBuilder<> at_entry(entry_, entry_->begin());
  Value* closure = at_entry.CreateAlloca(closure_type);
  for (unsigned i = 0; i < stored.size(); ++i) {
    builder_.CreateStore(values[i], builder_.CreateStructGEP(closure_type, closure, i));
  }
  Value* slot = builder_.CreateConstGEP1_64(builder_.getInt8Ty(), ctx_, offsetof(tw_ctx, parallel_for));
  auto* run = llvm::FunctionType::get(i32, {pointer, pointer, pointer, i64, i64}, false);
  Value* least = builder_.getInt64(static_cast<uint64_t>(grain));
  // Sizes of the call decide how much work an iteration is: few ones over all nonzeros may be worth a thread each.
  if (const Expr each = operations_.of_iteration(*loop); !first_iteration && !const_int(each)) {
    Value* per_range =
        builder_.CreateSDiv(builder_.getInt64(kOperationsPerRange), emit_index(max(each, tilewright::i64(1))));
    least = builder_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, per_range, builder_.getInt64(1));
  }
  return_if_failed(builder_.CreateCall(run, builder_.CreateLoad(pointer, slot), {ctx_, outer, closure, extent, least}));
}

}  // namespace tilewright::codegen
