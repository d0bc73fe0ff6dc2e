// Vectorize argmax and argmin reductions: the greatest or least value of a row, and its position.
//
//   Before                                          After (floats)
//   for k in range(1000):                           P[lane] = lane; N[lane] = -inf; odd[lane] = False
//     i = T.Select(V[r] >= A[r, k], I[r], k)        for k_0 in range(15):
//     v = T.Select(V[r] >= A[r, k], V[r], A[r, k])    for lane in T.vectorized(64):
//     I[r] = i                                          number = A[r, k_0 * 64 + lane]
//     V[r] = v                                          keep = N[lane] >= number
//                                                       P[lane] = T.Select(keep, P[lane], k_0 * 64 + lane)
//                                                       odd[lane] = odd[lane] or number != number
//                                                       N[lane] = T.Select(keep, N[lane], number)
//                                                   ... once more, for k from 1000 - 64 on
//                                                   best = the greatest of N; place = the first P of those
//                                                   if any odd or V[r] != V[r]:
//                                                     the loop as it was
//                                                   else:
//                                                     keep = V[r] >= best
//                                                     I[r] = T.Select(keep, I[r], place)
//                                                     V[r] = T.Select(keep, V[r], best)
//
// Ties are resolved as in the program: to the first, the last, or the smaller index. Steps with NaN depend on their
// order, so rows that contain NaN are computed again by the scalar loop. Of 0.0 and -0.0, which compare equal, either
// may be stored. Elements that the last vector reads a second time do not change the result.
//
// Needs      flat buffers, simple indices
// Ensures    the same results, but for the signs of zeros
// Placement  before vectorize_plain_loops, which would vectorize across rows and gather contiguous elements
#include <algorithm>
#include <limits>

#include "arith/analyzer.h"
#include "ir/annotations.h"
#include "ir/build.h"
#include "ir/structural.h"
#include "ir/substitute.h"
#include "ir/traverse.h"
#include "lower/loops/cut_loops.h"
#include "lower/loops/index_variables.h"
#include "lower/passes.h"
#include "lower/vector/join_lanes.h"
#include "lower/vector/lane_independence.h"
#include "lower/vector/vector_math.h"
#include "support/ranges.h"

namespace tilewright::lower {
namespace {

/// Minimum number of vectors per row, below which the final reduction of lanes does not pay.
constexpr int64_t kLeastVectors = 3;

/// Which of several equal values wins.
enum class Tie { kFirst, kLast, kSmallerPlace };

/// places[at], numbers[at] become (place, number) where the number is better.
struct Choice {
  Ref<Buffer> places, numbers;
  Expr at, place, number;
  bool greatest = true;
  Tie tie = Tie::kFirst;

  Expr old_place() const { return load(places, {at}); }
  Expr old_number() const { return load(numbers, {at}); }
  /// Whether `a` is better than `b`.
  Expr better(const Expr& a, const Expr& b) const { return greatest ? gt(a, b) : lt(a, b); }
  Expr not_worse(const Expr& a, const Expr& b) const { return greatest ? ge(a, b) : le(a, b); }
};

/// Recognizes the forms in which programs write argmax and argmin.
class Match {
 public:
  std::optional<Choice> run(const Stmt& body) {
    const IfThenElse* branch = body.as<IfThenElse>();
    if (branch ? branch->else_case.defined() || !take_stores(branch->then_case) : !take_lets(body)) return {};
    for (bool swapped : {false, true}) {
      const auto& [place, number] = swapped ? std::pair(stores_[1], stores_[0]) : std::pair(stores_[0], stores_[1]);
      choice_ = Choice{place.buffer, number.buffer, place.index, {}, {}, true, Tie::kFirst};
      bool found = branch ? by_branch(*branch, place.value, number.value) : by_values(place.value, number.value);
      if (found) return choice_;
    }
    return {};
  }

 private:
  struct Stored {
    Ref<Buffer> buffer;
    Expr index, value;
  };

