// Calls: intrinsics of the table, functions of the module, functions of libm.

#include "codegen/llvm/emitter.h"
#include "codegen/symbols.h"
#include "ir/atomic_operation.h"
#include "support/ranges.h"

namespace tilewright::codegen {
namespace {

/// The expression arguments of a call.
std::vector<Expr> expressions(const Call& call) {
  std::vector<Expr> args;
  for (const NodeRef& arg : call.args) args.emplace_back(arg);
  return args;
}

/// A row of codegen/llvm/intrinsics.def.
struct Spelling {
  enum Kind : uint8_t { kNone, kLlvm, kOperator, kMath, kLibm } kind = kNone;
  llvm::Intrinsic::ID id = llvm::Intrinsic::not_intrinsic;
  llvm::Instruction::BinaryOps op = llvm::Instruction::BinaryOpsEnd;
};
Spelling spelling_of(Intrinsic intrinsic) {
  switch (intrinsic) {
#define LLVM(name, intrinsic_id) \
  case Intrinsic::k_##name:      \
    return {.kind = Spelling::kLlvm, .id = llvm::Intrinsic::intrinsic_id};
#define OPERATOR(name, operation) \
  case Intrinsic::k_##name:       \
    return {.kind = Spelling::kOperator, .op = llvm::Instruction::operation};
#define MATH(name)          \
  case Intrinsic::k_##name: \
    return {.kind = Spelling::kMath};
#define LIBM(name)          \
  case Intrinsic::k_##name: \
    return {.kind = Spelling::kLibm};
#include "codegen/llvm/intrinsics.def"
    default:
      return {};
  }
}

/// Whether the arguments are of the kinds for which emit_intrinsic writes code: a call says its type itself, and LLVM
/// does not forgive wrong ones.
bool arguments_fit(Intrinsic intrinsic, const std::vector<Expr>& args, DataType result) {
  const IntrinsicRow& row = intrinsic_row(intrinsic);
  if (!row.takes(args.size())) return false;
  DataType first = args.empty() ? result : args[0].dtype();
  switch (intrinsic) {
    case Intrinsic::k_if_then_else:
      return first.is_bool() && args[1].dtype() == result && args[2].dtype() == result;
    case Intrinsic::k_assume:
      return first == DataType::bool_();
    case Intrinsic::k_isnullptr:
    case Intrinsic::k_prefetch:
      return first.is_handle() || args[0].is<BufferLoad>();
    case Intrinsic::k_tvm_access_ptr:
      return args[1].dtype().is_handle() && args[2].dtype().is_integral();
    case Intrinsic::k_reinterpret:
      return !first.is_handle() && !result.is_handle() && first.bits * first.lanes == result.bits * result.lanes;
    case Intrinsic::k_large_uint_imm:
      return const_int(args[0]) && const_int(args[1]) && result.is_integral();
    case Intrinsic::k_get_active_lane_mask:
      return first.is_integral() && args[1].dtype() == first && first.is_scalar() && result.is_bool();
    case Intrinsic::k_vectorlow:
    case Intrinsic::k_vectorhigh:
      return first == result.with_lanes(2 * result.lanes);
    case Intrinsic::k_vectorcombine:
      return args[1].dtype() == first && result == first.with_lanes(2 * first.lanes);
    default:
      break;
  }
  if (row.of_floats || row.of_integers) {
    for (const Expr& arg : args) {
      if (arg.dtype() != first && intrinsic != Intrinsic::k_ldexp) return false;
    }
  }
  return true;
}

}  // namespace

llvm::Value* FunctionEmitter::emit_call(const Ref<Call>& call, bool is_value) {
  if (const GlobalVar* callee = call->op.as<GlobalVar>()) return emit_module_call(*call, callee->name_hint);
  Intrinsic intrinsic = intrinsic_of(*call);
  if (intrinsic == Intrinsic::kUnknown) {
    return unsupported(call->dtype, "no code can be generated for " + call->op.as<Op>()->name);
  }
  auto misfit = [&] {
    return unsupported(call->dtype, "T." + std::string(intrinsic_row(intrinsic).name) +
                                        " of these arguments does not give " + call->dtype.str());
  };
  if (!arguments_fit(intrinsic, expressions(*call), call->dtype)) return misfit();
  Value* value = emit_intrinsic(*call, intrinsic);
  if (!value && is_value) {
    return unsupported(call->dtype, "T." + std::string(intrinsic_row(intrinsic).name) + " gives no value",
                       "write it as a statement of its own");
  }
  if (value && !call->dtype.is_void() && !call->dtype.is_handle() && value->getType() != type_of(call->dtype)) {
    return misfit();
  }
  return value;
}

llvm::Value* FunctionEmitter::emit_intrinsic(const Call& call, Intrinsic intrinsic) {
  std::vector<Expr> args = expressions(call);
  switch (intrinsic) {
    case Intrinsic::k_if_then_else:
      if (args[0].dtype().is_vector()) return select_lanes(args[0], args[1], args[2]);
      return emit_if_then_else(args[0], args[1], args[2]);
    case Intrinsic::k_likely:
      return emit(args[0]);
    case Intrinsic::k_assume:
      builder_.CreateAssumption(emit(args[0]));
      return nullptr;
    case Intrinsic::k_undef:
      return llvm::UndefValue::get(type_of(call.dtype));
    case Intrinsic::k_reinterpret:
      return builder_.CreateBitCast(emit(args[0]), type_of(call.dtype));
    case Intrinsic::k_large_uint_imm: {
      uint64_t value = static_cast<uint64_t>(*const_int(args[1])) << 32 | static_cast<uint64_t>(*const_int(args[0]));
      return llvm::ConstantInt::get(type_of(call.dtype), value);
    }
    case Intrinsic::k_get_active_lane_mask:
      return emit_lane_mask(args[0], args[1], call.dtype.lanes);
    case Intrinsic::k_ret:
      if (!args.empty() && result_) builder_.CreateStore(emit(args[0]), result_);
      return_code(builder_.getInt32(TW_OK));
      builder_.SetInsertPoint(new_block("unreachable"));
      return nullptr;
    case Intrinsic::k_isnullptr:
      return builder_.CreateIsNull(emit(args[0]));
    case Intrinsic::k_call_extern:
    case Intrinsic::k_call_pure_extern:
      return emit_extern(call);
    case Intrinsic::k_call_llvm_intrin:
    case Intrinsic::k_call_llvm_pure_intrin:
      return emit_instruction(call);
    case Intrinsic::k_address_of:
    case Intrinsic::k_tvm_access_ptr:
      return emit_address(call);
    case Intrinsic::k_atomic_add:
    case Intrinsic::k_atomic_min:
    case Intrinsic::k_atomic_max:
    case Intrinsic::k_atomic_and:
    case Intrinsic::k_atomic_or:
    case Intrinsic::k_atomic_xor:
    case Intrinsic::k_atomic_exchange:
      return emit_atomic(call);
    case Intrinsic::k_prefetch:
      emit_prefetch(call);
      return nullptr;
    case Intrinsic::k_tvm_storage_sync:
      return nullptr;  // one thread executes a kernel's serial code
    case Intrinsic::k_print:
      emit_print(call);
      return nullptr;
    case Intrinsic::k_vectorlow:
    case Intrinsic::k_vectorhigh: {
      std::vector<int> picks(call.dtype.lanes);
      int first = intrinsic == Intrinsic::k_vectorhigh ? call.dtype.lanes : 0;
      for (int i = 0; i < call.dtype.lanes; ++i) picks[i] = first + i;
      return builder_.CreateShuffleVector(emit(args[0]), picks);
    }
    case Intrinsic::k_vectorcombine: {
      std::vector<int> picks(call.dtype.lanes);
      for (int i = 0; i < call.dtype.lanes; ++i) picks[i] = i;
      Value* low = emit(args[0]);
      return builder_.CreateShuffleVector(low, emit(args[1]), picks);
    }
    default:
      break;
  }
  if (!args.empty() && args[0].dtype().is_float()) return emit_float_intrinsic(call, intrinsic);
  return emit_integer_intrinsic(call, intrinsic);
}

/// Lanes i with base + i < limit. The sum may leave the type, the distance to the limit does not.
llvm::Value* FunctionEmitter::emit_lane_mask(const Expr& base, const Expr& limit, int lanes) {
  const DataType type = base.dtype(), distances = DataType::uint(std::max<int>(type.bits, 16));  // holds any lane
  Value *first = emit(base), *end = emit(limit);
  Value* distance = builder_.CreateZExt(builder_.CreateSub(end, first), type_of(distances));
  Value* begins = lanes_of(emit_compare(Kind::kLT, type, first, end), lanes);
  Value* steps = emit_ramp({zero(distances), one(distances), i32(lanes)}, distances.with_lanes(lanes));
  return builder_.CreateAnd(begins, builder_.CreateICmpULT(steps, lanes_of(distance, lanes)));
}

llvm::Value* FunctionEmitter::emit_float_intrinsic(const Call& call, Intrinsic intrinsic) {
  std::vector<Expr> args = expressions(call);
  DataType type = args[0].dtype();
  DataType wide = is_low_precision_float(type) ? DataType::float_(32, type.lanes) : type;
  std::vector<Value*> values;
  for (const Expr& arg : args) {
    Value* value = emit(arg);
    values.push_back(is_low_precision_float(arg.dtype()) ? extend_float(value, arg.dtype()) : value);
  }
  llvm::Type* real = type_of(wide);
  auto finish = [&](Value* value) { return is_low_precision_float(type) ? truncate_float(value, type) : value; };
  auto magnitude = [&] { return builder_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, values[0]); };
  switch (intrinsic) {
    case Intrinsic::k_isnan:
      return builder_.CreateFCmpUNO(values[0], values[0]);
    case Intrinsic::k_isinf:
      return builder_.CreateFCmpOEQ(magnitude(), llvm::ConstantFP::getInfinity(real));
    case Intrinsic::k_isfinite:
      return builder_.CreateFCmpOLT(magnitude(), llvm::ConstantFP::getInfinity(real));
    case Intrinsic::k_fabs:
      return finish(magnitude());
    case Intrinsic::k_ldexp: {
      const DataType integer = DataType::int_(32, type.lanes), given = args[1].dtype();
      if (given.is_float()) {
        values[1] = convert(values[1], given.bits < 32 ? wide : given, integer);
      } else if (given.bits > 32 || (given.is_uint() && given.bits == 32)) {  // saturates
        const DataType real_number = DataType::float_(64, type.lanes);
        values[1] = convert(convert(values[1], given, real_number), real_number, integer);
      } else {
        values[1] = convert(values[1], given, integer);
      }
      return finish(emit_libm("ldexp", wide, values));
    }
    default:
      break;
  }
  const IntrinsicRow& row = intrinsic_row(intrinsic);
  const Spelling spelling = spelling_of(intrinsic);
  if (spelling.kind == Spelling::kLlvm && row.of_floats) {
    return finish(builder_.CreateIntrinsic(spelling.id, {real}, values));
  }
  if (spelling.kind == Spelling::kMath) return finish(emit_math(intrinsic, args, values));
  std::string name(row.name);
  if (spelling.kind != Spelling::kLibm) {
    return unsupported(call.dtype, "T." + name + " of " + type.str() + " is not there on a CPU");
  }
  return finish(emit_libm(name, wide, values));
}

