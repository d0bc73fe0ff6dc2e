#include "analysis/size_limits.h"

#include <algorithm>
#include <optional>
#include <unordered_set>

#include "analysis/brief.h"
#include "analysis/validator.h"
#include "arith/analyzer.h"
#include "ir/build.h"
#include "ir/numeric.h"
#include "ir/sizes.h"
#include "ir/structural.h"
#include "ir/substitute.h"
#include "ir/traverse.h"
#include "support/ranges.h"

namespace tilewright::analysis {
namespace {

const DataType kWide = DataType::int_(64);

class Limits {
 public:
  explicit Limits(const PrimFunc& func) {
    for (const Ref<Var>& param : func.params) {
      if (Ref<Buffer> buffer = func.buffer_of(param); buffer.defined()) {
        for_each_size(*buffer, [&](const Size& size) {
          sizes_.insert(size.var);
          if (size.what == Size::Of::kExtent) analyzer_.assume(ge(size.var, 0));
        });
      } else if (param.dtype().is_int() && param.dtype().is_scalar()) {
        sizes_.insert(param);
        scalars_.push_back(param);
      }
    }
    add_declared(func.body);
    if (sizes_.empty()) return;
    visit(
        func.body,
        [&](const Ref<For>& loop) { add(loop->extent, "the loop '" + loop->loop_var->name_hint + "'", loop); },
        [&](const Ref<Block>& block) {
          for (const Ref<Buffer>& buffer : block->alloc_buffers) {
            for (const Expr& extent : buffer->shape) add(extent, "buffer '" + buffer->name + "'", block);
          }
        },
        [&](const Ref<Allocate>& allocate) {
          for (const Expr& extent : allocate->extents) {
            add(extent, "buffer '" + allocate->buffer_var->name_hint + "'", allocate);
          }
        });
  }

  std::vector<SizeLimit> take() { return std::move(limits_); }

 private:
  /// Adds the requirements of the root block. Annotations of another form are ignored.
  void add_declared(const Stmt& body) {
    const BlockRealize* root = body.as<BlockRealize>();
    if (!root || !root->block->iter_vars.empty()) return;
    const NodeRef declared = root->block->annotations.get(kRequiredSizes);
    if (!declared.defined() || !declared.is<List>()) return;
    for (const NodeRef& entry : declared.as<List>()->items) {
      const List* fields = entry.as<List>();
      if (!fields || fields->items.size() != 3 || fields->items[0].sort() != Sort::kExpr) continue;
      const StringImm *message = fields->items[1].as<StringImm>(), *hint = fields->items[2].as<StringImm>();
      if (!message || !hint) continue;
      limits_.push_back({Expr(fields->items[0]), message->value, hint->value, root->block});
    }
  }

  void add(const Expr& extent, const std::string& of, const NodeRef& node) {
    if (extent.is<IntImm>() || extent.is<Var>()) return;
    needed_ = Expr();
    if (!exact(extent) || !needed_.defined()) return;
    for (const SizeLimit& limit : limits_) {
      if (same_expr(limit.holds, needed_)) return;
    }
    limits_.push_back(
        {needed_,
         "the extent " + brief(extent) + " of " + of + " goes beyond " + extent.dtype().str() +
             " for arguments of these sizes",
         extent.dtype().bits < 64 ? "use smaller arrays, or declare the sizes as T.int64" : "use smaller sizes", node});
  }

