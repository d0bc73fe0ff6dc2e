#include "sparse/nest.h"

#include "ir/build.h"
#include "ir/sparse.h"
#include "support/ranges.h"

namespace tilewright::sparse {
namespace {

Expr element(const Ref<Buffer>& structure, const Expr& index) { return load(structure, {index}); }

/// Whether an axis of the level occurs in it.
bool depends_on(const Expr& e, const Level& level) {
  return e.defined() && uses_any_var(e, [&](const Ref<Var>& v) {
           return any_of(level.axes, [&](const Ref<IterVar>& axis) { return axis->var == v; });
         });
}

Frame axis_frame(const Ref<SpIterVar>& iter, const Expr& parent, const Expr& position, const Expr& relative) {
  const Axis& axis = *iter->axis;
  const Expr coordinate = axis.is_sparse() ? element(axis.indices, position) : relative;
  return {.kind = Frame::Kind::kAxis,
          .iter = iter,
          .parent = parent,
          .position = position,
          .relative = relative,
          .value = cast(axis.idtype, coordinate)};
}

}  // namespace

std::pair<Expr, Expr> positions_below(const Axis& axis, const Expr& parent) {
  if (!axis.parent.defined()) return {zero(axis.idtype), cast(axis.idtype, axis.length)};
  if (axis.is_variable()) {
    return {cast(axis.idtype, element(axis.indptr, parent)), cast(axis.idtype, element(axis.indptr, parent + 1))};
  }
  const Expr count = cast(axis.idtype, axis.nnz_cols), begin = parent * count;
  return {begin, begin + count};
}

const Ref<Axis>& structure_of(const Ref<Axis>& axis) { return axis->attached.defined() ? axis->attached : axis; }

Expr Nest::parent_position(const Axis& axis) const {
  if (!axis.parent.defined()) return {};
  for (const Frame& frame : reversed(frames)) {
    if (!frame.is_axis() || frame.iter->axis != axis.parent) continue;
    return axis.attached.defined() ? frame.value : frame.position;
  }
  return {};
}

const Frame* Nest::find(const Ref<Var>& variable) const {
  for (const Frame& frame : reversed(frames)) {
    if (frame.is_axis() && frame.iter->var == variable) return &frame;
  }
  return nullptr;
}

Ref<IterVar> Nest::add_axis(const SpIterVar& iter, Expr extent, bool reduces, std::vector<Level>& levels) {
  if (levels.empty() || depends_on(extent, levels.back())) levels.push_back({frames.size(), {}, {}});
  const std::string& name = iter.var->name_hint;
  const DataType type = iter.axis->idtype;
  Ref<IterVar> axis = make<IterVar>({range_of(cast(type, std::move(extent))), var("v" + name, type),
                                     reduces ? IterType::kCommReduce : IterType::kDataPar, ""});
  levels.back().axes.push_back(axis);
  levels.back().loops.push_back(var(name, type));
  return axis;
}

void Nest::add(const Ref<SpIterVar>& iter, std::vector<Level>& levels, bool spatial) {
  const Axis& axis = *iter->axis;
  const Expr parent = parent_position(axis);
  auto [begin, end] = positions_below(axis, parent);
  Expr extent = axis.is_variable() ? end - begin : parent.defined() ? cast(axis.idtype, axis.nnz_cols) : end;
  const bool reduces = !spatial && iter->iter_type == IterType::kCommReduce;
  const Ref<IterVar> block_axis = add_axis(*iter, extent, reduces, levels);
  const Expr relative = block_axis->var;
  frames.push_back(axis_frame(iter, parent, parent.defined() ? begin + relative : relative, relative));
  frames.back().axis = block_axis;
}

Expr Nest::parent_position_of(const Ref<Axis>& child, const Expr& position) {
  const bool is_first = is_const_int(child->parent->nnz, 1) || is_const_int(child->nnz_cols, 0);
  if (is_first) return zero(child->parent->idtype);
  if (!child->is_variable()) return floordiv(position, cast(child->idtype, child->nnz_cols));
  auto known = find_if(parent_indices, [&](const ParentIndices& indices) { return indices.child == child; });
  if (known == parent_indices.end()) {
    const Axis& parent = *child->parent;
    const int search = num_searches_ ? (*num_searches_)++ : -1;
    const std::string name = search < 0 ? child->name + "_" + parent.name : "mid_" + std::to_string(search);
    parent_indices.push_back({child, decl_buffer({child->nnz}, parent.idtype, name), search});
    known = parent_indices.end() - 1;
  }
  return element(known->parents, position);
}

/// Adds one loop over all positions of the last axis.
void Nest::add_fused(const std::vector<Ref<SpIterVar>>& iters, size_t first, size_t last, std::vector<Level>& levels,
                     bool spatial) {
  const Axis& outer = *iters[first]->axis;
  const Ref<SpIterVar>& inner = iters[last];
  const Expr parent = parent_position(outer);
  Expr begin = zero(inner->axis->idtype), end = inner->axis->nnz;
  if (parent.defined()) {
    std::tie(begin, end) = positions_below(outer, parent);
    for (size_t i = first + 1; i <= last; ++i) {
      const Axis& axis = *iters[i]->axis;
      begin = positions_below(axis, begin).first;
      end = positions_below(axis, end).first;
    }
  }
  bool reduces = false;
  for (size_t i = first; i <= last; ++i) reduces |= !spatial && iters[i]->iter_type == IterType::kCommReduce;
  Ref<IterVar> axis = add_axis(*inner, parent.defined() ? end - begin : end, reduces, levels);
  if (num_searches_) {
    // SparseTIR's form makes each fused variable a block axis; all but the last have extent 1 and no loop.
    Level& level = levels.back();
    for (size_t i = first; i < last; ++i) {
      const Ref<Var>& of = iters[i]->var;
      level.axes.insert(
          level.axes.end() - 1,
          make<IterVar>({range_of(one(of.dtype())), var("v" + of->name_hint, of.dtype()), axis->iter_type, ""}));
      level.loops.insert(level.loops.end() - 1, Ref<Var>());
    }
  }
  Expr position = parent.defined() ? begin + Expr(axis->var) : Expr(axis->var);
  std::vector<Frame> group;  // innermost first
  for (size_t i = last + 1; i-- > first;) {
    const Expr iter_parent = i > first ? parent_position_of(structure_of(iters[i]->axis), position) : parent;
    const Expr relative =
        iter_parent.defined() ? position - positions_below(*iters[i]->axis, iter_parent).first : position;
    group.push_back(axis_frame(iters[i], iter_parent, position, relative));
    group.back().in_group = i > first;
    position = iter_parent;
  }
  group.front().axis = axis;
  frames.insert(frames.end(), group.rbegin(), group.rend());
}

std::vector<Level> Nest::open(const std::vector<Ref<SpIterVar>>& iters, bool spatial) {
  std::vector<Level> levels;
  for (size_t i = 0; i < iters.size(); ++i) {
    size_t last = i;
    while (last + 1 < iters.size() && iters[last + 1]->fused && iters[last + 1]->axis->parent == iters[last]->axis &&
           !iters[last + 1]->axis->attached.defined()) {
      ++last;
    }
    if (last > i) {
      add_fused(iters, i, last, levels, spatial);
    } else {
      add(iters[i], levels, spatial);
    }
    i = last;
  }
  if (levels.empty()) levels.push_back({frames.size(), {}, {}});
  return levels;
}

Stmt make_block_nest(const Level& level, std::string name, Annotations annotations, Stmt init, Stmt body,
                     std::vector<Def<Buffer>> allocated) {
  Ref<Block> block = make<Block>({.iter_vars = level.axes,
                                  .reads = {},
                                  .writes = {},
                                  .name_hint = std::move(name),
                                  .alloc_buffers = std::move(allocated),
                                  .match_buffers = {},
                                  .annotations = std::move(annotations),
                                  .init = std::move(init),
                                  .body = std::move(body),
                                  .id = {}});
  std::vector<Expr> values;
  for (size_t i : indices_of(level.loops)) {
    values.push_back(level.loops[i].defined() ? Expr(level.loops[i]) : zero(level.axes[i]->var.dtype()));
  }
  Stmt result = make<BlockRealize>({std::move(values), bool_imm(true), block});
  for (size_t i = level.loops.size(); i-- > 0;) {
    if (!level.loops[i].defined()) continue;
    result = loop(level.loops[i], level.axes[i]->dom->extent, std::move(result));
  }
  return result;
}

Placement locate_element(const std::vector<const Frame*>& frames) {
  Placement result;
  std::vector<Ref<Axis>> axes;
  std::vector<const Frame*> of_axes;
  for (const Frame* frame : frames) {
    if (!frame->is_axis()) {
      result.shape.push_back(frame->loop->extent);
      result.indices.push_back(Expr(frame->loop->loop_var) - frame->loop->min);
      continue;
    }
    axes.push_back(frame->iter->axis);
    of_axes.push_back(frame);
  }
  for (const StoredDimension& dimension : stored_dimensions(axes)) {
    const Frame& frame = *of_axes[dimension.axis];
    result.shape.push_back(dimension.extent);
    result.indices.push_back(frame.iter->axis->is_variable() ? frame.position : frame.relative);
  }
  return result;
}

}  // namespace tilewright::sparse
