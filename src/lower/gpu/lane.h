// One lane of a vector expression, as a scalar.
//
//   A[T.Ramp(i * 4, 1, 4)] * 2      lane 3:  A[i * 4 + 3] * 2
#pragma once

#include "ir/build.h"
#include "ir/substitute.h"
#include "ir/traverse.h"

namespace tilewright::lower {

/// Makes one lane of expressions.
class Lane {
 public:
  explicit Lane(int64_t lane) : lane_(lane) {}

  Expr operator()(const Expr& e) {
    if (e.dtype().is_scalar() || failed_) return e;
    return rewrite(
        e,
        [&](const Ref<Ramp>& ramp, Rewriter&) -> Expr {
          return ramp->base + ramp->stride * constant(ramp->stride.dtype(), lane_);
        },
        [&](const Ref<Broadcast>& broadcast, Rewriter&) -> Expr { return broadcast->value; },
        [&](const Ref<Cast>& cast, Rewriter& r) -> Expr {
          return make<Cast>({cast->dtype.element(), r(cast->value)}, cast.span());
        },
        [&](const Ref<BufferLoad>& load, Rewriter& r) -> Expr {
          if (load.dtype().is_scalar()) return load;  // the same in all lanes
          if (load->indices.back().dtype().is_scalar()) return failed(load);
          if (!load->predicate.defined())
            return make<BufferLoad>({load->buffer, {r(load->indices[0])}, {}}, load.span());
          // A lane that is off reads nothing.
          Expr value = make<BufferLoad>({load->buffer, {r(load->indices[0])}, {}}, load.span());
          return if_then_else(r(load->predicate), value, zero(value.dtype()));
        },
        [&](const Ref<Shuffle>& shuffle, Rewriter&) -> Expr {
          return shuffle.dtype().is_scalar() ? Expr(shuffle) : picked(shuffle);
        },
        [&](const Ref<Var>& v, Rewriter&) -> Expr { return v.dtype().is_vector() ? failed(v) : Expr(v); },
        [&](const Ref<Let>& let, Rewriter& r) -> Expr {
          if (let.dtype().is_scalar()) return let;
          return r(substitute(let->body, {{let->var, let->value}}));
        },
        [&](const Ref<Call>& call, Rewriter& r) -> Expr {
          if (call->dtype.is_scalar()) return call;
          std::vector<NodeRef> args;
          for (const NodeRef& arg : call->args) args.push_back(arg.sort() == Sort::kExpr ? NodeRef(r(Expr(arg))) : arg);
          return make<Call>({call->dtype.element(), call->op, std::move(args)}, call.span());
        });
  }
  /// The element that a shuffle has in this lane.
  Expr picked(const Ref<Shuffle>& shuffle) {
    auto at = const_int(shuffle->indices[lane_]);
    for (const Expr& vector : shuffle->vectors) {
      if (!at) break;
      const int lanes = vector.dtype().lanes;
      if (*at < lanes) {
        Lane lane(*at);
        Expr element = lane(vector);
        failed_ |= lane.has_failed();
        return element;
      }
      *at -= lanes;
    }
    return failed(shuffle);
  }
  /// Whether one of them had no lanes that can be taken apart, such as a variable of a vector.
  bool has_failed() const { return failed_; }

 private:
  template <class T>
  Expr failed(const Ref<T>& e) {
    failed_ = true;
    return e;
  }
  int64_t lane_;
  bool failed_ = false;
};

}  // namespace tilewright::lower
