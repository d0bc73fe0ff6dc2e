#include "analysis/block_access_region.h"

#include <algorithm>
#include <unordered_set>

#include "analysis/accesses.h"
#include "analysis/plain_store.h"
#include "arith/analyzer.h"
#include "arith/linear.h"
#include "ir/build.h"
#include "ir/regions.h"
#include "ir/substitute.h"
#include "ir/traverse.h"
#include "support/ranges.h"

namespace tilewright::analysis {
namespace {

using arith::Box;

class Detector {
 public:
  explicit Detector(const Ref<Block>& block) {
    for (const Ref<Buffer>& buffer : block->alloc_buffers) {
      own_.insert(buffer);
      own_memory_.insert(buffer->data);
    }
    visit(block, [&](const Ref<MatchBufferRegion>& match) {
      for (const Expr& extent : match->buffer->shape) {
        if (extent.is<Var>() && !uses_var(match->source, extent.borrow<Var>())) sizes_.insert(extent);
      }
    });
    for_each_access(block, Nested::kDeclared, [&](const Access& access) { note(access); });
  }

  BlockAccess result(bool has_init) {
    BlockAccess access;
    for (const Touched& touched : writes_) access.writes.push_back(region_of(touched));
    for (Touched& touched : reads_) {
      if (has_init && accumulates(touched)) continue;
      for (size_t i : indices_of(touched.box)) widen_floats(touched.box[i], touched.buffer->shape[i]);
      access.reads.push_back(region_of(touched));
    }
    access.opaque = std::move(opaque_);
    return access;
  }

 private:
  struct Touched {
    Ref<Buffer> buffer;
    Box box;
  };

  /// The block writes all that it reads of the buffer.
  bool accumulates(const Touched& read) {
    return any_of(writes_, [&](const Touched& write) {
      return write.buffer == read.buffer && arith::proves_subset(read.box, write.box, analyzer_);
    });
  }

  void note(const Access& access) {
    if (access.alias.defined()) {
      if (!own_memory_.contains(access.alias)) note_opaque(access.alias);
    } else if (access.form == Access::Form::kView) {
      return;
    } else if (access.form == Access::Form::kPointer) {
      if (!access.site.is<DeclBuffer>()) note_opaque(access.pointer);
    } else if (!is_own(access)) {
      // Taking the address of an element does not imply that it is written.
      const bool writes = access.writes && (access.form != Access::Form::kAddress || access.is_atomic);
      if (writes) touch(writes_, access);
      if (access.reads || !writes) touch(reads_, access);
    }
  }

  void note_opaque(const Ref<Var>& pointer) {
    auto is_known = [&](const Ref<Var>& known) { return known.get() == pointer.get(); };
    if (none_of(opaque_, is_known)) opaque_.push_back(pointer);
  }

  bool is_own(const Access& access) const {
    auto declares = [&](const Surrounding& s) {
      const DeclBuffer* decl = s.node.as<DeclBuffer>();
      return decl && decl->buffer == access.named;
    };
    return own_.contains(access.named) || any_of(access.around, declares);
  }

  void touch(std::vector<Touched>& list, const Access& access) {
    Ref<BufferRegion> region = access.region();
    if (own_.contains(region->buffer)) return;  // a view of what the block allocates
    arith::Domains domains = domains_of(access.around);
    Box box = domains.empty()
                  ? arith::box_of(region->region)
                  : arith::relax_region(region->region, domains, analyzer_, known_conditions(access.around));
    if (!domains.empty()) keep_starts(box, region->region, domains);
    for (Touched& touched : list) {
      if (touched.buffer != region->buffer) continue;
      const Box before = touched.box;
      touched.box = arith::unite(before, box, analyzer_);
      for (size_t i : indices_of(touched.box)) {
        if (!is_same(before[i], touched.box[i])) cover_dimension(touched.box[i], region->buffer->shape[i]);
      }
      return;
    }
    list.push_back({region->buffer, std::move(box)});
  }

