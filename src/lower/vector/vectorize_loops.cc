// Turn vectorized loops into vector operations.
//
//   Before                                        After
//   for j in T.vectorized(8):                     C[T.Ramp(i * 8, 1, 8)] =
//     if j < n:                                       A.vload(T.Ramp(i * 8, 1, 8), predicate=mask) * T.Broadcast(s, 8)
//       C[i * 8 + j] = A[i * 8 + j] * s                   with predicate mask = T.Ramp(0, 1, 8) < T.Broadcast(n, 8)
//
// Stores that together cover contiguous memory (C[2 * j] and C[2 * j + 1]) become one store of interleaved lanes.
// Conditions that differ between lanes become predicates of the loads and stores under them. Elements that consecutive
// lanes share (P[j // 2]) are loaded once, and shuffled. Each statement is executed for all lanes before the next one;
// the annotation `vectorized` asserts that this is safe.
//
// Needs      flat buffers; constant extents (split_vector_loops)
// Ensures    no vectorized loops. One whose body has no vector form (a sum into one element, a nested vector loop, a
//            call with an effect, conditions in one another that make it too large) is a serial loop instead, and a
//            note says why; without one, where each of many lanes under a condition would be a branch.
// Placement  after partition_loops, which takes away the conditions of full vectors; before unroll_loops, so that loops
//            inside of a vectorized one are copied once, not per lane
#include <algorithm>
#include <numeric>
#include <utility>

#include "ir/build.h"
#include "ir/kind_cases.h"
#include "ir/reduction_step.h"
#include "ir/structural.h"
#include "ir/substitute.h"
#include "ir/traverse.h"
#include "lower/loops/index_variables.h"
#include "lower/passes.h"
#include "lower/vector/lane_independence.h"
#include "lower/vector/vector_math.h"
#include "support/ranges.h"

namespace tilewright::lower {
namespace {

/// Maximum distance of interleaved stores; others are stored lane by lane.
constexpr int64_t kMostInterleaved = 4;

/// Rewrites the body of one loop; `reason` is set when it cannot.
class LaneSpreader {
 public:
  /// `private_memory`: see lane_independence.h.
  LaneSpreader(const Ref<Var>& v, const Expr& begin, int lanes, const std::unordered_set<NodeRef>& private_memory,
               IndexVariables& variables)
      : lane_(v), begin_(begin), lanes_(lanes), private_memory_(private_memory), variables_(variables) {
    values_[v] = make<Ramp>({begin, one(begin.dtype()), i32(lanes)});
  }

  std::string reason;

  Stmt run(const Stmt& body) {
    note_touched(body);
    return spread(body);
  }

 private:
  /// Records the elements that every active lane loads or stores, ignoring conditions within values. Loading such an
  /// element for a lane whose condition is false does no harm, so the load needs no mask.
  void note_touched(const Stmt& s) {
    switch (s.kind()) {
      case Kind::kSeqStmt:
        for (const Stmt& child : s.as<SeqStmt>()->seq) note_touched(child);
        return;
      case Kind::kLetStmt:
        note_touched(s.as<LetStmt>()->value);
        return note_touched(s.as<LetStmt>()->body);
      case Kind::kBufferStore: {
        const BufferStore& store = *s.as<BufferStore>();
        if (!store.predicate.defined()) note_touched(store.buffer, store.indices);
        return note_touched(store.value);
      }
      default:
        return;
    }
  }

  void note_touched(const Expr& e) {
    visit(
        e,
        [&](const Ref<BufferLoad>& load) {
          if (!load->predicate.defined()) note_touched(load->buffer, load->indices);
        },
        on<And, Or>([&](const auto& both, Visitor& walk) { walk(both->a); }), [&](const Ref<Let>&, Visitor&) {},
        [&](const Ref<Call>& call, Visitor& walk) {
          if (intrinsic_of(*call) == Intrinsic::k_if_then_else) return walk(call->arg(0));
          walk.descend(call);
        });
  }

  /// Whether an index reads memory, and thus may change.
  void note_touched(const Ref<Buffer>& buffer, const std::vector<Expr>& indices) {
    if (indices.size() == 1 && effect_of(indices[0]) == Effect::kPure) touched_.emplace_back(buffer, indices[0]);
  }

