// Precompute subexpressions of a block's axes in tables.
//
//   Before                                                 After  sch.cache_index(B, "global")
//   for i, j in T.grid(8, 8):                              index_var_0 = T.alloc_buffer((8,))
//     with T.block("B"):                                   for ax0 in range(8):
//       vi, vj = T.axis.remap("SS", [i, j])                  with T.block("index_0"):
//       B[vi, vj] = A[vi, vj] * T.Cast("float32", vj // 2)     v0 = T.axis.spatial(8, ax0)
//                                                              index_var_0[v0] = T.Cast("float32", v0 // 2)
//                                                          for i, j in T.grid(8, 8):
//                                                            with T.block("B"):
//                                                              vi, vj = T.axis.remap("SS", [i, j])
//                                                              B[vi, vj] = A[vi, vj] * index_var_0[vj]
//
// Indices become tables too: A[vi, vj // 2] is then A[vi, index_var_0[vj]]. Those of what the block writes stay, so
// that it is known which elements that are.
//
// Requires  P1 the block is not the root; the threshold is not negative
//           P2 the scope is a storage scope
//           P3 a store of the block computes something of its axes
//           P4 the tables hold all that the block looks up, whichever iteration runs, and can be filled where none does
#include <algorithm>

#include "ir/build.h"
#include "ir/op.h"
#include "ir/structural.h"
#include "ir/substitute.h"
#include "ir/traverse.h"
#include "schedule/axis_copy.h"
#include "schedule/cache.h"
#include "schedule/early_bounds.h"
#include "schedule/inline.h"
#include "schedule/kept_shape.h"
#include "schedule/primitives/cache_index.h"
#include "schedule/relocate.h"
#include "support/ranges.h"

namespace tilewright::schedule {
namespace {

int size_of(const Expr& e) {
  int nodes = 1;
  for_each_child(e, [&](const NodeRef& child, Role) {
    if (child.sort() == Sort::kExpr && !child.is<Op>()) nodes += size_of(Expr(child));
  });
  return nodes;
}

/// Expressions that a table may hold, counted by what they compute.
class Candidates {
 public:
  explicit Candidates(const Place& block) : block_(block) {
    for (const Ref<IterVar>& axis : block.block().iter_vars) analyzer_.bind(axis->var, axis->dom);
  }

  /// Chooses the subexpressions of a store that reach the threshold: the largest first, equal ones in program order.
  void add(const BufferStore& store, int64_t threshold) {
    counted_.clear();
    for (const Expr& index : store.indices) count_largest(index, 1);
    count_largest(store.value, 1);
    for (size_t i : indices_of(counted_)) {
      if (counted_[i].times >= threshold) continue;
      Counted rare = counted_[i];
      for_each_operand(rare.e, [&](const Expr& operand) { count_largest(operand, rare.times); });
    }
    // Choose only subexpressions of the value: one that only an index computes stays there.
    visit_operands(store.value, [&](const Expr& e) {
      for (const Counted& counted : counted_) {
        if (counted.times >= threshold && same(e, counted.e) && !find(chosen_, e)) chosen_.push_back(counted.e);
      }
    });
    std::ranges::stable_sort(chosen_, [](const Expr& a, const Expr& b) { return size_of(a) > size_of(b); });
  }

  const std::vector<Expr>& chosen() const { return chosen_; }

  bool same(const Expr& a, const Expr& b) {
    if (same_expr(a, b)) return true;
    return a.dtype() == b.dtype() && a.dtype().is_int() &&
           same_expr(analyzer_.simplify_value(a), analyzer_.simplify_value(b));
  }

 private:
  struct Counted {
    Expr e;
    int64_t times;
    int size;
  };

  template <class F>
  static void for_each_operand(const Expr& e, F&& f) {
    for_each_child(e, [&](const NodeRef& child, Role) {
      if (child.sort() == Sort::kExpr && !child.is<Op>()) f(Expr(child));
    });
  }
  template <class F>
  static void visit_operands(const Expr& e, const F& f) {
    for_each_operand(e, [&](const Expr& operand) { visit_operands(operand, f); });
    f(e);
  }
  bool find(const std::vector<Expr>& among, const Expr& e) {
    return any_of(among, [&](const Expr& other) { return same(e, other); });
  }

