#include "codegen/llvm/math/lanes.h"

#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Module.h>

#include <numeric>

namespace tilewright::codegen::math {
namespace {

using llvm::Value;

llvm::Type* with_lanes(llvm::Type* element, unsigned lanes) {
  return lanes == 1 ? element : llvm::FixedVectorType::get(element, lanes);
}

}  // namespace

Whole Whole::whole(uint64_t constant) const { return {at, llvm::ConstantInt::get(value->getType(), constant)}; }

Whole Whole::lookup(llvm::ArrayRef<uint64_t> table) const {
  llvm::IRBuilder<>& b = at->builder;
  llvm::Module& module = *b.GetInsertBlock()->getModule();
  llvm::Constant* data = llvm::ConstantDataArray::get(b.getContext(), table);
  llvm::GlobalVariable* global = module.getNamedGlobal("two_over_pi");
  if (!global) {
    global =
        new llvm::GlobalVariable(module, data->getType(), true, llvm::GlobalValue::PrivateLinkage, data, "two_over_pi");
    global->setUnnamedAddr(llvm::GlobalValue::UnnamedAddr::Global);
  }
  return {at, b.CreateLoad(b.getInt64Ty(), b.CreateGEP(b.getInt64Ty(), global, value))};
}

namespace {

/// Extends the value to sixteen lanes, of which the others are undefined.
Value* extend_to_sixteen(llvm::IRBuilder<>& b, Value* value) {
  const unsigned lanes = lanes_of(value);
  if (lanes == 16) return value;
  if (lanes == 1)
    return b.CreateInsertElement(llvm::PoisonValue::get(with_lanes(value->getType(), 16)), value, uint64_t{0});
  llvm::SmallVector<int, 16> picks(16, -1);
  std::iota(picks.begin(), picks.begin() + lanes, 0);
  return b.CreateShuffleVector(value, picks);
}

Real first_lanes(const Real& like, Value* found) {
  llvm::IRBuilder<>& b = like.at->builder;
  const unsigned lanes = lanes_of(like.value);
  if (lanes == 16) return {like.at, found};
  if (lanes == 1) return {like.at, b.CreateExtractElement(found, uint64_t{0})};
  llvm::SmallVector<int, 16> first(lanes);
  std::iota(first.begin(), first.end(), 0);
  return {like.at, b.CreateShuffleVector(found, first)};
}

}  // namespace

Real lookup(const Whole& places, llvm::ArrayRef<float> table) {
  llvm::IRBuilder<>& b = places.at->builder;
  llvm::Constant* data = llvm::ConstantDataVector::get(b.getContext(), table);
  Value* found =
      b.CreateIntrinsic(llvm::Intrinsic::x86_avx512_permvar_sf_512, {}, {data, extend_to_sixteen(b, places.value)});
  return first_lanes({places.at, places.value}, found);
}

Parts parts_of(const Real& x) {
  llvm::IRBuilder<>& b = x.at->builder;
  Value* numbers = extend_to_sixteen(b, x.value);
  Value *none = llvm::Constant::getNullValue(numbers->getType()), *all = b.getInt16(0xffff), *rounding = b.getInt32(4);
  auto exponent_of = [&](Value* value) {
    return b.CreateIntrinsic(llvm::Intrinsic::x86_avx512_mask_getexp_ps_512, {}, {value, none, all, rounding});
  };
  // Between 3/4 and 3/2; of negative numbers none (Intel's manual, VGETMANTPS).
  Value* mantissa = b.CreateIntrinsic(llvm::Intrinsic::x86_avx512_mask_getmant_ps_512, {},
                                      {numbers, b.getInt32(0b1011), none, all, rounding});
  Value* exponent = b.CreateFSub(exponent_of(numbers), exponent_of(mantissa));
  return {first_lanes(x, exponent), first_lanes(x, mantissa)};
}

Real approximate_reciprocal(const Real& x) {
  llvm::IRBuilder<>& b = x.at->builder;
  Value* numbers = extend_to_sixteen(b, x.value);
  Value* none = llvm::Constant::getNullValue(numbers->getType());
  return first_lanes(
      x, b.CreateIntrinsic(llvm::Intrinsic::x86_avx512_rcp14_ps_512, {}, {numbers, none, b.getInt16(0xffff)}));
}

Real Real::constant(double c) const { return {at, llvm::ConstantFP::get(value->getType(), c)}; }
Real Real::operator-() const { return {at, at->builder.CreateFNeg(value)}; }

Mask operator&(const Mask& a, const Mask& b) { return {a.at, a.at->builder.CreateAnd(a.value, b.value)}; }
Mask operator|(const Mask& a, const Mask& b) { return {a.at, a.at->builder.CreateOr(a.value, b.value)}; }
Mask operator^(const Mask& a, const Mask& b) { return {a.at, a.at->builder.CreateXor(a.value, b.value)}; }
Mask operator!(const Mask& a) { return {a.at, a.at->builder.CreateNot(a.value)}; }

Whole operator+(const Whole& a, const Whole& b) { return {a.at, a.at->builder.CreateAdd(a.value, b.value)}; }
Whole operator-(const Whole& a, const Whole& b) { return {a.at, a.at->builder.CreateSub(a.value, b.value)}; }
Whole operator*(const Whole& a, const Whole& b) { return {a.at, a.at->builder.CreateMul(a.value, b.value)}; }
Whole operator&(const Whole& a, const Whole& b) { return {a.at, a.at->builder.CreateAnd(a.value, b.value)}; }
Whole operator|(const Whole& a, const Whole& b) { return {a.at, a.at->builder.CreateOr(a.value, b.value)}; }
Whole operator^(const Whole& a, const Whole& b) { return {a.at, a.at->builder.CreateXor(a.value, b.value)}; }
Whole operator<<(const Whole& a, const Whole& b) { return {a.at, a.at->builder.CreateShl(a.value, b.value)}; }
Whole operator>>(const Whole& a, const Whole& b) { return {a.at, a.at->builder.CreateLShr(a.value, b.value)}; }

Whole multiply_high(const Whole& a, const Whole& b) {
  llvm::IRBuilder<>& to = a.at->builder;
  Value* product = to.CreateMul(to.CreateZExt(a.value, to.getInt128Ty()), to.CreateZExt(b.value, to.getInt128Ty()));
  return {a.at, to.CreateTrunc(to.CreateLShr(product, 64), to.getInt64Ty())};
}

Mask unsigned_less(const Whole& a, const Whole& b) { return {a.at, a.at->builder.CreateICmpULT(a.value, b.value)}; }
Mask equal(const Whole& a, const Whole& b) { return {a.at, a.at->builder.CreateICmpEQ(a.value, b.value)}; }

Whole select(const Mask& mask, const Whole& yes, const Whole& no) {
  return {yes.at, yes.at->builder.CreateSelect(mask.value, yes.value, no.value)};
}

Real operator+(const Real& a, const Real& b) { return {a.at, a.at->builder.CreateFAdd(a.value, b.value)}; }
Real operator-(const Real& a, const Real& b) { return {a.at, a.at->builder.CreateFSub(a.value, b.value)}; }
Real operator*(const Real& a, const Real& b) { return {a.at, a.at->builder.CreateFMul(a.value, b.value)}; }
Real operator/(const Real& a, const Real& b) { return {a.at, a.at->builder.CreateFDiv(a.value, b.value)}; }
Mask operator<(const Real& a, const Real& b) { return {a.at, a.at->builder.CreateFCmpOLT(a.value, b.value)}; }
Mask operator>(const Real& a, const Real& b) { return {a.at, a.at->builder.CreateFCmpOGT(a.value, b.value)}; }
Mask equal(const Real& a, const Real& b) { return {a.at, a.at->builder.CreateFCmpOEQ(a.value, b.value)}; }
Mask unordered(const Real& a, const Real& b) { return {a.at, a.at->builder.CreateFCmpUNO(a.value, b.value)}; }

Mask is_negative(const Real& a) {
  Whole n = bits(a);
  return {a.at, a.at->builder.CreateICmpSLT(n.value, n.whole(0).value)};
}

Real select(const Mask& mask, const Real& yes, const Real& no) {
  return {yes.at, yes.at->builder.CreateSelect(mask.value, yes.value, no.value)};
}

Real abs(const Real& a) { return {a.at, a.at->builder.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, a.value)}; }
Real sqrt(const Real& a) { return {a.at, a.at->builder.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, a.value)}; }

