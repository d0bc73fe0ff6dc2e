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
  int vector_bits;              ///< widest element of which vector code exists; 0: vectors are taken apart
  bool elementary;              ///< computed by a function of libm or by vector code that takes tens of operations
  bool of_floats, of_integers;  ///< what ir/meaning.h computes

  bool takes(size_t count) const { return arity < 0 || count == static_cast<size_t>(arity); }
  /// The message for a call with a number of arguments that the intrinsic does not take.
  std::string wrong_count(size_t count) const;
};

const IntrinsicRow& intrinsic_row(Intrinsic intrinsic);
/// By the name of an Op, with or without the prefix "tir."; kUnknown for anything else.
Intrinsic find_intrinsic(std::string_view name);
/// Of a call; kUnknown when it calls a function of the module or an operator that is not in the table, or has another
/// number of arguments than that row. Passes need not count arguments before they read them.
Intrinsic intrinsic_of(const Call& call);
/// The row whose name a call has, whatever its arguments are: for the verifier, which counts them.
Intrinsic named_by(const Call& call);
inline bool is_call_to(const Expr& e, Intrinsic intrinsic) {
  const Call* call = e.as<Call>();
  return call && intrinsic_of(*call) == intrinsic;
}
/// The shared Op node of the intrinsic.
Ref<Op> intrinsic_op(Intrinsic intrinsic);
/// Op node of any name; one of the table gives its shared node.
Ref<Op> op_named(std::string_view name);
/// The strongest effect in the expression; unknown operators and functions count as kUpdateState, a load as kReadState.
Effect effect_of(const Expr& e);

}  // namespace tilewright
