#include "analysis/block_access_region.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "analysis/difference.h"
#include "ir/build.h"
#include "ir/structural.h"
#include "ir/substitute.h"
#include "ir/traverse.h"

namespace tilewright::analysis {
namespace {

/// The integers lo, lo + 1, ..., lo + width. Kept this way because the width usually is a constant where the ends are
/// not.
struct Interval {
  Expr lo, width;
  bool is_point() const { return is_const_int(width, 0); }
  Expr hi() const { return lo + width; }
};
Interval point(const Expr& e) { return {e, zero(e.dtype())}; }

Interval unite(const Interval& x, const Interval& y) {
  if (auto distance = constant_difference(y.lo, x.lo)) {
    const Interval& first = *distance >= 0 ? x : y;
    const Interval& second = *distance >= 0 ? y : x;
    Expr gap = constant(x.lo.dtype(), std::abs(*distance));
    return {first.lo, max(first.width, gap + second.width)};
  }
  Expr lo = min(x.lo, y.lo);
  return {lo, max(x.hi(), y.hi()) - lo};
}

class Detector {
 public:
  explicit Detector(const Ref<Block>& block) {
    for (const Ref<Buffer>& buffer : block->alloc_buffers) own_.insert(buffer);
    for (const auto& match : block->match_buffers) matches_[match->buffer] = match->source;
    walk(block->init);
    walk(block->body);
  }

  BlockAccess result(bool has_init) {
    BlockAccess access;
    std::unordered_set<NodeRef> written;
    for (Touched& touched : writes_) {
      if (has_init) written.insert(touched.buffer);
      access.writes.push_back(region_of(touched));
    }
    for (Touched& touched : reads_) {
      if (!written.contains(touched.buffer)) access.reads.push_back(region_of(touched));
    }
    access.opaque = std::move(opaque_);
    return access;
  }

 private:
  struct Touched {
    Ref<Buffer> buffer;
    std::vector<Interval> region;
  };

  void walk(const NodeRef& root) {
    if (!root.defined()) return;
    visit(
        root,
        [&](const Ref<BufferLoad>& load, Visitor& v) {
          touch(reads_, load->buffer, load->indices);
          for (const Expr& index : load->indices) v(index);
          if (load->predicate.defined()) v(load->predicate);
        },
        [&](const Ref<BufferStore>& store, Visitor& v) {
          touch(writes_, store->buffer, store->indices);
          v(store->value);
          for (const Expr& index : store->indices) v(index);
          if (store->predicate.defined()) v(store->predicate);
        },
        [&](const Ref<For>& loop, Visitor& v) {
          v(loop->min);
          v(loop->extent);
          unknown_ = false;
          Interval min = evaluate(loop->min), reach = evaluate(loop->extent - 1);
          define(loop->loop_var, {min.lo, min.width + reach.hi()});
          v(loop->body);
          relaxed_.erase(loop->loop_var);
        },
        [&](const Ref<LetStmt>& let, Visitor& v) {
          v(let->value);
          if (let->value.dtype().is_integral()) {
            unknown_ = false;
            define(let->var, evaluate(let->value));
          }
          v(let->body);
        },
        [&](const Ref<BlockRealize>& realize, Visitor& v) {
          for (const Expr& value : realize->iter_values) v(value);
          v(realize->predicate);
          nested(realize);
        },
        [&](const Ref<Block>& block, Visitor&) { nested_regions(block); },
        [&](const Ref<BufferRegion>& region, Visitor& v) {  // an argument of a call
          touch_region(reads_, region);
          for (const Ref<Range>& range : region->region) v(range);
        },
        [&](const Ref<DeclBuffer>& decl, Visitor& v) {
          own_.insert(decl->buffer);
          v(decl->body);
        },
        [&](const Ref<Var>& v, Visitor& visitor) {
          if (visitor.role() == Role::kDef || !v.dtype().is_handle()) return;
          if (std::find(opaque_.begin(), opaque_.end(), v) == opaque_.end()) opaque_.push_back(v);
        });
  }

