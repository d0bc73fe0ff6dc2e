// Expressions. A variable is the slot of its value: values never change in their scope.
#include <fmt/format.h>

#include <algorithm>

#include "analysis/brief.h"
#include "arith/fingerprint.h"
#include "interpreter/compile.h"
#include "ir/async_copy.h"
#include "ir/atomic_operation.h"
#include "ir/build.h"
#include "ir/call_operands.h"
#include "ir/dot4.h"
#include "ir/kind_cases.h"
#include "ir/traverse.h"
#include "support/ranges.h"

namespace tilewright::interpreter {
namespace {

/// Whether evaluating the expression may fail or is expensive: then `and` must not evaluate it needlessly.
bool may_fail(const Expr& e) { return has_node<BufferLoad, Call, Div, Mod, FloorDiv, FloorMod>(e); }

struct Operator {
  Op op;
  bool swapped = false;
};
Operator operator_for(Kind kind, bool is_float) {
  switch (kind) {
    case Kind::kAdd:
      return {is_float ? Op::kAddFloat : Op::kAddInt};
    case Kind::kSub:
      return {is_float ? Op::kSubFloat : Op::kSubInt};
    case Kind::kMul:
      return {is_float ? Op::kMulFloat : Op::kMulInt};
    case Kind::kDiv:
      return {is_float ? Op::kDivFloat : Op::kDivInt};
    case Kind::kMod:
      return {Op::kModInt};
    case Kind::kFloorDiv:
      return {is_float ? Op::kFloorDivFloat : Op::kFloorDivInt};
    case Kind::kFloorMod:
      return {is_float ? Op::kFloorModFloat : Op::kFloorModInt};
    case Kind::kMin:
      return {is_float ? Op::kMinFloat : Op::kMinInt};
    case Kind::kMax:
      return {is_float ? Op::kMaxFloat : Op::kMaxInt};
    case Kind::kEQ:
      return {is_float ? Op::kEqFloat : Op::kEqInt};
    case Kind::kNE:
      return {is_float ? Op::kNeFloat : Op::kNeInt};
    case Kind::kLT:
      return {is_float ? Op::kLtFloat : Op::kLtInt};
    case Kind::kLE:
      return {is_float ? Op::kLeFloat : Op::kLeInt};
    case Kind::kGT:
      return {is_float ? Op::kLtFloat : Op::kLtInt, true};
    default:
      return {is_float ? Op::kLeFloat : Op::kLeInt, true};  // GE
  }
}

/// Whether so many values have the bits of so many others; what fills no bytes is read one by one.
bool can_be_read_as(DataType from, int from_lanes, DataType to, int to_lanes) {
  if (from_lanes == to_lanes) return from.bytes() == to.bytes();
  return from.bits % 8 == 0 && to.bits % 8 == 0 && from_lanes * from.bits == to_lanes * to.bits;
}

constexpr const char* kOtherCode =
    ", which names code of another compiler; blocks that stand for a registered tensor intrinsic are run by its "
    "description";

/// Whether the arguments are sums and two operands that fill as many bits.
bool adds_dot_products(const Call& call, DataType type, const ProcessorInstruction* instruction) {
  if (!instruction || instruction->form != ProcessorInstruction::kDot || !type.is_integral()) return false;
  if (call.args.size() != 4 || call.arg(1).dtype() != type) return false;
  return type.bits == instruction->sums.bits &&
         std::all_of(call.args.begin() + 2, call.args.end(), [&](const NodeRef& arg) {
           const DataType words = static_cast<const Expr&>(arg).dtype();
           return words.is_integral() && words.bits * words.lanes == type.bits * type.lanes;
         });
}

bool is_arithmetic(const Expr& e) {
  if (!arith::is_index(e.dtype())) return false;
  switch (e.kind()) {
    case Kind::kAdd:
    case Kind::kSub:
    case Kind::kMul:
    case Kind::kDiv:
    case Kind::kMod:
    case Kind::kFloorDiv:
    case Kind::kFloorMod:
    case Kind::kMin:
    case Kind::kMax:
    case Kind::kSelect:
      return true;
    case Kind::kCast:
      return arith::is_widening_index_cast(*e.as<Cast>()) && is_arithmetic(e.as<Cast>()->value);
    default:
      return false;
  }
}

/// An index as kernels compute it.
Expr in_64_bits(const Expr& e) {
  if (!is_arithmetic(e)) return tilewright::cast(DataType::int_(64), e);
  if (const Cast* inner = e.as<Cast>()) return in_64_bits(inner->value);
  if (const Select* s = e.as<Select>()) {
    return make<Select>({s->condition, in_64_bits(s->true_value), in_64_bits(s->false_value)});
  }
  BinaryOperands operands = binary_operands(e);
  Expr a = in_64_bits(*operands.a), b = in_64_bits(*operands.b);
  return make_binary(e.kind(), std::move(a), std::move(b), e.span());
}

}  // namespace

int Compiler::binary(Kind kind, const Expr& a, const Expr& b, DataType result) {
  Operator op = operator_for(kind, a.dtype().is_float());
  int left = expr(a), right = expr(b);
  if (op.swapped) std::swap(left, right);
  int dst = take(lanes_of(result));
  bool divides = op.op == Op::kDivInt || op.op == Op::kModInt || op.op == Op::kFloorDivInt || op.op == Op::kFloorModInt;
  emit(op.op, a.dtype(), dst, left, right, kNone, divides ? site(b) : 0);
  return dst;
}

int Compiler::logic(const Expr& e, bool is_and, const Expr& a, const Expr& b) {
  int dst = take(lanes_of(e.dtype()));
  int left = expr(a);
  if (e.dtype().is_vector() || !may_fail(b)) {
    int right = expr(b);
    emit(is_and ? Op::kAnd : Op::kOr, e.dtype(), dst, left, right);
    return dst;
  }
  emit(Op::kMove, e.dtype(), dst, left);
  size_t skip = is_and ? emit(Op::kJumpIfZero, dst) : emit(Op::kJumpIfDiffer, kNone, dst, constant(0));
  emit(Op::kMove, e.dtype(), dst, expr(b));
  jump_here(skip);
  return dst;
}

int Compiler::cast(const Cast& cast) {
  DataType from = cast.value.dtype(), to = cast.dtype;
  int value = expr(cast.value);
  if (from.element() == to.element()) return value;
  int dst = take(lanes_of(to));
  Op op = Op::kMove;
  int extra = from.is_uint() && from.bits == 64;
  if (to.is_bool()) {
    op = Op::kToBool;
    extra = from.is_float();
  } else if (from.is_float()) {
    op = to.is_float() ? Op::kFloatToFloat : Op::kFloatToInt;
  } else if (to.is_float()) {
    op = Op::kIntToFloat;
  } else if (to.is_integral()) {
    op = Op::kIntToInt;
  }
  emit(op, to, dst, value, kNone, kNone, extra);
  return dst;
}

int Compiler::index(const Expr& e, const char* what, const NodeRef& node) {
  const int value = expr(e);
  if (!is_arithmetic(e) || !is_data(e)) return value;
  const int wraps =
      message("interpret/extent",
              fmt::format("the {} {} leaves its type with the data that it reads", what, analysis::brief(e)), node,
              "indices and bounds of loops must not overflow: bound what is read before adding to it, or "
              "cast it to T.int64 first");
  require_equal(value, expr(in_64_bits(e)), wraps);
  return value;
}

// ---- memory ----------------------------------------------------------------------------------------------------

Compiler::View Compiler::declare(const Ref<Buffer>& buffer, int data) {
  View view;
  view.data = data;
  for (const Expr& extent : buffer->shape) view.extents.push_back(expr(extent));
  for (const Expr& stride : buffer->strides) view.strides.push_back(expr(stride));
  if (buffer->elem_offset.defined() && !is_const_int(buffer->elem_offset, 0)) view.offset = expr(buffer->elem_offset);
  return view;
}

Compiler::View Compiler::view_of(const Ref<Buffer>& buffer, const NodeRef& user) {
  if (auto* view = find_value(views_, buffer.get())) return *view;
  auto* data = find_value(slots_, buffer->data.get());
  if (!data) {
    fail("interpret/undefined", "buffer '" + buffer->name + "' is used, but nothing allocates or declares it", user,
         "allocate it with T.alloc_buffer, or make it a parameter");
    return {constant(0), kNone, std::vector<int>(buffer->shape.size(), constant(0)), {}};
  }
  return declare(buffer, *data);
}

int Compiler::access(const Ref<Buffer>& buffer, const std::vector<Expr>& indices, const Expr& predicate,
                     const NodeRef& node) {
  View view = view_of(buffer, node);
  Access access;
  access.data = view.data;
  access.offset = view.offset;
  access.dtype = buffer->dtype.element();
  access.element_lanes = lanes_of(buffer->dtype);
  access.bytes = buffer->dtype.bytes() * access.element_lanes;
  for (size_t i : indices_of(indices)) {
    int stride = view.strides.empty() ? kNone : view.strides[i];
    bool vector = indices[i].dtype().is_vector();
    if (vector) access.lanes = lanes_of(indices[i].dtype());
    access.dimensions.push_back({index(indices[i], "index", node), view.extents[i], stride, vector});
  }
  if (predicate.defined()) access.mask = expr(predicate);
  access.site = site(node, buffer);
  return append(program_.accesses, std::move(access));
}

int Compiler::load(const Expr& e) {
  const BufferLoad& load = *e.as<BufferLoad>();
  if (!load.buffer->axes.empty()) return sparse_load(load, e);
  int number = access(load.buffer, load.indices, load.predicate, e);
  if (step_ && step_->element() == e) note_step(number);
  int dst = take(lanes_of(e.dtype()));
  emit(Op::kLoad, load.buffer->dtype.element(), dst, number);
  return dst;
}

int Compiler::arithmetic(Op op, int a, int b) {
  if (a < 0 && b < 0) {
    int64_t x = function_->constants[-1 - a].i, y = function_->constants[-1 - b].i, result = 0;
    bool overflow = op == Op::kAddInt ? __builtin_add_overflow(x, y, &result) : __builtin_mul_overflow(x, y, &result);
    if (!overflow) return constant(result);
  }
  return computed(op, a, b);
}

/// Elements of a buffer with these extents.
int Compiler::product(const std::vector<int>& factors) {
  int result = constant(1);
  for (int factor : factors) result = arithmetic(Op::kMulSize, result, factor);
  return result;
}

std::vector<int> Compiler::strides_of(const View& view) {
  if (!view.strides.empty()) return view.strides;
  std::vector<int> strides(view.extents.size());
  int stride = constant(1);
  for (size_t i = strides.size(); i-- > 0;) {
    strides[i] = stride;
    stride = arithmetic(Op::kMulInt, stride, view.extents[i]);
  }
  return strides;
}

// ---- vectors and calls -----------------------------------------------------------------------------------------

int Compiler::shuffle(const Shuffle& shuffle) {
  std::vector<int> lanes;
  for (const Expr& vector : shuffle.vectors) {
    int first = expr(vector);
    for (int k = 0; k < lanes_of(vector.dtype()); ++k) lanes.push_back(first + k);
  }
  int dst = take(static_cast<int>(shuffle.indices.size()));
  for (size_t i : indices_of(shuffle.indices)) {
    auto index = const_int(shuffle.indices[i]);
    if (!index || *index < 0 || *index >= static_cast<int64_t>(lanes.size())) {
      return unsupported("a shuffle by indices that are not constants within the vectors", shuffle.indices[i]);
    }
    emit(Op::kMove, dst + static_cast<int>(i), lanes[*index]);
  }
  return dst;
}

int Compiler::if_then_else(const Call& call, DataType type) {
  const auto& condition = call.arg(0);
  int dst = take(lanes_of(type));
  int test = expr(condition);
  if (condition.dtype().is_vector()) {
    int then = expr(call.arg(1)), other = expr(call.arg(2));
    emit(Op::kSelect, type, dst, test, then, other, 0);
    return dst;
  }
  size_t skip = emit(Op::kJumpIfZero, test);
  emit(Op::kMove, type, dst, expr(call.arg(1)));
  size_t done = emit(Op::kJump);
  jump_here(skip);
  emit(Op::kMove, type, dst, expr(call.arg(2)));
  jump_here(done);
  return dst;
}

int Compiler::math(Intrinsic intrinsic, const Call& call, DataType type) {
  std::vector<int> args;
  for (const NodeRef& arg : call.args) args.push_back(expr(static_cast<const Expr&>(arg)));
  int dst = take(lanes_of(type));
  DataType worked = call.arg(0).dtype();
  for (size_t i = 1; i < args.size(); ++i) {  // T.ldexp(x, 3)
    const Expr& arg = call.arg(i);
    if (worked.is_float() && !arg.dtype().is_float())
      args[i] = cast(Cast{DataType::float_(64, arg.dtype().lanes), arg});
  }
  int last = args.size() > 2 ? args[2] : kNone;
  if (args.size() == 4) {  // T.q_multiply_shift: the two scalars in adjacent slots
    last = take(2);
    emit(Op::kMove, last, args[2]);
    emit(Op::kMove, last + 1, args[3]);
  }
  emit(Op::kMath, worked, dst, args[0], args.size() > 1 ? args[1] : kNone, last, static_cast<int>(intrinsic));
  return dst;
}

int Compiler::vector_part(const Call& call, DataType type, Intrinsic intrinsic) {
  int lanes = lanes_of(type), dst = take(lanes);
  int first = expr(call.arg(0));
  if (intrinsic == Intrinsic::k_vectorcombine) {
    DataType half = call.arg(0).dtype();
    int second = expr(call.arg(1));
    emit(Op::kMove, half, dst, first);
    emit(Op::kMove, half, dst + lanes_of(half), second);
  } else {
    emit(Op::kMove, type, dst, intrinsic == Intrinsic::k_vectorhigh ? first + lanes : first);
  }
  return dst;
}

/// Lanes i with base + i < limit. The sum may leave the type, the distance to the limit does not.
int Compiler::lane_mask(const Expr& base, const Expr& limit, int lanes) {
  const DataType type = base.dtype(), wide = DataType::uint(64, lanes);
  const int first = expr(base), end = expr(limit);
  const int begins = take(1), distance = take(1), all_begin = take(lanes), distances = take(lanes);
  emit(Op::kLtInt, type, begins, first, end);
  emit(Op::kSubInt, DataType::uint(type.bits), distance, end, first);
  emit(Op::kBroadcast, wide, all_begin, begins);
  emit(Op::kBroadcast, wide, distances, distance);
  const int steps = take(lanes), inside = take(lanes), dst = take(lanes);
  emit(Op::kRamp, wide, steps, constant(0), constant(1));
  emit(Op::kLtInt, wide, inside, steps, distances);
  emit(Op::kAnd, wide, dst, all_begin, inside);
  return dst;
}

/// Lowering makes such calls, and its passes are checked by what is run here.
int Compiler::dot_product(const Call& call, DataType type, const ProcessorInstruction& instruction) {
  const int sums = lanes_of(type), group = instruction.group(), elements = group * sums;
  auto elements_of = [&](const Expr& words, DataType as) {
    int dst = take(elements);
    const DataType from = words.dtype();
    emit(Op::kReinterpret, as.with_lanes(elements), dst, expr(words), kNone, kNone,
         static_cast<int>(from.code) << 8 | from.bits);
    return dst;
  };
  int a = elements_of(call.arg(2), instruction.left);
  int b = elements_of(call.arg(3), instruction.right);
  return sums_of_products(type, a, b, group, call.arg(1));
}

int Compiler::sums_of_products(DataType type, int a, int b, int group, const Expr& sums) {
  const int elements = group * lanes_of(type), products = take(elements), dst = take(lanes_of(type));
  emit(Op::kMulInt, type.with_lanes(elements), products, a, b);
  emit(Op::kMove, type, dst, expr(sums));
  for (int i = 0; i < elements; ++i) {
    emit(Op::kAddInt, type.element(), dst + i / group, dst + i / group, products + i);
  }
  return dst;
}

int Compiler::atomic(const Expr& e) {
  auto step = AtomicOperation::of(e);
  if (!step) return unsupported("an atomic operation of what is not an element", e);
  const int number = access(step->buffer, step->indices, {}, e);
  program_.sites[program_.accesses[number].site].is_atomic = true;
  const int value = expr(step->value), dst = take(2);
  emit({.op = Op::kAtomic, .dst = dst, .a = number, .b = value, .extra = static_cast<int>(step->intrinsic)});
  return dst;
}

int Compiler::print(const Call& call) {
  PrintSite site;
  for (const NodeRef& arg : call.args) {
    const StringImm* text = arg.as<StringImm>();
    const bool is_expr = arg.defined() && arg.sort() == Sort::kExpr;
    site.texts.push_back(text ? text->value : "");
    site.values.emplace_back(text || !is_expr ? kNone : expr(static_cast<const Expr&>(arg)),
                             is_expr ? static_cast<const Expr&>(arg).dtype() : DataType::void_());
  }
  emit(Op::kPrint, kNone, append(program_.prints, std::move(site)));
  return constant(0);
}

int Compiler::call_function(const Expr& e, const std::string& name) {
  CallSite call;
  call.callee = name;
  for (const NodeRef& arg : e.as<Call>()->args) {
    if (arg.sort() != Sort::kExpr) return unsupported("an argument of a function that is not an expression", e);
    call.args.push_back(expr(static_cast<const Expr&>(arg)));
  }
  declare_function(name);
  Ref<PrimFunc> callee = module_.get(name).cast<PrimFunc>();
  if (callee.defined() && callee->params.size() != call.args.size()) {
    fail("interpret/argument",
         "function '" + name + "' takes " + std::to_string(callee->params.size()) + " arguments and is called with " +
             std::to_string(call.args.size()),
         e);
  }
  call.lanes = std::max(1, lanes_of(e.dtype()));
  const int dst = call.dst = take(call.lanes);
  call.site = site(e);
  emit(Op::kCall, kNone, append(program_.calls, std::move(call)));
  return dst;
}

int Compiler::fragment_step(const Expr& e) {
  auto loops = fragments_->as_loops(*e.as<Call>(), stores_of_warp());
  if (!loops) return unsupported("a step on fragments whose shapes the program does not say", e);
  stmt(*loops);
  return constant(0);
}

int Compiler::async_step(const Expr& e) {
  const Call& call = *e.as<Call>();
  if (auto copy = AsyncCopy::of(e)) {
    in_background_ = true;
    stmt(copy->as_loop());
    in_background_ = false;
  } else if (intrinsic_of(call) == Intrinsic::k_ptx_commit_group) {
    emit(Op::kCloseGroup);
  } else {
    auto running = call.args.empty() ? std::nullopt : const_int(call.arg(0));
    if (intrinsic_of(call) != Intrinsic::k_ptx_wait_group || !running) {
      return unsupported("a step of asynchronous copies whose size or count is not constant", e);
    }
    emit(Op::kWaitGroup, kNone, static_cast<int>(*running));
  }
  return constant(0);
}

int Compiler::call(const Expr& e) {
  const Call& call = *e.as<Call>();
  if (const GlobalVar* callee = call.op.as<GlobalVar>()) return call_function(e, callee->name_hint);
  Intrinsic intrinsic = intrinsic_of(call);
  const IntrinsicRow& row = intrinsic_row(intrinsic);
  const tilewright::Op* op = call.op.as<tilewright::Op>();
  std::string name = op ? op->name : "";
  if (row.arity >= 0 && static_cast<int>(call.args.size()) != row.arity) {
    return unsupported(name + " with " + std::to_string(call.args.size()) + " arguments", e);
  }
  auto arg = [&](size_t i) -> const Expr& { return call.arg(i); };
  for (const NodeRef& a : call.args) {
    if (a.sort() != Sort::kExpr) return unsupported(name + " of what is not an expression", e);
  }
  switch (intrinsic) {
    case Intrinsic::k_call_llvm_pure_intrin:
      if (const auto* instruction = instruction_of(call); adds_dot_products(call, e.dtype(), instruction)) {
        return dot_product(call, e.dtype(), *instruction);
      }
      return unsupported(name + kOtherCode, e);
    case Intrinsic::k_call_pure_extern:
      if (auto products = Dot4::of(call)) {
        const int a = expr(products->a), b = expr(products->b);
        return sums_of_products(e.dtype(), a, b, 4, products->sum);
      }
      return unsupported(name + kOtherCode, e);
    case Intrinsic::k_call_llvm_intrin:
    case Intrinsic::k_call_extern:
      return unsupported(name + kOtherCode, e);
    case Intrinsic::k_if_then_else:
      return if_then_else(call, e.dtype());
    case Intrinsic::k_likely:
      return expr(arg(0));
    case Intrinsic::k_assume:
      emit({.op = Op::kAssume, .a = expr(arg(0)), .extra = site(e)});
      return constant(1);
    case Intrinsic::k_undef: {
      int dst = take(lanes_of(e.dtype()));
      emit(Op::kBroadcast, e.dtype(), dst, constant(0));
      return dst;
    }
    case Intrinsic::k_reinterpret: {
      int dst = take(lanes_of(e.dtype()));
      DataType from = arg(0).dtype();
      if (!can_be_read_as(from, lanes_of(from), e.dtype(), lanes_of(e.dtype()))) {
        return unsupported("a reinterpretation of " + from.str() + " as " + e.dtype().str(), e);
      }
      emit(Op::kReinterpret, e.dtype(), dst, expr(arg(0)), kNone, kNone, static_cast<int>(from.code) << 8 | from.bits);
      return dst;
    }
    case Intrinsic::k_large_uint_imm:
      return constant(const_int(arg(1)).value_or(0) << 32 | (const_int(arg(0)).value_or(0) & 0xFFFFFFFF));
    case Intrinsic::k_vscale:
      return constant(options_.vscale);
    case Intrinsic::k_get_active_lane_mask:
      return lane_mask(arg(0), arg(1), lanes_of(e.dtype()));
    case Intrinsic::k_ret:
      emit(Op::kReturn, kNone, expr(arg(0)));
      return constant(0);
    case Intrinsic::k_address_of: {
      const BufferLoad* load = arg(0).as<BufferLoad>();
      if (!load) return unsupported("the address of what is not an element of a buffer", e);
      int dst = take(1);
      emit(Op::kAddress, dst, access(load->buffer, load->indices, {}, arg(0)));
      return dst;
    }
    case Intrinsic::k_tvm_access_ptr: {
      int64_t size = int64_t{arg(0).dtype().bytes()} * lanes_of(arg(0).dtype());
      return arithmetic(Op::kAddInt, expr(arg(1)), arithmetic(Op::kMulInt, expr(arg(2)), constant(size)));
    }
    case Intrinsic::k_isnullptr:
      return computed(Op::kEqInt, expr(arg(0)), constant(0));
    case Intrinsic::k_prefetch:  // only speed depends on it
    case Intrinsic::k_type_annotation:
      return constant(0);
    case Intrinsic::k_tvm_storage_sync:
      emit({.op = Op::kBarrier, .extra = site(e)});
      return constant(0);
    case Intrinsic::k_print:
      return print(call);
    case Intrinsic::k_vectorlow:
    case Intrinsic::k_vectorhigh:
    case Intrinsic::k_vectorcombine:
      return vector_part(call, e.dtype(), intrinsic);
    default:
      break;
  }
  bool of_floats = row.arity > 0 && arg(0).dtype().is_float();
  bool computes = of_floats ? row.of_floats : row.of_integers;
  return computes ? math(intrinsic, call, e.dtype())
                  : unsupported("the operator " + name + (of_floats ? " of floats" : ""), e);
}

int Compiler::expr(const Expr& e) {
  const auto [left, right] = binary_operands(e);
  switch (e.kind()) {
    case Kind::kVar:
      return slot_of(e.borrow<Var>(), e);
    case Kind::kIntImm:
      return constant(e.as<IntImm>()->value);
    case Kind::kFloatImm:
      return constant(e.as<FloatImm>()->value);
    case Kind::kStringImm:
      return constant(0);
    case Kind::kCast:
      return cast(*e.as<Cast>());
      TW_BINARY_KINDS_BUT_LOGIC(TW_CASE_OF)
      return binary(e.kind(), *left, *right, e.dtype());
    case Kind::kAnd:
    case Kind::kOr:
      return logic(e, e.is<And>(), *left, *right);
    case Kind::kNot: {
      int value = expr(e.as<Not>()->a), dst = take(lanes_of(e.dtype()));
      emit(Op::kNot, e.dtype(), dst, value);
      return dst;
    }
    case Kind::kSelect: {
      const Select& select = *e.as<Select>();
      int test = expr(select.condition), a = expr(select.true_value), b = expr(select.false_value);
      int dst = take(lanes_of(e.dtype()));
      emit(Op::kSelect, e.dtype(), dst, test, a, b, select.condition.dtype().is_scalar());
      return dst;
    }
    case Kind::kBufferLoad:
      return load(e);
    case Kind::kRamp: {
      int base = expr(e.as<Ramp>()->base), stride = expr(e.as<Ramp>()->stride), dst = take(lanes_of(e.dtype()));
      emit(Op::kRamp, e.dtype(), dst, base, stride);
      return dst;
    }
    case Kind::kBroadcast: {
      int value = expr(e.as<Broadcast>()->value), dst = take(lanes_of(e.dtype()));
      emit(Op::kBroadcast, e.dtype(), dst, value);
      return dst;
    }
    case Kind::kLet: {
      const Let& let = *e.as<Let>();
      int value = expr(let.value), result = 0;
      with_definition(let.var, value, [&] { result = expr(let.body); });
      return result;
    }
    case Kind::kCall:
      if (auto wrong = wrong_operands(*e.as<Call>())) return malformed(*wrong, e);
      if (is_atomic(e)) return atomic(e);
      if (is_async_step(e)) return async_step(e);
      if (is_warp_step(e)) return warp_step(e);
      if (asks_lanes(e)) return lane_exchange(e);
      return is_fragment_step(e) ? fragment_step(e) : call(e);
    case Kind::kShuffle:
      return shuffle(*e.as<Shuffle>());
    case Kind::kOp:
    case Kind::kGlobalVar:
    case Kind::kCommReducer:
#define X TW_CASE_UNLESS_EXPR
#include "ir/kinds.def"
#undef X
      return unsupported("a " + kind_name(e.kind()) + " as a value", e);
  }
  return constant(0);
}

}  // namespace tilewright::interpreter
