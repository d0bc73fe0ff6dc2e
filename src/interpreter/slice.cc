#include "interpreter/slice.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "arith/analyzer.h"
#include "ir/build.h"
#include "ir/substitute.h"
#include "ir/traverse.h"
#include "support/ranges.h"

namespace tilewright::interpreter {
namespace {

using arith::Analyzer;
using arith::ConstIntBound;

/// Rounds after which a box that still grows becomes the whole buffer: a scan, B[i] = B[i - 1] + A[i], would else take
/// one round for each element.
constexpr int kRoundsBeforeWidening = 4;
constexpr int kMaxRounds = 64;
/// Halves that are looked into for one end of one loop: 20 find an iteration among a million, unless the index jumps.
constexpr int kMaxLooks = 200;

struct Interval {
  int64_t min = 0, max = -1;
  bool is_empty() const { return min > max; }
  bool meets(const Interval& other) const { return min <= other.max && other.min <= max; }
  friend bool operator==(const Interval&, const Interval&) = default;
};
using Box = std::vector<Interval>;

Interval hull(const Interval& a, const Interval& b) {
  if (a.is_empty()) return b;
  if (b.is_empty()) return a;
  return {std::min(a.min, b.min), std::max(a.max, b.max)};
}

struct SliceAccess {
  Ref<Buffer> buffer;
  std::vector<Expr> indices;  // in variables of loops alone
};
/// Something that is evaluated before what it surrounds: a condition, an extent, the binding of an axis.
struct Control {
  std::vector<SliceAccess> reads;
};
struct Loop {
  Ref<For> node;
  Expr first, end;  // functions of the loops around it
  Interval domain;
  bool is_bounded = false;  // the domain is known
  bool may_shrink = true;
  Interval range;  // iterations that are kept
  std::vector<size_t> stores;
};
struct Store {
  Ref<BufferStore> node;
  SliceAccess target;
  std::vector<SliceAccess> reads;
  std::vector<size_t> loops, controls;
  bool is_kept = false;
};

/// All loops, stores and reads of a function, with the indices as functions of the loops.
class Inventory {
 public:
  explicit Inventory(const Ref<PrimFunc>& func) {
    for (const auto& [param, buffer] : func->buffer_map) meet(buffer);
    statement(func->body);
  }

  bool is_complete() const { return complete_; }

  std::vector<Loop> loops;  // outer ones first
  std::vector<Store> stores;
  std::vector<Control> controls;

 private:
  void statement(const Stmt& body) {
    visit(
        body, [&](const Ref<For>& loop, Visitor& v) { enter_loop(loop, v); },
        [&](const Ref<BlockRealize>& realize, Visitor& v) { enter_block(realize, v); },
        [&](const Ref<IfThenElse>& branch, Visitor& v) {
          within_control({branch->condition}, [&] {
            v(branch->then_case);
            v(branch->else_case);
          });
        },
        [&](const Ref<While>& loop, Visitor& v) { within_control({loop->condition}, [&] { v(loop->body); }); },
        [&](const Ref<LetStmt>& let, Visitor& v) {
          values_[NodeRef(let->var)] = substitute(let->value, values_);
          complete_ = complete_ && !let->var.dtype().is_handle();
          within_control({let->value}, [&] { v(let->body); });
        },
        [&](const Ref<BufferStore>& store, Visitor&) { enter_store(store); },
        [&](const Ref<Evaluate>& evaluate, Visitor&) { reads_of({evaluate->value}); },
        // Nodes that name memory other than by buffers of blocks and parameters.
        on<DeclBuffer, Allocate, AllocateConst, BufferRealize, AttrStmt, AssertStmt>(
            [&](const auto&, Visitor&) { complete_ = false; }));
  }

  void enter_loop(const Ref<For>& loop, Visitor& v) {
    within_control({loop->min, loop->extent}, [&] {
      Loop entry;
      entry.node = loop;
      entry.first = substitute(loop->min, values_);
      entry.end = entry.first + substitute(loop->extent, values_);
      entry.may_shrink = loop->kind != ForKind::kThreadBinding;
      open_loops_.push_back(loops.size());
      loops.push_back(std::move(entry));
      v(loop->body);
      open_loops_.pop_back();
    });
  }

  void enter_block(const Ref<BlockRealize>& realize, Visitor& v) {
    const Ref<Block>& block = realize->block;
    for (const Def<Buffer>& buffer : block->alloc_buffers) meet(buffer);
    std::vector<Expr> evaluated = realize->iter_values;
    evaluated.push_back(realize->predicate);
    within_control(evaluated, [&] {
      for (size_t i : indices_of(block->iter_vars)) {
        values_[NodeRef(block->iter_vars[i]->var)] = substitute(realize->iter_values[i], values_);
      }
      for (const Ref<MatchBufferRegion>& match : block->match_buffers) see_through(*match);
      v(block->init);
      v(block->body);
    });
  }

