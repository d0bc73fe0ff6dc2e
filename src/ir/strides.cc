#include "ir/strides.h"

#include "ir/build.h"
#include "ir/traverse.h"

namespace tilewright {
namespace {

bool lacks_strides(const Buffer& buffer) {
  return !buffer.strides.empty() && buffer.strides.size() < buffer.shape.size();
}

}  // namespace

Expr element_count(const std::vector<Expr>& extents) {
  Expr count = i64(1);
  for (const Expr& extent : extents) count = count * cast(DataType::int_(64), extent);
  return count;
}

std::optional<int64_t> known_product(int64_t first, const std::vector<Expr>& extents) {
  for (const Expr& extent : extents) {
    auto size = const_int(extent);
    if (!size || __builtin_mul_overflow(first, *size, &first)) return std::nullopt;
  }
  return first;
}

std::vector<Expr> all_strides(const Buffer& buffer) {
  std::vector<Expr> strides = buffer.strides;
  if (!lacks_strides(buffer)) return strides;
  for (size_t d = buffer.shape.size() - strides.size(); d-- > 0;) {
    Expr next = strides.front();
    strides.insert(strides.begin(), next * cast(next.dtype(), buffer.shape[d + 1]));
  }
  return strides;
}

Ref<Module> with_all_strides(const Ref<Module>& module) {
  if (!any_node(module, [](const Ref<Buffer>& buffer) { return lacks_strides(*buffer); })) return module;
  return rewrite(module, [&](const Ref<Buffer>& buffer, Rewriter& r) -> NodeRef {
    Ref<Buffer> after = r.descend(buffer);
    if (!lacks_strides(*after)) return after;
    return with_field(after, &Buffer::strides, all_strides(*after));
  });
}

}  // namespace tilewright
