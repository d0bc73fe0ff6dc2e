#include "ir/undefined.h"

#include "ir/substitute.h"
#include "support/ranges.h"

namespace tilewright {
namespace {

std::string in_quotes(const std::string& name) { return "'" + name + "'"; }

}  // namespace

std::optional<UndefinedUse> undefined_var(const Ref<Var>& v, bool elsewhere) {
  return UndefinedUse{
      "variable " + in_quotes(v->name_hint) + (elsewhere ? " is used outside of its scope" : " is defined nowhere"),
      elsewhere ? "use it inside of the loop, block or binding that defines it"
                : "make it a parameter, or the extent of a parameter's buffer",
      v};
}

std::optional<UndefinedUse> undefined_size(const Ref<Buffer>& buffer,
                                           const std::function<bool(const Ref<Var>&)>& is_defined) {
  std::optional<UndefinedUse> found;
  auto look = [&](const Expr& e, const char* what) {
    if (!e.defined()) return;
    for_each_free_var(e, [&](const Ref<Var>& size) {
      if (found || is_defined(size)) return;
      const std::string& name = size->name_hint;
      found = {std::string(what) + in_quotes(buffer->name) + " is computed from " + in_quotes(name) +
                   ", and no parameter defines " + in_quotes(name),
               "a size is defined by a buffer that has it as an extent by itself, (" + name +
                   ",), or as a parameter, " + name + ": T." + size.dtype().str(),
               buffer.span() == 0 ? NodeRef(size) : NodeRef(buffer)};
    });
  };
  for (const Expr& extent : buffer->shape) look(extent, "an extent of ");
  for (const Expr& stride : buffer->strides) look(stride, "a stride of ");
  look(buffer->elem_offset, "the offset of ");
  return found;
}

std::optional<UndefinedUse> dependent_domain(const IterVar& axis, const BlockRealize* realize, const Block& block) {
  for (size_t i : indices_of(block.iter_vars)) {
    const Ref<Var>& other = block.iter_vars[i]->var;
    if (!uses_var(axis.dom, other)) continue;
    const Var* loop = realize ? realize->iter_values[i].as<Var>() : nullptr;
    return UndefinedUse{"the domain of axis " + in_quotes(axis.var->name_hint) + " depends on " +
                            in_quotes(other->name_hint) + ", an axis of the same block",
                        "write what " + in_quotes(other->name_hint) + " is bound to" +
                            (loop ? ", " + in_quotes(loop->name_hint) : std::string()) +
                            ": domains are evaluated outside of the block",
                        axis.var};
  }
  return std::nullopt;
}

}  // namespace tilewright
