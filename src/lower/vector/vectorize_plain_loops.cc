// Auto-vectorize serial loops: mark them as vectorized if that is legal and profitable.
//
//   Before                                  After
//   for j in range(16):                     for j in T.vectorized(16):
//     for k in range(64):                     for k in range(64):
//       C[j] = C[j] + A[k] * B[k * 16 + j]      C[j] = C[j] + A[k] * B[k * 16 + j]
//
// Innermost loops are tried first. If one cannot be vectorized, as here the sum over k, a loop around it may be: each
// lane then runs all inner iterations in order, so sums are bit-exact. A parallel loop is strip-mined, so that each
// thread gets whole vectors. Reduction loops are vectorized only if the order of steps does not matter: sums of
// integers, and min and max of floats. Two loops that only traverse contiguous memory together are fused first, so that
// short rows give long vectors. Short loops inside of a vector are unrolled.
//
// Needs      flat buffers, simple indices
// Ensures    bit-exact results; annotations of the schedule are kept. A note says why an innermost loop stays scalar.
// Placement  before split_vector_loops, which strip-mines long loops
#include <algorithm>
#include <cmath>

#include "arith/analyzer.h"
#include "ir/build.h"
#include "ir/let_variables.h"
#include "ir/numeric.h"
#include "ir/substitute.h"
#include "ir/traverse.h"
#include "lower/loops/cut_loops.h"
#include "lower/passes.h"
#include "lower/vector/lane_independence.h"
#include "lower/vector/vector_math.h"
#include "support/ranges.h"
#include "target/machine_model.h"

namespace tilewright::lower {
namespace {

/// Minimum estimated speedup, below which the loop stays scalar.
constexpr double kWorthwhile = 0.75;
constexpr double kUnknownTrips = 16;
/// Largest stride at which a strided load is done as contiguous loads and shuffles.
constexpr int64_t kMostStride = 4;
/// Maximum number of loops inside of a candidate loop.
constexpr int kMostInside = 6;
/// Minimum trip count for a note about a loop that stays scalar.
constexpr int64_t kShort = 8;
/// Maximum trip count, and maximum number of copies in all, of inner loops that are unrolled.
constexpr int64_t kMostUnrolled = 4;
constexpr int64_t kMostCopies = 16;

/// Whether the intrinsic has a vector form. Otherwise splitting vectors into lanes would cost more than it gains.
bool has_vector_form(const Call& call) {
  int bits = intrinsic_row(intrinsic_of(call)).vector_bits;
  return bits > 0 && call.dtype.bits <= bits;
}

constexpr MachineModel kMachine;
/// Instructions that a core executes in the time of a function such as exp, and of a division of floats.
constexpr double kElementary = kMachine.elementary_cycles * kMachine.fma_ports;
constexpr double kDivision = kMachine.division_cycles * kMachine.fma_ports;
/// The cost of one lane of a gather, and of one step of a serial sum, which waits for the previous step.
constexpr double kGather = kMachine.gather_cycles_per_lane * kMachine.load_ports;
constexpr double kWait = kMachine.fma_latency_cycles * kMachine.fma_ports;
/// The cost of one lane of a scatter: an extraction and a store, one per cycle each.
constexpr double kScatter = 2 * kMachine.fma_ports / kMachine.store_ports;

/// Instructions that halve the number of partial results.
constexpr double kTogether = 3;

/// Estimated instructions per iteration: in scalar code, and as one lane of full vectors.
struct Cost {
  double scalar = 0, vector = 0;
};

/// Checks whether all of the body has a vector form, and estimates its cost.
class Body {
 public:
  Body(const Ref<For>& loop, const LaneAccesses& accesses, const Target& target)
      : loop_(loop),
        accesses_(accesses.all()),
        target_(target),
        lanes_(static_cast<double>(vector_lanes(target, widest_element(loop->body)))) {
    check(loop->body);
    for (const LaneAccess& access : accesses.all()) memory(access);
  }

  std::string obstacle;
  Cost cost;
  /// Whether one register per vector is enough: lanes with a large stride are loaded in an inner loop, so that each
  /// occupies a cache line, or have a type without gathers, or are scattered. Four registers of bytes would be 256
  /// stores per statement, which LLVM takes half a minute to schedule.
  bool gathers_apart = false;

