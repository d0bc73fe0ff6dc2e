#include "schedule/region_copy.h"

#include "analysis/binding_reads.h"
#include "analysis/block_facts.h"
#include "analysis/may_fail.h"
#include "analysis/threads.h"
#include "analysis/unsettled.h"
#include "ir/build.h"
#include "ir/structural.h"
#include "ir/substitute.h"
#include "ir/traverse.h"
#include "schedule/inline.h"
#include "schedule/relocate.h"
#include "schedule/run_condition.h"
#include "support/ranges.h"
#include "target/memory_scope.h"

namespace tilewright::schedule {
namespace {

bool has(const std::vector<Ref<BufferRegion>>& regions, const Ref<Buffer>& buffer) {
  return any_of(regions, [&](const Ref<BufferRegion>& region) { return region->buffer == buffer; });
}

/// Whether the threads of the loop share one buffer of the scope, and fill it cooperatively.
bool joins_threads(const For& loop, const std::string& scope) {
  if (!loop.thread_binding.defined()) return false;
  auto axis = ThreadAxis::parse(loop.thread_binding->thread_tag);
  return axis && memory_scope(scope).joins_threads(*axis, const_int(loop.extent).value_or(-1));
}

/// Returns the loop and the loops around it in its scope, outermost first.
std::vector<int> loops_around(const CopyLoop& target) {
  std::vector<int> around = target.loop.tree->loops_above(target.loop.at);
  around.push_back(target.loop.at);
  return around;
}

/// Returns the loops whose iterations are threads that share the memory.
std::vector<int> sharing_loops(const CopyLoop& target, const std::string& scope) {
  const Tree& tree = *target.loop.tree;
  std::vector<int> result;
  for (int loop : loops_around(target)) {
    if (joins_threads(tree.for_at(loop), scope)) result.push_back(loop);
  }
  return result;
}

}  // namespace

Result<CopyLoop> find_copy_loop(const State& state, LoopRV loop_rv, BlockRV block_rv, const char* code) {
  TW_TRY(loop, state.find(loop_rv));
  TW_TRY(block, state.find(block_rv));
  const Tree& tree = *block.tree;
  CopyLoop target{loop, block, tree[block.at].scope, {}, {}};
  bool around = loop.func == block.func && tree.contains(loop.at, block.at) && tree[loop.at].scope == target.scope;
  if (!around) {
    return refuse(code, describe(loop) + " is not around " + describe(block) + ", in its scope",
                  {loop.node(), block.node()}, "take one of sch.get_loops(block)");
  }
  if (const NodeBase* bare = analysis::unsettled_statement_in(tree, loop.at)) {
    return refuse(code, "a statement below " + describe(loop) + " is not in a block", {loop.node(), NodeRef(bare)},
                  "put it into a block");
  }
  target.blocks = tree.child_blocks(loop.at);
  for (int child : target.blocks) {
    if (!analysis::loops_between(tree, loop.at, child)) {
      return refuse(code, describe_block(tree.block_at(child)) + " runs on a condition",
                    {loop.node(), tree.stmt(child)}, "copy for a block that runs in each iteration");
    }
  }
  target.statements = statements_of(tree, loop.at);
  return target;
}

/// Checks that loops over threads that copy cooperatively are inside of the loops over blocks.
Status check_thread_nesting(const CopyLoop& target, const std::string& scope, const char* code) {
  const Tree& tree = *target.loop.tree;
  auto inside = analysis::blocks_in_threads(tree, loops_around(target),
                                            [&](const For& loop) { return joins_threads(loop, scope); });
  if (!inside) return Ok{};
  return refuse(code,
                describe_loop(tree.for_at(inside->blocks)) + ", bound to thread blocks, is inside of " +
                    describe_loop(tree.for_at(inside->threads)) + ", bound to threads",
                {NodeRef(tree.stmt(inside->threads)), target.loop.node()},
                "reorder() the loops over blocks to the outside first");
}

int statement_of(const CopyLoop& target, int block) {
  return statement_with(*target.loop.tree, target.statements, block);
}

arith::Region region_below(const CopyLoop& target, const std::vector<int>& blocks, const Ref<Buffer>& buffer,
                           bool reads, const std::string& storage_scope) {
  const Tree& tree = *target.loop.tree;
  auto analyzer = analysis::analyzer_above(tree, target.loop.at);
  arith::Box all;
  for (int block : blocks) {
    std::vector<int> loops = *analysis::loops_between(tree, target.loop.at, block),
                     more = sharing_loops(target, storage_scope);
    append_range(loops, more);
    const BlockRealize& realize = *tree.realize_at(block);
    for (const Ref<BufferRegion>& region : reads ? realize.block->reads : realize.block->writes) {
      if (region->buffer != buffer) continue;
      arith::Box box = arith::relax_region(analysis::bound_region(realize, region), analysis::domains_of(tree, loops),
                                           analyzer, realize.predicate);
      all = all.empty() ? box : arith::unite(all, box, analyzer);
    }
  }
  return arith::clip_to_shape(all, buffer->shape, analyzer);
}

namespace {

/// Returns the variable of a digit expression: f for `f // 4`, `f // 4 % 2` or `f`. Null for other expressions.
Ref<Var> source_of_digit(const Expr& e) {
  if (e.is<Var>()) return e.borrow<Var>();
  auto source = [](const auto* division) {
    auto divisor = const_int(division->b);
    return divisor && *divisor > 0 ? source_of_digit(division->a) : Ref<Var>();
  };
  if (const FloorDiv* quotient = e.as<FloorDiv>()) return source(quotient);
  if (const FloorMod* rest = e.as<FloorMod>()) return source(rest);
  return {};
}

/// A loop variable that a region depends on, or the digits of it that the region uses.
struct LoopInRegion {
  const For* loop;
  std::vector<Expr> digits;