  bool take_stores(const Stmt& body) {
    const SeqStmt* all = body.as<SeqStmt>();
    if (!all || all->seq.size() != 2) return false;
    for (const Stmt& each : all->seq) {
      const BufferStore* store = each.as<BufferStore>();
      if (!store || store->predicate.defined() || store->indices.size() != 1) return false;
      stores_.push_back({store->buffer, store->indices[0], store->value});
    }
    return same_expr(stores_[0].index, stores_[1].index) && stores_[0].buffer->data != stores_[1].buffer->data;
  }

  /// Matches two let variables: both values are computed before the first store.
  bool take_lets(Stmt body) {
    VarMap values;
    while (const LetStmt* let = body.as<LetStmt>()) {
      bool first =
          none_of(values, [&](const auto& known) { return uses_var(let->value, known.first.template cast<Var>()); });
      if (!first) return false;
      values[let->var] = let->value;
      body = let->body;
    }
    if (values.size() != 2 || !take_stores(body)) return false;
    for (Stored& store : stores_) {
      auto* bound = find_value(values, store.value);
      if (!bound) return false;
      store.value = Expr(*bound);
    }
    return stores_[0].value != stores_[1].value;
  }

  /// if number > numbers[at]: both are replaced
  bool by_branch(const IfThenElse& branch, const Expr& place, const Expr& number) {
    choice_.place = place;
    choice_.number = number;
    for (bool greatest : {true, false}) {
      choice_.greatest = greatest;
      if (by_condition({branch.condition, false})) return true;
    }
    return false;
  }

  bool by_values(const Expr& place, const Expr& number) {
    auto kept = take(place, choice_.old_place(), choice_.place);
    if (!kept) return false;
    const Expr old = choice_.old_number();
    const Max* greatest = number.as<Max>();
    const Min* least = number.as<Min>();
    if (greatest || least) {
      const Expr &a = greatest ? greatest->a : least->a, &b = greatest ? greatest->b : least->b;
      if (!same_expr(a, old) && !same_expr(b, old)) return false;
      choice_.number = same_expr(a, old) ? b : a;
      choice_.greatest = greatest != nullptr;
      return by_condition(*kept);
    }
    Expr value;
    auto keeps_number = take(number, old, value);
    if (!keeps_number) return false;
    choice_.number = value;
    // For equal numbers, storing either one is the same.
    for (bool greatest_one : {true, false}) {
      choice_.greatest = greatest_one;
      if (compares(*keeps_number, true) || compares(*keeps_number, false)) return by_condition(*kept);
    }
    return false;
  }

  struct Condition {
    Expr value;
    bool keeps;  ///< the old value, where it holds; else the new one
  };

  /// The condition of a select between the old value and a new one.
  static std::optional<Condition> take(const Expr& value, const Expr& old, Expr& other) {
    const Call* call = value.as<Call>();
    const Select* select = value.as<Select>();
    bool lazy = call && intrinsic_of(*call) == Intrinsic::k_if_then_else;
    if (!select && !lazy) return {};
    Expr condition = select ? select->condition : call->arg(0);
    Expr yes = select ? select->true_value : call->arg(1);
    Expr no = select ? select->false_value : call->arg(2);
    if (same_expr(yes, old) == same_expr(no, old)) return {};
    bool keeps = same_expr(yes, old);
    other = keeps ? no : yes;
    return Condition{condition, keeps};
  }

  /// The condition under which the old number is kept: strictly better than the new one, or not worse.
  bool compares(const Condition& condition, bool strictly) const {
    const Expr old = choice_.old_number();
    // A condition that keeps the old value if it holds replaces it if the negation holds.
    bool strict = condition.keeps ? strictly : !strictly;
    bool old_is_better = condition.keeps;
    const Expr &first = old_is_better ? old : choice_.number, &second = old_is_better ? choice_.number : old;
    return is_relation(condition.value, first, second, strict);
  }