 private:
  void refuse(std::string why) {
    if (obstacle.empty()) obstacle = std::move(why);
  }
  void add(double scalar, double vector) {
    cost.scalar += trips_ * scalar;
    cost.vector += trips_ * vector;
  }
  /// Adds the cost of an operation that is one instruction for all lanes.
  void add(double cycles) { add(cycles, cycles / lanes_); }

  static double trips_of(const For& loop) {
    auto extent = const_int(loop.extent);
    return extent ? static_cast<double>(std::max<int64_t>(*extent, 0)) : kUnknownTrips;
  }

  void check(const Stmt& s) {
    switch (s.kind()) {
      case Kind::kSeqStmt:
        for (const Stmt& child : s.as<SeqStmt>()->seq) check(child);
        return;
      case Kind::kBufferStore: {
        const BufferStore& store = *s.as<BufferStore>();
        if (store.predicate.defined() || store.buffer->dtype.is_vector()) return refuse("it has vector code");
        check(store.value);
        return check_index(store.indices[0]);
      }
      case Kind::kIfThenElse: {
        const IfThenElse& branch = *s.as<IfThenElse>();
        check(branch.condition);
        conditional_ += 1;
        check(branch.then_case);
        if (branch.else_case.defined()) check(branch.else_case);
        conditional_ -= 1;
        return;
      }
      case Kind::kLetStmt:
        check(s.as<LetStmt>()->value);
        return check(s.as<LetStmt>()->body);
      case Kind::kFor:
        return check_loop(*s.as<For>());
      case Kind::kEvaluate:
        if (!is_nop(s)) refuse("it calls a function that has an effect");
        return;
      default:
        return refuse("there is a statement of kind " + kind_name(s.kind()) + " in it");
    }
  }

  void check_loop(const For& nested) {
    bool plain = nested.kind == ForKind::kSerial || nested.kind == ForKind::kUnrolled;
    if (!plain) return refuse("the schedule decides about loop '" + nested.loop_var->name_hint + "' inside");
    if (uses_var(nested.min, loop_->loop_var) || uses_var(nested.extent, loop_->loop_var)) {
      return refuse("the range of loop '" + nested.loop_var->name_hint + "' inside depends on it");
    }
    double outer = trips_;
    trips_ *= trips_of(nested);
    check(nested.body);
    trips_ = outer;
  }

  /// Adds the cost of an index, which is 0 unless its lanes are irregular.
  void check_index(const Expr& index) {
    visit(index, [&](const Ref<BufferLoad>& load, Visitor&) { check(load); });
    if (index.dtype().is_vector()) refuse("it has vector code");
  }

  void check(const Expr& e) {
    if (e.dtype().is_vector()) return refuse("it has vector code");
    if (const auto [a, b] = binary_operands(e); a) {
      operation(e.kind(), *a, *b);
      check(*a);
      return check(*b);
    }
    switch (e.kind()) {
      case Kind::kVar:
      case Kind::kIntImm:
      case Kind::kFloatImm:
        return;
      case Kind::kNot:
        return check(e.as<Not>()->a);
      case Kind::kCast:
        add(1);
        if (is_narrow(e.dtype()) || is_narrow(e.as<Cast>()->value.dtype())) add(3);
        return check(e.as<Cast>()->value);
      case Kind::kSelect:
        add(1);
        check(e.as<Select>()->condition);
        check(e.as<Select>()->true_value);
        return check(e.as<Select>()->false_value);
      case Kind::kBufferLoad:
        if (e.as<BufferLoad>()->predicate.defined() || e.as<BufferLoad>()->buffer->dtype.is_vector()) {
          return refuse("it has vector code");
        }
        if (conditional_ > 0) masked(e.dtype(), false);
        return check_index(e.as<BufferLoad>()->indices[0]);
      case Kind::kLet:
        check(e.as<Let>()->value);
        return check(e.as<Let>()->body);
      case Kind::kCall:
        return check(*e.as<Call>());
      default:
        return refuse("there is an expression of kind " + kind_name(e.kind()) + " in it");
    }
  }

