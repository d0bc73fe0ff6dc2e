// Unroll and jam loops over results of vectorized reductions, and reduce the lanes of several results together.
//
//   Before                                  After
//   for p in range(n):                      for p_0 in range(n // 8):
//     S[p] = 0.0                              S_lanes = T.allocate([64], "float32", "local"); all are -0.0
//     for k in T.vectorized(32):              for r, k_0 in T.grid(8, 4):  # unrolled
//       S[p] = S[p] + X[k] * Y[p * 32 + k]      for k in T.vectorized(8):
//                                                 S_lanes[r * 8 + k] = S_lanes[r * 8 + k] +
//                                                     X[k_0 * 8 + k] * Y[(p_0 * 8 + r) * 32 + k_0 * 8 + k]
//                                             lanes = T.Shuffle([S_lanes[0:8], S_lanes[32:40]], [0, 1, 2, 3, 12, ...])
//                                               + T.Shuffle([S_lanes[0:8], S_lanes[32:40]], [4, 5, 6, 7, 8, ...]); ...
//                                             S[p_0 * 8:p_0 * 8 + 8] = 0.0 + lanes_6
//                                           if n % 8 >= 4: ...  # 4 results
//                                           if n % 4 > 0: ...  # one by one
//
// A short reduction spends more time on the sum of its lanes than on its products: 8 vectors of 8 lanes take 48
// shuffles and additions one by one, and 21 together. Each step takes two vectors and leaves one, which has half as
// many lanes for each of twice as many results. Besides, the operand that all results share is loaded once, and as many
// accumulators hide the latency of additions.
//
// Needs      flat buffers; bounds of loops that the loops do not change (bind_loop_bounds)
// Ensures    the same results are stored; sums and products of floats are rounded in another order, for which the
//            program asks by vectorizing the reduction
// Placement  before vectorize_reductions, which does the remaining results one by one
#include <algorithm>
#include <optional>

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
#include "lower/x86/form_dot_products.h"

namespace tilewright::lower {
namespace {

/// Number of results that are reduced together: in short reductions, and in longer ones.
constexpr int64_t kJamFactor = 8, kHalfJamFactor = 4;
/// Maximum number of vectors of a short reduction. In longer ones, the sum of the lanes takes a small part of the time,
/// and the hardware prefetches fewer streams of memory better.
constexpr int64_t kShortVectors = 4;
/// Maximum number of vectors of a reduction that is jammed.
constexpr int64_t kMaxVectors = 32;
/// Maximum number of vectors of one result that are added before those of the next result. Their other operand, which
/// all results share, stays in registers, and each result reads whole cache lines at a time.
constexpr int64_t kChunkVectors = 8;

/// A loop over contiguous results, each of which is reduced by a vectorized loop.
struct Results {
  Ref<For> loop, reduction;
  Ref<BufferStore> store;
  ReductionStep step;
  Expr initial_value;            ///< null: the value in memory
  std::vector<Stmt> prefetches;  ///< of one iteration
  int64_t lanes = 0;
};

/// Reduces the lanes of each vector, and returns a vector with one lane per input vector. There are at least as many
/// lanes as vectors; both are powers of two. The steps are appended to `bound`.
Expr join_vectors(std::vector<Expr> vectors, const ReductionStep& step, Bindings& bound) {
  auto name = [&](const Expr& value) {
    bound.emplace_back(var("lanes", value.dtype()), value);
    return Expr(bound.back().first);
  };
  for (Expr& vector : vectors) vector = name(vector);
  int lanes = vectors[0].dtype().lanes, segment = lanes;
  // A segment has the partial results of one result; a pair of vectors gives the lower and the upper half of each.
  for (; vectors.size() > 1; segment /= 2) {
    std::vector<Expr> kept, swapped;
    for (int i = 0; i < lanes; ++i) {
      const bool is_low = i % segment < segment / 2;
      kept.push_back(i32(is_low ? i : lanes + i));
      swapped.push_back(i32(is_low ? i + segment / 2 : lanes + i - segment / 2));
    }
    const size_t half = vectors.size() / 2;
    std::vector<Expr> next;
    for (size_t i = 0; i < half; ++i) {
      const std::vector<Expr> pair{vectors[i], vectors[half + i]};
      next.push_back(name(step.combine(make<Shuffle>({pair, kept}), make<Shuffle>({pair, swapped}))));
    }
    vectors = std::move(next);
  }
  for (; segment > 1; segment /= 2, lanes /= 2) {
    std::vector<Expr> even, odd;
    for (int i = 0; i < lanes; i += 2) {
      even.push_back(i32(i));
      odd.push_back(i32(i + 1));
    }
    vectors[0] = name(step.combine(make<Shuffle>({{vectors[0]}, even}), make<Shuffle>({{vectors[0]}, odd})));
  }
  return vectors[0];
}

class ReductionJammer : private LoopContext {
 public:
  ReductionJammer(const PrimFunc& func, const PassContext& context)
      : LoopContext(func), target_(context.target), private_(private_memory(func, context)) {}

