#include "analysis/verify_accesses.h"

#include <unordered_set>

#include "analysis/accesses.h"
#include "analysis/block_facts.h"
#include "analysis/brief.h"
#include "analysis/witness.h"
#include "ir/build.h"
#include "ir/substitute.h"
#include "ir/traverse.h"
#include "support/ranges.h"

namespace tilewright::analysis {
namespace {

std::string quoted(const std::string& name) { return "'" + name + "'"; }

class AccessVerifier {
 public:
  void run(const NodeRef& root) {
    bool returns = false;
    visit(
        root, [&](const Ref<Call>& call) { returns |= intrinsic_of(*call) == Intrinsic::k_ret; },
        [&](const Ref<BlockRealize>& realize) { check_init(realize); });
    // Statements behind a return may not run.
    proves_runs_ = !returns;
    for_each_access(root, Nested::kEnter, [&](const Access& access) {
      if (failure) return;
      check_axes(access.around);
      if (!failure) check_bounds(access);
      if (!failure) check_regions(access);
    });
  }

  std::optional<Diagnostic> failure;

 private:
  void fail(const char* code, std::string message, const NodeRef& where, std::string hint) {
    if (failure) return;
    failure = script_error(code, std::move(message), std::move(hint));
    failure->span = where.span();
    failure->nodes.push_back(keep(where));
  }

  /// Loops that nothing but reduction axes run over.
  static bool drives_reduction(const Surrounding& loop, Surroundings around) {
    bool reduces = false;
    for (const Surrounding& s : around) {
      if (s.kind != Surrounding::Kind::kAxis || !uses_var(s.set.min, loop.var)) continue;
      const IterVar* axis = s.node.as<IterVar>();
      if (!axis || axis->iter_type != IterType::kCommReduce) return false;
      reduces = true;
    }
    return reduces;
  }

  /// An iteration that runs, and does what `accept` says. An init runs in the first step of its reduction, and also
  /// where the reduction has none.
  std::optional<Point> iteration(const Access& access, const std::vector<Expr>& goals,
                                 const std::function<bool(const Point&)>& accept) {
    if (!proves_runs_) return std::nullopt;
    const Block* block = access.in_init ? innermost_block(access.around) : nullptr;
    std::vector<Surrounding> around(access.around.begin(), access.around.end());
    if (block) {
      std::erase_if(around, [&](const Surrounding& s) {
        return s.kind == Surrounding::Kind::kLoop && !const_int(s.node.as<For>()->extent) &&
               drives_reduction(s, access.around);
      });
    }
    const bool begins = around.size() != access.around.size();
    return find_iteration(around, goals, [&](const Point& point) {
      if (block && !begins) {
        for (const Ref<IterVar>& axis : block->iter_vars) {
          if (!is_reduction_axis(axis)) continue;
          auto value = evaluate(axis->var, point), first = evaluate(axis->dom->min, point);
          if (!value || value != first) return false;
        }
      }
      return accept(point);
    });
  }

  static std::string at_iteration(Surroundings around, const Point& point) {
    std::string loops = loops_of(around, point);
    return loops.empty() ? "" : ", where " + loops;
  }

  /// The range in which the index surely stays, by the loops alone.
  bool surely_inside(const Range& touched, const Expr& extent, Surroundings around) {
    for (const Surrounding& s : around) {
      const For* loop = s.node.as<For>();
      if (loop && bound_.insert(loop->loop_var).second) analyzer_.bind(loop->loop_var, range(loop->min, loop->extent));
      const IterVar* axis = s.node.as<IterVar>();
      if (axis && bound_.insert(axis->var).second) analyzer_.bind(axis->var, axis->dom);
    }
    auto limit = const_int(extent);
    if (!limit) return true;  // nothing that could be compared with a number
    arith::ConstIntBound first = analyzer_.const_int_bound(touched.min);
    arith::ConstIntBound count = analyzer_.const_int_bound(touched.extent);
    return first.min_value >= 0 && first.max_value <= *limit && count.max_value <= *limit - first.max_value;
  }

