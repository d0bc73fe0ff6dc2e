// Refuse updates of memory that nothing has written before.
//
//   acc = T.alloc_buffer((8,))           refused: `acc` has no value that could be added to
//   acc[i] = acc[i] + A[i, k]            (with T.init() or a loop that sets it to zero it has one)
//
// Only what is sure is: no other statement stores to the buffer or has its address, and no condition decides whether
// the old value counts. In the interpreter each element knows whether it has a value.
//
// Needs      blocks with their inits
// Ensures    the same function
// Placement  before inits become statements; not in a search, whose programs run in the interpreter first
#include <unordered_map>

#include "ir/op.h"
#include "ir/refuse_at.h"
#include "ir/structural.h"
#include "ir/traverse.h"
#include "lower/passes.h"
#include "support/ranges.h"

namespace tilewright::lower {
namespace {

struct Writers {
  Ref<BufferStore> update;  ///< update of a value that the element had before
  bool others = false;
};

/// Whether the value of a store always depends on what was there.
bool updates(const BufferStore& store) {
  bool found = false;
  visit(
      store.value,
      [&](const Ref<BufferLoad>& load) {
        bool same = load->buffer == store.buffer && load->indices.size() == store.indices.size();
        for (size_t i = 0; same && i < load->indices.size(); ++i) same = same_expr(load->indices[i], store.indices[i]);
        found |= same;
      },
      on<And, Or>([&](const auto& both, Visitor& walk) { walk(both->a); }),
      [&](const Ref<Select>& chosen, Visitor& walk) { walk(chosen->condition); },
      [&](const Ref<Call>& call, Visitor& walk) {
        if (intrinsic_of(*call) == Intrinsic::k_if_then_else) return walk(call->arg(0));
        walk.descend(call);
      });
  return found;
}

}  // namespace

PassResult check_first_values(const Ref<PrimFunc>& func, PassContext& context) {
  if (!context.check_races) return func;
  std::unordered_map<NodeRef, Writers> allocated;
  visit(func->body, [&](const Ref<Block>& block) {
    for (const Ref<Buffer>& buffer : block->alloc_buffers) allocated[buffer->data];
  });
  auto writers_of = [&](const NodeRef& data) { return find_value(allocated, data); };
  visit(
      func->body,
      [&](const Ref<BufferStore>& store, Visitor& walk) {
        if (Writers* writers = writers_of(store->buffer->data)) {
          if (!store->predicate.defined() && updates(*store)) {
            writers->update = store;
          } else {
            writers->others = true;
          }
        }
        walk(store->value);
        for (const Expr& index : store->indices) walk(index);
      },
      // Buffers that are accessed name their memory, which is no other use of it.
      [&](const Ref<BufferLoad>& load, Visitor& walk) {
        for (const Expr& index : load->indices) walk(index);
      },
      [&](const Ref<Block>& block, Visitor& walk) {
        for (const Ref<MatchBufferRegion>& match : block->match_buffers) {
          if (Writers* writers = writers_of(match->source->buffer->data)) writers->others = true;
        }
        if (block->init.defined()) walk(block->init);
        walk(block->body);
      },
      [&](const Ref<DeclBuffer>& declared, Visitor& walk) { walk(declared->body); },
      [&](const Ref<Call>& call) {
        for (const NodeRef& arg : call->args) {
          const BufferLoad* load = arg.as<BufferLoad>();
          const Intrinsic intrinsic = intrinsic_of(*call);
          bool keeps = intrinsic != Intrinsic::k_address_of && intrinsic_row(intrinsic).effect == Effect::kPure;
          if (!load || keeps) continue;
          if (Writers* writers = writers_of(load->buffer->data)) writers->others = true;
        }
      },
      [&](const Ref<Var>& variable) {
        if (Writers* writers = writers_of(variable)) writers->others = true;
      });
  for (const auto& [data, writers] : allocated) {
    if (!writers.update.defined() || writers.others) continue;
    const std::string& name = writers.update->buffer->name;
    return refuse_at(writers.update, "lower/no-first-value",
                     "'" + name + "' is updated here, and nothing has written it before",
                     "say what it begins with: with T.init(): " + name + "[...] = ..., or a loop before");
  }
  return func;
}

}  // namespace tilewright::lower
