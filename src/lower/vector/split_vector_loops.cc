// Cut vectorized loops to the widths that processors have.
//
//   Before                               After
//   for j in T.vectorized(1000):         for j_0 in range(32):
//     B[j] = A[j]                          for j_1 in T.vectorized(32):
//                                            if j_0 * 32 + j_1 < 1000:
//                                              B[j_0 * 32 + j_1] = A[j_0 * 32 + j_1]
//
//   (of one register where elementary functions are called)
//
//   for j in T.vectorized(28):           for j_0 in T.unroll(3):
//     B[j] = A[j]                          for j_1 in T.vectorized(8):
//                                            B[j_0 * 8 + j_1] = A[j_0 * 8 + j_1]
//                                        for j in T.vectorized(4):
//                                          B[j + 24] = A[j + 24]
//
// Needs      no blocks
// Ensures    vectorized loops have a constant extent that is a power of two of at most kMostRegisters registers
// Placement  before partition_loops, which separates the last, partial vector
#include <algorithm>

#include "ir/build.h"
#include "ir/substitute.h"
#include "ir/traverse.h"
#include "lower/passes.h"
#include "lower/vector/vector_math.h"

namespace tilewright::lower {
namespace {

bool is_power_of_two(int64_t n) { return n > 0 && (n & (n - 1)) == 0; }
int64_t next_power_of_two(int64_t n) {
  int64_t power = 1;
  while (power < n) power *= 2;
  return power;
}

/// One masked vector is better than several short ones where much is computed with it and little is stored: masked
/// stores are slow on many processors.
bool computes_much(const Stmt& body) {
  bool found = calls_elementary_function(body);
  visit(
      body, [&](const Ref<For>&) { found = true; },
      [&](const Ref<BufferStore>& store) { found |= is_local(*store->buffer); });
  return found;
}

class Splitter {
 public:
  Splitter(const Ref<For>& loop, int64_t native) : loop_(loop), native_(native), type_(loop->loop_var.dtype()) {}

  Stmt run() {
    auto extent = const_int(loop_->extent);
    if (!extent || *extent > kMostRegisters * native_) return strips(extent);
    return is_power_of_two(*extent) || *extent < 1 ? Stmt(loop_) : pieces(*extent);
  }

 private:
  /// Iterations [start, start + lanes); only those below `limit` exist.
  Stmt vector(const Expr& start, int64_t lanes, const Expr& limit) const {
    Ref<Var> lane = make<Var>(*loop_->loop_var);
    Expr offset = start + lane;
    Stmt body = substitute_folding(renew_defs(loop_->body), loop_->loop_var, loop_->min + offset);
    if (limit.defined()) body = make<IfThenElse>({lt(offset, limit), body, {}});
    if (lanes == 1) return substitute_folding(body, lane, zero(type_));
    return loop(lane, int_imm(type_, lanes), body, ForKind::kVectorized);
  }

  Stmt outer(int64_t width, const Expr& trips, ForKind kind, const Expr& limit) const {
    Ref<Var> index = var(loop_->loop_var->name_hint + "_0", type_);
    For copy = *loop_;
    copy.loop_var = index;
    copy.min = zero(type_);
    copy.extent = trips;
    copy.kind = kind;
    copy.body = vector(index * width, width, limit);
    return make<For>(std::move(copy), loop_.span());
  }

  Stmt strips(std::optional<int64_t> extent) const {
    bool alone = calls_elementary_function(loop_->body);
    int64_t width = (alone ? 1 : kCutRegisters) * native_;
    // A divisor that is nearly as wide needs no remainder.
    for (int64_t w = (alone ? 1 : kMostRegisters) * native_; extent && w >= 2 * native_; w /= 2) {
      if (*extent % w == 0) {
        width = w;
        break;
      }
    }
    bool exact = extent && *extent % width == 0;
    Expr trips = floordiv(loop_->extent + (width - 1), constant(type_, width));
    return outer(width, trips, ForKind::kSerial, exact ? Expr() : loop_->extent);
  }

  Stmt pieces(int64_t extent) const {
    std::vector<Stmt> parts;
    int64_t full = extent / native_, rest = extent % native_;
    if (full > 0) parts.push_back(outer(native_, int_imm(type_, full), ForKind::kUnrolled, {}));
    if (rest > 0 && computes_much(loop_->body)) {
      int64_t lanes = next_power_of_two(rest);
      parts.push_back(vector(int_imm(type_, full * native_), lanes, lanes == rest ? Expr() : loop_->extent));
      rest = 0;
    }
    for (int64_t start = full * native_, lanes = native_; rest > 0; lanes /= 2) {
      if (rest < lanes) continue;
      parts.push_back(vector(int_imm(type_, start), lanes, {}));
      start += lanes;
      rest -= lanes;
    }
    return seq(std::move(parts));
  }

  const Ref<For>& loop_;
  int64_t native_;
  DataType type_;
};

}  // namespace

PassResult split_vector_loops(const Ref<PrimFunc>& func, PassContext& context) {
  Stmt body = rewrite(func->body, [&](const Ref<For>& loop, Rewriter& r) -> Stmt {
    Ref<For> inner = r.descend(loop);
    if (loop->kind != ForKind::kVectorized) return inner;
    return Splitter(inner, vector_lanes(context.target, widest_element(inner->body))).run();
  });
  return with_body(func, std::move(body));
}

}  // namespace tilewright::lower
