// Carry what one iteration of a loop stores and later ones load in registers.
//
//   Before                                        After
//   for i in range(62):                           past_1[0] = B[0]; past_0[0] = B[1]
//     B[i + 2] = B[i + 1] * a + B[i] * b + A[i]   for i in range(62):
//                                                   now[0] = past_0[0] * a + past_1[0] * b + A[i]
//                                                   B[i + 2] = now[0]
//                                                   past_1[0] = past_0[0]; past_0[0] = now[0]
//
// A recurrence waits for the value before. Through memory that is the time of a store and a load in each iteration,
// besides the arithmetic. Every store stays, so other loads of the buffer see what they did.
//
// The first iterations need the elements that precede the loop: they are loaded before it if the loop runs at all. The
// first iteration loads them, unless a condition is around all such loads: then the element may be out of bounds, or be
// stored by another thread. It is loaded only if the condition holds in an iteration that uses it. If the condition
// reads data, it is loaded if it is in bounds, but not in loops that run concurrently.
//
// Needs      vector code, loops unrolled: taps of a small loop are plain then
// Ensures    the same stores of the same values
// Placement  last: the registers share no memory with what plan_workspaces places
#include <algorithm>
#include <unordered_map>

#include "analysis/threads.h"
#include "arith/analyzer.h"
#include "ir/build.h"
#include "ir/let_variables.h"
#include "ir/op.h"
#include "ir/strides.h"
#include "ir/structural.h"
#include "ir/substitute.h"
#include "ir/traverse.h"
#include "lower/passes.h"
#include "lower/vector/lane_independence.h"
#include "support/ranges.h"

namespace tilewright::lower {
namespace {

/// Iterations that a value is carried over, and registers of one loop.
constexpr int64_t kMostPast = 8, kMostCarried = 12;
/// Stores of a loop: more are not looked at.
constexpr size_t kMostStores = 32;

/// Stores of every iteration to a location that moves with the iteration.
struct Stream {
  Ref<Buffer> buffer;
  Expr index;
  Expr step;            ///< elements between the places of two iterations
  int64_t past = 0;     ///< iterations that a value is carried over
  int64_t certain = 0;  ///< iterations that unconditional loads carry a value over
  /// Iterations that the other loads carry a value over, with their conditions; null: not known before the loop.
  std::vector<std::pair<int64_t, Expr>> guards = {};
  std::vector<Ref<Buffer>> values = {};  ///< values of this iteration, of the one before it, ...
};

Expr first_lane(const Expr& index) { return index.is<Ramp>() ? Expr(index.as<Ramp>()->base) : index; }

/// Memory of a function that is fully visible to the pass.
struct KnownMemory {
  std::unordered_set<NodeRef> own;  ///< data variables that nothing else points into
  /// The buffer that begins where the pointer points to: elements there, and their type.
  std::unordered_map<NodeRef, std::pair<Expr, DataType>> sizes;

  KnownMemory(const PrimFunc& func, const PassContext& context) : own(private_memory(func, context)) {
    for (const auto& [parameter, buffer] : func.buffer_map) {
      const bool begins = !buffer->elem_offset.defined() || is_const_int(buffer->elem_offset, 0);
      if (begins && buffer->strides.empty()) sizes[buffer->data] = {element_count(buffer->shape), buffer->dtype};
    }
    visit(func.body, [&](const Ref<Allocate>& allocate) {
      sizes[allocate->buffer_var] = {element_count(allocate->extents), allocate->dtype};
    });
  }
};

/// A loop without loops inside, whose streams are found.
class Carrier {
 public:
  /// `is_concurrent`: a loop around runs concurrently.
  Carrier(const Ref<For>& loop, bool is_concurrent, const KnownMemory& memory, arith::Analyzer& analyzer)
      : loop_(loop), is_concurrent_(is_concurrent), memory_(memory), analyzer_(analyzer) {}

