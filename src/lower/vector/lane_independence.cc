// Lanes execute a body in lockstep: statement by statement, and within a statement its loads before its store. What one
// iteration of the loop passes to a later one through memory arrives only if it is stored before it is loaded in that
// order too, so for two accesses X, Y of one buffer, of which at least one stores:
//
//   same step s, X - Y = q * s     X of iteration i meets Y of iteration i + q. q = 0: the order within an iteration is
//                                  kept. q > 0: X has to come before Y; q < 0: after it.
//   same step s, |X - Y| < |s|     for all values of the loops inside: different lanes meet nowhere.
//   X = Y, without loops inside    and X(i) - X(0) is another number for each i: different lanes meet nowhere.
//   separate ranges                they meet nowhere.
//
// The variable of a let in the loop (x: T.int32 = X[i]) may have another value in each iteration, unless its value is
// the same in all iterations. Nothing is known about an index that uses such a variable.
//
// Anything else is an obstacle. So are pointers of which it is not known what they point to.
#include "lower/vector/lane_independence.h"

#include <algorithm>

#include "analysis/may_fail.h"
#include "ir/build.h"
#include "ir/structural.h"
#include "ir/substitute.h"
#include "ir/traverse.h"

namespace tilewright::lower {

/// Loops of more iterations are not looked at one by one.
constexpr int64_t kMostDistances = 512;

std::unordered_set<NodeRef> private_memory(const PrimFunc& func, const PassContext& context) {
  std::unordered_set<NodeRef> found;
  // Arguments of a function that others of its module call may overlap: only the entry checks them.
  if (func.attrs.has("global_symbol") && !context.called) {
    for (const auto& [param, buffer] : func.buffer_map) found.insert(buffer->data);
  }
  visit(func.body, on<Allocate, AllocateConst>([&](const auto& allocate) { found.insert(allocate->buffer_var); }));
  return found;
}

LaneAccesses::LaneAccesses(const Ref<For>& loop, const std::unordered_set<NodeRef>& private_memory,
                           arith::Analyzer& analyzer)
    : loop_(loop), private_memory_(private_memory), analyzer_(analyzer) {
  visit(loop->body, [&](const Ref<BufferStore>& store) { written_.insert(store->buffer->data); });
  note_names();
  collect(loop->body);
}

void LaneAccesses::note_names() {
  int loops = 0;
  auto note = [&](const auto& let) {
    note_name(let->var, let->value);
    if (loops > 0) inner_names_.push_back(let->var);
  };
  visit(
      loop_->body,
      [&](const Ref<For>& nested, Visitor& v) {
        ++loops;
        v.descend(nested);
        --loops;
      },
      on<LetStmt, Let>(note));
}

void LaneAccesses::note_name(const Ref<Var>& name, const Expr& value) {
  if (moves(value) || !is_steady(value)) moving_.insert(name);
}

bool LaneAccesses::has_moving_name(const NodeRef& node) const { return uses_any_of(node, moving_); }

bool LaneAccesses::moves(const NodeRef& node) const { return uses_var(node, loop_->loop_var) || has_moving_name(node); }

void LaneAccesses::collect(const Stmt& s) {
  visit(
      s,
      [&](const Ref<For>& nested, Visitor& v) {
        collect(nested->min);
        collect(nested->extent);
        analyzer_.bind(nested->loop_var, range(nested->min, nested->extent));
        inside_.push_back(nested);
        v(nested->body);
        inside_.pop_back();
      },
      [&](const Ref<IfThenElse>& branch, Visitor& v) {
        v(branch->condition);
        ++conditions_;
        v(branch->then_case);
        v(branch->else_case);
        --conditions_;
      },
      [&](const Ref<BufferLoad>& load, Visitor& v) {
        v.descend(load);
        add(load->buffer, load->indices[0], false);
      },
      [&](const Ref<BufferStore>& store, Visitor&) {
        collect(store->value);
        collect(store->indices[0]);
        add(store->buffer, store->indices[0], true);
      });
}

void LaneAccesses::collect(const Expr& e) {
  visit(e, [&](const Ref<BufferLoad>& load, Visitor& v) {
    v.descend(load);
    add(load->buffer, load->indices[0], false);
  });
}

void LaneAccesses::add(const Ref<Buffer>& buffer, const Expr& index, bool writes) {
  int position = static_cast<int>(accesses_.size());
  accesses_.push_back({buffer, index, writes, position, inside_, conditions_ > 0, stride_of(index)});
}

std::optional<int64_t> LaneAccesses::stride_of(const Expr& index) {
  const Ref<Var> v = loop_->loop_var;
  if (!moves(index)) return 0;
  if (has_moving_name(index)) return std::nullopt;
  if (index.dtype().is_vector() || !is_steady(index)) return std::nullopt;
  return const_int(analyzer_.simplify(substitute(index, {{v, v + 1}}) - index));
}

/// Whether the index changes with the variables of loops alone: what it reads of memory is the same in each iteration.
bool LaneAccesses::is_steady(const Expr& index) {
  if (effect_of(index) == Effect::kPure) return true;
  bool is_same = true;
  const Expr pure = rewrite(index, [&](const Ref<BufferLoad>& load, Rewriter&) -> Expr {
    is_same &= !moves(load) && !written_.count(load->buffer->data);
    return zero(Expr(load).dtype());
  });
  return is_same && effect_of(pure) == Effect::kPure;
}

Expr LaneAccesses::elsewhere(const LaneAccess& access, bool other_lane) {
  VarMap fresh;
  auto renew = [&](const For& loop) {
    Ref<Var> copy = make<Var>(*loop.loop_var);
    analyzer_.bind(copy, range(substitute(loop.min, fresh), substitute(loop.extent, fresh)));
    fresh[loop.loop_var] = copy;
  };
  if (other_lane) renew(*loop_);
  for (const Ref<For>& nested : access.loops) renew(*nested);
  for (const Ref<Var>& name : inner_names_) fresh[name] = make<Var>(*name);
  return substitute(access.index, fresh);
}

/// Whether the iterations of a short loop have an element each: `i // 16 * 64 + i % 16 * 4 + j`.
bool LaneAccesses::all_differ(const Expr& index) {
  auto extent = const_int(loop_->extent);
  if (!extent || *extent > kMostDistances) return false;
  auto at = [&](int64_t i) { return substitute(index, {{loop_->loop_var, analyzer_.simplify(loop_->min + i)}}); };
  const Expr first = at(0);
  std::vector<int64_t> distances;
  for (int64_t i = 0; i < *extent; ++i) {
    auto distance = const_int(analyzer_.simplify(at(i) - first));
    if (!distance) return false;
    distances.push_back(*distance);
  }
  std::ranges::sort(distances);
  return std::ranges::adjacent_find(distances) == distances.end();
}

/// Whether no element is accessed by `a` in one lane and by `b` in another.
bool LaneAccesses::apart(const LaneAccess& a, const LaneAccess& b) {
  for (const LaneAccess* access : {&a, &b}) {
    if (effect_of(access->index) != Effect::kPure || has_moving_name(access->index)) return false;
  }
  if (a.stride && b.stride && *a.stride == *b.stride && *a.stride != 0) {
    const Expr distance = analyzer_.simplify(a.index - elsewhere(b, false));
    arith::ConstIntBound cell = analyzer_.const_int_bound(distance);
    int64_t width = std::abs(*a.stride);
    if ((cell.min_value > -width && cell.max_value < width) || beyond_lanes(distance, width)) return true;
  }
  if (a.loops.empty() && b.loops.empty() && structural_equal(a.index, b.index) && all_differ(a.index)) return true;
  arith::ConstIntBound gap = analyzer_.const_int_bound(analyzer_.simplify(a.index - elsewhere(b, true)));
  return gap.min_value > 0 || gap.max_value < 0;
}

/// Two accesses of one step are either the same or farther apart than the loop runs: rows of a matrix along which it
/// runs, whichever of them.
bool LaneAccesses::beyond_lanes(const Expr& gap, int64_t stride) {
  if (effect_of(gap) != Effect::kPure) return false;
  if (auto extent = const_int(loop_->extent); extent && *extent > 0) {
    arith::ModularSet rows = analyzer_.modular_set(analyzer_.simplify(gap));
    if (rows.base == 0 && (rows.coeff == 0 || rows.coeff >= stride * *extent)) return true;
  }
  Expr reach = cast(gap.dtype(), loop_->extent) * stride;
  return analyzer_.can_prove(ge(gap, reach)) || analyzer_.can_prove(le(gap, zero(gap.dtype()) - reach));
}

std::string LaneAccesses::obstacle(const LaneAccess& store, const LaneAccess& other) {
  const std::string& name = store.buffer->name;
  if (store.buffer->data != other.buffer->data) {
    if (private_memory_.count(store.buffer->data) && private_memory_.count(other.buffer->data)) return "";
    return "'" + name + "' and '" + other.buffer->name + "' may overlap";
  }
  if (store.buffer != other.buffer) return "'" + name + "' is seen through several buffers";
  if (&store == &other && store.stride == 0) return "iterations write to the same element of '" + name + "'";
  bool plain = store.loops.empty() && other.loops.empty();
  if (plain && store.stride && store.stride == other.stride && *store.stride != 0) {
    auto gap = const_int(analyzer_.simplify(store.index - other.index));
    if (gap) {
      int64_t distance = *gap / *store.stride;
      if (*gap % *store.stride != 0 || distance == 0) return "";
      auto extent = const_int(loop_->extent);
      if (extent && std::abs(distance) >= *extent) return "";
      if ((distance > 0) == (store.position < other.position)) return "";
      return "an iteration needs what an earlier one does to '" + name + "'";
    }
    if (beyond_lanes(store.index - other.index, std::abs(*store.stride))) return "";
  }
  if (apart(store, other)) return "";
  if (&store == &other) return "iterations may write to the same elements of '" + name + "'";
  return "iterations may meet in '" + name + "'";
}

std::string LaneAccesses::obstacle() {
  std::string under_condition;
  for (const LaneAccess& store : accesses_) {
    if (!store.writes) continue;
    std::string found = obstacle(store, store);
    if (found.empty()) continue;
    if (!store.conditional) return found;
    // `if i == 0: B[i] = ...`, where the index became 0, may be the start of what the other steps do one by one.
    under_condition = "an iteration may need what another one does to '" + store.buffer->name + "'";
  }
  for (const LaneAccess& store : accesses_) {
    if (!store.writes) continue;
    for (const LaneAccess& other : accesses_) {
      if (&store == &other) continue;
      if (std::string found = obstacle(store, other); !found.empty()) return found;
    }
  }
  return under_condition;
}

std::optional<ReductionStep> lane_step(const BufferStore& store, arith::Analyzer& analyzer) {
  DataType type = store.buffer->dtype;
  bool number = type.is_bool() || (type.is_float() ? type.bits >= 16 : type.bits >= 8 && type.bits <= 64);
  if (store.indices.size() != 1 || !type.is_scalar() || !number || store.value.dtype() != type) return {};
  auto step = ReductionStep::of(store);
  if (step && analysis::may_fail_early(*step, analyzer)) return {};
  return step;
}

bool is_alone(const Stmt& scope, const BufferStore& step, const std::unordered_set<NodeRef>& private_memory,
              bool trusted) {
  const Ref<Var>& data = step.buffer->data;
  int loads = 0, stores = 0;
  bool apart = true;
  auto other = [&](const Ref<Buffer>& buffer) {
    apart = apart && (trusted || (private_memory.count(data) && private_memory.count(buffer->data)));
  };
  visit(
      scope,
      [&](const Ref<BufferLoad>& load) {
        if (load->buffer->data == data) {
          ++loads;
        } else {
          other(load->buffer);
        }
      },
      [&](const Ref<BufferStore>& store) {
        if (store->buffer->data == data) {
          ++stores;
        } else {
          other(store->buffer);
        }
      },
      [&](const Ref<Call>& call, Visitor& v) {
        Intrinsic intrinsic = intrinsic_of(*call);
        if (intrinsic == Intrinsic::k_prefetch) return;
        Effect effect = intrinsic == Intrinsic::kUnknown ? Effect::kUpdateState : intrinsic_row(intrinsic).effect;
        apart =
            apart && (effect == Effect::kPure || effect == Effect::kSpecial) && intrinsic != Intrinsic::k_address_of;
        v.descend(call);
      });
  return apart && loads == 1 && stores == 1;
}

}  // namespace tilewright::lower
