#include "lower/loops/multi_buffering.h"

#include "ir/build.h"
#include "ir/refuse_at.h"
#include "ir/traverse.h"
#include "lower/gpu/kernel.h"
#include "support/ranges.h"

namespace tilewright::lower {
namespace {

/// Each version of a buffer begins at a multiple of this many bytes, the widest vector access.
constexpr int64_t kVersionAlignment = 16;

Versions with_versions(const Ref<Buffer>& buffer, int64_t count) {
  Buffer copy = *buffer;
  Expr size = i32(1);
  for (const Expr& extent : buffer->shape) size = size * extent;
  Expr stride = size;
  if (!buffer->strides.empty() && !buffer->shape.empty()) stride = buffer->strides[0] * buffer->shape[0];
  const int64_t bytes = buffer->dtype.bytes() * buffer->dtype.lanes;
  auto known = const_int(stride);
  const bool is_padded = is_shared_scope(buffer->scope()) && known && *known * bytes % kVersionAlignment != 0 &&
                         kVersionAlignment % bytes == 0;
  if (is_padded) {
    const int64_t unit = kVersionAlignment / bytes;
    stride = int_imm(stride.dtype(), (*known + unit - 1) / unit * unit);
    if (copy.strides.empty()) {
      copy.strides.resize(copy.shape.size());
      Expr inner = one(stride.dtype());
      for (size_t d = copy.shape.size(); d-- > 0;) {
        copy.strides[d] = inner;
        inner = inner * copy.shape[d];
      }
    }
  }
  if (!copy.strides.empty()) copy.strides.insert(copy.strides.begin(), stride);
  const DataType index = buffer->shape.empty() ? DataType::int_(32) : buffer->shape[0].dtype();
  copy.shape.insert(copy.shape.begin(), int_imm(index, count));
  return {make(std::move(copy), buffer.span()), count, stride, size};
}

/// Arguments of a call that point to a buffer. The argument after each is the offset in the buffer.
struct PointerArguments {
  std::vector<size_t> positions;
  bool counts_fragments = false;  ///< the offset counts fragments, not elements
};

PointerArguments pointer_arguments(const Call& call) {
  switch (intrinsic_of(call)) {
    case Intrinsic::k_tvm_access_ptr:
      return {{1}};
    case Intrinsic::k_tvm_mma_sync:
      return {{0, 2, 4, 6}, true};
    case Intrinsic::k_ptx_ldmatrix:
      return {{3, 5}};
    case Intrinsic::k_ptx_mma:
      return {{6, 8, 10}};
    case Intrinsic::k_mma_fill:
      return {{1}};
    case Intrinsic::k_mma_store:
      return {{3}};
    default:
      return {};
  }
}

}  // namespace

Ref<Buffer> MultiBuffering::add(const Ref<Buffer>& buffer, int64_t count) {
  Versions versions = with_versions(buffer, count);
  Ref<Buffer> result = versions.buffer;
  versions_.emplace(buffer->data, std::move(versions));
  return result;
}

Result<Stmt> MultiBuffering::use_versions(const Ref<For>& loop, const Stmt& step) {
  const Expr iteration = loop->loop_var - loop->min;
  const VersionOfIteration version_of_iteration = [&](const Versions& versions) {
    return floormod(iteration, versions.count);
  };
  auto indices = [&](const Versions& versions, const std::vector<Expr>& before) {
    std::vector<Expr> after = {cast(versions.buffer->shape[0].dtype(), version_of_iteration(versions))};
    append_range(after, before);
    return after;
  };
  Stmt result = rewrite(
      step,
      [&](const Ref<BufferLoad>& load, Rewriter& r) -> Expr {
        Ref<BufferLoad> inner = r.descend(load);
        const Versions* found = find(load->buffer->data);
        if (!found) return inner;
        return make<BufferLoad>({found->buffer, indices(*found, inner->indices), inner->predicate}, load.span());
      },
      [&](const Ref<BufferStore>& store, Rewriter& r) -> Stmt {
        Ref<BufferStore> inner = r.descend(store);
        const Versions* found = find(store->buffer->data);
        if (!found) return inner;
        return make<BufferStore>({found->buffer, inner->value, indices(*found, inner->indices), inner->predicate},
                                 store.span());
      },
      [&](const Ref<BufferRegion>& region, Rewriter& r) -> NodeRef {
        Ref<BufferRegion> inner = r.descend(region);
        const Versions* found = find(region->buffer->data);
        if (!found) return inner;
        BufferRegion copy{found->buffer, inner->region};
        const DataType type = found->buffer->shape[0].dtype();
        copy.region.insert(copy.region.begin(), range(cast(type, version_of_iteration(*found)), one(type)));
        return make(std::move(copy), region.span());
      },
      [&](const Ref<Call>& call, Rewriter& r) -> Expr {
        return use_versions_in_call(r.descend(call), version_of_iteration);
      },
      [&](const Ref<Buffer>& buffer, Rewriter&) -> NodeRef { return buffer; });
  if (error_) return *error_;
  return result;
}

Expr MultiBuffering::use_versions_in_call(const Ref<Call>& call, const VersionOfIteration& version_of_iteration) {
  PointerArguments pointers = pointer_arguments(*call);
  const bool is_step = is_fragment_step(call);
  Call copy = *call;
  auto move = [&](size_t pointer, size_t offset_arg, bool counts_fragments) {
    const Versions* found = offset_arg < copy.args.size() ? find(copy.args[pointer]) : nullptr;
    if (!found) return;
    Expr by = found->stride;
    if (counts_fragments) {
      auto shape = fragments_.shape_of(copy.args[pointer]);
      auto all = const_int(found->size);
      const int64_t elements = shape ? shape->rows() * shape->columns() : 0;
      if (!all || elements == 0 || *all % elements != 0 || *all != const_int(found->stride)) return fail_pointer(call);
      by = i32(*all / elements);
    }
    const Expr before(copy.args[offset_arg]);
    copy.args[offset_arg] = before + cast(before.dtype(), version_of_iteration(*found) * by);
  };
  // wmma loads, fills and stores: the fragment is argument 0, its index argument 4.
  if (is_step && !pointers.counts_fragments) {
    move(0, 4, true);
  } else {
    for (size_t pointer : pointers.positions) move(pointer, pointer + 1, pointers.counts_fragments);
  }
  for (size_t i : indices_of(call->args)) {
    const bool known = (is_step && i == 0) || is_contained(pointers.positions, i);
    if (!known && find(call->args[i])) fail_pointer(call);
  }
  return make(std::move(copy), call.span());
}

void MultiBuffering::fail_pointer(const Ref<Call>& call) {
  if (error_) return;
  error_ = refuse_at(call, "lower/pipeline-order",
                     "a software pipeline needs several versions of a buffer, and this call takes a pointer to it",
                     "pass T.access_ptr of the buffer, or give the statements that use it one stage");
}

const Versions* MultiBuffering::find(const NodeRef& data) const { return find_value(versions_, data); }

}  // namespace tilewright::lower