  void count_largest(const Expr& e, int64_t times) {
    if (!is_eligible(e)) {
      for_each_operand(e, [&](const Expr& operand) { count_largest(operand, times); });
      return;
    }
    auto known = find_if(counted_, [&](const Counted& c) { return same(c.e, e); });
    if (known != counted_.end()) {
      known->times += times;
      return;
    }
    int size = size_of(e);
    auto smaller = find_if(counted_, [&](const Counted& c) { return c.size < size; });
    counted_.insert(smaller, {e, times, size});
  }

  /// A computation with a value for all values of the axes, of these and of nothing that changes.
  bool is_eligible(const Expr& e) const {
    if (!e.dtype().is_scalar() || e.dtype().is_handle() || e.is<Ramp>() || e.is<Broadcast>()) return false;
    if (e.is<Var>() || e.is<IntImm>() || e.is<FloatImm>() || e.is<StringImm>()) return false;
    bool pure = true, of_axes = false;
    auto divides = [&](const Expr& divisor) { pure &= const_int(divisor).value_or(0) != 0; };
    visit(
        e, on<BufferLoad, Let>([&](const auto&) { pure = false; }),
        [&](const Ref<Call>& call) {
          Intrinsic intrinsic = intrinsic_of(*call);
          pure &= intrinsic != Intrinsic::kUnknown && intrinsic_row(intrinsic).effect == Effect::kPure;
        },
        on<FloorDiv, FloorMod>([&](const auto& n) { divides(n->b); }),
        [&](const Ref<Div>& n) {
          if (!n->b.dtype().is_float()) divides(n->b);
        },
        [&](const Ref<Mod>& n) { divides(n->b); });
    for_each_free_var(e, [&](const Ref<Var>& v) {
      bool axis = is_axis(v);
      of_axes |= axis;
      pure &= axis || !is_foreign(block_, v);
    });
    return pure && of_axes;
  }
  bool is_axis(const Ref<Var>& v) const {
    const auto& axes = block_.block().iter_vars;
    return any_of(axes, [&](const Ref<IterVar>& axis) { return axis->var == v; });
  }

