#include "schedule/inline.h"

#include "analysis/binding_reads.h"
#include "analysis/block_access_region.h"
#include "analysis/block_facts.h"
#include "analysis/cover.h"
#include "analysis/two_names.h"
#include "arith/analyzer.h"
#include "arith/fingerprint.h"
#include "ir/build.h"
#include "ir/op.h"
#include "ir/traverse.h"
#include "support/ranges.h"

namespace tilewright::schedule {

namespace {

Status require_known_once(const Place& place, const char* code) {
  const auto twice = analysis::why_two_names(*place.tree, place.at);
  if (!twice) return Ok{};
  return refuse(code, *twice, "let the block use one of these buffers alone");
}

/// `store`: the only store of the block's body, or null.
Result<Assignment> assignment_in(const Place& place, const BufferStore* store, const char* code) {
  const Block& block = place.block();
  if ((*place.tree)[place.at].scope == analysis::Tree::kNone) {
    return refuse(code, describe(place) + " is the root block, which stands in no other", place,
                  "name one of the blocks inside");
  }
  const auto& facts = analysis::BlockFacts::of(place.tree->block_ref(place.at));
  bool plain = facts.role == analysis::BlockRole::kComplete && store && !store->predicate.defined() &&
               block.alloc_buffers.empty() && block.match_buffers.empty();
  bool of_element = store && store->value.dtype() == store->buffer->dtype;
  TW_RETURN_IF_ERROR(require_known_once(place, code));
  if (plain && of_element) return Assignment{store, store->buffer};
  std::string why = !facts.why.empty()                              ? facts.why
                    : facts.role == analysis::BlockRole::kReduction ? "it is a reduction"
                    : facts.role == analysis::BlockRole::kUpdate    ? "it updates elements that have a value before"
                    : plain                                         ? "it stores a vector"
                                                                    : "its body is more than one store";
  return refuse(code, describe(place) + " is not one plain assignment: " + why, place,
                "blocks whose body is one store of a scalar, without T.init(), can be inlined");
}

}  // namespace

Result<Assignment> assignment_of(const Place& place, const char* code) {
  return assignment_in(place, place.block().body.as<BufferStore>(), code);
}

Result<NestedAssignment> nested_assignment_of(const Place& place, const char* code) {
  NestedAssignment nested;
  const Stmt* body = &place.block().body;
  for (const For* loop = body->as<For>(); loop && loop->kind == ForKind::kSerial; loop = body->as<For>()) {
    nested.loops.push_back(loop);
    body = &loop->body;
  }
  TW_TRY(assignment, assignment_in(place, body->as<BufferStore>(), code));
  static_cast<Assignment&>(nested) = assignment;
  return nested;
}

std::optional<std::vector<Ref<Var>>> axes_by_dimension(const Block& block, const std::vector<Expr>& indices) {
  std::optional<arith::Analyzer> analyzer;
  auto shortest_form = [&](const Expr& index) {
    if (!analyzer) {
      analyzer.emplace();
      for (const Ref<IterVar>& axis : block.iter_vars) analyzer->bind(axis->var, axis->dom);
    }
    return analyzer->simplify(index);
  };
  auto axis_of = [&](const Expr& index) -> Ref<Var> {
    for (const Ref<IterVar>& axis : block.iter_vars) {
      if (index == axis->var) return axis->var;
    }
    return Ref<Var>();
  };
  std::vector<Ref<Var>> result;
  for (const Expr& index : indices) {
    Ref<Var> found = axis_of(index);
    if (!found.defined() && !is_const_int(index, 0)) {
      Expr shortest = shortest_form(index);  // v // 8 * 8 + v % 8 is the axis, too
      found = axis_of(shortest);
      if (!found.defined() && !is_const_int(shortest, 0)) return std::nullopt;
    }
    if (found.defined() && is_contained(result, found)) return std::nullopt;
    result.push_back(std::move(found));
  }
  for (const Ref<IterVar>& axis : block.iter_vars) {
    bool named = is_contained(result, axis->var);
    if (!named && !is_const_int(axis->dom->extent, 1)) return std::nullopt;
  }
  return result;
}

VarMap bind_axes(const Block& block, const std::vector<Ref<Var>>& axes, const std::vector<Expr>& indices) {
  VarMap map;
  for (const Ref<IterVar>& axis : block.iter_vars) map[axis->var] = axis->dom->min;
  for (size_t d : indices_of(axes)) {
    if (axes[d].defined()) map[axes[d]] = cast(axes[d].dtype(), indices[d]);
  }
  return map;
}

std::optional<arith::InvertedMap> invert_access(const Block& block, const std::vector<Expr>& indices,
                                                arith::Analyzer& analyzer) {
  IndexMap map;
  VarMap from_zero;
  std::vector<Expr> extents;
  for (const Ref<IterVar>& axis : block.iter_vars) {
    map.initial_indices.emplace_back(var(axis->var->name_hint, axis->var.dtype()));
    from_zero[axis->var] = axis->dom->min + map.initial_indices.back();
    extents.push_back(axis->dom->extent);
  }
  for (const Expr& index : indices) map.final_indices.push_back(substitute(index, from_zero));
  auto inverted = arith::invert(map, extents, analyzer);
  if (!inverted.ok() || inverted->holes) return std::nullopt;
  return std::move(*inverted);
}

VarMap axes_at(const Block& block, const arith::InvertedMap& back, const std::vector<Expr>& element,
               arith::Analyzer& analyzer) {
  VarMap indices, axes;
  for (size_t d : indices_of(element)) {
    const Def<Var>& index = back.inverse->initial_indices[d];
    indices[index] = cast(index.dtype(), element[d]);
  }
  for (size_t i : indices_of(block.iter_vars)) {
    const Ref<IterVar>& axis = block.iter_vars[i];
    Expr offset = cast(axis->var.dtype(), substitute(back.inverse->final_indices[i], indices));
    axes[axis->var] = analyzer.simplify(axis->dom->min + offset);
  }
  return axes;
}

std::optional<analysis::Obstacle> why_inputs_change(const Tree& tree, int block) {
  auto obstacle = analysis::why_inputs_incomplete(tree, block);
  if (!obstacle) return obstacle;
  const analysis::Scope& scope = analysis::Scope::of(tree, tree[block].scope);
  std::vector<Ref<BufferRegion>> reads = analysis::binding_reads(tree, block);
  const auto& declared = tree.block_at(block).reads;
  append_range(reads, declared);
  for (int at : tree.loops_above(block)) {
    for (const Expr& bound : {tree.for_at(at).min, tree.for_at(at).extent}) analysis::add_single_reads(bound, reads);
  }
  for (const Ref<BufferRegion>& read : reads) {
    for (int child : scope.writers(read->buffer)) {
      int writer = scope.position(tree, child);
      int both[] = {writer, block};
      int around = tree.common_ancestor(both);
      if (writer >= block || tree[around].is_loop || !tree.loops_above(around).empty()) return obstacle;
    }
  }
  return std::nullopt;
}

namespace {

/// Whether int32 or int64 arithmetic of data may leave its type.
bool may_wrap(const Expr& value, arith::Analyzer& analyzer) {
  bool wraps = false;
  auto look = [&](const auto& node, Visitor& walk) {
    walk.descend(node);
    if (wraps || !arith::is_index(node.dtype()) || effect_of(node) == Effect::kPure) return;
    const Expr e = node;
    const BinaryOperands operands = binary_operands(e);
    const arith::ConstIntBound a = analyzer.const_int_bound(*operands.a), b = analyzer.const_int_bound(*operands.b);
    const arith::ConstIntBound type = arith::ConstIntBound::of_type(node.dtype());
    for (__int128 x : {a.min_value, a.max_value}) {
      for (__int128 y : {b.min_value, b.max_value}) {
        const __int128 end = e.is<Add>() ? x + y : e.is<Sub>() ? x - y : x * y;
        wraps |= end < type.min_value || end > type.max_value;
      }
    }
  };
  visit(value, on<Add, Sub, Mul>(look));
  return wraps;
}

/// Whether the block loads the buffer in indices, regions or loop bounds.
bool is_index_of(const BlockRealize& consumer, const Ref<Buffer>& buffer) {
  bool is_index = false;
  auto look = [&](const Expr& e) {
    visit(e, [&](const Ref<BufferLoad>& load) { is_index |= load->buffer == buffer; });
  };
  for (const Expr& value : consumer.iter_values) look(value);
  visit(
      consumer.block,
      [&](const Ref<BufferLoad>& load) {
        for (const Expr& index : load->indices) look(index);
      },
      [&](const Ref<BufferStore>& store) {
        for (const Expr& index : store->indices) look(index);
      },
      [&](const Ref<For>& loop) {
        look(loop->min);
        look(loop->extent);
      });
  return is_index;
}

}  // namespace

Status check_wraps_nowhere(const Place& producer, const Assignment& made, int consumer, const char* code) {
  const Tree& tree = *producer.tree;
  if (!arith::is_index(made.buffer->dtype) || !is_index_of(*tree.realize_at(consumer), made.buffer)) return Ok{};
  auto analyzer = analysis::analyzer_above(tree, producer.at);
  if (!may_wrap(made.store->value, analyzer)) return Ok{};
  return refuse(code,
                describe_block(tree.block_at(consumer)) + " takes '" + made.buffer->name + "' as an index, and what " +
                    describe(producer) +
                    " computes of data may leave its type: stored, it wraps, in an index it must not",
                {producer.node(), tree.stmt(consumer)},
                "declare what the data are, T.assume_buffer_domain(I, [0, n]), or move the block with compute_at()");
}

Ref<Block> with_reads_of_indices(Block block, SpanId span) {
  bool found = false;
  auto look = [&](const std::vector<Ref<BufferRegion>>& regions) {
    for (const Ref<BufferRegion>& region : regions) {
      for (const Ref<Range>& range : region->region) visit(range, [&](const Ref<BufferLoad>&) { found = true; });
    }
  };
  look(block.reads);
  look(block.writes);
  return found ? with_found_reads(std::move(block), span) : make(std::move(block), span);
}

Ref<Block> with_found_reads(Block block, SpanId span, const analysis::PlainStore* part) {
  Ref<Block> draft = make<Block>(Block(block), span);
  if (part) analysis::PlainBlock::analyze_inlined(*draft, *part);
  analysis::BlockAccess found = analysis::block_access_region(draft);
  auto behind_pointer = [&](const Ref<BufferRegion>& read) {
    return any_of(found.opaque, [&](const Ref<Var>& pointer) { return pointer == read->buffer->data; });
  };
  std::erase_if(block.reads, [&](const Ref<BufferRegion>& read) { return !behind_pointer(read); });
  std::erase_if(found.reads, behind_pointer);
  append_range(block.reads, found.reads);
  Ref<Block> result = make(std::move(block), span);
  analysis::PlainBlock::carry_over(*draft, *result);
  return result;
}

}  // namespace tilewright::schedule
