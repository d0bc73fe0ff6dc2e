// Store the elements of a buffer in another type.
//
//   Before                                  After  sch.unsafe_set_dtype(B, 0, "float16")
//   B = T.alloc_buffer((16,))               B = T.alloc_buffer((16,), "float16")
//   for i in range(16):                     for i in range(16):
//     with T.block("B"):                      with T.block("B"):
//       vi = T.axis.spatial(16, i)              vi = T.axis.spatial(16, i)
//       B[vi] = A[vi] * 2.0                     B[vi] = T.Cast("float16", A[vi] * 2.0)
//
// Unsafe: values that the new type does not hold are rounded or cut off. What converts an element to the new type
// anyway takes it as it is.
//
// Requires  P1 the block writes a buffer at that position
//           P2 the type is one of numbers
//           P3 a block allocates the buffer, and its pointer is used by nothing but loads and stores
#include <unordered_map>

#include "ir/build.h"
#include "ir/traverse.h"
#include "schedule/cache.h"
#include "schedule/primitive.h"
#include "schedule/primitives/unsafe_set_dtype.h"
#include "support/ranges.h"

namespace tilewright::schedule {
namespace {

Ref<Buffer> with_type(const Ref<Buffer>& old, DataType type) {
  Buffer changed = *old;
  Var data = *old->data;
  const PointerType* pointer = data.type_annotation.as<PointerType>();
  data.type_annotation =
      make<PointerType>({make<PrimType>({type}), pointer ? pointer->storage_scope : std::string("global")});
  changed.data = make(std::move(data), old->data.span());
  changed.dtype = type;
  return make(std::move(changed));
}

DataType lanes_as(DataType type, DataType like) {
  type.lanes = like.lanes;
  type.scalable = like.scalable;
  return type;
}

/// Whether the type has every number of the other one.
bool holds_all(DataType type, DataType other) {
  bool same_kind = (type.is_int() && other.is_int()) || (type.is_uint() && other.is_uint());
  if (same_kind) return type.bits >= other.bits;
  bool wide = type.is_float() && type.bits >= 32;
  if (other.is_float()) return wide && (other.bits < type.bits || type == other);
  return wide && other.is_integral() && other.bits <= type.bits / 2;
}

}  // namespace

Result<Plan> plan(const State& state, const UnsafeSetDType& step) {
  TW_TRY(block, state.find(step.block));
  const Tree& tree = *block.tree;
  TW_TRY(position, buffer_position(step.buffer_index, block.block().writes, block, "write", "unsafe_set_dtype/P1"));
  const Ref<Buffer>& buffer = block.block().writes[position]->buffer;
  auto type = DataType::parse(step.dtype);
  if (!type || type->is_handle() || type->is_void() || !type->is_scalar()) {
    return refuse("unsafe_set_dtype/P2", "'" + step.dtype + "' is not a type of numbers", block, "float16, int8, ...");
  }
  bool allocated = false;
  for (int at : tree.blocks()) {
    const auto& own = tree.block_at(at).alloc_buffers;
    allocated |= any_of(own, [&](const auto& known) { return known == buffer; });
  }
  if (!allocated) {
    return refuse("unsafe_set_dtype/P3", "no block allocates '" + buffer->name + "'", block,
                  "what callers pass keeps its type: sch.cache_write makes a copy");
  }
  if (*type == buffer->dtype) return give_loops(block.func, {}, {});
  std::unordered_map<NodeRef, Ref<Buffer>> changed{{buffer, with_type(buffer, *type)}};
  Ref<Block> root = tree.block_ref(0);
  NodeRef other;
  visit(
      root,
      [&](const Ref<MatchBufferRegion>& match) {
        if (changed.count(match->source->buffer)) changed[match->buffer] = with_type(match->buffer, *type);
      },
      [&](const Ref<Call>& call) {
        for (const NodeRef& arg : call->args) {
          for (const auto& [old, with] : changed) {
            if (arg == old.as<Buffer>()->data) other = call;
          }
        }
      },
      [&](const Ref<DeclBuffer>& decl) {
        for (const auto& [old, with] : changed) {
          if (decl->buffer->data == old.as<Buffer>()->data) other = decl;
        }
      });
  if (other.defined()) {
    return refuse("unsafe_set_dtype/P3", "the pointer of '" + buffer->name + "' is used here", {other, block.node()},
                  "give what uses the pointer a copy with cache_read() or cache_write()");
  }
  auto replacement_of = [&](const Ref<Buffer>& old) -> const Ref<Buffer>* { return find_value(changed, old); };
  auto load_of = [&](const BufferLoad& old, const Ref<Buffer>& with, SpanId span, Rewriter& walk) -> Expr {
    BufferLoad changed_load{with, {}, walk(old.predicate)};
    for (const Expr& index : old.indices) changed_load.indices.push_back(walk(index));
    return make(std::move(changed_load), span);
  };
  Ref<Block> after = rewrite(
      root,
      [&](const Ref<Cast>& old, Rewriter& walk) -> Expr {
        const BufferLoad* converted = old->value.as<BufferLoad>();
        const Ref<Buffer>* with = converted ? replacement_of(converted->buffer) : nullptr;
        if (!with || old.dtype() != lanes_as(*type, old.dtype())) return walk.descend(old);
        return load_of(*converted, *with, old->value.span(), walk);
      },
      [&](const Ref<Buffer>& old, Rewriter& walk) -> NodeRef {
        const Ref<Buffer>* with = replacement_of(old);
        return with ? NodeRef(*with) : NodeRef(walk.descend(old));
      },
      [&](const Ref<BufferLoad>& old, Rewriter& walk) -> Expr {
        const Ref<Buffer>* with = replacement_of(old->buffer);
        if (!with) return walk.descend(old);
        return cast(old.dtype(), load_of(*old, *with, old.span(), walk));
      },
      [&](const Ref<BufferStore>& old, Rewriter& walk) -> Stmt {
        const Ref<Buffer>* with = replacement_of(old->buffer);
        if (!with) return walk.descend(old);
        BufferStore changed_store{
            *with, cast(lanes_as(*type, old->value.dtype()), walk(old->value)), {}, walk(old->predicate)};
        for (const Expr& index : old->indices) changed_store.indices.push_back(walk(index));
        return make(std::move(changed_store), old.span());
      });
  Plan plan = give_loops(block.func, std::move(after), {});
  if (!holds_all(*type, buffer->dtype)) {
    plan.stated = "values of '" + buffer->name + "' lose nothing that matters as " + type->str();
  }
  return plan;
}

}  // namespace tilewright::schedule
