// Shrink allocated buffers to the region that is accessed where they are allocated.
//
//   Before                                       After
//   for i in range(16):                          for i in range(16):
//     with T.block(""):                            with T.block(""):
//       t = T.alloc_buffer((64, 64))                 t = T.alloc_buffer((4, 64))
//       for a, j in T.grid(4, 64):                   for a, j in T.grid(4, 64):
//         ... t[i * 4 + a, j] ...                      ... t[a, j] ...
//
// Needs      blocks without axes; buffers allocated in the innermost place (plan_allocations)
// Ensures    the extent of each dimension is an upper bound of what is accessed there, a constant wherever one can be
//            proved, so that a cached copy under a loop becomes a packed panel; indices are counted from its start.
//            Rows are padded where a block asks for it with "buffer_dim_align". Buffers whose pointer leaves the
//            program's sight stay as they are.
// Placement  after plan_allocations, while predicates of blocks show which iterations access anything
#include <algorithm>
#include <unordered_set>

#include "analysis/accesses.h"
#include "analysis/threads.h"
#include "arith/int_set.h"
#include "ir/build.h"
#include "ir/structural.h"
#include "ir/substitute.h"
#include "ir/traverse.h"
#include "lower/passes.h"
#include "support/ranges.h"

namespace tilewright::lower {
namespace {

using arith::Analyzer;
using arith::Box;
using arith::Domains;
using arith::IntSet;

/// A buffer and the block that allocates it.
struct Candidate {
  Ref<Buffer> buffer;
  NodeRef location;
  Box touched;
  bool seen = false;
  bool opaque = false;                   ///< its pointer is used directly
  std::unordered_set<NodeRef> inside{};  ///< variables of loops and lets around accesses, inside of the location
};

struct Layout {
  std::vector<Expr> start;  ///< subtracted from indices
  Ref<Buffer> buffer;
};

Ref<Range> loop_range(const For& loop) { return make<Range>({loop.min, loop.extent}); }

/// Collects, for each allocated buffer, the box of its accesses.
class RegionCollector {
 public:
  explicit RegionCollector(PassContext& context) : context_(context) {}

  std::unordered_map<NodeRef, Layout> run(const Ref<PrimFunc>& func) {
    assume_sizes(*func, analyzer_);
    assume_small(*func);
    visit(func->body, [&](const Ref<Block>& block) {
      for (const Def<Buffer>& buffer : block->alloc_buffers) {
        by_data_[buffer->data] = buffer;
        candidates_[buffer] = {buffer, block, {}};
        order_.push_back(buffer);
      }
      note_alignment(block);
    });
    analysis::for_each_access(func->body, analysis::Nested::kEnter,
                              [&](const analysis::Access& access) { note(access); });
    for (const Ref<Buffer>& buffer : order_) decide(buffer);
    return std::move(layouts_);
  }

 private:
  /// Assumes that integers from calls are at most a million, to compare sizes.
  void assume_small(const PrimFunc& func) {
    assume_sizes(func, small_);
    auto limit = [&](const Expr& e) {
      if (!e.is<Var>() || !e.dtype().is_int() || e.dtype().bits < 32) return;
      small_.assume(ge(e, 0));
      small_.assume(le(e, constant(e.dtype(), 1 << 20)));
    };
    std::ranges::for_each(func.params, limit);
    for (const auto& [param, buffer] : func.buffer_map) {
      for (const auto* part : {&buffer->shape, &buffer->strides}) std::ranges::for_each(*part, limit);
    }
  }
  /// Whether a bound follows from the types of variables only, such as that of (n + 3) // 4.
  bool follows_from_types(const Expr& extent, const arith::ConstIntBound& bound) {
    return small_.const_int_bound(extent).max_value != bound.max_value;
  }

  Candidate* candidate_of(const analysis::Access& access) {
    NodeRef buffer = access.named;
    if (access.form == analysis::Access::Form::kPointer) buffer = find_value_or(by_data_, access.pointer, NodeRef());
    return find_value(candidates_, buffer);
  }

  /// Returns the loops and conditions between the allocation and the access.
  static analysis::Surroundings since(const Candidate& candidate, analysis::Surroundings around) {
    size_t location = 0;
    while (location < around.size() && around[location].node != candidate.location) ++location;
    return around.subspan(std::min(location + 1, around.size()));
  }