Real copysign(const Real& magnitude, const Real& sign) {
  return {sign.at, sign.at->builder.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, magnitude.value, sign.value)};
}

Real mad(const Real& a, const Real& b, const Real& c) {
  if (!a.at->fused) return a * b + c;
  return {a.at, a.at->builder.CreateIntrinsic(llvm::Intrinsic::fma, {a.value->getType()}, {a.value, b.value, c.value})};
}

Whole bits(const Real& a) {
  llvm::IRBuilder<>& b = a.at->builder;
  llvm::Type* integer = b.getIntNTy(a.value->getType()->getScalarSizeInBits());
  return {a.at, b.CreateBitCast(a.value, with_lanes(integer, lanes_of(a.value)))};
}

Real real(const Whole& a) {
  llvm::IRBuilder<>& b = a.at->builder;
  llvm::Type* element = a.value->getType()->getScalarSizeInBits() == 64 ? b.getDoubleTy() : b.getFloatTy();
  return {a.at, b.CreateBitCast(a.value, with_lanes(element, lanes_of(a.value)))};
}

Whole rounded(const Real& a) {
  llvm::IRBuilder<>& b = a.at->builder;
  llvm::Type* integer = b.getIntNTy(a.value->getType()->getScalarSizeInBits());
  llvm::Type* type = with_lanes(integer, lanes_of(a.value));
  return {a.at, b.CreateIntrinsic(llvm::Intrinsic::lrint, {type, a.value->getType()}, {a.value})};
}