  Stmt run() {
    collect();
    std::erase_if(streams_, [&](const Stream& stream) { return !is_alone(stream); });
    if (streams_.empty()) return loop_;
    note_loads(loop_->body, bool_imm(true));
    int64_t count = 0;
    for (Stream& stream : streams_) {
      if (has_unknown_guards(stream) && (is_concurrent_ || !knows_size(stream))) stream.past = stream.certain;
      count += stream.past;
    }
    std::erase_if(streams_, [](const Stream& stream) { return stream.past == 0; });
    return streams_.empty() || count > kMostCarried ? Stmt(loop_) : carried();
  }

 private:
  // ---- stores

  void collect() {
    names_ = let_variables(loop_->body);
    visit(
        loop_->body, [&](const Ref<BufferStore>& store) { stores_.push_back(&*store); },
        [&](const Ref<BufferLoad>& load) { loaded_.insert(load->buffer); },
        [&](const Ref<Call>& call) {
          // Whoever has the address may do anything.
          const bool is_address = intrinsic_of(*call) == Intrinsic::k_address_of;
          for (const NodeRef& argument : call->args) {
            if (argument.is<Var>()) escaped_.insert(argument);
            if (const BufferLoad* load = argument.as<BufferLoad>(); load && is_address) {
              escaped_.insert(load->buffer->data);
            }
          }
          unknown_ = unknown_ || effect_of(call) > Effect::kReadState;
        });
    if (!unknown_ && stores_.size() <= kMostStores) collect(loop_->body);
  }

  /// Collects the stores among the statements that every iteration runs once.
  void collect(const Stmt& body) {
    if (const SeqStmt* all = body.as<SeqStmt>()) {
      for (const Stmt& each : all->seq) collect(each);
    } else if (const LetStmt* let = body.as<LetStmt>()) {
      collect(let->body);
    } else if (const BufferStore* store = body.as<BufferStore>()) {
      certain_.insert(store);
      add(*store);
    }
  }

  void add(const BufferStore& store) {
    if (!loaded_.contains(store.buffer)) return;
    const DataType type = store.buffer->dtype;
    const bool is_whole = type.is_scalar() && (type.is_int() || type.is_uint() || type.is_float()) && type.bits >= 8 &&
                          (!type.is_float() || type.bits >= 32);
    if (!is_whole || store.predicate.defined() || store.indices.size() != 1 || is_local(*store.buffer)) return;
    const Expr& index = store.indices[0];
    if (effect_of(index) != Effect::kPure || stream_of(store)) return;
    // The variable of a let may have another value in each iteration.
    if (uses_any_of(index, names_)) return;
    if (index.dtype().is_vector() && !index.is<Ramp>()) return;
    const Expr base = first_lane(index);
    const Ref<Var>& v = loop_->loop_var;
    const Expr next = substitute(base, {{v, v + 1}});
    const Expr step = analyzer_.simplify(next - base);
    if (uses_var(step, v)) return;
    // Lanes that store to one place would differ in the register.
    const Ramp* lanes = index.as<Ramp>();
    if (lanes && (uses_var(lanes->stride, v) || !is_never_zero(lanes->stride))) return;
    if (!is_never_zero(step)) return;
    streams_.push_back({.buffer = store.buffer, .index = index, .step = step});
  }

  bool is_never_zero(const Expr& e) {
    const Expr none = zero(e.dtype());
    return analyzer_.can_prove(gt(e, none)) || analyzer_.can_prove(lt(e, none));
  }

  Stream* stream_of(const BufferStore& store) {
    if (store.predicate.defined() || store.indices.size() != 1) return nullptr;
    for (Stream& stream : streams_) {
      if (stream.buffer == store.buffer && same_expr(stream.index, store.indices[0])) return &stream;
    }
    return nullptr;
  }

  /// Whether nothing else of an iteration stores where the stream does, now or later.
  bool is_alone(const Stream& stream) {
    if (escaped_.contains(stream.buffer->data)) return false;
    const bool is_private = memory_.own.contains(stream.buffer->data);
    return all_of(stores_, [&](const BufferStore* store) {
      if (store->buffer->data != stream.buffer->data) return is_private || is_local(*store->buffer);
      if (store->buffer != stream.buffer) return false;
      const bool is_its_own = certain_.contains(store) && stream_of(*store) == &stream;
      return is_its_own || never_meets(stream, *store);
    });
  }