  void check(const Call& call) {
    Intrinsic intrinsic = intrinsic_of(call);
    if (!has_vector_form(call)) {
      return refuse("T." + std::string(intrinsic == Intrinsic::kUnknown ? "call" : intrinsic_row(intrinsic).name) +
                    " has no vector form");
    }
    bool lazy = intrinsic == Intrinsic::k_if_then_else;
    add(lazy || intrinsic == Intrinsic::k_likely ? 1 : intrinsic_row(intrinsic).elementary ? kElementary : 2);
    for (size_t i : indices_of(call.args)) {
      conditional_ += lazy && i > 0;
      check(call.arg(i));
      conditional_ -= lazy && i > 0;
    }
  }

  static bool is_narrow(DataType type) { return type.is_float() && type.bits < 32; }

  void operation(Kind kind, const Expr& a, const Expr& b) {
    DataType type = a.dtype();
    bool divides = kind == Kind::kDiv || kind == Kind::kMod || kind == Kind::kFloorDiv || kind == Kind::kFloorMod;
    if (type.is_float()) {
      add((divides ? kDivision : 1) + (is_narrow(type) ? 6 : 0));
    } else if (!divides) {
      add(1);
    } else if (auto divisor = const_int(b); divisor && *divisor > 0 && (*divisor & (*divisor - 1)) == 0) {
      add(1);
    } else if (divisor && type.bits <= 32) {
      add(3, 8 / lanes_);
    } else {
      add(8, 10);  // no processor divides vectors of integers
    }
  }

  /// Whether accesses need a mask, because inactive lanes must not access memory.
  void masked(DataType type, bool stores) {
    if (has_masked_access(target_, type)) {
      add(0, (stores ? 2 : 1) / lanes_);
    } else {
      add(0, 4);
    }
  }

  void memory(const LaneAccess& access) {
    // Loops that do not move the access do not repeat it: its value stays in a register.
    double outer = trips_, trips = 1;
    for (const Ref<For>& nested : access.loops) {
      trips *= trips_of(*nested);
      if (uses_var(access.index, nested->loop_var)) trips_ = trips;
    }
    int64_t stride = access.stride.value_or(0);
    if (!access.stride || std::abs(stride) > kMostStride) {
      add(1, access.writes ? kScatter : kGather);
      gathers_apart |= !access.loops.empty() || access.buffer->dtype.bits < 32;
      // Lanes are scattered one by one, and the scalar loop computes addresses by an addition.
      if (!access.stride && !access.writes) add_arithmetic(access.index);
    } else if (stride == 0 || stride == 1) {
      add(1);
    } else if (access.writes) {
      const bool fills = stride != -1 && fills_memory(access), scatters = stride != -1 && !fills;
      add(1, scatters ? kScatter : fills ? 2 * static_cast<double>(stride) / lanes_ : 2 / lanes_);
      gathers_apart |= scatters && access.buffer->dtype.bits < 32;
    } else {
      add(1, 2 * static_cast<double>(std::abs(stride)) / lanes_);
    }
    if (access.writes && conditional_store(access)) masked(access.buffer->dtype, true);
    // Steps of a serial sum wait for one another; lanes do not.
    if (access.writes && !access.loops.empty() && !uses_var(access.index, access.loops.back()->loop_var)) {
      trips_ = trips;
      add(kWait);
    }
    trips_ = outer;
  }

  /// Whether this store and the other stores of the loop, which are its whole body, write all elements between the
  /// lanes (vectorize_loops).
  bool fills_memory(const LaneAccess& access) const {
    const SeqStmt* all = loop_->body.as<SeqStmt>();
    int64_t stores = 0;
    for (const LaneAccess& other : accesses_) {
      if (!other.writes) {
        if (other.buffer->data == access.buffer->data) return false;
        continue;
      }
      if (other.buffer != access.buffer || other.stride != access.stride || !other.loops.empty()) return false;
      ++stores;
    }
    return all && static_cast<int64_t>(all->seq.size()) == stores && stores == *access.stride;
  }