  void note(const analysis::Access& access) {
    Candidate* candidate = candidate_of(access);
    if (!candidate) return;
    using Form = analysis::Access::Form;
    candidate->opaque |= access.form == Form::kPointer || access.form == Form::kAddress;
    for (const analysis::Surrounding& s : access.around) {
      const For* loop = s.node.as<For>();
      if (!loop || !bound_.insert(loop->loop_var).second) continue;
      analyzer_.bind(loop->loop_var, loop_range(*loop));
      small_.bind(loop->loop_var, loop_range(*loop));
    }
    analysis::Surroundings around = since(*candidate, access.around);
    Domains domains = analysis::domains_of(around);
    // A copy that threads share holds what all of them access.
    for (const analysis::Surrounding& s : access.around) {
      const For* loop = s.node.as<For>();
      if (loop && analysis::joins_threads(*loop, candidate->buffer)) {
        domains.emplace(loop->loop_var, IntSet::of_range(loop_range(*loop)));
      }
    }
    for (const auto& [variable, set] : domains) candidate->inside.insert(variable);
    Expr condition = keeps_shape(*candidate->buffer) ? bool_imm(true) : analysis::known_conditions(around);
    if (const std::vector<Expr>* indices = access.indices()) {
      Box box;
      for (const Expr& index : *indices) {
        box.push_back(index.dtype().is_vector() ? vector_set(index, domains, condition)
                                                : arith::eval_set(index, domains, analyzer_, condition));
      }
      add(*candidate, std::move(box));
    } else if (Ref<BufferRegion> region = access.region(); region.defined()) {
      add(*candidate, arith::relax_region(region->region, domains, analyzer_, condition));
    }
  }

  /// Registers beyond the last element cost nothing: a tile keeps its shape where its last elements do not exist, so
  /// that every access to it is alike.
  static bool keeps_shape(const Buffer& buffer) { return is_local(buffer); }

  IntSet vector_set(const Expr& index, const Domains& domains, const Expr& condition) {
    const Ramp* ramp = index.as<Ramp>();
    auto stride = ramp ? const_int(ramp->stride) : std::nullopt;
    if (!stride) return IntSet::everything();
    IntSet base = arith::eval_set(ramp->base, domains, analyzer_, condition);
    int64_t reach = *stride * (index.dtype().lanes - 1);
    if (base.min.defined() && reach < 0) base.min = base.min + reach;
    if (base.max.defined() && reach > 0) base.max = base.max + reach;
    return base;
  }

  void add(Candidate& candidate, Box box) {
    candidate.touched = candidate.seen ? arith::unite(candidate.touched, box, analyzer_) : std::move(box);
    candidate.seen = true;
  }

  /// "buffer_dim_align": lists (index of the written buffer, dimension, factor, offset), as in TVM.
  void note_alignment(const Ref<Block>& block) {
    const NodeRef annotation = block->annotations.get("buffer_dim_align");
    if (!annotation.defined()) return;
    const List* list = annotation.as<List>();
    for (const NodeRef& item : list ? list->items : std::vector<NodeRef>{annotation}) {
      if (std::string why = why_no_alignment(*block, item); !why.empty()) {
        context_.notes.push_back({"lower/not-aligned", context_.function,
                                  "block '" + block->name_hint + "' asks for rows of a buffer to be aligned: " + why,
                                  block.span()});
      }
    }
  }

  /// Records an entry of the annotation. Returns why it is invalid; empty if it is valid.
  std::string why_no_alignment(const Block& block, const NodeRef& item) {
    const List* entry = item.as<List>();
    bool good = entry && entry->items.size() == 4;
    int64_t numbers[4] = {};
    for (size_t i = 0; good && i < 4; ++i) {
      const IntImm* number = entry->items[i].as<IntImm>();
      good = number != nullptr;
      if (good) numbers[i] = number->value;
    }
    if (!good) return "an entry is not a list (number of the write, dimension, factor, offset)";
    const auto [write, dimension, factor, offset] = numbers;
    if (write < 0 || write >= static_cast<int64_t>(block.writes.size())) {
      return "it has no write " + std::to_string(write);
    }
    const Ref<Buffer>& buffer = block.writes[write]->buffer;
    if (dimension < 0 || dimension >= static_cast<int64_t>(buffer->shape.size())) {
      return "'" + buffer->name + "' has no dimension " + std::to_string(dimension);
    }
    constexpr int64_t kMost = int64_t{1} << 20;
    if (factor < 1 || factor > kMost || offset < -kMost || offset > kMost) {
      return "the factor " + std::to_string(factor) + " or the offset " + std::to_string(offset) +
             " is not from 1, or from -" + std::to_string(kMost) + ", to " + std::to_string(kMost);
    }
    alignments_[buffer].push_back({dimension, factor, offset});
    return "";
  }

