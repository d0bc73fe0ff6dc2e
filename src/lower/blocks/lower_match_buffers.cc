// Replace buffers that are other names for a region by the buffer they view.
//
//   Before                                                   After
//   with T.block("B"):                                       with T.block("B"):
//     W = T.match_buffer(A[i * 4:i * 4 + 4, 0:4], (4, 4),      A[i * 4 + a, b] = s
//                        strides=[s, 1])
//     W[a, b] = s
//
// Where a view begins is evaluated once, before the block's body, if that changes what it reads.
//
// Needs      blocks without axes
// Ensures    no match_buffers. Stride and offset variables that a view defines have their values; a view that states
//            strides or an alignment of its own is refused where the source does not have them.
// Placement  after compact_buffers, which may have given the source another layout
#include "analysis/changes.h"
#include "arith/analyzer.h"
#include "ir/build.h"
#include "ir/sizes.h"
#include "ir/substitute.h"
#include "ir/traverse.h"
#include "lower/passes.h"
#include "support/ranges.h"

namespace tilewright::lower {
namespace {

struct View {
  Ref<Buffer> source;
  std::vector<Expr> start;  ///< for each dimension of the source
  size_t skipped = 0;       ///< leading dimensions of the source that the view does not have
};

std::vector<Expr> strides_of(const Buffer& buffer) {
  if (!buffer.strides.empty()) return buffer.strides;
  std::vector<Expr> strides(buffer.shape.size());
  Expr stride = one(buffer.shape.empty() ? DataType::int_(32) : buffer.shape.back().dtype());
  for (size_t d = buffer.shape.size(); d-- > 0;) {
    strides[d] = stride;
    stride = stride * buffer.shape[d];
  }
  return strides;
}

/// Variables that something else than a view defines: a view that mentions one states its value.
std::unordered_set<NodeRef> defined_elsewhere(const PrimFunc& func) {
  std::unordered_set<NodeRef> result(func.params.begin(), func.params.end());
  for (const Ref<Var>& param : func.params) {
    Ref<Buffer> buffer = func.buffer_of(param);
    if (!buffer.defined()) continue;
    result.insert(buffer->data);
    for_each_size(*buffer, [&](const Size& size) { result.insert(size.var); });
  }
  visit(
      func.body, [&](const Ref<For>& loop) { result.insert(loop->loop_var); },
      [&](const Ref<LetStmt>& let) { result.insert(let->var); });
  return result;
}

class Matcher {
 public:
  explicit Matcher(const PrimFunc& func) : names_(func.body), defined_(defined_elsewhere(func)) {}

  Stmt run(const Stmt& body) {
    return rewrite(
        body,
        [&](const Ref<Block>& block, Rewriter& r) -> Stmt {
          if (block->match_buffers.empty()) return r.descend(block);
          std::vector<std::pair<Ref<Var>, Expr>> kept;
          for (const Ref<MatchBufferRegion>& match : block->match_buffers) define(*match, kept, r);
          Block copy = *block;
          copy.match_buffers.clear();
          copy = *r.descend(make(std::move(copy), block.span()));
          for (const auto& [begin, value] : reversed(kept)) {
            const bool changes = analysis::may_change(names_, copy.body, value);
            copy.body = changes ? make<LetStmt>({begin, value, copy.body}) : substitute(copy.body, {{begin, value}});
          }
          return make(std::move(copy), block.span());
        },
        [&](const Ref<Var>& v, Rewriter&) -> Expr { return find_value_or(values_, v, v); },
        [&](const Ref<BufferLoad>& load, Rewriter& r) -> Expr {
          auto* found = find_value(views_, load->buffer);
          if (!found) return r.descend(load);
          return make<BufferLoad>({found->source, indices(*found, load->indices, r), r(load->predicate)}, load.span());
        },
        [&](const Ref<BufferStore>& store, Rewriter& r) -> Stmt {
          auto* found = find_value(views_, store->buffer);
          if (!found) return r.descend(store);
          return make<BufferStore>(
              {found->source, r(store->value), indices(*found, store->indices, r), r(store->predicate)}, store.span());
        },
        [&](const Ref<BufferRegion>& region, Rewriter& r) -> NodeRef {
          auto* found = find_value(views_, region->buffer);
          if (!found) return r.descend(region);
          const View& view = *found;
          BufferRegion copy{view.source, {}};
          for (size_t d : indices_of(view.start)) {
            Ref<Range> own = d < view.skipped ? range_of(i32(1)) : r.typed(region->region[d - view.skipped]);
            copy.region.push_back(range(view.start[d] + own->min, own->extent));
          }
          return make(std::move(copy));
        });
  }

