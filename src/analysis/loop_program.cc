#include "analysis/loop_program.h"

#include <algorithm>

#include "ir/build.h"
#include "ir/op.h"
#include "ir/traverse.h"
#include "support/ranges.h"
#include "target/memory_scope.h"

namespace tilewright::analysis {

void Operations::add(const Operations& other) {
  for (int op = 0; op < kNumOps; ++op) floats[op] += other.floats[op], ints[op] += other.ints[op];
  logic += other.logic;
  selects += other.selects;
  elementary += other.elementary;
}

double Operations::all_floats() const {
  double sum = 0;
  for (double count : floats) sum += count;
  return sum;
}

std::vector<int> LoopProgram::nest(int innermost) const {
  std::vector<int> result;
  for (int loop = innermost; loop >= 0; loop = loops[loop].parent) result.push_back(loop);
  std::ranges::reverse(result);
  return result;
}

namespace {

constexpr std::string_view kAutoUnroll = "pragma_auto_unroll_max_step";

int64_t known_extent(const Expr& e) {
  auto value = const_int(e);
  return value ? std::clamp<int64_t>(*value, 0, Span64::kFar) : -1;
}

bool has_load(const Expr& e) { return has_node<BufferLoad>(NodeRef(e)); }

void count(const IndexWork& index, Operations& work) {
  work.ints[Operations::kAddSub] += index.add;
  work.ints[Operations::kMul] += index.mul;
  work.ints[Operations::kDivMod] += index.div;
  work.ints[Operations::kCompare] += index.cmp;
}

class Reader {
 public:
  explicit Reader(LoopProgram& program) : program_(program), sums_(program.sums) {}

  void read(const PrimFunc& func) {
    for (const auto& [param, buffer] : func.buffer_map) {
      program_.buffers[buffer_id(*buffer)].is_parameter = true;
    }
    statement(func.body);
  }
  /// Finds the allocation of each buffer and its size there, and counts the work of indices. Called after all
  /// functions.
  void place_buffers();

 private:
  struct View {
    int source = -1;
    std::vector<LoopSum> start;
  };
  /// Accesses to a buffer.
  struct Touches {
    int allocated_in = -1;       ///< the loop around the block that allocates it
    bool is_allocated = false;   ///< by a block
    bool is_whole = false;       ///< all of it may be touched
    std::optional<int> meeting;  ///< the innermost loop around all touches; -1: none
  };

  int depth_after(int loop) const { return loop < 0 ? 0 : program_.loops[loop].depth + 1; }
  int buffer_id(const Buffer& buffer);
  void allocate(const Buffer& buffer);
  void touch(int buffer, bool writes);
  void touch_all(const NodeRef& e);
  AccessFact access(const Ref<Buffer>& buffer, const std::vector<Expr>& indices, bool writes);

  void statement(const Stmt& s);
  void for_loop(const For& loop);
  /// A loop around `body`; one that is bound to the axis of a loop around it is that loop.
  void run(LoopFact fact, const Ref<Var>& var, const LoopSum& min, const Stmt& body);
  void block(const BlockRealize& realize);
  void store(const BufferStore& store);

  /// Adds what computing the value takes and notes the loads in it. The answer of a condition that is decided.
  std::optional<bool> value(const Expr& e, Operations& work);
  std::optional<bool> comparison(const Expr& e, Operations& work);
  std::optional<bool> logic(const Expr& e, Operations& work);
  /// Adds the work of a select with these operands.
  void choose(const Expr& condition, const Expr& yes, const Expr& no, double& counter, Operations& work);
  void select(const Select& select, Operations& work);
  void call(const Call& call, Operations& work);
  void place(int buffer, const std::vector<AccessFact*>& accesses);