/// A function of libm, lane by lane for vectors.
llvm::Value* FunctionEmitter::emit_libm(const std::string& name, DataType type, const std::vector<Value*>& args) {
  llvm::Type* real = element_type(type);
  ++state_.library_calls[{state_.compiled, name}];
  std::vector<llvm::Type*> types;
  for (Value* arg : args) types.push_back(arg->getType()->getScalarType());
  llvm::FunctionCallee callee =
      state_.external(type.bits == 32 ? name + "f" : name, llvm::FunctionType::get(real, types, false));
  if (auto* function = llvm::dyn_cast<llvm::Function>(callee.getCallee())) {
    function->setDoesNotThrow();
    function->setWillReturn();
    function->setDoesNotAccessMemory();
  }
  if (type.lanes == 1) return builder_.CreateCall(callee, args);
  Value* result = llvm::PoisonValue::get(type_of(type));
  for (uint64_t lane = 0; lane < type.lanes; ++lane) {
    std::vector<Value*> scalars;
    for (Value* arg : args) scalars.push_back(builder_.CreateExtractElement(arg, lane));
    result = builder_.CreateInsertElement(result, builder_.CreateCall(callee, scalars), lane);
  }
  return result;
}

llvm::Value* FunctionEmitter::emit_integer_intrinsic(const Call& call, Intrinsic intrinsic) {
  std::vector<Expr> args = expressions(call);
  std::vector<Value*> values;
  for (const Expr& arg : args) values.push_back(emit(arg));
  DataType type = args.empty() ? call.dtype : args[0].dtype();
  switch (intrinsic) {
    case Intrinsic::k_fabs:
      if (type.is_uint()) return values[0];
      return builder_.CreateBinaryIntrinsic(llvm::Intrinsic::abs, values[0], builder_.getFalse());
    case Intrinsic::k_isnan:
    case Intrinsic::k_isinf:
    case Intrinsic::k_isfinite:  // integers are finite
      return llvm::ConstantInt::get(type_of(call.dtype), intrinsic == Intrinsic::k_isfinite);
    case Intrinsic::k_clz: {
      Value* count = builder_.CreateBinaryIntrinsic(llvm::Intrinsic::ctlz, values[0], builder_.getFalse());
      return builder_.CreateZExtOrTrunc(count, type_of(call.dtype));
    }
    case Intrinsic::k_shift_left:
    case Intrinsic::k_shift_right: {
      llvm::Type* t = values[0]->getType();
      if (intrinsic == Intrinsic::k_shift_right && type.is_int()) {  // all signs from the last bit on
        Value* last = llvm::ConstantInt::get(t, type.bits - 1u);
        return builder_.CreateAShr(values[0], builder_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, values[1], last));
      }
      Value* fits = builder_.CreateICmpULT(values[1], llvm::ConstantInt::get(t, type.bits));
      Value* shifted = intrinsic == Intrinsic::k_shift_left ? builder_.CreateShl(values[0], values[1])
                                                            : builder_.CreateLShr(values[0], values[1]);
      return builder_.CreateSelect(fits, shifted, llvm::Constant::getNullValue(t));
    }
    case Intrinsic::k_bitwise_not:
      return builder_.CreateNot(values[0]);
    case Intrinsic::k_vscale:
      return unsupported(call.dtype, "T.vscale() needs scalable vectors, which the target does not have",
                         "write a number of lanes; ir.interpret takes the program, with vscale=...");
    default:
      break;
  }
  const IntrinsicRow& row = intrinsic_row(intrinsic);
  const Spelling spelling = spelling_of(intrinsic);
  if (row.of_integers && spelling.kind == Spelling::kOperator) {
    return builder_.CreateBinOp(spelling.op, values[0], values[1]);
  }
  if (row.of_integers && spelling.kind == Spelling::kLlvm) {
    return builder_.CreateIntrinsic(spelling.id, {values[0]->getType()}, values);
  }
  return unsupported(call.dtype, "T." + std::string(row.name) + " is not there on a CPU");
}