  bool is_touched(const BufferLoad& load) const {
    return any_of(touched_, [&](const auto& known) {
      return known.first == load.buffer && same_expr(known.second, load.indices[0]);
    });
  }

  Stmt spread(const Stmt& s) {
    if (!reason.empty()) return s;
    switch (s.kind()) {
      case Kind::kSeqStmt: {
        std::vector<Stmt> stmts;
        for (const Stmt& child : s.as<SeqStmt>()->seq) stmts.push_back(spread(child));
        return seq(interleave(std::move(stmts)));
      }
      case Kind::kBufferStore:
        return store(s.borrow<BufferStore>());
      case Kind::kFor: {
        For copy = *s.as<For>();
        copy.min = spread(copy.min);
        copy.extent = spread(copy.extent);
        if (copy.min.dtype().is_vector() || copy.extent.dtype().is_vector()) {
          return fail(s, "the extent of loop '" + copy.loop_var->name_hint + "' inside differs between lanes");
        }
        if (Stmt together = written_out(copy); together.defined()) return together;
        size_t known = touched_.size();
        note_touched(copy.body);
        copy.body = spread(copy.body);
        touched_.resize(known);
        return make(std::move(copy), s.span());
      }
      case Kind::kIfThenElse:
        return branch(*s.as<IfThenElse>(), s);
      case Kind::kLetStmt: {
        LetStmt copy = *s.as<LetStmt>();
        copy.value = spread(copy.value);
        if (copy.value.dtype() != copy.var.dtype()) copy.var = with_lanes_of(copy.var, copy.value);
        copy.body = spread(copy.body);
        return make(std::move(copy), s.span());
      }
      case Kind::kDeclBuffer:
        return around_changed(s.borrow<DeclBuffer>(), [&](const Stmt& body) { return spread(body); });
      case Kind::kAttrStmt:
        return around_changed(s.borrow<AttrStmt>(), [&](const Stmt& body) { return spread(body); });
      case Kind::kEvaluate:
        if (is_nop(s) || effect_of(s.as<Evaluate>()->value) == Effect::kPure) return nop();
        return fail(s, "a call with an effect has no vector form");
      case Kind::kAllocate:
        return fail(s, "'" + s.as<Allocate>()->buffer_var->name_hint +
                           "' is allocated inside of the loop: allocate it outside, with a dimension of the loop");
      default:
        return fail(s, "a statement of kind " + kind_name(s.kind()) + " has no vector form");
    }
  }

  template <class H>
  H fail(const H& node, std::string why) {
    if (reason.empty()) reason = std::move(why);
    return node;
  }

  Def<Var> with_lanes_of(const Ref<Var>& v, const Expr& value) {
    Ref<Var> wide = var(v->name_hint, value.dtype());
    values_[v] = wide;
    return wide;
  }

  Expr under(const Expr& condition) const {
    Expr wide = to_lanes(condition, lanes_);
    return mask_.defined() ? vector_binary(Kind::kAnd, mask_, wide) : wide;
  }

  /// Merges adjacent stores C[s * lane + a], for all a in [b, b + s), into one.
  std::vector<Stmt> interleave(std::vector<Stmt> stmts) {
    std::vector<Stmt> result;
    for (size_t i = 0; i < stmts.size();) {
      Stmt whole = reason.empty() ? interleaved(stmts, i) : Stmt();
      if (!whole.defined()) {
        result.push_back(stmts[i++]);
        continue;
      }
      i += static_cast<size_t>(*const_int(stmts[i].as<BufferStore>()->indices[0].as<Ramp>()->stride));
      result.push_back(whole);
    }
    return result;
  }

  /// Merges the stores of an unrolled loop into one, if together they cover contiguous memory.
  Stmt written_out(const For& loop) {
    auto extent = const_int(loop.extent);
    if (loop.kind != ForKind::kUnrolled || !loop.body.is<BufferStore>() || !extent || !reason.empty()) return {};
    if (*extent < 2 || *extent > kMostInterleaved) return {};
    std::vector<Stmt> stores;
    for (int64_t k = 0; k < *extent; ++k) {
      stores.push_back(spread(substitute_folding(loop.body, loop.loop_var, loop.min + k)));
    }
    if (!reason.empty()) return {};
    stores = interleave(std::move(stores));
    return stores.size() == 1 ? stores[0] : Stmt();
  }

