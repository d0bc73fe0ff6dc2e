// Give every buffer one dimension, with the offset of an element spelled out.
//
//   Before                                  After
//   A: T.Buffer((16, 64))                   A: T.Buffer((16, 64)); A_1 = T.decl_buffer((1024,), data=A.data)
//   A[i, j] = 0.0                           A_1[i * 64 + j] = 0.0
//
// Needs      no blocks
// Ensures    accesses have one index, counted in elements from the buffer's data pointer: strides and element offsets
//            are in it. Parameters keep their shapes in the buffer map, which describes arguments to callers.
// Placement  after the passes that change shapes
#include "ir/build.h"
#include "ir/strides.h"
#include "ir/traverse.h"
#include "lower/passes.h"
#include "support/ranges.h"

namespace tilewright::lower {
namespace {

constexpr int64_t kMostInt32 = INT32_MAX;

/// Returns the product of the extents, as int64 if it is a constant beyond int32.
Expr flat_extent(const std::vector<Expr>& shape) {
  Expr in_32_bits = i32(1), in_64_bits = element_count(shape);
  auto known = const_int(in_64_bits);
  if (known && *known > kMostInt32) return in_64_bits;
  for (const Expr& extent : shape) in_32_bits = in_32_bits * extent;
  return in_32_bits;
}

/// Returns the number of elements from the lowest to the highest offset of a buffer with strides, as int64 if it is a
/// constant beyond int32.
Expr span_of(const Buffer& buffer) {
  Expr in_32_bits = i32(1), in_64_bits = i64(1);
  for (size_t d : indices_of(buffer.shape)) {
    if (is_const_int(buffer.shape[d], 0)) return i32(0);
    Expr steps = buffer.shape[d] - one(buffer.shape[d].dtype());
    in_32_bits = in_32_bits + steps * buffer.strides[d];
    in_64_bits = in_64_bits + cast(DataType::int_(64), steps) * cast(DataType::int_(64), buffer.strides[d]);
  }
  auto known = const_int(in_64_bits);
  return known && *known > kMostInt32 ? in_64_bits : in_32_bits;
}

/// Returns the one-dimensional view of a buffer.
Ref<Buffer> flat_view(const Ref<Buffer>& buffer) {
  Buffer flat = *buffer;
  flat.shape = {buffer->strides.empty() ? flat_extent(buffer->shape) : span_of(*buffer)};
  flat.strides.clear();
  flat.elem_offset = zero(flat.shape[0].dtype());
  flat.axis_separators.clear();
  return make(std::move(flat), buffer.span());
}

/// Casts an unsigned index to the signed type of the same width. Unsigned arithmetic wraps, so the simplifier cannot
/// prove that i + 1 is adjacent to i; an index within a buffer has the same value in both types.
Expr with_sign(const Expr& index) {
  const DataType type = index.dtype();
  return type.is_uint() && !type.is_bool() && type.bits >= 32 ? cast(DataType::int_(type.bits, type.lanes), index)
                                                              : index;
}

/// Returns elem_offset + sum of index[d] * stride[d]; strides of a buffer without any are those of row-major order.
Expr scalar_offset(const Buffer& buffer, const std::vector<Expr>& indices) {
  // Products of constants must not wrap if the buffer has more elements than its index type can count.
  bool huge = flat_extent(buffer.shape).dtype() == DataType::int_(64);
  auto as_index = [&](const Expr& e) { return huge ? cast(DataType::int_(64), e) : with_sign(e); };
  Expr sum;
  for (size_t d : indices_of(indices)) {
    Expr index = as_index(indices[d]);
    if (!buffer.strides.empty()) {
      Expr part = index * as_index(buffer.strides[d]);
      sum = sum.defined() ? sum + part : part;
    } else {
      sum = sum.defined() ? sum * as_index(buffer.shape[d]) + index : index;
    }
  }
  if (!sum.defined()) sum = i32(0);
  return buffer.elem_offset.defined() ? sum + buffer.elem_offset : sum;
}

/// Returns the offset of an access whose last index is a scalar, a ramp or another vector.
Expr flat_index(const Buffer& buffer, std::vector<Expr> indices) {
  DataType last = indices.empty() ? DataType::int_(32) : with_sign(indices.back()).dtype();
  if (last.is_scalar()) return scalar_offset(buffer, indices);
  Expr step = buffer.strides.empty() ? one(last.element()) : buffer.strides.back();
  if (const Ramp* ramp = indices.back().as<Ramp>()) {
    indices.back() = ramp->base;
    Expr base = scalar_offset(buffer, indices);
    return make<Ramp>({base, cast(base.dtype(), ramp->stride * step), ramp->lanes});
  }
  Expr vector = with_sign(indices.back());
  indices.back() = zero(last.element());
  return scalar_offset(buffer, indices) + vector * step;
}

}  // namespace

PassResult flatten_buffers(const Ref<PrimFunc>& func, PassContext&) {
  std::unordered_map<NodeRef, Ref<Buffer>> flat;
  auto view = [&](const Ref<Buffer>& buffer) {
    auto [it, is_new] = flat.try_emplace(buffer);
    if (is_new) it->second = flat_view(buffer);
    return it->second;
  };
  Stmt body = rewrite(
      func->body,
      [&](const Ref<BufferLoad>& load, Rewriter& r) -> Expr {
        Ref<BufferLoad> inner = r.descend(load);
        Expr index = flat_index(*load->buffer, inner->indices);
        return make<BufferLoad>({view(load->buffer), {index}, inner->predicate}, load.span());
      },
      [&](const Ref<BufferStore>& store, Rewriter& r) -> Stmt {
        Ref<BufferStore> inner = r.descend(store);
        Expr index = flat_index(*store->buffer, inner->indices);
        return make<BufferStore>({view(store->buffer), inner->value, {index}, inner->predicate}, store.span());
      },
      [&](const Ref<DeclBuffer>& decl, Rewriter& r) -> Stmt {
        return make<DeclBuffer>({view(decl->buffer), r(decl->body)}, decl.span());
      },
      [&](const Ref<Allocate>& allocate, Rewriter& r) -> Stmt {
        Allocate copy = *allocate;
        copy.extents = {flat_extent(allocate->extents)};
        copy.body = r(allocate->body);
        return make(std::move(copy), allocate.span());
      },
      // Buffers that other nodes declare keep their shapes.
      [&](const Ref<Buffer>& buffer, Rewriter&) -> NodeRef { return buffer; });
  // Views of parameters are declared where the function starts.
  for (const auto& [param, buffer] : reversed(func->buffer_map)) {
    if (auto* known = find_value(flat, buffer)) body = make<DeclBuffer>({*known, body});
  }
  return with_body(func, std::move(body));
}

}  // namespace tilewright::lower
