#include "schedule/layout_padding.h"

#include "analysis/accesses.h"
#include "ir/build.h"
#include "ir/regions.h"
#include "ir/substitute.h"
#include "ir/traverse.h"
#include "support/ranges.h"

namespace tilewright::schedule {
namespace {

Expr at_indices(const IndexMap& map, const Expr& e, const std::vector<Expr>& indices) {
  VarMap values;
  for (size_t d : indices_of(indices)) {
    values[map.initial_indices[d]] = cast(map.initial_indices[d].dtype(), indices[d]);
  }
  return substitute(e, values);
}

bool loads(const NodeRef& root, const Ref<Buffer>& buffer) {
  return any_node(root, [&](const Ref<BufferLoad>& load) { return load->buffer == buffer; });
}

/// Loops over all elements of the new buffer.
struct Elements {
  std::vector<Ref<Var>> loops;
  std::vector<Expr> indices;  ///< the loops' variables

  explicit Elements(const PaddedLayout& layout) {
    for (const Def<Var>& v : layout.inverse->initial_indices) {
      loops.push_back(var(v->name_hint, v.dtype()));
      indices.push_back(loops.back());
    }
  }
  Stmt around(const PaddedLayout& layout, Stmt body) const {
    for (size_t d = loops.size(); d-- > 0;) {
      body = loop(loops[d], cast(loops[d].dtype(), layout.after->shape[d]), std::move(body));
    }
    return body;
  }
};

Ref<IterVar> spatial_axis(const Ref<Var>& loop_var, const Expr& extent) {
  Ref<Var> axis = var("v_" + loop_var->name_hint, loop_var.dtype());
  return make<IterVar>({range_of(cast(axis.dtype(), extent)), axis, IterType::kDataPar, ""});
}

/// Returns a loop nest over the elements of the padded buffer that contains one block. `where(loops)` returns the
/// block's predicate for these loop variables.
template <class Where, class Body>
Stmt element_block(const PaddedLayout& layout, const std::string& name, Where&& where, Body&& body) {
  Elements elements(layout);
  Block block;
  block.name_hint = name;
  std::vector<Expr> axes;
  for (size_t d : indices_of(elements.loops)) {
    block.iter_vars.push_back(spatial_axis(elements.loops[d], layout.after->shape[d]));
    axes.push_back(block.iter_vars.back()->var);
  }
  body(block, axes);
  Stmt realize = make<BlockRealize>({elements.indices, where(elements.indices), make(std::move(block))});
  return elements.around(layout, std::move(realize));
}

Stmt assumption(const PaddedLayout& layout) {
  return element_block(
      layout, "buffer_" + layout.before->name + "_assumptions", [](const std::vector<Expr>&) { return bool_imm(true); },
      [&](Block& block, const std::vector<Expr>& at) {
        Expr holds = eq(load(layout.after, at), layout.value_at(at));
        block.reads = {analysis::region_of_element(layout.after, at)};
        if (loads(layout.pad_value, layout.before)) {
          block.reads.push_back(whole_region(layout.before));
        }
        block.body = make<Evaluate>(
            {call(DataType::bool_(), "tir.assume", {logical_or(logical_not(layout.padding_at(at)), holds)})});
      });
}

Stmt filling(const PaddedLayout& layout) {
  return element_block(
      layout, "buffer_" + layout.before->name + "_padding",
      [&](const std::vector<Expr>& at) { return layout.padding_at(at); },
      [&](Block& block, const std::vector<Expr>& at) {
        block.writes = {analysis::region_of_element(layout.after, at)};
        Expr value = layout.value_at(at);
        visit(value, [&](const Ref<BufferLoad>& read) {
          block.reads.push_back(analysis::region_of_element(read->buffer, read->indices));
        });
        block.body = store(layout.after, value, at);
      });
}

/// Loops that run over all elements of the buffer in order, each directly in the one before.
class RowMajorNest {
 public:
  /// The nest of one store; nothing where it is in none.
  static std::optional<RowMajorNest> find(const Tree& tree, int at, const PaddedLayout& layout) {
    RowMajorNest nest(tree, layout);
    if (nest.locate(at) && nest.does_nothing_else()) return nest;
    return std::nullopt;
  }

  int outermost() const { return loops_.front(); }

  /// The nest over the new elements.
  Stmt over_new_elements() const {
    Elements elements(layout_);
    VarMap values = old_indices(elements.indices);
    Stmt body = rewrite(
        tree_.for_at(loops_.back()).body,
        [&](const Ref<BlockRealize>& realize, Rewriter&) -> Stmt { return block(realize, elements, values); },
        [&](const Ref<BufferStore>& s, Rewriter&) -> Stmt { return inside(s, values, elements.indices); },
        [&](const Ref<For>& inner, Rewriter& walk) -> Stmt { return walk.descend(inner); });
    return elements.around(layout_, std::move(body));
  }

 private:
  RowMajorNest(const Tree& tree, const PaddedLayout& layout) : tree_(tree), layout_(layout) {}

