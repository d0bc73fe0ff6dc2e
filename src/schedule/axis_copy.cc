#include "schedule/axis_copy.h"
#include "schedule/kept_shape.h"

#include <algorithm>

#include "analysis/accesses.h"
#include "analysis/block_access_region.h"
#include "arith/index_map.h"
#include "ir/build.h"
#include "ir/structural.h"
#include "ir/substitute.h"
#include "ir/traverse.h"
#include "schedule/run_condition.h"
#include "support/ranges.h"

namespace tilewright::schedule {
namespace {

std::vector<Ref<Range>> points(const std::vector<Expr>& indices) {
  std::vector<Ref<Range>> region;
  for (const Expr& index : indices) region.push_back(range(index, one(index.dtype())));
  return region;
}

}  // namespace

bool is_foreign(const Place& block, const Ref<Var>& v) {
  const Tree& tree = *block.tree;
  for (int at : tree.loops_above(block.at)) {
    if (tree.for_at(at).loop_var == v) return true;
  }
  bool inside = false;
  visit(block.block().body,
        [&](const Ref<Var>& bound, Visitor& walk) { inside |= walk.role() == Role::kDef && bound == v; });
  return inside;
}

Result<std::vector<Expr>> only_element(const Place& block, const Ref<Buffer>& buffer, const char* code) {
  std::vector<Expr> element;
  std::string why;
  auto look = [&](const analysis::Access& access) {
    bool same = access.pointer == buffer->data ||
                (access.named.defined() && block.tree->same_memory(access.region()->buffer, buffer));
    if (!same || !why.empty()) return;
    const std::vector<Expr>* indices = access.indices();
    bool plain = access.form == analysis::Access::Form::kElement && access.named == buffer && !access.mask().defined();
    if (!plain || !indices || any_of(*indices, [](const Expr& e) { return e.dtype().is_vector(); })) {
      why = "touches '" + buffer->name + "' otherwise than by loads and stores of single elements";
    } else if (element.empty()) {
      element = *indices;
    } else if (!same_exprs(element, *indices)) {
      why = "touches several elements of '" + buffer->name + "'";
    }
  };
  bool leaf = true;
  auto inner = [&](const Ref<BlockRealize>&, Visitor&) { leaf = false; };
  visit(block.block().body, inner);
  if (block.block().init.defined()) visit(block.block().init, inner);
  if (!leaf) {
    why = "holds other blocks";
  } else {
    analysis::for_each_access(block.tree->block_ref(block.at), analysis::Nested::kEnter, look);
    if (why.empty() && element.empty()) why = "touches no single element of '" + buffer->name + "'";
  }
  for (const Expr& index : element) {
    bool plain = !has_node<BufferLoad, Call>(index);
    for_each_free_var(index, [&](const Ref<Var>& v) { plain &= !is_foreign(block, v); });
    if (why.empty() && !plain)
      why = "touches '" + buffer->name + "' at " + analysis::brief(index) + ", which its axes do not say";
  }
  if (why.empty()) return element;
  return refuse(code, describe(block) + " " + why, block,
                "each instance has to touch one element, the same wherever the buffer occurs");
}

std::vector<size_t> axes_used(const Block& block, const std::vector<Expr>& indices) {
  std::vector<size_t> used;
  for (size_t i : indices_of(block.iter_vars)) {
    bool any = any_of(indices, [&](const Expr& index) { return uses_var(index, block.iter_vars[i]->var); });
    if (any) used.push_back(i);
  }
  return used;
}

Status check_inside(const Place& block, const std::vector<Expr>& indices, const Ref<Buffer>& buffer, const char* code) {
  auto analyzer = analysis::analyzer_above(*block.tree, block.at);
  for (size_t d : indices_of(indices)) {
    const Expr& extent = buffer->shape[d];
    if (analyzer.can_prove(ge(indices[d], zero(indices[d].dtype()))) && analyzer.can_prove(lt(indices[d], extent)))
      continue;
    return refuse(code,
                  "for some values of its axes, the element of '" + buffer->name + "' that " + describe(block) +
                      " touches may be out of bounds: index " + analysis::brief(indices[d]) + " of dimension " +
                      std::to_string(d) + " (extent " + analysis::brief(extent) + ")",
                  block, "let a block of its own write the padded buffer first");
  }
  return Ok{};
}

arith::Box box_of_axes(const Block& block, const std::vector<Expr>& indices) {
  arith::Domains domains;
  for (const Ref<IterVar>& axis : block.iter_vars) domains.emplace(axis->var, arith::IntSet::of_range(axis->dom));
  arith::Analyzer analyzer;
  arith::Box box;
  for (const Expr& index : indices) box.push_back(arith::eval_set(index, domains, analyzer));
  return box;
}

Ref<Block> at_element(const Ref<Block>& block, const Ref<Buffer>& original, const Ref<Buffer>& cache,
                      const std::vector<Expr>& indices) {
  Ref<Block> changed = rewrite(
      block,
      [&](const Ref<BufferLoad>& old, Rewriter& walk) -> Expr {
        if (old->buffer != original) return walk.descend(old);
        return make<BufferLoad>({cache, indices, {}}, old.span());
      },
      [&](const Ref<BufferStore>& old, Rewriter& walk) -> Stmt {
        Ref<BufferStore> inner = walk.descend(old);
        if (old->buffer != original) return inner;
        return make<BufferStore>({cache, inner->value, indices, {}}, old.span());
      },
      // Data in shapes are read where the buffer is declared, perhaps outside: another shape would be another buffer.
      [](const Ref<Buffer>& old, Rewriter&) -> NodeRef { return old; },
      [&](const Ref<Block>& old, Rewriter& walk) -> Stmt {
        Block moved = *walk.descend(old);
        for (auto* regions : {&moved.reads, &moved.writes}) {
          for (Ref<BufferRegion>& region : *regions) {
            if (region->buffer == original) region = make<BufferRegion>({cache, points(indices)}, region.span());
          }
        }
        return make(std::move(moved), old.span());
      });
  return with_axes_of(block, changed);
}

Ref<Block> copying_block(std::vector<Ref<IterVar>> axes, Element from, Element to, std::string name,
                         const Expr& guard) {
  Block block;
  block.iter_vars = std::move(axes);
  block.reads = {make<BufferRegion>({from.buffer, points(from.indices)})};
  block.writes = {make<BufferRegion>({to.buffer, points(to.indices)})};
  block.name_hint = std::move(name);
  auto reads_data = [](const Expr& e) { return effect_of(e) != Effect::kPure; };
  bool selects = guard.defined() && reads_data(guard);
  for (const auto* indices : {&from.indices, &to.indices}) {
    selects |= any_of(*indices, reads_data);
  }
  Expr value = load(from.buffer, std::move(from.indices));
  if (guard.defined() && !is_true(guard)) value = if_then_else(guard, value, zero(value.dtype()));
  block.body = store(to.buffer, std::move(value), std::move(to.indices));
  if (selects) block.reads = analysis::block_access_region(make<Block>(Block(block))).reads;
  return make(std::move(block));
}

Ref<BufferRegion> axes_as_region(const Block& block, const std::vector<size_t>& positions) {
  std::vector<Expr> shape, indices;
  for (size_t i : positions) {
    const IterVar& axis = *block.iter_vars[i];
    shape.push_back(axis.dom->min + axis.dom->extent);
    indices.push_back(axis.var);
  }
  return make<BufferRegion>({decl_buffer(std::move(shape), DataType::bool_(), "axes"), points(indices)});
}

namespace {

/// The images of the block's axes, in the type of the widest one.
std::vector<Expr> images(const Block& block, const IndexMap& map) {
  DataType widest = DataType::int_(32);
  for (const Ref<IterVar>& axis : block.iter_vars) {
    if (axis->var.dtype().bits > widest.bits) widest = axis->var.dtype();
  }
  VarMap values;
  for (size_t i : indices_of(map.initial_indices)) {
    values[map.initial_indices[i]] = cast(widest, block.iter_vars[i]->var);
  }
  arith::Analyzer analyzer;
  std::vector<Expr> result;
  for (const Expr& e : map.final_indices) {
    Expr image = rewrite(
        e, [&](const Ref<Var>& v, Rewriter&) -> Expr { return find_value_or(values, v, v); },
        [&](const Ref<IntImm>& number, Rewriter&) -> Expr {
          return number->dtype.is_int() ? Expr(int_imm(widest, number->value)) : Expr(number);
        });
    result.push_back(analyzer.simplify(image));
  }
  return result;
}

Diagnostic unfit(const Place& block, const char* code, const std::string& why) {
  return refuse(code, "the index map does not fit " + describe(block) + ": " + why, block,
                "map the block's axes, all that the old indices speak of and no others, to new indices");
}

}  // namespace

Result<AxisCache> axis_cache(const Place& block, const Ref<Buffer>& buffer, const std::string& storage_scope,
                             const IndexMap& map, const AxisCacheCodes& codes) {
  const Block& target = block.block();
  AxisCache result;
  result.original = buffer;
  result.condition = bool_imm(true);
  TW_TRY(old_indices, only_element(block, buffer, codes.element));
  result.old_indices = old_indices;
  if (map.initial_indices.size() != target.iter_vars.size()) {
    return unfit(block, codes.map,
                 "it takes " + std::to_string(map.initial_indices.size()) + " indices, and the block has " +
                     std::to_string(target.iter_vars.size()) + " axes");
  }
  result.new_indices = images(target, map);
  result.axes = axes_used(target, result.new_indices);
  if (result.axes != axes_used(target, old_indices)) {
    return unfit(block, codes.map, "it speaks of other axes than the indices of '" + buffer->name + "'");
  }
  auto analyzer = analysis::analyzer_above(*block.tree, block.at);
  arith::IterDomains inputs;
  arith::Domains domains;
  std::vector<Expr> extents;
  for (size_t i : result.axes) {
    const IterVar& axis = *target.iter_vars[i];
    extents.push_back(axis.dom->extent);
    inputs.emplace_back(axis.var, axis.dom);
    domains.emplace(axis.var, arith::IntSet::of_range(axis.dom));
  }
  arith::IterMapResult found;
  if (!analysis::is_one_to_one(result.new_indices, inputs, bool_imm(true), analyzer, &found)) {
    return unfit(block, codes.map, "it cannot be proved that different values of the axes have different images");
  }
  std::vector<Expr> shape;
  for (const Expr& index : result.new_indices) {
    arith::IntSet set = arith::eval_set(index, domains, analyzer);
    if (!set.is_bounded() || !analyzer.can_prove(ge(set.min, 0))) {
      return unfit(block, codes.map, "the new index " + analysis::brief(index) + " may be negative");
    }
    const Expr extent = analyzer.simplify(set.max + 1);
    if (arith::leaves_type(extent)) {
      return unfit(
          block, codes.map,
          "the new index " + analysis::brief(index) + " takes more values than " + extent.dtype().str() + " holds");
    }
    shape.push_back(arith::not_negative(extent, extents));
  }
  TW_RETURN_IF_ERROR(check_inside(block, old_indices, buffer, codes.inside));
  result.cache = decl_buffer(std::move(shape), buffer->dtype, buffer->name + "_" + storage_scope,
                             storage_scope.empty() ? "global" : storage_scope);
  TW_RETURN_IF_ERROR(require_kept_shape(*block.tree, (*block.tree)[block.at].scope, result.cache, codes.map));
  return result;
}

Result<Stmt> axis_copy_nest(const Place& block, int outside, const AxisCache& cache, bool into_cache, const char* code,
                            Ref<Block>* made) {
  const Tree& tree = *block.tree;
  const BlockRealize& realize = *tree.realize_at(block.at);
  auto loops = analysis::loops_between(tree, outside, block.at);
  if (!loops)
    return refuse(code, describe(block) + " runs on a condition", block,
                  "take the copy before its loops are put under a condition");
  VarMap renamed;
  std::vector<const For*> kept, dropped;
  std::vector<Ref<Var>> names;
  for (int at : *loops) {
    const For& loop = tree.for_at(at);
    bool used = any_of(cache.axes, [&](size_t i) { return uses_var(realize.iter_values[i], loop.loop_var); });
    (used ? kept : dropped).push_back(&loop);
    if (!used) continue;
    names.push_back(var(loop.loop_var->name_hint, loop.loop_var.dtype()));
    renamed.emplace(loop.loop_var, names.back());
  }
  auto depends = [&](const Expr& e) {
    return any_of(dropped, [&](const For* loop) { return uses_var(e, loop->loop_var); });
  };
  bool varies = depends(realize.predicate);
  for (const For* loop : kept) varies |= depends(loop->min) || depends(loop->extent);
  if (varies) {
    return refuse(code, "which instances of " + describe(block) + " run depends on loops that the copy does not have",
                  block, "take this step before the loops around the block are split or moved");
  }
  Expr runs = bool_imm(true);
  auto analyzer = analysis::analyzer_above(tree, outside);
  for (const For* loop : kept) analyzer.bind(loop->loop_var, range(loop->min, loop->extent));
  analyzer.assume(realize.predicate);
  auto is_in_domain = [&](size_t i) {
    const Range& dom = *realize.block->iter_vars[i]->dom;
    const Expr& value = realize.iter_values[i];
    return analyzer.can_prove(le(dom.min, value)) && analyzer.can_prove(lt(value, dom.min + dom.extent));
  };
  // Where the loops that are dropped have no iteration, the block has no instance, and its axes no value.
  if (!all_of(cache.axes, is_in_domain)) {
    std::vector<Expr> extents;
    for (const For* loop : dropped) extents.push_back(loop->extent);
    runs = all_positive(extents, analyzer);
    if (depends(runs) || effect_of(runs) != Effect::kPure) {
      return refuse(code, "whether " + describe(block) + " has instances depends on loops that the copy does not have",
                    block, "take this step before the loops around the block are split or moved");
    }
  }
  VarMap axes;
  std::vector<Ref<IterVar>> iter_vars;
  std::vector<Expr> values;
  for (size_t i : cache.axes) {
    const IterVar& axis = *realize.block->iter_vars[i];
    Ref<Var> own = var(axis.var->name_hint, axis.var.dtype());
    axes.emplace(axis.var, own);
    iter_vars.push_back(
        make<IterVar>({.dom = axis.dom, .var = own, .iter_type = IterType::kDataPar, .thread_tag = ""}));
    values.push_back(substitute(realize.iter_values[i], renamed));
  }
  auto with_axes = [&](const std::vector<Expr>& indices) {
    std::vector<Expr> result;
    for (const Expr& index : indices) result.push_back(substitute(index, axes));
    return result;
  };
  Element original{cache.original, with_axes(cache.old_indices)}, inside{cache.cache, with_axes(cache.new_indices)};
  const Expr guard = cache.guard.defined() ? substitute(cache.guard, axes) : Expr();
  *made = into_cache ? copying_block(std::move(iter_vars), original, inside, cache.cache->name, guard)
                     : copying_block(std::move(iter_vars), inside, original, cache.cache->name);
  Expr condition = logical_and(realize.predicate, runs);
  Stmt nest = make<BlockRealize>({.iter_values = std::move(values),
                                  .predicate = logical_and(substitute(condition, renamed), cache.condition),
                                  .block = *made});
  for (size_t i = kept.size(); i-- > 0;) {
    For loop;
    loop.loop_var = names[i];
    loop.min = substitute(kept[i]->min, renamed);
    loop.extent = substitute(kept[i]->extent, renamed);
    loop.body = std::move(nest);
    nest = make(std::move(loop));
  }
  return nest;
}

Plan insert_axis_copy(const Place& block, const CopyPlace& place, const AxisCache& cache, const Stmt& nest) {
  TreeEdit edit(*block.tree);
  place.after ? edit.insert_after(place.near, nest) : edit.insert_before(place.near, nest);
  edit.change_block((*block.tree)[block.at].scope, [&](Block& outer) { outer.alloc_buffers.push_back(cache.cache); });
  edit.change_realize(block.at, [&](BlockRealize& realize) {
    realize.block = at_element(realize.block, cache.original, cache.cache, cache.new_indices);
  });
  return give_loops(block.func, edit.finish(), {});
}

}  // namespace tilewright::schedule
