// Store the elements of a buffer in another order.
//
//   Before                                   After  sch.transform_layout(B, "B", lambda i, j: (j // 4, i, j % 4))
//   B = T.alloc_buffer((16, 8))              B = T.alloc_buffer((2, 16, 4))
//   for i, j in T.grid(16, 8):               for i, j in T.grid(16, 8):
//     with T.block("B"):                       with T.block("B"):
//       vi, vj = T.axis.remap("SS", [i, j])      vi, vj = T.axis.remap("SS", [i, j])
//       B[vi, vj] = A[vi, vj] + 1.0              B[vj // 4, vi, vj % 4] = A[vi, vj] + 1.0
//
// Requires  P1 the block touches the buffer, and the map takes as many indices as it has dimensions
//           P2 a block allocates the buffer, or it is a parameter whose sizes stay known; it is compact, and but for
//              views of single elements it is used by plain loads and stores only
//           P3 the map is built of +, -, *, // and %, takes different indices to different ones, and its images start
//              at 0
//           P4 it is surjective, or pad_value fills the padding, or assume_injective_transform is set
//           P5 regions of several elements that are written are boxes again
//           P6 pad_value is one value of the buffer's type, which loads nothing but the buffer
//           P7 parallel loops around what fills the padding stay independent
#include <unordered_set>

#include "arith/index_map.h"
#include "ir/build.h"
#include "ir/op.h"
#include "ir/regions.h"
#include "ir/structural.h"
#include "ir/substitute.h"
#include "ir/traverse.h"
#include "schedule/buffers.h"
#include "schedule/edit.h"
#include "schedule/layout_padding.h"
#include "schedule/primitives/transform_layout.h"
#include "schedule/relocate.h"
#include "support/ranges.h"

namespace tilewright::schedule {
namespace {

/// Old indices to new ones, for one buffer.
struct Layout {
  Ref<Buffer> before, after;
  Ref<IndexMap> map;

  std::vector<Expr> indices(const std::vector<Expr>& old, arith::Analyzer& analyzer) const {
    return arith::map_indices(*map, old, analyzer);
  }