  bool is_same(const arith::IntSet& a, const arith::IntSet& b) {
    return a.is_bounded() && b.is_bounded() && analyzer_.can_prove_equal(a.min, b.min) &&
           analyzer_.can_prove_equal(a.max, b.max);
  }

  /// Keeps the first element as the block states it, if data select it. Equal statements can be compared; two forms of
  /// the same load index cannot always.
  void keep_starts(Box& box, const arith::Region& region, const arith::Domains& domains) {
    VarMap starts;
    for (const auto& [loop_var, set] : domains) {
      if (set.min.defined()) starts.emplace(loop_var, set.min);
    }
    for (size_t i : indices_of(box)) {
      if (!box[i].is_bounded() || effect_of(box[i].min) == Effect::kPure) continue;
      Expr start = substitute(region[i]->min, starts);
      // Axes of blocks inside start where loops do that are inside, too.
      if (uses_any_of(start, domains)) continue;
      if (analyzer_.can_prove_equal(start, box[i].min)) box[i].min = start;
    }
  }
  Ref<Range> range_as_said(const arith::IntSet& set) {
    Ref<Range> range = set.to_range(analyzer_);
    bool said = range.defined() && effect_of(range->min) != Effect::kPure && set.min.dtype() == range->min.dtype();
    return said ? make<Range>({set.min, range->extent}) : range;
  }

  /// An extent that depends on data is replaced by the whole dimension. The region then stays valid when its indices
  /// are rewritten, and is meaningful without knowing the data.
  void cover_dimension(arith::IntSet& set, const Expr& extent) {
    Ref<Range> range = set.to_range(analyzer_);
    if (range.defined() && effect_of(range->extent) != Effect::kPure) set = arith::IntSet::of_range(range_of(extent));
  }

  /// Replaces an index that comes from floats by the whole dimension, as its bounds are unknown.
  void widen_floats(arith::IntSet& set, const Expr& extent) {
    Ref<Range> range = set.to_range(analyzer_);
    bool floats = false;
    auto look = [&](const Ref<Cast>& cast, Visitor& walk) {
      floats |= cast->value.dtype().is_float();
      walk.descend(cast);
    };
    if (range.defined()) visit(range, look);
    if (floats) set = arith::IntSet::of_range(range_of(extent));
  }

  /// A size that a view in the block defines (its extents are taken from what it shows) is not known around the block,
  /// nor is what a buffer holds that the block allocates.
  bool is_known_inside_only(const Ref<Range>& range) const {
    if (!sizes_.empty() && uses_any_of(range, sizes_)) return true;
    return !own_.empty() && any_node(range, [&](const Ref<BufferLoad>& load) { return own_.contains(load->buffer); });
  }

  Ref<BufferRegion> region_of(const Touched& touched) {
    std::vector<Ref<Range>> region;
    for (size_t i : indices_of(touched.box)) {
      Ref<Range> range = range_as_said(touched.box[i]);
      bool known = range.defined() && !is_known_inside_only(range);
      region.push_back(known ? range : range_of(touched.buffer->shape[i]));
    }
    return make<BufferRegion>({touched.buffer, std::move(region)});
  }

