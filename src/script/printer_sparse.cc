// Axes, sparse buffers and sparse iterations, in the spelling of the RFC ("SparseTIR dialect").
#include "ir/build.h"
#include "ir/sparse.h"
#include "ir/structural.h"
#include "ir/substitute.h"
#include "ir/traverse.h"
#include "script/interval.h"
#include "script/printer_state.h"
#include "support/ranges.h"

namespace tilewright::script {

/// Finds the buffers indptr and indices without a declaration of their own: naming their parameter in the axis implies
/// it.
void Printer::find_structures(const Ref<PrimFunc>& func) {
  structures_.clear();
  if (func->axes.empty()) return;
  std::unordered_map<const NodeBase*, const Axis*> candidates;
  for (const Ref<Axis>& axis : func->axes) {
    for (const Ref<Buffer>* buffer : {&axis->indptr, &axis->indices}) {
      if (!buffer->defined()) continue;
      const Expr extent = buffer == &axis->indptr ? axis->parent->nnz + 1 : axis->nnz;
      const Buffer& plain = **buffer;
      bool expected = plain.strides.empty() && is_const_int(plain.elem_offset, 0) && plain.dtype == axis->idtype &&
                      plain.data_alignment == 64 && plain.offset_factor == 1 && has_default_data(plain) &&
                      plain.scope() == "global" && same_expr(plain.shape[0], extent);
      if (expected) candidates.emplace(buffer->get(), &*axis);
    }
  }
  // A buffer or axis that is used elsewhere needs a declared name.
  visit(
      func->body, [&](const Ref<Buffer>& buffer, Visitor&) { candidates.erase(buffer.get()); },
      [&](const Ref<Axis>&, Visitor&) {});
  for (const auto& [param, buffer] : func->buffer_map) {
    if (candidates.contains(buffer.get())) structures_.emplace(buffer.get(), param);
  }
}

void Printer::structure(const Ref<Buffer>& buffer) {
  auto* param = find_value(structures_, buffer.get());
  text(param ? name_of(*param) : name_of(buffer));
}

void Printer::axis_name(const Ref<Axis>& axis) {
  if (auto* found = find_value(entries_, axis.get())) return text(found->text);
  axis_call(axis);
}

void Printer::axis_call(const Ref<Axis>& axis) {
  if (axis->attached.defined()) {
    tir("sp.attach(");
    axis_name(axis->attached);
    text(", ");
    axis_name(axis->parent);
    return text(")");
  }
  auto size = [&](const Expr& e) {
    for_each_free_var(e, [&](const Ref<Var>& var) {
      if (!is_defined(var)) declare_before_line(var);
    });
    expr(e);
  };
  if (!axis->flattened.empty()) {
    tir("sp.flatten([");
    axes(axis->flattened);
    text("]");
  } else if (!axis->parent.defined()) {
    tir("sp.dense_fixed(");
    size(axis->length);
  } else {
    tir(axis->is_sparse() ? axis->is_variable() ? "sp.compressed_varied(" : "sp.compressed_fixed("
                          : "sp.dense_varied(");
    axis_name(axis->parent);
    text(", (");
    size(axis->length);
    text(", ");
    size(axis->is_variable() ? axis->nnz : axis->nnz_cols);
    text("), ");
    bool both = axis->is_variable() && axis->is_sparse();
    if (both) text("(");
    if (axis->is_variable()) structure(axis->indptr);
    if (both) text(", ");
    if (axis->is_sparse()) structure(axis->indices);
    if (both) text(")");
  }
  if (axis->idtype != DataType::int_(32)) {
    text(axis->flattened.empty() ? ", " : ", idtype=");
    dtype_string(axis->idtype);
  }
  if (!axis->sorted) text(", sorted=False");
  text(")");
}

void Printer::axis_line(const Ref<Axis>& axis) {
  begin_line();
  const std::string& name = names_.take(with_address(axis->name, axis), "axis");
  Marking mark(*this, axis);
  text(name);
  text(" = ");
  axis_call(axis);
  define(axis, name, name, static_cast<int>(frames_.size()) - 1);
  end_line();
}

void Printer::axes(const std::vector<Ref<Axis>>& axes) {
  list(axes, [&](const Ref<Axis>& axis) { axis_name(axis); });
}

void Printer::sparse_buffer_call(const Buffer& buffer, const BufferCall& how) {
  bool matches = how.role == BufferRole::kMatch;
  tir(matches ? "sp.match_buffer(" : "sp.alloc_buffer(");
  if (!how.first.empty()) text(how.first + ", ");
  text("(");
  axes(buffer.axes);
  text(buffer.axes.size() == 1 ? ",), " : "), ");
  dtype_string(buffer.dtype);
  const Expr first = stored_shape(buffer.axes)[0];
  if (matches && !same_expr(first, buffer.shape[0])) {
    text(", extra_storage=");
    expr(extent_of(first, buffer.shape[0]));
  }
  if (!matches && buffer.scope() != "global") {
    text(", scope=");
    string_literal(buffer.scope());
  }
  if (buffer.default_value.defined()) {
    text(", default_value=");
    expr(buffer.default_value);
  }
  text(")");
}

void Printer::sparse_iteration(const SparseIteration& iteration) {
  begin_line();
  text("with ");
  tir("sp.iteration([");
  std::string kinds;
  const auto& iters = iteration.iter_vars;
  for (size_t i : indices_of(iters)) {
    bool fuses = i + 1 < iters.size() && iters[i + 1]->fused;
    if (i > 0) text(", ");
    if (fuses && !iters[i]->fused) tir("sp.fuse(");
    axis_name(iters[i]->axis);
    if (iters[i]->fused && !fuses) text(")");
    kinds += iters[i]->iter_type == IterType::kCommReduce ? 'R' : 'S';
  }
  text("], ");
  string_literal(kinds);
  text(", ");
  string_literal(iteration.name_hint);
  text(") as [");
  push_frame();
  for (size_t i : indices_of(iters)) {
    if (i > 0) text(", ");
    Marking mark(*this, iters[i]);
    text(define_var(iters[i]->var));
  }
  text("]:");
  end_header();
  ++indent_;
  mark_body();
  if (!iteration.annotations.empty()) {
    begin_line();
    tir("sp.iteration_attr(");
    annotations(iteration.annotations);
    text(")\n");
  }
  if (iteration.init.defined()) {
    begin_line();
    text("with ");
    tir("init():\n");
    body(iteration.init);
  }
  stmt(iteration.body, true);
  --indent_;
  pop_frame();
}

}  // namespace tilewright::script
