// Load squares of memory by rows and turn them round in registers, where vectors would take their lanes from many rows.
//
//   Before                                     After
//   for k in range(2048):                      for k_0 in range(256):
//     P[k * 8:k * 8 + 8] =                       row_0 = B[k_0 * 8:k_0 * 8 + 8]
//         B[k:k + 8 * 2048:2048]                 row_1 = B[2048 + k_0 * 8:2048 + k_0 * 8 + 8]; ...
//                                                turned_0 = T.Shuffle([row_0, row_4], [0, 8, 1, 9, 4, 12, 5, 13]); ...
//                                                P[k_0 * 64:k_0 * 64 + 8] = turned_16; ...
//
// A vector whose lanes lie in rows of their own takes a load for each; a square of them takes a load for each row and a
// few shuffles for each vector. In pieces of 128 bits, vectors are interleaved until each piece holds a column of as
// many rows; then the pieces change places.
//
// Needs      vector code
// Ensures    the same elements are loaded and stored
// Placement  after vectorize_loops, which makes the vectors, and before loops are unrolled
#include <algorithm>

#include "arith/analyzer.h"
#include "ir/build.h"
#include "ir/structural.h"
#include "ir/substitute.h"
#include "ir/traverse.h"
#include "lower/join_lanes.h"
#include "lower/lane_independence.h"
#include "lower/passes.h"
#include "lower/vector_math.h"

namespace tilewright::lower {
namespace {

constexpr int kPieceBytes = 16;
/// Sides of squares that are turned.
constexpr int kLeastSide = 4, kMostSide = 16;

/// The columns of a square whose rows these are; the steps are appended to `bound`.
std::vector<Expr> turned(std::vector<Expr> rows, int element_bytes, Bindings& bound) {
  const int side = static_cast<int>(rows.size());
  const int piece = std::min(side, kPieceBytes / element_bytes);
  auto take = [&](const Expr& a, const Expr& b, const auto& lane_of) {
    std::vector<Expr> lanes;
    for (int i = 0; i < side; ++i) lanes.push_back(i32(lane_of(i)));
    Expr value = make<Shuffle>({{a, b}, lanes});
    bound.emplace_back(var("turned", value.dtype()), value);
    return Expr(bound.back().first);
  };
  // Of each group of rows, piece by piece: one half of the vectors interleaved with the other, as often as it takes.
  for (int group = 0; group < side; group += piece) {
    for (int stage = 1; stage < piece; stage *= 2) {
      std::vector<Expr> next;
      for (int i = 0; i < piece / 2; ++i) {
        for (int half : {0, 1}) {
          next.push_back(take(rows[group + i], rows[group + i + piece / 2], [&](int lane) {
            int within = lane % piece;
            return lane - within + half * piece / 2 + within / 2 + within % 2 * side;
          }));
        }
      }
      std::copy(next.begin(), next.end(), rows.begin() + group);
    }
  }
  // rows[group + q] has column m * piece + q of its group in its piece m.
  for (int apart = piece; apart < side; apart *= 2) {
    for (int i = 0; i < side; ++i) {
      if (i & apart) continue;
      Expr a = rows[i], b = rows[i + apart];
      rows[i] = take(a, b, [&](int lane) { return lane & apart ? side + lane - apart : lane; });
      rows[i + apart] = take(a, b, [&](int lane) { return lane & apart ? side + lane : lane + apart; });
    }
  }
  return rows;
}

class Turner {
 public:
  Turner(const PrimFunc& func, PassContext& context) : private_(private_memory(func, context)) {
    assume_sizes(func, analyzer_);
  }

  Stmt run(const Stmt& body) {
    return rewrite(
        body, [&](const Ref<For>& loop, Rewriter& r) -> Stmt { return visit_loop(loop, r); },
        [&](const Ref<BufferStore>& store, Rewriter&) -> Stmt { return store; });
  }

 private:
  Stmt visit_loop(const Ref<For>& loop, Rewriter& r) {
    analyzer_.bind(loop->loop_var, range(loop->min, loop->extent));
    const BufferStore* store = loop->body.as<BufferStore>();
    if (!store || loop->kind != ForKind::kSerial || !loop->annotations.empty()) return r.descend(loop);
    Ref<BufferLoad> load = crossed_load(*store, *loop);
    return load.defined() ? by_squares(loop, load) : Stmt(loop);
  }