  Stmt interleaved(const std::vector<Stmt>& stmts, size_t first) {
    const BufferStore* store = stmts[first].as<BufferStore>();
    const Ramp* at = store ? store->indices[0].as<Ramp>() : nullptr;
    int64_t stride = at ? const_int(at->stride).value_or(0) : 0;
    if (stride < 2 || stride > kMostInterleaved || first + static_cast<size_t>(stride) > stmts.size()) return {};
    // The values by offset, and the smallest offset.
    std::vector<Expr> values(static_cast<size_t>(stride));
    std::vector<int64_t> places;
    for (int64_t k = 0; k < stride; ++k) {
      const BufferStore* next = stmts[first + static_cast<size_t>(k)].as<BufferStore>();
      const Ramp* index = next ? next->indices[0].as<Ramp>() : nullptr;
      if (!index || next->buffer != store->buffer || next->predicate.defined() || !can_move(next->value, *store) ||
          const_int(index->stride) != stride) {
        return {};
      }
      auto place = const_int(analyzer_.simplify(index->base - at->base));
      if (!place) return {};
      places.push_back(*place);
    }
    int64_t least = *std::ranges::min_element(places);
    Expr base;
    for (size_t k : indices_of(places)) {
      auto place = static_cast<size_t>(places[k] - least);
      if (place >= values.size() || values[place].defined()) return {};
      const BufferStore& next = *stmts[first + k].as<BufferStore>();
      values[place] = next.value;
      if (place == 0) base = next.indices[0].as<Ramp>()->base;
    }
    Expr index = ramp(base, one(base.dtype()), static_cast<int>(stride) * lanes_);
    if (Expr words = loaded_as_words(values); words.defined()) {
      return make<BufferStore>({store->buffer, words, {index}, {}}, stmts[first].span());
    }
    std::vector<Expr> lanes;
    for (int lane = 0; lane < lanes_; ++lane) {
      for (int64_t k = 0; k < stride; ++k) lanes.push_back(i32(k * lanes_ + lane));
    }
    return make<BufferStore>({store->buffer, make<Shuffle>({values, lanes}), {index}, {}}, stmts[first].span());
  }

  /// Contiguous small elements, loaded as one word for each lane: A[r * lane + 0], A[r * lane + 1], ... as the word at
  /// r * lane.
  Expr loaded_as_words(const std::vector<Expr>& values) {
    const BufferLoad* first = values[0].as<BufferLoad>();
    const Ramp* rows = first && !first->predicate.defined() ? first->indices[0].as<Ramp>() : nullptr;
    const auto group = static_cast<int>(values.size());
    const int bits = rows ? group * first->buffer->dtype.bits : 0;
    if (first && first->buffer->dtype.bits % 8 != 0) return {};
    if (bits != 16 && bits != 32 && bits != 64) return {};
    for (int k = 1; k < group; ++k) {
      const BufferLoad* next = values[k].as<BufferLoad>();
      const Ramp* index = next && !next->predicate.defined() ? next->indices[0].as<Ramp>() : nullptr;
      if (!index || next->buffer != first->buffer || !analyzer_.can_prove_equal(index->base, rows->base + k) ||
          !analyzer_.can_prove_equal(index->stride, rows->stride)) {
        return {};
      }
    }
    const DataType word = DataType::int_(bits);
    std::vector<Expr> words, lanes;
    for (int lane = 0; lane < lanes_; ++lane) {
      Expr place = ramp(analyzer_.simplify(rows->base + rows->stride * i32(lane)), one(rows->base.dtype()), group);
      words.push_back(bits_as(word, make<BufferLoad>({first->buffer, {place}, {}})));
      lanes.push_back(i32(lane));
    }
    return bits_as(values[0].dtype().element().with_lanes(group * lanes_), make<Shuffle>({words, lanes}));
  }

  /// Whether the value is the same before `store`.
  bool can_move(const Expr& value, const BufferStore& store) const {
    bool independent = effect_of(value) != Effect::kUpdateState;
    visit(value, [&](const Ref<BufferLoad>& load) {
      const Ref<Var>& data = load->buffer->data;
      independent &=
          data != store.buffer->data && private_memory_.count(data) && private_memory_.count(store.buffer->data);
    });
    return independent;
  }