  Stmt run(const Stmt& body) {
    return rewrite(
        body,
        [&](const Ref<For>& loop, Rewriter& r) -> Stmt {
          if (loop->kind == ForKind::kVectorized) return loop;
          auto results = find(loop);
          return results ? jammed(*results) : inside(*loop, [&] { return Stmt(r.descend(loop)); });
        },
        [&](const Ref<LetStmt>& let, Rewriter& r) -> Stmt {
          note(*let);
          return r.descend(let);
        });
  }

 private:
  /// Describes the loop if its iterations are independent reductions into contiguous elements.
  std::optional<Results> find(const Ref<For>& loop) {
    if (loop->kind != ForKind::kSerial || !loop->annotations.empty()) return {};
    if (const_int(loop->extent)) return {};  // schedules tile such loops
    std::vector<Stmt> body{loop->body};
    if (const SeqStmt* all = loop->body.as<SeqStmt>()) body = all->seq;
    const For* reduction = body.back().as<For>();
    if (!reduction || reduction->kind != ForKind::kVectorized || !reduction->body.as<BufferStore>()) return {};
    const Ref<For> last = body.back().cast<For>();
    const auto store = last->body.cast<BufferStore>();
    return inside(*loop, [&]() -> std::optional<Results> {
      auto step = inside(*last, [&] { return lane_step(*store, analyzer_); });
      const int64_t lanes = vector_lanes(target_, store->buffer->dtype.bits);
      if (!step || !has_vector_length(*last, store->buffer->dtype, *step, lanes) ||
          !are_contiguous(*loop, *last, store->indices[0])) {
        return {};
      }
      Results results{loop, last, store, *step, {}, {}, lanes};
      body.pop_back();
      if (!body.empty()) results.initial_value = initial_value_of(body.back(), *store, loop->loop_var);
      if (results.initial_value.defined()) body.pop_back();
      results.prefetches = body;
      body.push_back(last);
      return are_independent(seq(body), *store) ? std::optional(results) : std::nullopt;
    });
  }

  /// Whether the reduction has the length of a few vectors, and its element type has shuffles.
  bool has_vector_length(const For& reduction, const DataType& type, const ReductionStep& step, int64_t lanes) const {
    const auto steps = const_int(reduction.extent);
    if (!steps || *steps < lanes || *steps > kMaxVectors * lanes || lanes < 2) return false;
    if (type.bits < 32 || calls_elementary_function(reduction.body)) return false;
    bool fits = true;  // lanes that only feed indices need no vector of this type
    visit(
        step.operand(), [&](const Ref<BufferLoad>& load, Visitor&) { fits &= load->buffer->dtype.bits <= type.bits; },
        [&](const Ref<Cast>& converted) { fits &= converted->dtype.bits <= type.bits; });
    // group_of() == 1: no dot-product instruction (dot4) computes it better.
    return fits && target_.vector_registers >= 2 * kJamFactor &&
           (!step.is_sum() || group_of(step.operand(), target_) == 1);
  }