  LoopProgram& program_;
  LoopSums& sums_;
  std::unordered_map<const Buffer*, int> buffer_ids_;
  std::unordered_map<const NodeBase*, int> pointers_;      ///< data variables of buffers
  std::unordered_map<const NodeBase*, int> allocated_in_;  ///< depth at which a statement allocates a data variable
  std::unordered_map<const Buffer*, View> views_;
  std::vector<Touches> touches_;
  std::vector<AccessFact> loose_;  ///< in conditions and calls
  std::vector<AccessFact>* accesses_ = &loose_;
  int loop_ = -1;         ///< the innermost around what is read
  Levels reduction_ = 0;  ///< reduction loops of the innermost block
  bool init_ = false, in_select_ = false;
};

int Reader::buffer_id(const Buffer& buffer) {
  auto [it, is_new] = buffer_ids_.try_emplace(&buffer, static_cast<int>(program_.buffers.size()));
  if (!is_new) return it->second;
  BufferFact fact;
  fact.buffer = &buffer;
  for (const Expr& extent : buffer.shape) fact.full_shape.push_back(known_extent(extent));
  fact.shape = fact.full_shape;
  if (auto* found = find_value(allocated_in_, buffer.data.get())) fact.location = *found;
  program_.buffers.push_back(std::move(fact));
  touches_.emplace_back();
  pointers_.try_emplace(buffer.data.get(), it->second);
  return it->second;
}

void Reader::allocate(const Buffer& buffer) {
  Touches& touches = touches_[buffer_id(buffer)];
  touches.is_allocated = true;
  touches.allocated_in = loop_;
}

void Reader::touch(int buffer, bool writes) {
  Touches& touches = touches_[buffer];
  if (!touches.is_allocated) return;
  int at = loop_, inside = depth_after(touches.allocated_in);
  const MemoryScope& scope = memory_scope(program_.buffers[buffer].buffer->scope());
  for (int l = loop_; l >= 0 && program_.loops[l].depth >= inside; l = program_.loops[l].parent) {
    const LoopFact& fact = program_.loops[l];
    auto axis = fact.thread_tag.empty() ? std::nullopt : ThreadAxis::parse(fact.thread_tag);
    bool carries = writes && reduction_ & level_bit(fact.depth);
    bool grid = axis && !axis->in_team() && scope.is_shared_by(*axis);
    if (fact.kind == ForKind::kVectorized || carries || grid) at = fact.parent;
  }
  int other = touches.meeting.value_or(at);
  while (at != other) {
    int a = depth_after(at), b = depth_after(other);
    if (a >= b) at = program_.loops[at].parent;
    if (b >= a) other = program_.loops[other].parent;
  }
  touches.meeting = at;
}

void Reader::touch_all(const NodeRef& e) {
  Operations none;
  visit(
      e, [&](const Ref<BufferLoad>& load, Visitor&) { value(load, none); },
      [&](const Ref<BufferRegion>& region, Visitor&) {
        int id = access(region->buffer, {}, true).buffer;
        touches_[id].is_whole = true;
      },
      [&](const Ref<Var>& var, Visitor&) {
        auto* known = find_value(pointers_, var.get());
        if (!known) return;
        touches_[*known].is_whole = true;
        touch(*known, true);
      });
}

AccessFact Reader::access(const Ref<Buffer>& buffer, const std::vector<Expr>& indices, bool writes) {
  AccessFact fact;
  fact.writes = writes;
  for (const Expr& index : indices) fact.index.push_back(sums_.read(index));
  if (auto* found = find_value(views_, &*buffer)) {
    const View& view = *found;
    fact.buffer = view.source;
    std::vector<LoopSum> index = view.start;
    size_t skipped = index.size() >= fact.index.size() ? index.size() - fact.index.size() : 0;
    for (size_t d = skipped; d < index.size(); ++d) index[d] = sums_.add(index[d], fact.index[d - skipped], 1);
    fact.index = std::move(index);
  } else {
    fact.buffer = buffer_id(*buffer);
    fact.index.resize(program_.buffers[fact.buffer].shape.size());
  }
  touch(fact.buffer, writes);
  return fact;
}

// ---- values ------------------------------------------------------------------------------------------------------

std::optional<bool> Reader::comparison(const Expr& e, Operations& work) {
  BinaryOperands operands = binary_operands(e);
  bool of_index = operands.a->dtype().is_integral() && !has_load(*operands.a) && !has_load(*operands.b);
  if (!of_index) {
    value(*operands.a, work);
    value(*operands.b, work);
  } else {
    if (std::optional<bool> answer = sums_.decide(e)) return answer;
    for (const Expr* side : {operands.a, operands.b}) count(sums_.work(sums_.read(*side)), work);
  }
  ++work.ints[Operations::kCompare];
  return std::nullopt;
}

std::optional<bool> Reader::logic(const Expr& e, Operations& work) {
  BinaryOperands operands = binary_operands(e);
  Operations left, right;
  std::optional<bool> a = value(*operands.a, left), b = value(*operands.b, right);
  bool strong = e.is<Or>();  // decides alone
  if ((a && *a == strong) || (b && *b == strong)) return strong;
  if (a && b) return !strong;
  if (!a) work.add(left);
  if (!b) work.add(right);
  if (!a && !b) ++work.logic;
  return std::nullopt;
}

void Reader::choose(const Expr& condition, const Expr& yes, const Expr& no, double& counter, Operations& work) {
  Operations test;
  if (std::optional<bool> answer = value(condition, test)) {
    value(*answer ? yes : no, work);
    return;
  }
  ++counter;
  work.add(test);
  value(yes, work);
  value(no, work);
}

/// One that reads no memory counts as a number.
void Reader::select(const Select& select, Operations& work) {
  bool outermost = !in_select_;
  if (outermost && !has_load(select.condition) && !has_load(select.true_value) && !has_load(select.false_value)) return;
  in_select_ = true;
  choose(select.condition, select.true_value, select.false_value, work.selects, work);
  if (outermost) in_select_ = false;
}

void Reader::call(const Call& call, Operations& work) {
  Intrinsic intrinsic = intrinsic_of(call);
  auto& side = call.dtype.is_float() ? work.floats : work.ints;
  if (intrinsic == Intrinsic::k_if_then_else) {
    choose(call.arg(0), call.arg(1), call.arg(2), side[Operations::kMath], work);
    return;
  }
  if (intrinsic != Intrinsic::k_likely) {
    bool known = intrinsic != Intrinsic::kUnknown;
    Effect effect = known ? intrinsic_row(intrinsic).effect : Effect::kUpdateState;
    ++side[effect == Effect::kPure || effect == Effect::kSpecial ? Operations::kMath : Operations::kOther];
    if (known && intrinsic_row(intrinsic).elementary) ++work.elementary;
  }
  for (const NodeRef& arg : call.args) {
    if (arg.defined() && kind_sort(arg.kind()) == Sort::kExpr) {
      value(Expr(arg), work);
    } else {
      touch_all(arg);
    }
  }
}

std::optional<bool> Reader::value(const Expr& e, Operations& work) {
  auto binary = [&](Operations::Op op) {
    BinaryOperands operands = binary_operands(e);
    ++(e.dtype().is_float() ? work.floats : work.ints)[op];
    value(*operands.a, work);
    value(*operands.b, work);
  };
  switch (e.kind()) {
    case Kind::kIntImm:
      return e.dtype().is_bool() ? std::optional<bool>(e.as<IntImm>()->value != 0) : std::nullopt;
    case Kind::kVar:
      if (pointers_.contains(e.get())) touch_all(e);
      break;
    case Kind::kCast:
      return value(e.as<Cast>()->value, work);
    case Kind::kAdd:
    case Kind::kSub:
      binary(Operations::kAddSub);
      break;
    case Kind::kMul:
      binary(Operations::kMul);
      break;
    case Kind::kDiv:
    case Kind::kMod:
    case Kind::kFloorDiv:
    case Kind::kFloorMod:
      binary(Operations::kDivMod);
      break;
    case Kind::kMin:
    case Kind::kMax:
      binary(Operations::kCompare);
      break;
    case Kind::kEQ:
    case Kind::kNE:
    case Kind::kLT:
    case Kind::kLE:
    case Kind::kGT:
    case Kind::kGE:
      return comparison(e, work);
    case Kind::kAnd:
    case Kind::kOr:
      return logic(e, work);
    case Kind::kNot: {
      std::optional<bool> inner = value(e.as<Not>()->a, work);
      if (inner) return !*inner;
      ++work.logic;
      break;
    }
    case Kind::kSelect:
      select(*e.as<Select>(), work);
      break;
    case Kind::kBufferLoad: {
      const BufferLoad& load = *e.as<BufferLoad>();
      AccessFact fact = access(load.buffer, load.indices, false);
      accesses_->push_back(std::move(fact));
      for (const Expr& index : load.indices) touch_all(index);
      break;
    }
    case Kind::kRamp:
      value(e.as<Ramp>()->base, work);
      value(e.as<Ramp>()->stride, work);
      break;
    case Kind::kBroadcast:
      return value(e.as<Broadcast>()->value, work);
    case Kind::kLet: {
      const Let& let = *e.as<Let>();
      if (let.var.dtype().is_integral()) sums_.bind(let.var, sums_.read(let.value));
      value(let.value, work);
      return value(let.body, work);
    }
    case Kind::kCall:
      call(*e.as<Call>(), work);
      break;
    case Kind::kShuffle:
      for (const Expr& vector : e.as<Shuffle>()->vectors) value(vector, work);
      break;
    default:  // leaves, and kinds that are no values
      break;
  }
  return std::nullopt;
}

// ---- statements --------------------------------------------------------------------------------------------------

void Reader::store(const BufferStore& store) {
  StoreFact fact;
  fact.store = &store;
  fact.loop = loop_;
  fact.is_init = init_;
  fact.reduction = reduction_;
  fact.accesses.push_back(access(store.buffer, store.indices, true));
  accesses_ = &fact.accesses;
  value(store.value, fact.work);
  accesses_ = &loose_;
  const Select* select = store.value.as<Select>();
  fact.is_constant = store.value.is<IntImm>() || store.value.is<FloatImm>() || (select && !has_load(store.value));
  for (const Expr& index : store.indices) touch_all(index);
  program_.stores.push_back(std::move(fact));
}

void Reader::run(LoopFact fact, const Ref<Var>& var, const LoopSum& min, const Stmt& body) {
  if (!fact.thread_tag.empty()) {
    auto axis = ThreadAxis::parse(fact.thread_tag);
    for (int l = loop_; l >= 0 && (!axis || axis->is_unique()); l = program_.loops[l].parent) {
      if (program_.loops[l].thread_tag != fact.thread_tag) continue;
      sums_.bind(var, LoopSums::of_atom(program_.loops[l].atom));
      return statement(body);
    }
  }
  fact.parent = loop_;
  fact.depth = depth_after(loop_);
  fact.atom = sums_.add_loop(fact.depth, min, fact.extent);
  sums_.bind(var, LoopSums::of_atom(fact.atom));
  int around = loop_;
  loop_ = static_cast<int>(program_.loops.size());
  program_.loops.push_back(std::move(fact));
  statement(body);
  loop_ = around;
}

void Reader::for_loop(const For& loop) {
  LoopFact fact;
  fact.extent = known_extent(loop.extent);
  fact.kind = loop.kind;
  if (loop.thread_binding.defined()) fact.thread_tag = loop.thread_binding->thread_tag;
  if (auto step = loop.annotations.get(kAutoUnroll); step.defined() && step.is<IntImm>()) {
    fact.auto_unroll_step = step.as<IntImm>()->value;
  }
  LoopSum min = sums_.read(loop.min);
  bool once = fact.extent == 1 && loop.kind == ForKind::kSerial && loop.annotations.empty();
  if (once) {
    sums_.bind(loop.loop_var, min);
    statement(loop.body);
  } else {
    run(std::move(fact), loop.loop_var, min, loop.body);
  }
}

void Reader::block(const BlockRealize& realize) {
  const Block& block = *realize.block;
  Levels around = std::exchange(reduction_, 0);
  for (size_t i : indices_of(block.iter_vars)) {
    const IterVar& axis = *block.iter_vars[i];
    LoopSum bound = sums_.read(realize.iter_values[i]);
    sums_.bind(axis.var, bound);
    // The binding may exceed the axis's domain; a predicate then cuts it off.
    if (auto extent = const_int(axis.dom->extent); extent && is_const_int(axis.dom->min, 0)) {
      sums_.limit(axis.var, *extent);
    }
    if (axis.iter_type == IterType::kCommReduce) reduction_ |= sums_.levels(bound);
  }
  if (block.iter_vars.empty()) reduction_ = around;
  if (realize.predicate.defined()) touch_all(realize.predicate);
  for (const Def<Buffer>& buffer : block.alloc_buffers) allocate(*buffer);
  for (const Ref<MatchBufferRegion>& match : block.match_buffers) {
    View view;
    std::vector<Expr> start;
    for (const Ref<Range>& range : match->source->region) start.push_back(range->min);
    AccessFact source = access(match->source->buffer, start, false);
    views_[&*match->buffer] = {source.buffer, std::move(source.index)};
    pointers_.try_emplace(match->buffer->data.get(), source.buffer);
  }
  if (block.init.defined()) {
    init_ = true;
    statement(block.init);
    init_ = false;
  }
  statement(block.body);
  reduction_ = around;
}

void Reader::statement(const Stmt& s) {
  switch (s.kind()) {
    case Kind::kFor:
      return for_loop(*s.as<For>());
    case Kind::kBlockRealize:
      return block(*s.as<BlockRealize>());
    case Kind::kBufferStore:
      return store(*s.as<BufferStore>());
    case Kind::kSeqStmt:
      for (const Stmt& step : s.as<SeqStmt>()->seq) statement(step);
      return;
    case Kind::kIfThenElse: {
      const IfThenElse& branch = *s.as<IfThenElse>();
      std::optional<bool> answer = has_load(branch.condition) ? std::nullopt : sums_.decide(branch.condition);
      touch_all(branch.condition);
      if (answer.value_or(true)) statement(branch.then_case);
      if (!answer.value_or(false) && branch.else_case.defined()) statement(branch.else_case);
      return;
    }
    case Kind::kWhile:
      touch_all(s.as<While>()->condition);
      return statement(s.as<While>()->body);
    case Kind::kLetStmt: {
      const LetStmt& let = *s.as<LetStmt>();
      touch_all(let.value);
      if (let.value.dtype().is_integral()) sums_.bind(let.var, sums_.read(let.value));
      return statement(let.body);
    }
    case Kind::kAttrStmt: {
      const AttrStmt& attr = *s.as<AttrStmt>();
      const IterVar* axis = attr.node.defined() ? attr.node.as<IterVar>() : nullptr;
      if (!axis || (attr.attr_key != "thread_extent" && attr.attr_key != "virtual_thread")) return statement(attr.body);
      LoopFact fact;
      fact.kind = ForKind::kThreadBinding;
      fact.thread_tag = axis->thread_tag;
      if (const IntImm* extent = attr.value.as<IntImm>()) fact.extent = std::max<int64_t>(extent->value, 0);
      return run(std::move(fact), axis->var, LoopSums::constant(0), attr.body);
    }
    case Kind::kAssertStmt:
      touch_all(s.as<AssertStmt>()->condition);
      return statement(s.as<AssertStmt>()->body);
    case Kind::kBufferRealize:
      allocate(*s.as<BufferRealize>()->buffer);
      return statement(s.as<BufferRealize>()->body);
    case Kind::kAllocate:
      allocated_in_[s.as<Allocate>()->buffer_var.get()] = loop_;
      return statement(s.as<Allocate>()->body);
    case Kind::kAllocateConst:
      return statement(s.as<AllocateConst>()->body);
    case Kind::kDeclBuffer:
      return statement(s.as<DeclBuffer>()->body);
    case Kind::kEvaluate:
      return touch_all(s.as<Evaluate>()->value);
    case Kind::kBlock:
    case Kind::kPrefetch:
    default:  // no other kind is a statement
      return;
  }
}

// ---- allocations of buffers ----------------------------------------------------------------------------------------

void Reader::place(int buffer, const std::vector<AccessFact*>& accesses) {
  BufferFact& fact = program_.buffers[buffer];
  const Touches& touches = touches_[buffer];
  if (!touches.is_allocated) return;
  fact.location = touches.meeting.value_or(touches.allocated_in);
  if (touches.is_whole || accesses.empty()) return;
  // A buffer shared by a team of threads holds what all of its threads touch.
  Levels inside = levels_from(depth_after(fact.location));
  const MemoryScope& scope = memory_scope(fact.buffer->scope());
  for (int l = fact.location; l >= 0; l = program_.loops[l].parent) {
    const std::string& tag = program_.loops[l].thread_tag;
    auto axis = tag.empty() ? std::nullopt : ThreadAxis::parse(tag);
    if (axis && axis->in_team() && scope.rank > 0 && scope.is_shared_by(*axis))
      inside |= level_bit(program_.loops[l].depth);
  }
  for (size_t d : indices_of(fact.shape)) {
    std::optional<LoopSum> outer;
    Span64 touched{Span64::kFar, -Span64::kFar};
    bool fits = true;
    for (const AccessFact* access : accesses) {
      auto parts = sums_.part(access->index[d], inside);
      fits = parts && (!outer || *outer == parts->outer);
      if (!fits) break;
      outer = parts->outer;
      Span64 span = sums_.bounds(parts->inner, inside);
      touched = {std::min(touched.lo, span.lo), std::max(touched.hi, span.hi)};
    }
    if (!fits || !touched.is_known()) continue;
    int64_t extent = std::max<int64_t>(touched.hi - touched.lo + 1, 0);
    if (fact.shape[d] >= 0 && extent >= fact.shape[d]) continue;
    fact.shape[d] = extent;
    for (AccessFact* access : accesses) {
      LoopSum inner = sums_.part(access->index[d], inside)->inner;
      inner.constant = {inner.constant.lo - touched.lo, inner.constant.hi - touched.lo};
      access->index[d] = inner;
    }
  }
}

void Reader::place_buffers() {
  std::vector<std::vector<AccessFact*>> accesses(program_.buffers.size());
  for (AccessFact& access : loose_) accesses[access.buffer].push_back(&access);
  for (StoreFact& store : program_.stores) {
    for (AccessFact& access : store.accesses) accesses[access.buffer].push_back(&access);
  }
  for (size_t b : indices_of(program_.buffers)) place(static_cast<int>(b), accesses[b]);
  for (StoreFact& store : program_.stores) {
    for (size_t a = 1; a < store.accesses.size(); ++a) {
      for (const LoopSum& index : store.accesses[a].index) count(sums_.work(index), store.work);
    }
  }
}

}  // namespace

LoopProgram loop_program(const Ref<Module>& module) {
  LoopProgram program;
  program.module = module;
  Reader reader(program);
  with_stack_for(module.depth(), [&] {
    for (const auto& [name, func] : module->functions) {
      if (const PrimFunc* prim = func.as<PrimFunc>()) reader.read(*prim);
    }
    reader.place_buffers();
  });
  return program;
}

}  // namespace tilewright::analysis
