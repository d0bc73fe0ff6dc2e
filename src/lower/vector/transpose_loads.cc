// Load square tiles of memory by rows and transpose them in registers, where vectors would gather their lanes from many
// rows: elements, or words of several small elements.
//
//   Before                                     After
//   for k in range(2048):                      for k_0 in range(256):
//     P[k * 8:k * 8 + 8] =                       row_0 = B[k_0 * 8:k_0 * 8 + 8]
//         B[k:k + 8 * 2048:2048]                 row_1 = B[2048 + k_0 * 8:2048 + k_0 * 8 + 8]; ...
//                                                turned_0 = T.Shuffle([row_0, row_4], [0, 8, 1, 9, 4, 12, 5, 13]); ...
//                                                P[k_0 * 64:k_0 * 64 + 8] = turned_16; ...
//
// A vector whose lanes are in different rows takes a load for each lane; a square tile takes a load for each row and a
// few shuffles for each vector. Within blocks of 128 bits, vectors are interleaved until each block holds a column of
// as many rows; then the blocks are permuted.
//
// Needs      vector code
// Ensures    the same elements are loaded and stored
// Placement  after vectorize_loops, which makes the vectors, and before loops are unrolled
#include <algorithm>
#include <optional>

#include "arith/analyzer.h"
#include "ir/build.h"
#include "ir/structural.h"
#include "ir/substitute.h"
#include "ir/traverse.h"
#include "lower/loops/cut_loops.h"
#include "lower/passes.h"
#include "lower/vector/join_lanes.h"
#include "lower/vector/lane_independence.h"
#include "lower/vector/vector_math.h"
#include "support/ranges.h"

namespace tilewright::lower {
namespace {

constexpr int kPieceBytes = 16;
/// Side lengths of the tiles that are transposed.
constexpr int kLeastSide = 4, kMostSide = 16;

/// The columns of a square whose rows these are; the steps are appended to `bound`.
std::vector<Expr> transposed(std::vector<Expr> rows, int element_bytes, Bindings& bound) {
  const int side = static_cast<int>(rows.size());
  const int piece = std::min(side, kPieceBytes / element_bytes);
  auto take = [&](const Expr& a, const Expr& b, const auto& lane_of) {
    std::vector<Expr> lanes;
    for (int i = 0; i < side; ++i) lanes.push_back(i32(lane_of(i)));
    Expr value = make<Shuffle>({{a, b}, lanes});
    bound.emplace_back(var("turned", value.dtype()), value);
    return Expr(bound.back().first);
  };
  // For each group of rows: interleave the first half of the vectors with the second, log2(piece) times.
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
      std::ranges::copy(next, rows.begin() + group);
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

/// A node that takes one lane from each of several rows, one step of the loop further in each row.
struct Crossed {
  Expr node;
  Ref<Buffer> buffer;
  std::vector<Expr> rows;  ///< the index of the first element that is taken, of each row
  int group = 1;           ///< elements that are taken together, as a word
};

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
    std::optional<Crossed> crossed = crossed_in(*store, *loop);
    return crossed ? by_squares(loop, *crossed) : Stmt(loop);
  }

  /// Returns nothing if the stored value takes lanes from rows in several locations, or if squares are not possible.
  std::optional<Crossed> crossed_in(const BufferStore& store, const For& loop) {
    const Ramp* lanes = store.indices.size() == 1 ? store.indices[0].as<Ramp>() : nullptr;
    if (!lanes || store.predicate.defined() || !is_const_int(lanes->stride, 1)) return {};
    if (!private_.count(store.buffer->data)) return {};
    std::optional<Crossed> crossed;
    int count = 0;
    bool pure = effect_of(store.indices[0]) == Effect::kPure;
    auto found = [&](std::optional<Crossed> here) {
      if (!here) return;
      crossed = std::move(here);
      ++count;
    };
    visit(
        store.value,
        [&](const Ref<BufferLoad>& load, Visitor&) {
          pure = pure && private_.count(load->buffer->data) && load->buffer->data != store.buffer->data &&
                 !load->predicate.defined() && load->buffer->dtype.is_scalar() &&
                 effect_of(load->indices[0]) == Effect::kPure;
          if (pure) found(elements_of_rows(load, loop));
        },
        [&](const Ref<Shuffle>& shuffle, Visitor& v) {
          v.descend(shuffle);
          if (pure) found(words_of_rows(shuffle, loop));
        },
        [&](const Ref<Call>& call) {
          pure = pure && intrinsic_of(*call) != Intrinsic::kUnknown && effect_of(call) <= Effect::kReadState;
        });
    return pure && count == 1 ? crossed : std::nullopt;
  }