  void add_arithmetic(const Expr& index) {
    visit(
        index, on<Add, Mul>([&](const auto&) { add(1); }),
        [&](const Ref<FloorDiv>& e) { operation(Kind::kFloorDiv, e->a, e->b); },
        [&](const Ref<FloorMod>& e) { operation(Kind::kFloorMod, e->a, e->b); });
  }

  bool conditional_store(const LaneAccess& access) const {
    return any_node(loop_->body, [&](const Ref<IfThenElse>& branch) {
      return any_node(branch, [&](const Ref<BufferStore>& store) { return store->buffer == access.buffer; });
    });
  }

  const Ref<For>& loop_;
  const std::vector<LaneAccess>& accesses_;
  const Target& target_;
  double lanes_;
  double trips_ = 1;
  int conditional_ = 0;
};

/// Whether the body has hints or explicit machine instructions, which have no vector form.
bool only_instructions(const Stmt& body) {
  return !has_node<BufferStore>(body) && !any_node(body, [](const Ref<Evaluate>& evaluated) {
    return !is_nop(evaluated) && !is_call_to(evaluated->value, Intrinsic::k_prefetch) &&
           !is_call_to(evaluated->value, Intrinsic::k_call_llvm_intrin);
  });
}

class PlainLoopVectorizer {
 public:
  PlainLoopVectorizer(const PrimFunc& func, PassContext& context)
      : context_(context), private_memory_(private_memory(func, context)) {
    assume_sizes(func, analyzer_);
  }

  Stmt run(const Stmt& body) {
    Stmt after = rewrite(
        body, [&](const Ref<For>& loop, Rewriter& r) -> Stmt { return visit_loop(loop, r); },
        [&](const Ref<BufferStore>& store, Rewriter&) -> Stmt { return store; });
    for (Note& note : scalar_) context_.notes.push_back(std::move(note));
    return after;
  }

 private:
  Stmt visit_loop(const Ref<For>& nest, Rewriter& r) {
    int inside = 0;
    visit(nest->body, [&](const Ref<For>&) { ++inside; });
    bool small = inside <= kMostInside;
    Ref<For> loop = small && nest->kind == ForKind::kSerial && !in_vector_ ? fuse(nest) : nest;
    analyzer_.bind(loop->loop_var, range(loop->min, loop->extent));
    size_t mark = scalar_.size();
    bool outer_vector = in_vector_;
    in_vector_ |= loop->kind == ForKind::kVectorized;
    Ref<For> inner = r.descend(loop);
    in_vector_ = outer_vector;
    bool serial = loop->kind == ForKind::kSerial && loop->annotations.empty();
    bool parallel = loop->kind == ForKind::kParallel && loop->annotations.empty();
    if (in_vector_ || (!serial && !parallel)) return inner;
    auto extent = const_int(loop->extent);
    if (!small) return inner;
    const bool innermost = !has_node<For>(inner->body);
    std::string reason = obstacle(inner, parallel, innermost);
    if (reason.empty()) {
      scalar_.resize(mark);
      if (parallel) return parallel_vectors(inner);
      return narrow_ ? narrow_vectors(inner) : vectorized(inner);
    }
    if (innermost && (!extent || *extent >= kShort) && !only_instructions(inner->body)) {
      scalar_.push_back({"lower/scalar-loop", context_.function,
                         "loop '" + loop->loop_var->name_hint + "' has no vector code: " + reason, loop.span()});
    }
    return inner;
  }