  /// Elements between those of the stream: x[2 * i + 1] beside x[2 * i].
  bool never_meets(const Stream& stream, const BufferStore& store) {
    auto step = const_int(stream.step);
    if (!step || store.indices.size() != 1 || stream.index.is<Ramp>() || store.indices[0].dtype().is_vector()) {
      return false;
    }
    auto gap = const_int(analyzer_.simplify(store.indices[0] - stream.index));
    return gap && *gap % *step != 0;
  }

  // ---- loads

  /// `guard`: the condition under which `root` runs; null if it is not known before the loop.
  void note_loads(const NodeRef& root, const Expr& guard) {
    auto also = [&](const Expr& condition) {
      const bool is_known = guard.defined() && effect_of(condition) == Effect::kPure && !uses_any_of(condition, names_);
      return is_known ? logical_and(guard, condition) : Expr();
    };
    visit(
        root,
        [&](const Ref<IfThenElse>& branch, Visitor& v) {
          v(branch->condition);
          note_loads(branch->then_case, also(branch->condition));
          if (branch->else_case.defined()) note_loads(branch->else_case, also(logical_not(branch->condition)));
        },
        [&](const Ref<While>& loop, Visitor& v) {
          v(loop->condition);
          note_loads(loop->body, {});
        },
        [&](const Ref<AssertStmt>& assertion, Visitor& v) {
          v(assertion->condition);
          note_loads(assertion->body, {});
        },
        [&](const Ref<Call>& call, Visitor& v) {
          if (intrinsic_of(*call) != Intrinsic::k_if_then_else) return v.descend(call);
          v(call->args[0]);
          note_loads(call->args[1], also(call->arg(0)));
          note_loads(call->args[2], also(logical_not(call->arg(0))));
        },
        [&](const Ref<And>& both, Visitor& v) {
          v(both->a);
          note_loads(both->b, also(both->a));
        },
        [&](const Ref<Or>& either, Visitor& v) {
          v(either->a);
          note_loads(either->b, also(logical_not(either->a)));
        },
        [&](const Ref<BufferLoad>& load, Visitor& v) {
          v.descend(load);
          auto found = find(*load);
          if (!found) return;
          auto& [stream, past] = *found;
          stream->past = std::max(stream->past, past);
          if (guard.defined() && is_true(guard)) {
            stream->certain = std::max(stream->certain, past);
          } else {
            stream->guards.emplace_back(past, guard);
          }
        });
  }

  static bool has_unknown_guards(const Stream& stream) {
    return any_of(stream.guards, [](const auto& use) { return !use.second.defined(); });
  }

  bool knows_size(const Stream& stream) const {
    auto* size = find_value(memory_.sizes, stream.buffer->data);
    return size && size->second == stream.buffer->dtype;
  }

  /// The stream that stored what is loaded, and how many iterations ago.
  std::optional<std::pair<Stream*, int64_t>> find(const BufferLoad& load) {
    if (load.predicate.defined() || load.indices.size() != 1) return {};
    for (Stream& stream : streams_) {
      if (load.buffer != stream.buffer || load.indices[0].dtype().lanes != stream.index.dtype().lanes) continue;
      if (effect_of(load.indices[0]) != Effect::kPure) continue;
      const Ramp *lanes = load.indices[0].as<Ramp>(), *stored = stream.index.as<Ramp>();
      if ((lanes != nullptr) != (stored != nullptr)) continue;
      if (lanes && !analyzer_.can_prove_equal(lanes->stride, stored->stride)) continue;
      const Expr gap = analyzer_.simplify(first_lane(stream.index) - first_lane(load.indices[0]));
      const int64_t past = iterations(gap, stream.step);
      if (past > 0 && (!lanes || lanes_stay_apart(*stored, stream.step, past))) return std::pair(&stream, past);
    }
    return {};
  }

