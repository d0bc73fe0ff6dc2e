#include "analysis/block_access_region.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "arith/analyzer.h"
#include "arith/int_set.h"
#include "ir/build.h"
#include "ir/structural.h"
#include "ir/traverse.h"

namespace tilewright::analysis {
namespace {

using arith::Box;
using arith::IntSet;

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
    for (const Touched& touched : writes_) {
      if (has_init) written.insert(touched.buffer);
      access.writes.push_back(region_of(touched));
    }
    for (const Touched& touched : reads_) {
      if (!written.contains(touched.buffer)) access.reads.push_back(region_of(touched));
    }
    access.opaque = std::move(opaque_);
    return access;
  }

 private:
  struct Touched {
    Ref<Buffer> buffer;
    Box box;
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
          domains_[loop->loop_var] = IntSet::interval(loop->min, loop->min + loop->extent - 1);
          v(loop->body);
          domains_.erase(loop->loop_var);
        },
        [&](const Ref<LetStmt>& let, Visitor& v) {
          v(let->value);
          if (let->value.dtype().is_integral()) domains_[let->var] = IntSet::point(let->value);
          v(let->body);
        },
        [&](const Ref<IfThenElse>& branch, Visitor& v) {
          v(branch->condition);
          under(branch->condition, [&] { v(branch->then_case); });
          if (branch->else_case.defined()) under(logical_not(branch->condition), [&] { v(branch->else_case); });
        },
        [&](const Ref<Call>& call, Visitor& v) {
          if (intrinsic_of(*call) != Intrinsic::k_if_then_else) {
            v.descend(call);
            return;
          }
          Expr condition(call->args[0]);
          v(condition);
          under(condition, [&] { v(call->args[1]); });
          under(logical_not(condition), [&] { v(call->args[2]); });
        },
        [&](const Ref<BlockRealize>& realize, Visitor& v) {
          for (size_t i = 0; i < realize->iter_values.size(); ++i) {
            v(realize->iter_values[i]);
            domains_[realize->block->iter_vars[i]->var] = IntSet::point(realize->iter_values[i]);
          }
          v(realize->predicate);
          under(realize->predicate, [&] { touch_declared(realize->block); });
        },
        [&](const Ref<Block>& block, Visitor&) { touch_declared(block); },
        [&](const Ref<BufferRegion>& region, Visitor& v) {  // an argument of a call
          touch(reads_, region);
          for (const Ref<Range>& range : region->region) v(range);
        },
        [&](const Ref<DeclBuffer>& decl, Visitor& v) {
          own_.insert(decl->buffer);
          v(decl->body);
        },
        [&](const Ref<Var>& pointer, Visitor& v) {
          if (v.role() == Role::kDef || !pointer.dtype().is_handle()) return;
          if (std::find(opaque_.begin(), opaque_.end(), pointer) == opaque_.end()) opaque_.push_back(pointer);
        });
  }

  template <class F>
  void under(const Expr& condition, F&& inside) {
    Expr before = predicate_;
    if (!is_true(condition)) predicate_ = before.defined() ? logical_and(before, condition) : condition;
    inside();
    predicate_ = before;
  }

  void touch_declared(const Ref<Block>& block) {
    for (const auto& region : block->reads) touch(reads_, region);
    for (const auto& region : block->writes) touch(writes_, region);
  }

  void touch(std::vector<Touched>& list, const Ref<Buffer>& buffer, const std::vector<Expr>& indices) {
    if (own_.contains(buffer)) return;
    std::vector<Ref<Range>> region;
    for (const Expr& index : indices) {
      const Ramp* ramp = index.as<Ramp>();
      auto stride = ramp ? const_int(ramp->stride) : std::nullopt;
      auto lanes = ramp ? const_int(ramp->lanes) : std::nullopt;
      if (index.dtype().is_scalar()) {
        region.push_back(range(index, one(index.dtype())));
      } else if (stride && lanes) {
        int64_t reach = *stride * (*lanes - 1);
        region.push_back(
            range(reach < 0 ? ramp->base + reach : ramp->base, constant(ramp->base.dtype(), std::abs(reach) + 1)));
      } else {
        region.push_back(range_of(buffer->shape[region.size()]));
      }
    }
    touch(list, make<BufferRegion>({buffer, std::move(region)}));
  }

  void touch(std::vector<Touched>& list, const Ref<BufferRegion>& region) {
    if (own_.contains(region->buffer)) return;
    if (auto match = matches_.find(region->buffer); match != matches_.end()) {
      touch(list, in_source(region, match->second));
      return;
    }
    Box box = domains_.empty() ? arith::box_of(region->region)
                               : arith::relax_region(region->region, domains_, analyzer_, predicate_);
    for (Touched& touched : list) {
      if (touched.buffer != region->buffer) continue;
      touched.box = arith::unite(touched.box, box, analyzer_);
      return;
    }
    list.push_back({region->buffer, std::move(box)});
  }

  /// The part of the source that a region of a matched buffer shows. The buffer shows the last dimensions of the
  /// source one to one; where it has another shape, it may touch all of the source region.
  static Ref<BufferRegion> in_source(const Ref<BufferRegion>& region, const Ref<BufferRegion>& source) {
    size_t dims = source->region.size(), own = region->region.size();
    std::vector<Ref<Range>> moved;
    for (size_t i = 0; i < dims; ++i) {
      const Range& outer = *source->region[i];
      bool follows =
          own <= dims && i >= dims - own && structural_equal(region->buffer->shape[i - (dims - own)], outer.extent);
      if (follows) {
        const Range& inner = *region->region[i - (dims - own)];
        moved.push_back(range(outer.min + inner.min, inner.extent));
      } else {
        moved.push_back(source->region[i]);
      }
    }
    return make<BufferRegion>({source->buffer, std::move(moved)});
  }

  Ref<BufferRegion> region_of(const Touched& touched) {
    std::vector<Ref<Range>> region;
    for (size_t i = 0; i < touched.box.size(); ++i) {
      Ref<Range> range = touched.box[i].to_range(analyzer_);
      region.push_back(range.defined() ? range : range_of(touched.buffer->shape[i]));
    }
    return make<BufferRegion>({touched.buffer, std::move(region)});
  }

  std::unordered_set<NodeRef> own_;
  std::unordered_map<NodeRef, Ref<BufferRegion>> matches_;
  arith::Domains domains_;  ///< of the variables defined inside the block
  Expr predicate_;          ///< what holds here; null: nothing is known
  arith::Analyzer analyzer_;
  std::vector<Touched> reads_, writes_;
  std::vector<Ref<Var>> opaque_;
};

}  // namespace

BlockAccess block_access_region(const Ref<Block>& block) { return Detector(block).result(block->init.defined()); }

}  // namespace tilewright::analysis
