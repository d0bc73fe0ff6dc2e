#include "ir/pointer_uses.h"

#include <algorithm>

#include "ir/build.h"
#include "ir/fragments.h"
#include "ir/traverse.h"
#include "ir/warp_steps.h"
#include "support/ranges.h"

namespace tilewright {
namespace {

/// Returns how many elements the call stores to behind the pointer, by all lanes together; 0: not known.
int64_t elements_stored(const Ref<Call>& call) {
  if (auto load = WarpLoad::of(call)) return load->to.count * kWarpLanes;
  if (auto fill = WarpCopy::of(call); fill && fill->is_fill) return fill->registers.count * kWarpLanes;
  const Intrinsic intrinsic = intrinsic_of(*call);
  const bool is_fragment =
      intrinsic == Intrinsic::k_tvm_load_matrix_sync || intrinsic == Intrinsic::k_tvm_fill_fragment;
  if (!is_fragment || call->args.size() < 6) return 0;
  auto shape = Fragments(make<Evaluate>({Expr(call)})).shape_of(call->args[0]);
  return shape ? shape->rows() * shape->columns() : 0;
}

/// Whether all lanes of a warp run the loop, one iteration each.
bool is_warp(const For& loop) {
  return loop.kind == ForKind::kThreadBinding && loop.thread_binding->thread_tag == "threadIdx.x" &&
         is_const_int(loop.extent, kWarpLanes);
}

}  // namespace

Ref<Var> pointer_in(const Expr& value) {
  Ref<Var> found;
  visit(
      value,
      [&](const Ref<Var>& v) {
        if (v.dtype().is_handle()) found = v;
      },
      [&](const Ref<BufferLoad>& load, Visitor&) { found = load->buffer->data; });
  return found;
}

std::vector<PointerUse> pointer_uses(const Call& call) {
  constexpr bool kReads = true, kWrites = true;
  switch (intrinsic_of(call)) {
    case Intrinsic::k_tvm_load_matrix_sync:
    case Intrinsic::k_tvm_fill_fragment:
      return {{0, false, kWrites}};
    case Intrinsic::k_tvm_store_matrix_sync:
      return {{0, kReads, false}};
    case Intrinsic::k_tvm_mma_sync:
      return {{0, false, kWrites}, {2, kReads, false}, {4, kReads, false}, {6, kReads, false}};
    case Intrinsic::k_ptx_ldmatrix:
      return {{3, false, kWrites}};
    case Intrinsic::k_ptx_mma:
      return {{6, kReads, false}, {8, kReads, false}, {10, kReads, kWrites}};
    case Intrinsic::k_mma_fill:
      return {{1, false, kWrites}};
    case Intrinsic::k_mma_store:
      return {{3, kReads, false}};
    default:
      return {};
  }
}

const BufferLoad* addressed_element(const NodeRef& e) {
  const Call* call = e.as<Call>();
  if (!call || intrinsic_of(*call) != Intrinsic::k_address_of || call->args.empty()) return nullptr;
  return call->args[0].as<BufferLoad>();
}

bool replaces_view(const Block& block, const NodeRef& buffer) {
  auto touches = [&](const Ref<BufferRegion>& region) { return region->buffer == buffer; };
  if (any_of(block.reads, touches)) return false;
  if (std::ranges::count_if(block.writes, touches) != 1 || block.init.defined()) return false;
  Ref<Buffer> view;
  for (const Ref<MatchBufferRegion>& match : block.match_buffers) {
    if (match->source->buffer != buffer) continue;
    if (view.defined()) return false;
    view = match->buffer;
  }
  if (!view.defined()) return false;
  // One instruction, which all lanes execute.
  Stmt body = block.body;
  if (const For* loop = body.as<For>(); loop && is_warp(*loop)) {
    Stmt inner = loop->body;
    body = inner;
  }
  const Evaluate* step = body.as<Evaluate>();
  const Call* call = step ? step->value.as<Call>() : nullptr;
  if (!call || (is_warp_step(step->value) && block.body.is<Evaluate>())) return false;
  const std::vector<PointerUse> uses = pointer_uses(*call);
  int64_t size = 1;
  for (const Expr& extent : view->shape) size *= const_int(extent).value_or(0);
  return any_of(uses, [&](const PointerUse& use) {
    return use.writes && !use.reads && use.at < call->args.size() && call->args[use.at] == view->data && size > 0 &&
           elements_stored(step->value.borrow<Call>()) == size;
  });
}

}  // namespace tilewright
