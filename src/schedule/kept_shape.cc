#include "schedule/kept_shape.h"

#include "analysis/changes.h"
#include "analysis/may_fail.h"

namespace tilewright::schedule {

Status require_kept_shape(const Tree& tree, int scope, const Ref<Buffer>& buffer, const char* code) {
  for (const Expr& extent : buffer->shape) {
    if (extent.is<IntImm>() || extent.is<Var>()) continue;
    auto analyzer = analysis::analyzer_above(tree, scope);
    if (analysis::may_divide_by_zero(extent, analyzer)) {
      return refuse(code,
                    "the shape of '" + buffer->name + "' would divide by what may be zero, also where no loop of " +
                        describe_block(tree.block_at(scope)) + " runs",
                    {tree.stmt(scope)}, "let the axes of the block have domains without such quotients");
    }
    if (!analysis::may_change(tree, tree.block_at(scope).body, extent)) continue;
    return refuse(code,
                  "the shape of '" + buffer->name + "' would read data that " + describe_block(tree.block_at(scope)) +
                      " changes: the buffer is allocated before",
                  {tree.stmt(scope)}, "let the axes of the block have constant domains");
  }
  return Ok{};
}

}  // namespace tilewright::schedule