  /// A[base + row * stride], where the loop goes along the rows.
  std::optional<Crossed> elements_of_rows(const Ref<BufferLoad>& load, const For& loop) {
    const Ramp* lanes = load->indices[0].as<Ramp>();
    const int bytes = load->buffer->dtype.bits / 8, side = load->indices[0].dtype().lanes;
    if (!lanes || bytes < 1 || bytes > 8 || load->buffer->dtype.bits % 8 != 0 || !is_side(side, loop)) return {};
    auto stride = const_int(lanes->stride);
    if ((stride && std::abs(*stride) < side) || uses_var(lanes->stride, loop.loop_var)) return {};
    if (!moves_by(1, lanes->base, loop)) return {};
    Crossed crossed{load, load->buffer, {}};
    for (int row = 0; row < side; ++row) {
      crossed.rows.push_back(lanes->base + lanes->stride * cast(lanes->stride.dtype(), i32(row)));
    }
    return crossed;
  }

  /// A few small numbers of each row as one word, as vectorize_loops makes them.
  std::optional<Crossed> words_of_rows(const Ref<Shuffle>& shuffle, const For& loop) {
    Crossed crossed{shuffle, {}, {}};
    for (size_t row : indices_of(shuffle->vectors)) {
      const Call* word = shuffle->vectors[row].as<Call>();
      if (!word || intrinsic_of(*word) != Intrinsic::k_reinterpret || !word->dtype.is_scalar()) return {};
      const BufferLoad* load = word->args[0].as<BufferLoad>();
      const Ramp* place = load ? load->indices[0].as<Ramp>() : nullptr;
      if (!place || !is_const_int(place->stride, 1) || !is_const_int(shuffle->indices[row], static_cast<int64_t>(row)))
        return {};
      const int group = load->indices[0].dtype().lanes;
      if (row == 0) crossed.buffer = load->buffer, crossed.group = group;
      if (load->buffer != crossed.buffer || group != crossed.group || !moves_by(group, place->base, loop)) return {};
      crossed.rows.push_back(place->base);
    }
    const auto side = static_cast<int>(crossed.rows.size());
    return shuffle->indices.size() == crossed.rows.size() && is_side(side, loop) ? std::optional(crossed)
                                                                                 : std::nullopt;
  }

  static bool is_side(int side, const For& loop) {
    auto extent = const_int(loop.extent);
    return side >= kLeastSide && side <= kMostSide && (side & (side - 1)) == 0 && (!extent || *extent >= side);
  }

  bool moves_by(int step, const Expr& index, const For& loop) {
    const Ref<Var>& v = loop.loop_var;
    return is_const_int(analyzer_.simplify(substitute(index, {{v, v + 1}}) - index), step);
  }

  static Stmt by_squares(const Ref<For>& loop, const Crossed& crossed) {
    DataType type = loop->loop_var.dtype();
    const auto side = static_cast<int>(crossed.rows.size());
    auto extent = const_int(loop->extent);
    Ref<Var> square = var(loop->loop_var->name_hint + "_0", type);
    Bindings bound;
    std::vector<Expr> rows;
    for (const Expr& row : crossed.rows) {
      Expr start = substitute(row, {{loop->loop_var, loop->min + square * side}});
      Expr value = load(crossed.buffer, {ramp(start, one(start.dtype()), side * crossed.group)});
      if (crossed.group > 1) value = bits_as(crossed.node.dtype(), value);
      bound.emplace_back(var("row", value.dtype()), value);
      rows.push_back(bound.back().first);
    }
    const int bytes = crossed.group * crossed.buffer->dtype.bits / 8;
    std::vector<Expr> columns = transposed(std::move(rows), bytes, bound);
    std::vector<Stmt> stores;
    for (int column = 0; column < side; ++column) {
      Stmt one = rewrite(
          loop->body,
          [&](const Ref<BufferLoad>& other, Rewriter& r) -> Expr {
            return other == crossed.node ? columns[column] : Expr(r.descend(other));
          },
          [&](const Ref<Shuffle>& other, Rewriter& r) -> Expr {
            return other == crossed.node ? columns[column] : Expr(r.descend(other));
          });
      stores.push_back(substitute_folding(one, loop->loop_var, loop->min + (square * side + column)));
    }
    Expr count = extent ? Expr(int_imm(type, *extent / side)) : floordiv(loop->extent, constant(type, side));
    For squares = *loop;
    squares.loop_var = square;
    squares.min = zero(type);
    squares.extent = count;
    squares.body = with_bindings(bound, seq(std::move(stores)));
    Stmt all = make(std::move(squares), loop.span());
    if (extent && *extent % side == 0) return all;
    return seq({all, remainder(loop, count * side)});
  }

  std::unordered_set<NodeRef> private_;
  arith::Analyzer analyzer_;
};

}  // namespace

PassResult transpose_loads(const Ref<PrimFunc>& func, PassContext& context) {
  return with_body(func, Turner(*func, context).run(func->body));
}

}  // namespace tilewright::lower
