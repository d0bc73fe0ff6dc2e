#include "schedule/run_condition.h"

#include <unordered_set>

#include "analysis/block_facts.h"
#include "analysis/cover.h"
#include "analysis/scope.h"
#include "analysis/sizes.h"
#include "arith/region_bound.h"
#include "ir/annotations.h"
#include "ir/build.h"
#include "ir/op.h"
#include "ir/substitute.h"
#include "ir/traverse.h"
#include "support/ranges.h"

namespace tilewright::schedule {

Expr all_positive(const std::vector<Expr>& extents, arith::Analyzer& analyzer) {
  Expr condition = bool_imm(true);
  for (const Expr& extent : extents) {
    Expr some = gt(extent, 0);
    if (!analyzer.can_prove(some)) condition = logical_and(condition, some);
  }
  return condition;
}

std::vector<Expr> possibly_empty_extents(const analysis::Tree& tree, int block, const std::vector<int>& loops,
                                         const std::vector<Expr>& values) {
  std::vector<Expr> result;
  for (int at : loops) {
    const For& loop = tree.for_at(at);
    auto shows = [&](const Expr& value) { return arith::has_multiple(value, loop.loop_var); };
    if (const_int(loop.extent).value_or(0) > 0 || any_of(values, shows)) continue;
    auto analyzer = analysis::analyzer_above(tree, tree[at].parent);
    auto moves = [&](const Expr& value) { return uses_var(value, loop.loop_var); };
    if (any_of(values, moves)) analysis::assume_instances(analyzer, tree, block, values);
    if (!is_true(all_positive({loop.extent}, analyzer))) result.push_back(loop.extent);
  }
  return result;
}

Expr run_condition(const analysis::Tree& tree, int block, const Ref<BufferRegion>& write, const std::vector<int>& loops,
                   arith::Analyzer& analyzer) {
  const BlockRealize& realize = *tree.realize_at(block);
  const arith::Region reached = analysis::bound_region(realize, write);
  std::vector<Expr> extents, steps;  // extents to test; values that must depend on each loop
  for (size_t i : indices_of(realize.iter_values)) {
    if (!analysis::is_reduction_axis(realize.block->iter_vars[i])) continue;
    if (!has_init_without_steps(*realize.block)) extents.push_back(realize.block->iter_vars[i]->dom->extent);
    steps.push_back(realize.iter_values[i]);
  }
  for (const Ref<Range>& r : reached) {
    steps.push_back(r->min);
    steps.push_back(r->extent);
  }
  for (Expr& extent : possibly_empty_extents(tree, block, loops, steps)) extents.push_back(std::move(extent));
  Expr condition = all_positive(extents, analyzer);
  auto is_inner = [&](const Ref<Var>& v) {
    return any_of(loops, [&](int at) { return tree.for_at(at).loop_var == v; });
  };
  return uses_any_var(condition, is_inner) || effect_of(condition) != Effect::kPure ? Expr() : condition;
}

bool surely_runs(const analysis::Tree& tree, int block, const Ref<BufferRegion>& write, const std::vector<int>& loops,
                 arith::Analyzer& analyzer) {
  Expr condition = run_condition(tree, block, write, loops, analyzer);
  return condition.defined() && is_true(condition);
}

namespace {

/// Returns the possibly empty loops in `body` that make the region of the buffer that is read empty, too: an index is a
/// multiple of such a loop's variable, and depends on no other possibly empty loop.
std::unordered_set<const NodeBase*> loops_that_empty_region(const NodeRef& body, const Ref<Buffer>& buffer) {
  std::unordered_set<const NodeBase*> open, emptying;
  VarMap axes;  // bindings of axes, outer ones first, in terms of loop variables only
  std::vector<Expr> indices;
  visit(
      body,
      [&](const Ref<For>& loop) {
        if (const_int(loop->extent).value_or(0) < 1) open.insert(loop->loop_var.get());
      },
      [&](const Ref<BlockRealize>& realize) {
        for (size_t i : indices_of(realize->iter_values)) {
          axes[realize->block->iter_vars[i]->var] = substitute(realize->iter_values[i], axes);
        }
      },
      [&](const Ref<BufferLoad>& load) {
        if (load->buffer == buffer) {
          for (const Expr& index : load->indices) indices.push_back(substitute(index, axes));
        }
      });
  for (const Expr& index : indices) {
    Ref<Var> only;
    int count = 0;
    for_each_free_var(index, [&](const Ref<Var>& v) {
      if (open.count(v.get()) == 0 || v == only) return;
      only = v;
      ++count;
    });
    if (count == 1 && arith::has_multiple(index, only)) emptying.insert(only.get());
  }
  return emptying;
}

}  // namespace

bool may_skip_read(const NodeRef& body, const Ref<Buffer>& buffer) {
  const auto emptying = loops_that_empty_region(body, buffer);
  return any_node(
      body, on<And, Or, IfThenElse, While>([](const auto&) { return true; }),
      [&](const Ref<For>& loop) {
        return const_int(loop->extent).value_or(0) < 1 && !emptying.count(loop->loop_var.get());
      },
      [](const Ref<BlockRealize>& realize) { return !is_true(realize->predicate); },
      [](const Ref<Call>& call) { return intrinsic_of(*call) == Intrinsic::k_if_then_else; });
}

bool surely_reads(const analysis::Tree& tree, const std::vector<int>& readers, const Ref<Buffer>& buffer,
                  const arith::Box& box, int outside) {
  return any_of(readers, [&](int reader) {
    auto loops = analysis::loops_between(tree, outside, reader);
    if (!loops) return false;
    auto analyzer = analysis::analyzer_above(tree, outside);
    const Block& block = tree.block_at(reader);
    return !may_skip_read(block.body, buffer) && any_of(block.reads, [&](const Ref<BufferRegion>& read) {
      if (read->buffer != buffer) return false;
      auto has = surely_runs(tree, reader, read, *loops, analyzer)
                     ? analysis::produced(*tree.realize_at(reader), read, tree, *loops, analyzer)
                     : std::nullopt;
      return has && arith::proves_subset(box, *has, analyzer);
    });
  });
}

namespace {

/// Returns written_condition() for the blocks of one scope; nothing if none of them writes the buffer before `end`.
std::optional<Expr> written_in(const analysis::Tree& tree, int scope, int outside, int end, const Ref<Buffer>& buffer) {
  const analysis::Scope& blocks = analysis::Scope::of(tree, scope);
  std::optional<Expr> condition;
  bool begun = false;    // whether a complete or reduction block writes the buffer
  bool perhaps = false;  // whether a block writes it that may skip elements
  for (int child : blocks.writers(buffer)) {
    int writer = blocks.position(tree, child);
    if (writer >= end) continue;
    if (!condition) condition = bool_imm(true);
    const auto& facts = analysis::BlockFacts::of(tree.block_ref(writer));
    if (facts.role == analysis::BlockRole::kUpdate || facts.role == analysis::BlockRole::kOther) {
      perhaps |= !facts.why.empty();
      continue;
    }
    const int both[] = {outside, writer};
    int common = tree.common_ancestor(both);
    auto loops = analysis::loops_between(tree, common, writer);
    auto analyzer = analysis::analyzer_above(tree, common);
    for (const Ref<BufferRegion>& write : tree.block_at(writer).writes) {
      if (write->buffer != buffer) continue;
      Expr runs = loops ? run_condition(tree, writer, write, *loops, analyzer) : Expr();
      if (runs.defined() && is_true(runs)) return runs;  // the buffer is written, whether other blocks run or not
      begun = true;
      *condition = condition->defined() && runs.defined() ? logical_and(*condition, runs) : Expr();
    }
  }
  if (condition && (perhaps || !begun)) condition = Expr();
  return condition;
}

}  // namespace

Expr written_condition(const analysis::Tree& tree, int outside, int end, const Ref<Buffer>& buffer,
                       const std::vector<int>& readers, const arith::Box& box) {
  const int own = tree[outside].is_block ? outside : tree[outside].scope;
  std::optional<Expr> condition;
  for (int scope = own, at = outside; scope != analysis::Tree::kNone && !condition; scope = tree[scope].scope) {
    condition = written_in(tree, scope, at, end, buffer);
    const auto& allocated = tree.block_at(scope).alloc_buffers;
    if (is_contained(allocated, buffer)) break;
    at = end = scope;
  }
  if (!condition || (condition->defined() && is_true(*condition))) return bool_imm(true);
  if (surely_reads(tree, readers, buffer, box, outside)) return bool_imm(true);
  // The variables of loops around the scope's block must not occur in it.
  auto is_hidden = [&](const Ref<Var>& v) {
    int loop = tree.loop(v);
    return loop != analysis::Tree::kNone && tree[loop].scope != own;
  };
  return condition->defined() && uses_any_var(*condition, is_hidden) ? Expr() : *condition;
}

Diagnostic refuse_unwritten(const Place& block, const Ref<Buffer>& buffer, std::string code) {
  return refuse(
      std::move(code),
      "the reduction that writes '" + buffer->name + "' may be empty: a copy would have no value to read then", block,
      "decompose_reduction() sets the elements first");
}

}  // namespace tilewright::schedule
