// Round the domains of a block's axes up, with copies of its buffers that are padded with zeros.
//
//   Before                                     After  sch.pad_einsum(C, [1, 8])
//   for i, k in T.grid(4, 13):                 A_pad = T.alloc_buffer((4, 16))
//     with T.block("C"):                       for i0, i1 in T.grid(4, 16):
//       vi, vk = T.axis.remap("SR", [i, k])      with T.block("A_pad"):
//       with T.init():                             v0, v1 = T.axis.remap("SS", [i0, i1])
//         C[vi] = 0.0                              A_pad[v0, v1] = T.if_then_else(v1 < 13, A[v0, v1], 0.0)
//       C[vi] = C[vi] + A[vi, vk]              for i, k in T.grid(4, 16):
//                                                with T.block("C"):
//                                                  vi, vk = T.axis.remap("SR", [i, k])
//                                                  with T.init():
//                                                    C[vi] = 0.0
//                                                  C[vi] = C[vi] + A_pad[vi, vk]
//
// What instances beyond a spatial domain store is copied back by nobody; those beyond a reduction's add zero.
//
// Requires  P1 padding has one positive number per axis, and the enlarged domains fit the types of the axes
//           P2 the block is complete or a reduction, and accesses each buffer at one element, and no buffer as input
//           and
//              output; an enlarged axis is an index by itself, as are all axes where it writes
//           P3 an enlarged axis is one loop and begins at 0 with it; that loop drives nothing else and has nothing else
//              below
//           P4 along an enlarged reduction axis a sum adds products of elements, each of which that axis indexes; and
//              nothing is divided by what may be padding; an enlarged spatial axis selects what is written
//           P5 what it reads is complete before the statement of the scope that holds the block, and no other block
//              writes its output, none before reads it, its init comes first; consumers see the same
//           P6 parallel loops around stay independent, and threads as many as those of other loops

#include "schedule/primitives/pad_einsum.h"
#include "analysis/block_facts.h"
#include "analysis/reducer.h"
#include "analysis/scope.h"
#include "analysis/threads.h"
#include "ir/build.h"
#include "ir/ceildiv.h"
#include "ir/numeric.h"
#include "ir/structural.h"
#include "ir/substitute.h"
#include "ir/traverse.h"
#include "schedule/cache.h"
#include "schedule/edit.h"
#include "schedule/kept_shape.h"
#include "schedule/relocate.h"
#include "schedule/run_condition.h"
#include "support/ranges.h"

