// How instructions access fragments and registers behind their pointer operands.
#pragma once

#include <vector>

#include "ir/stmt.h"

namespace tilewright {

struct PointerUse {
  size_t at;  ///< position of the argument
  bool reads, writes;
};
/// The uses by steps on fragments (ir/fragments.h) and of warps (ir/warp_steps.h); other calls have none.
std::vector<PointerUse> pointer_uses(const Call& call);

/// The element of which an expression is the address: A[4] in T.address_of(A[4]). Null for other expressions.
const BufferLoad* addressed_element(const NodeRef& e);

/// The pointer from which a value of pointer type is made: `p`, that of A in T.address_of(A[4]). Null if there is none.
Ref<Var> pointer_in(const Expr& value);

/// The block stores to all of the buffer that it declares, and reads nothing of it: a fragment or the registers of a
/// warp, which it views, are loaded or filled as a whole.
bool replaces_view(const Block& block, const NodeRef& buffer);

}  // namespace tilewright
