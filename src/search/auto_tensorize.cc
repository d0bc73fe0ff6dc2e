#include "search/auto_tensorize.h"

#include <algorithm>
#include <set>

#include "analysis/block_facts.h"
#include "arith/analyzer.h"
#include "ir/build.h"
#include "ir/structural.h"
#include "ir/substitute.h"
#include "ir/tensor_intrin.h"
#include "ir/traverse.h"
#include "schedule/primitives/annotate.h"
#include "schedule/primitives/blockize.h"
#include "schedule/primitives/get_loops.h"
#include "schedule/primitives/pad_einsum.h"
#include "schedule/primitives/reorder.h"
#include "schedule/primitives/split.h"
#include "support/ranges.h"

namespace tilewright::search {

using namespace schedule;

namespace {

/// The loops of a description, and the one block with axes below them.
struct Description {
  std::vector<Ref<For>> loops;
  Ref<BlockRealize> realize;

  static std::optional<Description> of(const PrimFunc& func) {
    Description result;
    size_t count = 0;
    visit(
        func.body, [&](const Ref<For>& loop) { result.loops.push_back(loop); },
        [&](const Ref<BlockRealize>& realize) {
          if (realize->block->iter_vars.empty()) return;
          result.realize = realize;
          ++count;
        });
    if (count != 1) return std::nullopt;
    return result;
  }
};

/// The value is the loop plus something else.
bool drives(const Ref<Var>& loop, const Expr& value, arith::Analyzer& analyzer) {
  return uses_var(value, loop) && !uses_var(analyzer.simplify(value - Expr(loop)), loop);
}

/// Matches the expressions of a block with those of a description, and maps the buffers of one to the buffers of the
/// other.
class Alike {
 public:
  explicit Alike(arith::Analyzer& analyzer) : analyzer_(analyzer) {}

  bool match(const NodeRef& a, const NodeRef& d) {
    if (!a.defined() || !d.defined() || a.kind() != d.kind()) return false;
    if (const auto* store = a.as<BufferStore>()) {
      const auto* desc = d.as<BufferStore>();
      return match_access(store->buffer, store->indices, desc->buffer, desc->indices) &&
             match(store->value, desc->value);
    }
    if (const auto* load = a.as<BufferLoad>()) {
      const auto* desc = d.as<BufferLoad>();
      return match_access(load->buffer, load->indices, desc->buffer, desc->indices);
    }
    if (const auto* conversion = a.as<Cast>()) {
      return conversion->dtype == d.as<Cast>()->dtype && match(conversion->value, d.as<Cast>()->value);
    }
    if (a.sort() == Sort::kExpr) {
      BinaryOperands mine = binary_operands(Expr(a)), other = binary_operands(Expr(d));
      bool commutes = a.is<Add>() || a.is<Mul>() || a.is<Min>() || a.is<Max>();
      if (commutes) {
        Found before = found_;
        if (match(*mine.a, *other.a) && match(*mine.b, *other.b)) return true;
        found_ = std::move(before);
        return match(*mine.a, *other.b) && match(*mine.b, *other.a);
      }
      if (a.is<Sub>()) return match(*mine.a, *other.a) && match(*mine.b, *other.b);
    }
    return structural_equal(a, d);
  }

  struct Found {
    std::unordered_map<NodeRef, Ref<Buffer>> buffers;  ///< buffers of the block, to those of the description
    std::unordered_map<NodeRef, std::vector<Expr>> block_indices;  ///< indices of the block's buffers
    std::unordered_map<NodeRef, std::vector<Expr>> desc_indices;   ///< indices of the description's buffers
  };
  const Found& found() const { return found_; }

 private:
  bool match_access(const Ref<Buffer>& buffer, const std::vector<Expr>& indices, const Ref<Buffer>& of_desc,
                    const std::vector<Expr>& desc_indices) {
    if (buffer->dtype != of_desc->dtype) return false;
    auto* known = find_value(found_.buffers, buffer);
    if (!known) {
      if (found_.desc_indices.contains(of_desc)) return false;
      found_.buffers[buffer] = of_desc;
      found_.block_indices[buffer] = simplified(indices);
      found_.desc_indices[of_desc] = simplified(desc_indices);
      return true;
    }
    if (*known != of_desc) return false;
    return std::ranges::equal(found_.block_indices[buffer], indices,
                              [&](const Expr& x, const Expr& y) { return analyzer_.can_prove_equal(x, y); });
  }
  std::vector<Expr> simplified(std::vector<Expr> indices) {
    for (Expr& index : indices) index = analyzer_.simplify(index);
    return indices;
  }

