#include "ir/scalable.h"

#include "ir/build.h"
#include "ir/op.h"
#include "ir/traverse.h"

namespace tilewright {
namespace {

bool is_vscale(const Call& call) { return intrinsic_of(call) == Intrinsic::k_vscale; }

}  // namespace

bool uses_vscale(const Expr& e) {
  return any_node(e, [](const Ref<Call>& call) { return is_vscale(*call); });
}

Expr with_vscale(const Expr& e, int vscale) {
  return rewrite(e, [&](const Ref<Call>& call, Rewriter& walk) -> Expr {
    if (is_vscale(*call)) return constant(call.dtype(), vscale);
    return walk.descend(call);
  });
}

}  // namespace tilewright
