// Memory: addresses, loads and stores.
#include <bit>
#include <numeric>

#include "arith/fingerprint.h"
#include "codegen/llvm/emitter.h"
#include "ir/traverse.h"
#include "support/ranges.h"

namespace tilewright::codegen {
namespace {

/// Whether a lane of a mask is false whatever runs.
bool is_never(llvm::Value* mask, unsigned lane) {
  if (auto* known = llvm::dyn_cast<llvm::Constant>(mask)) {
    llvm::Constant* element = known->getAggregateElement(lane);
    return element && element->isNullValue();
  }
  auto* both = llvm::dyn_cast<llvm::BinaryOperator>(mask);
  return both && both->getOpcode() == llvm::Instruction::And &&
         (is_never(both->getOperand(0), lane) || is_never(both->getOperand(1), lane));
}

/// Whether LLVM expands a masked gather or scatter into one branch per lane: processors have none for lanes below 32
/// bits. Code with hundreds of such branches takes minutes to compile.
bool has_branches(const Buffer& buffer) { return buffer.dtype.bits < 32; }

}  // namespace

// ---- indices -----------------------------------------------------------------------------------------------------

/// The value of a scalar integer expression at 64 bits. Arithmetic of int32 and int64 is done there, since it does not
/// overflow; that of unsigned and of small integers wraps in its type.
llvm::Value* FunctionEmitter::emit_index(const Expr& e) {
  llvm::Type* i64 = builder_.getInt64Ty();
  DataType type = e.dtype();
  auto binary = [&](BinaryOperands operand) {
    Value* a = emit_index(*operand.a);
    Value* b = emit_index(*operand.b);
    constexpr DataType wide = DataType::int_(64);
    switch (e.kind()) {
      case Kind::kAdd:
        return builder_.CreateNSWAdd(a, b);
      case Kind::kSub:
        return builder_.CreateNSWSub(a, b);
      case Kind::kMul:
        return builder_.CreateNSWMul(a, b);
      case Kind::kMin:
      case Kind::kMax:
        return builder_.CreateSelect(emit_compare(e.is<Min>() ? Kind::kLT : Kind::kGT, wide, a, b), a, b);
      default:
        return emit_division(e.kind(), wide, a, b,
                             index_.is_nonnegative(*operand.a) && index_.is_nonnegative(*operand.b));
    }
  };
  switch (has_no_overflow(e) ? e.kind() : Kind::kCall) {
    case Kind::kIntImm:
      return llvm::ConstantInt::get(i64, static_cast<uint64_t>(e.as<IntImm>()->value));
    case Kind::kVar: {
      auto* found = find_value(values_, e);
      if (found && is_held_at_64_bits(type)) return *found;
      break;
    }
    case Kind::kCast:
      if (arith::is_widening_index_cast(*e.as<Cast>())) return emit_index(e.as<Cast>()->value);
      break;
    case Kind::kSelect: {
      const Select& s = *e.as<Select>();
      Value* test = emit(s.condition);
      Value* yes = emit_index(s.true_value);
      return builder_.CreateSelect(test, yes, emit_index(s.false_value));
    }
    default:
      break;
  }
  if (BinaryOperands operands = binary_operands(e); operands && has_no_overflow(e)) return binary(operands);
  Value* value = emit(e);
  return type.is_int() ? builder_.CreateSExt(value, i64) : builder_.CreateZExt(value, i64);
}

llvm::Value* FunctionEmitter::address(const Ref<Buffer>& buffer, const Expr& index) {
  Value* pointer = emit_var(buffer->data);
  const IndexAnalysis::Linear linear = index_.linear(*buffer, index);
  llvm::Type* element = storage_type(buffer->dtype.element());
  for (size_t i = 0; i < linear.terms.size();) {
    Value* sum = nullptr;
    int depth = linear.terms[i].depth;
    for (; i < linear.terms.size() && linear.terms[i].depth == depth; ++i) {
      const IndexAnalysis::Term& term = linear.terms[i];
      Value* value = emit_index(term.value);
      llvm::Constant* factor = builder_.getInt64(static_cast<uint64_t>(term.factor));
      if (term.factor != 1) value = builder_.CreateMul(value, factor, "", false, !linear.may_wrap);
      sum = sum ? builder_.CreateAdd(sum, value, "", false, !linear.may_wrap) : value;
    }
    pointer = builder_.CreateGEP(element, pointer, sum);
  }
  if (linear.constant) pointer = builder_.CreateConstGEP1_64(element, pointer, static_cast<uint64_t>(linear.constant));
  return pointer;
}

// ---- values in memory --------------------------------------------------------------------------------------------

llvm::Value* FunctionEmitter::from_storage(Value* value, DataType type) {
  if (type.is_bool()) return builder_.CreateICmpNE(value, llvm::Constant::getNullValue(value->getType()));
  if (type.is_integral() && type.bits < 8) return builder_.CreateTrunc(value, type_of(type));
  return value;
}

llvm::Value* FunctionEmitter::to_storage(Value* value, DataType type) {
  if (!type.is_integral() || type.bits >= 8) return value;
  llvm::Type* byte = llvm::IntegerType::get(state_.context(), 8);
  llvm::Type* target = type.lanes == 1 ? byte : llvm::FixedVectorType::get(byte, type.lanes);
  return type.is_int() ? builder_.CreateSExt(value, target) : builder_.CreateZExt(value, target);
}

/// Loads a masked vector register by register if no lane of some register is ever loaded: when LLVM 19 splits the
/// vector itself, it loads such a register without its mask. Returns null if there is no such register.
llvm::Value* FunctionEmitter::load_masked_by_register(const Ref<Buffer>& buffer, const Expr& base, int lanes,
                                                      Value* mask) {
  const int part = static_cast<int>(vector_lanes(state_.target, 8 * buffer->dtype.bytes()));
  if (lanes <= part || lanes % part != 0 || !std::has_single_bit(static_cast<unsigned>(lanes / part))) {
    return nullptr;
  }
  auto is_empty = [&](int first) {
    for (int lane = first; lane < first + part; ++lane) {
      if (!is_never(mask, static_cast<unsigned>(lane))) return false;
    }
    return true;
  };
  bool any = false;
  for (int first = 0; first < lanes; first += part) any |= is_empty(first);
  if (!any) return nullptr;
  const DataType type = buffer->dtype.with_lanes(part);
  std::vector<Value*> parts;
  for (int first = 0; first < lanes; first += part) {
    std::vector<int> own(static_cast<size_t>(part));
    std::iota(own.begin(), own.end(), first);
    parts.push_back(is_empty(first) ? llvm::Constant::getNullValue(type_of(type))
                                    : load_contiguous(buffer, base + constant(base.dtype(), int64_t{first}), part,
                                                      builder_.CreateShuffleVector(mask, own)));
  }
  return concatenate(std::move(parts));
}

llvm::Value* FunctionEmitter::load_contiguous(const Ref<Buffer>& buffer, const Expr& base, int lanes, Value* mask) {
  if (Value* parts = mask && lanes > 1 ? load_masked_by_register(buffer, base, lanes, mask) : nullptr) return parts;
  llvm::Type* element = storage_type(buffer->dtype.element());
  llvm::Type* type = element;
  if (lanes > 1 || mask) type = llvm::FixedVectorType::get(element, static_cast<unsigned>(lanes));
  llvm::Align align(static_cast<uint64_t>(index_.alignment_of(*buffer, base)));
  Value* pointer = address(buffer, base);
  Value* value;
  if (mask) {
    Value* wide_mask = lanes == 1 ? builder_.CreateVectorSplat(1, mask) : mask;
    value = builder_.CreateMaskedLoad(type, pointer, align, wide_mask, llvm::Constant::getNullValue(type));
    if (lanes == 1) value = builder_.CreateExtractElement(value, uint64_t{0});
  } else {
    value = builder_.CreateAlignedLoad(type, pointer, align);
  }
  return from_storage(value, buffer->dtype.with_lanes(lanes));
}

void FunctionEmitter::store_contiguous(const Ref<Buffer>& buffer, const Expr& base, Value* value, Value* mask) {
  llvm::Align align(static_cast<uint64_t>(index_.alignment_of(*buffer, base)));
  Value* pointer = address(buffer, base);
  if (!mask) {
    builder_.CreateAlignedStore(value, pointer, align);
    return;
  }
  if (!mask->getType()->isVectorTy()) {
    mask = builder_.CreateVectorSplat(1, mask);
    value = builder_.CreateVectorSplat(1, value);
  }
  builder_.CreateMaskedStore(value, pointer, align, mask);
}

/// Pointers of all lanes of a vector index.
llvm::Value* FunctionEmitter::lane_addresses(const Ref<Buffer>& buffer, const Expr& index) {
  llvm::Type* element = storage_type(buffer->dtype);
  int lanes = index.dtype().lanes;
  if (const Ramp* ramp = index.as<Ramp>()) {
    Value* base = address(buffer, ramp->base);
    std::vector<llvm::Constant*> steps;
    for (int lane = 0; lane < lanes; ++lane) steps.push_back(builder_.getInt64(static_cast<uint64_t>(lane)));
    Value* offsets = builder_.CreateMul(llvm::ConstantVector::get(steps), lanes_of(emit_index(ramp->stride), lanes));
    return builder_.CreateGEP(element, base, offsets);
  }
  Value* offsets = emit(index);
  llvm::Type* wide = llvm::FixedVectorType::get(builder_.getInt64Ty(), lanes);
  offsets = index.dtype().is_int() ? builder_.CreateSExt(offsets, wide) : builder_.CreateZExt(offsets, wide);
  return builder_.CreateGEP(element, emit_var(buffer->data), offsets);
}

/// Pointers of the lanes that a mask selects. Others access a cell on the stack that holds zero.
llvm::Value* FunctionEmitter::selected_addresses(const Ref<Buffer>& buffer, const Expr& index, Value* mask) {
  llvm::Type* element = storage_type(buffer->dtype);
  llvm::IRBuilder<> at_entry(entry_, entry_->begin());
  Value* cell = at_entry.CreateAlloca(element);
  at_entry.CreateStore(llvm::Constant::getNullValue(element), cell);
  return builder_.CreateSelect(mask, lane_addresses(buffer, index), lanes_of(cell, index.dtype().lanes));
}

/// The address of one lane. Lanes a constant number of elements apart share a pointer.
llvm::Value* FunctionEmitter::lane_address(const Ref<Buffer>& buffer, const LaneLayout& layout, Value* pointers,
                                           int lane) {
  if (layout.form == LaneLayout::kStrided) return address(buffer, layout.first + layout.stride * lane);
  return builder_.CreateExtractElement(pointers, static_cast<uint64_t>(lane));
}

/// Elements a few places apart: whole vectors are loaded, none of them beyond the first and the last element, and what
/// is between is dropped.
llvm::Value* FunctionEmitter::load_strided(const Ref<Buffer>& buffer, const Expr& base, int64_t stride, int lanes) {
  int step = static_cast<int>(stride);
  llvm::Type* element = storage_type(buffer->dtype);
  llvm::Type* vector = llvm::FixedVectorType::get(element, static_cast<unsigned>(lanes));
  llvm::Align align(buffer->dtype.bytes());
  Value* result = nullptr;
  for (int part = 0; part < step; ++part) {
    // The last vector ends with the last element; lanes of it that came before are not picked.
    int start = part * lanes - (part == step - 1 ? step - 1 : 0);
    Value* loaded = builder_.CreateAlignedLoad(vector, address(buffer, base + start), align);
    std::vector<int> picks;
    for (int lane = 0; lane < lanes; ++lane) {
      int place = lane * step;
      bool here = place / lanes == part;
      picks.push_back(here ? lanes + place - start : result ? lane : -1);
    }
    result = builder_.CreateShuffleVector(result ? result : llvm::PoisonValue::get(vector), loaded, picks);
  }
  return result;
}

/// Concatenates vectors of equal lanes; their number is a power of two.
llvm::Value* FunctionEmitter::concatenate(std::vector<Value*> parts) {
  while (parts.size() > 1) {
    std::vector<Value*> pairs;
    for (size_t i = 0; i < parts.size(); i += 2) {
      unsigned lanes = llvm::cast<llvm::FixedVectorType>(parts[i]->getType())->getNumElements();
      std::vector<int> all(2 * lanes);
      std::iota(all.begin(), all.end(), 0);
      pairs.push_back(builder_.CreateShuffleVector(parts[i], parts[i + 1], all));
    }
    parts = std::move(pairs);
  }
  return parts[0];
}

/// Offsets of all lanes, each a value of its own, where contiguous loads say which elements are meant; empty elsewhere.
/// Two indices of 32 bits are one load: the more elements can be on their way, the fewer entries of the queue of loads
/// the indices take.
std::vector<llvm::Value*> FunctionEmitter::loaded_offsets(const Expr& index) {
  std::vector<Value*> offsets;
  const std::vector<Expr> indices = loaded_indices(index);
  const BufferLoad* load = index.as<BufferLoad>();
  const bool in_pairs = load && index.dtype().is_int() && index.dtype().bits == 32 && index.dtype().lanes % 2 == 0;
  for (size_t lane = 0; lane < indices.size(); ++lane) {
    if (!in_pairs) {
      offsets.push_back(emit_index(indices[lane]));
    } else if (lane % 2 == 0) {
      Value* pointer = address(load->buffer, indices[lane].as<BufferLoad>()->indices[0]);
      Value* pair = builder_.CreateAlignedLoad(builder_.getInt64Ty(), pointer, llvm::Align(4));
      offsets.push_back(builder_.CreateSExt(builder_.CreateTrunc(pair, builder_.getInt32Ty()), builder_.getInt64Ty()));
      offsets.push_back(builder_.CreateAShr(pair, 32));
    }
  }
  return offsets;
}

llvm::Value* FunctionEmitter::load_scattered(const Ref<Buffer>& buffer, const Expr& index, Value* mask) {
  DataType type = buffer->dtype.with_lanes(index.dtype().lanes);
  llvm::Type* element = storage_type(buffer->dtype);
  llvm::Type* vector = llvm::FixedVectorType::get(element, type.lanes);
  llvm::Align align(buffer->dtype.bytes());
  const LaneLayout layout = lane_layout(*buffer, index);
  const std::vector<Value*> offsets = mask ? std::vector<Value*>() : loaded_offsets(index);
  if (mask && !has_branches(*buffer)) {
    Value* zeros = llvm::Constant::getNullValue(vector);
    return from_storage(builder_.CreateMaskedGather(vector, lane_addresses(buffer, index), align, mask, zeros), type);
  }
  const bool are_computed = layout.form != LaneLayout::kStrided && offsets.empty();
  Value* pointers = mask           ? selected_addresses(buffer, index, mask)
                    : are_computed ? lane_addresses(buffer, index)
                                   : nullptr;
  if (!mask && layout.form == LaneLayout::kStrided &&
      loads_with_gaps_pay(state_.target, buffer->dtype, type.lanes, layout.stride)) {
    const int part =
        static_cast<int>(std::min<int64_t>(type.lanes, vector_lanes(state_.target, 8 * buffer->dtype.bytes())));
    std::vector<Value*> parts;
    for (int lane = 0; lane < type.lanes; lane += part) {
      parts.push_back(load_strided(buffer, layout.first + layout.stride * lane, layout.stride, part));
    }
    return from_storage(concatenate(std::move(parts)), type);
  }
  Value* result = llvm::PoisonValue::get(vector);
  for (int lane = 0; lane < type.lanes; ++lane) {
    Value* from = mask              ? builder_.CreateExtractElement(pointers, static_cast<uint64_t>(lane))
                  : offsets.empty() ? lane_address(buffer, layout, pointers, lane)
                                    : builder_.CreateGEP(element, emit_var(buffer->data), offsets[lane]);
    Value* value = builder_.CreateAlignedLoad(element, from, align);
    result = builder_.CreateInsertElement(result, value, static_cast<uint64_t>(lane));
  }
  return from_storage(result, type);
}

void FunctionEmitter::store_scattered(const Ref<Buffer>& buffer, const Expr& index, Value* value, Value* mask) {
  int lanes = index.dtype().lanes;
  llvm::Align align(buffer->dtype.bytes());
  const LaneLayout layout = lane_layout(*buffer, index);
  if (mask && !has_branches(*buffer)) {
    builder_.CreateMaskedScatter(value, lane_addresses(buffer, index), align, mask);
    return;
  }
  Value* pointers = mask                                  ? selected_addresses(buffer, index, mask)
                    : layout.form != LaneLayout::kStrided ? lane_addresses(buffer, index)
                                                          : nullptr;
  for (int lane = 0; lane < lanes; ++lane) {
    Value* element = builder_.CreateExtractElement(value, static_cast<uint64_t>(lane));
    Value* to = mask ? builder_.CreateExtractElement(pointers, static_cast<uint64_t>(lane))
                     : lane_address(buffer, layout, pointers, lane);
    builder_.CreateAlignedStore(element, to, align);
  }
}

// ---- loads and stores --------------------------------------------------------------------------------------------

llvm::Value* FunctionEmitter::emit_load(const Ref<BufferLoad>& load) {
  DataType type = Expr(load).dtype();
  const Ref<Buffer>& buffer = load->buffer;
  if (load->indices.size() != 1) {
    state_.fail(internal_error("codegen/not-flat", "buffer '" + buffer->name + "' is not flat"));
    return poison(type);
  }
  const Expr& index = load->indices[0];
  Value* mask = load->predicate.defined() ? emit(load->predicate) : nullptr;
  const LaneLayout layout = lane_layout(*buffer, index);
  if (layout.form == LaneLayout::kContiguous) return load_contiguous(buffer, layout.first, type.lanes, mask);
  if (buffer->dtype.is_vector()) return unsupported(type, "gathering vectors from '" + buffer->name + "'");
  if (layout.form == LaneLayout::kSame) {
    // One element for all lanes; it may be loaded if any lane is active.
    Value* asked = mask ? builder_.CreateOrReduce(mask) : nullptr;
    return lanes_of(load_contiguous(buffer, layout.first, 1, asked), type.lanes);
  }
  if (layout.form == LaneLayout::kReversed) {
    Value* reversed_mask = mask ? builder_.CreateVectorReverse(mask) : nullptr;
    return builder_.CreateVectorReverse(load_contiguous(buffer, layout.first, type.lanes, reversed_mask));
  }
  return load_scattered(buffer, index, mask);
}

void FunctionEmitter::emit_store(const Ref<BufferStore>& store) {
  const Ref<Buffer>& buffer = store->buffer;
  DataType type = store->value.dtype();
  if (store->indices.size() != 1) {
    state_.fail(internal_error("codegen/not-flat", "buffer '" + buffer->name + "' is not flat"));
    return;
  }
  const Expr& index = store->indices[0];
  Value* value = to_storage(emit(store->value), type);
  Value* mask = store->predicate.defined() ? emit(store->predicate) : nullptr;
  const LaneLayout layout = lane_layout(*buffer, index);
  if (layout.form == LaneLayout::kContiguous) {
    store_contiguous(buffer, layout.first, value, mask);
  } else if (buffer->dtype.is_vector()) {
    unsupported(DataType::void_(), "scattering vectors to '" + buffer->name + "'");
  } else if (layout.form == LaneLayout::kReversed) {
    store_contiguous(buffer, layout.first, builder_.CreateVectorReverse(value),
                     mask ? builder_.CreateVectorReverse(mask) : nullptr);
  } else {
    store_scattered(buffer, index, value, mask);
  }
}

}  // namespace tilewright::codegen
