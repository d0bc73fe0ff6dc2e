#include "schedule/buffers.h"

#include "ir/atomic_operation.h"
#include "ir/build.h"
#include "ir/pointer_uses.h"
#include "schedule/cache.h"
#include "support/ranges.h"

namespace tilewright::schedule {

Result<Ref<Buffer>> touched_buffer(TouchedBuffer& selector, const Place& block, const std::string& code) {
  if (selector.kind.empty()) {
    auto position = buffer_position(selector.index, block.block().writes, block, "write", code);
    selector.kind = position.ok() ? "write" : "read";
  }
  const auto& regions = selector.kind == "write" ? block.block().writes : block.block().reads;
  TW_TRY(position, buffer_position(selector.index, regions, block, selector.kind, code));
  selector.index = position;
  return regions[position]->buffer;
}

bool takes_address(const NodeRef& node, const Ref<Buffer>& buffer) {
  bool found = false;
  visit(node, [&](const Ref<Call>& call, Visitor& walk) {
    if (auto atomic = AtomicOperation::of(call)) {
      for (const Expr& index : atomic->indices) walk(index);
      return walk(atomic->value);
    }
    const BufferLoad* element = addressed_element(call);
    found |= element && element->buffer == buffer;
    walk.descend(call);
  });
  return found;
}

bool is_parameter(const State& state, uint32_t func, const Ref<Buffer>& buffer) {
  const auto& buffers = state.function_at(func).as<PrimFunc>()->buffer_map;
  return any_of(buffers, [&](const auto& entry) { return entry.second == buffer; });
}

Plan with_buffer(const State& state, uint32_t func, const Ref<Buffer>& before, const Ref<Buffer>& after,
                 Ref<Block> root) {
  if (!is_parameter(state, func, before)) return give_loops(func, std::move(root), {});
  const Func& old = state.function_at(func);
  PrimFunc changed = *old.as<PrimFunc>();
  for (auto& [param, buffer] : changed.buffer_map) {
    if (buffer == before) buffer = after;
  }
  BlockRealize realize = *changed.body.as<BlockRealize>();
  realize.block = std::move(root);
  changed.body = make(std::move(realize), changed.body.span());
  Plan plan;
  plan.func = func;
  plan.functions.emplace_back(state.function_name(func), make(std::move(changed), old.span()));
  return plan;
}

}  // namespace tilewright::schedule