  /// Elements of a view are those of what it shows, from the beginning of the region on; dimensions of one element may
  /// be missing.
  void see_through(const MatchBufferRegion& match) {
    const Ref<Buffer>& view = match.buffer;
    const std::vector<Ref<Range>>& region = match.source->region;
    const size_t missing = region.size() - std::min(region.size(), view->shape.size());
    bool plain = view->shape.size() <= region.size() && view->dtype == match.source->buffer->dtype;
    std::vector<Expr> first;
    for (size_t d : indices_of(region)) {
      plain = plain && (d >= missing || const_int(region[d]->extent) == 1);
      first.push_back(region[d]->min);
    }
    complete_ = complete_ && plain;
    if (plain) views_.insert_or_assign(NodeRef(view), located(match.source->buffer, first));
  }

  void enter_store(const Ref<BufferStore>& store) {
    meet(store->buffer);
    std::vector<Expr> evaluated = store->indices;
    evaluated.push_back(store->value);
    if (store->predicate.defined()) evaluated.push_back(store->predicate);
    Store entry{store, located(store->buffer, store->indices), reads_of(evaluated), open_loops_, open_controls_};
    for (size_t loop : open_loops_) loops[loop].stores.push_back(stores.size());
    stores.push_back(std::move(entry));
  }

  template <class F>
  void within_control(const std::vector<Expr>& evaluated, F&& work) {
    open_controls_.push_back(controls.size());
    controls.push_back({reads_of(evaluated)});
    work();
    open_controls_.pop_back();
  }

  std::vector<SliceAccess> reads_of(const std::vector<Expr>& expressions) {
    std::vector<SliceAccess> reads;
    for (const Expr& e : expressions) {
      visit(
          e,
          [&](const Ref<BufferLoad>& load, Visitor& v) {
            meet(load->buffer);
            for (const Expr& index : load->indices) v(index);
            reads.push_back(located(load->buffer, load->indices));
          },
          [&](const Ref<Let>& let, Visitor& v) {
            v(let->value);
            values_[NodeRef(let->var)] = substitute(let->value, values_);
            v(let->body);
          },
          [&](const Ref<Call>& call) {
            // Pointers and effects: what such a call touches is not to be seen here.
            const Effect effect = intrinsic_of(*call) == Intrinsic::kUnknown
                                      ? Effect::kUpdateState
                                      : intrinsic_row(intrinsic_of(*call)).effect;
            if (effect == Effect::kUpdateState || effect == Effect::kReadState || call.dtype().is_handle()) {
              complete_ = false;
            }
          },
          [&](const Ref<Var>& var, Visitor&) { complete_ = complete_ && !var.dtype().is_handle(); });
    }
    return reads;
  }

  SliceAccess located(const Ref<Buffer>& buffer, const std::vector<Expr>& indices) const {
    SliceAccess access{buffer, {}};
    for (const Expr& index : indices) access.indices.push_back(substitute(index, values_));
    auto* view = find_value(views_, NodeRef(buffer));
    if (!view) return access;
    SliceAccess shown = *view;
    const size_t missing = shown.indices.size() - access.indices.size();
    for (size_t d = missing; d < shown.indices.size(); ++d) {
      shown.indices[d] = shown.indices[d] + cast(shown.indices[d].dtype(), access.indices[d - missing]);
    }
    return shown;
  }

  /// Two buffers over the same memory are views of each other.
  void meet(const Ref<Buffer>& buffer) {
    if (views_.contains(NodeRef(buffer))) return;
    auto [known, is_new] = by_data_.emplace(NodeRef(buffer->data), buffer);
    complete_ = complete_ && (is_new || known->second == buffer);
  }

  bool complete_ = true;
  VarMap values_;  // values of axes and bindings, in variables of loops
  std::unordered_map<NodeRef, Ref<Buffer>> by_data_;
  std::unordered_map<NodeRef, SliceAccess> views_;  // the first element that a view shows
  std::vector<size_t> open_loops_, open_controls_;
};

class Slicer {
 public:
  explicit Slicer(Inventory& inventory) : loops_(inventory.loops), stores_(inventory.stores), in_(inventory) {
    for (const Store& store : stores_) written_.insert(store.target.buffer);
  }