  /// Whether all variables are defined where the buffer is allocated, so that its layout may use them.
  bool known_outside(const Expr& e, const Candidate& candidate) const {
    return !uses_any_var(e, [&](const Ref<Var>& v) { return candidate.inside.contains(v) || inside_only(v); });
  }
  /// Data of a buffer: a load in a layout could change its value.
  static bool inside_only(const Ref<Var>& v) { return v.dtype().is_handle(); }

  void decide(const Ref<Buffer>& buffer) {
    const Candidate& candidate = candidates_.at(buffer);
    if (!candidate.seen || candidate.opaque || !buffer->strides.empty()) return;
    arith::Region region = arith::clip_to_shape(candidate.touched, buffer->shape, analyzer_);
    bool whole_tile = keeps_shape(*buffer);
    Layout layout;
    Buffer after = *buffer;
    bool changed = false;
    for (size_t d : indices_of(buffer->shape)) {
      Expr start = analyzer_.simplify(region[d]->min);
      Expr extent = upper_bound(analyzer_.simplify(region[d]->extent), buffer->shape[d]);
      if (const IntSet& set = candidate.touched[d]; whole_tile && set.is_bounded()) {
        Expr reach = analyzer_.simplify(set.max - set.min + 1);
        if (auto known = const_int(reach); known && *known >= 1) {
          start = analyzer_.simplify(set.min);
          extent = reach;
        }
      }
      if (!extent.defined() || !known_outside(start, candidate) || !known_outside(extent, candidate)) {
        start = zero(buffer->shape[d].dtype());
        extent = buffer->shape[d];
      }
      changed |= !is_const_int(start, 0) || !structural_equal(extent, buffer->shape[d]);
      layout.start.push_back(start);
      after.shape[d] = cast(buffer->shape[d].dtype(), extent);
    }
    changed |= pad_rows(buffer, after);
    if (!changed) return;
    layout.buffer = make(std::move(after), buffer.span());
    layouts_[buffer] = std::move(layout);
  }

  /// Returns a bound that is at least as large as the expression: a for min(a, b), since a is the length of a tile.
  static Expr without_limits(const Expr& e) {
    if (const Add* n = e.as<Add>()) return without_limits(n->a) + without_limits(n->b);
    if (const Sub* n = e.as<Sub>()) return without_limits(n->a) - n->b;
    if (const Min* n = e.as<Min>()) return n->a;
    if (const Max* n = e.as<Max>()) return max(without_limits(n->a), without_limits(n->b));
    if (const Mul* n = e.as<Mul>(); n && const_int(n->b).value_or(-1) >= 0) return without_limits(n->a) * n->b;
    return e;
  }

  /// A constant if one bounds the extent; else the extent itself.
  Expr upper_bound(const Expr& extent, const Expr& whole) {
    if (const_int(extent)) return *const_int(extent) >= 1 ? extent : Expr(one(extent.dtype()));
    if (Expr simpler = without_limits(extent); simpler != extent) {
      if (auto known = const_int(analyzer_.simplify(simpler)))
        return int_imm(extent.dtype(), std::max<int64_t>(*known, 1));
    }
    arith::ConstIntBound bound = analyzer_.const_int_bound(extent);
    auto limit = const_int(whole);
    int64_t most = bound.max_value;
    if (limit) most = std::min(most, *limit);
    constexpr int64_t kReasonable = int64_t{1} << 30;
    if (most < kReasonable && (most == limit || !follows_from_types(extent, bound)))
      return int_imm(extent.dtype(), std::max<int64_t>(most, 1));
    // In an iteration that a condition skips, the last index may be before the first.
    return analyzer_.can_prove(ge(extent, 0)) ? extent : max(extent, one(extent.dtype()));
  }

  bool pad_rows(const Ref<Buffer>& buffer, Buffer& after) {
    auto* found = find_value(alignments_, buffer);
    if (!found) return false;
    std::vector<Expr> strides(after.shape.size());
    Expr stride = one(after.shape.back().dtype());
    for (size_t d = after.shape.size(); d-- > 0;) {
      for (const auto& [dimension, factor, offset] : *found) {
        if (dimension != static_cast<int64_t>(d)) continue;
        // The next stride that is offset modulo factor.
        stride = stride + floormod(constant(stride.dtype(), offset) - floormod(stride, factor), factor);
      }
      strides[d] = analyzer_.simplify(stride);
      stride = strides[d] * after.shape[d];
    }
    after.strides = std::move(strides);
    return true;
  }

