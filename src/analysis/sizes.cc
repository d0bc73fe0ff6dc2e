#include "analysis/sizes.h"

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

/// Extents of the accessed buffers, where an extent is a variable that no loop or axis of the program binds. Only
/// buffers of parameters count: the extent of an allocated buffer may be negative. A fact of the root block.
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
      if (!extent.is<Var>() || !extent.dtype().is_int() || tree.loop(extent) != Tree::kNone) continue;
      if (!is_contained(sizes_, extent) && !is_axis(tree, extent)) {
        sizes_.push_back(extent);
      }
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

/// `e` is at least 1: so are sizes that it is a multiple of. (e + c) // d is, for 0 <= c < d, where e is.
void assume_positive(arith::Analyzer& analyzer, const std::vector<Expr>& sizes, const Expr& e) {
  if (const Mul* product = e.as<Mul>()) {
    assume_positive(analyzer, sizes, product->a);
    assume_positive(analyzer, sizes, product->b);
  } else if (const FloorDiv* blocks = e.as<FloorDiv>()) {
    const Add* sum = blocks->a.as<Add>();
    auto rest = sum ? const_int(sum->b) : std::nullopt, divisor = const_int(blocks->b);
    if (rest && divisor && 0 <= *rest && *rest < *divisor) assume_positive(analyzer, sizes, sum->a);
  } else if (is_contained(sizes, e)) {
    analyzer.assume(ge(e, 1));
  }
}

}  // namespace

void assume_sizes(arith::Analyzer& analyzer, const Tree& tree) {
  for (const Expr& size : FreeSizes::of(tree)) analyzer.assume(ge(size, 0));
}

void assume_runs(arith::Analyzer& analyzer, const Tree& tree, const std::vector<int>& loops) {
  for (int at : loops) {
    const Expr& extent = tree.for_at(at).extent;
    if (!extent.is<IntImm>()) assume_positive(analyzer, FreeSizes::of(tree), extent);
  }
}

void assume_instances(arith::Analyzer& analyzer, const Tree& tree, int block, const std::vector<Expr>& values) {
  const BlockRealize& realize = *tree.realize_at(block);
  for (size_t i : indices_of(realize.iter_values)) {
    const Expr& extent = realize.block->iter_vars[i]->dom->extent;
    auto uses_axis = [&](const Expr& value) { return contains(value, realize.iter_values[i]); };
    if (extent.is<IntImm>() || none_of(values, uses_axis)) continue;
    assume_positive(analyzer, FreeSizes::of(tree), extent);
  }
}

void assume_runs_around(arith::Analyzer& analyzer, const Tree& tree, int at) {
  for (; at != Tree::kNone; at = tree[at].parent) {
    if (tree[at].is_loop) assume_runs(analyzer, tree, {at});
  }
}

}  // namespace tilewright::analysis
