#include "ir/atomic_operation.h"

#include "ir/build.h"
#include "ir/pointer_uses.h"
#include "ir/reduction_step.h"
#include "ir/refuse_at.h"
#include "ir/traverse.h"
#include "support/ranges.h"

namespace tilewright {
namespace {

const BufferLoad* updated_element(const Call& call) {
  return call.args.empty() ? nullptr : addressed_element(call.args[0]);
}

struct Fault {
  std::string message, hint;
};

/// Returns why the atomic call is malformed; nothing if it is well-formed.
std::optional<Fault> fault_of(const Call& call) {
  const Intrinsic intrinsic = intrinsic_of(call);
  const std::string name = "T." + std::string(intrinsic_row(intrinsic).name);
  const BufferLoad* element = updated_element(call);
  if (call.args.size() != 2 || !element) {
    return Fault{name + " of what is not an element of a buffer",
                 "pass the address of an element first: " + name + "(T.address_of(A[i]), value)"};
  }
  const DataType type = element->buffer->dtype;
  const bool is_one = all_of(element->indices, [](const Expr& index) { return index.dtype().is_scalar(); });
  if (!element->buffer->axes.empty() || element->predicate.defined() || !is_one) {
    return Fault{name + " of '" + element->buffer->name + "' updates more than one element of an array",
                 "give one element: no vector, no slice, and no buffer over sparse axes"};
  }
  if (!has_atomic(intrinsic, type)) {
    const bool takes_floats = has_atomic(intrinsic, DataType::float_(32));
    return Fault{
        "there is no " + name + " of " + type.str() + ", the type of '" + element->buffer->name + "'",
        std::string("elements are of int32, uint32, int64 or uint64") +
            (takes_floats ? ", or of float32 or float64" : "; floats have T.atomic_add and T.atomic_exchange alone")};
  }
  const DataType value = call.args[1].sort() == Sort::kExpr ? call.args[1].get()->dtype : DataType::void_();
  if (value != type || call.dtype != type) {
    return Fault{name + " of an element of " + type.str() + " takes a value of that type, not " + value.str(),
                 "cast it: T.Cast(\"" + type.str() + "\", ...)"};
  }
  return std::nullopt;
}

}  // namespace

bool is_atomic(Intrinsic intrinsic) {
  switch (intrinsic) {
    case Intrinsic::k_atomic_add:
    case Intrinsic::k_atomic_min:
    case Intrinsic::k_atomic_max:
    case Intrinsic::k_atomic_and:
    case Intrinsic::k_atomic_or:
    case Intrinsic::k_atomic_xor:
    case Intrinsic::k_atomic_exchange:
      return true;
    default:
      return false;
  }
}

bool has_atomic(Intrinsic intrinsic, DataType type) {
  if (!type.is_scalar() || (type.bits != 32 && type.bits != 64)) return false;
  const bool is_ieee = type.is_float() && type.code == TypeCode::kFloat;
  const bool takes_floats = intrinsic == Intrinsic::k_atomic_add || intrinsic == Intrinsic::k_atomic_exchange;
  return type.is_int() || type.is_uint() || (is_ieee && takes_floats);
}

/// Returns the intrinsic that executes a reduction step atomically; kUnknown if there is none. A difference adds the
/// negated operand.
static Intrinsic atomic_of(const ReductionStep& step) {
  if (step.is_sum() || step.is_difference()) return Intrinsic::k_atomic_add;
  if (step.is_min()) return Intrinsic::k_atomic_min;
  if (step.is_max()) return Intrinsic::k_atomic_max;
  switch (step.bitwise()) {
    case Intrinsic::k_bitwise_and:
      return Intrinsic::k_atomic_and;
    case Intrinsic::k_bitwise_or:
      return Intrinsic::k_atomic_or;
    case Intrinsic::k_bitwise_xor:
      return Intrinsic::k_atomic_xor;
    default:
      return Intrinsic::kUnknown;
  }
}

std::optional<AtomicOperation> AtomicOperation::of(const Expr& e) {
  const Call* call = e.as<Call>();
  if (!call || !is_atomic(intrinsic_of(*call)) || fault_of(*call)) return {};
  const BufferLoad* element = updated_element(*call);
  return AtomicOperation{intrinsic_of(*call), call->args[0], element->buffer, element->indices, call->arg(1)};
}

std::optional<AtomicOperation> AtomicOperation::of(const BufferStore& store) {
  auto step = ReductionStep::of(store);
  if (!step) return {};
  const Intrinsic intrinsic = atomic_of(*step);
  if (intrinsic == Intrinsic::kUnknown || !has_atomic(intrinsic, store.buffer->dtype) ||
      store.value.dtype().is_vector())
    return {};
  // Subtracting x is adding -x, for floats and for integers that wrap.
  const DataType type = step->operand().dtype();
  Expr value = step->operand();
  if (step->is_difference()) value = type.is_float() ? value * constant(type, -1.0) : zero(type) - value;
  Expr address = tilewright::call(DataType::handle(), "tir.address_of", {load(store.buffer, store.indices)});
  return AtomicOperation{intrinsic, address, store.buffer, store.indices, std::move(value)};
}

Expr AtomicOperation::as_call() const { return make<Call>({value.dtype(), intrinsic_op(intrinsic), {address, value}}); }

Status verify_atomics(const NodeRef& root) {
  std::optional<Diagnostic> failure;
  auto value_of = [&](const Expr& value, Visitor& v) {
    Expr step = value;
    while (const Cast* cast = step.as<Cast>()) step = Expr(cast->value);
    if (!is_atomic(step)) return v(value);
    const Call& call = *step.as<Call>();
    if (auto fault = fault_of(call); fault && !failure) {
      failure = refuse_at(step, "verify/atomic", fault->message, fault->hint);
    }
    for (const NodeRef& argument : call.args) v(argument);
  };
  visit(
      root, [&](const Ref<Evaluate>& evaluate, Visitor& v) { value_of(evaluate->value, v); },
      [&](const Ref<LetStmt>& let, Visitor& v) {
        value_of(let->value, v);
        v(let->body);
      },
      [&](const Ref<BufferStore>& store, Visitor& v) {
        for (const Expr& index : store->indices) v(index);
        value_of(store->value, v);
        v(store->predicate);
      },
      [&](const Ref<Call>& call) {
        const Intrinsic intrinsic = intrinsic_of(*call);
        if (is_atomic(intrinsic) && !failure) {
          const std::string name(intrinsic_row(intrinsic).name);
          failure = refuse_at(call, "verify/atomic-value", "T." + name + " is a part of an expression",
                              "keep its result in a variable first: before = T." + name + "(...)");
        }
      });
  if (failure) return std::move(*failure);
  return Ok{};
}

}  // namespace tilewright
