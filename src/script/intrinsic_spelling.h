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

/// Where T.NAME takes the type of its result: kPlain, kDtypeFirst or kDtypeLast; kGeneric for names that are no
/// function of T.
Spelling dtype_place(Intrinsic intrinsic);

/// The type of T.NAME(args) for an intrinsic whose place is kPlain; void when the arguments do not fit.
DataType plain_call_type(Intrinsic intrinsic, const std::vector<NodeRef>& args);

/// How this call has to be written to be read back as it is.
Spelling spelling_of(Intrinsic intrinsic, const Call& call);

}  // namespace tilewright::script