  /// Whether the digits determine the variable, as `f // 4` and `f % 4` do, or are the variable itself.
  bool is_whole() const {
    if (digits.size() == 1) return digits[0] == loop->loop_var;
    if (digits.size() != 2) return has_itself();
    const FloorDiv* quotient = digits[digits[0].is<FloorDiv>() ? 0 : 1].as<FloorDiv>();
    const FloorMod* rest = digits[digits[0].is<FloorDiv>() ? 1 : 0].as<FloorMod>();
    bool is_split = quotient && rest && quotient->a == loop->loop_var && rest->a == loop->loop_var &&
                    const_int(quotient->b) == const_int(rest->b);
    return is_split || has_itself();
  }

 private:
  bool has_itself() const {
    return any_of(digits, [&](const Expr& digit) { return digit == loop->loop_var; });
  }
};

std::vector<LoopInRegion> loops_in(const arith::Region& region, const Tree& tree, const std::vector<int>& loops) {
  std::vector<LoopInRegion> result;
  auto add = [&](const Expr& digit, const Ref<Var>& source) {
    for (int number : loops) {
      const For& loop = tree.for_at(number);
      if (loop.loop_var != source) continue;
      auto known = find_if(result, [&](const auto& each) { return each.loop == &loop; });
      if (known == result.end()) known = result.insert(result.end(), {&loop, {}});
      auto same = [&](const Expr& each) { return structural_equal(each, digit); };
      if (none_of(known->digits, same)) known->digits.push_back(digit);
    }
  };
  auto look = [&](const auto& division, Visitor& v) {
    Ref<Var> source = source_of_digit(division);
    if (!source.defined()) return v.descend(division);
    add(division, source);
  };
  for (const Ref<Range>& r : region) {
    for (const Expr& end : {r->min, r->extent}) {
      visit(end, [&](const Ref<Var>& v) { add(v, v); }, on<FloorDiv, FloorMod>(look));
    }
  }
  return result;
}

}  // namespace

RegionBlock region_block(const CopyLoop& target, const arith::Region& region, bool by_digits) {
  const Tree& tree = *target.loop.tree;
  std::vector<int> loops = tree.loops_above(target.loop.at);
  loops.push_back(target.loop.at);
  RegionBlock result;
  std::vector<std::pair<Expr, Expr>> axes;  // digits of axes
  auto add = [&](const Expr& value, Ref<Range> domain) {
    Ref<Var> axis = var("v" + std::to_string(result.axes.size()), value.dtype());
    axes.emplace_back(value, axis);
    result.axes.push_back(make<IterVar>(
        {.dom = std::move(domain), .var = std::move(axis), .iter_type = IterType::kDataPar, .thread_tag = ""}));
    result.values.push_back(value);
  };
  for (const LoopInRegion& each : loops_in(region, tree, loops)) {
    arith::Analyzer analyzer;
    analyzer.bind(each.loop->loop_var, each.loop->min, each.loop->extent);
    const bool uses_digits = by_digits && !each.is_whole() && all_of(each.digits, [&](const Expr& digit) {
                               auto bound = analyzer.const_int_bound(digit);
                               return bound.min_value == 0 && bound.max_value < bound.kPosInf - 1;
                             });
    if (!uses_digits) {
      add(each.loop->loop_var, range(each.loop->min, each.loop->extent));
      continue;
    }
    for (const Expr& digit : each.digits) {
      add(digit, range_of(constant(digit.dtype(), analyzer.const_int_bound(digit).max_value + 1)));
    }
  }
  auto axis_of = [&](const auto& e, Rewriter& walk) -> Expr {
    auto axis = find_if(axes, [&](const auto& each) { return structural_equal(each.first, e); });
    return axis == axes.end() ? Expr(walk.descend(e)) : axis->second;
  };
  auto in_axes = [&](const Expr& e) { return rewrite(e, on<Var, FloorDiv, FloorMod>(axis_of)); };
  for (const Ref<Range>& r : region) result.region.push_back(range(in_axes(r->min), in_axes(r->extent)));
  return result;
}

namespace {

/// Returns a nest that copies the region element by element, under the condition.
Stmt copy_region(const RegionBlock& frame, const Ref<Buffer>& from, const Ref<Buffer>& to, const std::string& name,
                 const Expr& condition, Ref<Block>* made) {
  std::vector<Ref<Var>> loops;
  std::vector<Expr> indices;
  for (const Ref<Range>& r : frame.region) {
    loops.push_back(var("ax" + std::to_string(loops.size()), r->extent.dtype()));
    indices.push_back(r->min + loops.back());
  }
  Stmt body = store(to, load(from, indices), indices);
  for (size_t d = loops.size(); d-- > 0;) body = loop(loops[d], frame.region[d]->extent, std::move(body));
  Block block;
  block.iter_vars = frame.axes;
  block.reads = {make<BufferRegion>({from, frame.region})};
  block.writes = {make<BufferRegion>({to, frame.region})};
  block.name_hint = name;
  block.annotations.set("auto_copy", i32(1));
  block.body = std::move(body);
  *made = with_reads_of_indices(std::move(block));
  return make<BlockRealize>({.iter_values = frame.values, .predicate = condition, .block = *made});
}

/// The blocks that access the copy instead of the original, and the statement next to which the copy is inserted.
struct AccessSplit {
  std::vector<int> accessing;   ///< blocks that read, or that write, the original
  std::vector<int> redirected;  ///< blocks that will access the copy
  int anchor = -1;              ///< the first statement that reads, or the last that writes
};

Result<AccessSplit> find_accesses(const CopyLoop& target, const Ref<Buffer>& buffer, bool reads, const char* code) {
  const Tree& tree = *target.loop.tree;
  AccessSplit accesses;
  for (int block : target.blocks) {
    const Block& node = tree.block_at(block);
    if (!has(reads ? node.reads : node.writes, buffer)) continue;
    accesses.accessing.push_back(block);
    if (!reads || accesses.anchor == -1) accesses.anchor = statement_of(target, block);
  }
  for (int block : target.blocks) {
    const Block& node = tree.block_at(block);
    int statement = statement_of(target, block);
    bool inside = reads ? statement >= accesses.anchor : statement <= accesses.anchor;
    if (reads && inside && has(node.writes, buffer)) {
      return refuse(code, describe_block(node) + " writes '" + buffer->name + "', which the copy would not see",
                    {target.loop.node(), tree.stmt(block)}, "copy at a loop after that block, or inside of its loops");
    }
    if (inside && (has(node.reads, buffer) || has(node.writes, buffer))) accesses.redirected.push_back(block);
  }
  TW_RETURN_IF_ERROR(
      require_one_name(target.block, target.scope, buffer, code, "copy outside of the block that makes the view"));
  return accesses;
}

/// Returns why the copy would read elements that the enclosing block does not declare to read, such as elements that
/// nothing has written. That happens where the predicate of a block does not bound the region that it reads.
std::optional<analysis::Obstacle> why_beyond_scope(const CopyLoop& target, const Ref<Buffer>& buffer,
                                                   const arith::Region& region) {
  const Tree& tree = *target.loop.tree;
  const Block& scope = tree.block_at(target.scope);
  if (!has(scope.reads, buffer) || has(scope.writes, buffer) || is_contained(scope.alloc_buffers, buffer)) return {};
  const std::vector<int> around = loops_around(target);
  auto analyzer = analysis::analyzer_above(tree, around.front());
  const arith::Box box = analysis::relaxed(region, tree, around, analyzer);
  const auto contains_all = [&](const Ref<BufferRegion>& read) {
    return read->buffer == buffer && arith::proves_subset(box, arith::box_of(read->region), analyzer);
  };
  if (any_of(scope.reads, contains_all)) return {};
  return analysis::Obstacle{
      "the copy would read more of '" + buffer->name + "' than " + describe_block(scope) + " does",
      {target.loop.node(), tree.stmt(target.scope)}};
}

}  // namespace

std::optional<analysis::Obstacle> why_region_unknown(const Tree& tree, int block, const Ref<Buffer>& buffer,
                                                     bool reads) {
  const BlockRealize& realize = *tree.realize_at(block);
  if (is_true(realize.predicate)) return std::nullopt;
  for (const Ref<BufferRegion>& region : reads ? realize.block->reads : realize.block->writes) {
    if (region->buffer != buffer) continue;
    for (const Ref<Range>& r : analysis::bound_region(realize, region)) {
      if (effect_of(r->min) == Effect::kPure && effect_of(r->extent) == Effect::kPure) continue;
      return analysis::Obstacle{describe_block(*realize.block) + " has a predicate, and its region of '" +
                                    buffer->name +
                                    "' depends on loaded values, which may be undefined where the predicate is false",
                                {tree.stmt(block)}};
    }
  }
  return std::nullopt;
}

namespace {

/// Refuses a region that depends on values that may be undefined, and blocks that would miss the copied values.
Status check_copy(const CopyLoop& target, const AccessSplit& accesses, const Ref<Buffer>& buffer, bool reads,
                  const char* code) {
  const Tree& tree = *target.loop.tree;
  for (int block : target.blocks) {
    if (reads || statement_of(target, block) > accesses.anchor) break;
    if (!analysis::binding_reads(*tree.realize_at(block), buffer)) continue;
    return refuse(code,
                  describe_block(tree.block_at(block)) + " reads '" + buffer->name +
                      "' in its axis bindings or predicate before the copy is written back",
                  {tree.stmt(block), target.loop.node()}, "copy at a loop that ends before that block");
  }
  for (int block : accesses.accessing) {
    if (auto obstacle = why_region_unknown(tree, block, buffer, reads))
      return refuse(code, *obstacle, "copy at a loop in which all that is read is complete");
    if (reads || analysis::BlockFacts::of(tree.block_ref(block)).role == analysis::BlockRole::kUpdate) continue;
    std::vector<int> loops = *analysis::loops_between(tree, target.loop.at, block);
    auto analyzer = analysis::analyzer_above(tree, target.loop.at);
    for (const Ref<BufferRegion>& write : tree.block_at(block).writes) {
      if (write->buffer != buffer || surely_runs(tree, block, write, loops, analyzer)) continue;
      return refuse(code,
                    describe_block(tree.block_at(block)) + " is a reduction that may be empty: '" + buffer->name +
                        "' would keep its old value, which the copy does not have",
                    {tree.stmt(block), target.loop.node()}, "decompose_reduction() sets the elements first");
    }
  }
  return Ok{};
}

/// Returns the region to copy. Where computing a bound may fail, it is the whole dimension.
arith::Region copied_region(const CopyLoop& target, const std::vector<int>& accessing, const Ref<Buffer>& buffer,
                            bool reads, const std::string& storage_scope) {
  const Tree& tree = *target.loop.tree;
  const arith::Region region = region_below(target, accessing, buffer, reads, storage_scope);
  auto outside = analysis::analyzer_above(tree, target.loop.at);
  analysis::SureReads sure;
  for (int block : accessing) sure.add(tree, target.loop.at, block, outside);
  const arith::Box box = analysis::without_failing_bounds(arith::box_of(region), outside, sure, sure);
  return arith::clip_to_shape(box, buffer->shape, outside);
}

/// Returns why the copies do not have the values of the original.
std::optional<analysis::Obstacle> check_result(const State& state, const CopyLoop& target, const AccessSplit& accesses,
                                               const Copy& copy, const Ref<Buffer>& buffer, bool reads,
                                               const Tree& after, int copier) {
  const Tree& tree = *target.loop.tree;
  auto obstacle = analysis::why_inputs_incomplete(after, copier);
  if (reads && !obstacle) obstacle = why_not_all_written(state, target.block, target.scope, buffer);
  for (size_t i = 0; i < accesses.redirected.size() && !obstacle; ++i) {
    int block = after.block(tree.block_at(accesses.redirected[i]).id.value);
    if (!reads) obstacle = analysis::why_init_not_first(after, after[copier].parent, block);
    if (obstacle) break;
    if (reads) {
      obstacle = analysis::why_not_covered(after, copier, block, copy.cache);
    } else if (has(after.block_at(block).reads, copy.cache)) {
      obstacle = analysis::why_inputs_incomplete(after, block);
    }
  }
  return obstacle;
}

}  // namespace

Result<Plan> copy_at(const State& state, const CopyLoop& target, const Ref<Buffer>& buffer,
                     const std::string& storage_scope, bool reads, const CopyCodes& codes) {
  const Tree& tree = *target.loop.tree;
  if (!find_memory_scope(storage_scope)) {
    return refuse(codes.scope, "'" + storage_scope + "' is not a storage scope", target.block,
                  "use \"global\", \"local\" or \"shared\"");
  }
  TW_RETURN_IF_ERROR(check_thread_nesting(target, storage_scope, codes.location));
  TW_TRY(accesses, find_accesses(target, buffer, reads, codes.order));
  TW_RETURN_IF_ERROR(check_copy(target, accesses, buffer, reads, codes.values));
  arith::Region region = copied_region(target, accesses.accessing, buffer, reads, storage_scope);
  Copy copy = make_copy(buffer, storage_scope, std::move(region), /*compact=*/false);
  Expr condition = bool_imm(true);
  if (reads) {
    condition = written_condition(tree, target.loop.at, accesses.accessing.front(), buffer, accesses.accessing,
                                  arith::box_of(copy.region));
    if (!condition.defined()) return refuse_unwritten(target.block, buffer, codes.values);
    if (auto obstacle = why_beyond_scope(target, buffer, copy.region))
      return refuse(codes.values, *obstacle, "copy at another loop, or before the loops are changed");
  }
  // An axis that the region does not depend on would copy the same elements several times.
  RegionBlock frame = region_block(target, copy.region, /*by_digits=*/true);
  Ref<Block> copy_block;
  Stmt copying =
      copy_region(frame, reads ? buffer : copy.cache, reads ? copy.cache : buffer, copy.name, condition, &copy_block);

  TreeEdit edit(tree);
  int anchor = target.statements[accesses.anchor];
  place_copy(edit, {target.scope, anchor, !reads}, copy, std::move(copying));
  for (int block : accesses.redirected) {
    edit.change_realize(block, [&](BlockRealize& realize) {
      const Ref<Block> before = realize.block;
      realize.block = redirect(before, copy, /*reads=*/true, /*writes=*/!reads);
      if (reads) realize.block = with_axes_of(before, realize.block);
    });
  }
  Plan plan = give_loops(target.block.func, edit.finish(), {});
  const Tree& after = Tree::of(plan.root);
  int copier = after.block(copy_block->id.value);
  auto obstacle = check_result(state, target, accesses, copy, buffer, reads, after, copier);
  if (obstacle) return refuse(codes.values, *obstacle, "copy at another loop, or before the loops are changed");
  TW_RETURN_IF_ERROR(recheck_execution(after, copier, codes.execution));
  plan.outputs.push_back(Handle::block(target.block.func, *copy_block));
  return plan;
}

TreeEdit insert_prefetch(const CopyLoop& target, const RegionBlock& frame, const Ref<Buffer>& buffer,
                         const Expr& condition, Ref<Block>* made) {
  Block block;
  block.iter_vars = frame.axes;
  block.reads = {make<BufferRegion>({buffer, frame.region})};
  block.name_hint = buffer->name + "_prefetch";
  block.body = make<Prefetch>({block.reads[0]});
  *made = with_reads_of_indices(std::move(block));
  TreeEdit edit(*target.loop.tree);
  edit.insert_before(target.statements.front(),
                     make<BlockRealize>({.iter_values = frame.values, .predicate = condition, .block = *made}));
  return edit;
}

}  // namespace tilewright::schedule