  Stmt branch(const IfThenElse& b, const Stmt& s) {
    Expr condition = spread(b.condition);
    if (condition.dtype().is_scalar()) {
      Stmt then_case = spread(b.then_case);
      return make<IfThenElse>({condition, then_case, b.else_case.defined() ? spread(b.else_case) : Stmt()}, s.span());
    }
    if (Stmt both = merged(b, condition); both.defined()) return both;
    // The statement may change what the condition reads, so the condition is evaluated once.
    Ref<Var> test;
    if (effect_of(condition) != Effect::kPure) test = var("mask", condition.dtype());
    Expr known = test.defined() ? Expr(test) : condition;
    std::vector<Stmt> cases{under(known, b.then_case)};
    if (b.else_case.defined()) cases.push_back(under(make<Not>({known}), b.else_case));
    Stmt result = seq(std::move(cases));
    return test.defined() ? Stmt(make<LetStmt>({test, condition, result}, s.span())) : result;
  }

  /// Merges the stores of both branches into one, if they store to the same element.
  Stmt merged(const IfThenElse& b, const Expr& condition) {
    const BufferStore *yes = b.then_case.as<BufferStore>(), *no = b.else_case.as<BufferStore>();
    if (!yes || !no || yes->buffer != no->buffer || yes->predicate.defined() || no->predicate.defined()) return {};
    if (!same_expr(yes->indices[0], no->indices[0])) return {};
    Expr first = under(condition, yes->value), second = under(make<Not>({condition}), no->value);
    if (!reason.empty()) return {};
    Expr value = make<Select>({condition, to_lanes(first, lanes_), to_lanes(second, lanes_)});
    return put(b.then_case.borrow<BufferStore>(), value);
  }

  /// Vectorizes `what` under a mask: for the lanes where the condition holds.
  Expr under(const Expr& condition, const Expr& what) {
    Expr outer = mask_;
    mask_ = under(condition);
    Expr result = spread(what);
    mask_ = outer;
    return result;
  }

  Stmt under(const Expr& condition, const Stmt& what) {
    Expr outer = mask_, outer_part = taking_part_;
    size_t known = touched_.size();
    taking_part_ = mask_ = under(condition);
    note_touched(what);
    Stmt result = spread(what);
    touched_.resize(known);
    mask_ = outer;
    taking_part_ = outer_part;
    return result;
  }

  Stmt store(const Ref<BufferStore>& s) { return put(s, spread(s->value)); }

  /// Returns a hint if a buffer of the program has one element for all lanes.
  static std::string shared_by_lanes(const Buffer& buffer) {
    if (buffer.scope() != "local") return {};
    return ", a local buffer that all iterations share: give it a dimension of the loop";
  }

  Stmt put(const Ref<BufferStore>& s, const Expr& value) {
    if (s->indices.size() != 1) return fail(Stmt(s), "'" + s->buffer->name + "' is not flat");
    Expr index = spread_index(s->indices[0]);
    if (!reason.empty()) return s;
    if (index.dtype().is_scalar())
      return fail(Stmt(s),
                  "every lane stores to the same element of '" + s->buffer->name + "'" + shared_by_lanes(*s->buffer));
    if (s->buffer->dtype.is_vector()) return fail(Stmt(s), "the elements of '" + s->buffer->name + "' are vectors");
    if (ReductionStep::of(*s) && may_meet(s->indices[0], index)) {
      return fail(Stmt(s), "lanes may accumulate into the same element of '" + s->buffer->name + "'");
    }
    Expr predicate = mask_;
    if (s->predicate.defined()) predicate = under(spread(s->predicate));
    return make<BufferStore>({s->buffer, to_lanes(value, lanes_), {index}, predicate}, s.span());
  }