  /// Returns how many steps make the gap; 0 where that is not known, or none or too many.
  int64_t iterations(const Expr& gap, const Expr& step) {
    auto elements = const_int(gap), each = const_int(step);
    if (each && !elements) return 0;
    if (each) return *elements % *each == 0 && *elements / *each <= kMostPast ? *elements / *each : 0;
    for (int64_t past = 1; past <= kMostPast && !elements; ++past) {
      if (analyzer_.can_prove_equal(gap, step * past)) return past;
    }
    return 0;
  }

  /// Whether no lane of the iterations between stores where one of that iteration did.
  static bool lanes_stay_apart(const Ramp& lanes, const Expr& step, int64_t past) {
    if (past == 1) return true;
    auto stride = const_int(lanes.stride), steps = const_int(step), count = const_int(lanes.lanes);
    if (!stride || !steps || !count) return false;
    for (int64_t between = 1; between < past; ++between) {
      const int64_t moved = between * *steps;
      if (moved % *stride == 0 && std::abs(moved / *stride) < *count) return false;
    }
    return true;
  }

  // ---- the loop with registers

  Stmt carried() {
    std::vector<Stmt> before, after;
    for (Stream& stream : streams_) {
      const DataType type = stream.buffer->dtype.with_lanes(stream.index.dtype().lanes);
      for (int64_t past = 0; past <= stream.past; ++past) {
        std::string name = stream.buffer->name + (past == 0 ? "_now" : "_past_" + std::to_string(past));
        stream.values.push_back(decl_buffer({i32(1)}, type, name, "local"));
      }
      for (int64_t past = stream.past; past >= 1; --past) {
        before.push_back(set(stream.values[past], first_value(stream, past)));
        after.push_back(set(stream.values[past], get(stream.values[past - 1])));
      }
    }
    For copy = *loop_;
    std::vector<Stmt> body{with_registers(loop_->body)};
    append_range(body, after);
    copy.body = seq(std::move(body));
    before.push_back(make(std::move(copy), loop_.span()));
    Stmt all = seq(std::move(before));
    for (const Stream& stream : streams_) {
      for (const Ref<Buffer>& value : stream.values) {
        Stmt declared = make<DeclBuffer>({value, all});
        all = make<Allocate>({value->data, value->dtype, {i32(1)}, bool_imm(true), declared, {}});
      }
    }
    return all;
  }

  static Expr get(const Ref<Buffer>& value) { return load(value, {i32(0)}); }
  static Stmt set(const Ref<Buffer>& value, const Expr& to) { return store(value, to, {i32(0)}); }

  /// The element that the stream would have stored `past` iterations before the first one.
  Expr first_value(const Stream& stream, int64_t past) {
    const Ref<Var>& v = loop_->loop_var;
    const Expr back = stream.step * past;
    const Expr begin = substitute(stream.index, {{v, loop_->min}});
    const Ramp* lanes = begin.as<Ramp>();
    const Expr base = analyzer_.simplify(first_lane(begin) - back);
    const Expr index = lanes ? ramp(base, lanes->stride, begin.dtype().lanes) : base;
    Expr condition = analyzer_.simplify(gt(loop_->extent, 0));
    if (past > stream.certain) {
      condition = has_unknown_guards(stream) ? is_in_bounds(stream, base, lanes) : is_used(stream, past);
      condition = analyzer_.simplify(logical_and(gt(loop_->extent, 0), condition));
    }
    Expr value = load(stream.buffer, {index});
    if (is_const_int(condition, 0)) return zero(value.dtype());
    return is_true(condition) ? value : if_then_else(condition, value, zero(value.dtype()));
  }

  /// Whether an iteration uses the element that the stream would have stored `past` iterations before the first one.
  Expr is_used(const Stream& stream, int64_t past) const {
    Expr used = bool_imm(false);
    for (const auto& [carried, guard] : stream.guards) {
      if (carried < past) continue;
      const Expr runs = gt(loop_->extent, carried - past);
      used = logical_or(used, logical_and(runs, substitute(guard, {{loop_->loop_var, loop_->min + (carried - past)}})));
    }
    return used;
  }

