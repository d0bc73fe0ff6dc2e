#include "ir/sparse.h"

#include <algorithm>

#include "ir/build.h"
#include "ir/ceildiv.h"
#include "ir/structural.h"
#include "ir/substitute.h"
#include "support/ranges.h"

namespace tilewright {
namespace {

bool is_ancestor(const Ref<Axis>& axis, const Ref<Axis>& of) {
  for (Ref<Axis> above = of->parent; above.defined(); above = above->parent) {
    if (above == axis) return true;
  }
  return false;
}

/// An axis of a list that stands below one that is not in front of it; null if there is none.
Ref<Axis> without_parent(const std::vector<Ref<Axis>>& axes) {
  for (size_t i : indices_of(axes)) {
    auto end = axes.begin() + static_cast<std::ptrdiff_t>(i);
    if (axes[i]->parent.defined() && std::find(axes.begin(), end, axes[i]->parent) == end) return axes[i];
  }
  return {};
}

}  // namespace

std::vector<StoredDimension> stored_dimensions(const std::vector<Ref<Axis>>& axes) {
  std::vector<StoredDimension> result;
  std::vector<bool> stored(axes.size(), false);
  for (size_t first : indices_of(axes)) {
    if (stored[first]) continue;
    // The last variable axis below this one counts for all in between.
    size_t last = first;
    for (size_t i = first + 1; i < axes.size(); ++i) {
      if (axes[i]->is_variable() && is_ancestor(axes[first], axes[i])) last = i;
    }
    for (size_t i = first; i <= last; ++i) {
      if (i == first || i == last || is_ancestor(axes[i], axes[last])) stored[i] = true;
    }
    const Axis& axis = *axes[last];
    result.push_back({last, axis.is_variable() ? axis.nnz : axis.nnz_cols});
  }
  return result;
}

std::vector<Ref<SpIterVar>> variables_of_init(const SparseIteration& iteration) {
  std::vector<Ref<SpIterVar>> result;
  std::vector<Ref<Axis>> reduced;
  for (const Ref<SpIterVar>& iter : iteration.iter_vars) {
    bool below = is_contained(reduced, iter->axis->parent);
    if (below || iter->iter_type == IterType::kCommReduce) {
      reduced.push_back(iter->axis);
    } else {
      result.push_back(iter);
    }
  }
  return result;
}

std::vector<StructureArray> structure_arrays(const Axis& axis) {
  std::vector<StructureArray> arrays;
  if (axis.attached.defined()) return arrays;
  if (axis.is_variable()) arrays.push_back({axis.indptr, axis.parent->nnz + 1});
  if (axis.is_sparse()) arrays.push_back({axis.indices, axis.nnz});
  return arrays;
}

std::vector<BufferDomain> structure_domains(const PrimFunc& func) {
  std::vector<BufferDomain> domains;
  // Axes may share a buffer. All of their declarations hold for it.
  auto add = [&](BufferDomain domain) {
    bool is_declared = false;
    for (BufferDomain& other : domains) {
      if (other.buffer != domain.buffer) continue;
      Expr& end = other.end;
      if (!structural_equal(end, domain.end)) end = domain.end = min(end, domain.end);
      if (other.order == ValueOrder::kNone) {
        other.order = domain.order;
        other.segments = domain.segments;
        other.segment_length = domain.segment_length;
        other.longest = domain.longest;
      }
      is_declared |= domain.order == ValueOrder::kNone || is_same(other, domain);
    }
    if (!is_declared) domains.push_back(std::move(domain));
  };
  for (const Ref<Axis>& axis : func.axes) {
    if (axis->is_variable()) {
      BufferDomain offsets{axis->indptr, zero(axis->nnz.dtype()), axis->nnz + 1, ValueOrder::kNondecreasing};
      if (!axis->is_sparse()) offsets.longest = axis->length;  // coordinates are 0, 1, 2, ..., and below the length
      add(std::move(offsets));
    }
    if (!axis->is_sparse()) continue;
    BufferDomain domain{axis->indices, zero(axis->length.dtype()), axis->length};
    if (axis->sorted) domain.order = ValueOrder::kIncreasing;
    // A list below one position, as the rows that are not empty, ascends as a whole.
    if (axis->sorted && !is_const_int(axis->parent->nnz, 1)) {
      domain.segments = axis->indptr;
      domain.segment_length = axis->nnz_cols;
    }
    add(std::move(domain));
  }
  return domains;
}

std::optional<SparseFault> fault_of(const Ref<Buffer>& buffer) {
  const Ref<Axis> axis = without_parent(buffer->axes);
  if (!axis.defined()) return std::nullopt;
  return SparseFault{"verify/axis-order",
                     "buffer '" + buffer->name + "' has the axis '" + axis->name + "' without '" + axis->parent->name +
                         "' in front of it, below which it stands",
                     buffer, "list the axes of a buffer with parents first"};
}

std::optional<SparseFault> fault_of(const Ref<Axis>& axis) {
  for (const auto& [buffer, needed] : structure_arrays(*axis)) {
    const std::optional<int64_t> size = const_int(buffer->shape[0]), least = const_int(needed);
    if (!size || !least || *size >= *least) continue;
    return SparseFault{"verify/axis",
                       "'" + buffer->name + "' has " + std::to_string(*size) + " elements, and axis '" + axis->name +
                           "' takes " + std::to_string(*least) + " from it",
                       axis,
                       "indptr has one element more than the axis above has positions, indices have one for each "
                       "position of the axis"};
  }
  if (axis->flattened.empty()) return std::nullopt;
  const Ref<Axis> child = without_parent(axis->flattened);
  if (child.defined()) {
    return SparseFault{"verify/axis-order",
                       "axis '" + axis->name + "' flattens '" + child->name + "' without '" + child->parent->name +
                           "' in front of it, below which it stands",
                       axis, "list the axes that are flattened with parents first"};
  }
  if (axis->parent.defined()) {
    return SparseFault{"verify/axis", "axis '" + axis->name + "' flattens axes, and stands below another one", axis,
                       "T.sp.flatten([I, J]) makes a root"};
  }
  return std::nullopt;
}

SparseFault misplaced(const NodeRef& node, Stage stage) {
  const std::string program = " in a " + std::string(stage_name(stage)) + " program";
  bool sparse = !kind_allowed(node.kind(), Stage::kScheduled) && kind_allowed(node.kind(), Stage::kSparse);
  if (!sparse) return {"verify/stage", "a " + kind_name(node.kind()) + program, node};
  return {"verify/stage", "a sparse axis or iteration" + program, node,
          "lower the iterations first: sch.lower_sparse_iter()"};
}

std::optional<SparseFault> fault_of(const SparseIteration& iteration, const std::vector<Ref<Axis>>& around,
                                    const NodeRef& where) {
  const std::string name = "the iteration '" + iteration.name_hint + "'";
  const std::vector<Ref<SpIterVar>> initialized = variables_of_init(iteration);
  std::vector<Ref<Axis>> available = around;
  for (const Ref<SpIterVar>& iter : iteration.iter_vars) {
    const Ref<Axis>& parent = iter->axis->parent;
    if (parent.defined() && !is_contained(available, parent)) {
      return SparseFault{"verify/axis-order",
                         "axis '" + iter->axis->name + "' of " + name + " stands below '" + parent->name +
                             "', over which nothing iterates here",
                         iter, "put '" + parent->name + "' in front of it, or iterate over it outside"};
    }
    available.push_back(iter->axis);
    bool is_known = is_contained(initialized, iter);
    if (is_known || !iteration.init.defined() || !uses_var(iteration.init, iter->var)) continue;
    return SparseFault{
        "verify/axis",
        "the init of " + name + " depends on '" + iter->var->name_hint + "', which is known during the reduction only",
        where, "an init runs once, before the reduction: it can depend on spatial axes only"};
  }
  return std::nullopt;
}

std::vector<Expr> stored_shape(const std::vector<Ref<Axis>>& axes) {
  std::vector<Expr> shape;
  for (const StoredDimension& dimension : stored_dimensions(axes)) shape.push_back(dimension.extent);
  return shape;
}

Expr stored_elements(const std::vector<Ref<Axis>>& axes) {
  Expr elements;
  for (const Expr& extent : stored_shape(axes)) {
    elements = elements.defined() ? elements * cast(elements.dtype(), extent) : extent;
  }
  return size_text(elements);
}

}  // namespace tilewright