  /// first > second, or >=; for the least, <.
  bool is_relation(const Expr& condition, const Expr& first, const Expr& second, bool strict) const {
    auto is = [&](const auto* n, const Expr& a, const Expr& b) {
      return n && same_expr(n->a, a) && same_expr(n->b, b);
    };
    const Expr &high = choice_.greatest ? first : second, &low = choice_.greatest ? second : first;
    if (strict) return is(condition.as<GT>(), high, low) || is(condition.as<LT>(), low, high);
    return is(condition.as<GE>(), high, low) || is(condition.as<LE>(), low, high);
  }

  /// Determines how ties are resolved from the condition of the position.
  bool by_condition(const Condition& condition) {
    if (compares(condition, false)) {
      choice_.tie = Tie::kFirst;
      return true;
    }
    if (compares(condition, true)) {
      choice_.tie = Tie::kLast;
      return true;
    }
    choice_.tie = Tie::kSmallerPlace;
    const Or* either = condition.value.as<Or>();
    if (!either) return false;
    for (bool swapped : {false, true}) {
      const Expr &better = swapped ? either->b : either->a, &tie = swapped ? either->a : either->b;
      if (compares({better, condition.keeps}, condition.keeps) && breaks_tie(tie, condition.keeps)) return true;
    }
    return false;
  }

  /// Whether the condition holds for equal numbers whose selected position is the smaller one.
  bool breaks_tie(const Expr& condition, bool keeps) const {
    const And* both = condition.as<And>();
    if (!both) return false;
    const Expr old = choice_.old_number(), old_place = choice_.old_place();
    auto equal = [&](const Expr& e) {
      const EQ* n = e.as<EQ>();
      return n && ((same_expr(n->a, old) && same_expr(n->b, choice_.number)) ||
                   (same_expr(n->b, old) && same_expr(n->a, choice_.number)));
    };
    const Expr &small = keeps ? old_place : choice_.place, &large = keeps ? choice_.place : old_place;
    auto smaller = [&](const Expr& e) {
      const LT* less = e.as<LT>();
      const GT* more = e.as<GT>();
      return (less && same_expr(less->a, small) && same_expr(less->b, large)) ||
             (more && same_expr(more->b, small) && same_expr(more->a, large));
    };
    return (equal(both->a) && smaller(both->b)) || (equal(both->b) && smaller(both->a));
  }

  std::vector<Stored> stores_;
  Choice choice_;
};

class ChoiceVectorizer : private LoopContext {
 public:
  ChoiceVectorizer(const PrimFunc& func, PassContext& context)
      : LoopContext(func), target_(context.target), private_(private_memory(func, context)) {}

  Stmt run(const Stmt& body) {
    return rewrite(
        body, [&](const Ref<For>& loop, Rewriter& r) -> Stmt { return visit_loop(loop, r); },
        [&](const Ref<LetStmt>& let, Rewriter& r) -> Stmt {
          note(*let);
          return r.descend(let);
        },
        [&](const Ref<BufferStore>& store, Rewriter&) -> Stmt { return store; });
  }

 private:
  Stmt visit_loop(const Ref<For>& loop, Rewriter& r) {
    in_vector_ += loop->kind == ForKind::kVectorized;
    Stmt after = inside(*loop, [&] {
      Stmt vector;
      if (loop->kind == ForKind::kSerial && loop->annotations.empty() && in_vector_ == 0) {
        auto choice = Match().run(loop->body);
        if (choice && fits(*choice, loop)) vector = vectors(*choice, loop);
      }
      return vector.defined() ? vector : r.descend(loop);
    });
    in_vector_ -= loop->kind == ForKind::kVectorized;
    return after;
  }

