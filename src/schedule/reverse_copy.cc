#include "schedule/reverse_copy.h"

#include <algorithm>

#include "analysis/accesses.h"
#include "analysis/block_facts.h"
#include "ir/buffer_domain.h"
#include "ir/build.h"
#include "ir/op.h"
#include "ir/structural.h"
#include "ir/substitute.h"
#include "ir/traverse.h"
#include "schedule/kept_shape.h"
#include "schedule/run_condition.h"
#include "support/ranges.h"

namespace tilewright::schedule {
namespace {

/// Made of axes of the block, variables from outside of its loops, and buffers that it does not write.
bool is_said_by_axes(const Place& block, const Expr& e) {
  if (effect_of(e) != Effect::kPure && effect_of(e) != Effect::kReadState) return false;
  bool fine = true;
  visit(
      e,
      [&](const Ref<BufferLoad>& load) {
        fine = fine && !block.tree->touches(block.block().writes, load->buffer) && !load->predicate.defined();
      },
      [&](const Ref<Let>&) { fine = false; });
  for_each_free_var(e, [&](const Ref<Var>& v) { fine = fine && (v.dtype().is_handle() || !is_foreign(block, v)); });
  return fine && e.dtype().is_scalar();
}

/// The condition inside of the block under which an access happens; null where a loop or a name has a say.
Expr condition_of(const Place& block, const analysis::Access& access) {
  Expr all = bool_imm(true);
  for (const analysis::Surrounding& s : analysis::inside_block(access.around)) {
    if (s.kind != analysis::Surrounding::Kind::kCondition || !is_said_by_axes(block, s.condition)) return {};
    // The inner condition may need the outer one to be evaluated at all.
    all = is_true(all) ? s.condition : if_then_else(all, s.condition, bool_imm(false));
  }
  return all;
}

}  // namespace

Result<SelectedElement> selected_element(const Place& block, const Ref<Buffer>& buffer, const char* code) {
  SelectedElement element;
  std::string why;
  bool leaf = true, seen = false;
  auto inner = [&](const Ref<BlockRealize>&, Visitor&) { leaf = false; };
  visit(block.block().body, inner);
  if (block.block().init.defined()) visit(block.block().init, inner);
  auto look = [&](const analysis::Access& access) {
    const bool is_it = access.pointer == buffer->data ||
                       (access.named.defined() && block.tree->same_memory(access.region()->buffer, buffer));
    if (!is_it || !why.empty()) return;
    const std::vector<Expr>* indices = access.indices();
    const bool plain =
        access.form == analysis::Access::Form::kElement && access.named == buffer && !access.mask().defined();
    if (!plain || !indices) {
      why = "touches '" + buffer->name + "' otherwise than by loads and stores of single elements";
    } else if (seen && !same_exprs(element.indices, *indices)) {
      why = "touches several elements of '" + buffer->name + "'";
    } else {
      const Expr guard = condition_of(block, access);
      const bool first = !std::exchange(seen, true);
      element.indices = *indices;
      if (first || (guard.defined() && is_true(guard))) {
        element.guard = guard;
      } else if (element.guard.defined() && !is_true(element.guard)) {
        if (!guard.defined() || !structural_equal(guard, element.guard)) element.guard = {};
      }
    }
  };
  if (!leaf) {
    why = "holds other blocks";
  } else {
    analysis::for_each_access(block.tree->block_ref(block.at), analysis::Nested::kEnter, look);
    if (why.empty() && !seen) why = "touches no single element of '" + buffer->name + "'";
  }
  for (const Expr& index : element.indices) {
    if (why.empty() && !is_said_by_axes(block, index)) {
      why = "touches '" + buffer->name + "' at " + analysis::brief(index) + ", which its axes and data do not say";
    }
  }
  if (why.empty()) return element;
  return refuse(code, describe(block) + " " + why, block,
                "each instance has to touch one element, the same wherever the buffer occurs");
}

namespace {

/// Returns a bound of the extent that is known outside of the block's loops: the extent itself, or for the difference
/// of two elements of a buffer the declared one. Null if there is none.
Expr bound_of(const Place& block, const Expr& extent) {
  bool foreign = false;
  for_each_free_var(extent, [&](const Ref<Var>& v) { foreign |= is_foreign(block, v); });
  if (!foreign && effect_of(extent) == Effect::kPure) return extent;
  const Sub* difference = extent.as<Sub>();
  const BufferLoad* end = difference ? difference->a.as<BufferLoad>() : nullptr;
  const BufferLoad* begin = difference ? difference->b.as<BufferLoad>() : nullptr;
  if (!end || !begin || end->buffer != begin->buffer) return {};
  const Tree& tree = *block.tree;
  for (int at = tree[block.at].scope; at != Tree::kNone; at = tree[at].scope) {
    for (const BufferDomain& domain : buffer_domains(tree.block_at(at))) {
      if (domain.buffer != end->buffer) continue;
      const Expr bound = arith::Analyzer().simplify(domain.end - 1 - domain.min);
      if (effect_of(bound) == Effect::kPure) return cast(extent.dtype(), bound);
    }
  }
  return {};
}

Diagnostic unfit(const Place& block, const char* code, const std::string& why, std::string hint) {
  return refuse(code, why + " of " + describe(block), block, std::move(hint));
}

/// Positions of axes: those that are used, or what `order` says.
Result<std::vector<size_t>> ordered(const Place& block, const std::vector<size_t>& used,
                                    const std::vector<int64_t>& order, const char* code) {
  if (order.empty()) return used;
  const std::string hint = "name each axis of the block that the indices use, by its position, and none twice";
  std::vector<size_t> result;
  for (int64_t position : order) {
    if (position < 0 || position >= static_cast<int64_t>(block.block().iter_vars.size())) {
      return unfit(block, code, "dim_order names axis " + std::to_string(position), hint);
    }
    const auto at = static_cast<size_t>(position);
    if (is_contained(result, at)) {
      return unfit(block, code, "dim_order names axis " + std::to_string(position) + " twice,", hint);
    }
    result.push_back(at);
  }
  for (size_t at : used) {
    if (is_contained(result, at)) continue;
    return unfit(block, code, "dim_order omits axis '" + block.block().iter_vars[at]->var->name_hint + "'", hint);
  }
  return result;
}

}  // namespace

namespace {

bool is_read_by_init(const Block& block, const Ref<Buffer>& buffer) {
  bool reads = false;
  if (block.init.defined()) visit(block.init, [&](const Ref<BufferLoad>& load) { reads |= load->buffer == buffer; });
  return reads;
}

}  // namespace

Result<AxisCache> selected_cache(const Place& block, const Ref<Buffer>& buffer, const SelectedElement& element,
                                 const std::string& storage_scope, const std::vector<int64_t>& order,
                                 const char* code) {
  AxisCache cache;
  cache.original = buffer;
  cache.condition = bool_imm(true);
  cache.old_indices = element.indices;
  TW_TRY(dimensions, ordered(block, axes_used(block.block(), element.indices), order, code));
  std::vector<Expr> shape;
  for (size_t at : dimensions) {
    const IterVar& axis = *block.block().iter_vars[at];
    if (analysis::is_reduction_axis(block.block().iter_vars[at]) && is_read_by_init(block.block(), buffer)) {
      return unfit(block, code,
                   "the init reads '" + buffer->name + "' without the reduction axis '" + axis.var->name_hint + "'",
                   "name axes that select the element alone");
    }
    const Expr extent = bound_of(block, axis.dom->extent);
    if (!extent.defined()) {
      return unfit(block, code,
                   "the extent " + analysis::brief(axis.dom->extent) + " of axis '" + axis.var->name_hint +
                       "' is not known outside of the loops",
                   "declare the values that it is made of, T.assume_buffer_domain(indptr, [0, nnz + 1])");
    }
    shape.push_back(extent);
    cache.new_indices.push_back(arith::Analyzer().simplify(axis.var - axis.dom->min));
  }
  cache.axes = dimensions;
  std::ranges::sort(cache.axes);
  cache.cache = decl_buffer(std::move(shape), buffer->dtype, buffer->name + "_" + storage_scope,
                            storage_scope.empty() ? "global" : storage_scope);
  TW_RETURN_IF_ERROR(require_kept_shape(*block.tree, (*block.tree)[block.at].scope, cache.cache, code));
  return cache;
}

bool is_said_by(const Place& block, const Expr& e, const std::vector<size_t>& axes) {
  const std::vector<size_t> used = axes_used(block.block(), {e});
  return std::ranges::includes(axes, used);
}

Result<Expr> has_instances(const Place& block, int outside, const AxisCache& cache, const char* code) {
  const Tree& tree = *block.tree;
  auto loops = analysis::loops_between(tree, outside, block.at);
  std::vector<Expr> dropped;
  std::vector<Ref<Var>> inside;
  auto analyzer = analysis::analyzer_above(tree, outside);
  for (int at : *loops) {
    const For& loop = tree.for_at(at);
    const bool kept = any_of(
        cache.axes, [&](size_t i) { return uses_var(tree.realize_at(block.at)->iter_values[i], loop.loop_var); });
    if (kept) {
      analyzer.bind(loop.loop_var, range(loop.min, loop.extent));
    } else {
      dropped.push_back(loop.extent);
    }
    inside.push_back(loop.loop_var);
  }
  const Expr runs = all_positive(dropped, analyzer);
  const bool depends = uses_any_var(runs, [&](const Ref<Var>& v) { return is_contained(inside, v); });
  if (!depends) return runs;
  return refuse(code, "whether " + describe(block) + " has instances depends on loops that the copy does not have",
                block, "take this step before the loops around the block are split or moved");
}

}  // namespace tilewright::schedule
