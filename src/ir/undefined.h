// Variables that look defined to the author of a program and are not: what is said of them.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "ir/stmt.h"

namespace tilewright {

struct UndefinedUse {
  std::string message, hint;
  NodeRef where;
};

/// A variable that nothing around defines; `elsewhere`: another part of the program does.
std::optional<UndefinedUse> undefined_var(const Ref<Var>& v, bool elsewhere);
/// An extent, stride or offset of a parameter's buffer that is computed from a size, (n * 2,), which does not define
/// the size.
std::optional<UndefinedUse> undefined_size(const Ref<Buffer>& buffer,
                                           const std::function<bool(const Ref<Var>&)>& is_defined);
/// A domain that is computed from another axis of its block. Domains belong to the instance of the block as a whole.
/// `realize` (may be null): what binds the axes.
std::optional<UndefinedUse> dependent_domain(const IterVar& axis, const BlockRealize* realize, const Block& block);

}  // namespace tilewright
