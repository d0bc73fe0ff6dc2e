// The table of intrinsics (ir/intrinsics.def) as code.
#pragma once

#include <string_view>

#include "ir/expr.h"

namespace tilewright {

enum class Intrinsic : uint8_t {
#define X(name, arity, effect, typing, script, folds, cost) k_##name,
#include "ir/intrinsics.def"
#undef X
  kUnknown,
};
enum class Effect : uint8_t { kPure, kReadState, kUpdateState, kSpecial };
enum class Typing : uint8_t { kSameFloat, kSameAny, kBool, kInteger, kSecond, kExplicit };
enum class ScriptType : uint8_t {
  kDerived,
  kDtypeFirst,
  kDtypeLast,
  kFirst,
  kSecond,
  kInt32,
  kUint32,
  kBoolean,
  kVoid,
  kHandle,
  kNoFunction,
};
enum class Folds : uint8_t { kNever, kConstant, kConstantOrZero, kFirst };

struct IntrinsicRow {
  std::string_view name;  ///< without "tir."
  int arity;
  Effect effect;
  bool synchronizes;
  Typing typing;
  ScriptType script;
  Folds folds;
  int vector_bits;              ///< widest element with vector code; 0: vectors are scalarized
  bool elementary;              ///< computed by a function of libm or by vector code that takes tens of operations
  bool of_floats, of_integers;  ///< what ir/meaning.h computes

  bool takes(size_t count) const { return arity < 0 || count == static_cast<size_t>(arity); }
  /// The message for a call with a number of arguments that the intrinsic does not take.
  std::string wrong_count(size_t count) const;
};

const IntrinsicRow& intrinsic_row(Intrinsic intrinsic);
/// Finds an intrinsic by the name of its Op, with or without the prefix "tir."; kUnknown if there is none.
Intrinsic find_intrinsic(std::string_view name);
/// Returns the intrinsic that is called; kUnknown for functions of the module, and for operators that are not in the
/// table. Also kUnknown if the number of arguments differs from the table, so callers need not check it.
Intrinsic intrinsic_of(const Call& call);
/// Like intrinsic_of(), but ignores the number of arguments: for the verifier, which reports a wrong number.
Intrinsic named_by(const Call& call);
inline bool is_call_to(const Expr& e, Intrinsic intrinsic) {
  const Call* call = e.as<Call>();
  return call && intrinsic_of(*call) == intrinsic;
}
/// The shared Op node of the intrinsic.
Ref<Op> intrinsic_op(Intrinsic intrinsic);
/// Returns an Op node of any name; for an intrinsic, its shared node.
Ref<Op> op_named(std::string_view name);
/// Returns the strongest effect in the expression. A load counts as kReadState, unknown operators and functions count
/// as kUpdateState.
Effect effect_of(const Expr& e);

}  // namespace tilewright
