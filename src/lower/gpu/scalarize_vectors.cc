// Take vectors apart: the lanes of a store become stores of scalars.
//
//   Before                                        After
//   B[T.Ramp(i * 4, 1, 4)] = A[...] * 2           t0: T.float32 = A[i * 4] * 2; ...
//                                                 B[i * 4] = t0
//                                                 B[i * 4 + 1] = t1; ...
//
// All values are there before the first one is stored, as a vector store has it. Compilers of devices form vector
// instructions themselves.
//
// Needs      kernels as functions
// Ensures    no values of vector type in kernels
// Placement  last: nothing else looks at lanes
#include "ir/build.h"
#include "ir/substitute.h"
#include "ir/traverse.h"
#include "lower/gpu/kernel.h"
#include "lower/passes.h"

namespace tilewright::lower {
namespace {

/// One lane of an expression.
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
          if (load.dtype().is_scalar() || load->indices.back().dtype().is_scalar()) return failed(load);
          if (!load->predicate.defined())
            return make<BufferLoad>({load->buffer, {r(load->indices[0])}, {}}, load.span());
          // A lane that is off reads nothing.
          Expr value = make<BufferLoad>({load->buffer, {r(load->indices[0])}, {}}, load.span());
          return if_then_else(r(load->predicate), value, zero(value.dtype()));
        },
        [&](const Ref<Shuffle>& shuffle, Rewriter&) -> Expr {
          auto picked = const_int(shuffle->indices[static_cast<size_t>(lane_)]);
          for (const Expr& vector : shuffle->vectors) {
            if (!picked) break;
            const int lanes = vector.dtype().lanes;
            if (*picked < lanes) return lanes == 1 ? vector : Lane(*picked)(vector);
            *picked -= lanes;
          }
          return failed(shuffle);
        },
        [&](const Ref<Let>& let, Rewriter& r) -> Expr { return r(substitute(let->body, {{let->var, let->value}})); },
        [&](const Ref<Call>& call, Rewriter& r) -> Expr {
          if (call->dtype.is_scalar()) return call;
          std::vector<NodeRef> args;
          for (const NodeRef& arg : call->args) args.push_back(arg.sort() == Sort::kExpr ? NodeRef(r(Expr(arg))) : arg);
          return make<Call>({call->dtype.element(), call->op, std::move(args)}, call.span());
        });
  }
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

}  // namespace

PassResult scalarize_vectors(const Ref<PrimFunc>& func, PassContext&) {
  if (!is_kernel(*func)) return func;
  std::optional<Diagnostic> error;
  Stmt body = rewrite(func->body, [&](const Ref<BufferStore>& store, Rewriter&) -> Stmt {
    const DataType type = store->value.dtype();
    if (type.is_scalar()) return store;
    std::vector<std::pair<Ref<Var>, Expr>> values;
    std::vector<Stmt> stores;
    for (int lane = 0; lane < type.lanes; ++lane) {
      Lane part(lane);
      Ref<Var> v = var("lane_" + std::to_string(lane), type.element());
      values.emplace_back(v, part(store->value));
      Stmt one = make<BufferStore>({store->buffer, v, {part(store->indices[0])}, {}}, store.span());
      if (store->predicate.defined()) one = make<IfThenElse>({part(store->predicate), one, {}}, store.span());
      stores.push_back(one);
      if (part.has_failed() && !error) {
        error = refuse_at(store, "lower/not-on-device", "a vector is computed in a way that has no lanes of its own",
                          "leave the loop around it serial instead of vectorizing it");
      }
    }
    Stmt result = seq(std::move(stores));
    for (auto it = values.rbegin(); it != values.rend(); ++it) result = make<LetStmt>({it->first, it->second, result});
    return result;
  });
  if (error) return *error;
  return with_body(func, std::move(body));
}

}  // namespace tilewright::lower