  /// Whether several lanes may update the same element, as steps of a reduction do. Since all lanes load before any
  /// lane stores, all but one of these updates would be lost. `index`: in terms of the loop; `wide`: as a vector.
  bool may_meet(const Expr& index, const Expr& wide) {
    if (const Ramp* ramp = wide.as<Ramp>()) return const_int(analyzer_.simplify(ramp->stride)).value_or(0) == 0;
    if (effect_of(index) != Effect::kPure || names_vector(index)) return true;
    const Expr first = substitute(index, VarMap{{lane_, begin_}});
    std::unordered_set<int64_t> places;
    for (int lane = 0; lane < lanes_; ++lane) {
      auto place = const_int(analyzer_.simplify(substitute(index, VarMap{{lane_, begin_ + lane}}) - first));
      if (!place || !places.insert(*place).second) return true;
    }
    return false;
  }

  /// Whether the expression uses a let variable whose value differs between lanes.
  bool names_vector(const Expr& e) const {
    return uses_any_var(e, [&](const Ref<Var>& v) { return v != lane_ && values_.contains(v); });
  }

  /// Vectorizes an index, whose arithmetic does not overflow, unlike that of data.
  Expr spread_index(const Expr& index) {
    const bool outer = std::exchange(in_index_, true);
    Expr result = spread(index);
    in_index_ = outer;
    return result;
  }

  Expr load(const Ref<BufferLoad>& l) {
    if (l->indices.size() != 1) return fail(Expr(l), "'" + l->buffer->name + "' is not flat");
    Expr index = spread_index(l->indices[0]);
    if (!reason.empty()) return l;
    if (index.dtype().is_scalar()) {
      // All lanes load the same element. Under a mask, it may be out of bounds if no lane is active.
      if (mask_.defined() && !first_lane_is_active() && !l->predicate.defined()) {
        Expr spread_index = broadcast(index, lanes_);
        return make<BufferLoad>({l->buffer, {spread_index}, mask_}, l.span());
      }
      if (index == l->indices[0]) return l;
      return make<BufferLoad>({l->buffer, {index}, l->predicate}, l.span());
    }
    if (l->buffer->dtype.is_vector()) return fail(Expr(l), "the elements of '" + l->buffer->name + "' are vectors");
    Expr predicate = is_touched(*l) ? taking_part_ : mask_;
    if (l->predicate.defined()) predicate = under(spread(l->predicate));
    if (!predicate.defined()) {
      if (Expr few = load_once(l); few.defined()) return few;
    }
    return make<BufferLoad>({l->buffer, {index}, predicate}, l.span());
  }

  /// Vectorizes P[k // 2]: elements that consecutive lanes share are loaded once.
  Expr load_once(const Ref<BufferLoad>& l) {
    const Expr& index = l->indices[0];
    if (effect_of(index) != Effect::kPure || names_vector(index)) return {};
    int64_t times = 0;
    visit(index, [&](const Ref<FloorDiv>& quotient) {
      if (uses_var(quotient->a, lane_)) times = std::gcd(times, const_int(quotient->b).value_or(1));
    });
    times = std::gcd(times, int64_t{lanes_});
    if (times < 2 || times == lanes_ || variables_.may_wrap(index)) return {};
    DataType type = lane_.dtype();
    Ref<Var> place = var("place", type), within = var("within", type);
    analyzer_.bind(place, zero(type), int_imm(type, lanes_ / times));
    analyzer_.bind(within, zero(type), int_imm(type, times));
    Expr lane = begin_ + place * int_imm(type, times) + within;
    Expr there = analyzer_.simplify(substitute(index, VarMap{{lane_, lane}}));
    if (uses_var(there, within)) return {};
    Expr first = substitute(there, VarMap{{place, zero(type)}});
    if (!analyzer_.can_prove_equal(there, first + cast(first.dtype(), place))) return {};
    Expr base = analyzer_.simplify(first);
    Expr few = make<BufferLoad>({l->buffer, {ramp(base, one(base.dtype()), static_cast<int>(lanes_ / times))}, Expr()},
                                l.span());
    std::vector<Expr> picks;
    for (int64_t i = 0; i < lanes_; ++i) picks.push_back(i32(i / times));
    return make<Shuffle>({{few}, std::move(picks)});
  }

