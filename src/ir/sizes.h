// The variables that a buffer defines: its extents, strides and offset, as far as they are plain variables, where it is
// matched to something that has values for them.
//
//   A = T.match_buffer(a, (n, m), strides=(s, 1))      defines n, m and s, unless something before has
//   V = T.match_buffer(A[i, 0:m], (m,), ...)           uses m, since it is defined
//
// The one answer for equality, verifier, interpreter and lowering; printer and signature take all fields as they stand
// (docs/decisions/0018-who-defines-sizes.md). Buffers that are allocated or declared define nothing.
#pragma once

#include <type_traits>

#include "ir/stmt.h"

#include "support/ranges.h"

namespace tilewright {

/// Nodes whose buffers are matched.
template <class T>
inline constexpr bool kMatchesBuffers = std::is_same_v<T, PrimFunc> || std::is_same_v<T, MatchBufferRegion>;

struct Size {
  enum class Of : uint8_t { kExtent, kStride, kOffset };
  Of what;
  size_t dimension;  ///< dimension of an extent or a stride
  Ref<Var> var;
};

/// Calls define(Size) for each variable that the buffer would define, in order; one that occurs twice comes twice.
template <class F>
void for_each_size(const Buffer& buffer, F&& define) {
  auto look = [&](const Expr& e, Size::Of what, size_t dimension) {
    if (e.is<Var>()) define(Size{what, dimension, e.borrow<Var>()});
  };
  for (size_t d : indices_of(buffer.shape)) look(buffer.shape[d], Size::Of::kExtent, d);
  for (size_t d : indices_of(buffer.strides)) look(buffer.strides[d], Size::Of::kStride, d);
  look(buffer.elem_offset, Size::Of::kOffset, 0);
}

}  // namespace tilewright