  /// Returns why the loop stays scalar; empty if it is vectorized.
  std::string obstacle(const Ref<For>& loop, bool parallel, bool innermost) {
    auto extent = const_int(loop->extent);
    int64_t lanes = vector_lanes(context_.target, widest_element(loop->body));
    const int64_t most = extent ? *extent : analyzer_.const_int_bound(loop->extent).max_value;
    if (most < std::max<int64_t>(lanes / 2, 2)) return "it is short";
    // Vectors reduce the iterations for threads, so there must be enough for both.
    bool enough = innermost && !extent;
    if (extent) enough = *extent >= kMostRegisters * lanes * 4 * context_.target.num_cores;
    if (parallel && !enough) return "its iterations are few, and go to threads";
    if (!innermost && uses_registers(loop->body)) return "the schedule decides about registers";
    // If lanes may combine values in any order, each gets its own accumulator (vectorize_reductions).
    Ref<For> apart = innermost ? with_partial_results(loop) : loop;
    LaneAccesses accesses(apart, private_memory_, analyzer_);
    Body body(apart, accesses, context_.target);
    if (!body.obstacle.empty()) return body.obstacle;
    narrow_ = body.gathers_apart;
    bool stores = any_of(accesses.all(), [](auto& a) { return a.writes; });
    if (!stores) return "it stores nothing";
    if (std::string found = accesses.obstacle(); !found.empty()) return found;
    double trips = extent ? static_cast<double>(*extent) : kUnknownTrips;
    double once = apart == loop ? 0 : kTogether * std::log2(static_cast<double>(lanes));
    if (body.cost.vector * trips + once > kWorthwhile * body.cost.scalar * trips) return "vectors would not be faster";
    return "";
  }

  /// Returns the loop with a separate accumulator per iteration, if the order of combination does not matter;
  /// otherwise, the unchanged loop.
  Ref<For> with_partial_results(const Ref<For>& loop) {
    std::unordered_map<NodeRef, Stmt> steps;
    bool exact = true;
    const std::unordered_set<NodeRef> names = let_variables(loop->body);
    auto moves = [&](const Ref<Var>& v) { return v == loop->loop_var || names.contains(v); };
    visit(loop->body, [&](const Ref<BufferStore>& store) {
      if (store->indices.size() != 1 || uses_any_var(store->indices[0], moves)) return;
      auto step = effect_of(store->indices[0]) == Effect::kPure ? lane_step(*store, analyzer_) : std::nullopt;
      exact = exact && step && step->is_exact() && is_alone(loop, *store, private_memory_);
      if (!exact) return;
      Ref<Buffer> partial = decl_buffer({loop->extent}, store->buffer->dtype, store->buffer->name);
      private_memory_.insert(partial->data);
      Expr lane = loop->loop_var - loop->min;
      steps[store] = tilewright::store(partial, step->step(load(partial, {lane})), {lane});
    });
    if (!exact || steps.empty()) return loop;
    Stmt after = rewrite(
        loop, [&](const Ref<BufferStore>& store, Rewriter&) -> Stmt { return find_value_or(steps, store, store); });
    return after.cast<For>();
  }

  static Stmt vectorized(const Ref<For>& loop) {
    For vector = *loop;
    vector.kind = ForKind::kVectorized;
    int64_t copies = 1;
    vector.body = written_out(loop->body, copies);
    return make(std::move(vector), loop.span());
  }

  /// Returns the body with short loops inside marked to be unrolled.
  static Stmt written_out(const Stmt& body, int64_t& copies) {
    return rewrite(
        body,
        [&](const Ref<For>& nested, Rewriter& r) -> Stmt {
          auto extent = const_int(nested->extent);
          bool is_short = nested->kind == ForKind::kSerial && nested->annotations.empty() && extent && *extent >= 1 &&
                          *extent <= kMostUnrolled && copies * *extent <= kMostCopies;
          if (is_short) copies *= *extent;
          Ref<For> inner = r.descend(nested);
          if (!is_short) return inner;
          return with_field(inner, &For::kind, ForKind::kUnrolled);
        },
        [&](const Ref<BufferStore>& store, Rewriter&) -> Stmt { return store; });
  }

