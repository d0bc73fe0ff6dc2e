#include "sparse/lower_iterations.h"

#include <algorithm>

#include "analysis/block_access_region.h"
#include "analysis/brief.h"
#include "analysis/validator.h"
#include "arith/analyzer.h"
#include "ir/annotations.h"
#include "ir/buffer_domain.h"
#include "ir/build.h"
#include "ir/op.h"
#include "ir/refuse_at.h"
#include "ir/regions.h"
#include "ir/sparse.h"
#include "ir/structural.h"
#include "ir/traverse.h"
#include "ir/verify.h"
#include "sparse/lowering.h"
#include "support/ranges.h"
#include "support/span.h"

namespace tilewright::sparse {
namespace {

constexpr size_t kNone = static_cast<size_t>(-1);

/// Wraps statements that stand beside blocks in blocks without axes, so that they can be scheduled. `count` numbers
/// them.
Stmt in_blocks(const Stmt& stmt, const std::string& name, int& count) {
  auto block_of = [&](Stmt body) {
    return make_block_nest({}, name + std::to_string(count++), {}, {}, std::move(body));
  };
  if (!has_node<Block>(stmt)) return block_of(stmt);
  const SeqStmt* sequence = stmt.as<SeqStmt>();
  if (sequence) {
    std::vector<Stmt> result, plain;
    auto flush = [&] {
      if (!plain.empty()) result.push_back(block_of(seq(std::exchange(plain, {}))));
    };
    for (const Stmt& each : sequence->seq) {
      if (has_node<Block>(each)) {
        flush();
        result.push_back(in_blocks(each, name, count));
      } else {
        plain.push_back(each);
      }
    }
    flush();
    return seq(std::move(result));
  }
  return rewrite(
      stmt, [&](const Ref<SeqStmt>& inner, Rewriter&) -> Stmt { return in_blocks(inner, name, count); },
      [&](const Ref<BlockRealize>& inner, Rewriter&) -> Stmt { return inner; });
}

/// Completes the regions of all blocks, innermost first. A block whose written regions begin at an offset that is read,
/// or at rows of a list that has none twice, also declares these, from which its instances are proved to write
/// different elements.
Stmt with_regions(const Stmt& stmt, const std::vector<BufferDomain>& known) {
  return rewrite(stmt, [&](const Ref<Block>& block, Rewriter& walk) -> Stmt {
    Ref<Block> inner = walk.descend(block);
    analysis::BlockAccess access = analysis::block_access_region(inner);
    Block complete = *inner;
    complete.reads = std::move(access.reads);
    complete.writes = std::move(access.writes);
    for (const BufferDomain& domain : known) {
      bool begins_there = false;
      for (const Ref<BufferRegion>& write : complete.writes) {
        visit(write, [&](const Ref<BufferLoad>& load) { begins_there |= load->buffer == domain.buffer; });
      }
      const bool is_ordered = domain.order != ValueOrder::kNone && !domain.has_segments();
      const bool is_strict = domain.order == ValueOrder::kIncreasing || domain.order == ValueOrder::kDistinct;
      if (begins_there && is_ordered && (is_strict || has_node<Block>(complete.body))) {
        declare(complete.annotations, domain);
      }
    }
    return make(std::move(complete), block.span());
  });
}

bool reduces(const Ref<SpIterVar>& iter) { return iter->iter_type == IterType::kCommReduce; }

/// Whether different values of the variables access different elements of each buffer that the init writes. That holds
/// if each variable is an index, in the same dimension, of all accesses to the buffer: coordinates below one position
/// are distinct, so by induction from the roots tuples of coordinates are.
bool points_are_apart(const SparseIteration& iteration, const std::vector<Ref<SpIterVar>>& iters) {
  const std::unordered_set<const NodeBase*> written = written_in(iteration.init);
  for (const Ref<SpIterVar>& iter : iters) {
    if (!iter->axis->parent.defined() && is_const_int(iter->axis->length, 1)) continue;  // the variable has one value
    if (iter->axis->is_sparse() && !iter->axis->sorted) return false;
    std::unordered_map<const NodeBase*, std::vector<bool>> dimensions;  // by data, that may still be the one
    auto look = on<BufferLoad, BufferStore>([&](const auto& access) {
      const NodeBase* data = access->buffer->data.get();
      if (!written.contains(data)) return;
      auto [known, is_new] = dimensions.try_emplace(data, access->indices.size(), true);
      for (size_t i : indices_of(access->indices)) {
        if (i >= known->second.size() || access->indices[i] != Expr(iter->var)) known->second[i] = false;
      }
    });
    for (const Stmt& part : {iteration.init, iteration.body}) visit(part, look);
    for (const auto& [data, is_index] : dimensions) {
      if (!is_contained(is_index, true)) return false;
    }
  }
  return true;
}

/// The variables, with those that several points of the init share as variables of a reduction: programs as published
/// name variables spatial whose iterations add to one element, such as relations of a graph.
std::vector<Ref<SpIterVar>> with_shared_points(const SparseIteration& iteration) {
  std::vector<Ref<SpIterVar>> result = iteration.iter_vars;
  if (!iteration.init.defined() || points_are_apart(iteration, variables_of_init(iteration))) return result;
  for (Ref<SpIterVar>& iter : result) {
    if (reduces(iter)) continue;
    std::vector<Ref<SpIterVar>> chain{iter};
    for (const Ref<SpIterVar>& outer : reversed(iteration.iter_vars)) {
      if (outer->axis == chain.back()->axis->parent) chain.push_back(outer);
    }
    if (points_are_apart(iteration, chain)) continue;
    iter = with_field(iter, &SpIterVar::iter_type, IterType::kCommReduce);
  }
  return result;
}

bool init_sets_all(const SparseIteration& iteration) {
  const std::unordered_set<const NodeBase*> set = written_in(iteration.init), written = written_in(iteration.body);
  return all_of(written, [&](const NodeBase* data) { return set.contains(data); });
}

/// Whether the init can be that of the innermost block: all reduction variables are axes of this block, and none of
/// their loops is empty. `innermost`: index of the first variable of the block; `without_steps`: loops may be empty,
/// and the reduction will be decomposed, which needs an init of all that the block writes.
bool has_init_of_block(const SparseIteration& iteration, size_t innermost, bool without_steps) {
  if (without_steps && !init_sets_all(iteration)) return false;
  const std::vector<Ref<SpIterVar>>& iters = iteration.iter_vars;
  const std::vector<Ref<SpIterVar>> initialized = variables_of_init(iteration);
  size_t spatial = 0;
  for (size_t i : indices_of(iters)) {
    if (!reduces(iters[i])) {
      ++spatial;
      if (iters[i]->fused && reduces(iters[i - 1])) return false;
      continue;
    }
    const Expr& count = iters[i]->axis->nnz_cols;
    if (i < innermost || iters[i]->fused) return false;
    if (without_steps) continue;
    if (!count.defined() || const_int(count).value_or(0) < 1) return false;
  }
  return spatial < iters.size() && spatial == initialized.size() && points_are_apart(iteration, initialized);
}

}  // namespace

Annotations preprocess() {
  Annotations result;
  result.set("preprocess", bool_imm(true));
  return result;
}

std::unordered_set<const NodeBase*> written_in(const NodeRef& root) {
  std::unordered_set<const NodeBase*> result;
  if (!root.defined()) return result;
  visit(
      root, [&](const Ref<BufferStore>& store) { result.insert(store->buffer->data.get()); },
      [&](const Ref<Block>& block) {
        for (const Ref<BufferRegion>& region : block->writes) result.insert(region->buffer->data.get());
      });
  return result;
}

void Lowering::fail(const char* code, std::string message, const NodeRef& where, std::string hint) {
  if (!failure) failure = refuse_at(where, code, std::move(message), std::move(hint));
}

const Ref<Buffer>& Lowering::array_of(const Ref<Buffer>& buffer) {
  Ref<Buffer>& array = arrays_[buffer];
  if (array.defined()) return array;
  Buffer plain = *buffer;
  plain.axes.clear();
  plain.default_value = {};
  array = make(std::move(plain), buffer.span());
  return array;
}

void Lowering::to_array(Ref<Buffer>& buffer) {
  if (buffer.defined() && !buffer->axes.empty()) buffer = array_of(buffer);
}

std::pair<Stmt, std::vector<Def<Buffer>>> Lowering::lower_with_buffers(const Stmt& stmt) {
  std::vector<Def<Buffer>> around = std::exchange(buffers_in_place_, {});
  Stmt lowered = lower(stmt);
  return {std::move(lowered), std::exchange(buffers_in_place_, std::move(around))};
}

template <class F>
Stmt Lowering::with_searches(F&& lower_expressions) {
  Place place{nest_.frames.size(), {}, {}};
  Place* const around = std::exchange(place_, &place);
  Stmt result = lower_expressions();
  place_ = around;
  if (place.searches.empty()) return result;
  place.searches.push_back(std::move(result));
  return seq(std::move(place.searches));
}

Stmt Lowering::lower_inside(const Stmt& stmt) {
  Place* const around = std::exchange(place_, nullptr);
  Stmt result = lower(stmt);
  place_ = around;
  return result;
}

Stmt Lowering::lower_inside(const Frame& frame, const Stmt& stmt) {
  nest_.frames.push_back(frame);
  Stmt result = lower_inside(stmt);
  nest_.frames.pop_back();
  return result;
}

Expr Lowering::lower_where(const Expr& condition, const Expr& e) {
  nest_.frames.push_back({.kind = Frame::Kind::kCondition, .condition = condition});
  Expr result = lower(e);
  nest_.frames.pop_back();
  return result;
}

Expr Lowering::guarded(const Ref<Call>& call) {
  const Expr condition = lower(call->arg(0));
  const Expr then_value = lower_where(condition, call->arg(1));
  const Expr else_value = lower_where(logical_not(condition), call->arg(2));
  return make<Call>({call->dtype, call->op, {condition, then_value, else_value}}, call.span());
}

Stmt Lowering::guarded(const Ref<IfThenElse>& node) {
  return with_searches([&]() -> Stmt {
    const Expr condition = lower(node->condition);
    auto branch = [&](const Stmt& stmt, Expr holds) {
      return lower_inside({.kind = Frame::Kind::kCondition, .condition = std::move(holds)}, stmt);
    };
    Stmt then_case = branch(node->then_case, condition);
    return make<IfThenElse>({condition, then_case, branch(node->else_case, logical_not(condition))}, node.span());
  });
}

Expr Lowering::lasting_part(const Expr& condition) const {
  const auto changes = [&](const Expr& e) {
    bool is_read = false;
    visit(substitute(e, lets_from(outermost_)), [&](const Ref<BufferLoad>& load, Visitor& walk) {
      is_read |= written_.contains(load->buffer->data.get());
      for (const Expr& index : load->indices) walk(index);
    });
    return is_read;
  };
  if (!changes(condition)) return condition;
  const And* pair = condition.as<And>();
  if (!pair) return {};
  return changes(pair->a) ? lasting_part(pair->a) : both(pair->a, lasting_part(pair->b));
}

Stmt Lowering::guarded(const Ref<While>& loop) {
  const Expr condition = lower(loop->condition);  // evaluated before each iteration, so it has no place for searches
  const Expr lasting = in_iteration_ ? lasting_part(condition) : Expr();
  const Stmt body = lasting.defined()
                        ? lower_inside({.kind = Frame::Kind::kCondition, .condition = lasting}, loop->body)
                        : lower_inside(loop->body);
  return make<While>({condition, body}, loop.span());
}

Stmt Lowering::lower_store(const Ref<BufferStore>& node) {
  const Expr value = lower(node->value);
  Element element = locate(node->buffer, node->indices, node);
  if (failure) return node;
  if (element.present.defined() && !is_published_) {
    fail("sparse/store", "a value is stored to coordinates of '" + node->buffer->name + "' that it may not hold", node,
         "iterate over the axes of the buffer that is written, and index it by their variables");
    return node;
  }
  Stmt store = make<BufferStore>({array_of(node->buffer), value, std::move(element.indices), {}}, node.span());
  return element.present.defined() ? make<IfThenElse>({element.present, store, {}}) : store;
}

Stmt Lowering::lower_loop(const Ref<For>& node) {
  return with_searches([&]() -> Stmt {
    For lowered = *node;
    lowered.min = lower(node->min);
    lowered.extent = lower(node->extent);
    For plain = lowered;
    if (in_iteration_) {
      const VarMap names = lets_from(outermost_);
      for (Expr* e : {&plain.min, &plain.extent}) *e = substitute(*e, names);
    }
    lowered.body = lower_inside({.kind = Frame::Kind::kLoop, .loop = make(std::move(plain), node.span())}, node->body);
    return make(std::move(lowered), node.span());
  });
}

template <class Node>
Node Lowering::lower_node(const Node& node) {
  if (!node.defined() || failure) return node;
  return rewrite(
      node, [&](const Ref<Var>& v, Rewriter&) -> Expr { return find_value_or(values_, v, v); },
      [&](const Ref<Buffer>& buffer, Rewriter& walk) -> NodeRef {
        return buffer->axes.empty() ? NodeRef(walk.descend(buffer)) : NodeRef(array_of(buffer));
      },
      // A region of a sparse buffer is one of coordinates: declarations of domains name all of it.
      [&](const Ref<BufferRegion>& region, Rewriter& walk) -> NodeRef {
        return region->buffer->axes.empty() ? NodeRef(walk.descend(region))
                                            : NodeRef(whole_region(array_of(region->buffer)));
      },
      [&](const Ref<BufferLoad>& node, Rewriter& walk) -> Expr {
        if (node->buffer->axes.empty()) return walk.descend(node);
        if (failure) return node;
        Element element = locate(node->buffer, node->indices, node);
        if (failure) return node;
        Expr value = make<BufferLoad>({array_of(node->buffer), std::move(element.indices), {}}, node.span());
        if (!element.present.defined()) return value;
        const Expr& given = node->buffer->default_value;
        return if_then_else(element.present, value, given.defined() ? given : zero(node->buffer->dtype));
      },
      [&](const Ref<BufferStore>& node, Rewriter& walk) -> Stmt {
        if (failure) return node;
        return with_searches([&] { return node->buffer->axes.empty() ? walk.descend(node) : lower_store(node); });
      },
      [&](const Ref<Evaluate>& node, Rewriter& walk) -> Stmt {
        return with_searches([&] { return walk.descend(node); });
      },
      [&](const Ref<For>& loop, Rewriter&) -> Stmt { return lower_loop(loop); },
      [&](const Ref<LetStmt>& let, Rewriter&) -> Stmt {
        return with_searches([&]() -> Stmt {
          LetStmt lowered = *let;
          lowered.value = lower(let->value);
          lowered.body = lower_inside({.kind = Frame::Kind::kLet, .let = let->var, .value = lowered.value}, let->body);
          return make(std::move(lowered), let.span());
        });
      },
      [&](const Ref<AssertStmt>& assertion, Rewriter&) -> Stmt {
        return with_searches([&]() -> Stmt {
          AssertStmt lowered = *assertion;
          lowered.condition = lower(assertion->condition);
          lowered.body = lower_inside(assertion->body);
          return make(std::move(lowered), assertion.span());
        });
      },
      [&](const Ref<Let>& let, Rewriter& walk) -> Expr {
        nest_.frames.push_back({.kind = Frame::Kind::kLet, .let = let->var, .value = walk(let->value)});
        Expr result = walk.descend(let);
        nest_.frames.pop_back();
        return result;
      },
      on<IfThenElse, While>([&](const auto& node, Rewriter&) -> Stmt { return guarded(node); }),
      [&](const Ref<And>& node, Rewriter& walk) -> Expr {
        const Expr first = walk(node->a);
        return make<And>({first, lower_where(first, node->b)}, node.span());
      },
      [&](const Ref<Or>& node, Rewriter& walk) -> Expr {
        const Expr first = walk(node->a);
        return make<Or>({first, lower_where(logical_not(first), node->b)}, node.span());
      },
      [&](const Ref<Call>& call, Rewriter& walk) -> Expr {
        return intrinsic_of(*call) == Intrinsic::k_if_then_else ? guarded(call) : Expr(walk.descend(call));
      },
      [&](const Ref<SparseIteration>& node, Rewriter&) -> Stmt { return iteration(node); });
}

Stmt Lowering::lower(const Stmt& stmt) { return lower_node(stmt); }

Expr Lowering::lower(const Expr& e) { return lower_node(e); }

Stmt Lowering::iteration(const Ref<SparseIteration>& node) {
  SpanScope at(node.span());  // loops, blocks and searches come from the user's line, too
  if (in_iteration_) return nest_of(node, nest_.frames.size());
  in_iteration_ = true;
  outermost_ = nest_.frames.size();
  written_ = written_in(node);
  searches_.clear();
  Stmt result = nest_of(node, outermost_);
  in_iteration_ = false;
  std::vector<Stmt> all = std::exchange(hoisted_, {});
  all.push_back(std::move(result));
  return seq(std::move(all));
}

void Lowering::bind_variables(size_t first) {
  for (size_t i = first; i < nest_.frames.size(); ++i) values_[nest_.frames[i].iter->var] = nest_.frames[i].value;
}

Stmt Lowering::nest_of(const Ref<SparseIteration>& node, size_t around) {
  const SparseIteration& iteration = *node;
  const std::string& name = iteration.name_hint;
  std::vector<Level> levels = nest_.open(is_published_ ? with_shared_points(iteration) : iteration.iter_vars);
  bind_variables(around);
  auto [body, buffers] = lower_with_buffers(iteration.body);
  if (failure) return node;
  int steps = 0;
  if (has_node<Block>(body)) body = in_blocks(body, name + "_step", steps);
  // The init runs in front of the first loop of the reduction, inside of blocks that are apart from one another.
  size_t at = kNone;
  Stmt init, init_of_block;
  const size_t innermost = levels.back().first - around;
  bool may_have_no_step = false;
  if (iteration.init.defined() && has_init_of_block(iteration, innermost, is_published_)) {
    auto [lowered, buffers_of_init] = lower_with_buffers(iteration.init);
    if (buffers_of_init.empty()) init_of_block = std::move(lowered);  // else decompose_reduction would share them
  }
  if (init_of_block.defined()) {
    may_have_no_step = !has_init_of_block(iteration, innermost, false);
  } else if (iteration.init.defined()) {
    size_t first = nest_.frames.size();
    for (size_t i = around; i < nest_.frames.size() && first == nest_.frames.size(); ++i) {
      if (reduces(nest_.frames[i].iter)) first = i;
    }
    at = 0;
    while (at + 1 < levels.size() && levels[at + 1].first <= first) ++at;
    if (first == nest_.frames.size()) at = 0;
    std::vector<Ref<SpIterVar>> outer, inner;
    for (size_t i = around; i < levels[at].first; ++i) outer.push_back(nest_.frames[i].iter);
    if (!points_are_apart(iteration, outer)) {
      at = 0;
      outer.clear();
    }
    for (const Ref<SpIterVar>& iter : variables_of_init(iteration)) {
      if (!is_contained(outer, iter)) inner.push_back(iter);
    }
    std::vector<Frame> kept(nest_.frames);
    nest_.frames.resize(levels[at].first);
    init = init_nest(iteration, inner);
    nest_.frames = std::move(kept);
    bind_variables(around);
  }
  for (size_t i = levels.size(); i-- > 0;) {
    const bool is_last = i + 1 == levels.size();
    Annotations annotations = iteration.annotations;
    if (is_last && may_have_no_step) annotations.set(kInitWithoutSteps, bool_imm(true));
    body = make_block_nest(levels[i], name + std::to_string(i), annotations, is_last ? init_of_block : Stmt(), body,
                           is_last ? buffers : std::vector<Def<Buffer>>());
    if (i == at) body = seq({init, body});
  }
  nest_.frames.resize(around);
  return body;
}

Stmt Lowering::init_nest(const SparseIteration& iteration, const std::vector<Ref<SpIterVar>>& iters) {
  const size_t around = nest_.frames.size();
  std::vector<Level> levels = nest_.open(iters);
  bind_variables(around);
  auto [body, buffers] = lower_with_buffers(iteration.init);
  const std::string name = iteration.name_hint + "_init";
  for (size_t i = levels.size(); i-- > 0;) {
    body = make_block_nest(levels[i], levels.size() > 1 ? name + std::to_string(i) : name, {}, {}, body,
                           std::exchange(buffers, {}));
  }
  return body;
}

Stmt Lowering::parent_indices_search(const Nest::ParentIndices& indices) {
  const Axis& axis = *indices.child;
  const DataType type = axis.parent->idtype;
  const Ref<Buffer> low = decl_buffer({i32(1)}, type, "low"), high = decl_buffer({i32(1)}, type, "high");
  const Expr zero_index = i32(0), begin = load(low, {zero_index}), end = load(high, {zero_index});
  const Ref<Var> middle = var("middle", type), position = var("vp", axis.idtype), loop = var("p", axis.idtype);
  Level level;
  level.axes.push_back(make<IterVar>({range_of(cast(axis.idtype, axis.nnz)), position, IterType::kDataPar, ""}));
  level.loops.push_back(loop);
  // The last parent whose offset is not greater: offsets begin with 0.
  Stmt step = make<IfThenElse>({gt(load(axis.indptr, {middle}), Expr(position)), store(high, middle, {zero_index}),
                                store(low, Expr(middle) + 1, {zero_index})});
  Stmt search =
      make<While>({lt(begin, end), make<LetStmt>({middle, begin + floordiv(end - begin, constant(type, 2)), step})});
  Stmt body = seq({store(low, constant(type, 1), {zero_index}), store(high, cast(type, axis.parent->nnz), {zero_index}),
                   search, store(indices.parents, begin - 1, {position})});
  return make_block_nest(level, "binary_search_block_" + std::to_string(indices.search) + "_0", preprocess(), {}, body,
                         {low, high});
}

/// The nest that fills the array of parent positions of a fused axis.
Stmt Lowering::parent_indices_nest(const Nest::ParentIndices& indices) {
  if (indices.search >= 0) return parent_indices_search(indices);
  std::vector<Ref<SpIterVar>> iters;
  for (Ref<Axis> axis = indices.child; axis.defined(); axis = axis->parent) {
    iters.push_back(make<SpIterVar>({var("p", axis->idtype), IterType::kDataPar, axis, false}));
  }
  std::ranges::reverse(iters);
  Nest nest;
  std::vector<Level> levels = nest.open(iters);
  const Frame& last = nest.frames.back();
  Stmt body = store(indices.parents, last.parent, {last.position});
  for (size_t i = levels.size(); i-- > 0;) {
    body = make_block_nest(levels[i], indices.parents->name + std::to_string(i), preprocess(), {}, body);
  }
  return body;
}

/// The root declares domains and disjoint buffers of the arrays instead of the sparse buffers.
void Lowering::redeclare(Block& root) {
  const std::vector<BufferDomain> domains = buffer_domains(root);
  if (!domains.empty()) root.annotations.erase(kBufferDomains);
  for (BufferDomain domain : domains) {
    to_array(domain.buffer);
    to_array(domain.segments);
    declare(root.annotations, domain);
  }
  const std::vector<DisjointBuffers> groups = disjoint_buffers(root);
  if (!groups.empty()) root.annotations.erase(kDisjointBuffers);
  for (DisjointBuffers group : groups) {
    for (Ref<Buffer>& buffer : group) to_array(buffer);
    declare(root.annotations, group);
  }
}

void Lowering::require_sizes(const PrimFunc& func, Block& root) {
  arith::Analyzer analyzer;
  List required;
  if (const NodeRef& known = root.annotations.get(analysis::kRequiredSizes); known.defined() && known.is<List>()) {
    required = *known.as<List>();
  }
  for (const Ref<Axis>& axis : func.axes) {
    for (const auto& [buffer, needed] : structure_arrays(*axis)) {
      const bool is_parameter = any_of(func.buffer_map, [&](const auto& entry) { return entry.second == buffer; });
      const DataType wide = DataType::int_(64);
      const Expr holds = ge(cast(wide, buffer->shape[0]), cast(wide, needed));
      if (!is_parameter || analyzer.can_prove(holds)) continue;
      const std::string size = analysis::brief(buffer->shape[0]), least = analysis::brief(needed);
      required.items.push_back(make<List>({{holds,
                                            string_imm(size + " is less than " + least + ": '" + buffer->name +
                                                       "' is too short for axis '" + axis->name + "'"),
                                            string_imm("pass " + least + " elements, or more")}}));
    }
  }
  if (!required.items.empty()) root.annotations.set(analysis::kRequiredSizes, make(std::move(required)));
}

Ref<PrimFunc> Lowering::run(const Ref<PrimFunc>& func) {
  const BlockRealize* realize = func->body.as<BlockRealize>();
  const bool has_root = realize && realize->block->iter_vars.empty();
  Block root;
  root.name_hint = "root";
  if (has_root) root = *realize->block;
  written_by_function_ = written_in(func->body);
  Stmt body = lower(has_root ? root.body : func->body);
  if (failure) return func;
  int steps = 0;
  if (has_node<Block>(body)) body = in_blocks(body, "step", steps);
  std::vector<Stmt> all;
  const std::unordered_set<const NodeBase*>& written = written_by_function_;
  std::unordered_set<NodeRef> fused;  // offsets by which each position has a parent
  visit(func->body, [&](const Ref<SpIterVar>& iter) {
    if (iter->fused && iter->axis->is_variable()) fused.insert(iter->axis->indptr);
  });
  for (const Nest::ParentIndices& indices : nest_.parent_indices) {
    if (!any_node(body, [&](const Ref<BufferLoad>& load) { return load->buffer == indices.parents; })) continue;
    for (Ref<Axis> axis = indices.child; axis->parent.defined(); axis = axis->parent) {
      if (!axis->is_variable() || !written.contains(axis->indptr->data.get())) continue;
      fail("sparse/search", "axis '" + axis->name + "' is fused, and the function writes its indptr", func,
           "write the structure in another function, or iterate over the axes one inside of the other");
      return func;
    }
    for (Ref<Axis> axis = indices.child; axis->parent.defined(); axis = axis->parent) {
      if (axis->is_variable()) fused.insert(axis->indptr);
    }
    all.push_back(parent_indices_nest(indices));
    allocated_.emplace_back(indices.parents);
  }
  all.push_back(std::move(body));
  for (Def<Buffer>& buffer : root.alloc_buffers) to_array(buffer);
  append_range(root.alloc_buffers, allocated_);
  redeclare(root);
  require_sizes(*func, root);
  std::vector<BufferDomain> known = structure_domains(*func);
  std::erase_if(known, [&](const BufferDomain& d) { return written.contains(d.buffer->data.get()); });
  for (BufferDomain& domain : known) {
    if (fused.contains(domain.buffer)) domain.order = ValueOrder::kOffsets;
    if (!is_published_) continue;
    domain.longest = {};
    // Published formats pad rows to one length with repeated coordinates.
    const bool is_padded = any_of(
        func->axes, [&](const Ref<Axis>& axis) { return !axis->is_variable() && axis->indices == domain.buffer; });
    if (is_padded) domain = {domain.buffer, domain.min, domain.end};
  }
  std::vector<BufferDomain> ordered = known;
  for (BufferDomain& domain : buffer_domains(root)) ordered.push_back(std::move(domain));
  root.body = with_regions(seq(std::move(all)), ordered);
  const std::vector<BufferDomain> declared = buffer_domains(root);
  for (const BufferDomain& domain : known) {
    if (!any_of(declared, [&](const BufferDomain& other) { return tilewright::is_same(other, domain); })) {
      declare(root.annotations, domain);
    }
  }
  PrimFunc lowered = *func;
  lowered.axes.clear();
  for (auto& [param, buffer] : lowered.buffer_map) to_array(buffer);
  lowered.body = realized(make(std::move(root)), func->body.span());
  return make(std::move(lowered), func.span());
}

bool is_sparse(const Func& func) {
  const PrimFunc* prim = func.as<PrimFunc>();
  return prim && !prim->axes.empty();
}

Result<Ref<PrimFunc>> lower_iterations(const Ref<PrimFunc>& func, Form form) {
  TW_RETURN_IF_ERROR(verify(func, Stage::kSparse, Rules::kLanguage));
  Lowering lowering(form);
  Ref<PrimFunc> lowered = lowering.run(func);
  if (lowering.failure) return std::move(*lowering.failure);
  return lowered;
}

Result<Ref<Module>> lower_iterations(const Ref<Module>& module, Form form) {
  Ref<Module> result = module;
  for (const auto& [name, func] : module->functions) {
    if (!is_sparse(func)) continue;
    TW_TRY(lowered, lower_iterations(func.cast<PrimFunc>(), form));
    result = with_function(result, name, lowered);
  }
  return result;
}

}  // namespace tilewright::sparse