  arith::Analyzer& analyzer_;
  Found found_;
};

void bind_axes(arith::Analyzer& analyzer, const std::vector<Ref<IterVar>>& axes) {
  for (const Ref<IterVar>& axis : axes) {
    // Axes with one value keep their names.
    if (!is_const_int(axis->dom->extent, 1)) analyzer.bind(axis->var, axis->dom);
  }
}

/// The buffers that an axis moves in.
std::set<const NodeBase*> moves_in(const Ref<IterVar>& axis,
                                   const std::unordered_map<NodeRef, std::vector<Expr>>& accesses) {
  std::set<const NodeBase*> result;
  for (const auto& [buffer, indices] : accesses) {
    bool moves = any_of(indices, [&, &the_axis = axis](const Expr& index) { return uses_var(index, the_axis->var); });
    if (moves) result.insert(buffer.get());
  }
  return result;
}

/// Axes of the block that are joined for each axis of the description, and the remaining ones.
struct Joined {
  std::vector<std::vector<Ref<IterVar>>> parts;  ///< by axis of the description
  std::vector<Ref<IterVar>> batches;
};

std::optional<Joined> join(const Block& block, const Block& desc, const Alike::Found& found) {
  std::vector<std::set<const NodeBase*>> targets;
  for (const Ref<IterVar>& axis : desc.iter_vars) {
    targets.push_back(moves_in(axis, found.desc_indices));
    if (std::ranges::count(targets, targets.back()) > 1) return std::nullopt;
  }
  Joined joined;
  joined.parts.resize(desc.iter_vars.size());
  for (const Ref<IterVar>& axis : block.iter_vars) {
    if (!analysis::is_data_parallel(axis) && is_const_int(axis->dom->extent, 1)) {
      joined.batches.push_back(axis);  // there is nothing to sum up over
      continue;
    }
    std::set<const NodeBase*> mine = moves_in(axis, found.block_indices), theirs;
    for (const auto& [buffer, of_desc] : found.buffers) {
      if (mine.contains(buffer.get())) theirs.insert(of_desc.get());
    }
    auto target = std::ranges::find(targets, theirs);
    auto at = static_cast<size_t>(target - targets.begin());
    if (target != targets.end() && desc.iter_vars[at]->iter_type == axis->iter_type) {
      joined.parts[at].push_back(axis);
    } else if (mine.size() == found.block_indices.size() && analysis::is_data_parallel(axis)) {
      joined.batches.push_back(axis);
    } else {
      return std::nullopt;
    }
  }
  if (any_of(joined.parts, [](const auto& part) { return part.empty(); })) {
    return std::nullopt;
  }
  return joined;
}

}  // namespace

Result<std::optional<LoopMapping>> loop_mapping(Schedule& schedule, BlockRV rv, const PrimFunc& desc,
                                                bool allow_padding) {
  std::optional<Description> description = Description::of(desc);
  if (!description) return std::optional<LoopMapping>();
  const Block& desc_block = *description->realize->block;
  TW_TRY(rvs, schedule.apply(GetLoops{rv}));
  TW_TRY(place, schedule.state().find(rv));
  const BlockRealize* realize = place.tree->realize_at(place.at);
  if (!realize) return std::optional<LoopMapping>();
  const auto& axes = place.block().iter_vars;
  std::vector<int> loops = place.tree->loops_above(place.at);
  arith::Analyzer analyzer;
  LoopMapping mapping;
  mapping.paddings.assign(axes.size(), 1);
  std::vector<bool> taken(loops.size(), false);
  size_t left = axes.size();
  for (const Ref<For>& loop : reversed(description->loops)) {
    auto size = const_int(loop->extent);
    std::optional<IterType> type;
    for (size_t i = 0; i < desc_block.iter_vars.size() && !type; ++i) {
      if (drives(loop->loop_var, description->realize->iter_values[i], analyzer))
        type = desc_block.iter_vars[i]->iter_type;
    }
    while (left > 0 && axes[left - 1]->iter_type != type) --left;
    if (!type || !size || left == 0) return std::optional<LoopMapping>();
    const Expr& value = realize->iter_values[left - 1];
    size_t at = 0;
    while (at < loops.size() && !drives(place.tree->for_at(loops[at]).loop_var, value, analyzer)) ++at;
    if (at == loops.size() || taken[at]) return std::optional<LoopMapping>();
    auto extent = const_int(place.tree->for_at(loops[at]).extent);
    if (!extent || (*extent % *size != 0 && !allow_padding)) return std::optional<LoopMapping>();
    if (*extent % *size != 0) mapping.paddings[left - 1] = *size;
    taken[at] = true;
    mapping.loops.push_back({rvs[at], loop});
    --left;
  }
  std::ranges::reverse(mapping.loops);
  bool pads = any_of(mapping.paddings, [](int64_t size) { return size != 1; });
  if (!pads) mapping.paddings.clear();
  return std::optional(std::move(mapping));
}

Result<std::optional<LoopRV>> tile_with_tensor_intrin(Schedule& schedule, BlockRV block, const std::string& intrin_name,
                                                      bool allow_padding) {
  auto intrin = find_tensor_intrin(intrin_name);
  if (!intrin) return std::optional<LoopRV>();
  TW_TRY(found, loop_mapping(schedule, block, *intrin->desc, allow_padding));
  std::optional<LoopMapping> mapping = std::move(found);
  if (mapping && !mapping->paddings.empty()) {
    TW_RETURN_IF_ERROR(schedule.apply(PadEinsum{.block = block, .padding = mapping->paddings}));
    TW_TRY(padded, loop_mapping(schedule, block, *intrin->desc, false));
    mapping = std::move(padded);
  }
  if (!mapping) return std::optional<LoopRV>();
  std::vector<LoopRV> inner;
  std::vector<NodeRef> inner_vars;
  for (const auto& [loop, desc_loop] : mapping->loops) {
    int64_t size = *const_int(desc_loop->extent);
    // The outer factor is left open, so that the step fits loops of other lengths when decisions before it change.
    TW_TRY(parts, schedule.apply(Split{.loop = loop, .factors = {{None{}, size}}}));
    inner.push_back(parts[1]);
    TW_TRY(made, schedule.state().find(parts[1]));
    inner_vars.push_back(made.loop().loop_var);
  }
  TW_TRY(loops, schedule.apply(GetLoops{block}));
  Reorder order;
  bool met = false;
  for (LoopRV loop : loops) {
    TW_TRY(place, schedule.state().find(loop));
    bool is_inner = is_contained(inner_vars, place.loop().loop_var);
    met |= is_inner;
    if (met && !is_inner) order.ordered_loops.items.push_back(loop);
  }
  append_range(order.ordered_loops.items, inner);
  TW_RETURN_IF_ERROR(schedule.apply(order));
  return std::optional(inner[0]);
}

Result<std::optional<BlockRV>> tile_for_intrin(Schedule& schedule, BlockRV block, const std::string& intrin_name,
                                               bool allow_padding) {
  TW_TRY(loop, tile_with_tensor_intrin(schedule, block, intrin_name, allow_padding));
  if (!loop) return std::optional<BlockRV>();
  TW_TRY(outer, schedule.apply(Blockize{.target = {*loop}}));
  TW_RETURN_IF_ERROR(schedule.apply(
      Annotate{.block_or_loop = outer, .ann_key = "meta_schedule.auto_tensorize", .ann_val = {intrin_name}}));
  return std::optional(outer);
}

bool computes_as(const Place& place, const PrimFunc& desc) {
  std::optional<Description> description = Description::of(desc);
  if (!description) return false;
  arith::Analyzer analyzer;
  bind_axes(analyzer, place.block().iter_vars);
  bind_axes(analyzer, description->realize->block->iter_vars);
  return Alike(analyzer).match(place.block().body, description->realize->block->body);
}

std::optional<LayoutMapping> layout_mapping(const Place& place, const PrimFunc& desc) {
  std::optional<Description> description = Description::of(desc);
  if (!description) return std::nullopt;
  const Block& block = place.block();
  const Block& desc_block = *description->realize->block;
  arith::Analyzer analyzer;
  bind_axes(analyzer, block.iter_vars);
  bind_axes(analyzer, desc_block.iter_vars);
  Alike alike(analyzer);
  if (!alike.match(block.body, desc_block.body)) return std::nullopt;
  std::optional<Joined> joined = join(block, desc_block, alike.found());
  if (!joined) return std::nullopt;
  VarMap renamed;
  IndexMap map;
  for (const Ref<IterVar>& axis : block.iter_vars) {
    map.initial_indices.push_back(var(axis->var->name_hint, axis->var.dtype()));
    renamed[axis->var] = map.initial_indices.back();
  }
  for (const Ref<IterVar>& axis : joined->batches) map.final_indices.push_back(renamed[axis->var]);
  for (const auto& parts : joined->parts) {
    Expr value;
    for (const Ref<IterVar>& part : parts) {
      value = value.defined() ? value * part->dom->extent + renamed[part->var] : renamed[part->var];
    }
    map.final_indices.push_back(value);
  }
  LayoutMapping result;
  result.map = make(std::move(map));
  result.num_batches = joined->batches.size();
  result.buffers = alike.found().buffers;
  result.indices = alike.found().desc_indices;
  result.block_axes = block.iter_vars;
  result.desc_axes = desc_block.iter_vars;
  return result;
}

}  // namespace tilewright::search
