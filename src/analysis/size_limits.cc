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

const DataType kInt64 = DataType::int_(64);

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
        [&](const Ref<For>& loop) { add_extent(loop->extent, "the loop '" + loop->loop_var->name_hint + "'", loop); },
        [&](const Ref<Block>& block) {
          for (const Ref<Buffer>& buffer : block->alloc_buffers) {
            for (const Expr& extent : buffer->shape) add_extent(extent, "buffer '" + buffer->name + "'", block);
          }
        },
        [&](const Ref<Allocate>& allocate) {
          for (const Expr& extent : allocate->extents) {
            add_extent(extent, "buffer '" + allocate->buffer_var->name_hint + "'", allocate);
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

  void add_extent(const Expr& extent, const std::string& owner, const NodeRef& node) {
    if (extent.is<IntImm>() || extent.is<Var>()) return;
    required_ = Expr();
    if (!int64_value_of(extent) || !required_.defined()) return;
    for (const SizeLimit& limit : limits_) {
      if (same_expr(limit.holds, required_)) return;
    }
    limits_.push_back(
        {required_,
         "the extent " + brief(extent) + " of " + owner + " goes beyond " + extent.dtype().str() +
             " for arguments of these sizes",
         extent.dtype().bits < 64 ? "use smaller arrays, or declare the sizes as T.int64" : "use smaller sizes", node});
  }

  /// Returns the value of an extent in int64, or nothing if it is not arithmetic over sizes. Side effect: adds to
  /// `required_` the conditions under which no subexpression overflows its own type.
  std::optional<Expr> int64_value_of(const Expr& e) {
    if (!e.dtype().is_int() || !e.dtype().is_scalar()) return std::nullopt;
    if (auto number = const_int(e)) return constant(kInt64, *number);
    if (e.is<Var>()) {
      if (!sizes_.contains(e)) return std::nullopt;
      return cast(kInt64, e);
    }
    if (const Cast* converted = e.as<Cast>()) {
      auto value = int64_value_of(converted->value);
      return value ? require_fits(*value, e.dtype()) : std::nullopt;
    }
    const bool is_arithmetic = e.is<Add>() || e.is<Sub>() || e.is<Mul>() || e.is<Min>() || e.is<Max>();
    if (!is_arithmetic && !e.is<FloorDiv>() && !e.is<FloorMod>()) return std::nullopt;
    BinaryOperands operands = binary_operands(e);
    if (!is_arithmetic && const_int(*operands.b).value_or(0) < 1) return std::nullopt;
    auto a = int64_value_of(*operands.a), b = int64_value_of(*operands.b);
    if (!a || !b) return std::nullopt;
    if (e.is<Mul>() && e.dtype().bits >= 64) require_product_fits(*a, *b);
    if ((e.is<Add>() || e.is<Sub>()) && e.dtype().bits >= 64 && uses_scalar(e)) require_sum_fits(e.is<Add>(), *a, *b);
    return require_fits(binary(e.kind(), *a, *b), e.dtype());
  }

  /// Whether the expression uses a scalar parameter. Only these can overflow 64-bit sums: an array whose extents do
  /// would not fit in memory.
  bool uses_scalar(const Expr& e) const {
    return any_of(scalars_, [&](const Ref<Var>& scalar) { return uses_var(e, scalar); });
  }

  /// Requires that a product fits int64. No type is wider, so the factors are compared before they are multiplied.
  void require_product_fits(const Expr& a, const Expr& b) {
    const arith::ConstIntBound x = analyzer_.const_int_bound(a), y = analyzer_.const_int_bound(b);
    const auto [least, most] = std::minmax({product(x.min_value, y.min_value), product(x.min_value, y.max_value),
                                            product(x.max_value, y.min_value), product(x.max_value, y.max_value)});
    if (most <= int_max(kInt64) && least >= -int_max(kInt64)) return;
    const Expr largest = constant(kInt64, int_max(kInt64)), zero64 = zero(kInt64);
    if (x.min_value >= 0 && y.min_value >= 0) return require(le(a, floordiv(largest, max(b, one(kInt64)))));
    for (const Expr& factor : {a, b}) require(gt(factor, zero64 - largest));  // -2^63 has no absolute value in int64
    require(le(max(a, zero64 - a), floordiv(largest, max(max(b, zero64 - b), one(kInt64)))));
  }
  static __int128 product(__int128 a, __int128 b) { return a * b; }

  /// Requires that a sum or a difference fits int64. It compares halves, which cannot overflow; simplify() assumes that
  /// sums do not.
  void require_sum_fits(bool adds, const Expr& a, const Expr& b) {
    const arith::ConstIntBound x = analyzer_.const_int_bound(a), y = analyzer_.const_int_bound(b);
    const __int128 most = x.max_value + (adds ? __int128(y.max_value) : -__int128(y.min_value));
    const __int128 least = x.min_value + (adds ? __int128(y.min_value) : -__int128(y.max_value));
    const Expr two = constant(kInt64, 2);
    auto combined = [&](const Expr& left, const Expr& right) { return adds ? left + right : left - right; };
    const Expr half =
        combined(floordiv(a, two), floordiv(b, two)) + floordiv(combined(floormod(a, two), floormod(b, two)), two);
    if (most > int_max(kInt64)) require(le(half, constant(kInt64, int_max(kInt64) / 2)));
    if (least < -int_max(kInt64)) require(ge(half, constant(kInt64, int_min(kInt64) / 2)));
  }

  void require(Expr holds) { required_ = required_.defined() ? logical_and(required_, holds) : holds; }

  /// Requires that the value fits `type`, unless its interval proves it. Returns the value.
  std::optional<Expr> require_fits(Expr value, DataType type) {
    if (type.bits >= 64) return value;
    const arith::ConstIntBound bound = analyzer_.const_int_bound(value);
    if (bound.max_value > int_max(type)) require(le(value, constant(kInt64, int_max(type))));
    if (bound.min_value < int_min(type)) require(ge(value, constant(kInt64, int_min(type))));
    return value;
  }

  arith::Analyzer analyzer_;
  std::unordered_set<NodeRef> sizes_;
  std::vector<Ref<Var>> scalars_;  ///< scalar integer parameters (also in sizes_)
  Expr required_;
  std::vector<SizeLimit> limits_;
};

}  // namespace

std::vector<SizeLimit> size_limits(const PrimFunc& func) { return Limits(func).take(); }

}  // namespace tilewright::analysis