Real extended(const Real& a) {
  llvm::IRBuilder<>& b = a.at->builder;
  return {a.at, b.CreateFPExt(a.value, with_lanes(b.getDoubleTy(), lanes_of(a.value)))};
}

Real truncated(const Real& a) {
  llvm::IRBuilder<>& b = a.at->builder;
  return {a.at, b.CreateFPTrunc(a.value, with_lanes(b.getFloatTy(), lanes_of(a.value)))};
}

Real exact_remainder(const Real& a, const Real& b) {
  llvm::Type* type = a.value->getType();
  llvm::FunctionCallee callee =
      a.at->builder.GetInsertBlock()->getModule()->getOrInsertFunction("fmod", type, type, type);
  if (auto* function = llvm::dyn_cast<llvm::Function>(callee.getCallee())) {
    function->setDoesNotThrow();
    function->setWillReturn();
    function->setDoesNotAccessMemory();
  }
  return {a.at, a.at->builder.CreateCall(callee, {a.value, b.value})};
}

// ---- rare lanes --------------------------------------------------------------------------------------------------

/// Memory of the function, laid out in its entry.
Value* LaneReplacement::slot(llvm::Type* type) {
  llvm::BasicBlock& entry = at_->builder.GetInsertBlock()->getParent()->getEntryBlock();
  return llvm::IRBuilder<>(&entry, entry.begin()).CreateAlloca(type);
}