// ---- calls of functions ------------------------------------------------------------------------------------------

namespace {

/// Whether a value of this type is passed where C passes the type of that letter.
bool passes_as(char letter, DataType type) {
  if (!type.is_scalar()) return false;
  switch (letter) {
    case 'f':
      return type.is_float() && type.bits == 32;
    case 'd':
      return type.is_float() && type.bits == 64;
    case 'i':
      return (type.is_int() || type.is_uint()) && type.bits == 32;
    case 'z':
      return (type.is_int() || type.is_uint()) && type.bits == 64;
    default:
      return type.is_handle();
  }
}

/// Arguments of a variadic function whose types C does not promote there.
bool passes_open(DataType type) {
  return passes_as('d', type) || passes_as('i', type) || passes_as('z', type) || passes_as('p', type);
}

bool matches(std::string_view prototype, const Call& call) {
  const bool open = prototype.back() == '.';
  const size_t count = prototype.size() - (open ? 2 : 1);
  if (call.args.size() - 1 < count || (!open && call.args.size() - 1 > count)) return false;
  for (size_t i = 1; i < call.args.size(); ++i) {
    const NodeRef& arg = call.args[i];
    const DataType type = arg.as<StringImm>() ? DataType::handle() : Expr(arg).dtype();
    if (i <= count ? !passes_as(prototype[i], type) : !passes_open(type)) return false;
  }
  // A result in the same register as an integer may be read as one, or ignored.
  const bool is_float = prototype[0] == 'f' || prototype[0] == 'd';
  if (prototype[0] == 'v') return call.dtype.is_void();
  return call.dtype.is_void() || (is_float ? passes_as(prototype[0], call.dtype) : !call.dtype.is_float());
}

std::string declaration(const Symbol& symbol) {
  auto spell = [](char letter) -> std::string {
    switch (letter) {
      case 'v':
        return "void";
      case 'f':
        return "float";
      case 'd':
        return "double";
      case 'i':
        return "int";
      case 'z':
        return "size_t";
      case 'p':
        return "void*";
      default:
        return "...";
    }
  };
  std::string args;
  for (char letter : symbol.prototype.substr(1)) args += (args.empty() ? "" : ", ") + spell(letter);
  return spell(symbol.prototype[0]) + " " + std::string(symbol.name) + "(" + args + ")";
}

}  // namespace