  /// Vectorizes k // 2 or k % 2 if the first lane is at a multiple of two, so that lanes differ by constants.
  Expr of_constant_lanes(Kind kind, const Expr& a, const Expr& x, const Expr& y) {
    const Ramp* places = x.as<Ramp>();
    const Broadcast* same = y.as<Broadcast>();
    auto divisor = const_int(same ? same->value : y);
    if (!places || !divisor || *divisor < 2 || effect_of(a) != Effect::kPure || variables_.may_wrap(a)) return {};
    DataType type = places->base.dtype();
    Expr by = int_imm(type, *divisor);
    if (const_int(places->base) || !analyzer_.can_prove_equal(floormod(places->base, by), zero(type))) return {};
    Expr first = vector_binary(kind, ramp(zero(type), places->stride, lanes_), broadcast(by, lanes_));
    if (kind == Kind::kFloorMod) return first;
    return vector_binary(Kind::kAdd, broadcast(analyzer_.simplify(floordiv(places->base, by)), lanes_), first);
  }

  /// Whether the mask of a partial vector surely has an active lane.
  bool first_lane_is_active() {
    const LT* less = mask_.as<LT>();
    if (!less) return false;
    const Ramp* places = less->a.as<Ramp>();
    const Broadcast* end = less->b.as<Broadcast>();
    return places && end && analyzer_.can_prove_less(places->base, end->value);
  }

  Expr spread(const Expr& e) {
    if (!e.defined() || !reason.empty()) return e;
    if (!e.dtype().is_scalar()) return fail(e, "there are vectors inside of it already");
    const BinaryOperands operands = binary_operands(e);
    const Kind kind = e.kind();
    auto two = [&](const Expr& a, const Expr& b) -> Expr {
      Expr x = spread(a), y = spread(b);
      if (!reason.empty()) return e;
      if (kind == Kind::kFloorDiv || kind == Kind::kFloorMod) {
        if (Expr simple = of_constant_lanes(kind, a, x, y); simple.defined()) return simple;
      }
      if (is_division(kind)) y = divisor(y);
      return x == a && y == b ? e : vector_binary(kind, x, y);
    };
    switch (e.kind()) {
      case Kind::kAnd:
      case Kind::kOr:
        return both(e, *operands.a, *operands.b);
        TW_BINARY_KINDS_BUT_LOGIC(TW_CASE_OF)
        return two(*operands.a, *operands.b);
      case Kind::kVar: {
        return find_value_or(values_, e, e);
      }
      case Kind::kIntImm:
      case Kind::kFloatImm:
      case Kind::kStringImm:
        return e;
      case Kind::kNot: {
        Expr a = spread(e.as<Not>()->a);
        return a == e.as<Not>()->a ? e : Expr(make<Not>({a}, e.span()));
      }
      case Kind::kCast: {
        Expr value = spread(e.as<Cast>()->value);
        if (value == e.as<Cast>()->value) return e;
        DataType type = e.dtype().with_lanes(value.dtype().lanes);
        const Ramp* r = type.is_int() && type.bits >= value.dtype().bits ? value.as<Ramp>() : nullptr;
        if (r && (in_index_ || !variables_.may_wrap(e.as<Cast>()->value))) {
          return make<Ramp>({cast(type.element(), r->base), cast(type.element(), r->stride), r->lanes});
        }
        return cast(type, value);
      }
      case Kind::kSelect: {
        const Select& s = *e.as<Select>();
        return choose(e, spread(s.condition), spread(s.true_value), spread(s.false_value), s.condition, s.true_value,
                      s.false_value);
      }
      case Kind::kBufferLoad:
        return load(e.borrow<BufferLoad>());
      case Kind::kLet: {
        Let copy = *e.as<Let>();
        copy.value = spread(copy.value);
        if (copy.value.dtype() != copy.var.dtype()) copy.var = with_lanes_of(copy.var, copy.value);
        copy.body = spread(copy.body);
        return make(std::move(copy), e.span());
      }
      case Kind::kCall:
        return call(*e.as<Call>(), e);
      default:
        return fail(e, "an expression of kind " + kind_name(e.kind()) + " has no vector form");
    }
  }

