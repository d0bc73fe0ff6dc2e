// Fills the padding of a buffer whose layout changes: the elements that correspond to no element of the old layout.
#pragma once

#include "arith/index_map.h"
#include "schedule/edit.h"
#include "schedule/primitive.h"

namespace tilewright::schedule {

/// A buffer that gets another layout, and what its padding holds.
struct PaddedLayout {
  Ref<Buffer> before, after;
  Ref<IndexMap> inverse;    ///< indices of `after` to those of `before`
  Expr padding;             ///< condition on the inverse's initial indices
  Ref<IndexMap> pad_value;  ///< indices of `after` to what an element of padding holds

  Expr padding_at(const std::vector<Expr>& indices) const;
  Expr value_at(const std::vector<Expr>& indices) const;
};

/// Makes the program fill the padding, by the first of these ways that applies. Returns false if callers have to fill
/// it.
///   - nothing writes the buffer, a parameter: a block assumes that the padding holds the value;
///   - each nest that writes it runs over its elements in order, one by one, and does nothing else: the nest runs over
///     the new elements instead, and chooses between the value and what was stored;
///   - a block behind the last statement of the scope that writes it stores the value.
bool fill_padding(TreeEdit& edit, const Tree& tree, const PaddedLayout& layout, bool is_parameter);

}  // namespace tilewright::schedule