  Expr is_in_bounds(const Stream& stream, const Expr& base, const Ramp* lanes) const {
    const Expr first = cast(DataType::int_(64), base), &size = memory_.sizes.at(stream.buffer->data).first;
    Expr last = first;
    if (lanes) last = first + cast(DataType::int_(64), lanes->stride) * i64(int64_t{*const_int(lanes->lanes)} - 1);
    Expr condition = bool_imm(true);
    for (const Expr& end : {first, last}) {
      condition = logical_and(condition, logical_and(ge(end, i64(0)), lt(end, size)));
    }
    return condition;
  }

  Stmt with_registers(const Stmt& body) {
    return rewrite(
        body,
        [&](const Ref<Add>& sum, Rewriter& r) -> Expr {
          // The code generator fuses the second product with the addition. Put the product that waits for this
          // iteration's values second: the other one is computed before they arrive.
          Ref<Add> after = r.descend(sum);
          const bool waits_first = after->a.is<Mul>() && after->b.is<Mul>() && newest(after->a) < newest(after->b);
          return waits_first ? Expr(make<Add>({after->b, after->a}, sum.span())) : Expr(after);
        },
        [&](const Ref<BufferLoad>& load, Rewriter& r) -> Expr {
          auto found = find(*load);
          return found && found->second <= found->first->past ? get(found->first->values[found->second])
                                                              : Expr(r.descend(load));
        },
        [&](const Ref<BufferStore>& store, Rewriter& r) -> Stmt {
          const Stream* stream = stream_of(*store);
          if (!stream || !certain_.contains(&*store)) return r.descend(store);
          const Ref<Buffer>& now = stream->values[0];
          Stmt stored = make<BufferStore>({store->buffer, get(now), store->indices, {}}, store.span());
          return seq({set(now, r(store->value)), stored});
        });
  }

  /// Returns how many iterations ago the latest value in it was stored.
  int64_t newest(const Expr& e) const {
    int64_t least = kMostPast + 1;
    visit(e, [&](const Ref<BufferLoad>& load) {
      for (const Stream& stream : streams_) {
        auto it = std::ranges::find(stream.values, load->buffer);
        if (it != stream.values.end()) least = std::min<int64_t>(least, it - stream.values.begin());
      }
    });
    return least;
  }

  const Ref<For>& loop_;
  const bool is_concurrent_;
  const KnownMemory& memory_;
  arith::Analyzer& analyzer_;
  std::vector<Stream> streams_;
  std::vector<const BufferStore*> stores_;
  std::unordered_set<const BufferStore*> certain_;  ///< stores that every iteration executes once
  std::unordered_set<NodeRef> escaped_, loaded_;
  std::unordered_set<NodeRef> names_;  ///< variables of lets in the loop
  bool unknown_ = false;               ///< something may store anywhere
};

}  // namespace

PassResult carry_values(const Ref<PrimFunc>& func, PassContext& context) {
  const KnownMemory memory(*func, context);
  arith::Analyzer analyzer;
  assume_sizes(*func, analyzer);
  bool is_concurrent = false;
  Stmt body = rewrite(
      func->body,
      [&](const Ref<For>& loop, Rewriter& r) -> Stmt {
        analyzer.bind(loop->loop_var, range(loop->min, loop->extent));
        if (!has_node<For>(loop->body) && loop->kind == ForKind::kSerial) {
          return Carrier(loop, is_concurrent, memory, analyzer).run();
        }
        const bool around = is_concurrent;
        is_concurrent |= analysis::runs_on_threads(loop->kind);
        Stmt after = r.descend(loop);
        is_concurrent = around;
        return after;
      },
      [&](const Ref<BufferStore>& store, Rewriter&) -> Stmt { return store; });
  return with_body(func, std::move(body));
}

}  // namespace tilewright::lower