llvm::Value* FunctionEmitter::emit_extern(const Call& call) {
  const StringImm* name = call.args.empty() ? nullptr : call.args[0].as<StringImm>();
  if (!name) return unsupported(call.dtype, "T.call_extern needs the name of a function");
  const Symbol* symbol = library_symbol(name->value);
  if (!symbol) {
    return unsupported(call.dtype, "T.call_extern of '" + name->value + "', which kernels may not call",
                       "kernels may call most functions of libm, memcpy, memmove, memset and printf");
  }
  if (!matches(symbol->prototype, call)) {
    return unsupported(call.dtype, "T.call_extern of '" + name->value + "' with other types than those of C",
                       "it is declared as " + declaration(*symbol));
  }
  std::vector<Value*> values;
  std::vector<llvm::Type*> types;
  for (size_t i = 1; i < call.args.size(); ++i) {
    values.push_back(emit(call.arg(i)));
    types.push_back(values.back()->getType());
  }
  auto* type = llvm::FunctionType::get(type_of(call.dtype), types, false);
  return builder_.CreateCall(type, state_.external(name->value, type).getCallee(), values);
}

llvm::Value* FunctionEmitter::emit_module_call(const Call& call, const std::string& name) {
  if (auto* kernel = find_value(state_.kernels, name)) {
    emit_launch(call, name, **kernel);
    return nullptr;
  }
  auto* found = find_value(state_.bodies, name);
  if (!found) {
    return unsupported(call.dtype, "the module has no function '" + name + "' to call");
  }
  llvm::Function* callee = *found;
  std::vector<Value*> values{ctx_};
  for (const NodeRef& arg : call.args) values.push_back(emit(Expr(arg)));
  Value* result = nullptr;
  if (!call.dtype.is_void()) {
    llvm::IRBuilder<> at_entry(entry_, entry_->begin());
    result = at_entry.CreateAlloca(type_of(call.dtype));
    values.push_back(result);
  }
  bool fits = values.size() == callee->arg_size();
  for (size_t i = 0; fits && i < values.size(); ++i) {
    fits = values[i]->getType() == callee->getArg(static_cast<unsigned>(i))->getType();
  }
  if (!fits) {
    return unsupported(call.dtype, "a call of '" + name + "' whose arguments do not match its parameters",
                       "pass the .data of a buffer for each buffer parameter; sizes that '" + name +
                           "' takes from the shapes of its arguments have to be scalar parameters");
  }
  return_if_failed(builder_.CreateCall(callee, values));
  return result ? builder_.CreateLoad(type_of(call.dtype), result) : nullptr;
}