  /// What the stored value loads from a row for each lane, with steps of the loop along the rows; null where there
  /// are several such loads, or anything else speaks against squares.
  Ref<BufferLoad> crossed_load(const BufferStore& store, const For& loop) {
    const Ramp* lanes = store.indices.size() == 1 ? store.indices[0].as<Ramp>() : nullptr;
    if (!lanes || store.predicate.defined() || !is_const_int(lanes->stride, 1)) return {};
    auto extent = const_int(loop.extent);
    const int side = store.indices[0].dtype().lanes;
    bool fits = side >= kLeastSide && side <= kMostSide && (side & (side - 1)) == 0 && (!extent || *extent >= side);
    if (!fits || !private_.count(store.buffer->data)) return {};
    Ref<BufferLoad> crossed;
    int count = 0;
    bool pure = effect_of(store.indices[0]) == Effect::kPure;
    visit(
        store.value,
        [&](const Ref<BufferLoad>& load, Visitor&) {
          pure = pure && private_.count(load->buffer->data) && load->buffer->data != store.buffer->data &&
                 !load->predicate.defined() && load->buffer->dtype.is_scalar() &&
                 effect_of(load->indices[0]) == Effect::kPure;
          if (!pure || !crosses(load, loop)) return;
          crossed = load;
          ++count;
        },
        [&](const Ref<Call>& call, Visitor& v) {
          pure = pure && intrinsic_of(*call) != Intrinsic::kUnknown && effect_of(call) <= Effect::kReadState;
          v.descend(call);
        });
    return pure && count == 1 ? crossed : Ref<BufferLoad>();
  }

  bool crosses(const Ref<BufferLoad>& load, const For& loop) {
    const Ramp* lanes = load->indices[0].as<Ramp>();
    int bytes = load->buffer->dtype.bits / 8;
    if (!lanes || bytes < 1 || bytes > 8 || load->buffer->dtype.bits % 8 != 0) return false;
    auto stride = const_int(lanes->stride);
    if ((stride && std::abs(*stride) < load->indices[0].dtype().lanes) || uses_var(lanes->stride, loop.loop_var))
      return false;
    const Ref<Var>& v = loop.loop_var;
    return is_const_int(analyzer_.simplify(substitute(lanes->base, {{v, v + 1}}) - lanes->base), 1);
  }

  static Stmt by_squares(const Ref<For>& loop, const Ref<BufferLoad>& load) {
    DataType type = loop->loop_var.dtype();
    const Ramp& lanes = *load->indices[0].as<Ramp>();
    const int side = load->indices[0].dtype().lanes;
    auto extent = const_int(loop->extent);
    Ref<Var> square = var(loop->loop_var->name_hint + "_0", type);
    Bindings bound;
    std::vector<Expr> rows;
    Expr first = substitute(lanes.base, {{loop->loop_var, loop->min + square * side}});
    for (int row = 0; row < side; ++row) {
      Expr start = first + lanes.stride * cast(lanes.stride.dtype(), i32(row));
      Expr value = tilewright::load(load->buffer, {ramp(start, one(start.dtype()), side)});
      bound.emplace_back(var("row", value.dtype()), value);
      rows.push_back(bound.back().first);
    }
    std::vector<Expr> columns = turned(std::move(rows), load->buffer->dtype.bits / 8, bound);
    std::vector<Stmt> stores;
    for (int column = 0; column < side; ++column) {
      Stmt one = rewrite(loop->body, [&](const Ref<BufferLoad>& other, Rewriter& r) -> Expr {
        return other == load ? columns[column] : Expr(r.descend(other));
      });
      stores.push_back(substitute_folding(one, loop->loop_var, loop->min + (square * side + column)));
    }
    Expr count = extent ? Expr(int_imm(type, *extent / side)) : floordiv(loop->extent, constant(type, side));
    For squares = *loop;
    squares.loop_var = square;
    squares.min = zero(type);
    squares.extent = count;
    squares.body = with_bindings(bound, seq(std::move(stores)));
    Stmt all = make<For>(std::move(squares), loop.span());
    if (extent && *extent % side == 0) return all;
    For rest = *loop;
    rest.loop_var = make<Var>(*loop->loop_var);
    rest.min = zero(type);
    rest.extent = loop->extent - count * side;
    rest.body = substitute_folding(loop->body, loop->loop_var, loop->min + count * side + rest.loop_var);
    return seq({all, make<For>(std::move(rest))});
  }

  std::unordered_set<NodeRef> private_;
  arith::Analyzer analyzer_;
};

}  // namespace

PassResult turn_loads(const Ref<PrimFunc>& func, PassContext& context) {
  return with_body(func, Turner(*func, context).run(func->body));
}

}  // namespace tilewright::lower