  /// Fuses two loops if every index traverses both contiguously: i * 3 + j for j in [0, 3).
  Ref<For> fuse(const Ref<For>& outer) {
    Ref<For> inner = outer->body.cast<For>();
    auto plain = [](const For& loop) {
      return loop.kind == ForKind::kSerial && loop.annotations.empty() && is_const_int(loop.min, 0) &&
             const_int(loop.extent).value_or(0) > 0;
    };
    if (!inner.defined() || !plain(*outer) || !plain(*inner)) return outer;
    Ref<For> rest = fuse(inner);
    const bool has_loops = has_node<For>(rest->body);
    int64_t width = *const_int(rest->extent), count = *const_int(outer->extent);
    int64_t lanes = vector_lanes(context_.target, widest_element(rest->body));
    bool wasteful = width % lanes != 0 && width < kMostRegisters * lanes;
    DataType type = outer->loop_var.dtype();
    if (has_loops || !wasteful || uses_registers(rest->body) || rest->loop_var.dtype() != type ||
        count > int_max(DataType::int_(32)) / width) {
      return rest == inner ? outer : make_loop(*outer, rest);
    }
    Ref<Var> both = var(outer->loop_var->name_hint, type);
    analyzer_.bind(both, range_of(int_imm(type, count * width)));
    VarMap parts{{outer->loop_var, floordiv(both, width)}, {rest->loop_var, floormod(both, width)}};
    bool whole = true;
    auto index = [&](const Expr& e) {
      Expr simple = effect_of(e) == Effect::kPure ? analyzer_.simplify(substitute(e, parts)) : e;
      visit(simple, on<FloorDiv, FloorMod, BufferLoad>([&](const auto&) { whole = false; }),
            [&](const Ref<Var>& v) { whole &= v != outer->loop_var && v != rest->loop_var; });
      return simple;
    };
    Stmt body = rewrite(
        rest->body,
        [&](const Ref<BufferLoad>& load, Rewriter&) -> Expr {
          return make<BufferLoad>({load->buffer, {index(load->indices[0])}, load->predicate}, load.span());
        },
        [&](const Ref<BufferStore>& store, Rewriter& r) -> Stmt {
          return make<BufferStore>({store->buffer, r(store->value), {index(store->indices[0])}, store->predicate},
                                   store.span());
        });
    whole = whole && !uses_var(body, outer->loop_var) && !uses_var(body, rest->loop_var);
    if (!whole) return rest == inner ? outer : make_loop(*outer, rest);
    For fused = *outer;
    fused.loop_var = both;
    fused.extent = int_imm(type, count * width);
    fused.body = body;
    return make(std::move(fused), outer.span());
  }

  /// Whether the code stores to buffers of scope "local": registers are as wide as their widest access, which is up to
  /// the schedule.
  static bool uses_registers(const Stmt& body) {
    return any_node(body, [](const Ref<BufferStore>& store) { return is_local(*store->buffer); });
  }

  static Ref<For> make_loop(const For& outer, const Ref<For>& inner) {
    For copy = outer;
    copy.body = inner;
    return make(std::move(copy));
  }

  /// Returns the lanes of one register, so that as many cache lines are in use as it has lanes, and not several times
  /// that.
  Stmt narrow_vectors(const Ref<For>& loop) {
    // Lanes of gather indices are 32 bits wide.
    int64_t width = vector_lanes(context_.target, std::max(widest_element(loop->body), 32));
    auto extent = const_int(loop->extent);
    if (extent && *extent <= width) return vectorized(loop);
    return in_strips(loop, width);
  }

  /// Strip-mines a parallel loop into vectors of kCutRegisters registers.
  Stmt parallel_vectors(const Ref<For>& loop) {
    return in_strips(loop, kCutRegisters * vector_lanes(context_.target, widest_element(loop->body)));
  }

  /// Strip-mines the loop into vectors of this many lanes.
  static Stmt in_strips(const Ref<For>& loop, int64_t width) {
    int64_t copies = 1;
    return strips(loop, written_out(loop->body, copies), make<Var>(*loop->loop_var), width, ForKind::kVectorized,
                  loop->kind);
  }

  PassContext& context_;
  std::unordered_set<NodeRef> private_memory_;
  arith::Analyzer analyzer_;
  std::vector<Note> scalar_;  ///< notes about innermost loops that stay scalar
  bool in_vector_ = false;
  bool narrow_ = false;  ///< whether the last analyzed loop uses one register per vector
};

}  // namespace

PassResult vectorize_plain_loops(const Ref<PrimFunc>& func, PassContext& context) {
  return with_body(func, PlainLoopVectorizer(*func, context).run(func->body));
}

}  // namespace tilewright::lower
