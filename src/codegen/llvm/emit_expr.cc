// Expressions: constants, variables, operators, casts, vectors.
#include <algorithm>
#include <cmath>

#include "codegen/llvm/emitter.h"
#include "ir/numeric.h"
#include "ir/traverse.h"
#include "support/ranges.h"

namespace tilewright::codegen {

// ---- types -------------------------------------------------------------------------------------------------------

llvm::Type* FunctionEmitter::element_type(DataType type) {
  llvm::LLVMContext& c = state_.context();
  if (type.is_void()) return llvm::Type::getVoidTy(c);
  if (type.is_handle()) return llvm::PointerType::getUnqual(c);
  if (type.is_integral()) return llvm::IntegerType::get(c, type.bits);
  if (is_low_precision_float(type)) return llvm::IntegerType::get(c, type.bits <= 8 ? 8 : 16);
  return type.bits == 64 ? llvm::Type::getDoubleTy(c) : llvm::Type::getFloatTy(c);
}

llvm::Type* FunctionEmitter::storage_type(DataType type) {
  if (type.is_integral() && type.bits < 8) return llvm::IntegerType::get(state_.context(), 8);
  return element_type(type);
}

llvm::Type* FunctionEmitter::type_of(DataType type) {
  llvm::Type* element = element_type(type);
  return type.lanes == 1 ? element : llvm::FixedVectorType::get(element, type.lanes);
}

llvm::Value* FunctionEmitter::unsupported(DataType type, std::string what, std::string hint) {
  state_.fail(script_error("codegen/unsupported", std::move(what), std::move(hint)));
  return type.is_void() ? nullptr : poison(type);
}

// ---- dispatch ----------------------------------------------------------------------------------------------------

llvm::Value* FunctionEmitter::emit(const Expr& e) {
  switch (e.kind()) {
    case Kind::kVar:
      return emit_var(e.borrow<Var>());
    case Kind::kIntImm:
      return llvm::ConstantInt::get(element_type(e.dtype()), static_cast<uint64_t>(e.as<IntImm>()->value));
    case Kind::kFloatImm: {
      const FloatImm& imm = *e.as<FloatImm>();
      if (!is_low_precision_float(imm.dtype)) return llvm::ConstantFP::get(element_type(imm.dtype), imm.value);
      uint64_t bits = 0;
      store_element(imm.dtype, imm.value, 0, &bits);
      return llvm::ConstantInt::get(element_type(imm.dtype), bits);
    }
    case Kind::kStringImm:
      return state_.text(e.as<StringImm>()->value);
    case Kind::kCast:
      return emit_cast(e.as<Cast>()->value, e.dtype());
    case Kind::kAnd:
    case Kind::kOr: {
      bool is_and = e.is<And>();
      const auto [left, right] = binary_operands(e);
      const Expr &a = *left, &b = *right;
      // The right side is evaluated only where the left side does not decide, which matters when it loads.
      if (e.dtype().is_scalar() && !is_cheap(b)) {
        return is_and ? emit_if_then_else(a, b, bool_imm(false)) : emit_if_then_else(a, bool_imm(true), b);
      }
      Value* x = emit(a);
      Value* y = emit(b);
      return is_and ? builder_.CreateAnd(x, y) : builder_.CreateOr(x, y);
    }
    case Kind::kNot:
      return builder_.CreateNot(emit(e.as<Not>()->a));
    case Kind::kSelect: {
      const Select& s = *e.as<Select>();
      return select_lanes(s.condition, s.true_value, s.false_value);
    }
    case Kind::kBufferLoad:
      return emit_load(e.borrow<BufferLoad>());
    case Kind::kRamp:
      return emit_ramp(*e.as<Ramp>(), e.dtype());
    case Kind::kBroadcast:
      return lanes_of(emit(e.as<Broadcast>()->value), e.dtype().lanes);
    case Kind::kLet: {
      const Let& let = *e.as<Let>();
      bind_let(let.var, let.value);
      return emit(let.body);
    }
    case Kind::kCall:
      return emit_call(e.borrow<Call>());
    case Kind::kShuffle:
      return emit_shuffle(*e.as<Shuffle>());
    default:
      break;
  }
  const BinaryOperands operands = binary_operands(e);
  if (!operands) return unsupported(e.dtype(), "no code can be generated for a " + kind_name(e.kind()));
  Value* fused = emit_fused(e);
  return fused ? fused : emit_binary(e.kind(), *operands.a, *operands.b);
}

// ---- variables ---------------------------------------------------------------------------------------------------

void FunctionEmitter::set_variable(const Ref<Var>& v, Value* value) {
  const DataType type = v.dtype();
  llvm::Type* i64 = builder_.getInt64Ty();
  if (is_held_at_64_bits(type) && value->getType() != i64) {
    value = type.is_int() ? builder_.CreateSExt(value, i64) : builder_.CreateZExt(value, i64);
  }
  values_[v] = value;
}

void FunctionEmitter::bind(const Ref<Var>& v, Value* value) {
  index_.define(v);
  set_variable(v, value);
}

void FunctionEmitter::bind(const Ref<Var>& v, Value* value, Interval interval) {
  index_.define(v, interval);
  set_variable(v, value);
}

void FunctionEmitter::bind_pointer(const Ref<Var>& v, Value* value, int64_t alignment, bool unique) {
  index_.define_pointer(v, alignment, unique);
  set_variable(v, value);
}

void FunctionEmitter::bind_let(const Ref<Var>& v, const Expr& value) {
  Value* result = emit(value);
  index_.define(v, value);
  set_variable(v, result);
}

void FunctionEmitter::bind_size(const Ref<Var>& v, Value* value) {
  bind(v, value, {0, v.dtype().bits < 64 ? int_max(v.dtype()) : INT64_MAX});
}

llvm::Value* FunctionEmitter::emit_var(const Ref<Var>& v) {
  auto* found = find_value(values_, v);
  if (!found) {
    state_.fail(internal_error("codegen/unbound-variable", "variable '" + v->name_hint + "' is used but not defined"));
    return poison(v.dtype());
  }
  return is_held_at_64_bits(v.dtype()) ? builder_.CreateTrunc(*found, element_type(v.dtype())) : *found;
}

// ---- operators ---------------------------------------------------------------------------------------------------

llvm::Value* FunctionEmitter::emit_binary(Kind kind, const Expr& a, const Expr& b) {
  DataType type = a.dtype();
  bool division = kind == Kind::kDiv || kind == Kind::kMod || kind == Kind::kFloorDiv || kind == Kind::kFloorMod;
  Value* x = emit(a);
  Value* y = emit(b);
  if (division && type.is_integral()) {
    return emit_division(kind, type, x, y, index_.is_nonnegative(a) && index_.is_nonnegative(b));
  }
  bool compare = kind >= Kind::kEQ && kind <= Kind::kGE;
  if (!is_low_precision_float(type))
    return compare ? emit_compare(kind, type, x, y) : emit_arithmetic(kind, type, x, y);
  DataType wide = DataType::float_(32, type.lanes);
  x = extend_float(x, type);
  y = extend_float(y, type);
  if (compare) return emit_compare(kind, wide, x, y);
  return truncate_float(emit_arithmetic(kind, wide, x, y), type);
}

llvm::Value* FunctionEmitter::emit_arithmetic(Kind kind, DataType type, Value* a, Value* b) {
  bool real = type.is_float();
  switch (kind) {
    case Kind::kAdd:
      return real ? builder_.CreateFAdd(a, b) : builder_.CreateAdd(a, b);
    case Kind::kSub:
      return real ? builder_.CreateFSub(a, b) : builder_.CreateSub(a, b);
    case Kind::kMul:
      return real ? builder_.CreateFMul(a, b) : builder_.CreateMul(a, b);
    case Kind::kDiv:
      return builder_.CreateFDiv(a, b);
    case Kind::kFloorDiv:
      return builder_.CreateUnaryIntrinsic(llvm::Intrinsic::floor, builder_.CreateFDiv(a, b));
    case Kind::kFloorMod: {
      Value* zero = llvm::Constant::getNullValue(a->getType());
      Value* r = emit_libm("fmod", type, {a, b});
      Value* opposite = builder_.CreateXor(builder_.CreateFCmpOLT(r, zero), builder_.CreateFCmpOLT(b, zero));
      Value* moved = builder_.CreateSelect(opposite, builder_.CreateFAdd(r, b), r);
      Value* signed_zero = builder_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, zero, b);
      return builder_.CreateSelect(builder_.CreateFCmpOEQ(r, zero), signed_zero, moved);
    }
    case Kind::kMin:
    case Kind::kMax:
      return real ? emit_float_min_max(kind, type, a, b) : emit_ordered_min_max(kind, type, a, b);
    default:
      TW_CHECK(false, kind_name(kind));
  }
}