llvm::Value* FunctionEmitter::emit_address(const Call& call) {
  if (const BufferLoad* load = call.args[0].as<BufferLoad>()) {
    Expr index = load->indices[0];
    if (const Ramp* ramp = index.as<Ramp>()) index = ramp->base;
    return address(load->buffer, index);
  }
  // tvm_access_ptr(type, data, offset, extent, mode)
  if (call.args.size() < 3) return unsupported(call.dtype, "an address of something that is not in memory");
  DataType element = call.arg(0).dtype();
  Value* offset = emit_index(call.arg(2));
  return builder_.CreateGEP(storage_type(element), emit(call.arg(1)), offset);
}

llvm::Value* FunctionEmitter::emit_atomic(const Call& call) {
  auto step = AtomicOperation::of(make<Call>(Call(call)));
  if (!step) return unsupported(call.dtype, "an atomic operation of what is not an element");
  using Op = llvm::AtomicRMWInst;
  const DataType type = call.dtype;
  auto operation = [&]() -> Op::BinOp {
    switch (step->intrinsic) {
      case Intrinsic::k_atomic_add:
        return type.is_float() ? Op::FAdd : Op::Add;
      case Intrinsic::k_atomic_min:
        return type.is_uint() ? Op::UMin : Op::Min;
      case Intrinsic::k_atomic_max:
        return type.is_uint() ? Op::UMax : Op::Max;
      case Intrinsic::k_atomic_and:
        return Op::And;
      case Intrinsic::k_atomic_or:
        return Op::Or;
      case Intrinsic::k_atomic_xor:
        return Op::Xor;
      default:
        return Op::Xchg;
    }
  };
  Value* value = emit(step->value);
  // Steps order nothing else: those who wait for a parallel loop see what is behind it.
  return builder_.CreateAtomicRMW(operation(), address(step->buffer, step->indices[0]), value,
                                  llvm::MaybeAlign(static_cast<uint64_t>(type.bytes())),
                                  llvm::AtomicOrdering::Monotonic);
}

