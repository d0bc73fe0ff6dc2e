// Axes, sparse buffers and sparse iterations (SparseTIR, section 3.1).

#include <cmath>

#include "ir/build.h"
#include "ir/literal.h"
#include "ir/sparse.h"
#include "ir/structural.h"
#include "script/ir_builder.h"
#include "script/ir_builder_frames.h"
#include "support/ranges.h"

namespace tilewright::script {
namespace {

PrimFuncFrame& sparse_function(std::string_view caller) {
  auto* function = IRBuilder::require(caller).find<PrimFuncFrame>();
  if (function == nullptr)
    refuse("builder/place", std::string(caller) + " belongs inside T.prim_func", "declare axes in the function");
  return *function;
}

Ref<Axis> declare(std::string_view caller, Axis axis) {
  PrimFuncFrame& function = sparse_function(caller);
  axis.name = "axis";  // until the script assigns it to a variable
  Ref<Axis> result = make(std::move(axis));
  function.axes.push_back(result);
  IRBuilder::current()->adopt(result);
  return result;
}

/// Returns the buffer of a parameter with indptr or indices. It is matched at its first use: axes may share it.
Ref<Buffer> structure_buffer(std::string_view caller, const NodeRef& source, Expr extent, DataType idtype) {
  if (!source.defined()) return {};
  if (source.is<Buffer>()) return source.borrow<Buffer>();
  if (!source.is<Var>()) {
    refuse("builder/axis", std::string(caller) + " needs a parameter of type T.handle, or a buffer, for its structure",
           "J = T.sp.compressed_varied(I, (n, nnz), (indptr, indices))");
  }
  const Ref<Var> param = source.cast<Var>();
  for (const auto& [bound, buffer] : sparse_function(caller).buffer_map) {
    if (bound == param) return buffer;
  }
  Ref<Buffer> buffer = match_buffer(param, {.shape = {std::move(extent)}, .dtype = idtype});
  IRBuilder::current()->name(param->name_hint + "_data", buffer);
  return buffer;
}

/// Returns the value in the type of the buffer. Null for 0, the default of sparse buffers.
Expr default_of(DataType dtype, const Operand& value) {
  if (!value.node.defined()) return {};
  Expr number = cast(dtype, value);
  const std::optional<double> real = const_float(number);
  const bool zero = is_const_int(number, 0) || (real == 0.0 && !std::signbit(*real));
  return zero ? Expr() : number;
}

Buffer with_axes(Buffer buffer, std::vector<Ref<Axis>> axes, Expr default_value) {
  buffer.axes = std::move(axes);
  buffer.default_value = std::move(default_value);
  return buffer;
}

/// Returns the array that holds the elements of a sparse buffer. `extra`: elements behind those over the axes.
BufferSpec array_spec(const std::vector<Ref<Axis>>& axes, DataType dtype, std::string scope, const Expr& extra) {
  if (axes.empty()) refuse("builder/axis", "a sparse buffer without axes", "T.alloc_buffer makes dense ones");
  std::vector<Expr> shape = stored_shape(axes);
  if (extra.defined()) shape[0] = shape[0] + cast(shape[0].dtype(), extra);
  return {.shape = std::move(shape), .dtype = dtype, .scope = std::move(scope)};
}

const char* axis_constructor_name(const NodeRef& indptr, const NodeRef& indices) {
  if (!indices.defined()) return "T.sp.dense_varied";
  return indptr.defined() ? "T.sp.compressed_varied" : "T.sp.compressed_fixed";
}

}  // namespace

Ref<Axis> dense_fixed_axis(Expr length, DataType idtype) {
  Axis axis;
  axis.length = axis.nnz = axis.nnz_cols = length;
  axis.idtype = idtype;
  return declare("T.sp.dense_fixed", std::move(axis));
}

Ref<Axis> axis_below(const Ref<Axis>& parent, Expr length, Expr nnz, Expr nnz_cols, const NodeRef& indptr,
                     const NodeRef& indices, DataType idtype, bool sorted) {
  const char* caller = axis_constructor_name(indptr, indices);
  Axis axis;
  axis.parent = parent;
  axis.length = std::move(length);
  axis.idtype = idtype;
  axis.sorted = sorted;
  axis.nnz = nnz_cols.defined() ? parent->nnz * nnz_cols : nnz;
  axis.nnz_cols = std::move(nnz_cols);
  axis.indptr = structure_buffer(caller, indptr, parent->nnz + 1, idtype);
  axis.indices = structure_buffer(caller, indices, axis.nnz, idtype);
  return declare(caller, std::move(axis));
}

Ref<Axis> attached_axis(const Ref<Axis>& axis, const Ref<Axis>& parent) {
  Axis result = *axis;
  result.name = axis->name + "_attach_" + parent->name;
  result.parent = parent;
  result.attached = axis;
  return make(std::move(result));
}

Ref<Axis> flattened_axis(const std::vector<Ref<Axis>>& axes, const Expr& nnz, const std::vector<NodeRef>& offsets,
                         DataType idtype) {
  if (axes.empty()) refuse("builder/axis", "T.sp.flatten of no axes", "list them: T.sp.flatten([I, J])");
  std::vector<Ref<Buffer>> structure;
  for (const Ref<Axis>& axis : axes) {
    structure.push_back(axis->indptr);
    structure.push_back(axis->indices);
  }
  for (const NodeRef& offset : offsets) {
    Ref<Buffer> named = offset.as<Buffer>() ? offset.borrow<Buffer>() : Ref<Buffer>();
    for (const auto& [param, buffer] : sparse_function("T.sp.flatten").buffer_map) {
      if (param == offset) named = buffer;
    }
    if (named.defined() && is_contained(structure, named)) continue;
    refuse("builder/axis", "T.sp.flatten with offsets that none of its axes has",
           "axes have their offsets already: leave them out");
  }
  Axis axis;
  axis.length = cast(idtype, stored_elements(axes));
  if (nnz.defined() && !structural_equal(cast(idtype, nnz), axis.length)) {
    refuse("builder/axis", "T.sp.flatten with another nnz than the number of elements over its axes",
           "the number follows from the axes: leave it out");
  }
  axis.nnz = axis.nnz_cols = axis.length;
  axis.idtype = idtype;
  axis.flattened = axes;
  return declare("T.sp.flatten", std::move(axis));
}

Ref<Buffer> match_sparse_buffer(const Ref<Var>& param, std::vector<Ref<Axis>> axes, DataType dtype, Expr extra_storage,
                                const Operand& default_value) {
  BufferSpec spec = array_spec(axes, dtype, "global", extra_storage);
  Ref<Buffer> dense = match_buffer(param, spec);
  Ref<Buffer> buffer = make<Buffer>(with_axes(*dense, std::move(axes), default_of(dtype, default_value)));
  auto& entries = sparse_function("T.sp.match_buffer").buffer_map;  // match_buffer() has appended the array
  entries.back().second = Def<Buffer>(buffer);
  IRBuilder::current()->adopt(buffer);
  return buffer;
}

Ref<Buffer> alloc_sparse_buffer(std::vector<Ref<Axis>> axes, DataType dtype, const std::string& scope,
                                const Operand& default_value) {
  PrimFuncFrame& function = sparse_function("T.sp.alloc_buffer");
  Ref<Buffer> dense = make_buffer(array_spec(axes, dtype, scope, {}));
  Ref<Buffer> buffer = make<Buffer>(with_axes(*dense, std::move(axes), default_of(dtype, default_value)));
  function.root_alloc_buffers.emplace_back(buffer);
  IRBuilder::current()->adopt(buffer);
  return buffer;
}

void SparseIterationFrame::check_place(IRBuilder& builder) {
  if (builder.find<PrimFuncFrame>() == nullptr)
    refuse("builder/place", "T.sp.iteration outside of T.prim_func", "put it into a function");
  auto* block = builder.find<BlockFrame>();
  if (block && (block->name != "root" || !block->iter_vars.empty())) {
    refuse("builder/place", "T.sp.iteration inside T.block", "an iteration becomes blocks when it is lowered");
  }
}

void SparseIterationFrame::finish(IRBuilder& builder) {
  builder.add(make<SparseIteration>(
      {std::move(iter_vars), name, annotations.value_or(Annotations{}), std::move(init), body()}));
}

FramePtr sparse_iteration(const std::vector<Ref<Axis>>& axes, const std::vector<bool>& fused, std::string_view kinds,
                          const std::string& name) {
  if (kinds.size() != axes.size()) {
    refuse(
        "builder/axis",
        "T.sp.iteration over " + std::to_string(axes.size()) + " axes with the letters \"" + std::string(kinds) + "\"",
        "one letter for each axis: S is spatial, R a reduction");
  }
  auto frame = std::make_shared<SparseIterationFrame>();
  frame->name = name;
  for (size_t i : indices_of(axes)) {
    if (kinds[i] != 'S' && kinds[i] != 'R') {
      refuse("builder/axis", std::string("the letter '") + kinds[i] + "' of T.sp.iteration",
             "S is a spatial axis, R one of a reduction");
    }
    Ref<Var> variable = var("v", axes[i]->idtype);
    IRBuilder::require("T.sp.iteration").adopt(variable);
    IterType type = kinds[i] == 'S' ? IterType::kDataPar : IterType::kCommReduce;
    frame->iter_vars.push_back(make<SpIterVar>({variable, type, axes[i], fused[i]}));
    frame->values.push_back(variable);
  }
  return frame;
}

void sparse_iteration_attr(const Annotations& attrs) {
  auto& frame = expect_inside<SparseIterationFrame>("T.sp.iteration_attr", FrameKind::kSparseIteration);
  if (frame.annotations)
    refuse("builder/twice", "T.sp.iteration_attr is given twice", "put all annotations into one dict");
  frame.annotations = attrs;
}

}  // namespace tilewright::script