llvm::Value* FunctionEmitter::emit_ordered_min_max(Kind kind, DataType type, Value* a, Value* b) {
  return builder_.CreateSelect(emit_compare(kind == Kind::kMin ? Kind::kLT : Kind::kGT, type, a, b), a, b);
}

/// Returns NaN if an operand is NaN.
llvm::Value* FunctionEmitter::emit_float_min_max(Kind kind, DataType type, Value* a, Value* b) {
  auto is_number = [](Value* value) {
    auto* constant = llvm::dyn_cast<llvm::Constant>(value);
    if (constant && constant->getSplatValue()) constant = constant->getSplatValue();
    auto* number = llvm::dyn_cast_or_null<llvm::ConstantFP>(constant);
    return number && !number->isNaN();
  };
  if (is_number(a)) return emit_ordered_min_max(kind, type, a, b);
  if (is_number(b)) return emit_ordered_min_max(kind, type, b, a);
  // Test the second operand: in a reduction it is the new value, so the test does not lengthen the dependence chain.
  // Test whether it is a number: from "is NaN, or greater", LLVM 19 makes one comparison, which is wrong for absolute
  // values and 0, and no maximum instruction.
  return builder_.CreateSelect(builder_.CreateFCmpORD(b, b), emit_ordered_min_max(kind, type, b, a), b);
}