  /// Whether consecutive iterations store to consecutive elements. The index may load offsets that do not depend on the
  /// loop, such as indptr[i] + p.
  bool are_contiguous(const For& loop, const For& reduction, const Expr& index) {
    const Ref<Var>& p = loop.loop_var;
    bool is_steady = index.dtype().is_scalar() && !uses_var(index, reduction.loop_var);
    const Expr moved = rewrite(index, [&](const Ref<BufferLoad>& load, Rewriter&) -> Expr {
      is_steady &= !uses_var(load, p);
      return zero(Expr(load).dtype());
    });
    if (!is_steady || effect_of(moved) != Effect::kPure) return false;
    return is_const_int(analyzer_.simplify(substitute(moved, {{p, p + 1}}) - moved), 1);
  }

  /// Returns the initial value of the reductions if the statement, which precedes the reduction, stores it. Null if
  /// not.
  static Expr initial_value_of(const Stmt& s, const BufferStore& result, const Ref<Var>& p) {
    const BufferStore* init = s.as<BufferStore>();
    const bool is_init = init && init->buffer == result.buffer && same_exprs(init->indices, result.indices) &&
                         effect_of(init->value) == Effect::kPure && !uses_var(init->value, p);
    return is_init ? init->value : Expr();
  }

  /// Whether the reduction step is the only store of an iteration, and nothing else reads its result.
  bool are_independent(const Stmt& body, const BufferStore& step) const {
    int64_t stores = 0;
    visit(body, [&](const Ref<BufferStore>&) { ++stores; });
    return stores == 1 && is_alone(body, step, private_);
  }

  /// Returns the number of vectors of one reduction; the last one may be incomplete.
  static int64_t vectors_of(const Results& results) {
    return (*const_int(results.reduction->extent) + results.lanes - 1) / results.lanes;
  }

  /// Returns the number of vectors that are added before those of the next result: a divisor of their number.
  static int64_t chunk_of(int64_t vectors) {
    int64_t size = std::min(vectors, kChunkVectors);
    while (vectors % size != 0) --size;
    return size;
  }

  /// Returns the loop by many or few iterations at a time, then single ones. The single ones are nested branches: a
  /// loop of so few iterations would cost more than the reductions of a short row.
  static Stmt jammed(const Results& results) {
    const Ref<For>& loop = results.loop;
    const DataType type = loop->loop_var.dtype();
    const int64_t num_results = vectors_of(results) <= kShortVectors ? kJamFactor : kHalfJamFactor;
    const Expr count = max(loop->extent, zero(type));
    For tiles = *loop;
    tiles.loop_var = var(loop->loop_var->name_hint + "_0", type);
    tiles.min = zero(type);
    tiles.extent = floordiv(count, num_results);
    tiles.body = renew_defs(iterations(results, loop->min + tiles.loop_var * num_results, num_results));
    const Expr in_tiles = tiles.extent * num_results, in_all = floordiv(count, kHalfJamFactor) * kHalfJamFactor;
    std::vector<Stmt> all{make(std::move(tiles), loop.span())};
    if (num_results > kHalfJamFactor) {
      const Stmt few = renew_defs(iterations(results, loop->min + in_tiles, kHalfJamFactor));
      all.push_back(make<IfThenElse>({ge(floormod(count, num_results), kHalfJamFactor), few, {}}));
    }
    Stmt tail = nop();
    for (int64_t i = kHalfJamFactor - 1; i-- > 0;) {
      const Expr p = loop->min + in_all + constant(type, i);
      const Stmt single = renew_defs(substitute_folding(loop->body, loop->loop_var, p));
      tail = make<IfThenElse>({gt(floormod(count, kHalfJamFactor), i), seq({single, tail}), {}});
    }
    all.push_back(tail);
    return seq(std::move(all));
  }

