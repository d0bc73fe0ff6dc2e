// Stores parameters whose layout is free in the order in which they are read.
//
//   attribute of the function: "layout_free_buffers": [1]             the second parameter, B
//   for i0, j, k0, i1, k1: C[..] += A[..] * B[k0 * 4 + k1, j]         the digits of B's offset, in the order of the
//                                                                     loops that they belong to: j, k0, k1
//   B_global[j, k // 4, k % 4] = B[k, j]                              a block with the annotation
//   for i0, j, k0, i1, k1: .. A[..] * B_global[j, k0, k1]             meta_schedule.layout_rewrite_preproc
//
// Where copies of B feed the reader, all of them get that layout, and the new copy comes before the first. A buffer
// that is read at several places, or through something other than digits of loops, keeps its layout.
#include <algorithm>

#include "arith/iter_map.h"
#include "ir/build.h"
#include "ir/substitute.h"
#include "ir/traverse.h"
#include "schedule/primitives/annotate.h"
#include "schedule/primitives/cache_read.h"
#include "schedule/primitives/transform_layout.h"
#include "search/loop_kinds.h"
#include "search/postprocs/postprocs.h"
#include "support/ranges.h"

namespace tilewright::search {
namespace {

using namespace schedule;  // NOLINT: instructions
using analysis::Tree;

constexpr const char* kMark = "meta_schedule.layout_rewrite_preproc";

/// Row-major, in 64 bits if the indices are.
Expr flattened(const std::vector<Expr>& indices, const std::vector<Expr>& shape) {
  Expr offset = indices[0];
  for (size_t d = 1; d < indices.size(); ++d) offset = offset * cast(offset.dtype(), shape[d]) + indices[d];
  return offset;
}

/// Loops around a position, also those of the blocks around, and what the axes of these are bound to.
struct LayoutContext {
  arith::IterDomains loops;
  VarMap axes;
  Expr predicate;
};

LayoutContext around(const Tree& tree, int block) {
  LayoutContext result;
  std::vector<int> path;
  for (int at = block; at != Tree::kNone; at = tree[at].parent) path.push_back(at);
  for (int at : reversed(path)) {
    if (tree[at].is_loop) {
      const For& loop = tree.for_at(at);
      result.loops.emplace_back(loop.loop_var, range(loop.min, loop.extent));
    } else if (const BlockRealize* realize = tree.realize_at(at)) {
      for (size_t i : indices_of(realize->iter_values)) {
        result.axes[realize->block->iter_vars[i]->var] = substitute(realize->iter_values[i], result.axes);
      }
      if (at == block) result.predicate = substitute(realize->predicate, result.axes);
    }
  }
  return result;
}

struct Digit {
  size_t loop;
  int64_t lower, scale, extent;
};

/// Returns the digits of loops that the offset is a sum of; nothing if it is no such sum.
std::optional<std::vector<Digit>> digits_of(const std::vector<Expr>& indices, const Buffer& buffer,
                                            const LayoutContext& around) {
  if (indices.empty()) return std::nullopt;
  arith::Analyzer analyzer;
  for (const auto& [loop_var, range] : around.loops) analyzer.bind(loop_var, range);
  std::vector<Expr> values;
  for (const Expr& index : indices) values.push_back(substitute(index, around.axes));
  Expr offset = analyzer.simplify(flattened(values, buffer.shape));
  auto map =
      arith::detect_iter_map({offset}, around.loops, around.predicate, arith::IterMapLevel::kSurjective, analyzer);
  if (!map.ok() || !is_const_int(map.indices[0].base, 0)) return std::nullopt;
  std::vector<Digit> digits;
  for (const arith::IterSplitExpr& split : map.indices[0].args) {
    if (split.source->sum) return std::nullopt;
    auto lower = const_int(split.lower_factor), extent = const_int(split.extent), scale = const_int(split.scale);
    auto loop = find_if(around.loops, [&](const auto& entry) { return entry.first == split.source->var; });
    if (!lower || !extent || !scale || loop == around.loops.end()) return std::nullopt;
    digits.push_back({static_cast<size_t>(loop - around.loops.begin()), *lower, *scale, *extent});
  }
  std::ranges::stable_sort(
      digits, [](const Digit& a, const Digit& b) { return a.loop != b.loop ? a.loop < b.loop : a.lower > b.lower; });
  return digits;
}

Ref<IndexMap> map_by(const std::vector<Digit>& digits, const Buffer& buffer) {
  IndexMap map;
  arith::Analyzer analyzer;
  std::vector<Expr> indices;
  for (size_t d : indices_of(buffer.shape)) {
    Ref<Var> index = var("i" + std::to_string(d), buffer.shape[d].dtype());
    analyzer.bind(index, range(zero(index.dtype()), buffer.shape[d]));
    map.initial_indices.emplace_back(index);
    indices.push_back(index);
  }
  Expr offset = flattened(indices, buffer.shape);
  auto number = [&](int64_t value) { return int_imm(offset.dtype(), value); };
  for (const Digit& digit : digits) {
    Expr above = floordiv(offset, number(digit.scale));
    map.final_indices.push_back(analyzer.simplify(floormod(above, number(digit.extent))));
  }
  if (digits.empty()) map.final_indices.push_back(zero(offset.dtype()));
  return make(std::move(map));
}

struct Reader {
  Ref<Block> block;
  int64_t position;  ///< among its reads
  Ref<IndexMap> map;
};

bool same_digits(const std::vector<Digit>& a, const std::vector<Digit>& b) {
  return std::ranges::equal(a, b, [](const Digit& x, const Digit& y) {
    return x.loop == y.loop && x.lower == y.lower && x.scale == y.scale && x.extent == y.extent;
  });
}

/// The innermost block around each load of the buffer; a load outside of all blocks but the root is an error.
Result<std::vector<std::pair<int, Ref<BufferLoad>>>> loads_of(const Tree& tree, const Ref<Buffer>& buffer) {
  std::vector<std::pair<int, Ref<BufferLoad>>> loads;
  bool outside = false;
  std::vector<int> blocks = {0};
  visit(
      tree.block_ref(0),
      [&](const Ref<BlockRealize>& realize, Visitor& v) {
        int at = tree.block(realize->block->id.value);
        blocks.push_back(at == Tree::kNone ? blocks.back() : at);
        v.descend(realize);
        blocks.pop_back();
      },
      [&](const Ref<BufferLoad>& load) {
        if (load->buffer != buffer) return;
        if (blocks.back() == 0) outside = true;
        loads.emplace_back(blocks.back(), load);
      });
  if (outside) {
    return schedule_error("search/layout", "'" + buffer->name + "', whose layout is free, is read outside of blocks",
                          "put the statement into a block, so that the script says what it reads");
  }
  return loads;
}

/// The one block that reads the buffer, and the layout that suits it; none where there is none.
Result<std::optional<Reader>> reader_of(const Tree& tree, const Ref<Buffer>& buffer) {
  TW_TRY(loads, loads_of(tree, buffer));
  std::optional<std::vector<Digit>> digits;
  int block = Tree::kNone;
  for (const auto& [at, load] : loads) {
    auto found = digits_of(load->indices, *buffer, around(tree, at));
    if (!found || (digits && (block != at || !same_digits(*digits, *found)))) return std::optional<Reader>();
    digits = std::move(found);
    block = at;
  }
  if (!digits) return std::optional<Reader>();
  const std::vector<Ref<BufferRegion>>& reads = tree.block_at(block).reads;
  for (size_t i : indices_of(reads)) {
    if (reads[i]->buffer == buffer) {
      return std::optional<Reader>({tree.block_ref(block), static_cast<int64_t>(i), map_by(*digits, *buffer)});
    }
  }
  return std::optional<Reader>();
}

/// A block that only copies the buffer, element by element, into another one of the same shape: that one.
Ref<Buffer> copy_made_by(const Block& block, const Ref<Buffer>& buffer) {
  const BufferStore* store = block.body.as<BufferStore>();
  const BufferLoad* load = store ? store->value.as<BufferLoad>() : nullptr;
  bool copies = load && !block.init.defined() && load->buffer == buffer && block.writes.size() == 1 &&
                load->indices == store->indices;
  return copies ? store->buffer : Ref<Buffer>();
}

/// The blocks that pass the buffer on, first to last.
std::vector<Ref<Block>> copies_of(const Tree& tree, Ref<Buffer> buffer) {
  std::vector<Ref<Block>> chain;
  for (bool found = true; found;) {
    found = false;
    int readers = 0;
    Ref<Block> copier;
    Ref<Buffer> copy;
    for (int at : tree.blocks()) {
      const Block& block = tree.block_at(at);
      if (at == 0 || !any_of(block.reads, [&](const Ref<BufferRegion>& read) { return read->buffer == buffer; })) {
        continue;
      }
      ++readers;
      copy = copy_made_by(block, buffer);
      copier = tree.block_ref(at);
    }
    if (readers != 1 || !copy.defined()) break;
    chain.push_back(copier);
    buffer = copy;
    found = chain.size() < tree.blocks().size();
  }
  return chain;
}

Status transform(Schedule& schedule, BlockRV reader, int64_t position, const Ref<IndexMap>& map) {
  TW_RETURN_IF_ERROR(schedule.apply(TransformLayout{reader, {"read", position}, {map}, {}, false, {}}));
  return Ok{};
}

Status insert_copy(Schedule& schedule, BlockRV reader, int64_t position) {
  TW_TRY(copy, schedule.apply(CacheRead{reader, position, "global", {}}));
  TW_RETURN_IF_ERROR(schedule.apply(Annotate{copy, kMark, {true}}));
  return Ok{};
}

/// Gives the last buffer of the chain of copies, and those before, the layout that suits the reader.
Status carry_out(Schedule& schedule, uint32_t func, const std::vector<Ref<Block>>& chain, const Reader& reader) {
  // New copies may be named like old ones, so all handles are looked up before.
  TW_TRY(consumer, handle_of(schedule, func, *reader.block));
  std::vector<BlockRV> copies;
  for (const Ref<Block>& copy : chain) {
    TW_TRY(rv, handle_of(schedule, func, *copy));
    copies.push_back(rv);
  }
  if (chain.empty()) TW_RETURN_IF_ERROR(insert_copy(schedule, consumer, reader.position));
  TW_RETURN_IF_ERROR(transform(schedule, consumer, reader.position, reader.map));
  for (size_t i = copies.size(); i-- > 0;) {
    if (i == 0) TW_RETURN_IF_ERROR(insert_copy(schedule, copies[0], 0));
    TW_RETURN_IF_ERROR(transform(schedule, copies[i], 0, reader.map));
  }
  return Ok{};
}

Status rewrite(Schedule& schedule, uint32_t func, const Ref<Buffer>& buffer) {
  TW_TRY(tree, schedule.state().tree(func));
  std::vector<Ref<Block>> chain = copies_of(*tree, buffer);
  Ref<Buffer> last = chain.empty() ? buffer : chain.back()->writes[0]->buffer;
  TW_TRY(reader, reader_of(*tree, last));
  if (!reader) return Ok{};
  Schedule before = schedule;
  if (!carry_out(schedule, func, chain, *reader).ok()) schedule = std::move(before);
  return Ok{};
}

std::vector<Ref<Buffer>> free_buffers(const PrimFunc& func) {
  std::vector<Ref<Buffer>> result;
  const List* list = func.attrs.get("layout_free_buffers").as<List>();
  if (!list) return result;
  for (const NodeRef& item : list->items) {
    const IntImm* number = item.as<IntImm>();
    if (!number || number->value < 0 || number->value >= static_cast<int64_t>(func.params.size())) continue;
    if (Ref<Buffer> buffer = func.buffer_of(func.params[number->value]); buffer.defined()) result.push_back(buffer);
  }
  return result;
}

}  // namespace

Result<bool> RewriteLayout::apply(Schedule& schedule) const {
  for (uint32_t func = 0; func < schedule.state().module()->functions.size(); ++func) {
    const Func& function = schedule.state().function_at(func);
    if (!function.is<PrimFunc>()) continue;
    Ref<PrimFunc> before = function.borrow<PrimFunc>();
    for (const Ref<Buffer>& buffer : free_buffers(*before)) TW_RETURN_IF_ERROR(rewrite(schedule, func, buffer));
  }
  return true;
}

}  // namespace tilewright::search
