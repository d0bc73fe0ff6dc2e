// Give every buffer one dimension, with the offset of an element spelled out.
//
//   Before                                  After
//   A: T.Buffer((16, 64))                   A: T.Buffer((16, 64)); A_1 = T.decl_buffer((1024,), data=A.data)
//   A[i, j] = 0.0                           A_1[i * 64 + j] = 0.0
//
// Kernels of a GPU compute with scalars. A buffer of vectors is one of their elements there, which are contiguous:
//
//   A: T.Buffer((16,), "float32x4")         A_1 = T.decl_buffer((64,), data=A.data)
//   A[i] = A[i] * x                         A_1[T.Ramp(i * 4, 1, 4)] = A_1[T.Ramp(i * 4, 1, 4)] * x
//
// Needs      no blocks
// Ensures    accesses have one index, counted in elements from the buffer's data pointer: strides and element offsets
//            are in it. Parameters keep their shapes in the buffer map, which describes arguments to callers. On a GPU,
//            elements are scalars.
// Placement  after the passes that change shapes
#include "ir/build.h"
#include "ir/pointer_uses.h"
#include "ir/strides.h"
#include "ir/traverse.h"
#include "lower/gpu/lane.h"
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
Ref<Buffer> flat_view(Buffer flat, SpanId span) {
  flat.shape = {flat.strides.empty() ? flat_extent(flat.shape) : span_of(flat)};
  flat.strides.clear();
  flat.elem_offset = zero(flat.shape[0].dtype());
  flat.axis_separators.clear();
  return make<Buffer>(std::move(flat), span);
}

/// Returns a buffer of vectors as one of their elements: lanes are its last dimension.
Buffer by_elements(const Buffer& buffer) {
  const int lanes = buffer.dtype.lanes;
  Buffer elements = buffer;
  elements.dtype = buffer.dtype.element();
  elements.shape.push_back(i32(lanes));
  if (!buffer.strides.empty()) {
    for (Expr& stride : elements.strides) stride = stride * lanes;
    elements.strides.push_back(i32(1));
  }
  if (buffer.elem_offset.defined()) elements.elem_offset = buffer.elem_offset * lanes;
  return elements;
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
  if (indices.back().is<Ramp>()) {
    const Ref<Ramp> ramp = indices.back().cast<Ramp>();
    indices.back() = ramp->base;
    Expr base = scalar_offset(buffer, indices);
    return make<Ramp>({base, cast(base.dtype(), ramp->stride * step), ramp->lanes});
  }
  Expr vector = with_sign(indices.back());
  indices.back() = zero(last.element());
  return scalar_offset(buffer, indices) + vector * step;
}

/// Returns the offsets of the elements of a vector, or of several, in a buffer by_elements().
Expr index_of_elements(const Buffer& elements, std::vector<Expr> indices) {
  const int lanes = static_cast<int>(*const_int(elements.shape.back()));
  if (indices.empty() || indices.back().dtype().is_scalar()) {
    if (!indices.empty() && indices.back().dtype().bits < 32) indices.back() = cast(DataType::int_(32), indices.back());
    const DataType type = indices.empty() ? DataType::int_(32) : with_sign(indices.back()).dtype();
    indices.push_back(ramp(zero(type), one(type), lanes));
    return flat_index(elements, std::move(indices));
  }
  const Expr vectors = indices.back();
  std::vector<Expr> parts, order;
  for (int number = 0; number < vectors.dtype().lanes; ++number) {
    indices.back() = Lane(number)(vectors);
    parts.push_back(index_of_elements(elements, indices));
    for (int lane = 0; lane < lanes; ++lane) order.push_back(i32(order.size()));
  }
  return make<Shuffle>({std::move(parts), std::move(order)});
}

class Flattener {
 public:
  explicit Flattener(bool splits_vectors) : splits_vectors_(splits_vectors) {}

  Stmt run(const Stmt& body) {
    return rewrite(
        body,
        [&](const Ref<BufferLoad>& load, Rewriter& r) -> Expr {
          Ref<BufferLoad> inner = r.descend(load);
          return make<BufferLoad>({view(load->buffer), {index(load->buffer, inner->indices)}, inner->predicate},
                                  load.span());
        },
        [&](const Ref<BufferStore>& store, Rewriter& r) -> Stmt {
          Ref<BufferStore> inner = r.descend(store);
          return make<BufferStore>(
              {view(store->buffer), inner->value, {index(store->buffer, inner->indices)}, inner->predicate},
              store.span());
        },
        [&](const Ref<Call>& call, Rewriter& r) -> Expr {
          const BufferLoad* element = addressed_element(call);
          if (!element || !is_split(element->buffer->dtype)) return r.descend(call);
          // The address of a vector is that of its first element.
          Call copy = *r.descend(call);
          const BufferLoad& vector = *copy.args[0].as<BufferLoad>();
          copy.args[0] = make<BufferLoad>({vector.buffer, {Lane(0)(vector.indices[0])}, {}}, copy.args[0].span());
          return make<Call>(std::move(copy), call.span());
        },
        [&](const Ref<DeclBuffer>& decl, Rewriter& r) -> Stmt {
          return make<DeclBuffer>({view(decl->buffer), r(decl->body)}, decl.span());
        },
        [&](const Ref<Allocate>& allocate, Rewriter& r) -> Stmt {
          Allocate copy = *allocate;
          std::vector<Expr> extents = allocate->extents;
          if (is_split(copy.dtype)) {
            extents.push_back(i32(copy.dtype.lanes));
            copy.dtype = copy.dtype.element();
          }
          copy.extents = {flat_extent(extents)};
          copy.body = r(allocate->body);
          return make<Allocate>(std::move(copy), allocate.span());
        },
        // Buffers that other nodes declare keep their shapes.
        [&](const Ref<Buffer>& buffer, Rewriter&) -> NodeRef { return buffer; });
  }

  /// Returns the view of a buffer, if there is one.
  const Ref<Buffer>* find(const Ref<Buffer>& buffer) const { return find_value(flat_, buffer); }

 private:
  bool is_split(DataType type) const { return splits_vectors_ && type.is_vector(); }

  Ref<Buffer> view(const Ref<Buffer>& buffer) {
    auto [it, is_new] = flat_.try_emplace(buffer);
    if (is_new) it->second = flat_view(is_split(buffer->dtype) ? by_elements(*buffer) : *buffer, buffer.span());
    return it->second;
  }

  Expr index(const Ref<Buffer>& buffer, const std::vector<Expr>& indices) const {
    return is_split(buffer->dtype) ? index_of_elements(by_elements(*buffer), indices) : flat_index(*buffer, indices);
  }

  bool splits_vectors_;
  std::unordered_map<NodeRef, Ref<Buffer>> flat_;
};

}  // namespace

PassResult flatten_buffers(const Ref<PrimFunc>& func, PassContext& context) {
  Flattener flattener(context.target.is_in(TargetSet::kGpu));
  Stmt body = flattener.run(func->body);
  // Views of parameters are declared where the function starts.
  for (const auto& [param, buffer] : reversed(func->buffer_map)) {
    if (auto* known = flattener.find(buffer)) body = make<DeclBuffer>({*known, body});
  }
  return with_body(func, std::move(body));
}

}  // namespace tilewright::lower
