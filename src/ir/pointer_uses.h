// How instructions access fragments and registers behind their pointer operands.
#pragma once

#include <vector>

#include "ir/stmt.h"

namespace tilewright {

struct PointerUse {
  size_t at;  ///< position of the argument
  bool reads, writes;
};
/// Returns the pointer operands of fragment instructions (ir/fragments.h) and warp instructions (ir/warp_steps.h);
/// empty for other calls.
std::vector<PointerUse> pointer_uses(const Call& call);

/// The element of which an expression is the address: A[4] in T.address_of(A[4]). Null for other expressions.
const BufferLoad* addressed_element(const NodeRef& e);

/// Returns the variable that a pointer value is computed from: p for `p`, and the data of A for T.address_of(A[4]).
/// Null if there is none.
Ref<Var> pointer_in(const Expr& value);

/// Whether the block overwrites all of its declared region of the buffer without reading it: one instruction loads or
/// fills a whole fragment, or the registers of a whole warp, through a view of that region.
bool replaces_view(const Block& block, const NodeRef& buffer);

}  // namespace tilewright