  /// False: it takes too many rounds.
  bool run(const Ref<Buffer>& buffer, const std::vector<int64_t>& index) {
    Box wanted;
    for (int64_t at : index) wanted.push_back({at, at});
    demand_[buffer] = std::move(wanted);
    for (int round = 0; round < kMaxRounds; ++round) {
      restrict_loops();
      if (!grow_demand(round >= kRoundsBeforeWidening)) return true;
    }
    return false;
  }

 private:
  bool reaches_demand(const Store& store) {
    auto* wanted = find_value(demand_, store.target.buffer);
    if (!wanted) return false;
    for (size_t d : indices_of(store.target.indices)) {
      if (!bound(store.target.indices[d]).meets((*wanted)[d])) return false;
    }
    return true;
  }

  Interval bound(const Expr& index) {
    const ConstIntBound found = analyzer_.const_int_bound(index);
    return {found.min_value, found.max_value};
  }

  void set_range(const Loop& loop, const Interval& range) {
    const DataType type = loop.node->loop_var.dtype();
    analyzer_.bind(loop.node->loop_var, range_over(type, range));
  }
  static Ref<Range> range_over(DataType type, const Interval& range) {
    return tilewright::range(constant(type, range.min), constant(type, range.max - range.min + 1));
  }

  /// The loop's whole domain, bounded by the ranges of the enclosing loops.
  void find_domain(Loop& loop) {
    const ConstIntBound first = analyzer_.const_int_bound(loop.first);
    const ConstIntBound end = analyzer_.const_int_bound(loop.end);
    loop.is_bounded = first.has_min() && end.has_max();
    loop.domain = loop.range = {first.min_value, end.max_value - 1};
    if (loop.is_bounded && !loop.range.is_empty()) set_range(loop, loop.range);
  }

  void restrict_loops() {
    for (Loop& loop : loops_) find_domain(loop);
    for (Store& store : stores_) store.is_kept = runs(store) && reaches_demand(store);
    for (Loop& loop : loops_) {
      if (!loop.is_bounded) continue;
      find_domain(loop);
      if (!loop.may_shrink || loop.range.is_empty()) continue;
      Interval needed;
      for (size_t at : loop.stores) {
        if (stores_[at].is_kept) needed = hull(needed, needed_for(loop, stores_[at]));
      }
      loop.range = needed;
      if (!needed.is_empty()) set_range(loop, needed);
    }
    for (Store& store : stores_) store.is_kept = store.is_kept && runs(store) && reaches_demand(store);
  }

  bool runs(const Store& store) const {
    return all_of(store.loops, [&](size_t at) { return !loops_[at].is_bounded || !loops_[at].range.is_empty(); });
  }

  /// Returns the interval from the first to the last iteration in which the store may write a demanded element.
  Interval needed_for(const Loop& loop, const Store& store) {
    looks_ = 0;
    const std::optional<int64_t> first = find(loop, store, loop.range, false);
    if (!first) return {};
    looks_ = 0;
    return {*first, *find(loop, store, {*first, loop.range.max}, true)};
  }

  /// The outermost such iteration on one side, by halving: a half in which the store is seen not to reach the demand is
  /// passed over. Who has looked too often takes the end of the half that it is in, which is further out.
  std::optional<int64_t> find(const Loop& loop, const Store& store, const Interval& part, bool from_the_end) {
    set_range(loop, part);
    if (!reaches_demand(store)) return std::nullopt;
    if (part.min == part.max || ++looks_ > kMaxLooks) return from_the_end ? part.max : part.min;
    const int64_t middle = part.min + (part.max - part.min) / 2;
    const Interval halves[] = {{part.min, middle}, {middle + 1, part.max}};
    for (int turn = 0; turn < 2; ++turn) {
      if (auto found = find(loop, store, halves[from_the_end ? 1 - turn : turn], from_the_end)) return found;
    }
    return std::nullopt;
  }

  /// Adds what is read; false when nothing was new.
  bool grow_demand(bool use_whole_buffers) {
    bool grew = false;
    std::unordered_set<size_t> controls;
    for (const Store& store : stores_) {
      if (!store.is_kept) continue;
      for (const SliceAccess& read : store.reads) grew |= add(read, use_whole_buffers);
      controls.insert(store.controls.begin(), store.controls.end());
    }
    for (size_t control : indices_of(in_.controls)) {
      if (!controls.contains(control)) continue;
      for (const SliceAccess& read : in_.controls[control].reads) grew |= add(read, use_whole_buffers);
    }
    return grew;
  }