  void nested(const Ref<BlockRealize>& realize) {
    for (size_t i = 0; i < realize->iter_values.size(); ++i) {
      unknown_ = false;
      define(realize->block->iter_vars[i]->var, evaluate(realize->iter_values[i]));
    }
    nested_regions(realize->block);
  }
  void define(const Ref<Var>& v, Interval values) {
    relaxed_[v] = unknown_ ? std::nullopt : std::optional<Interval>(std::move(values));
  }
  void nested_regions(const Ref<Block>& block) {
    for (const auto& region : block->reads) touch_region(reads_, region);
    for (const auto& region : block->writes) touch_region(writes_, region);
  }

  void touch(std::vector<Touched>& list, const Ref<Buffer>& buffer, const std::vector<Expr>& indices) {
    std::vector<Interval> region;
    for (size_t i = 0; i < indices.size(); ++i) region.push_back(evaluate_in(buffer, i, indices[i]));
    add(list, buffer, std::move(region));
  }
  void touch_region(std::vector<Touched>& list, const Ref<BufferRegion>& source) {
    std::vector<Interval> region;
    for (size_t i = 0; i < source->region.size(); ++i) {
      const Range& range = *source->region[i];
      Interval first = evaluate_in(source->buffer, i, range.min);
      unknown_ = false;
      Interval reach = evaluate(range.extent - 1);
      region.push_back(unknown_ ? whole(source->buffer, i) : Interval{first.lo, first.width + reach.hi()});
    }
    add(list, source->buffer, std::move(region));
  }

  void add(std::vector<Touched>& list, const Ref<Buffer>& buffer, std::vector<Interval> region) {
    if (own_.contains(buffer)) return;
    if (auto match = matches_.find(buffer); match != matches_.end()) {
      add_to_source(list, buffer, match->second, std::move(region));
      return;
    }
    for (Touched& touched : list) {
      if (touched.buffer != buffer) continue;
      for (size_t i = 0; i < region.size(); ++i) touched.region[i] = unite(touched.region[i], region[i]);
      return;
    }
    list.push_back({buffer, std::move(region)});
  }
  /// A matched buffer shows the last dimensions of its source.
  void add_to_source(std::vector<Touched>& list, const Ref<Buffer>& buffer, const Ref<BufferRegion>& source,
                     std::vector<Interval> region) {
    size_t dims = source->region.size(), skipped = dims - std::min(dims, region.size());
    std::vector<Interval> moved;
    for (size_t i = 0; i < dims; ++i) {
      const Range& range = *source->region[i];
      bool follows =
          buffer->shape.size() <= dims && i >= skipped && same_expr(buffer->shape[i - skipped], range.extent);
      if (follows) {
        moved.push_back({range.min + region[i - skipped].lo, region[i - skipped].width});
      } else {
        moved.push_back({range.min, range.extent - 1});
      }
    }
    add(list, source->buffer, std::move(moved));
  }

  static Interval whole(const Ref<Buffer>& buffer, size_t dim) {
    const Expr& extent = buffer->shape[dim];
    return {zero(extent.dtype()), extent - 1};
  }
  Interval evaluate_in(const Ref<Buffer>& buffer, size_t dim, const Expr& index) {
    unknown_ = false;
    Interval result = evaluate(index);
    return unknown_ ? whole(buffer, dim) : result;
  }

  bool depends_on_relaxed(const Expr& e) const {
    return uses_any_var(e, [&](const Ref<Var>& v) { return relaxed_.contains(v); });
  }

