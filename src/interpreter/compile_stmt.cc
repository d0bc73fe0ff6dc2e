// Statements. Slots are taken and given back like a stack: what a statement defines lives as long as it runs.
#include <algorithm>
#include <unordered_set>
#include <utility>

#include "analysis/team.h"
#include "interpreter/compile.h"
#include "ir/annotations.h"
#include "ir/atomic_operation.h"
#include "ir/build.h"
#include "ir/ceildiv.h"
#include "ir/kind_cases.h"
#include "ir/structural.h"
#include "ir/substitute.h"
#include "ir/traverse.h"
#include "support/ranges.h"

namespace tilewright::interpreter {

using analysis::Exchange;
using analysis::needs_barrier_after_condition;
using analysis::needs_barrier_between_iterations;
using analysis::needs_barriers;
using analysis::Touched;

// ---- loops -----------------------------------------------------------------------------------------------------

void Compiler::iterate(const Ref<Var>& var, int start, int extent, int loop_site, const Stmt& body) {
  int counter = take(1);
  int stop = arithmetic(Op::kAddInt, start, extent);
  emit(Op::kMove, counter, start);
  size_t skip = emit(Op::kJumpIfZero, computed(Op::kLtInt, counter, stop));
  bool parallel = loop_site != kNone;
  if (parallel) emit({.op = Op::kEnter, .dst = counter, .extra = loop_site});
  int top = here();
  if (parallel) emit(Op::kIterate, counter);
  int waits = waits_;
  int around = std::exchange(lanes_, parallel && program_.loops[loop_site].is_vector ? loop_site : kNone);
  with_definition(var, counter, [&] { stmt(body); });
  lanes_ = around;
  // The next iteration may write what other threads still read.
  if (!parallel && together_ && (waits_ != waits || (is_ordered() && needs_barrier_between_iterations(body, shown_))))
    wait(body);
  emit({.op = Op::kLoop, .dst = counter, .a = stop, .b = top, .extra = site(var)});
  if (parallel) emit(Op::kLeave);
  jump_here(skip);
}

bool Compiler::has_collective(const Stmt& body) const {
  bool found = false;
  std::unordered_set<std::string> seen;
  std::function<void(const NodeRef&)> search = [&](const NodeRef& root) {
    visit(root, [&](const Ref<Call>& call) {
      found = found || intrinsic_row(intrinsic_of(*call)).synchronizes || is_warp_step(call) || asks_lanes(call);
      const GlobalVar* callee = call->op.as<GlobalVar>();
      if (!callee || !seen.insert(callee->name_hint).second) return;
      if (Func func = module_.get(callee->name_hint); func.defined()) search(func);
    });
  };
  search(body);
  return found;
}

std::set<int> Compiler::threads_in(const std::vector<Expr>& values) const {
  std::set<int> found;
  for (const Expr& value : values) {
    for_each_free_var(value, [&](const Ref<Var>& v) {
      if (auto* threads = find_value(threads_of_, v.get())) found.insert(threads->begin(), threads->end());
    });
  }
  return found;
}

bool Compiler::is_uniform(const Expr& e) const {
  return team_ == 0 || analysis::is_uniform(e, [&](const Ref<Var>& v) { return varying_.contains(v.get()); });
}

void Compiler::wait(const NodeRef& node) {
  emit({.op = Op::kBarrier, .extra = site(node)});
  ++waits_;
}

/// The threads of a team wait for one another where the order of what they do matters.
void Compiler::sequence(const Ref<SeqStmt>& sequence) {
  const bool waits = is_ordered();
  const Exchange exchange = waits ? analysis::exchange_of(sequence) : Exchange::kTeamMemory;
  Touched before;
  for (const Stmt& item : sequence->seq) {
    if (waits) {
      Touched now = Touched::by(item, exchange, shown_);
      if (now.depends_on(before)) {
        wait(item);
        before = {};
      }
      before.add(now);
    }
    stmt(item);
  }
}

void Compiler::threads(const NodeRef& node, const Ref<Var>& var, const std::string& tag, const Expr& min,
                       const Expr& extent, const Stmt& body) {
  auto axis = ThreadAxis::parse(tag);
  int start = index(min, "start", node), count = index(exact_extent(extent), "extent", node);
  auto same = [&](const Bound& outer) { return axis && axis->is_unique() && outer.tag == tag; };
  auto around = find_if(bound_, same);
  if (around != bound_.end()) {
    // A second loop over the same threads: each thread runs its own iteration.
    int differs = message("interpret/thread", "another loop around is bound to " + tag + " with another range", node);
    require_equal(start, around->start, differs);
    require_equal(count, around->count, differs);
    define_value(var, {around->var});
    return with_definition(var, slot_of(around->var, node), [&] { stmt(body); });
  }
  bool is_thread = axis && axis->in_team();
  int loop_site = append(program_.loops, {node, var, tag, axis, is_thread, false});
  bound_.push_back({tag, var, start, count});
  team_ += is_thread;
  if (is_thread) {
    varying_.insert(var.get());
    threads_of_[var.get()] = {loop_site};
  }
  // Without a barrier inside, threads that run one after another are as good as a team.
  if (!is_thread || !(has_collective(body) || (has_implicit_barriers_ && needs_barriers(body, shown_)))) {
    iterate(var, start, count, loop_site, body);
  } else {
    int counter = take(1);
    size_t fork = emit({.op = Op::kFork, .dst = counter, .a = start, .b = count, .extra = loop_site});
    int around = std::exchange(lanes_, kNone);
    with_definition(var, counter, [&] { stmt(body); });
    lanes_ = around;
    emit(Op::kJoin);
    jump_here(fork);
  }
  team_ -= is_thread;
  bound_.pop_back();
}

Expr Compiler::stores_of_warp() const {
  for (const Bound& bound : bound_) {
    if (bound.tag == "threadIdx.x") return eq(floormod(bound.var, i32(32)), i32(0));
  }
  return {};
}

void Compiler::for_loop(const Ref<For>& loop) {
  auto domain = domains_.try_emplace(loop->loop_var.get(), loop->min, loop->extent);
  switch (loop->kind) {
    case ForKind::kSerial:
    case ForKind::kUnrolled:
      define_value(loop->loop_var, {loop->min, loop->extent});
      under({loop->min, loop->extent}, [&] {
        iterate(loop->loop_var, index(loop->min, "start", loop), index(exact_extent(loop->extent), "extent", loop),
                kNone, loop->body);
      });
      break;
    case ForKind::kParallel:
    case ForKind::kVectorized: {
      bool is_vector = loop->kind == ForKind::kVectorized;
      int loop_site =
          append(program_.loops, {loop, loop->loop_var, is_vector ? "vectorized" : "parallel", {}, false, is_vector});
      // concurrent iterations cannot wait for one another
      bool outer = std::exchange(together_, together_ && team_ == 0);
      iterate(loop->loop_var, index(loop->min, "start", loop), index(exact_extent(loop->extent), "extent", loop),
              loop_site, loop->body);
      together_ = outer;
      break;
    }
    case ForKind::kThreadBinding: {
      // The axis of the binding is the loop itself, under the name of the thread.
      const Ref<Var>& thread = loop->thread_binding->var;
      domains_.try_emplace(thread.get(), loop->min, loop->extent);
      threads(loop, loop->loop_var, loop->thread_binding->thread_tag, loop->min, loop->extent, loop->body);
      domains_.erase(thread.get());
      break;
    }
  }
  if (domain.second) domains_.erase(loop->loop_var.get());
}

void Compiler::while_loop(const While& loop) {
  int start = here();
  int around = std::exchange(lanes_, kNone);
  int condition = expr(loop.condition);
  bool is_overwritten = false;
  under({loop.condition}, [&] {
    is_overwritten = is_ordered() && needs_barrier_after_condition(loop.condition, loop.body, shown_);
    if (is_overwritten) wait(loop.condition);
  });
  size_t skip = emit(Op::kJumpIfZero, condition);
  under({loop.condition}, [&] {
    stmt(loop.body);
    if (is_overwritten || (is_ordered() && needs_barrier_between_iterations(loop.body, shown_))) wait(loop.body);
  });
  lanes_ = around;
  emit({.op = Op::kJump, .a = start, .extra = site(loop.condition)});
  jump_here(skip);
}

void Compiler::attribute(const AttrStmt& attr, const NodeRef& node) {
  const IterVar* thread = attr.node.as<IterVar>();
  bool launches = attr.attr_key == "thread_extent" || attr.attr_key == "virtual_thread";
  if (!thread || !launches || !attr.value.defined() || attr.value.sort() != Sort::kExpr) return stmt(attr.body);
  const auto& extent = static_cast<const Expr&>(attr.value);
  threads(node, thread->var, thread->thread_tag, zero(extent.dtype()), extent, attr.body);
}

// ---- memory ----------------------------------------------------------------------------------------------------

int Compiler::allocate(const NodeRef& node, const std::string& name, DataType type, const std::vector<Expr>& extents,
                       const std::string& scope) {
  std::vector<int> factors;
  for (const Expr& extent : extents) {
    factors.push_back(expr(extent));
    if (const_int(extent)) continue;
    // A buffer of negative extent has no elements, as a loop of negative extent has no iterations.
    factors.back() = computed(Op::kMaxInt, factors.back(), constant(0));
  }
  factors.push_back(constant(int64_t{lanes_of(type)}));
  const int number = append(program_.allocations, {name, type.element(), &memory_scope(scope), site(node)});
  return computed(Op::kAllocate, product(factors), number);
}

int Compiler::allocate(const Allocate& allocation) {
  const PointerType* type = allocation.buffer_var->type_annotation.as<PointerType>();
  return allocate(allocation.buffer_var, allocation.buffer_var->name_hint, allocation.dtype, allocation.extents,
                  type ? type->storage_scope : "");
}

int Compiler::allocate(const Ref<Buffer>& buffer) {
  if (buffer->strides.empty()) return allocate(buffer, buffer->name, buffer->dtype, buffer->shape, buffer->scope());
  // Up to the last element that strides reach.
  Expr last = one(DataType::int_(64));
  for (size_t i : indices_of(buffer->shape)) {
    DataType wide = DataType::int_(64);
    last = last + (tilewright::cast(wide, buffer->shape[i]) - 1) * tilewright::cast(wide, buffer->strides[i]);
  }
  return allocate(buffer, buffer->name, buffer->dtype, {last}, buffer->scope());
}

void Compiler::release(int pointer, int site) { emit(Op::kFree, pointer, kNone, site); }

void Compiler::assertion(const AssertStmt& assertion) {
  const StringImm* text = assertion.message.as<StringImm>();
  int number = message("interpret/assertion", "assertion failed: " + (text ? text->value : "?"), assertion.condition);
  require(expr(assertion.condition), number);
  stmt(assertion.body);
}

// ---- blocks ----------------------------------------------------------------------------------------------------

void Compiler::axes(const BlockRealize& realize, const NodeRef& node) {
  const Block& block = *realize.block;
  for (size_t i : indices_of(block.iter_vars)) {
    const IterVar& axis = *block.iter_vars[i];
    const Expr& binding = realize.iter_values[i];
    int value = expr(binding);
    define(axis.var, value);
    define_value(axis.var, {binding});
    note_data(axis.var, binding);
    if (!axis.dom.defined()) continue;
    auto* domain = find_value(domains_, binding.get());
    bool holds = domain && same_expr(domain->first, axis.dom->min) && same_expr(domain->second, axis.dom->extent);
    domains_.try_emplace(axis.var.get(), axis.dom->min, axis.dom->extent);
    if (holds) continue;
    int number = site(node, {}, axis.var->name_hint);
    emit({.op = Op::kCheckAxis, .a = value, .b = expr(axis.dom->min), .c = expr(axis.dom->extent), .extra = number});
  }
}

void Compiler::match_buffer(const MatchBufferRegion& match, const NodeRef& node) {
  const Buffer& target = *match.buffer;
  const BufferRegion& source = *match.source;
  View from = view_of(source.buffer, node);
  std::vector<int> strides = strides_of(from);
  size_t skipped = source.region.size() - std::min(source.region.size(), target.shape.size());
  int offset = from.offset == kNone ? constant(0) : from.offset;
  View view;
  view.data = from.data;
  int outside =
      message("interpret/out-of-bounds",
              "the region matched by '" + target.name + "' leaves buffer '" + source.buffer->name + "'", node);
  int differs =
      message("interpret/match", "the shape of '" + target.name + "' is not that of the region it matches", node);
  auto define_or_check = [&](const Expr& declared, int actual) {
    if (declared.is<Var>() && !slots_.contains(declared.get())) return define(declared, actual);
    require_equal(expr(declared), actual, differs);
  };
  for (size_t d : indices_of(source.region)) {
    int min = expr(source.region[d]->min), extent = expr(source.region[d]->extent);
    int below = computed(Op::kLeInt, arithmetic(Op::kAddInt, min, extent), from.extents[d]);
    require(computed(Op::kAnd, computed(Op::kLeInt, constant(0), min), below), outside);
    offset = arithmetic(Op::kAddInt, offset, arithmetic(Op::kMulInt, min, strides[d]));
    if (d >= skipped) {
      define_or_check(target.shape[d - skipped], extent);
      view.extents.push_back(extent);
      view.strides.push_back(strides[d]);
    } else {
      require_equal(extent, constant(1), differs);
    }
  }
  view.offset = offset;
  for (size_t d : indices_of(target.strides)) define_or_check(target.strides[d], view.strides[d]);
  if (target.elem_offset.is<Var>() && !slots_.contains(target.elem_offset.get())) define(target.elem_offset, offset);
  define(target.data, view.data);
  views_[match.buffer.get()] = std::move(view);
}

/// Runs before the first iteration of the reduction: where every reduction axis is at its minimum.
void Compiler::init(const Block& block) {
  std::vector<size_t> skips;
  bool outer = together_;
  for (const Ref<IterVar>& axis : block.iter_vars) {
    if (axis->iter_type != IterType::kCommReduce) continue;
    together_ = together_ && is_uniform(axis->var);
    skips.push_back(emit(Op::kJumpIfDiffer, kNone, slot_of(axis->var, axis), expr(axis->dom->min)));
  }
  bool around = std::exchange(in_init_, true);
  scoped([&] { stmt(block.init); });
  in_init_ = around;
  together_ = outer;
  for (size_t skip : skips) jump_here(skip);
}

void Compiler::block(const BlockRealize& realize, const NodeRef& node) {
  const Block& block = *realize.block;
  Ref<Block> outer = std::exchange(block_, realize.block);
  // Lanes of a lowered program execute the statements of a block in lockstep, too, unless each has a block's memory.
  int lanes = block.alloc_buffers.empty() ? lanes_ : std::exchange(lanes_, kNone);
  size_t skip = 0;
  bool guarded = !is_true(realize.predicate);
  if (guarded) skip = emit(Op::kJumpIfZero, expr(realize.predicate));
  axes(realize, node);
  std::vector<Expr> steps;
  for (const Ref<IterVar>& axis : block.iter_vars) {
    if (axis->iter_type == IterType::kCommReduce) steps.push_back(axis->var);
  }
  if (std::set<int> threads = threads_in(steps); !threads.empty()) {
    program_.combined_by[realize.block.get()] = std::move(threads);
  }
  std::vector<std::pair<int, int>> allocated;
  for (const Ref<Buffer>& buffer : block.alloc_buffers) {
    int pointer = allocate(buffer);
    define(buffer->data, pointer);
    allocated.emplace_back(pointer, static_cast<int>(program_.allocations.size()) - 1);
    views_[buffer.get()] = declare(buffer, pointer);
  }
  for (const Ref<MatchBufferRegion>& match : block.match_buffers) match_buffer(*match, match);
  const size_t declared_around = declared_.size();
  for (const BufferDomain& domain : buffer_domains(block)) declare_domain(domain, node);
  for (const DisjointBuffers& group : disjoint_buffers(block)) check_disjoint(group, node);
  under({realize.predicate}, [&] {
    if (block.init.defined()) init(block);
    stmt(block.body);
  });
  declared_.resize(declared_around);
  for (auto& [pointer, site] : allocated) release(pointer, site);
  if (guarded) jump_here(skip);
  // Variables that the block defines end with it.
  for (const Ref<IterVar>& axis : block.iter_vars) {
    slots_.erase(axis->var.get());
    domains_.erase(axis->var.get());
  }
  for (const Ref<Buffer>& buffer : block.alloc_buffers) {
    slots_.erase(buffer->data.get());
    views_.erase(buffer.get());
  }
  for (const Ref<MatchBufferRegion>& match : block.match_buffers) {
    slots_.erase(match->buffer->data.get());
    views_.erase(match->buffer.get());
  }
  block_ = outer;
  lanes_ = lanes;
}

void Compiler::begin_step(const BufferStore& store) {
  step_ = ReductionStep::of(store);
  is_atomic_ = step_ && !in_init_ && block_.defined() && is_atomic_block(*block_) && AtomicOperation::of(store);
}

void Compiler::store(const BufferStore& store, const std::vector<Expr>& indices, int value, const NodeRef& node) {
  int number = access(store.buffer, indices, store.predicate, node);
  if (step_) note_step(number);
  emit(Op::kStore, store.buffer->dtype.element(), kNone, number, value);
  code_->back().extra = in_background_ ? 1 : 0;
}

// ---- dispatch --------------------------------------------------------------------------------------------------

void Compiler::stmt(const Stmt& s) {
  if (failure_) return;
  int top = top_;
  switch (s.kind()) {
    case Kind::kLetStmt: {
      const LetStmt& let = *s.as<LetStmt>();
      int value = expr(let.value);
      define_value(let.var, {let.value});
      note_data(let.var, let.value);
      with_definition(let.var, value, [&] { stmt(let.body); });
      break;
    }
    case Kind::kAttrStmt:
      attribute(*s.as<AttrStmt>(), s);
      break;
    case Kind::kAssertStmt:
      assertion(*s.as<AssertStmt>());
      break;
    case Kind::kBufferStore: {
      const BufferStore& store = *s.as<BufferStore>();
      begin_step(store);
      int value = expr(store.value);
      store.buffer->axes.empty() ? this->store(store, store.indices, value, s) : sparse_store(store, value, s);
      step_ = {};
      break;
    }
    case Kind::kBufferRealize: {
      const BufferRealize& realize = *s.as<BufferRealize>();
      int pointer = allocate(realize.buffer), number = static_cast<int>(program_.allocations.size()) - 1;
      with_definition(realize.buffer->data, pointer, [&] { stmt(realize.body); });
      release(pointer, number);
      break;
    }
    case Kind::kAllocate: {
      const Allocate& allocation = *s.as<Allocate>();
      int pointer = allocate(allocation);
      int number = static_cast<int>(program_.allocations.size()) - 1;
      with_definition(allocation.buffer_var, pointer, [&] { stmt(allocation.body); });
      release(pointer, number);
      break;
    }
    case Kind::kAllocateConst: {
      const AllocateConst& allocation = *s.as<AllocateConst>();
      int pointer = take(1);
      emit(Op::kAllocateConst, pointer, append(program_.constants, allocation.data));
      with_definition(allocation.buffer_var, pointer, [&] { stmt(allocation.body); });
      break;
    }
    case Kind::kDeclBuffer: {
      const DeclBuffer& decl = *s.as<DeclBuffer>();
      views_[decl.buffer.get()] = declare(decl.buffer, slot_of(decl.buffer->data, s));
      stmt(decl.body);
      views_.erase(decl.buffer.get());
      break;
    }
    case Kind::kSeqStmt:
      sequence(s.borrow<SeqStmt>());
      break;
    case Kind::kPrefetch:  // only speed depends on it
      break;
    case Kind::kEvaluate:
      expr(s.as<Evaluate>()->value);
      break;
    case Kind::kIfThenElse: {
      const IfThenElse& branch = *s.as<IfThenElse>();
      int condition = expr(branch.condition);
      under({branch.condition}, [&] {
        if (is_ordered() && needs_barrier_after_condition(branch.condition, s, shown_)) wait(branch.condition);
      });
      size_t skip = emit(Op::kJumpIfZero, condition);
      under({branch.condition}, [&] { stmt(branch.then_case); });
      size_t done = branch.else_case.defined() ? emit(Op::kJump) : 0;
      jump_here(skip);
      if (!branch.else_case.defined()) break;
      under({branch.condition}, [&] { stmt(branch.else_case); });
      jump_here(done);
      break;
    }
    case Kind::kFor:
      for_loop(s.borrow<For>());
      break;
    case Kind::kWhile:
      while_loop(*s.as<While>());
      break;
    case Kind::kBlockRealize:
      block(*s.as<BlockRealize>(), s);
      break;
    case Kind::kSparseIteration:
      sparse_iteration(*s.as<SparseIteration>(), s);
      break;
    case Kind::kBlock:
#define X TW_CASE_UNLESS_STMT
#include "ir/kinds.def"
#undef X
      unsupported("a " + kind_name(s.kind()) + " as a statement", s);
  }
  top_ = top;
}

}  // namespace tilewright::interpreter