  bool add(const SliceAccess& read, bool use_whole_buffers) {
    if (!written_.contains(read.buffer)) return false;
    Box box, whole;
    for (size_t d : indices_of(read.indices)) {
      whole.push_back({0, analyzer_.const_int_bound(read.buffer->shape[d]).max_value - 1});
      const Interval index = bound(read.indices[d]);
      box.push_back({std::max(index.min, whole[d].min), std::min(index.max, whole[d].max)});
      if (box[d].is_empty()) return false;  // never read where it exists
    }
    auto [known, is_new] = demand_.emplace(read.buffer, box);
    if (is_new) return true;
    bool grew = false;
    for (size_t d : indices_of(box)) {
      Interval united = hull(known->second[d], box[d]);
      if (united == known->second[d]) continue;
      known->second[d] = use_whole_buffers ? whole[d] : united;
      grew = true;
    }
    return grew;
  }

  std::vector<Loop>& loops_;
  std::vector<Store>& stores_;
  Inventory& in_;
  Analyzer analyzer_;
  int looks_ = 0;
  std::unordered_set<NodeRef> written_;
  std::unordered_map<NodeRef, Box> demand_;
};

/// The loop restricted to the iterations in `range`.
Stmt over_range(const Ref<For>& loop, const Interval& range, Stmt body) {
  For copy = *loop;
  const DataType type = loop->loop_var.dtype();
  const Expr first = constant(type, range.min), end = constant(type, range.max + 1);
  copy.min = max(loop->min, first);
  copy.extent = max(min(loop->min + loop->extent, end) - copy.min, zero(type));
  copy.body = std::move(body);
  return make(std::move(copy), loop.span());
}

Ref<PrimFunc> rebuild(const Ref<PrimFunc>& func, const Inventory& inventory) {
  // A statement may stand at several places of the tree: what one of them needs is kept at all.
  std::unordered_map<const NodeBase*, Interval> ranges;
  std::unordered_set<const NodeBase*> kept;
  for (const Store& store : inventory.stores) {
    if (store.is_kept) kept.insert(store.node.get());
  }
  for (const Loop& loop : inventory.loops) {
    if (!loop.is_bounded || !loop.may_shrink) continue;
    Interval& range = ranges[loop.node.get()];
    range = hull(range, loop.range);
  }
  // Remove loops and conditions around nothing: a condition may read elements that the slice does not compute.
  return rewrite(
      func,
      [&](const Ref<BufferStore>& store, Rewriter&) -> Stmt {
        return kept.contains(store.get()) ? Stmt(store) : nop();
      },
      [&](const Ref<Evaluate>&, Rewriter&) -> Stmt { return nop(); },
      [&](const Ref<SeqStmt>& sequence, Rewriter& r) -> Stmt {
        std::vector<Stmt> left;
        for (const Stmt& item : sequence->seq) {
          if (Stmt after = r(item); !is_nop(after)) left.push_back(std::move(after));
        }
        return seq(std::move(left));
      },
      [&](const Ref<For>& loop, Rewriter& r) -> Stmt {
        Stmt body = r(loop->body);
        if (is_nop(body)) return body;
        if (auto* range = find_value(ranges, loop.get())) return over_range(loop, *range, std::move(body));
        return with_body(loop, std::move(body));
      },
      [&](const Ref<While>& loop, Rewriter& r) -> Stmt {
        Ref<While> after = r.descend(loop);
        return is_nop(after->body) ? nop() : Stmt(after);
      },
      [&](const Ref<LetStmt>& let, Rewriter& r) -> Stmt {
        Ref<LetStmt> after = r.descend(let);
        return is_nop(after->body) ? nop() : Stmt(after);
      },
      [&](const Ref<IfThenElse>& branch, Rewriter& r) -> Stmt {
        Ref<IfThenElse> after = r.descend(branch);
        const bool has_else = after->else_case.defined() && !is_nop(after->else_case);
        return is_nop(after->then_case) && !has_else ? nop() : Stmt(after);
      },
      [&](const Ref<BlockRealize>& realize, Rewriter& r) -> Stmt {
        Ref<BlockRealize> after = r.descend(realize);
        const bool has_init = after->block->init.defined() && !is_nop(after->block->init);
        return is_nop(after->block->body) && !has_init ? nop() : Stmt(after);
      });
}

}  // namespace

std::optional<Ref<PrimFunc>> slice(const Ref<PrimFunc>& func, const Ref<Buffer>& buffer,
                                   const std::vector<int64_t>& index) {
  Inventory inventory(func);
  if (!inventory.is_complete() || !Slicer(inventory).run(buffer, index)) return std::nullopt;
  const bool is_less =
      any_of(inventory.stores, [](const Store& s) { return !s.is_kept; }) ||
      any_of(inventory.loops, [](const Loop& loop) { return loop.is_bounded && !(loop.range == loop.domain); });
  if (!is_less) return std::nullopt;
  return rebuild(func, inventory);
}

}  // namespace tilewright::interpreter