  /// Whether lanes may search for the best number independently.
  bool fits(Choice& choice, const Ref<For>& loop) {
    DataType place = choice.places->dtype, number = choice.numbers->dtype;
    bool types =
        place.is_scalar() && number.is_scalar() && (place.is_int() || place.is_uint()) && place.bits >= 8 &&
        place.bits <= 64 && choice.place.dtype() == place && choice.number.dtype() == number &&
        (number.is_float() ? number.bits >= 16 : number.is_integral() && number.bits >= 8 && number.bits <= 64);
    if (!types || effect_of(choice.at) != Effect::kPure || uses_var(choice.at, loop->loop_var)) return false;
    if (!is_readable(choice) || !is_contiguous_along(choice, loop)) return false;
    narrow_place(choice);
    return grows(choice, loop);
  }

  /// Checks that the number reads only private buffers other than the results, and calls only pure functions with a
  /// vector form.
  bool is_readable(const Choice& choice) {
    bool apart = private_.count(choice.places->data) && private_.count(choice.numbers->data);
    visit(choice.number, [&](const Ref<BufferLoad>& load) {
      const Ref<Var>& data = load->buffer->data;
      apart = apart && private_.count(data) && data != choice.places->data && data != choice.numbers->data &&
              !load->predicate.defined() && load->buffer->dtype.is_scalar();
    });
    visit(choice.number, [&](const Ref<Call>& call) {
      Intrinsic intrinsic = intrinsic_of(*call);
      apart = apart && intrinsic != Intrinsic::kUnknown && intrinsic != Intrinsic::k_address_of &&
              intrinsic_row(intrinsic).effect == Effect::kPure && intrinsic_row(intrinsic).vector_bits > 0;
    });
    return apart;
  }

  /// Whether neighbors in the row are neighbors in memory.
  bool is_contiguous_along(const Choice& choice, const Ref<For>& loop) {
    LaneAccesses accesses(loop, private_, analyzer_);
    bool moves = false, together = true;
    for (const LaneAccess& access : accesses.all()) {
      if (access.buffer->data == choice.places->data || access.buffer->data == choice.numbers->data) continue;
      moves |= access.stride == 1;
      together = together && (access.stride == 0 || access.stride == 1);
    }
    return moves && together;
  }

  /// Returns the type of positions in lanes.
  void narrow_place(Choice& choice) {
    const Cast* converted = choice.place.as<Cast>();
    if (!converted || !converted->value.dtype().is_int() || converted->value.dtype().bits < 32) return;
    DataType outer = choice.place.dtype();
    arith::ConstIntBound values = analyzer_.const_int_bound(converted->value);
    bool fits = outer.is_int() && outer.bits >= converted->value.dtype().bits;
    fits = fits || (values.min_value >= int_min(outer) && values.max_value <= int_max(outer));
    if (fits) choice.place = converted->value;
  }

  /// Whether later iterations have greater places.
  bool grows(const Choice& choice, const Ref<For>& loop) {
    if (effect_of(choice.place) != Effect::kPure || variables_.may_wrap(choice.place)) return false;
    const Ref<Var>& v = loop->loop_var;
    auto step = const_int(analyzer_.simplify(substitute(choice.place, {{v, v + 1}}) - choice.place));
    return step && *step > 0;
  }