llvm::Value* FunctionEmitter::emit_compare(Kind kind, DataType type, Value* a, Value* b) {
  using P = llvm::CmpInst;
  bool real = type.is_float(), is_signed = type.is_int();
  auto pick = [&](P::Predicate f, P::Predicate s, P::Predicate u) {
    return builder_.CreateCmp(real ? f : is_signed ? s : u, a, b);
  };
  switch (kind) {
    case Kind::kEQ:
      return pick(P::FCMP_OEQ, P::ICMP_EQ, P::ICMP_EQ);
    case Kind::kNE:
      return pick(P::FCMP_UNE, P::ICMP_NE, P::ICMP_NE);
    case Kind::kLT:
      return pick(P::FCMP_OLT, P::ICMP_SLT, P::ICMP_ULT);
    case Kind::kLE:
      return pick(P::FCMP_OLE, P::ICMP_SLE, P::ICMP_ULE);
    case Kind::kGT:
      return pick(P::FCMP_OGT, P::ICMP_SGT, P::ICMP_UGT);
    case Kind::kGE:
      return pick(P::FCMP_OGE, P::ICMP_SGE, P::ICMP_UGE);
    default:
      TW_CHECK(false, kind_name(kind));
  }
}

/// Integer division never traps: dividing by 0 or the smallest number by -1 gives some number, since a candidate of a
/// search, or a lane behind the end of a buffer, must not take the process with it.
llvm::Value* FunctionEmitter::emit_division(Kind kind, DataType type, Value* a, Value* b, bool nonnegative) {
  bool quotient = kind == Kind::kDiv || kind == Kind::kFloorDiv;
  bool floors = kind == Kind::kFloorDiv || kind == Kind::kFloorMod;
  auto* constant = llvm::dyn_cast<llvm::Constant>(b);
  if (constant && constant->getSplatValue()) constant = constant->getSplatValue();
  auto* number = llvm::dyn_cast_or_null<llvm::ConstantInt>(constant);
  llvm::Type* t = a->getType();
  if (number && number->isZero()) return llvm::Constant::getNullValue(t);
  // No select: LLVM 19 (instsimplify) takes a division by `select(mask, <0, 6, 12>, <1, 1, 1>)` for one by 1, since one
  // lane that is 0 makes poison of all lanes for it.
  if (!number) b = builder_.CreateBinaryIntrinsic(llvm::Intrinsic::umax, b, llvm::ConstantInt::get(t, 1));
  if (type.is_uint() || nonnegative) {
    return quotient ? builder_.CreateUDiv(a, b) : builder_.CreateURem(a, b);
  }
  if (floors && number && number->getValue().isPowerOf2() && !number->isNegative()) {
    unsigned shift = number->getValue().logBase2();
    return quotient ? builder_.CreateAShr(a, shift)
                    : builder_.CreateAnd(a, llvm::ConstantInt::get(t, number->getZExtValue() - 1));
  }
  Value* zero = llvm::Constant::getNullValue(t);
  Value* negated = quotient ? builder_.CreateNeg(a) : zero;
  if (number && number->isMinusOne()) return negated;
  Value* is_minus_one = number ? nullptr : builder_.CreateICmpEQ(b, llvm::Constant::getAllOnesValue(t));
  Value* safe = number ? b : builder_.CreateSelect(is_minus_one, llvm::ConstantInt::get(t, 1), b);
  Value* q = builder_.CreateSDiv(a, safe);
  Value* r = builder_.CreateSub(a, builder_.CreateMul(q, safe));
  Value* result = quotient ? q : r;
  if (floors) {
    // The truncated quotient is one too large where the remainder is not 0 and has another sign than the divisor.
    Value* inexact = builder_.CreateICmpNE(r, zero);
    Value* opposite = builder_.CreateICmpSLT(builder_.CreateXor(r, safe), zero);
    Value* fix = builder_.CreateAnd(inexact, opposite);
    result = quotient ? builder_.CreateSub(q, builder_.CreateZExt(fix, t))
                      : builder_.CreateAdd(r, builder_.CreateSelect(fix, safe, zero));
  }
  return number ? result : builder_.CreateSelect(is_minus_one, negated, result);
}