  /// The box of the images; where they are none, one that holds them if that is enough, else null.
  Ref<BufferRegion> region(const BufferRegion& old, bool may_be_larger, arith::Analyzer& analyzer) const {
    BufferRegion moved{after, arith::map_region(*map, old.region, analyzer)};
    if (moved.region.empty() && !old.region.empty()) {
      if (!may_be_larger) return {};
      moved.region = whole_region(after->shape);
    }
    return make(std::move(moved));
  }
};

bool is_identity(const IndexMap& map) {
  if (map.initial_indices.size() != map.final_indices.size()) return false;
  for (size_t d : indices_of(map.initial_indices)) {
    if (map.final_indices[d] != map.initial_indices[d]) return false;
  }
  return true;
}

/// The dimensions of the buffer in which data select an element somewhere in the block.
std::vector<bool> selected_by_data(const Block& block, const Ref<Buffer>& buffer) {
  std::vector<bool> selected(buffer->shape.size());
  auto look = on<BufferLoad, BufferStore>([&](const auto& access) {
    for (size_t d = 0; access->buffer == buffer && d < selected.size(); ++d) {
      selected[d] = selected[d] || effect_of(access->indices[d]) != Effect::kPure;
    }
  });
  visit(block.init, look);
  visit(block.body, look);
  return selected;
}

struct Rewritten {
  Ref<Block> root;
  Ref<BufferRegion> no_box;  ///< a region that cannot be expressed
};

Rewritten rewrite_accesses(const Ref<Block>& root, const Layout& layout) {
  Rewritten result;
  arith::Analyzer analyzer;
  auto region = [&](const Ref<BufferRegion>& old, bool may_be_larger) {
    if (old->buffer != layout.before) return old;
    Ref<BufferRegion> moved = layout.region(*old, may_be_larger, analyzer);
    if (!moved.defined()) result.no_box = old;
    return moved.defined() ? moved : old;
  };
  auto indices = [&](const std::vector<Expr>& old) { return layout.indices(old, analyzer); };
  result.root = rewrite(
      root,
      [&](const Ref<For>& loop, Rewriter& walk) -> Stmt {
        analyzer.bind(loop->loop_var, range(loop->min, loop->extent));
        return walk.descend(loop);
      },
      [&](const Ref<BufferLoad>& old, Rewriter& walk) -> Expr {
        return moved_access(old, walk, layout.before, layout.after, indices);
      },
      [&](const Ref<BufferStore>& old, Rewriter& walk) -> Stmt {
        return moved_access(old, walk, layout.before, layout.after, indices);
      },
      [&](const Ref<MatchBufferRegion>& old, Rewriter& walk) -> NodeRef {
        Ref<MatchBufferRegion> inner = walk.descend(old);
        return with_field(inner, &MatchBufferRegion::source, region(inner->source, false));
      },
      [&](const Ref<Block>& old, Rewriter& walk) -> Stmt {
        for (const Ref<IterVar>& axis : old->iter_vars) analyzer.bind(axis->var, axis->dom);
        Block moved = *walk.descend(old);
        std::vector<bool> selected;
        auto box = [&](Ref<BufferRegion>& old_region, bool may_be_larger) {
          if (old_region->buffer != layout.before) return;
          Ref<BufferRegion> image = region(old_region, may_be_larger);
          if (selected.empty()) selected = selected_by_data(moved, layout.after);
          // Data may be anything, so that a dimension in which they select counts as a whole.
          BufferRegion whole = *image;
          bool is_whole = true;
          for (size_t d = 0; image->buffer == layout.after && d < selected.size(); ++d) {
            Ref<Range> all = range_of(layout.after->shape[d]);
            if (!selected[d] || structural_equal(whole.region[d], all)) continue;
            whole.region[d] = all;
            is_whole = false;
          }
          if (!is_whole && !may_be_larger) result.no_box = old_region;
          old_region = is_whole ? image : make(std::move(whole));
        };
        for (auto& read : moved.reads) box(read, true);
        for (auto& write : moved.writes) box(write, false);
        for (auto& own : moved.alloc_buffers) {
          if (own == layout.before) own = layout.after;
        }
        return make(std::move(moved), old.span());
      });
  return result;
}

/// One element, without a mask.
template <class Access>
bool is_plain(const Access& access) {
  bool scalar = all_of(access.indices, [](const Expr& index) { return index.dtype().is_scalar(); });
  return scalar && !access.predicate.defined();
}

/// Returns a use of the buffer that P2 excludes; null if there is none.
NodeRef other_use(const Ref<Block>& root, const Ref<Buffer>& buffer) {
  NodeRef user;
  visit(
      root,
      [&](const Ref<MatchBufferRegion>& match) {
        if (match->source->buffer == buffer && !match->buffer->shape.empty()) user = match;
      },
      [&](const Ref<Prefetch>& prefetch) {
        if (prefetch->region->buffer == buffer) user = prefetch;
      },
      [&](const Ref<BufferLoad>& load) {
        if (load->buffer == buffer && !is_plain(*load)) user = load;
      },
      [&](const Ref<BufferStore>& store) {
        if (store->buffer == buffer && !is_plain(*store)) user = store;
      },
      [&](const Ref<Call>& call) {
        for (const auto& arg : call->args) {
          if (arg == buffer->data) user = call;
        }
      },
      [&](const Ref<LetStmt>& let) {
        if (let->value == buffer->data) user = let;
      },
      [&](const Ref<DeclBuffer>& decl) {
        if (decl->buffer->data == buffer->data) user = decl;
      });
  if (!user.defined() && takes_address(root, buffer)) user = root;
  return user;
}

/// A function of new indices; null where there is no value.
Result<Ref<IndexMap>> pad_map(const PadValue& pad, const Layout& layout, const NodeRef& block) {
  if (std::holds_alternative<None>(pad.value)) return Ref<IndexMap>();
  const DataType type = layout.before->dtype;
  auto wrong = [&](const std::string& what) {
    return refuse("transform_layout/P6",
                  "the pad value is " + what + ", but '" + layout.before->name + "' holds " + type.str(), {block},
                  "give one value of that type: a number, an expression, or a function of the new indices");
  };
  IndexMap map;
  for (size_t d : indices_of(layout.after->shape)) {
    map.initial_indices.emplace_back(var("axis" + std::to_string(d), layout.after->shape[d].dtype()));
  }
  if (const int64_t* number = std::get_if<int64_t>(&pad.value)) {
    if (type.is_float()) return wrong("an integer");
    map.final_indices = {constant(type, *number)};
  } else if (const double* number = std::get_if<double>(&pad.value)) {
    if (!type.is_float()) return wrong("a float");
    map.final_indices = {constant(type, *number)};
  } else {
    const NodeRef& node = std::get<NodeRef>(pad.value);
    if (const IndexMap* given = node.as<IndexMap>()) {
      if (given->final_indices.size() != 1) return wrong(std::to_string(given->final_indices.size()) + " values");
      if (given->initial_indices.size() != layout.after->shape.size()) {
        return wrong("a function of " + std::to_string(given->initial_indices.size()) + " indices where there are " +
                     std::to_string(layout.after->shape.size()));
      }
      map = *given;
    } else if (node.sort() == Sort::kExpr) {
      map.final_indices = {Expr(node)};
    } else {
      return wrong("no expression");
    }
  }
  const Expr& value = map.final_indices.front();
  if (value.dtype() != type) return wrong(value.dtype().str());
  Ref<Buffer> other;
  visit(value, [&](const Ref<BufferLoad>& read) {
    if (read->buffer != layout.before) other = read->buffer;
  });
  if (other.defined()) {
    return refuse("transform_layout/P6", "the pad value loads from '" + other->name + "'", {block},
                  "it may load elements of '" + layout.before->name + "' only");
  }
  if (has_node<Call>(value))
    return refuse("transform_layout/P6", "the pad value calls a function", {block},
                  "pad with a constant, or with an expression of the indices and of the buffer itself");
  return make(std::move(map));
}

/// Returns the padding value as traces store it: a constant as a number, another expression as a function.
PadValue recorded_pad(const PadValue& given, const Ref<IndexMap>& map) {
  if (!std::holds_alternative<NodeRef>(given.value)) return given;
  const Expr& value = map->final_indices.front();
  if (const IntImm* number = value.as<IntImm>()) return {number->value};
  if (const FloatImm* number = value.as<FloatImm>()) return {number->value};
  return {NodeRef(map)};
}

/// Returns a size that only the buffer's shape defines and the program needs; null if there is none.
Ref<Var> unknown_size(const PrimFunc& func, const Ref<Buffer>& before, const Buffer& after) {
  std::unordered_set<NodeRef> known;
  for (const Def<Var>& param : func.params) known.insert(param);
  auto add = [&](const Buffer& buffer) {
    for (const Expr& extent : buffer.shape) known.insert(extent);
    for (const Expr& stride : buffer.strides) known.insert(stride);
    known.insert(buffer.elem_offset);
  };
  for (const auto& [param, buffer] : func.buffer_map) {
    if (buffer != before) add(*buffer);
  }
  add(after);
  Ref<Var> unknown;
  for (const Expr& extent : before->shape) {
    if (extent.is<Var>() && !known.count(extent)) unknown = extent.borrow<Var>();
  }
  return unknown;
}

bool is_called(const Module& module, const std::string& name) {
  bool called = false;
  for (const auto& [caller, func] : module.functions) {
    visit(func, [&](const Ref<Call>& call) {
      const GlobalVar* callee = call->op.as<GlobalVar>();
      called |= callee && callee->name_hint == name;
    });
  }
  return called;
}

/// The map with the sampled integers in place of its last parameters.
Ref<IndexMap> with_values(const State& state, const TransformLayout& transform) {
  Ref<IndexMap> map = transform.index_map.map.borrow<IndexMap>();
  const std::vector<ExprRV>& values = transform.values.items;
  if (values.empty() || values.size() > map->initial_indices.size()) return map;
  IndexMap chosen = *map;
  const size_t num_indices = map->initial_indices.size() - values.size();
  VarMap numbers;
  for (size_t i : indices_of(values)) {
    const Def<Var>& parameter = map->initial_indices[num_indices + i];
    numbers[parameter] = constant(parameter.dtype(), state.value(values[i]));
  }
  chosen.initial_indices.resize(num_indices);
  for (Expr& index : chosen.final_indices) index = substitute(index, numbers);
  return make(std::move(chosen));
}

}  // namespace

Result<Plan> plan(const State& state, const TransformLayout& transform) {
  TW_TRY(block, state.find(transform.block));
  const Tree& tree = *block.tree;
  TransformLayout recorded = transform;
  TW_TRY(buffer, touched_buffer(recorded.buffer, block, "transform_layout/P1"));
  const Ref<IndexMap> chosen = with_values(state, transform);
  const IndexMap& given = *chosen;
  if (given.initial_indices.size() != buffer->shape.size()) {
    return refuse("transform_layout/P1",
                  "the index map takes " + std::to_string(given.initial_indices.size()) + " indices, but '" +
                      buffer->name + "' has " + std::to_string(buffer->shape.size()) + " dimensions",
                  block, "the map takes one index for each dimension of the buffer");
  }
  Ref<Block> root = tree.block_ref(tree.blocks().front());
  bool allocated = false;
  for (int at : tree.blocks()) {
    for (const Ref<Buffer>& own : tree.block_at(at).alloc_buffers) allocated |= own == buffer;
  }
  const bool parameter = is_parameter(state, block.func, buffer);
  if ((!allocated && !parameter) || !buffer->strides.empty()) {
    return refuse("transform_layout/P2", "'" + buffer->name + "' is not a compact buffer of the function or of a block",
                  block, "transform a copy of it: sch.cache_read or sch.cache_write make one");
  }
  if (parameter && is_called(*state.module(), state.function_name(block.func))) {
    return refuse("transform_layout/P2",
                  "'" + buffer->name + "' is a parameter of '" + state.shown_name(block.func) + "', which is called",
                  block, "callers would have to pass the new layout");
  }
  if (is_identity(given)) {
    TW_TRY(unused, pad_map(transform.pad_value, {buffer, buffer, chosen}, block.node()));
    if (unused.defined()) recorded.pad_value = recorded_pad(transform.pad_value, unused);
    Plan nothing = give_loops(block.func, {}, {});
    nothing.recorded = std::move(recorded);
    return nothing;
  }
  if (NodeRef use = other_use(root, buffer); use.defined()) {
    return refuse("transform_layout/P2", "'" + buffer->name + "' is used other than by plain loads and stores",
                  {use, block.node()},
                  "what uses its pointer, or a view of it, relies on the layout of its elements: give that a copy with "
                  "cache_read() or cache_write()");
  }
  arith::Analyzer analyzer;
  auto inverted = arith::invert(given, buffer->shape, analyzer);
  if (!inverted.ok()) {
    return refuse("transform_layout/P3", inverted.error().message, block, inverted.error().hint);
  }
  Buffer moved = *buffer;
  moved.shape = inverted->shape;
  moved.axis_separators.clear();
  if (parameter) {
    if (Ref<Var> size = unknown_size(*state.function_at(block.func).as<PrimFunc>(), buffer, moved); size.defined()) {
      return refuse("transform_layout/P2", "no parameter would say the size " + size->name_hint + " any more", block,
                    "keep it as an extent, or make it a parameter");
    }
  }
  DataType index_type =
      inverted->inverse->final_indices.empty() ? DataType::int_(32) : inverted->inverse->final_indices[0].dtype();
  Layout layout{buffer, make(std::move(moved)), arith::with_index_type(given, index_type)};
  TW_TRY(pad_value, pad_map(transform.pad_value, layout, block.node()));
  if (pad_value.defined()) recorded.pad_value = recorded_pad(transform.pad_value, pad_value);
  TreeEdit edit(tree);
  bool pads = false;
  std::string stated;
  if (inverted->holes || !is_false(inverted->padding)) {
    if (!pad_value.defined() && !transform.assume_injective_transform) {
      return refuse("transform_layout/P4", "the new buffer would have elements that stand for none of the old ones",
                    block,
                    "divide evenly, give a pad_value, or set assume_injective_transform=True to leave them open");
    }
    if (!pad_value.defined()) {
      stated = "no access reaches the elements of '" + buffer->name + "' that stand for none of the old ones";
    } else {
      if (inverted->holes) {
        return refuse("transform_layout/P4", "which elements stand for none of the old ones is not known", block,
                      "multiply indices only where the products stay adjacent");
      }
      pads = true;
      PaddedLayout padding{layout.before, layout.after, inverted->inverse, inverted->padding, pad_value};
      if (!fill_padding(edit, tree, padding, parameter)) stated = "callers fill the padding of '" + buffer->name + "'";
    }
  }
  Rewritten after = rewrite_accesses(edit.finish(), layout);
  if (after.no_box.defined()) {
    return refuse("transform_layout/P5",
                  "the images of " + analysis::brief(after.no_box) + " are not all elements of a box", block,
                  "transform the layout before regions of several elements arise");
  }
  Plan plan = with_buffer(state, block.func, layout.before, layout.after, after.root);
  if (pads) {
    const Tree& padded = Tree::of(after.root);
    for (int at : padded.blocks()) {
      if (at == 0 || !padded.touches(padded.block_at(at).writes, layout.after)) continue;
      TW_RETURN_IF_ERROR(recheck_execution(padded, at, "transform_layout/P7"));
    }
  }
  plan.recorded = std::move(recorded);
  plan.stated = std::move(stated);
  return plan;
}

}  // namespace tilewright::schedule
