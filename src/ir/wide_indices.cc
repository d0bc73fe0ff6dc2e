#include "ir/wide_indices.h"

#include <algorithm>

#include "ir/build.h"
#include "ir/op.h"
#include "ir/traverse.h"
#include "support/ranges.h"

namespace tilewright {
namespace {

constexpr DataType kNarrow = DataType::int_(32), kWide = DataType::int_(64);

/// Whether what is called is written elsewhere, with types of its own.
bool is_written_elsewhere(const Call& call) {
  switch (intrinsic_of(call)) {
    case Intrinsic::kUnknown:
    case Intrinsic::k_call_extern:
    case Intrinsic::k_call_pure_extern:
    case Intrinsic::k_call_llvm_intrin:
    case Intrinsic::k_call_llvm_pure_intrin:
      return true;
    default:
      return false;
  }
}

class IndexPromoter {
 public:
  /// Variables that run over indices, or stand for sizes.
  void collect(const Ref<PrimFunc>& func) {
    auto add = [&](const Expr& e) {
      if (e.defined() && e.is<Var>() && e.dtype() == kNarrow && !vars_.count(e)) {
        vars_[e] = var(e.as<Var>()->name_hint, kWide);
      }
    };
    visit(
        func, [&](const Ref<For>& loop) { add(loop->loop_var); }, [&](const Ref<IterVar>& axis) { add(axis->var); },
        [&](const Ref<Buffer>& buffer) {
          std::ranges::for_each(buffer->shape, add);
          std::ranges::for_each(buffer->strides, add);
          add(buffer->elem_offset);
        });
  }

  Ref<PrimFunc> run(const Ref<PrimFunc>& func) {
#define TW_WITH_INT64(Name)                                          \
  [&](const Ref<Name>& n, Rewriter& r) -> Expr {                     \
    Expr a = r(n->a), b = r(n->b);                                   \
    if (a.dtype() == b.dtype()) return make<Name>({a, b}, n.span()); \
    return binary(Kind::k##Name, std::move(a), std::move(b));        \
  }
    return rewrite(
        func, TW_WITH_INT64(Add), TW_WITH_INT64(Sub), TW_WITH_INT64(Mul), TW_WITH_INT64(FloorDiv),
        TW_WITH_INT64(FloorMod), TW_WITH_INT64(Min), TW_WITH_INT64(Max), TW_WITH_INT64(EQ), TW_WITH_INT64(NE),
        TW_WITH_INT64(LT), TW_WITH_INT64(LE), TW_WITH_INT64(GT), TW_WITH_INT64(GE),
        [&](const Ref<Var>& v, Rewriter&) -> Expr { return find_value_or(vars_, v, v); },
        [&](const Ref<Range>& n, Rewriter& r) -> NodeRef { return range(wide(n->min, r), wide(n->extent, r)); },
        [&](const Ref<Ramp>& n, Rewriter& r) -> Expr {
          return make<Ramp>({wide(n->base, r), wide(n->stride, r), n->lanes}, n.span());
        },
        [&](const Ref<Buffer>& n, Rewriter& r) -> NodeRef {
          Ref<Buffer>& made = buffers_[n];  // one for all uses
          if (made.defined()) return made;
          Buffer copy = *r.descend(n);
          for (Expr& extent : copy.shape) extent = as_int64(extent);
          for (Expr& stride : copy.strides) stride = as_int64(stride);
          if (copy.elem_offset.defined()) copy.elem_offset = as_int64(copy.elem_offset);
          made = make(std::move(copy), n.span());
          return made;
        },
        [&](const Ref<BufferLoad>& n, Rewriter& r) -> Expr {
          BufferLoad copy{r.typed(n->buffer), {}, r(n->predicate)};
          for (const Expr& index : n->indices) copy.indices.push_back(wide(index, r));
          return make(std::move(copy), n.span());
        },
        [&](const Ref<BufferStore>& n, Rewriter& r) -> Stmt {
          BufferStore copy{r.typed(n->buffer), r(n->value), {}, r(n->predicate)};
          for (const Expr& index : n->indices) copy.indices.push_back(wide(index, r));
          return make(std::move(copy), n.span());
        },
        [&](const Ref<Call>& n, Rewriter& r) -> Expr {
          Ref<Call> made = r.descend(n);
          if (!is_written_elsewhere(*n)) return made;
          Call copy = *made;  // callees keep the types of their parameters
          for (size_t i = 0; i < copy.args.size(); ++i) {
            if (!n->args[i].defined() || n->args[i].sort() != Sort::kExpr) continue;
            const DataType type = n->arg(i).dtype();
            if (copy.arg(i).dtype() != type) copy.args[i] = cast(type, copy.arg(i));
          }
          return make(std::move(copy), n.span());
        },
        [&](const Ref<For>& n, Rewriter& r) -> Stmt {
          For copy = *n;
          copy.loop_var = r.typed(Ref<Var>(n->loop_var));
          copy.min = wide(n->min, r);
          copy.extent = wide(n->extent, r);
          copy.body = r(n->body);
          return make(std::move(copy), n.span());
        },
        [&](const Ref<BlockRealize>& n, Rewriter& r) -> Stmt {
          BlockRealize copy{{}, r(n->predicate), r.typed(n->block)};
          for (const Expr& value : n->iter_values) copy.iter_values.push_back(wide(value, r));
          return make(std::move(copy), n.span());
        });
#undef TW_WITH_INT64
  }

 private:
  static Expr as_int64(const Expr& e) {
    if (auto value = const_int(e); value && e.dtype() == kNarrow) return i64(*value);
    return e.dtype().element() == kNarrow ? cast(e.dtype().with_element(kWide), e) : e;
  }
  static Expr wide(const Expr& e, Rewriter& r) { return as_int64(r(e)); }

  std::unordered_map<NodeRef, Ref<Var>> vars_;
  std::unordered_map<NodeRef, Ref<Buffer>> buffers_;
};

}  // namespace

Ref<PrimFunc> with_wide_indices(const Ref<PrimFunc>& func) {
  IndexPromoter promoter;
  promoter.collect(func);
  return promoter.run(func);
}

}  // namespace tilewright