  bool locate(int at) {
    const BufferStore& s = *tree_.stmt(at).as<BufferStore>();
    std::vector<int> around;  // inner first
    VarMap bound;
    int blocks = 0;
    for (int p = tree_[at].parent; p > 0; p = tree_[p].parent) {
      if (const BlockRealize* realize = tree_.realize_at(p)) {
        if (++blocks > 1) break;
        for (size_t i : indices_of(realize->iter_values)) {
          bound[realize->block->iter_vars[i]->var] = realize->iter_values[i];
        }
      }
      if (tree_[p].is_loop) around.push_back(p);
    }
    for (size_t d : indices_of(s.indices)) {
      Expr index = substitute(s.indices[d], bound);
      auto loop = find_if(around, [&](int p) { return index == tree_.for_at(p).loop_var; });
      if (loop == around.end()) return false;
      const For& found = tree_.for_at(*loop);
      if (d > 0 && tree_[*loop].parent != loops_.back()) return false;
      if (found.kind != ForKind::kSerial || !found.annotations.empty() || !is_const_int(found.min, 0)) return false;
      if (!analyzer_.can_prove_equal(cast(DataType::int_(64), found.extent),
                                     cast(DataType::int_(64), layout_.before->shape[d]))) {
        return false;
      }
      loops_.push_back(*loop);
    }
    return !loops_.empty();
  }

  bool does_nothing_else() {
    const int last = loops_.back();
    VarMap bound;
    bool in_block = false;
    for (int at = last + 1; at < tree_[last].end; ++at) {
      Stmt stmt = tree_.stmt(at);
      if (const For* inner = stmt.as<For>()) {
        if (!analyzer_.can_prove_greater_equal(inner->extent, 1) || mentions_loops(inner->min) ||
            mentions_loops(inner->extent)) {
          return false;
        }
      } else if (const BlockRealize* realize = stmt.as<BlockRealize>()) {
        if (in_block || !is_plain(*realize)) return false;
        in_block = true;
        for (size_t i : indices_of(realize->iter_values)) {
          bound[realize->block->iter_vars[i]->var] = realize->iter_values[i];
        }
      } else if (const BufferStore* s = stmt.as<BufferStore>()) {
        if (s->buffer != layout_.before || s->predicate.defined() || !is_same_element(s->indices, bound)) return false;
      } else if (!stmt.is<SeqStmt>()) {
        return false;
      }
    }
    bool same = true;
    visit(tree_.stmt(last), [&](const Ref<BufferLoad>& read) {
      if (read->buffer == layout_.before) same &= is_same_element(read->indices, bound);
    });
    return same;
  }

  bool mentions_loops(const Expr& e) const {
    return uses_any_var(
        e, [&](const Ref<Var>& v) { return any_of(loops_, [&](int p) { return v == tree_.for_at(p).loop_var; }); });
  }

  /// Runs for every iteration; axes are the nest's loops, or have nothing to do with them.
  bool is_plain(const BlockRealize& realize) const {
    const Block& block = *realize.block;
    if (!is_const_int(realize.predicate, 1) || !block.match_buffers.empty() || !block.alloc_buffers.empty())
      return false;
    for (size_t i : indices_of(realize.iter_values)) {
      if (loop_at(realize.iter_values[i])) {
        if (block.iter_vars[i]->iter_type != IterType::kDataPar) return false;
      } else if (mentions_loops(realize.iter_values[i])) {
        return false;
      }
    }
    return true;
  }
  std::optional<size_t> loop_at(const Expr& e) const {
    for (size_t d : indices_of(loops_)) {
      if (e == tree_.for_at(loops_[d]).loop_var) return d;
    }
    return std::nullopt;
  }
  bool is_same_element(const std::vector<Expr>& indices, const VarMap& bound) const {
    for (size_t d : indices_of(indices)) {
      if (substitute(indices[d], bound) != tree_.for_at(loops_[d]).loop_var) return false;
    }
    return true;
  }

  /// Returns the values of the nest's loops at these new indices.
  VarMap old_indices(const std::vector<Expr>& at) const {
    VarMap values;
    for (size_t d : indices_of(loops_)) {
      const Ref<Var>& v = tree_.for_at(loops_[d]).loop_var;
      values[v] = cast(v.dtype(), at_indices(*layout_.inverse, layout_.inverse->final_indices[d], at));
    }
    return values;
  }

  Stmt block(const Ref<BlockRealize>& realize, const Elements& elements, const VarMap& loop_values) const {
    Block changed = *realize->block;
    BlockRealize result = *realize;
    changed.iter_vars.clear();
    result.iter_values.clear();
    std::vector<Expr> axes;
    VarMap values = loop_values;
    std::vector<std::pair<Ref<Var>, size_t>> replaced;
    for (size_t i : indices_of(realize->iter_values)) {
      const Ref<IterVar>& axis = realize->block->iter_vars[i];
      auto d = loop_at(realize->iter_values[i]);
      if (!d) {
        changed.iter_vars.push_back(axis);
        result.iter_values.push_back(realize->iter_values[i]);
        continue;
      }
      replaced.emplace_back(axis->var, *d);
      if (!axes.empty()) continue;
      for (size_t n : indices_of(elements.loops)) {
        changed.iter_vars.push_back(spatial_axis(elements.loops[n], layout_.after->shape[n]));
        axes.push_back(changed.iter_vars.back()->var);
      }
      append_range(result.iter_values, elements.indices);
    }
    const std::vector<Expr>& here = axes.empty() ? elements.indices : axes;
    if (!axes.empty()) {
      VarMap of_axes = old_indices(axes);
      for (const auto& [v, d] : replaced) values[v] = cast(v.dtype(), of_axes[tree_.for_at(loops_[d]).loop_var]);
    }
    for (auto* regions : {&changed.reads, &changed.writes}) {
      for (Ref<BufferRegion>& region : *regions) region = moved(region, values, here);
    }
    if (changed.init.defined()) changed.init = inside(changed.init, values, here);
    changed.body = inside(changed.body, values, here);
    result.block = make(std::move(changed), realize->block.span());
    return make(std::move(result), realize.span());
  }