void FunctionEmitter::emit_prefetch(const Call& call) {
  std::vector<Expr> args = expressions(call);
  // Reads or writes (0, 1), how long the data stay in caches (0 to 3), and which cache: 1, that of data.
  int64_t options[] = {0, 3, 1};
  for (size_t i = 1; i < args.size() && i <= std::size(options); ++i) {
    if (auto value = const_int(args[i])) options[i - 1] = *value;
  }
  const auto [is_write, locality, cache] = options;
  if (is_write < 0 || is_write > 1 || locality < 0 || locality > 3 || cache != 1) {
    unsupported(call.dtype, "T.prefetch with options that a CPU does not have",
                "they are 0 or 1 (a write), 0 to 3 (the locality), and 1 (the cache of data)");
    return;
  }
  auto constant = [&](int64_t value) { return builder_.getInt32(static_cast<uint32_t>(value)); };
  Value* pointer = args[0].is<BufferLoad>()
                       ? address(args[0].as<BufferLoad>()->buffer, args[0].as<BufferLoad>()->indices[0])
                       : emit(args[0]);
  builder_.CreateIntrinsic(llvm::Intrinsic::prefetch, {pointer->getType()},
                           {pointer, constant(is_write), constant(locality), constant(cache)});
}

/// T.print(...): the values on one line of standard output, in the interpreter's format.
void FunctionEmitter::emit_print(const Call& call) {
  std::string format;
  std::vector<Value*> values{nullptr};
  auto scalar = [&](Value* value, DataType type) {
    if (type.is_float()) {
      values.push_back(convert(value, type, DataType::float_(64)));
      format += type.bits == 64 ? "%.17g" : "%.9g";
    } else if (type.is_integral()) {
      values.push_back(convert(value, type, type.is_int() ? DataType::int_(64) : DataType::uint(64)));
      format += type.is_int() ? "%lld" : "%llu";
    } else {
      values.push_back(value);
      format += "%p";
    }
  };
  for (const NodeRef& arg : call.args) {
    if (!format.empty()) format += " ";
    Expr e(arg);
    DataType type = e.dtype();
    Value* value = emit(e);
    if (e.is<StringImm>()) {
      values.push_back(value);
      format += "%s";
    } else if (type.is_scalar()) {
      scalar(value, type);
    } else {
      for (int lane = 0; lane < type.lanes; ++lane) {
        format += lane == 0 ? "[" : ", ";
        scalar(builder_.CreateExtractElement(value, builder_.getInt32(lane)), type.element());
      }
      format += "]";
    }
  }
  values[0] = state_.text(format + "\n");
  auto* type = llvm::FunctionType::get(builder_.getInt32Ty(), {builder_.getPtrTy()}, true);
  builder_.CreateCall(state_.external("printf", type), values);
  // Python has a buffer of its own for standard output: without this, lines of both would come in any order.
  auto* flush = llvm::FunctionType::get(builder_.getInt32Ty(), {builder_.getPtrTy()}, false);
  builder_.CreateCall(state_.external("fflush", flush), {llvm::ConstantPointerNull::get(builder_.getPtrTy())});
}

}  // namespace tilewright::codegen