  void check_axes(Surroundings around) {
    for (size_t i : indices_of(around)) {
      const IterVar* axis = around[i].node.as<IterVar>();
      if (!axis || !axis->dom.defined() || !checked_axes_.insert(around[i].node).second) continue;
      size_t behind = i;  // up to the predicate
      while (behind < around.size() && around[behind].kind != Surrounding::Kind::kBlock) ++behind;
      const Expr value = around[i].set.min, min = axis->dom->min, end = axis->dom->min + axis->dom->extent;
      if (!value.defined() || const_int(value)) continue;
      Surroundings outside = around.first(behind);
      auto leaves = [&](const Point& point) {
        auto at = evaluate(value, point), low = evaluate(min, point), high = evaluate(end, point);
        return at && ((low && *at < *low) || (high && *at >= *high));
      };
      if (!proves_runs_) return;
      auto point = find_iteration(outside, {value - end, min - value}, leaves);
      if (!point) continue;
      const Block* block = behind < around.size() ? around[behind].node.as<Block>() : nullptr;
      return fail("verify/axis-bounds",
                  "axis " + quoted(axis->var->name_hint) + (block ? " of block " + quoted(block->name_hint) : "") +
                      " has the domain [" + brief(min) + ", " + brief(end) + ") and is bound to " +
                      std::to_string(*evaluate(value, *point)) + at_iteration(outside, *point),
                  around[behind < around.size() ? behind : i].node,
                  "make the domain as large as what the loops reach, or leave iterations out with T.where");
    }
  }

  void check_bounds(const Access& access) {
    if (access.mask().defined()) return;
    if (access.form == Access::Form::kRegion) {
      check_bounds(access, access.named, access.site.as<BufferRegion>()->region);
    } else if (access.form == Access::Form::kElement || access.is_atomic) {
      check_bounds(access, access.named, region_of_element(access.named, *access.indices())->region);
      // An element of a view must be inside the view's source, too.
      Ref<BufferRegion> shown = access.region();
      bool is_one = all_of(shown->region, [](const Ref<Range>& range) { return is_const_int(range->extent, 1); });
      if (!failure && shown->buffer != access.named && is_one) check_bounds(access, shown->buffer, shown->region);
    }
  }

  void check_bounds(const Access& access, const Ref<Buffer>& buffer, const std::vector<Ref<Range>>& touched) {
    for (size_t d = 0; d < touched.size() && d < buffer->shape.size(); ++d) {
      if (surely_inside(*touched[d], buffer->shape[d], access.around)) continue;
      const Expr first = touched[d]->min, end = touched[d]->min + touched[d]->extent, size = buffer->shape[d];
      auto leaves = [&](const Point& point) {
        auto from = evaluate(first, point), to = evaluate(end, point), limit = evaluate(size, point);
        return (from && *from < 0) || (to && limit && *to > *limit);
      };
      auto point = iteration(access, {end - size, zero(first.dtype()) - first}, leaves);
      if (!point) continue;
      auto from = evaluate(first, *point), to = evaluate(end, *point);
      int64_t index = from && *from < 0 ? *from : *to - 1;
      const Block* block = innermost_block(access.around);
      return fail(
          "verify/bounds",
          (block && !block->name_hint.empty() ? "block " + quoted(block->name_hint) : std::string("the program")) +
              (access.writes ? " writes " : " reads ") + quoted(buffer->name) + " at index " + std::to_string(index) +
              " of dimension " + std::to_string(d) + ", which has " + brief(size) +
              (is_const_int(size, 1) ? " element" : " elements") + at_iteration(access.around, *point),
          access.site, "correct the loop, the index or the shape, or guard the access by a condition");
    }
  }

  // ---- regions -----------------------------------------------------------------------------------------------------

