// Error messages for uses of undefined variables that look defined at first sight.
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

/// A variable that no enclosing scope defines. `elsewhere`: whether another part of the program defines it.
std::optional<UndefinedUse> undefined_var(const Ref<Var>& v, bool elsewhere);
/// An extent, stride or offset of a parameter's buffer that is an expression of a size, such as the extent n * 2. Only
/// an extent that is `n` itself defines n.
std::optional<UndefinedUse> undefined_size(const Ref<Buffer>& buffer,
                                           const std::function<bool(const Ref<Var>&)>& is_defined);
/// The domain of an axis that depends on another axis of the same block. Domains may not, because they are evaluated
/// before any axis has a value. `realize` (may be null): the realization of the block.
std::optional<UndefinedUse> dependent_domain(const IterVar& axis, const BlockRealize* realize, const Block& block);

}  // namespace tilewright
