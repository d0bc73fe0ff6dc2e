#include "codegen/kernel_alignment.h"

#include <algorithm>
#include <unordered_map>

#include "ir/async_copy.h"
#include "ir/build.h"
#include "ir/fragments.h"
#include "ir/traverse.h"
#include "support/ranges.h"

namespace tilewright::codegen {
namespace {

using Alignments = std::unordered_map<NodeRef, int64_t>;  ///< by data pointer, in bytes

/// A fragment begins at a multiple of the bytes that a thread holds of it, at most those of 8 registers.
constexpr int64_t kFragmentBytes = 32;

/// The alignment that accesses of more than an element need, in the function and in those it calls.
Alignments alignments_in(const PrimFunc& func, const Ref<Module>& module) {
  Alignments needed;
  auto need = [&](const NodeRef& data, int64_t bytes) {
    int64_t& known = needed[data];
    known = std::max(known, bytes);
  };
  auto need_vector = [&](const Buffer& buffer, const std::vector<Expr>& indices) {
    const int lanes = indices.empty() ? 1 : indices.back().dtype().lanes;
    if (lanes > 1) need(buffer.data, int64_t{lanes} * buffer.dtype.bytes());
  };
  visit(func.body,
        on<BufferStore, BufferLoad>([&](const auto& access) { need_vector(*access->buffer, access->indices); }),
        [&](const Ref<Call>& call) {
          if (auto copy = AsyncCopy::of(call)) need(copy->from, copy->bytes);
          if (is_fragment_step(call)) {
            for (const NodeRef& argument : call->args) {
              if (auto memory = Fragments::memory_of(argument)) need(memory->data, kFragmentBytes);
            }
          }
          const GlobalVar* name = call->op.as<GlobalVar>();
          if (const PrimFunc* callee = name ? module->get(name->name_hint).as<PrimFunc>() : nullptr) {
            const Alignments inside = alignments_in(*callee, module);
            for (size_t i = 0; i < callee->params.size() && i < call->args.size(); ++i) {
              const Ref<Buffer> buffer = callee->buffer_of(callee->params[i]);
              const NodeRef data = buffer.defined() ? NodeRef(buffer->data) : NodeRef(callee->params[i]);
              if (auto* alignment = find_value(inside, data)) need(call->args[i], *alignment);
            }
          }
        });
  return needed;
}

}  // namespace

void align_for_kernels(Signature& signature, const PrimFunc& func, const Ref<Module>& module) {
  const Alignments needed = alignments_in(func, module);
  for (Signature::Param& param : signature.params) {
    if (!param.buffer.defined()) continue;
    if (auto* found = find_value(needed, param.buffer->data)) param.alignment = std::max(param.alignment, *found);
  }
}

}  // namespace tilewright::codegen