  /// Whether the innermost block declares the access. Buffers that the block makes itself need no region, and what a
  /// reduction accumulates into is written, so it may be read as well.
  void check_regions(const Access& access) {
    const Block* block = innermost_block(access.around);
    if (!block || access.form == Access::Form::kView || access.form == Access::Form::kPointer ||
        (access.form == Access::Form::kAddress && !access.is_atomic) ||
        (block->iter_vars.empty() && block->reads.empty() && block->writes.empty()) || is_in_empty_loop(access.around))
      return;
    for (const Surrounding& s : inside_block(access.around)) {
      const DeclBuffer* decl = s.node.as<DeclBuffer>();
      if (decl && decl->buffer == access.named) return;
    }
    Ref<BufferRegion> touched = access.region();
    const NodeRef data = touched->buffer->data;
    if (any_of(block->alloc_buffers, [&](const Ref<Buffer>& own) { return own->data == data; })) {
      return;
    }
    std::vector<Ref<BufferRegion>> candidates;
    bool listed = false;
    auto add = [&](const std::vector<Ref<BufferRegion>>& regions) {
      for (Ref<BufferRegion> region : regions) {
        region = behind_views(region, *access.views);
        listed |= region->buffer->data == data;
        if (region->buffer == touched->buffer) candidates.push_back(std::move(region));
      }
    };
    add(block->writes);
    if (!access.writes) add(block->reads);
    if (candidates.empty() && listed) return;  // by another name
    if (listed && is_inside(access, *touched, candidates)) return;
    fail(access.writes ? "verify/writes" : "verify/reads",
         "block " + quoted(block->name_hint) + (access.writes ? " writes " : " reads ") + "buffer " +
             quoted(access.named->name) +
             (listed ? problem_ + " outside of the regions it declares" : ", which its regions do not name"),
         access.site,
         std::string("correct T.") + (access.writes ? "writes" : "reads") + ", or omit it to have it computed");
  }

  bool is_inside(const Access& access, const BufferRegion& touched, const std::vector<Ref<BufferRegion>>& candidates) {
    problem_.clear();
    if (any_of(touched.region, depends_on_data) && !data_decides(access.around) &&
        !is_surely_inside(access, touched, candidates)) {
      return false;
    }
    auto outside = [&](const Point& point) {
      return all_of(candidates, [&](const Ref<BufferRegion>& candidate) {
        for (size_t d = 0; d < touched.region.size() && d < candidate->region.size(); ++d) {
          const Range &own = *touched.region[d], &declared = *candidate->region[d];
          auto from = evaluate(own.min, point), low = evaluate(declared.min, point);
          auto to = evaluate(own.min + own.extent, point), high = evaluate(declared.min + declared.extent, point);
          if ((from && low && *from < *low) || (to && high && *to > *high)) return true;
        }
        return false;
      });
    };
    std::vector<Expr> goals;
    for (size_t d : indices_of(touched.region)) {
      const Range &own = *touched.region[d], &declared = *candidates.front()->region[d];
      if (depends_on_data(touched.region[d])) continue;
      if (own.min == declared.min && is_const_int(own.extent, 1) && is_const_int(declared.extent, 1)) continue;
      goals.push_back(own.min + own.extent - (declared.min + declared.extent));
      goals.push_back(declared.min - own.min);
    }
    if (goals.empty() || is_proved_inside(access, touched, candidates, [](size_t) { return true; })) return true;
    auto point = iteration(access, goals, outside);
    if (point) problem_ = at_iteration(access.around, *point) + ",";
    return !point;
  }

  /// Whether a loop or the domain of an axis around the access is empty, so that it never happens.
  static bool is_in_empty_loop(Surroundings around) {
    return any_of(around, [](const Surrounding& s) {
      const For* loop = s.node.as<For>();
      const IterVar* axis = s.node.as<IterVar>();
      return loop ? is_const_int(loop->extent, 0) : axis && is_empty(*axis);
    });
  }
  static bool is_empty(const IterVar& axis) { return axis.dom.defined() && is_const_int(axis.dom->extent, 0); }

  /// Data say whether the access happens: they may well keep the index, which is data too, inside.
  static bool data_decides(Surroundings around) {
    return any_of(around, [](const Surrounding& s) {
      return s.kind == Surrounding::Kind::kCondition && effect_of(s.condition) != Effect::kPure;
    });
  }

  static bool depends_on_data(const Ref<Range>& range) {
    return effect_of(range->min) != Effect::kPure || effect_of(range->extent) != Effect::kPure;
  }

  /// An index that comes from memory may be anything: the regions must hold it whatever it is. Other dimensions are
  /// not asked about.
  bool is_surely_inside(const Access& access, const BufferRegion& touched,
                        const std::vector<Ref<BufferRegion>>& candidates) {
    auto from_data = [&](size_t d) { return depends_on_data(touched.region[d]); };
    if (is_proved_inside(access, touched, candidates, from_data)) return true;
    problem_ = " at an index that depends on data, which is not proved to be in bounds, so";
    return false;
  }