  std::unordered_set<NodeRef> own_, own_memory_, sizes_;
  arith::Analyzer analyzer_;
  std::vector<Touched> reads_, writes_;
  std::vector<Ref<Var>> opaque_;
};

}  // namespace

namespace {

using Indices = std::vector<Expr>;

bool same_indices(const Indices& a, const Indices& b) { return std::ranges::equal(a, b, arith::identical); }

Ref<BufferRegion> element(const Ref<Buffer>& buffer, const Indices& indices) {
  std::vector<Ref<Range>> region;
  for (const Expr& index : indices) region.push_back(make<Range>({index, one(index.dtype())}));
  return make<BufferRegion>({buffer, std::move(region)});
}

/// Detects the accesses of a block that accesses one element of each buffer; false for any other block.
bool detect_plainly(const PlainBlock& plain, BlockAccess& access) {
  const BufferStore& store = *plain.body.store;
  if (plain.init) {
    const BufferStore& init = *plain.init->store;
    if (init.buffer != store.buffer || !same_indices(init.indices, store.indices)) return false;
  }
  std::vector<const BufferLoad*> loads;
  if (plain.init) loads = plain.init->loads;
  loads.insert(loads.end(), plain.body.loads.begin(), plain.body.loads.end());
  std::vector<const BufferLoad*> first;  // first load of each buffer
  for (const BufferLoad* load : loads) {
    if (plain.init && load->buffer == store.buffer) {  // the load of the accumulator does not count
      if (!same_indices(load->indices, store.indices)) return false;
      continue;
    }
    auto known = find_if(first, [&](const BufferLoad* one) { return one->buffer == load->buffer; });
    if (known == first.end()) {
      first.push_back(load);
    } else if (!same_indices((*known)->indices, load->indices)) {
      return false;
    }
  }
  access.writes.push_back(element(store.buffer, store.indices));
  for (const BufferLoad* load : first) access.reads.push_back(element(load->buffer, load->indices));
  return true;
}

}  // namespace

BlockAccess block_access_region(const Ref<Block>& block) {
  BlockAccess access;
  const auto& plain = PlainBlock::of(*block);
  return plain && detect_plainly(*plain, access) ? access : found_access_region(block);
}

BlockAccess found_access_region(const Ref<Block>& block) { return Detector(block).result(block->init.defined()); }

Ref<BufferRegion> known_at_start(const Ref<BufferRegion>& region, const std::vector<Ref<BufferRegion>>& writes) {
  const std::vector<Ref<Range>> whole = whole_region(region->buffer->shape);
  std::vector<Ref<Range>> ranges = region->region;
  bool all_known = true;
  for (size_t i : indices_of(ranges)) {
    const bool changes = any_node(ranges[i], [&](const Ref<BufferLoad>& load) {
      return any_of(writes, [&](const auto& write) { return write->buffer->data == load->buffer->data; });
    });
    if (changes) ranges[i] = whole[i];
    all_known &= !changes;
  }
  return all_known ? region : make<BufferRegion>({region->buffer, std::move(ranges)});
}

bool reaches_by_pointer(const Ref<Block>& block, const Ref<Buffer>& buffer) {
  bool found = false;
  for_each_access(block, Nested::kEnter, [&](const Access& access) {
    found |= access.form == Access::Form::kPointer && access.pointer == buffer->data;
  });
  visit(block, [&](const Ref<MatchBufferRegion>& match) { found |= match->source->buffer->data == buffer->data; });
  return found;
}

std::vector<Ref<BufferRegion>> init_writes(const Block& block) {
  std::unordered_set<NodeRef> spatial;
  for (const Ref<IterVar>& axis : block.iter_vars) {
    if (axis->iter_type != IterType::kCommReduce) spatial.insert(axis->var);
  }
  auto speaks_of_more = [&](const Ref<BufferRegion>& write) {
    return any_of(write->region, [&](const Ref<Range>& range) {
      return uses_any_var(range, [&](const Ref<Var>& v) { return !spatial.contains(v); });
    });
  };
  std::vector<Ref<BufferRegion>> result = block.writes;
  if (none_of(result, speaks_of_more)) return result;
  Block init = block;
  init.body = init.init;
  init.init = {};
  const std::vector<Ref<BufferRegion>> found = block_access_region(make(std::move(init))).writes;
  for (Ref<BufferRegion>& region : result) {
    if (!speaks_of_more(region)) continue;
    auto own = find_if(found, [&](const auto& f) { return f->buffer == region->buffer; });
    if (own != found.end()) {
      region = *own;
      continue;
    }
    region = whole_region(region->buffer);
  }
  return result;
}

}  // namespace tilewright::analysis