  struct Alignment {
    int64_t dimension, factor, offset;
  };
  PassContext& context_;
  Analyzer analyzer_, small_;
  std::unordered_set<NodeRef> bound_;  ///< loop variables that the analyzer knows
  std::unordered_map<NodeRef, NodeRef> by_data_;
  std::unordered_map<NodeRef, Candidate> candidates_;
  std::vector<Ref<Buffer>> order_;
  std::unordered_map<NodeRef, std::vector<Alignment>> alignments_;
  std::unordered_map<NodeRef, Layout> layouts_;
};

/// Moves accesses to the new buffers.
class Shifter {
 public:
  explicit Shifter(std::unordered_map<NodeRef, Layout> layouts) : layouts_(std::move(layouts)) {}

  Stmt run(const Stmt& body) {
    return rewrite(
        body,
        [&](const Ref<For>& loop, Rewriter& r) -> Stmt {
          analyzer_.bind(loop->loop_var, loop_range(*loop));
          return r.descend(loop);
        },
        [&](const Ref<BufferLoad>& load, Rewriter& r) -> Expr {
          Ref<BufferLoad> inner = r.descend(load);
          const Layout* layout = find(load->buffer);
          if (!layout) return inner;
          return make<BufferLoad>({layout->buffer, shift(*layout, inner->indices), inner->predicate}, load.span());
        },
        [&](const Ref<BufferStore>& store, Rewriter& r) -> Stmt {
          Ref<BufferStore> inner = r.descend(store);
          const Layout* layout = find(store->buffer);
          if (!layout) return inner;
          return make<BufferStore>({layout->buffer, inner->value, shift(*layout, inner->indices), inner->predicate},
                                   store.span());
        },
        [&](const Ref<BufferRegion>& region, Rewriter& r) -> NodeRef {
          Ref<BufferRegion> inner = r.descend(region);
          const Layout* layout = find(region->buffer);
          if (!layout) return inner;
          BufferRegion copy{layout->buffer, inner->region};
          for (size_t d : indices_of(copy.region)) {
            copy.region[d] = range(analyzer_.simplify(copy.region[d]->min - layout->start[d]), copy.region[d]->extent);
          }
          return make(std::move(copy));
        },
        [&](const Ref<Block>& block, Rewriter& r) -> Stmt {
          for (const Ref<IterVar>& axis : block->iter_vars) {
            if (axis->dom.defined()) analyzer_.bind(axis->var, axis->dom);
          }
          Block copy = *r.descend(block);
          declare_whole(block->reads, copy.reads);
          declare_whole(block->writes, copy.writes);
          for (Def<Buffer>& buffer : copy.alloc_buffers) {
            if (const Layout* layout = find(buffer)) buffer = layout->buffer;
          }
          return make(std::move(copy), block.span());
        },
        [&](const Ref<Buffer>& buffer, Rewriter&) -> NodeRef { return buffer; });
  }

 private:
  const Layout* find(const NodeRef& buffer) const { return find_value(layouts_, buffer); }
  /// Regions that cover a whole dimension still do, however they are written, because their indices may depend on data
  /// and are not proved to be in a smaller region.
  template <class Regions>
  void declare_whole(const Regions& before, Regions& after) {
    for (size_t i : indices_of(before)) {
      const Layout* layout = find(before[i]->buffer);
      if (!layout) continue;
      BufferRegion whole = *after[i];
      for (size_t d : indices_of(whole.region)) {
        const Range& was = *before[i]->region[d];
        const bool is_whole = analyzer_.can_prove_equal(was.min, zero(was.min.dtype())) &&
                              analyzer_.can_prove_equal(was.extent, before[i]->buffer->shape[d]);
        if (!is_whole) continue;
        whole.region[d] = range(zero(was.min.dtype()), layout->buffer->shape[d]);
      }
      after[i] = make(std::move(whole), before[i].span());
    }
  }
  std::vector<Expr> shift(const Layout& layout, const std::vector<Expr>& indices) {
    std::vector<Expr> result;
    for (size_t d : indices_of(indices)) {
      const Ramp* ramp = indices[d].as<Ramp>();
      if (ramp) {
        Expr base = analyzer_.simplify(ramp->base - layout.start[d]);
        result.push_back(make<Ramp>({base, cast(base.dtype(), ramp->stride), ramp->lanes}));
      } else {
        result.push_back(analyzer_.simplify(indices[d] - layout.start[d]));
      }
    }
    return result;
  }

  Analyzer analyzer_;
  std::unordered_map<NodeRef, Layout> layouts_;
};

}  // namespace

PassResult compact_buffers(const Ref<PrimFunc>& func, PassContext& context) {
  std::unordered_map<NodeRef, Layout> layouts = RegionCollector(context).run(func);
  if (layouts.empty()) return func;
  return with_body(func, Shifter(std::move(layouts)).run(func->body));
}

}  // namespace tilewright::lower