  /// Makes a divisor safe for inactive lanes, whose divisor may be 0: masked loads return 0, and a uniform divisor may
  /// be 0 if no lane is active.
  Expr divisor(const Expr& y) {
    if (!mask_.defined() || !y.dtype().is_integral()) return y;
    const Broadcast* spread_out = y.as<Broadcast>();
    const Expr& same = spread_out ? spread_out->value : y;
    if (same.dtype().is_vector()) return make<Select>({mask_, y, broadcast(one(y.dtype().element()), lanes_)});
    if (const_int(same).value_or(0) != 0 || first_lane_is_active()) return y;
    // A uniform divisor stays uniform, which costs next to nothing.
    Expr safe = make<Select>({eq(same, 0), one(same.dtype()), same});
    return spread_out ? broadcast(safe, lanes_) : safe;
  }

  /// Vectorizes `and` and `or`: the right side reads and divides only in lanes where the left side does not decide.
  Expr both(const Expr& e, const Expr& a, const Expr& b) {
    Expr x = spread(a), y = spread(b);
    if (!reason.empty() || (x == a && y == b)) return e;
    y = under(e.is<And>() ? to_lanes(x, lanes_) : logical_not(to_lanes(x, lanes_)), b);
    return vector_binary(e.kind(), x, y);
  }

  Expr choose(const Expr& e, const Expr& condition, const Expr& yes, const Expr& no, const Expr& old_condition,
              const Expr& old_yes, const Expr& old_no) {
    if (!reason.empty() || (condition == old_condition && yes == old_yes && no == old_no)) return e;
    int lanes = condition.dtype().is_vector() || yes.dtype().is_vector() || no.dtype().is_vector() ? lanes_ : 1;
    return make<Select>(
        {condition.dtype().is_vector() ? condition : to_lanes(condition, 1), to_lanes(yes, lanes), to_lanes(no, lanes)},
        e.span());
  }

  Expr call(const Call& c, const Expr& e) {
    Intrinsic intrinsic = intrinsic_of(c);
    std::vector<Expr> args;
    for (const NodeRef& arg : c.args) args.emplace_back(arg);
    if (intrinsic == Intrinsic::k_if_then_else) return lazy(args, e);
    bool changed = false;
    std::vector<NodeRef> spread_args;
    for (const Expr& arg : args) {
      Expr after = spread(arg);
      changed |= after != arg;
      spread_args.push_back(after);
    }
    if (!reason.empty() || !changed) return e;
    bool is_vector = false;
    for (const NodeRef& arg : spread_args) is_vector |= Expr(arg).dtype().is_vector();
    if (!is_vector) return make<Call>({c.dtype, c.op, spread_args}, e.span());
    if (intrinsic == Intrinsic::kUnknown || intrinsic_row(intrinsic).effect == Effect::kUpdateState ||
        intrinsic == Intrinsic::k_address_of || intrinsic == Intrinsic::k_tvm_access_ptr ||
        intrinsic == Intrinsic::k_call_pure_extern || intrinsic == Intrinsic::k_call_llvm_pure_intrin) {
      return fail(e, "a call of " + name_of(c) + " has no vector form");
    }
    for (NodeRef& arg : spread_args) arg = to_lanes(Expr(arg), lanes_);
    return make<Call>({c.dtype.with_lanes(lanes_), c.op, spread_args}, e.span());
  }

  static std::string name_of(const Call& c) {
    if (const Op* op = c.op.as<Op>()) return op->name;
    return "a function";
  }

  /// Vectorizes if_then_else, which evaluates one value only: loads of the other value are masked.
  Expr lazy(const std::vector<Expr>& args, const Expr& e) {
    Expr condition = spread(args[0]);
    if (!reason.empty()) return e;
    if (condition.dtype().is_scalar()) {
      Expr yes = spread(args[1]), no = spread(args[2]);
      if (!reason.empty() || (condition == args[0] && yes == args[1] && no == args[2])) return e;
      int lanes = yes.dtype().is_vector() || no.dtype().is_vector() ? lanes_ : 1;
      return if_then_else(condition, to_lanes(yes, lanes), to_lanes(no, lanes));
    }
    Expr yes = under(condition, args[1]), no = under(make<Not>({condition}), args[2]);
    return make<Select>({condition, to_lanes(yes, lanes_), to_lanes(no, lanes_)}, e.span());
  }

