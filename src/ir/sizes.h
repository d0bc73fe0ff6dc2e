// The variables that a matched buffer defines: each extent, stride and offset that is a plain variable gets its value
// from the argument or region that the buffer is matched to.
//
//   A = T.match_buffer(a, (n, m), strides=(s, 1))      defines n, m and s, unless something before has
//   V = T.match_buffer(A[i, 0:m], (m,), ...)           uses m, since it is defined
//
// Equality, verifier, interpreter and lowering all use this definition; printer and signature use all fields instead
// (docs/decisions/0018-who-defines-sizes.md). Buffers that are allocated or declared define no variables.
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

/// Calls define(Size) for each extent, stride and offset that is a variable, in order. A variable that occurs twice is
/// passed twice.
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