  /// Sets unknown_ where no bounds are known.
  Interval evaluate(const Expr& e) {
    if (e.is<IntImm>()) return point(e);
    if (e.is<Var>()) {
      auto it = relaxed_.find(e);
      if (it == relaxed_.end()) return point(e);
      return it->second ? *it->second : nothing_known(e);
    }
    if (const Ramp* ramp = e.as<Ramp>()) return evaluate_ramp(*ramp);
    if (const Broadcast* b = e.as<Broadcast>()) return evaluate(b->value);
    if (!depends_on_relaxed(e)) return point(e);
    if (const Add* add = e.as<Add>()) {
      Interval a = evaluate(add->a), b = evaluate(add->b);
      return {a.lo + b.lo, a.width + b.width};
    }
    if (const Sub* sub = e.as<Sub>()) {
      Interval a = evaluate(sub->a), b = evaluate(sub->b);
      return {a.lo - b.hi(), a.width + b.width};
    }
    if (const Mul* mul = e.as<Mul>()) return evaluate_product(*mul);
    if (const FloorDiv* quotient = e.as<FloorDiv>()) {
      Interval a = evaluate(quotient->a);
      auto divisor = const_int(quotient->b);
      if (!divisor || *divisor <= 0) return nothing_known(e);
      Expr lo = floordiv(a.lo, quotient->b);
      return {lo, floordiv(a.hi(), quotient->b) - lo};
    }
    if (const FloorMod* remainder = e.as<FloorMod>()) return evaluate_remainder(*remainder);
    if (const Min* m = e.as<Min>()) {
      Interval a = evaluate(m->a), b = evaluate(m->b);
      Expr lo = min(a.lo, b.lo);
      return {lo, min(a.hi(), b.hi()) - lo};
    }
    if (const Max* m = e.as<Max>()) {
      Interval a = evaluate(m->a), b = evaluate(m->b);
      Expr lo = max(a.lo, b.lo);
      return {lo, max(a.hi(), b.hi()) - lo};
    }
    if (const Select* s = e.as<Select>()) return unite(evaluate(s->true_value), evaluate(s->false_value));
    if (const Cast* c = e.as<Cast>(); c && c->value.dtype().is_int() && c->dtype.is_int()) {
      Interval a = evaluate(c->value);
      return {cast(c->dtype, a.lo), cast(c->dtype, a.width)};
    }
    return nothing_known(e);
  }

  Interval nothing_known(const Expr& e) {
    unknown_ = true;
    return point(zero(e.dtype()));
  }
  Interval evaluate_ramp(const Ramp& ramp) {
    Interval base = evaluate(ramp.base);
    auto stride = const_int(ramp.stride);
    auto lanes = const_int(ramp.lanes);
    if (!stride || !lanes) return nothing_known(ramp.base);
    Expr reach = constant(base.lo.dtype(), std::abs(*stride) * (*lanes - 1));
    return {*stride < 0 ? base.lo - reach : base.lo, base.width + reach};
  }
  Interval evaluate_product(const Mul& mul) {
    bool first = const_int(mul.a).has_value();
    auto factor = const_int(first ? mul.a : mul.b);
    Interval a = evaluate(first ? mul.b : mul.a);
    if (!factor) {
      const Expr& other = depends_on_relaxed(mul.a) ? mul.b : mul.a;
      const Var* size = other.as<Var>();
      if (!size || !size->is_size || depends_on_relaxed(other)) return nothing_known(mul.a);
      a = evaluate(depends_on_relaxed(mul.a) ? mul.a : mul.b);
      return {a.lo * other, a.width * other};
    }
    return *factor >= 0 ? Interval{a.lo * *factor, a.width * *factor} : Interval{a.hi() * *factor, a.width * -*factor};
  }
  Interval evaluate_remainder(const FloorMod& remainder) {
    auto divisor = const_int(remainder.b);
    if (!divisor || *divisor <= 0) return nothing_known(remainder.a);
    Interval a = evaluate(remainder.a);
    auto lo = const_int(a.lo), width = const_int(a.width);
    if (lo && width && *lo >= 0 && *lo + *width < *divisor) return a;
    return {zero(remainder.b.dtype()), remainder.b - 1};
  }

  static Ref<BufferRegion> region_of(const Touched& touched) {
    std::vector<Ref<Range>> region;
    for (const Interval& interval : touched.region) region.push_back(range(interval.lo, interval.width + 1));
    return make<BufferRegion>({touched.buffer, std::move(region)});
  }

  std::unordered_set<NodeRef> own_;
  std::unordered_map<NodeRef, Ref<BufferRegion>> matches_;
  std::unordered_map<NodeRef, std::optional<Interval>> relaxed_;  ///< defined inside the block; null: unknown
  std::vector<Touched> reads_, writes_;
  std::vector<Ref<Var>> opaque_;
  bool unknown_ = false;
};

}  // namespace

BlockAccess block_access_region(const Ref<Block>& block) { return Detector(block).result(block->init.defined()); }

}  // namespace tilewright::analysis
