// The only way to build a node.
#pragma once

#include "ir/stmt.h"

namespace tilewright {

/// Checks the types of the fields, derives dtype and depth, stamps the current span (or `span`).
/// Throws Exception (ScriptError "ir/...") when operands do not fit or the tree gets deeper than kMaxDepth.
/// Operands must already have equal types; ir/build.h has the operators that promote.
template <class T>
Ref<T> make(T data, SpanId span = 0);

#define X(name, sort, ...) extern template Ref<name> make<name>(name, SpanId);
#include "ir/kinds.def"
#undef X

}  // namespace tilewright
