// Mark innermost loops as vectorized that a schedule left serial, where nothing can speak against it.
//
//   Before                                  After
//   for j in range(16):                     for j in T.vectorized(16):
//     P[k * 16 + j] = B[k * 512 + j]          P[k * 16 + j] = B[k * 512 + j]
//
// A loop qualifies when its body only stores, each store goes to consecutive elements, what is loaded is consecutive or
// the same for all iterations, and no iteration reads what another one writes. Sums into one element do not: changing
// their order is up to schedules.
//
// Needs      flat buffers, simple indices
// Ensures    the same program; a schedule's own choices stay
// Placement  before split_vector_loops, which cuts long loops to vectors
#include <algorithm>

#include "arith/analyzer.h"
#include "ir/build.h"
#include "ir/structural.h"
#include "ir/substitute.h"
#include "ir/traverse.h"
#include "lower/passes.h"

namespace tilewright::lower {
namespace {

/// Intrinsics that have a vector form; for others, taking vectors apart would cost more than it gains.
bool has_vector_form(const Call& call) {
  switch (intrinsic_of(call)) {
    case Intrinsic::k_exp:
    case Intrinsic::k_log:
    case Intrinsic::k_tanh:
    case Intrinsic::k_erf:
    case Intrinsic::k_sigmoid:
      return call.dtype.bits <= 32;
    case Intrinsic::k_sqrt:
    case Intrinsic::k_rsqrt:
    case Intrinsic::k_floor:
    case Intrinsic::k_ceil:
    case Intrinsic::k_trunc:
    case Intrinsic::k_round:
    case Intrinsic::k_nearbyint:
    case Intrinsic::k_fabs:
    case Intrinsic::k_copysign:
    case Intrinsic::k_fma:
    case Intrinsic::k_isnan:
    case Intrinsic::k_isinf:
    case Intrinsic::k_isfinite:
    case Intrinsic::k_bitwise_and:
    case Intrinsic::k_bitwise_or:
    case Intrinsic::k_bitwise_xor:
    case Intrinsic::k_bitwise_not:
    case Intrinsic::k_shift_left:
    case Intrinsic::k_shift_right:
    case Intrinsic::k_popcount:
    case Intrinsic::k_reinterpret:
    case Intrinsic::k_likely:
    case Intrinsic::k_if_then_else:
      return true;
    default:
      return false;
  }
}

class PlainLoop {
 public:
  PlainLoop(const Ref<Var>& v, arith::Analyzer& analyzer) : v_(v), analyzer_(analyzer) {}

  bool accepts(const Stmt& body) {
    check(body);
    for (const Access& store : stores_) {
      for (const Access& other : loads_) fine_ &= !conflict(store, other);
      for (const Access& other : stores_) fine_ &= &other == &store || !conflict(store, other);
    }
    return fine_ && !stores_.empty();
  }

 private:
  struct Access {
    Ref<Buffer> buffer;
    Expr index;
  };

  /// The change of the index from one iteration to the next, if it is always the same.
  std::optional<int64_t> step(const Expr& index) {
    if (!uses_var(index, v_)) return 0;
    if (index.dtype().is_vector() || effect_of(index) != Effect::kPure) return std::nullopt;
    Expr next = substitute(index, {{v_, v_ + 1}});
    return const_int(analyzer_.simplify(next - index));
  }

  /// The same buffer at places that different iterations may share.
  static bool conflict(const Access& a, const Access& b) {
    if (a.buffer->data != b.buffer->data) return false;
    return a.buffer != b.buffer || !same_expr(a.index, b.index);
  }

  void check(const Stmt& s) {
    if (!fine_) return;
    if (const SeqStmt* seq = s.as<SeqStmt>()) {
      for (const Stmt& child : seq->seq) check(child);
    } else if (const BufferStore* store = s.as<BufferStore>()) {
      fine_ &= !store->predicate.defined() && store->buffer->dtype.is_scalar() && step(store->indices[0]) == 1;
      stores_.push_back({store->buffer, store->indices[0]});
      check_value(store->value);
    } else if (const IfThenElse* branch = s.as<IfThenElse>(); branch && !branch->else_case.defined()) {
      check_value(branch->condition);
      check(branch->then_case);
    } else {
      fine_ = false;
    }
  }

  void check_value(const Expr& value) {
    visit(
        value,
        [&](const Ref<BufferLoad>& load, Visitor&) {
          auto stride = step(load->indices[0]);
          fine_ &=
              !load->predicate.defined() && load->buffer->dtype.is_scalar() && stride && (*stride == 0 || *stride == 1);
          loads_.push_back({load->buffer, load->indices[0]});
        },
        [&](const Ref<Call>& call, Visitor& v) {
          fine_ &= has_vector_form(*call);
          v.descend(call);
        },
        [&](const Ref<Ramp>&, Visitor&) { fine_ = false; }, [&](const Ref<Broadcast>&, Visitor&) { fine_ = false; },
        [&](const Ref<Let>&, Visitor&) { fine_ = false; }, [&](const Ref<Shuffle>&, Visitor&) { fine_ = false; });
  }

  Ref<Var> v_;
  arith::Analyzer& analyzer_;
  std::vector<Access> loads_, stores_;
  bool fine_ = true;
};

}  // namespace

PassResult vectorize_plain_loops(const Ref<PrimFunc>& func, PassContext& context) {
  // Arguments of a private function may overlap.
  if (!func->attrs.has("global_symbol")) return func;
  int64_t native = vector_lanes(context.target, 32);
  arith::Analyzer analyzer;
  Stmt body = rewrite(
      func->body,
      [&](const Ref<For>& loop, Rewriter& r) -> Stmt {
        analyzer.bind(loop->loop_var, make<Range>({loop->min, loop->extent}));
        Ref<For> inner = r.descend(loop);
        auto extent = const_int(loop->extent);
        if (loop->kind != ForKind::kSerial || !loop->annotations.empty()) return inner;
        if (extent && *extent < native / 2) return inner;
        if (!PlainLoop(loop->loop_var, analyzer).accepts(loop->body)) return inner;
        For vector = *inner;
        vector.kind = ForKind::kVectorized;
        return make<For>(std::move(vector), loop.span());
      },
      [&](const Ref<BufferStore>& store, Rewriter&) -> Stmt { return store; });
  return with_body(func, std::move(body));
}

}  // namespace tilewright::lower