  /// Returns a statement that executes `num_results` iterations, from `first` on, jammed.
  static Stmt iterations(const Results& results, const Expr& first, int64_t num_results) {
    const DataType type = results.loop->loop_var.dtype();
    const int lanes = static_cast<int>(results.lanes);
    const Ref<Var>& p = results.loop->loop_var;
    const Ref<Buffer>& out = results.store->buffer;
    const Ref<Buffer> sums = decl_buffer({i32(num_results * lanes)}, out->dtype, out->name + "_lanes", "local");
    std::vector<Stmt> all;
    Ref<Var> result_var = var("result"), lane = var("lanes");
    Stmt init =
        loop(lane, i32(lanes), store(sums, results.step.identity(), {result_var * lanes + lane}), ForKind::kVectorized);
    all.push_back(loop(result_var, i32(num_results), init, ForKind::kUnrolled));
    all.push_back(accumulation(results, first, num_results, sums));
    Bindings bound;
    std::vector<Stmt> ends;
    for (int64_t begin = 0, width = std::min<int64_t>(num_results, lanes); begin < num_results; begin += width) {
      std::vector<Expr> vectors;
      for (int64_t i = begin; i < begin + width; ++i) {
        vectors.push_back(load(sums, {ramp(i32(i * lanes), i32(1), lanes)}));
      }
      const Expr joined = join_vectors(std::move(vectors), results.step, bound);
      const Expr index = substitute(results.store->indices[0], {{p, first + constant(type, begin)}});
      const Expr places = ramp(index, one(index.dtype()), static_cast<int>(width));
      const Expr before = results.initial_value.defined()
                              ? broadcast(cast(out->dtype, results.initial_value), static_cast<int>(width))
                              : load(out, {places});
      ends.push_back(store(out, results.step.combine(before, joined), {places}));
    }
    all.push_back(with_bindings(bound, seq(std::move(ends))));
    return make<Allocate>(
        {sums->data, sums->dtype, sums->shape, bool_imm(true), make<DeclBuffer>({sums, seq(all)}), {}});
  }

  /// Returns the loop over chunks of the reduction, which adds a chunk of each iteration to its partial results in
  /// `sums`. The prefetches of the iterations are distributed over all that: issued at once, they would exceed the
  /// number of outstanding cache misses that a core supports.
  static Stmt accumulation(const Results& results, const Expr& first, int64_t num_results, const Ref<Buffer>& sums) {
    const Ref<Var>& p = results.loop->loop_var;
    const Ref<For>& reduction = results.reduction;
    const DataType type = reduction->loop_var.dtype();
    const int64_t vectors = vectors_of(results), size = chunk_of(vectors), chunks = vectors / size;
    Ref<Var> chunk = var(reduction->loop_var->name_hint + "_0", type), vector = var("vector", type);
    Ref<Var> result_var = var("result"), lane = make<Var>(*reduction->loop_var);
    const Expr at = result_var * static_cast<int>(results.lanes) + cast(DataType::int_(32), lane);
    Stmt step = store(sums, results.step.step(load(sums, {at})), {at});
    step = substitute_folding(step, p, first + cast(p.dtype(), result_var));
    const Expr begin = (chunk * constant(type, size) + vector) * constant(type, results.lanes);
    step = strip(reduction, step, begin, lane, results.lanes, ForKind::kVectorized);
    step = loop(vector, constant(type, size), step, ForKind::kUnrolled);
    if (!results.prefetches.empty()) {
      const Expr number = chunk * constant(type, num_results) + cast(type, result_var);
      const Expr ahead = first + cast(p.dtype(), floordiv(number, chunks));
      Stmt prefetch = substitute_folding(seq(results.prefetches), p, ahead);
      if (chunks > 1) prefetch = make<IfThenElse>({eq(floormod(number, chunks), 0), prefetch, {}});
      step = seq({prefetch, step});
    }
    step = loop(result_var, i32(num_results), step, ForKind::kUnrolled);
    return loop(chunk, constant(type, chunks), step, ForKind::kSerial);
  }

  const Target& target_;
  std::unordered_set<NodeRef> private_;
};

}  // namespace

PassResult jam_reductions(const Ref<PrimFunc>& func, PassContext& context) {
  if (!any_node(func->body, [](const Ref<For>& loop) { return loop->kind == ForKind::kVectorized; })) return func;
  return with_body(func, ReductionJammer(*func, context).run(func->body));
}

}  // namespace tilewright::lower
