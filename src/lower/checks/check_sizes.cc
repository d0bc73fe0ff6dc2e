// Refuse calls whose sizes are too large for the extents that are made of them.
//
//   Before                                     After
//   for i_0, i_1 in T.grid(                    assert T.Cast("int64", n) + 9 <= 2147483647, "..."
//       (n + 9) // 10, 10):                    for i_0, i_1 in T.grid((n + 9) // 10, 10):
//     if i_0 * 10 + i_1 < n: ...                 if i_0 * 10 + i_1 < n: ...
//
// The limits are those of the program before lowering: all passes take them for granted. One comparison each and call.
//
// Needs      nothing
// Ensures    no extent that is made of sizes leaves its type: the kernel returns TW_ERROR_EXTENT
// Placement  last: passes look for loops and buffers at the top of a function
#include "analysis/size_limits.h"
#include "ir/build.h"
#include "lower/gpu/kernel.h"
#include "lower/passes.h"
#include "support/ranges.h"

namespace tilewright::lower {

PassResult check_sizes(const Ref<PrimFunc>& func, PassContext& context) {
  if (is_kernel(*func)) return func;  // the host function has checked the sizes
  auto known = context.size_limits.find(context.function);
  const std::vector<analysis::SizeLimit> limits =
      known == context.size_limits.end() ? analysis::size_limits(*func) : known->second;
  Stmt body = func->body;
  for (const analysis::SizeLimit& limit : reversed(limits)) {
    Expr message = string_imm(std::string(analysis::kExtentMark) + limit.message + "\n  hint: " + limit.hint);
    body = make<AssertStmt>({limit.holds, message, body}, limit.node.span());
  }
  return with_body(func, body);
}

}  // namespace tilewright::lower
