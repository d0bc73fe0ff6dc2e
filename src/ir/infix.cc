#include "ir/infix.h"

namespace tilewright {

Infix infix_of(Kind kind, DataType operands) {
  using enum Infix::Precedence;
  switch (kind) {
    case Kind::kAdd:
      return {" + ", kSum};
    case Kind::kSub:
      return {" - ", kSum};
    case Kind::kMul:
      return {" * ", kProduct};
    case Kind::kDiv:
      return operands.is_float() ? Infix{" / ", kProduct} : Infix{};
    case Kind::kFloorDiv:
      return {" // ", kProduct};
    case Kind::kFloorMod:
      return {" % ", kProduct};
    case Kind::kEQ:
      return {" == ", kCompare};
    case Kind::kNE:
      return {" != ", kCompare};
    case Kind::kLT:
      return {" < ", kCompare};
    case Kind::kLE:
      return {" <= ", kCompare};
    case Kind::kGT:
      return {" > ", kCompare};
    case Kind::kGE:
      return {" >= ", kCompare};
    // `and` and `or` of vectors would be bitwise.
    case Kind::kAnd:
      return operands.is_scalar() ? Infix{" and ", kAnd} : Infix{};
    case Kind::kOr:
      return operands.is_scalar() ? Infix{" or ", kOr} : Infix{};
    default:
      return {};
  }
}

}  // namespace tilewright
