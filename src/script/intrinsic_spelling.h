// How scripts write calls of intrinsics whose type does not follow from the arguments by the table of ir/op.h.
#pragma once

#include <vector>

#include "ir/op.h"

namespace tilewright::script {

enum class Spelling {
  kPlain,       ///< T.exp(x): the type follows from the arguments
  kDtypeFirst,  ///< T.reinterpret("float32", x)
  kDtypeLast,   ///< T.tvm_struct_get(a, 0, 1, "int32")
  kGeneric,     ///< T.call_intrin("float32", "tir.exp", x)
};

/// Returns the position of the result type among the arguments of T.NAME: kPlain, kDtypeFirst or kDtypeLast; kGeneric
/// if T has no function of that name.
Spelling dtype_place(Intrinsic intrinsic);

/// Returns the type of T.NAME(args) for an intrinsic of position kPlain; void if the arguments do not fit.
DataType plain_call_type(Intrinsic intrinsic, const std::vector<NodeRef>& args);

/// Returns the spelling of a call that parses to the same call.
Spelling spelling_of(Intrinsic intrinsic, const Call& call);

}  // namespace tilewright::script