  Ref<BufferRegion> moved(const Ref<BufferRegion>& region, const VarMap& values, const std::vector<Expr>& here) const {
    if (region->buffer == layout_.before) return analysis::region_of_element(layout_.after, here);
    BufferRegion result = *substitute(region, values);
    for (Ref<Range>& dim : result.region) {
      dim = range(analyzer_.simplify(dim->min), analyzer_.simplify(dim->extent));
    }
    return make(std::move(result));
  }

  /// A statement in the new indices.
  Stmt inside(const Stmt& stmt, const VarMap& values, const std::vector<Expr>& here) const {
    Expr padding = layout_.padding_at(here), pad_value = layout_.value_at(here);
    return rewrite(
        stmt, [&](const Ref<Var>& v, Rewriter&) -> Expr { return find_value_or(values, v, v); },
        [&](const Ref<BufferLoad>& read, Rewriter& walk) -> Expr {
          if (read->buffer == layout_.before) return load(layout_.after, here);
          BufferLoad result = *walk.descend(read);
          for (Expr& index : result.indices) index = analyzer_.simplify(index);
          return make(std::move(result), read.span());
        },
        [&](const Ref<BufferStore>& s, Rewriter& walk) -> Stmt {
          BufferStore result{layout_.after, if_then_else(padding, pad_value, walk(s->value)), here, {}};
          return make(std::move(result), s.span());
        });
  }

  const Tree& tree_;
  const PaddedLayout& layout_;
  mutable arith::Analyzer analyzer_;
  std::vector<int> loops_;  ///< one per dimension, outermost first
};

/// The statement of the scope's body that contains `at`.
int child_of_scope(const Tree& tree, int scope, int at) {
  int child = tree.child_towards(scope, at);
  return tree.stmt(child).is<SeqStmt>() && child != at ? tree.child_towards(child, at) : child;
}

/// Blocks around a nest that runs over all new elements write them all.
void declare_all(TreeEdit& edit, const Tree& tree, int scope, int nest, const PaddedLayout& layout) {
  const Ref<BufferRegion> region = whole_region(layout.after);
  for (int at = tree[nest].parent; at > scope; at = tree[at].parent) {
    if (!tree[at].is_block) continue;
    edit.change_block(at, [before = layout.before, region](Block& block) {
      for (Ref<BufferRegion>& write : block.writes) {
        if (write->buffer == before) write = region;
      }
    });
  }
}

}  // namespace

Expr PaddedLayout::padding_at(const std::vector<Expr>& indices) const { return at_indices(*inverse, padding, indices); }
Expr PaddedLayout::value_at(const std::vector<Expr>& indices) const {
  return at_indices(*pad_value, pad_value->final_indices.front(), indices);
}

bool fill_padding(TreeEdit& edit, const Tree& tree, const PaddedLayout& layout, bool is_parameter) {
  std::vector<int> stores;
  int scope = 0;
  for (int at = 0; at < tree.size(); ++at) {
    const BufferStore* s = tree.stmt(at).as<BufferStore>();
    if (s && s->buffer == layout.before) stores.push_back(at);
    if (!tree[at].is_block) continue;
    for (const Ref<Buffer>& own : tree.block_at(at).alloc_buffers) {
      if (own == layout.before) scope = at;
    }
  }
  if (stores.empty()) {
    if (is_parameter) edit.insert_before(child_of_scope(tree, 0, tree.children(0).front()), assumption(layout));
    return !is_parameter;
  }
  std::vector<RowMajorNest> nests;
  bool all = !loads(layout.pad_value, layout.before);
  for (size_t i = 0; all && i < stores.size(); ++i) {
    auto nest = RowMajorNest::find(tree, stores[i], layout);
    all = nest.has_value();
    if (nest && none_of(nests, [&](const RowMajorNest& known) { return known.outermost() == nest->outermost(); })) {
      nests.push_back(std::move(*nest));
    }
  }
  if (all) {
    for (const RowMajorNest& nest : nests) {
      edit.replace(nest.outermost(), nest.over_new_elements());
      declare_all(edit, tree, scope, nest.outermost(), layout);
    }
  } else {
    edit.insert_after(child_of_scope(tree, scope, stores.back()), filling(layout));
  }
  return true;
}

}  // namespace tilewright::schedule