  /// Returns the vectorized loop; nothing if it is too short.
  Stmt vectors(const Choice& choice, const Ref<For>& loop) {
    DataType type = loop->loop_var.dtype();
    const int bits = std::max<int>(choice.place.dtype().bits, widest_element(make<Evaluate>({choice.number})));
    const int64_t native = vector_lanes(target_, std::max<int>(bits, choice.number.dtype().bits));
    auto extent = const_int(loop->extent);
    if (native < 2 || (extent && *extent < kLeastVectors * native)) return {};
    // Each vector in flight needs a register for numbers, one for positions, and one or two temporaries.
    const int64_t in_flight = std::min<int64_t>(kCutRegisters, target_.vector_registers / 8);
    int64_t width = std::max<int64_t>(in_flight, 1) * native;
    while (extent && width > *extent) width /= 2;

    Lanes lanes(choice, width, target_);
    Ref<Var> strip = var(loop->loop_var->name_hint + "_0", type);
    Expr strips = extent ? Expr(int_imm(type, *extent / width)) : floordiv(loop->extent, constant(type, width));
    std::vector<Stmt> all{lanes.begin(*loop),
                          tilewright::loop(strip, strips, lanes.step(*loop, loop->min + strip * width))};
    if (extent && *extent % width != 0) all.push_back(lanes.step(*loop, loop->min + (*extent - width)));
    Stmt rest;
    if (!extent) rest = as_written(loop, strips * width);
    all.push_back(lanes.end(rest, as_written(loop, zero(type))));
    Stmt after = lanes.with_memory(seq(std::move(all)));
    if (extent) return after;
    return make<IfThenElse>({ge(loop->extent, constant(type, width)), after, as_written(loop, zero(type))});
  }

  /// Returns the scalar loop from iteration `done` on, marked so that later passes do not vectorize it.
  static Stmt as_written(const Ref<For>& loop, const Expr& done) {
    For copy = *remainder(loop, done);
    copy.annotations.set(kUnrollHint, i32(1));
    return make(std::move(copy));
  }

  /// The best pair of each lane.
  class Lanes {
   public:
    Lanes(const Choice& choice, int64_t width, const Target& target) : choice_(choice), width_(width) {
      auto lanes = [&](DataType type, const std::string& name) {
        return decl_buffer({i32(width)}, type, name + "_lanes", "local");
      };
      places_ = lanes(choice.place.dtype(), choice.places->name);
      numbers_ = lanes(choice.numbers->dtype, choice.numbers->name);
      if (!choice.numbers->dtype.is_float()) return;
      // Without mask registers, comparisons give vectors of integers as wide as the operands.
      bool masks = target.has("avx512f");
      odd_ = lanes(masks ? DataType::bool_() : DataType::int_(choice.numbers->dtype.bits), "nan");
    }

    /// Stores the initial pair of each lane: that of the lane's first iteration, or one that any pair replaces.
    Stmt begin(const For& loop) const {
      return in_lanes([&](const Expr& lane) {
        Expr at = loop.min + cast(loop.loop_var.dtype(), lane);
        std::vector<Stmt> stores{store(places_, substitute(choice_.place, {{loop.loop_var, at}}), {lane}),
                                 store(numbers_, worst(), {lane})};
        if (odd_.defined()) stores.push_back(store(odd_, zero(odd_->dtype), {lane}));
        return seq(std::move(stores));
      });
    }

    /// Returns the vector iterations from `start` on.
    Stmt step(const For& loop, const Expr& start) const {
      return in_lanes([&](const Expr& lane) {
        Expr at = start + cast(loop.loop_var.dtype(), lane);
        Ref<Var> number = var("number", numbers_->dtype), taken = var("taken", DataType::bool_());
        Expr old = load(numbers_, {lane});
        bool last = choice_.tie == Tie::kLast;
        Expr place = substitute(choice_.place, {{loop.loop_var, at}});
        std::vector<Stmt> stores{store(places_, select(taken, place, load(places_, {lane})), {lane})};
        if (odd_.defined()) {
          stores.push_back(store(odd_, either(load(odd_, {lane}), ne(number, number)), {lane}));
        }
        // Use the form of the max instruction, with a separate comparison for the locations.
        Expr best = last ? select(choice_.better(old, number), old, number) : select(taken, number, old);
        stores.push_back(store(numbers_, best, {lane}));
        Expr better = last ? choice_.not_worse(number, old) : choice_.better(number, old);
        Stmt body = make<LetStmt>({taken, better, seq(std::move(stores))});
        return make<LetStmt>({number, substitute(choice_.number, {{loop.loop_var, at}}), body});
      });
    }