  /// One of the regions holds the access, in those dimensions that `asked` takes.
  template <class F>
  static bool is_proved_inside(const Access& access, const BufferRegion& touched,
                               const std::vector<Ref<BufferRegion>>& candidates, F&& asked) {
    Surroundings inner = inside_block(access.around);
    arith::Analyzer analyzer;
    for (const Surrounding& s : access.around.first(access.around.size() - inner.size())) {
      if (const For* loop = s.node.as<For>()) analyzer.bind(loop->loop_var, range(loop->min, loop->extent));
      const IterVar* axis = s.node.as<IterVar>();
      if (axis && axis->dom.defined()) analyzer.bind(axis->var, axis->dom);
    }
    arith::Box box = arith::relax_region(touched.region, domains_of(inner), analyzer, known_conditions(inner));
    for (size_t d : indices_of(box)) {
      if (!box[d].is_bounded()) box[d] = arith::IntSet::of_range(range_of(touched.buffer->shape[d]));
    }
    return any_of(candidates, [&](const Ref<BufferRegion>& candidate) {
      return holds(candidate->region, box, touched, analyzer, asked);
    });
  }

  /// Dimension by dimension; a region that holds the whole dimension holds whatever is no access out of bounds.
  template <class F>
  static bool holds(const arith::Region& declared, const arith::Box& box, const BufferRegion& touched,
                    arith::Analyzer& analyzer, F&& asked) {
    const std::vector<Expr>& shape = touched.buffer->shape;
    for (size_t d : indices_of(box)) {
      if (!asked(d)) continue;
      arith::IntSet outer = arith::IntSet::of_range(declared[d]);
      if (arith::proves_subset(box[d], outer, analyzer)) continue;
      if (!arith::proves_subset(arith::IntSet::of_range(range_of(shape[d])), outer, analyzer)) return false;
    }
    return true;
  }

  // ---- init --------------------------------------------------------------------------------------------------------

  /// "SS" where "SR" was meant: each value of the axis starts the reduction of the same element again.
  void check_init(const Ref<BlockRealize>& realize) {
    const Block& block = *realize->block;
    if (!block.init.defined() || block.writes.empty() || failure) return;
    // The block never runs. Its indices may have been simplified to 0, so that they no longer mention the axes.
    if (any_of(block.iter_vars, [](const Ref<IterVar>& axis) { return is_empty(*axis); })) return;
    for (size_t i : indices_of(block.iter_vars)) {
      const Ref<IterVar>& axis = block.iter_vars[i];
      const int64_t extent = axis->dom.defined() ? const_int(axis->dom->extent).value_or(0) : 0;
      if (!is_data_parallel(axis) || extent <= 1 || const_int(realize->iter_values[i])) continue;
      bool used = false;
      for (const Ref<BufferRegion>& write : block.writes) {
        for (const Ref<Range>& r : write->region) used |= uses_var(r, axis->var);
      }
      for_each_access(realize->block, Nested::kEnter, [&](const Access& access) {
        if (!access.writes || !access.indices()) return;
        for (const Expr& index : *access.indices()) used |= uses_var(index, axis->var);
      });
      if (used) continue;
      return fail("verify/init",
                  "block " + quoted(block.name_hint) + " has an init and the spatial axis " +
                      quoted(axis->var->name_hint) + " of extent " + std::to_string(extent) +
                      ", which selects nothing that it writes: each value of the axis starts the same elements again",
                  realize->block, "make it a reduction axis: \"R\" instead of \"S\" in T.axis.remap, or T.axis.reduce");
    }
  }

  bool proves_runs_ = true;
  std::string problem_;
  arith::Analyzer analyzer_;
  std::unordered_set<NodeRef> bound_, checked_axes_;
};

}  // namespace

Status verify_accesses(const NodeRef& node) {
  if (!node.defined()) return Ok{};
  std::vector<NodeRef> roots{node};
  if (const Module* module = node.as<Module>()) {
    roots.clear();
    for (const auto& [name, func] : module->functions) {
      if (func.defined()) roots.push_back(func);
    }
  }
  for (NodeRef& root : roots) {
    if (const PrimFunc* func = root.as<PrimFunc>()) root = func->body;
    if (!root.defined()) continue;
    AccessVerifier verifier;
    verifier.run(root);
    if (verifier.failure) return std::move(*verifier.failure);
  }
  return Ok{};
}

}  // namespace tilewright::analysis