llvm::Value* FunctionEmitter::emit_fused(const Expr& e) {
  DataType type = e.dtype();
  bool subtracts = e.is<Sub>();
  if (!subtracts && !e.is<Add>()) return nullptr;
  if (!state_.has_fma || type.code != TypeCode::kFloat || type.bits < 32) return nullptr;
  const auto [left, right] = binary_operands(e);
  const Expr &a = *left, &b = *right;
  auto fuse = [&](Value* x, Value* y, Value* z) {
    return builder_.CreateIntrinsic(llvm::Intrinsic::fmuladd, {x->getType()}, {x, y, z});
  };
  if (const Mul* product = b.as<Mul>()) {
    Value* c = emit(a);
    Value* x = emit(product->a);
    if (subtracts) x = builder_.CreateFNeg(x);
    return fuse(x, emit(product->b), c);
  }
  if (const Mul* product = a.as<Mul>()) {
    Value* x = emit(product->a);
    Value* y = emit(product->b);
    Value* c = emit(b);
    return fuse(x, y, subtracts ? builder_.CreateFNeg(c) : c);
  }
  return nullptr;
}

// ---- casts -------------------------------------------------------------------------------------------------------

llvm::Value* FunctionEmitter::emit_cast(const Expr& value, DataType to) {
  DataType from = value.dtype();
  if (from == to) return emit(value);
  // Index arithmetic in another integer type is the same arithmetic.
  return convert(emit(value), from, to);
}