    /// Reduces the lanes to the result, and continues with the remaining iterations; the alternative is the scalar
    /// loop.
    Stmt end(const Stmt& rest, const Stmt& as_written) const {
      Bindings bound;
      const int width = static_cast<int>(width_);
      auto all = [&](const Ref<Buffer>& lanes) { return load(lanes, {ramp(i32(0), i32(1), width)}); };
      Expr best = join_lanes(
          all(numbers_), [&](const Expr& a, const Expr& b) { return choice_.greatest ? max(a, b) : min(a, b); }, bound);
      DataType counted = places_->dtype;
      bool last = choice_.tie == Tie::kLast;
      Expr none = last ? min_value(counted) : max_value(counted);
      Expr candidates = select(eq(all(numbers_), broadcast(best, width)), all(places_), broadcast(none, width));
      Expr place =
          join_lanes(candidates, [&](const Expr& a, const Expr& b) { return last ? max(a, b) : min(a, b); }, bound);
      place = cast(choice_.places->dtype, place);
      Stmt merged = merge(place, best);
      if (rest.defined()) merged = seq({merged, rest});
      if (odd_.defined()) {
        Expr any = join_lanes(all(odd_), [&](const Expr& a, const Expr& b) { return either(a, b); }, bound);
        if (!any.dtype().is_bool()) any = ne(any, 0);
        Expr old = choice_.old_number();
        merged = make<IfThenElse>({logical_or(any, ne(old, old)), as_written, merged});
      }
      return with_bindings(bound, merged);
    }

    Stmt with_memory(Stmt body) const {
      for (const Ref<Buffer>& lanes : {places_, numbers_, odd_}) {
        if (!lanes.defined()) continue;
        Stmt inside = make<DeclBuffer>({lanes, body});
        body = make<Allocate>({lanes->data, lanes->dtype, lanes->shape, bool_imm(true), inside, {}});
      }
      return body;
    }

   private:
    template <class Body>
    Stmt in_lanes(const Body& body) const {
      Ref<Var> lane = var("lane");
      return tilewright::loop(lane, i32(width_), body(lane), ForKind::kVectorized);
    }

    Expr either(const Expr& odd, Expr other) const {
      if (odd_->dtype.is_bool()) return logical_or(odd, other);
      if (other.dtype().is_bool()) other = select(other, constant(odd_->dtype, -1), zero(odd_->dtype));
      return call(Intrinsic::k_bitwise_or, {odd, other});
    }

    Expr worst() const {
      DataType type = numbers_->dtype;
      constexpr double kInfinity = std::numeric_limits<double>::infinity();
      if (type.is_float()) return constant(type, choice_.greatest ? -kInfinity : kInfinity);
      return choice_.greatest ? min_value(type) : max_value(type);
    }

    /// Selects between the previous pair and that of the lanes.
    Stmt merge(const Expr& place, const Expr& number) const {
      Expr old = choice_.old_number(), old_place = choice_.old_place();
      Expr kept = choice_.tie == Tie::kFirst ? choice_.not_worse(old, number) : choice_.better(old, number);
      if (choice_.tie == Tie::kSmallerPlace)
        kept = logical_or(kept, logical_and(eq(old, number), lt(old_place, place)));
      Ref<Var> keep = var("keep", DataType::bool_());
      Stmt stores = seq({store(choice_.places, select(keep, old_place, place), {choice_.at}),
                         store(choice_.numbers, select(keep, old, number), {choice_.at})});
      return make<LetStmt>({keep, kept, stores});
    }

    const Choice& choice_;
    int64_t width_;
    Ref<Buffer> places_, numbers_, odd_;
  };

  const Target& target_;
  std::unordered_set<NodeRef> private_;
  int in_vector_ = 0;
};

}  // namespace

PassResult vectorize_choices(const Ref<PrimFunc>& func, PassContext& context) {
  return with_body(func, ChoiceVectorizer(*func, context).run(func->body));
}

}  // namespace tilewright::lower