  std::optional<Diagnostic> problem;

 private:
  std::vector<Expr> indices(const View& view, const std::vector<Expr>& own, Rewriter& r) {
    std::vector<Expr> result;
    for (size_t d : indices_of(view.start)) {
      result.push_back(d < view.skipped ? view.start[d] : shifted(view.start[d], r(own[d - view.skipped])));
    }
    return result;
  }

  /// Lanes in a row stay lanes in a row.
  static Expr shifted(const Expr& start, const Expr& own) {
    if (const Ramp* lanes = own.as<Ramp>()) {
      Expr base = start + lanes->base;
      return make<Ramp>({base, cast(base.dtype(), lanes->stride), lanes->lanes}, own.span());
    }
    return start + own;
  }

  /// `kept`: variables for what reads memory in where the view begins.
  void define(const MatchBufferRegion& match, std::vector<std::pair<Ref<Var>, Expr>>& kept, Rewriter& r) {
    Ref<BufferRegion> source = r.typed(match.source);  // through views of views
    const Buffer& buffer = *match.buffer;
    BufferRegion named = *source;
    for (Ref<Range>& part : named.region) {
      if (!analysis::reads_memory(part->min)) continue;
      kept.emplace_back(var(buffer.name + "_begin", part->min.dtype()), part->min);
      part = range(kept.back().first, part->extent);
    }
    source = make(std::move(named));
    View view{source->buffer, {}, source->region.size() - std::min(source->region.size(), buffer.shape.size())};
    for (const Ref<Range>& part : source->region) view.start.push_back(part->min);
    std::vector<Expr> strides = strides_of(*source->buffer);
    values_[buffer.data] = source->buffer->data;
    Expr offset = source->buffer->elem_offset.defined() ? source->buffer->elem_offset : Expr(i32(0));
    for (size_t d : indices_of(view.start)) offset = offset + view.start[d] * strides[d];
    for_each_size(buffer, [&](const Size& size) {
      if (defined_.contains(size.var)) return;
      defined_.insert(size.var);
      Expr value = size.what == Size::Of::kOffset   ? offset
                   : size.what == Size::Of::kStride ? strides[size.dimension + view.skipped]
                                                    : source->region[size.dimension + view.skipped]->extent;
      values_[size.var] = cast(size.var.dtype(), analyzer_.simplify(value));
    });
    for (size_t d : indices_of(buffer.shape)) {
      check(buffer, "shape", buffer.shape[d], source->region[d + view.skipped]->extent);
      if (!buffer.strides.empty()) check(buffer, "stride", buffer.strides[d], strides[d + view.skipped]);
    }
    if (buffer.elem_offset.is<Var>()) check(buffer, "offset", buffer.elem_offset, offset);
    views_[match.buffer] = std::move(view);
  }

  void check(const Buffer& buffer, const char* what, const Expr& own, const Expr& actual) {
    Expr stated = substitute(own, values_);
    if (const_int(stated) && const_int(actual) && *const_int(stated) == *const_int(actual)) return;
    if (analyzer_.can_prove_equal(stated, cast(stated.dtype(), actual))) return;
    problem = script_error("lower/match-buffer",
                           "the view '" + buffer.name + "' states " + std::string(*what == 'o' ? "an " : "a ") + what +
                               " that the region it matches does not have",
                           "leave it out, or give a variable that takes the region's");
  }

  analysis::MemoryNames names_;
  std::unordered_set<NodeRef> defined_;
  arith::Analyzer analyzer_;
  VarMap values_;
  std::unordered_map<NodeRef, View> views_;
};

}  // namespace

PassResult lower_match_buffers(const Ref<PrimFunc>& func, PassContext&) {
  Matcher matcher(*func);
  Stmt body = matcher.run(func->body);
  if (matcher.problem) return *matcher.problem;
  return with_body(func, std::move(body));
}

}  // namespace tilewright::lower