  /// The value in int64, of sums, products and quotients of sizes; `needed_` receives what keeps each of its parts in
  /// its type, so that no part of the value itself can overflow where that holds.
  std::optional<Expr> exact(const Expr& e) {
    if (!e.dtype().is_int() || !e.dtype().is_scalar()) return std::nullopt;
    if (auto number = const_int(e)) return constant(kWide, *number);
    if (e.is<Var>()) {
      if (!sizes_.contains(e)) return std::nullopt;
      return cast(kWide, e);
    }
    if (const Cast* converted = e.as<Cast>()) {
      auto value = exact(converted->value);
      return value ? kept(*value, e.dtype()) : std::nullopt;
    }
    const bool is_sum = e.is<Add>() || e.is<Sub>() || e.is<Mul>() || e.is<Min>() || e.is<Max>();
    if (!is_sum && !e.is<FloorDiv>() && !e.is<FloorMod>()) return std::nullopt;
    BinaryOperands operands = binary_operands(e);
    if (!is_sum && const_int(*operands.b).value_or(0) < 1) return std::nullopt;
    auto a = exact(*operands.a), b = exact(*operands.b);
    if (!a || !b) return std::nullopt;
    if (e.is<Mul>() && e.dtype().bits >= 64) keep_product(*a, *b);
    if ((e.is<Add>() || e.is<Sub>()) && e.dtype().bits >= 64 && uses_scalar(e)) keep_sum(e.is<Add>(), *a, *b);
    return kept(binary(e.kind(), *a, *b), e.dtype());
  }

  /// Sums of the sizes of arrays that overflow would need arrays that no memory can hold; a number may be of any size.
  bool uses_scalar(const Expr& e) const {
    return any_of(scalars_, [&](const Ref<Var>& scalar) { return uses_var(e, scalar); });
  }

  /// Adds the limits of a product. No type is wider than int64, so the factors are compared before they are multiplied.
  void keep_product(const Expr& a, const Expr& b) {
    const arith::ConstIntBound x = analyzer_.const_int_bound(a), y = analyzer_.const_int_bound(b);
    const auto [least, most] = std::minmax({product(x.min_value, y.min_value), product(x.min_value, y.max_value),
                                            product(x.max_value, y.min_value), product(x.max_value, y.max_value)});
    if (most <= int_max(kWide) && least >= -int_max(kWide)) return;
    const Expr largest = constant(kWide, int_max(kWide)), none = zero(kWide);
    if (x.min_value >= 0 && y.min_value >= 0) return need(le(a, floordiv(largest, max(b, one(kWide)))));
    for (const Expr& factor : {a, b}) need(gt(factor, none - largest));  // the smallest has no absolute value
    need(le(max(a, none - a), floordiv(largest, max(max(b, none - b), one(kWide)))));
  }
  static __int128 product(__int128 a, __int128 b) { return a * b; }

  /// Adds the limits of a sum or a difference. Halves cannot overflow; simplify() takes for granted that sums do not.
  void keep_sum(bool adds, const Expr& a, const Expr& b) {
    const arith::ConstIntBound x = analyzer_.const_int_bound(a), y = analyzer_.const_int_bound(b);
    const __int128 most = x.max_value + (adds ? __int128(y.max_value) : -__int128(y.min_value));
    const __int128 least = x.min_value + (adds ? __int128(y.min_value) : -__int128(y.max_value));
    const Expr two = constant(kWide, 2);
    auto combined = [&](const Expr& left, const Expr& right) { return adds ? left + right : left - right; };
    const Expr half =
        combined(floordiv(a, two), floordiv(b, two)) + floordiv(combined(floormod(a, two), floormod(b, two)), two);
    if (most > int_max(kWide)) need(le(half, constant(kWide, int_max(kWide) / 2)));
    if (least < -int_max(kWide)) need(ge(half, constant(kWide, int_min(kWide) / 2)));
  }

  void need(Expr holds) { needed_ = needed_.defined() ? logical_and(needed_, holds) : holds; }

  std::optional<Expr> kept(Expr value, DataType type) {
    if (type.bits >= 64) return value;
    const arith::ConstIntBound bound = analyzer_.const_int_bound(value);
    if (bound.max_value > int_max(type)) need(le(value, constant(kWide, int_max(type))));
    if (bound.min_value < int_min(type)) need(ge(value, constant(kWide, int_min(type))));
    return value;
  }

  arith::Analyzer analyzer_;
  std::unordered_set<NodeRef> sizes_;
  std::vector<Ref<Var>> scalars_;  ///< the sizes that are parameters
  Expr needed_;
  std::vector<SizeLimit> limits_;
};

}  // namespace

std::vector<SizeLimit> size_limits(const PrimFunc& func) { return Limits(func).take(); }

}  // namespace tilewright::analysis
