#include "ir/call_operands.h"

#include "ir/atomic_operation.h"
#include "ir/op.h"
#include "support/ranges.h"

namespace tilewright {
namespace {

DataType lanes_times(DataType type, int factor) {
  type.lanes = static_cast<uint16_t>(type.lanes * factor);
  return type;
}

bool has_lanes_of(DataType type, DataType other) {
  return type.lanes == other.lanes && type.scalable == other.scalable;
}

/// The types of the operands of one call, which are all values.
class Operands {
 public:
  Operands(const Call& call, Intrinsic intrinsic)
      : call_(call), intrinsic_(intrinsic), row_(intrinsic_row(intrinsic)) {}

  bool fit() const {
    switch (intrinsic_) {
      case Intrinsic::k_vectorlow:
      case Intrinsic::k_vectorhigh:
        return type(0) == lanes_times(call_.dtype, 2);
      case Intrinsic::k_vectorcombine:
        return type(0) == type(1) && lanes_times(type(0), 2) == call_.dtype;
      default:
        break;
    }
    if (row_.typing == Typing::kExplicit) return !computes() || are_integers();
    DataType wanted = type(decides());
    if (row_.typing == Typing::kSameFloat && !wanted.is_float()) return false;
    if (row_.typing == Typing::kInteger && !wanted.is_integral()) return false;
    if (row_.typing == Typing::kBool) wanted = wanted.with_element(DataType::bool_());
    return call_.dtype == wanted && others_fit();
  }

  std::string describe() const {
    std::string types;
    for (size_t i : indices_of(call_.args)) types += (i > 0 ? ", " : "") + type(i).str();
    return types;
  }

  bool computes() const { return row_.of_floats || row_.of_integers; }

 private:
  DataType type(size_t i) const { return call_.args[i].get()->dtype; }
  size_t decides() const { return row_.typing == Typing::kSecond ? 1 : 0; }

  /// T.clz and the like, whose result is int32. The last two operands of T.q_multiply_shift are for all lanes.
  bool are_integers() const {
    for (size_t i : indices_of(call_.args)) {
      const bool is_for_all = row_.arity == 4 && i >= 2 && type(i).is_scalar();
      if (!type(i).is_integral() || (!is_for_all && !has_lanes_of(type(i), call_.dtype))) return false;
    }
    return call_.dtype.is_integral();
  }

  bool others_fit() const {
    if (is_atomic(intrinsic_)) return true;  // verify_atomics() says more
    for (size_t i : indices_of(call_.args)) {
      if (i == decides()) continue;
      const bool is_condition = intrinsic_ == Intrinsic::k_if_then_else && i == 0;
      if (is_condition && type(i).is_bool() && (type(i).is_scalar() || has_lanes_of(type(i), call_.dtype))) continue;
      if (intrinsic_ == Intrinsic::k_ldexp && type(i).is_integral() && has_lanes_of(type(i), call_.dtype)) continue;
      if (type(i) != type(decides())) return false;
    }
    return true;
  }

  const Call& call_;
  const Intrinsic intrinsic_;
  const IntrinsicRow& row_;
};

}  // namespace

std::optional<std::string> wrong_operands(const Call& call) {
  const Intrinsic intrinsic = named_by(call);
  if (intrinsic == Intrinsic::kUnknown) return std::nullopt;
  const IntrinsicRow& row = intrinsic_row(intrinsic);
  const std::string name = "T." + std::string(row.name);
  if (!row.takes(call.args.size())) return row.wrong_count(call.args.size());
  const Operands operands(call, intrinsic);
  const bool is_vector_part = intrinsic == Intrinsic::k_vectorlow || intrinsic == Intrinsic::k_vectorhigh ||
                              intrinsic == Intrinsic::k_vectorcombine;
  const bool takes_values =
      row.typing != Typing::kExplicit || operands.computes() || is_vector_part || intrinsic == Intrinsic::k_reinterpret;
  if (!takes_values || call.args.empty()) return std::nullopt;
  const bool are_values = all_of(call.args, [](const NodeRef& arg) { return arg.sort() == Sort::kExpr; });
  if (!are_values) return name + " of what is not a value";
  if (operands.fit()) return std::nullopt;
  return name + " of " + operands.describe() + " is said to be " + call.dtype.str();
}

}  // namespace tilewright
