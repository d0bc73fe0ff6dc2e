// Strip-mine vectorized loops to the vector widths of the target.
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
#include "lower/loops/cut_loops.h"
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

/// Whether one masked vector is better than several short ones: if there is much computation and few stores, since
/// masked stores are slow on many processors.
bool computes_much(const Stmt& body) {
  bool found = calls_elementary_function(body);
  visit(
      body, [&](const Ref<For>&) { found = true; },
      [&](const Ref<BufferStore>& store) { found |= is_local(*store->buffer); });
  return found;
}

class Splitter {
 public:
  Splitter(const Ref<For>& loop, int64_t native) : loop_(loop), native_(native) {}

  Stmt run() {
    auto extent = const_int(loop_->extent);
    if (!extent || *extent > kMostRegisters * native_) return long_loop(extent);
    return is_power_of_two(*extent) || *extent < 1 ? Stmt(loop_) : split_evenly(*extent);
  }

 private:
  Stmt vector(int64_t start, int64_t lanes) const {
    return strip(loop_, renew_defs(loop_->body), int_imm(loop_->loop_var.dtype(), start), lane(), lanes,
                 ForKind::kVectorized);
  }

  Stmt all(const Ref<For>& loop, int64_t width, ForKind outer) const {
    return strips(loop, renew_defs(loop_->body), lane(), width, ForKind::kVectorized, outer);
  }

  Ref<Var> lane() const { return make<Var>(*loop_->loop_var); }

  Stmt long_loop(std::optional<int64_t> extent) const {
    bool alone = calls_elementary_function(loop_->body);
    int64_t width = (alone ? 1 : kCutRegisters) * native_;
    // A width that divides the extent, and is nearly as large, needs no remainder.
    for (int64_t w = (alone ? 1 : kMostRegisters) * native_; extent && w >= 2 * native_; w /= 2) {
      if (*extent % w == 0) {
        width = w;
        break;
      }
    }
    return all(loop_, width, ForKind::kSerial);
  }

  Stmt split_evenly(int64_t extent) const {
    std::vector<Stmt> parts;
    int64_t full = extent / native_ * native_, rest = extent % native_;
    if (full > 0) {
      parts.push_back(
          all(part_of(loop_, loop_->min, int_imm(loop_->extent.dtype(), full)), native_, ForKind::kUnrolled));
    }
    if (rest > 0 && computes_much(loop_->body)) {
      parts.push_back(vector(full, next_power_of_two(rest)));
      rest = 0;
    }
    for (int64_t start = full, lanes = native_; rest > 0; lanes /= 2) {
      if (rest < lanes) continue;
      parts.push_back(vector(start, lanes));
      start += lanes;
      rest -= lanes;
    }
    return seq(std::move(parts));
  }

  const Ref<For>& loop_;
  int64_t native_;
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