llvm::Value* FunctionEmitter::convert(Value* value, DataType from, DataType to) {
  if (from == to) return value;
  llvm::Type* target = type_of(to);
  if (from.is_handle() || to.is_handle()) return builder_.CreateBitOrPointerCast(value, target);
  if (is_low_precision_float(from)) return convert(extend_float(value, from), DataType::float_(32, from.lanes), to);
  if (is_low_precision_float(to)) {
    DataType step = from.is_float() ? from : DataType::float_(32, from.lanes);
    return truncate_float(convert(value, from, step), to);
  }
  if (to.is_bool()) {
    Value* zero = llvm::Constant::getNullValue(value->getType());
    return from.is_float() ? builder_.CreateFCmpUNE(value, zero) : builder_.CreateICmpNE(value, zero);
  }
  if (from.is_integral() && to.is_integral()) {
    return from.is_int() ? builder_.CreateSExtOrTrunc(value, target) : builder_.CreateZExtOrTrunc(value, target);
  }
  if (from.is_integral()) {
    return from.is_int() ? builder_.CreateSIToFP(value, target) : builder_.CreateUIToFP(value, target);
  }
  if (to.is_integral()) {
    if (to.is_vector()) return float_to_int(value, to);
    auto id = to.is_int() ? llvm::Intrinsic::fptosi_sat : llvm::Intrinsic::fptoui_sat;
    return builder_.CreateIntrinsic(id, {target, value->getType()}, {value});
  }
  return builder_.CreateFPCast(value, target);
}

/// Converts to the nearest integer in range, and NaN to 0, like LLVM's saturating conversion, which is scalarized.
llvm::Value* FunctionEmitter::float_to_int(Value* value, DataType to) {
  llvm::Type *real = value->getType(), *target = type_of(to);
  auto least = static_cast<double>(int_min(to.element()));
  double beyond = std::ldexp(1.0, to.is_int() ? to.bits - 1 : to.bits);  // the first number that is too large
  if (llvm::APFloat::semanticsPrecision(real->getScalarType()->getFltSemantics()) > static_cast<unsigned>(to.bits)) {
    // Both ends of the range are such numbers: cut off there before, nothing is out of range.
    value = builder_.CreateSelect(builder_.CreateFCmpORD(value, value), value, llvm::Constant::getNullValue(real));
    Value* most = splat(beyond - 1, real);
    value = builder_.CreateSelect(builder_.CreateFCmpOLT(value, most), value, most);
    value = builder_.CreateSelect(builder_.CreateFCmpOGT(value, splat(least, real)), value, splat(least, real));
    if (to.bits >= 32) return to.is_int() ? builder_.CreateFPToSI(value, target) : builder_.CreateFPToUI(value, target);
    // Processors convert to numbers of 32 bits.
    return builder_.CreateTrunc(builder_.CreateFPToSI(value, type_of(DataType::int_(32, to.lanes))), target);
  }
  Value* large = builder_.CreateFCmpOGE(value, splat(beyond, real));
  Value* small = builder_.CreateFCmpOLT(value, splat(least, real));
  Value* in_range = builder_.CreateAnd(builder_.CreateFCmpOGE(value, splat(least, real)),
                                       builder_.CreateFCmpOLT(value, splat(beyond, real)));
  Value* some = builder_.CreateSelect(in_range, value, llvm::Constant::getNullValue(real));
  Value* whole = to.is_int() ? builder_.CreateFPToSI(some, target) : builder_.CreateFPToUI(some, target);
  auto limit = [&](int64_t number) { return llvm::ConstantInt::get(target, static_cast<uint64_t>(number)); };
  whole = builder_.CreateSelect(large, limit(int_max(to.element())), whole);
  return to.is_int() ? builder_.CreateSelect(small, limit(int_min(to.element())), whole) : whole;
}

// ---- vectors -----------------------------------------------------------------------------------------------------

llvm::Value* FunctionEmitter::emit_ramp(const Ramp& ramp, DataType type) {
  if (type.is_scalar()) return emit(ramp.base);
  std::vector<llvm::Constant*> steps;
  llvm::Type* element = element_type(type);
  for (int lane = 0; lane < type.lanes; ++lane) steps.push_back(llvm::ConstantInt::get(element, lane));
  Value* lanes = llvm::ConstantVector::get(steps);
  Value* stride = lanes_of(emit(ramp.stride), type.lanes);
  Value* base = lanes_of(emit(ramp.base), type.lanes);
  return builder_.CreateAdd(base, builder_.CreateMul(lanes, stride));
}