LaneReplacement::LaneReplacement(const Mask& mask, llvm::ArrayRef<Real> usual, llvm::ArrayRef<Real> args)
    : at_(mask.at), before_(mask.at->builder.GetInsertBlock()) {
  llvm::IRBuilder<>& b = at_->builder;
  llvm::LLVMContext& context = b.getContext();
  llvm::Function* function = before_->getParent();
  auto block = [&](const char* name) { return llvm::BasicBlock::Create(context, name, function); };
  unsigned count = lanes_of(mask.value);
  llvm::BasicBlock* rare = block("rare");
  done_ = block("done");
  llvm::MDNode* unlikely = llvm::MDBuilder(context).createUnlikelyBranchWeights();
  for (const Real& value : usual) usual_.push_back(value.value);
  if (count == 1) {
    b.CreateCondBr(mask.value, rare, done_, unlikely);
    b.SetInsertPoint(rare);
    for (const Real& arg : args) lane_args_.push_back(arg.value);
    return;
  }
  b.CreateCondBr(b.CreateOrReduce(mask.value), rare, done_, unlikely);
  b.SetInsertPoint(rare);
  auto store = [&](Value* value) {
    Value* memory = slot(value->getType());
    b.CreateStore(value, memory);
    return memory;
  };
  Value* marks = store(b.CreateZExt(mask.value, with_lanes(b.getInt8Ty(), count)));
  llvm::SmallVector<Value*, 2> arg_slots;
  for (const Real& arg : args) arg_slots.push_back(store(arg.value));
  for (const Real& value : usual) slots_.push_back(store(value.value));
  lanes_ = b.getInt64(count);
  llvm::BasicBlock *head = block("lane"), *body = block("replace");
  next_ = block("next");
  b.CreateBr(head);
  b.SetInsertPoint(head);
  lane_ = b.CreatePHI(b.getInt64Ty(), 2);
  lane_->addIncoming(b.getInt64(0), rare);
  Value* mark = b.CreateLoad(b.getInt8Ty(), b.CreateGEP(b.getInt8Ty(), marks, lane_));
  b.CreateCondBr(b.CreateIsNotNull(mark), body, next_);
  b.SetInsertPoint(body);
  for (size_t i = 0; i < args.size(); ++i) {
    llvm::Type* element = args[i].value->getType()->getScalarType();
    lane_args_.push_back(b.CreateLoad(element, b.CreateGEP(element, arg_slots[i], lane_)));
  }
}

void LaneReplacement::finish(llvm::ArrayRef<Real> replaced, llvm::MutableArrayRef<Real> results) {
  llvm::IRBuilder<>& b = at_->builder;
  llvm::SmallVector<Value*, 4> values;
  if (!lane_) {
    for (const Real& value : replaced) values.push_back(value.value);
  } else {
    for (size_t i = 0; i < replaced.size(); ++i) {
      b.CreateStore(replaced[i].value, b.CreateGEP(usual_[i]->getType()->getScalarType(), slots_[i], lane_));
    }
    b.CreateBr(next_);
    b.SetInsertPoint(next_);
    Value* following = b.CreateAdd(lane_, b.getInt64(1));
    lane_->addIncoming(following, next_);
    llvm::BasicBlock* all = llvm::BasicBlock::Create(b.getContext(), "all", next_->getParent());
    b.CreateCondBr(b.CreateICmpULT(following, lanes_), lane_->getParent(), all);
    b.SetInsertPoint(all);
    for (size_t i = 0; i < usual_.size(); ++i) values.push_back(b.CreateLoad(usual_[i]->getType(), slots_[i]));
  }
  llvm::BasicBlock* after = b.GetInsertBlock();
  b.CreateBr(done_);
  b.SetInsertPoint(done_);
  for (size_t i = 0; i < values.size(); ++i) {
    llvm::PHINode* merged = b.CreatePHI(usual_[i]->getType(), 2);
    merged->addIncoming(usual_[i], before_);
    merged->addIncoming(values[i], after);
    results[i] = {at_, merged};
  }
}

}  // namespace tilewright::codegen::math