  const Ref<Var> lane_;
  const Expr begin_;
  int lanes_;
  const std::unordered_set<NodeRef>& private_memory_;
  IndexVariables& variables_;
  arith::Analyzer analyzer_;
  Expr mask_;
  Expr taking_part_;  ///< part of the mask from statements, without conditions within values
  std::vector<std::pair<Ref<Buffer>, Expr>> touched_;
  VarMap values_;
  bool in_index_ = false;
};

/// Largest number of lanes with a branch each, for elements without masked accesses, or strided elements without gather
/// and scatter.
constexpr int64_t kMostBranches = 64;

/// Whether a scalar loop is smaller and as fast, as for most remainders of vectorized loops.
bool branches_too_much(const Stmt& vector, const Stmt& body, const Target& target) {
  if (!target.has("avx") || calls_elementary_function(body)) return false;
  int64_t branches = 0;
  bool registers = false;
  auto note = [&](const Ref<Buffer>& buffer, const Expr& index, const Expr& predicate, const char* for_apart) {
    registers |= is_local(*buffer);
    if (!predicate.defined() || predicate.dtype().is_scalar()) return;
    const Ramp* places = index.as<Ramp>();
    bool together = !index.dtype().is_vector() || (places && const_int(places->stride) == 1);
    bool masked =
        together ? has_masked_access(target, buffer->dtype) : buffer->dtype.bits >= 32 && target.has(for_apart);
    if (!masked) branches += predicate.dtype().lanes;
  };
  visit(
      vector, [&](const Ref<BufferLoad>& load) { note(load->buffer, load->indices[0], load->predicate, "avx2"); },
      [&](const Ref<BufferStore>& store) { note(store->buffer, store->indices[0], store->predicate, "avx512f"); });
  return branches > kMostBranches && !registers;
}

}  // namespace

PassResult vectorize_loops(const Ref<PrimFunc>& func, PassContext& context) {
  auto serial = [](const Ref<For>& loop) -> Stmt { return with_field(loop, &For::kind, ForKind::kSerial); };
  std::unordered_set<NodeRef> memory = private_memory(*func, context);
  arith::Analyzer ranges;
  IndexVariables variables(*func, ranges);
  auto vectorized = [&](const Ref<For>& loop, const Ref<For>& inner) -> Stmt {
    if (loop->kind != ForKind::kVectorized) return inner;
    auto lanes = const_int(inner->extent);
    if (lanes && *lanes == 1) return substitute_folding(inner->body, inner->loop_var, inner->min);
    std::string reason = "its extent is not a constant";
    if (lanes && *lanes > 1) {
      LaneSpreader spreader(inner->loop_var, inner->min, static_cast<int>(*lanes), memory, variables);
      try {
        Stmt vector = spreader.run(inner->body);
        if (spreader.reason.empty()) {
          return branches_too_much(vector, inner->body, context.target) ? serial(inner) : vector;
        }
        reason = spreader.reason;
      } catch (const Exception& e) {
        // The mask is repeated in each load under it, so nested conditions make vector code many times larger.
        if (e.diagnostic().code != "ir/too-large" && e.diagnostic().code != "ir/too-deep") throw;
        reason = e.diagnostic().message;
      }
    }
    const std::string& name = loop->loop_var->name_hint;
    if (context.vectorized_loops.count({name, loop.span()}) != 0) {
      context.notes.push_back(
          {"lower/not-vectorized", context.function, "loop '" + name + "' is not vectorized: " + reason, loop.span()});
    } else {  // the loop was created by a pass, perhaps only for the last vector
      context.notes.push_back({"lower/scalar-loop", context.function,
                               "some iterations of loop '" + name + "' have no vector code: " + reason, loop.span()});
    }
    return serial(inner);
  };
  Stmt body = rewrite(
      func->body,
      [&](const Ref<For>& loop, Rewriter& r) -> Stmt {
        ranges.bind(loop->loop_var, loop->min, loop->extent);
        variables.enter(*loop);
        Stmt result = vectorized(loop, r.descend(loop));
        variables.leave(*loop);
        return result;
      },
      [&](const Ref<LetStmt>& let, Rewriter& r) -> Stmt {
        if (let->value.dtype().is_integral()) variables.note(let->var, let->value);
        return r.descend(let);
      });
  return with_body(func, std::move(body));
}

}  // namespace tilewright::lower