namespace tilewright::schedule {
namespace {

using ExtentOfVar = std::unordered_map<NodeRef, Expr>;  ///< by variable

/// Whether it is one element, with axes as indices; where it is read, others than enlarged ones may be in any index.
bool is_element(const BufferRegion& region, const Block& block, const ExtentOfVar& extents, bool is_read) {
  return all_of(region.region, [&](const Ref<Range>& r) {
    bool axis = any_of(block.iter_vars, [&](const Ref<IterVar>& iter) { return r->min == iter->var; });
    bool stays = is_read && effect_of(r->min) == Effect::kPure && !uses_any_of(r->min, extents);
    return is_const_int(r->extent, 1) && (axis || const_int(r->min) || stays);
  });
}

Status check_form(const Place& place, const ExtentOfVar& extents) {
  const Block& block = place.block();
  const auto& facts = analysis::BlockFacts::of(place.tree->block_ref(place.at));
  std::string why = facts.why;
  bool good = facts.role == analysis::BlockRole::kComplete || facts.role == analysis::BlockRole::kReduction;
  if (!good && why.empty()) why = "it updates elements that have a value before";
  std::vector<const NodeBase*> known;
  for (const auto* regions : {&block.reads, &block.writes}) {
    for (const Ref<BufferRegion>& region : *regions) {
      if (!is_element(*region, block, extents, regions == &block.reads)) {
        good = false;
        why = "it accesses '" + region->buffer->name + "' at other indices than its axes";
      }
      const NodeBase* data = region->buffer->data.get();
      if (is_contained(known, data)) {
        good = false;
        why = "it accesses '" + region->buffer->name + "' in two ways";
      }
      known.push_back(data);
    }
  }
  const bool plain = block.alloc_buffers.empty() && block.match_buffers.empty();
  if (good && plain && !has_node<For, BlockRealize>(block.body)) return Ok{};
  return refuse("pad_einsum/P2",
                describe(place) + " cannot be padded: " + (good ? "its body is more than one element's" : why), place,
                "each buffer is to be accessed at one element, by axes: C[vi, vj], A[vi, vk]");
}

/// The smallest type of the axis and of the dimensions that it indexes.
DataType least_type(const Block& block, const IterVar& axis) {
  DataType type = axis.dom->extent.dtype();
  for (const auto* regions : {&block.reads, &block.writes}) {
    for (const Ref<BufferRegion>& region : *regions) {
      for (size_t d : indices_of(region->region)) {
        const DataType of_dimension = region->buffer->shape[d].dtype();
        if (region->region[d]->min == axis.var && of_dimension.bits < type.bits) type = of_dimension;
      }
    }
  }
  return type;
}

/// The extents of enlarged axes, and of the loops that they are.
Result<ExtentOfVar> find_extents(const Place& place, const std::vector<int64_t>& padding) {
  const Tree& tree = *place.tree;
  const BlockRealize& realize = *tree.realize_at(place.at);
  ExtentOfVar extents;
  arith::Analyzer analyzer;
  std::vector<int> loops = tree.loops_above(place.at);
  for (size_t i : indices_of(padding)) {
    const IterVar& axis = *realize.block->iter_vars[i];
    const DataType dtype = axis.dom->extent.dtype();
    const int64_t size = const_int(axis.dom->extent).value_or(0);
    const __int128 by = padding[i], padded = (size + by - 1) / by * by;
    // Copies have the extent of the axis as one of theirs.
    const DataType type = padded == size ? dtype : least_type(*realize.block, axis);
    if (by > int_max(dtype) || padded > int_max(type)) {
      return refuse("pad_einsum/P1",
                    "the axis '" + axis.var->name_hint + "' of " + describe(place) + " (extent " +
                        brief(axis.dom->extent) + "), rounded up to a multiple of " + std::to_string(padding[i]) +
                        ", does not fit " + type.str(),
                    place, "pad to a smaller multiple, or let the axes and the shapes be T.int64");
    }
    Expr extent = analyzer.simplify(size_ceildiv(axis.dom->extent, constant(dtype, padding[i])) * padding[i]);
    if (analyzer.can_prove_equal(extent, axis.dom->extent)) continue;
    const Expr& value = realize.iter_values[i];
    int bound_loop = Tree::kNone;
    for (size_t l = loops.size(); l-- > 0;) {
      const For& loop = tree.for_at(loops[l]);
      Stmt below = l + 1 < loops.size() ? tree.stmt(loops[l + 1]) : Stmt(place.node());
      if (loop.body != below) break;
      if (value != loop.loop_var) continue;
      bool only = is_const_int(loop.min, 0) && is_const_int(axis.dom->min, 0) &&
                  same_expr(loop.extent, axis.dom->extent) && !uses_var(realize.predicate, loop.loop_var);
      for (size_t other : indices_of(realize.iter_values)) {
        only &= other == i || !uses_var(realize.iter_values[other], loop.loop_var);
      }
      for (size_t inner = l + 1; inner < loops.size(); ++inner) {
        only &= !uses_var(tree.for_at(loops[inner]).min, loop.loop_var) &&
                !uses_var(tree.for_at(loops[inner]).extent, loop.loop_var);
      }
      if (only) bound_loop = loops[l];
      break;
    }
    if (bound_loop == Tree::kNone) {
      return refuse("pad_einsum/P3",
                    "the axis '" + axis.var->name_hint + "' of " + describe(place) + " is not one loop of its own",
                    place, "pad before loops are split, fused or shared");
    }
    extents.emplace(axis.var, extent);
    extents.emplace(tree.for_at(bound_loop).loop_var, extent);
  }
  return extents;
}

bool indexed_by(const std::vector<Expr>& indices, const Ref<Var>& axis) {
  return any_of(indices, [&](const Expr& index) { return index == axis; });
}

/// Zero wherever everything that the axis indexes is padding. Of floats no factor may be infinite or NaN.
bool is_zero_beyond(const Expr& e, const Ref<Var>& axis) {
  if (const_int(e) == 0 || const_float(e) == 0.0) return true;
  if (const BufferLoad* load = e.as<BufferLoad>()) return indexed_by(load->indices, axis);
  if (const Cast* n = e.as<Cast>()) return is_zero_beyond(n->value, axis);
  if (const Add* n = e.as<Add>()) return is_zero_beyond(n->a, axis) && is_zero_beyond(n->b, axis);
  if (const Sub* n = e.as<Sub>()) return is_zero_beyond(n->a, axis) && is_zero_beyond(n->b, axis);
  if (const Mul* n = e.as<Mul>()) {
    bool a = is_zero_beyond(n->a, axis), b = is_zero_beyond(n->b, axis);
    auto finite = [](const Expr& factor) { return factor.dtype().is_integral() || const_float(factor); };
    return (a && b) || (a && finite(n->b)) || (b && finite(n->a));
  }
  return false;
}

Status check_values(const Place& place, const ExtentOfVar& extents) {
  const Block& block = place.block();
  bool divides = false;
  auto look = [&](const Expr& divisor) { divides |= !const_int(divisor) && divisor.dtype().is_integral(); };
  visit(block.body, on<Div, Mod, FloorDiv, FloorMod>([&](const auto& n) { look(n->b); }));
  std::string why = divides ? "it divides integers by what may be padding" : "";
  for (const Ref<IterVar>& axis : block.iter_vars) {
    if (!extents.count(axis->var)) continue;
    if (!analysis::is_reduction_axis(axis)) {
      for (const Ref<BufferRegion>& write : block.writes) {
        bool selects = any_of(write->region, [&](const Ref<Range>& r) { return r->min == axis->var; });
        if (!selects) why = "beyond the domain of '" + axis->var->name_hint + "' it would begin elements again";
      }
      continue;
    }
    analysis::FoundReducer found = analysis::find_reducer(block);
    bool zero = found.reducer && found.reducer->is_sum() && is_zero_beyond(found.reducer->operands[0], axis->var);
    if (!zero) why = "beyond the domain of '" + axis->var->name_hint + "' it might not add zero";
  }
  if (why.empty()) return Ok{};
  return refuse("pad_einsum/P4", describe(place) + " cannot be padded: " + why, place,
                "a reduction can be padded where it sums up products of elements that its axis indexes");
}

/// The elements of a buffer that the block touches in one dimension, and the padded extent of its copy.
struct Span {
  Expr begin, extent;  ///< range of the axis before padding, or one element; inside of the buffer
  Expr padded;         ///< at least `extent`
};
/// A buffer and its padded copy.
struct Padded {
  Ref<Buffer> buffer, copy;
  std::vector<Span> spans;
};

/// A condition may keep an axis from where the buffer ends: T.if_then_else(v < 3, A[v], 0) of three elements.
void keep_inside(Span& span, const Expr& size) {
  arith::Analyzer analyzer;
  Expr end = span.begin + span.extent;
  if (!analyzer.can_prove(ge(span.begin, zero(size.dtype())))) span.begin = max(span.begin, zero(size.dtype()));
  if (!analyzer.can_prove(le(end, size))) end = min(end, size);
  span.extent = span.padded = analyzer.simplify(end - span.begin);
}

/// Whether a block around the block has this axis.
bool is_axis_around(const Place& place, const Ref<Var>& v) {
  const Tree& tree = *place.tree;
  for (int at = tree[place.at].scope; at != Tree::kNone; at = tree[at].scope) {
    const auto& axes = tree.block_at(at).iter_vars;
    if (any_of(axes, [&](const Ref<IterVar>& axis) { return axis->var == v; })) return true;
  }
  return false;
}

Padded pad_buffer(const BufferRegion& region, const Place& place, const ExtentOfVar& extents) {
  const Block& block = place.block();
  auto moves = [&](const Ref<Var>& v) { return place.tree->loop(v) != Tree::kNone; };
  // Axes of the blocks around keep their values from the copy to the block.
  auto changes = [&](const Ref<Var>& v) { return !is_axis_around(place, v); };
  Padded result{region.buffer, {}, {}};
  std::vector<Expr> shape;
  for (size_t d : indices_of(region.region)) {
    const Expr &index = region.region[d]->min, &old = region.buffer->shape[d];
    const DataType dtype = old.dtype();
    Span span{zero(dtype), old, old};
    shape.push_back(old);
    if (effect_of(index) == Effect::kPure && !uses_any_var(index, changes)) {
      span = {cast(dtype, index), one(dtype), one(dtype)};
      if (is_const_int(index, 0)) shape.back() = one(dtype);
    }
    for (const Ref<IterVar>& axis : block.iter_vars) {
      const Range& dom = *axis->dom;
      if (axis->var != index || uses_any_var(dom.min, moves) || uses_any_var(dom.extent, moves)) continue;
      span = {cast(dtype, dom.min), cast(dtype, dom.extent), cast(dtype, dom.extent)};
    }
    keep_inside(span, old);
    if (auto* enlarged = find_value(extents, index)) {
      shape.back() = span.padded = cast(dtype, *enlarged);
    }
    result.spans.push_back(std::move(span));
  }
  result.copy =
      decl_buffer(std::move(shape), region.buffer->dtype, region.buffer->name + "_pad", region.buffer->scope());
  return result;
}

/// Loops i0, i1, ... around a block that copies element by element where the condition holds, with zeros where there is
/// none to copy.
Stmt copy_nest(const Padded& padded, bool into_copy, const Expr& condition, Ref<Block>* made) {
  const Ref<Buffer>&from = into_copy ? padded.buffer : padded.copy, &to = into_copy ? padded.copy : padded.buffer;
  arith::Analyzer analyzer;
  Block block;
  std::vector<Ref<Var>> loops;
  std::vector<Expr> values, indices, extents;
  BufferRegion read{from, {}}, write{to, {}};
  Expr inside = bool_imm(true);
  for (size_t d : indices_of(padded.spans)) {
    const Span& span = padded.spans[d];
    std::string number = std::to_string(d);
    extents.push_back(into_copy ? span.padded : span.extent);
    DataType dtype = extents.back().dtype();
    loops.push_back(var("i" + number, dtype));
    Ref<Var> axis = var("v" + number, dtype);
    block.iter_vars.push_back(make<IterVar>(
        {.dom = range(zero(dtype), extents.back()), .var = axis, .iter_type = IterType::kDataPar, .thread_tag = ""}));
    values.push_back(loops.back());
    indices.push_back(analyzer.simplify(span.begin + axis));
    read.region.push_back(range(indices.back(), one(dtype)));
    write.region.push_back(range(indices.back(), one(dtype)));
    if (!analyzer.can_prove_equal(span.extent, span.padded)) inside = logical_and(inside, lt(axis, span.extent));
  }
  Expr value = load(from, indices);
  if (into_copy && !is_true(inside)) value = if_then_else(inside, value, zero(value.dtype()));
  block.name_hint = padded.copy->name;
  block.reads = {make(std::move(read))};
  block.writes = {make(std::move(write))};
  block.body = store(to, value, indices);
  *made = make(std::move(block));
  Stmt nest = make<BlockRealize>({.iter_values = std::move(values), .predicate = condition, .block = *made});
  for (size_t d = loops.size(); d-- > 0;) nest = loop(loops[d], extents[d], std::move(nest));
  return nest;
}

/// The block with its buffers and domains replaced, in its loops.
Stmt enlarged(const Stmt& top, const ExtentOfVar& extents, const std::vector<Padded>& padded) {
  auto replaced = [&](const Ref<Buffer>& buffer) {
    for (const Padded& pair : padded) {
      if (pair.buffer == buffer) return pair.copy;
    }
    return buffer;
  };
  auto region = [&](const Ref<BufferRegion>& old) {
    return with_field(old, &BufferRegion::buffer, replaced(old->buffer));
  };
  return rewrite(
      top,
      [&](const Ref<For>& old, Rewriter& walk) -> Stmt {
        For changed = *walk.descend(old);
        if (auto* found = find_value(extents, old->loop_var)) {
          changed.extent = cast(changed.loop_var.dtype(), *found);
        }
        return make(std::move(changed), old.span());
      },
      [&](const Ref<Block>& old, Rewriter& walk) -> Stmt {
        Block changed = *walk.descend(old);
        for (Ref<IterVar>& axis : changed.iter_vars) {
          auto* known = find_value(extents, axis->var);
          if (!known) continue;
          IterVar larger = *axis;
          larger.dom = range(axis->dom->min, cast(axis->var.dtype(), *known));
          axis = make(std::move(larger));
        }
        for (Ref<BufferRegion>& read : changed.reads) read = region(read);
        for (Ref<BufferRegion>& write : changed.writes) write = region(write);
        return make(std::move(changed), old.span());
      },
      [&](const Ref<BufferLoad>& old, Rewriter& walk) -> Expr {
        Ref<BufferLoad> inner = walk.descend(old);
        return with_field(inner, &BufferLoad::buffer, replaced(inner->buffer));
      },
      [&](const Ref<BufferStore>& old, Rewriter& walk) -> Stmt {
        Ref<BufferStore> inner = walk.descend(old);
        return with_field(inner, &BufferStore::buffer, replaced(inner->buffer));
      });
}

/// Returns the box of the buffer that is copied.
arith::Box copied(const Padded& padded) {
  arith::Region region;
  for (const Span& span : padded.spans) region.push_back(range(span.begin, span.extent));
  return arith::box_of(region);
}

/// The child of the scope's body, or of its sequence, that holds the block.
int statement_of_scope(const Tree& tree, int scope, int block) {
  int at = tree.child_towards(scope, block);
  return tree.stmt(at).is<SeqStmt>() ? tree.child_towards(at, block) : at;
}

}  // namespace

Result<Plan> plan(const State& state, const PadEinsum& pad) {
  TW_TRY(place, state.find(pad.block));
  const Tree& tree = *place.tree;
  const Block& block = place.block();
  bool positive = all_of(pad.padding, [](int64_t p) { return p >= 1; });
  if (!positive || pad.padding.size() != block.iter_vars.size() || !tree.realize_at(place.at)) {
    return refuse("pad_einsum/P1",
                  "padding has " + std::to_string(pad.padding.size()) + " numbers for the " +
                      std::to_string(block.iter_vars.size()) + " axes of " + describe(place) +
                      (positive ? "" : ", some not positive"),
                  place, "give one number per axis, 1 for those that stay as they are");
  }
  TW_TRY(extents, find_extents(place, pad.padding));
  TW_RETURN_IF_ERROR(check_form(place, extents));
  if (extents.empty()) return Plan{};
  TW_RETURN_IF_ERROR(check_values(place, extents));
  int scope_at = tree[place.at].scope;
  const analysis::Scope& scope = analysis::Scope::of(tree, scope_at);
  int self = scope.child(block.id.value);
  TW_RETURN_IF_ERROR(check_only_writer(place, scope, self, "pad_einsum/P5"));

  auto needs = [&](const BufferRegion& region) {
    return any_of(region.region, [&](const Ref<Range>& r) { return extents.count(r->min) != 0; });
  };
  int top = statement_of_scope(tree, scope_at, place.at);
  TreeEdit edit(tree);
  std::vector<Padded> padded;
  std::vector<Ref<Block>> copies;
  auto blocks = [&](const std::vector<int>& children) {
    std::vector<int> found;
    for (int child : children) found.push_back(scope.position(tree, child));
    std::erase(found, place.at);
    return found;
  };
  for (const Ref<BufferRegion>& read : block.reads) {
    if (!needs(*read)) continue;
    padded.push_back(pad_buffer(*read, place, extents));
    edit.insert_before(top, copy_nest(padded.back(), true, bool_imm(true), &copies.emplace_back()));
    Expr condition =
        written_condition(tree, tree[top].parent, place.at, read->buffer, {place.at}, copied(padded.back()));
    if (!condition.defined() || !is_true(condition)) return refuse_unwritten(place, read->buffer, "pad_einsum/P5");
    if (auto obstacle = why_not_all_written(state, place, scope_at, read->buffer)) {
      return refuse("pad_einsum/P5", *obstacle,
                    "pad before the loops around the block and around its producers are changed");
    }
  }
  for (const Ref<BufferRegion>& write : block.writes) {
    if (!needs(*write)) continue;
    if (auto obstacle = analysis::why_init_not_first(tree, tree[top].parent, place.at))
      return refuse("pad_einsum/P5", *obstacle, "pad before the loops of the reduction are changed");
    padded.push_back(pad_buffer(*write, place, extents));
    Expr condition = written_condition(tree, tree[top].parent, tree[top].end, write->buffer,
                                       blocks(scope.readers(write->buffer)), copied(padded.back()));
    if (!condition.defined()) return refuse_unwritten(place, write->buffer, "pad_einsum/P5");
    edit.insert_after(top, copy_nest(padded.back(), false, condition, &copies.emplace_back()));
  }
  // Loops above those that become longer stay as they are.
  int longest = place.at;
  for (int at : tree.loops_above(place.at)) {
    if (extents.count(tree.for_at(at).loop_var) && longest == place.at) longest = at;
  }
  edit.replace(longest, enlarged(tree.stmt(longest), extents, padded));
  edit.change_block(scope_at, [&](Block& outer) {
    for (const Padded& pair : padded) outer.alloc_buffers.push_back(pair.copy);
  });
  for (const Padded& pair : padded) TW_RETURN_IF_ERROR(require_kept_shape(tree, scope_at, pair.copy, "pad_einsum/P5"));
  Plan plan = give_loops(place.func, edit.finish(), {});
  const Tree& after = Tree::of(plan.root);
  std::vector<int> changed{after.block(block.id.value)};
  for (const Ref<Block>& copy : copies) changed.push_back(after.block(copy->id.value));
  for (int at : changed) {
    if (auto obstacle = analysis::why_inputs_incomplete(after, at))
      return refuse("pad_einsum/P5", *obstacle,
                    "pad before the loops around the block and around its producers are changed");
    TW_RETURN_IF_ERROR(recheck_execution(after, at, "pad_einsum/P6"));
  }
  // Loops that are longer now may be threads.
  for (int at : after.loops_above(changed.front())) {
    if (!extents.count(after.for_at(at).loop_var) || after.for_at(at).kind != ForKind::kThreadBinding) continue;
    if (auto obstacle = analysis::why_threads_differ(after, at))
      return refuse("pad_einsum/P6", *obstacle, "pad before the loops are bound to threads");
  }
  for (int child : scope.consumers(self)) {
    int consumer = scope.position(after, child);
    if (auto obstacle = analysis::why_inputs_incomplete(after, consumer))
      return refuse("pad_einsum/P5", *obstacle,
                    "pad before the loops around the block and around its consumers are changed");
  }
  return plan;
}

}  // namespace tilewright::schedule