llvm::Value* FunctionEmitter::emit_shuffle(const Shuffle& shuffle) {
  std::vector<int> picks;
  for (const Expr& index : shuffle.indices) {
    auto lane = const_int(index);
    if (!lane) {
      return unsupported(shuffle.vectors[0].dtype(), "a shuffle whose indices are not constant");
    }
    picks.push_back(static_cast<int>(*lane));
  }
  // Concatenate all sources; LLVM shuffles two vectors at a time.
  Value* all = nullptr;
  int total = 0;
  for (const Expr& source : shuffle.vectors) {
    Value* next = emit(source);
    int lanes = source.dtype().lanes;
    if (lanes == 1)
      next = builder_.CreateInsertElement(llvm::PoisonValue::get(llvm::FixedVectorType::get(next->getType(), 1)), next,
                                          uint64_t{0});
    if (!all) {
      all = next;
      total = lanes;
      continue;
    }
    auto pad = [&](Value* v, int have, int want) {
      std::vector<int> identity;
      for (int i = 0; i < want; ++i) identity.push_back(i < have ? i : -1);
      return have == want ? v : builder_.CreateShuffleVector(v, identity);
    };
    int width = std::max(total, lanes);
    std::vector<int> both;
    for (int i = 0; i < total; ++i) both.push_back(i);
    for (int i = 0; i < lanes; ++i) both.push_back(width + i);
    all = builder_.CreateShuffleVector(pad(all, total, width), pad(next, lanes, width), both);
    total += lanes;
  }
  if (picks.size() == 1) return builder_.CreateExtractElement(all, static_cast<uint64_t>(picks[0]));
  return builder_.CreateShuffleVector(all, picks);
}

// ---- conditional values ------------------------------------------------------------------------------------------

/// Costs less than a branch, has no effect and cannot go wrong.
bool FunctionEmitter::is_cheap(const Expr& e) const {
  int cost = 0;
  visit(
      e, [&](const Ref<BufferLoad>&, Visitor&) { cost += 100; },
      [&](const Ref<Call>& call) { cost += is_call_to(call, Intrinsic::k_likely) ? 0 : 100; },
      [&](const Ref<Div>& d, Visitor& v) { v.descend(d), cost += d->a.dtype().is_float() ? 5 : 20; },
      [&](const Ref<Mod>& d, Visitor& v) { v.descend(d), cost += 20; },
      on<FloorDiv, FloorMod>([&](const auto& d, Visitor& v) { v.descend(d), cost += const_int(d->b) ? 4 : 20; }),
      on<Mul, Add>([&](const auto& m, Visitor& v) { v.descend(m), cost += 1; }));
  return cost <= 8;
}

/// A select after plain loads. LLVM would make one masked load of both, for which processors with AVX-512 do not fetch
/// lines ahead: four times as long on Zen 5, unless the data are in a cache.
llvm::Value* FunctionEmitter::select_lanes(const Expr& condition, const Expr& yes, const Expr& no) {
  Value* test = emit(condition);
  auto loaded = [&](const Expr& e) {
    Value* value = emit(e);
    return condition.dtype().is_vector() && e.is<BufferLoad>() ? builder_.CreateFreeze(value) : value;
  };
  Value* a = loaded(yes);
  return builder_.CreateSelect(test, a, loaded(no));
}

llvm::Value* FunctionEmitter::emit_if_then_else(const Expr& condition, const Expr& yes, const Expr& no) {
  Value* test = emit(condition);
  if (is_cheap(yes) && is_cheap(no)) {
    Value* a = emit(yes);
    return builder_.CreateSelect(test, a, emit(no));
  }
  llvm::BasicBlock* then_block = new_block("then");
  llvm::BasicBlock* else_block = new_block("else");
  llvm::BasicBlock* join = new_block("join");
  builder_.CreateCondBr(test, then_block, else_block);
  builder_.SetInsertPoint(then_block);
  Value* a = emit(yes);
  then_block = builder_.GetInsertBlock();
  builder_.CreateBr(join);
  builder_.SetInsertPoint(else_block);
  Value* b = emit(no);
  else_block = builder_.GetInsertBlock();
  builder_.CreateBr(join);
  builder_.SetInsertPoint(join);
  llvm::PHINode* phi = builder_.CreatePHI(a->getType(), 2);
  phi->addIncoming(a, then_block);
  phi->addIncoming(b, else_block);
  return phi;
}

}  // namespace tilewright::codegen
