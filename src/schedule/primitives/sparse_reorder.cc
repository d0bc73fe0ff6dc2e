// Put the axes of an iteration into another order.
//
//   Before                                                        After  sch.sparse_reorder(i, k, j)
//   with T.sp.iteration([I, J, K], "SRS", "spmm") as [i, j, k]:   with T.sp.iteration([I, K, J], "SSR", "spmm") as [i,
//   k, j]:
//     C[i, k] += A[i, j] * B[j, k]                                  C[i, k] += A[i, j] * B[j, k]
//
// Requires  P1 all variables of one iteration, each once
//           P2 the parent of an axis stands in front of it, or outside
//           P3 axes that are fused stay beside one another, in their order
//           P4 the order does not matter: each buffer that the body writes is accessed at one element for each point,
//              which is another one for each point, or is only added to, multiplied, or made the minimum or maximum of
#include "schedule/primitives/sparse_reorder.h"

#include <algorithm>

#include "ir/sparse.h"
#include "ir/structural.h"
#include "ir/traverse.h"
#include "schedule/primitive.h"
#include "schedule/sparse_nest.h"
#include "support/ranges.h"

namespace tilewright::schedule {
namespace {

using Indices = std::vector<Expr>;

bool reads(const Expr& e, const Ref<Buffer>& buffer) {
  return any_node(e, [&](const Ref<BufferLoad>& load) { return load->buffer->data == buffer->data; });
}

/// b[x] = b[x] + e, where e does not read b.
bool is_update(const BufferStore& store) {
  const Kind kind = store.value.kind();
  if (kind != Kind::kAdd && kind != Kind::kMul && kind != Kind::kMin && kind != Kind::kMax) return false;
  const BinaryOperands operands = binary_operands(store.value);
  for (bool swap : {false, true}) {
    const Expr& own = swap ? *operands.b : *operands.a;
    const BufferLoad* load = own.as<BufferLoad>();
    if (!load || load->buffer != store.buffer || !same_exprs(load->indices, store.indices)) continue;
    if (!reads(swap ? *operands.a : *operands.b, store.buffer)) return true;
  }
  return false;
}

/// A buffer whose elements depend on the order of the points; null.
Ref<Buffer> ordered_buffer(const SparseIteration& iteration) {
  Ref<Buffer> ordered;
  visit(iteration.body, [&](const Ref<BufferStore>& store) {
    bool one_element = true;
    size_t accesses = 0;
    visit(iteration.body, on<BufferLoad, BufferStore>([&](const auto& access) {
            if (access->buffer->data != store->buffer->data) return;
            ++accesses;
            one_element &= access->buffer == store->buffer && same_exprs(access->indices, store->indices);
          }));
    const bool is_apart = all_of(iteration.iter_vars, [&](const Ref<SpIterVar>& iter) {
      return is_contained(store->indices, Expr(iter->var)) && (iter->axis->sorted || !iter->axis->is_sparse());
    });
    if (!one_element || !(is_apart || (is_update(*store) && accesses == 2))) ordered = store->buffer;
  });
  return ordered;
}

}  // namespace

Result<Plan> plan(const State& state, const SparseReorder& reorder) {
  TW_TRY(nest, find_nest(state, reorder.new_order.items, "sparse_reorder/P1"));
  const SparseIteration& iteration = *nest.iteration;
  const std::string name = "the iteration '" + iteration.name_hint + "'";
  if (nest.at.size() != iteration.iter_vars.size()) {
    return refuse("sparse_reorder/P1",
                  name + " has " + std::to_string(iteration.iter_vars.size()) + " variables, and " +
                      std::to_string(nest.at.size()) + " are named",
                  {nest.iteration}, "name all of them, in their new order");
  }
  SparseIteration after = iteration;
  for (size_t i : indices_of(nest.at)) {
    after.iter_vars[i] = iteration.iter_vars[nest.at[i]];
    const bool follows = i > 0 && nest.at[i] == nest.at[i - 1] + 1;
    const bool precedes = i + 1 < nest.at.size() && nest.at[i + 1] == nest.at[i] + 1;
    const bool is_continued = nest.at[i] + 1 < nest.at.size() && iteration.iter_vars[nest.at[i] + 1]->fused;
    if ((after.iter_vars[i]->fused && !follows) || (is_continued && !precedes)) {
      return refuse("sparse_reorder/P3", "'" + after.iter_vars[i]->var->name_hint + "' is fused with another variable",
                    {nest.iteration}, "keep fused variables beside one another, in their order");
    }
  }
  // Axes around the iteration are not needed here: a parent outside of the iteration stays outside.
  std::vector<Ref<Axis>> around;
  for (const Ref<SpIterVar>& iter : iteration.iter_vars) {
    const Ref<Axis>& parent = iter->axis->parent;
    const bool is_inside =
        any_of(iteration.iter_vars, [&](const Ref<SpIterVar>& other) { return other->axis == parent; });
    if (parent.defined() && !is_inside) around.push_back(parent);
  }
  if (auto fault = fault_of(after, around, nest.iteration)) {
    return refuse("sparse_reorder/P2", fault->message, {nest.iteration}, "keep parents in front of their children");
  }
  if (Ref<Buffer> buffer = ordered_buffer(iteration); buffer.defined()) {
    return refuse("sparse_reorder/P4", "the elements of '" + buffer->name + "' depend on the order of the iteration",
                  {nest.iteration}, "write each element at one point only, or add to it");
  }
  return give_nest(state, nest, std::move(after.iter_vars));
}

}  // namespace tilewright::schedule
