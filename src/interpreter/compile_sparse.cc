// Sparse iterations and accesses, by coordinates: every element is looked for where it is read or written, whatever the
// iterations around say about it. What lowers such programs is judged by this, so it shares no code with it.
#include <algorithm>

#include "interpreter/compile.h"
#include "ir/build.h"
#include "ir/sparse.h"
#include "ir/traverse.h"
#include "support/ranges.h"

namespace tilewright::interpreter {
namespace {

const DataType kPosition = DataType::int_(64);

Expr position(const Expr& e) { return cast(kPosition, e); }

}  // namespace

Expr Compiler::named(int slot, DataType type) {
  Ref<Var> variable = var("p", type);
  define(variable, slot);
  kept_.push_back(variable);
  return variable;
}

Expr Compiler::element_of(const Ref<Buffer>& structure, Expr index) {
  return position(make<BufferLoad>({structure, {std::move(index)}, {}}));
}

std::pair<Expr, Expr> Compiler::positions_below(const Axis& axis, const Expr& parent) {
  if (!axis.parent.defined()) return {zero(kPosition), position(axis.length)};
  if (!axis.is_variable()) {
    Expr count = position(axis.nnz_cols);
    return {parent * count, parent * count + count};
  }
  return {element_of(axis.indptr, parent), element_of(axis.indptr, parent + 1)};
}

/// A structure that the function itself writes is not known when it begins.
void Compiler::require_structure(const PrimFunc& func) {
  for (const Ref<Axis>& axis : func.axes) {
    const std::vector<StructureArray> arrays = structure_arrays(*axis);
    const bool is_given = all_of(arrays, [&](const StructureArray& array) {
      const Ref<Var>& data = array.buffer->data;
      return slots_.contains(data.get()) &&
             !any_node(func.body, [&](const Ref<BufferStore>& store) { return store->buffer->data == data; });
    });
    if (arrays.empty() || !is_given) continue;
    scoped([&] {
      each_position(constant(int64_t{0}), expr(position(axis->parent->nnz)), [&](int parent) {
        scoped([&] { each_coordinate(axis, named(parent, kPosition), axis, [](const Expr&, int) {}); });
      });
    });
    has_structure_.insert(axis);
  }
}

void Compiler::each_coordinate(const Ref<Axis>& of, const Expr& parent, const NodeRef& node,
                               const std::function<void(const Expr& position, int coordinate)>& work) {
  const Axis& axis = *of;
  const bool is_checked = has_structure_.contains(axis.attached.defined() ? axis.attached : of);
  auto [begin, end] = positions_below(axis, parent);
  int last = take(1), ascends = take(1), stop = expr(end), start = expr(begin);
  emit({.op = Op::kMove, .dst = last, .a = constant(int64_t{-1})});
  if (!is_checked && axis.is_variable()) {
    emit({.op = Op::kLeInt, .dst = ascends, .a = start, .b = stop});
    emit({.op = Op::kAssert,
          .a = ascends,
          .extra = message("interpret/structure", "the indptr of axis '" + axis.name + "' descends", node,
                           "each number of an indptr is at least the one before")});
  }
  each_position(start, stop, [&](int at) {
    Expr where = named(at, kPosition);
    int value = expr(axis.is_sparse() ? element_of(axis.indices, where) : where - named(start, kPosition));
    if (!is_checked) {
      require_inside(
          value, axis.length,
          message("interpret/out-of-bounds", "a coordinate of axis '" + axis.name + "' is outside of [0, length)", node,
                  "correct the structure: indices, indptr, or the length of the axis"));
    }
    if (!is_checked && axis.is_sparse() && axis.sorted) {
      emit({.op = Op::kLtInt, .dst = ascends, .a = last, .b = value});
      emit({.op = Op::kAssert,
            .a = ascends,
            .extra = message("interpret/structure",
                             "the coordinates of axis '" + axis.name + "' below one position do not ascend", node,
                             "sort them, or declare the axis with sorted=False")});
      emit({.op = Op::kMove, .dst = last, .a = value});
    }
    work(where, value);
  });
}

/// One loop for each variable, over the positions below that of its parent.
void Compiler::iterate_axes(const std::vector<Ref<SpIterVar>>& iters, size_t next, const Stmt& body,
                            const NodeRef& node) {
  if (next == iters.size()) return stmt(body);
  const SpIterVar& iter = *iters[next];
  const Axis& axis = *iter.axis;
  Expr parent = zero(kPosition);
  auto above = find_if(reversed(positions_), [&](const Position& known) { return known.axis == axis.parent; });
  if (above != positions_.rend()) parent = axis.attached.defined() ? position(above->coordinate) : above->position;
  if (iter.fused && axis.is_variable()) require_all_positions(axis, iters[next]);
  scoped([&] {
    each_coordinate(iter.axis, parent, iters[next], [&](const Expr& where, int value) {
      positions_.push_back({iter.axis, where, iter.var});
      with_definition(iter.var, value, [&] { iterate_axes(iters, next + 1, body, node); });
      positions_.pop_back();
    });
  });
}

/// One loop over all positions visits each of them.
void Compiler::require_all_positions(const Axis& axis, const NodeRef& node) {
  scoped([&] {
    const Expr begin = element_of(axis.indptr, zero(kPosition));
    const Expr end = element_of(axis.indptr, position(axis.parent->nnz));
    require(expr(logical_and(eq(begin, zero(kPosition)), eq(end, position(axis.nnz)))),
            message("interpret/structure",
                    "the indptr of axis '" + axis.name + "', which is fused, does not run from 0 to nnz", node,
                    "an indptr begins with 0, and ends with the number of positions"));
  });
}

void Compiler::require_inside(int coordinate, const Expr& length, int outside) {
  require(is_within(coordinate, constant(0), expr(position(length))), outside);
}

void Compiler::sparse_iteration(const SparseIteration& iteration, const NodeRef& node) {
  if (iteration.init.defined()) {
    bool around = std::exchange(in_init_, true);
    iterate_axes(variables_of_init(iteration), 0, iteration.init, node);
    in_init_ = around;
  }
  iterate_axes(iteration.iter_vars, 0, iteration.body, node);
}

/// Unsorted coordinates may repeat. The variable of an iteration over the axis then denotes its own position, if that
/// is in [begin, end).
void Compiler::prefer_iterated(const Ref<Axis>& axis, const Expr& coordinate, int begin, int end, int at) {
  const Ref<Axis>& structure = axis->attached.defined() ? axis->attached : axis;
  for (const Position& known : reversed(positions_)) {
    const Ref<Axis>& other = known.axis->attached.defined() ? known.axis->attached : known.axis;
    if (other != structure || coordinate != Expr(known.coordinate)) continue;
    int where = expr(known.position);
    size_t skip = emit(Op::kJumpIfZero, is_within(where, begin, end));
    emit(Op::kMove, at, where);
    jump_here(skip);
    return;
  }
}

std::vector<Expr> Compiler::locate(const Ref<Buffer>& buffer, const std::vector<Expr>& coordinates, const NodeRef& node,
                                   std::vector<size_t>& absent) {
  const std::vector<Ref<Axis>>& axes = buffer->axes;
  std::vector<int> slots;
  for (size_t i : indices_of(axes)) {
    const Axis& axis = *axes[i];
    slots.push_back(expr(position(coordinates[i])));
    // Below another axis, a coordinate beyond the length is absent as others are. A root has all of its coordinates.
    if (axis.parent.defined()) continue;
    require_inside(
        slots.back(), axis.length,
        message("interpret/out-of-bounds",
                "coordinate " + std::to_string(i) + " of '" + buffer->name + "' is outside of axis '" + axis.name + "'",
                node, "guard the access, or check the lengths of the axes"));
  }
  std::vector<Expr> positions, starts;
  for (size_t i : indices_of(axes)) {
    const Axis& axis = *axes[i];
    auto parent = std::find(axes.begin(), axes.begin() + static_cast<std::ptrdiff_t>(i), axis.parent);
    auto [begin, end] =
        positions_below(axis, axis.parent.defined() ? positions[parent - axes.begin()] : zero(kPosition));
    Expr first = named(expr(begin), kPosition);
    int stop = expr(end), at = take(2), found = take(1);
    if (axis.is_sparse()) {
      Expr probe = named(at, kPosition);
      emit({.op = Op::kSearch,
            .dst = at,
            .a = access(axis.indices, {probe}, {}, node),
            .b = expr(first),
            .c = stop,
            .extra = slots[i]});
      if (!axis.sorted) prefer_iterated(axes[i], coordinates[i], expr(first), stop, at);
      emit(Op::kLeInt, found, constant(0), at);
    } else {
      emit(Op::kAddInt, at, expr(first), slots[i]);
      emit(Op::kAnd, found, computed(Op::kLtInt, at, stop), computed(Op::kLeInt, constant(0), slots[i]));
    }
    absent.push_back(emit(Op::kJumpIfZero, found));
    positions.push_back(named(at, kPosition));
    starts.push_back(first);
  }
  std::vector<Expr> indices;
  for (const StoredDimension& dimension : stored_dimensions(axes)) {
    const Expr& at = positions[dimension.axis];
    indices.push_back(axes[dimension.axis]->is_variable() ? at : at - starts[dimension.axis]);
  }
  return indices;
}

int Compiler::sparse_load(const BufferLoad& load, const NodeRef& node) {
  const Buffer& buffer = *load.buffer;
  int dst = take(lanes_of(buffer.dtype));
  Expr otherwise = buffer.default_value.defined() ? buffer.default_value : zero(buffer.dtype);
  emit(Op::kMove, buffer.dtype, dst, expr(otherwise));
  std::vector<size_t> absent;
  std::vector<Expr> indices = locate(load.buffer, load.indices, node, absent);
  int number = access(load.buffer, indices, {}, node);
  if (step_ && step_->element() == node) note_step(number);
  emit(Op::kLoad, buffer.dtype.element(), dst, number);
  for (size_t jump : absent) jump_here(jump);
  return dst;
}

void Compiler::sparse_store(const BufferStore& store, int value, const NodeRef& node) {
  std::vector<size_t> absent;
  this->store(store, locate(store.buffer, store.indices, node, absent), value, node);
  size_t done = emit(Op::kJump);
  for (size_t jump : absent) jump_here(jump);
  emit({.op = Op::kFail,
        .extra = message("interpret/absent",
                         "a value is stored to coordinates that '" + store.buffer->name + "' does not hold", node,
                         "iterate over the axes of the buffer that is written, or guard the store")});
  jump_here(done);
}

}  // namespace tilewright::interpreter