  Place block_;
  arith::Analyzer analyzer_;
  std::vector<Counted> counted_;
  std::vector<Expr> chosen_;
};

struct Table {
  Expr e;
  Ref<Buffer> buffer;
  std::vector<Expr> indices;  ///< of axes of the original block
  std::vector<int> loops;     ///< loops around the original block that its nest copies
  Ref<Block> block;
  Stmt nest;
};

Table make_table(const Place& block, const Expr& e, const std::string& scope, size_t number) {
  const Tree& tree = *block.tree;
  const BlockRealize& realize = *tree.realize_at(block.at);
  Table table{e, {}, {}, {}, {}, {}};
  std::vector<int> around = tree.loops_above(block.at);
  std::vector<int>& used = table.loops;
  auto analyzer = analysis::analyzer_above(tree, tree[block.at].scope);
  arith::Domains domains = analysis::domains_of(tree, around);
  std::vector<Expr> shape, indices, values;
  std::vector<Ref<IterVar>> axes;
  VarMap renamed;
  Expr inside = bool_imm(true);  // loops may exceed the domains of axes
  for_each_free_var(e, [&](const Ref<Var>& v) {
    const auto& all = realize.block->iter_vars;
    auto axis = find_if(all, [&](const Ref<IterVar>& a) { return a->var == v; });
    if (axis == all.end() || renamed.count(v)) return;
    const Expr& value = realize.iter_values[axis - all.begin()];
    const Range& dom = *(*axis)->dom;
    Expr end = analyzer.simplify(dom.min + dom.extent);
    arith::IntSet reached = arith::eval_set(value, domains, analyzer);
    bool from = reached.is_bounded() && analyzer.can_prove(ge(reached.min, dom.min));
    bool below = reached.is_bounded() && analyzer.can_prove(lt(reached.max, end));
    if (!from) inside = logical_and(inside, ge(value, dom.min));
    if (!below) inside = logical_and(inside, lt(value, end));
    if (below && const_int(analyzer.simplify(reached.max + 1))) end = analyzer.simplify(reached.max + 1);
    // Elements below the domain stay unused, if there are indices for them.
    const Expr begin = analyzer.can_prove(ge(dom.min, zero(v.dtype()))) ? zero(v.dtype()) : cast(v.dtype(), dom.min);
    const Expr extent = analyzer.simplify(cast(v.dtype(), end) - begin);
    Ref<Var> mine = var("v" + std::to_string(axes.size()), v.dtype());
    renamed.emplace(v, mine);
    axes.push_back(
        make<IterVar>({.dom = range(begin, extent), .var = mine, .iter_type = IterType::kDataPar, .thread_tag = ""}));
    shape.push_back(extent);
    indices.push_back(analyzer.simplify(mine - begin));
    values.push_back(value);
    table.indices.push_back(analyzer.simplify(v - begin));
    for_each_free_var(value, [&](const Ref<Var>& w) {
      int at = tree.loop(w);
      bool below = is_contained(around, at);
      if (below && !is_contained(used, at)) used.push_back(at);
    });
  });
  table.buffer = decl_buffer(std::move(shape), e.dtype(), "index_var_" + std::to_string(number), scope);
  Block filler;
  filler.iter_vars = std::move(axes);
  BufferRegion written{table.buffer, {}};
  for (const Expr& index : indices) written.region.push_back(range(index, one(index.dtype())));
  filler.writes = {make(std::move(written))};
  filler.name_hint = "index_" + std::to_string(number);
  filler.body = store(table.buffer, substitute(e, renamed), indices);
  table.block = make(std::move(filler));
  VarMap loops;
  std::vector<Ref<Var>> names;
  for (int at : used) {
    const Ref<Var>& v = tree.for_at(at).loop_var;
    names.push_back(var("ax" + std::to_string(names.size()), v.dtype()));
    loops.emplace(v, names.back());
  }
  for (Expr& value : values) value = substitute(value, loops);
  table.nest =
      make<BlockRealize>({.iter_values = values, .predicate = substitute(inside, loops), .block = table.block});
  for (size_t i = used.size(); i-- > 0;) {
    For loop;
    loop.loop_var = names[i];
    loop.min = tree.for_at(used[i]).min;
    loop.extent = tree.for_at(used[i]).extent;
    loop.body = std::move(table.nest);
    table.nest = make(std::move(loop));
  }
  return table;
}

/// A table is filled, and has its size, also where loops around the block have no iteration.
Status check_early_bounds(const Place& block, const Table& table) {
  const Tree& tree = *block.tree;
  const std::vector<int> around = tree.loops_above(block.at);
  auto analyzer = analysis::analyzer_above(tree, tree[block.at].scope);
  bool fails = may_fail_outside(table.buffer->shape, tree, around, analyzer);
  for (int at : table.loops) {
    const std::vector<int> outer(around.begin(), std::ranges::find(around, at));
    fails |= may_fail_outside({tree.for_at(at).min, tree.for_at(at).extent}, tree, outer, analyzer);
  }
  if (!fails) return Ok{};
  return refuse("cache_index/P4",
                "the range of a loop or an axis of " + describe(block) +
                    " may divide by zero, or read out of bounds, where a loop around it has no iteration",
                block, "a table is filled for all iterations at once");
}

/// The loop or block right in the body of the scope that holds the block.
int top_of(const Tree& tree, int scope, int block) {
  int at = block;
  while (at != scope && !CopyPlace{scope, at, false}.is_outside_loops(tree)) at = tree[at].parent;
  return at;
}

Ref<Block> look_up(const Ref<Block>& block, const std::vector<Table>& tables, Candidates& candidates) {
  auto replaced = [&](const Expr& root, const Table& table) {
    auto walk = [&](auto&& self, const Expr& e) -> Expr {
      // An axis stays what it is, also where a computation gives just that: T.max(v, 0). So does a number, of lanes
      // say.
      const bool stays = e.is<Var>() || e.is<IntImm>() || e.is<FloatImm>();
      if (!stays && candidates.same(e, table.e)) return load(table.buffer, table.indices);
      struct Context {
        decltype(self)& again;
      } context{self};
      return Expr(tilewright::detail::map_children(
          e,
          [](void* opaque, const NodeRef& child, Role) -> NodeRef {
            auto& c = *static_cast<Context*>(opaque);
            if (child.sort() != Sort::kExpr || child.is<Op>()) return child;
            return c.again(c.again, Expr(child));
          },
          &context));
    };
    return walk(walk, root);
  };
  Block changed = *block;
  auto rewrite_stores = [&](const Stmt& stmt) {
    return rewrite(stmt, [&](const Ref<BufferStore>& old, Rewriter&) -> Stmt {
      BufferStore store = *old;
      for (const Table& table : tables) store.value = replaced(store.value, table);
      return make(std::move(store), old.span());
    });
  };
  changed.body = rewrite_stores(changed.body);
  return make(std::move(changed), block.span());
}

}  // namespace

Result<Plan> plan(const State& state, const CacheIndex& cache) {
  TW_TRY(block, state.find(cache.block));
  const Tree& tree = *block.tree;
  int scope = tree[block.at].scope;
  if (scope == Tree::kNone)
    return refuse("cache_index/P1", "the root block has no axes", block, "name a block inside of it");
  if (cache.cse_thresh < 0) {
    return refuse("cache_index/P1", "the threshold is " + std::to_string(cache.cse_thresh), {}, "0 is the least");
  }
  TW_RETURN_IF_ERROR(require_memory_scope(cache.storage_scope, block, "cache_index/P2"));
  Candidates candidates(block);
  visit(
      block.block().body, [&](const Ref<BufferStore>& store) { candidates.add(*store, cache.cse_thresh); },
      [&](const Ref<BlockRealize>&, Visitor&) {});
  if (candidates.chosen().empty()) {
    return refuse("cache_index/P3",
                  "the stores of " + describe(block) + " compute nothing of its axes alone" +
                      (cache.cse_thresh == 0 ? "" : " " + std::to_string(cache.cse_thresh) + " times"),
                  block, "cse_thresh=0 takes every index that computes something");
  }
  for (int at : tree.loops_above(block.at)) {
    for (int other : tree.loops_above(block.at)) {
      const For &loop = tree.for_at(at), &outer = tree.for_at(other);
      if (!uses_var(loop.min, outer.loop_var) && !uses_var(loop.extent, outer.loop_var)) continue;
      return refuse("cache_index/P4", describe_loop(loop) + " runs as far as " + describe_loop(outer) + " says",
                    {tree.stmt(at), block.node()}, "a table is filled for all iterations at once");
    }
  }
  std::string where = cache.storage_scope.empty() ? "global" : cache.storage_scope;
  std::vector<Table> tables;
  for (const Expr& e : candidates.chosen()) tables.push_back(make_table(block, e, where, tables.size()));
  for (const Table& table : tables) TW_RETURN_IF_ERROR(check_early_bounds(block, table));
  for (const Table& table : tables) TW_RETURN_IF_ERROR(require_kept_shape(tree, scope, table.buffer, "cache_index/P4"));
  TreeEdit edit(tree);
  for (const Table& table : tables) edit.insert_before(top_of(tree, scope, block.at), table.nest);
  edit.change_block(scope, [&](Block& outer) {
    for (const Table& table : tables) outer.alloc_buffers.push_back(table.buffer);
  });
  edit.change_realize(block.at, [&](BlockRealize& realize) {
    Ref<Block> changed = look_up(realize.block, tables, candidates);
    realize.block = with_found_reads(*changed, changed.span());
  });
  Plan plan = give_loops(block.func, edit.finish(), {});
  const Tree& after = Tree::of(plan.root);
  int reader = after.block(block.block().id.value);
  for (const Table& table : tables) {
    auto obstacle = analysis::why_not_covered(after, after.block(table.block->id.value), reader, table.buffer);
    if (obstacle)
      return refuse("cache_index/P4", *obstacle, "cache the indices before the loops around the block are changed");
    TW_RETURN_IF_ERROR(recheck_execution(after, after.block(table.block->id.value), "cache_index/P4"));
    plan.outputs.push_back(Handle::block(block.func, *table.block));
  }
  TW_RETURN_IF_ERROR(recheck_execution(after, reader, "cache_index/P4"));
  return plan;
}

}  // namespace tilewright::schedule
