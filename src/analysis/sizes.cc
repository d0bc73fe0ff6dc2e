#include "analysis/sizes.h"

#include <cstdlib>
#include <optional>
#include <unordered_set>

#include "ir/build.h"
#include "ir/structural.h"
#include "ir/substitute.h"
#include "ir/traverse.h"
#include "support/ranges.h"

namespace tilewright::analysis {
namespace {

/// Whether an expression has the other one in it, as what an axis is bound to: a variable, or parts of one.
bool contains(const Expr& whole, const Expr& part) {
  if (part.is<Var>()) return uses_var(whole, part);
  bool found = same_expr(whole, part);
  auto look = [&](const auto& node) { found |= same_expr(Expr(node), part); };
  visit(whole, on<FloorDiv, FloorMod, Add>(look));
  return found;
}

bool is_size(const std::vector<Expr>& sizes, const Expr& e) {
  return any_of(sizes, [&](const Expr& size) { return same_expr(size, e); });
}

/// Extents of the accessed buffers that are not constants, such as n and n // 2, and use no variable that a loop or an
/// axis of the program binds. Only buffers of parameters count: the extent of an allocated buffer may be negative. A
/// fact of the root block.
class FreeSizes : public Memo::Fact {
 public:
  static const std::vector<Expr>& of(const Tree& tree) {
    return tree.block_at(0).id.memo.get<FreeSizes>([&] { return FreeSizes(tree); }).sizes_;
  }

 private:
  explicit FreeSizes(const Tree& tree) {
    visit(tree.block_at(0).body, [&](const Ref<DeclBuffer>& declared) { own_.insert(declared->buffer); });
    for (int at : tree.blocks()) {
      const Block& block = tree.block_at(at);
      own_.insert(block.alloc_buffers.begin(), block.alloc_buffers.end());
      for (const Ref<MatchBufferRegion>& view : block.match_buffers) own_.insert(view->buffer);
    }
    for (int at : tree.blocks()) {
      const Block& block = tree.block_at(at);
      for (const auto* regions : {&block.reads, &block.writes}) {
        for (const Ref<BufferRegion>& region : *regions) add_all(tree, region->buffer);
      }
    }
    // A root block has the regions that the script states, which may be none.
    visit(
        tree.block_at(0).body, [](const Ref<BlockRealize>&, Visitor&) {},
        on<BufferLoad, BufferStore>([&](const auto& access) { add_all(tree, access->buffer); }));
  }

  void add_all(const Tree& tree, const Ref<Buffer>& buffer) {
    if (own_.contains(buffer)) return;
    for (const Expr& extent : buffer->shape) {
      if (const_int(extent) || !extent.dtype().is_int() || is_size(sizes_, extent)) continue;
      const bool is_bound =
          uses_any_var(extent, [&](const Ref<Var>& v) { return tree.loop(v) != Tree::kNone || is_axis(tree, v); });
      if (!is_bound) sizes_.push_back(extent);
    }
  }

  static bool is_axis(const Tree& tree, const Expr& v) {
    return any_of(tree.blocks(), [&](int at) {
      const auto& axes = tree.block_at(at).iter_vars;
      return any_of(axes, [&](const Ref<IterVar>& axis) { return axis->var == v; });
    });
  }

  std::unordered_set<NodeRef> own_;  ///< buffers that the program makes
  std::vector<Expr> sizes_;
};

/// Derives lower bounds of sizes from lower bounds of expressions, and makes an analyzer assume them.
class LeastValues {
 public:
  LeastValues(arith::Analyzer& analyzer, const Tree& tree)
      : analyzer_(analyzer), tree_(tree), sizes_(FreeSizes::of(tree)) {}

  /// Assumes e >= 1, and the same of each factor that is proven to be nonnegative.
  void assume_positive(const Expr& e) {
    if (const Mul* product = e.as<Mul>()) {
      for (const Expr* factor : {&product->a, &product->b}) {
        if (is_nonnegative(*factor)) assume_positive(*factor);
      }
    }
    assume_at_least(e, 1);
  }

  /// Assumes e >= least, and what that implies for parts of `e`: (n + 7) // 8 >= 2 implies n >= 9.
  void assume_at_least(const Expr& e, int64_t least) {
    constexpr int64_t kMost = INT32_MAX;
    if (std::abs(least) > kMost) return;
    if (is_size(sizes_, e)) analyzer_.assume(ge(e, constant(e.dtype(), least)));
    if (const Add* sum = e.as<Add>()) {
      auto known = const_int(sum->b);
      if (known && std::abs(*known) <= kMost) assume_at_least(sum->a, least - *known);
    } else if (const FloorDiv* quotient = e.as<FloorDiv>()) {
      auto divisor = const_int(quotient->b);
      if (divisor && *divisor > 0 && *divisor <= kMost) assume_at_least(quotient->a, least * *divisor);
    } else if (const Min* smaller = e.as<Min>()) {
      assume_at_least(smaller->a, least);
      assume_at_least(smaller->b, least);
    } else if (is_in_size(e) && !is_size(sizes_, e)) {
      analyzer_.assume(ge(e, constant(e.dtype(), least)));
    }
  }

 private:
  /// Whether `e` is a variable that a size uses, or a constant multiple of one.
  bool is_in_size(const Expr& e) const {
    const Mul* product = e.as<Mul>();
    if (product && const_int(product->b)) return is_in_size(product->a);
    return e.is<Var>() && any_of(sizes_, [&](const Expr& size) { return uses_var(size, e); });
  }

  bool is_nonnegative(const Expr& e) {
    if (auto known = const_int(e)) return *known >= 0;
    if (is_size(sizes_, e)) return true;
    if (!e.is<FloorDiv>() && !e.is<Add>()) return false;
    if (!of_sizes_) {
      of_sizes_.emplace();
      assume_sizes(*of_sizes_, tree_);
    }
    return of_sizes_->can_prove(ge(e, zero(e.dtype())));
  }

  arith::Analyzer& analyzer_;
  const Tree& tree_;
  const std::vector<Expr>& sizes_;
  std::optional<arith::Analyzer> of_sizes_;  ///< knows of sizes alone
};

}  // namespace

void assume_sizes(arith::Analyzer& analyzer, const Tree& tree) {
  LeastValues values(analyzer, tree);
  for (const Expr& size : FreeSizes::of(tree)) values.assume_at_least(size, 0);
}

void assume_runs(arith::Analyzer& analyzer, const Tree& tree, const std::vector<int>& loops) {
  LeastValues extents(analyzer, tree);
  for (int at : loops) {
    const Expr& extent = tree.for_at(at).extent;
    if (!extent.is<IntImm>()) extents.assume_positive(extent);
  }
}

void assume_instances(arith::Analyzer& analyzer, const Tree& tree, int block, const std::vector<Expr>& values) {
  const BlockRealize& realize = *tree.realize_at(block);
  LeastValues extents(analyzer, tree);
  for (size_t i : indices_of(realize.iter_values)) {
    const Expr& extent = realize.block->iter_vars[i]->dom->extent;
    auto uses_axis = [&](const Expr& value) { return contains(value, realize.iter_values[i]); };
    if (extent.is<IntImm>() || none_of(values, uses_axis)) continue;
    extents.assume_positive(extent);
  }
}

void assume_runs_around(arith::Analyzer& analyzer, const Tree& tree, int at) {
  for (; at != Tree::kNone; at = tree[at].parent) {
    if (tree[at].is_loop) assume_runs(analyzer, tree, {at});
  }
}

}  // namespace tilewright::analysis
