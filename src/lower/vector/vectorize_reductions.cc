// Give vectorized reductions a partial result in each lane, put together once at the end.
//
//   Before                                  After
//   for k in T.vectorized(1000):            C_lanes = T.allocate([64], "float32", "local")
//     C[i] = C[i] + A[i * 1000 + k]         for k in T.vectorized(64):
//                                             C_lanes[k] = -0.0
//                                           for k_0 in range(16):
//                                             for k in T.vectorized(64):
//                                               if k_0 * 64 + k < 1000:
//                                                 C_lanes[k] = C_lanes[k] + A[i * 1000 + (k_0 * 64 + k)]
//                                           lanes = C_lanes[0:64]
//                                           lanes_1 = lanes[0:32] + lanes[32:64]; ...
//                                           C[i] = C[i] + lanes_6[0] + lanes_6[1]
//
// The partial results live through the outermost enclosing loop that continues the reduction, and does not access its
// result otherwise. Loops between the two that go through other results (a tile) have partial results each. Where few
// vectors are in flight, the loop around the vectors takes some at a time, so that steps do not wait for one another.
//
// Needs      flat buffers
// Ensures    lanes of vectorized loops store to elements of their own where the result is a sum, product, minimum,
//            maximum, conjunction, disjunction or combination of bits. Other loops stay. Sums and products of floats
//            are rounded in another order: the program asks for that by vectorizing the loop.
// Placement  before split_vector_loops, which would cut what is counted in whole vectors here
#include <algorithm>

#include "ir/build.h"
#include "ir/conjunction.h"
#include "ir/substitute.h"
#include "ir/traverse.h"
#include "lower/loops/cut_loops.h"
#include "lower/loops/index_variables.h"
#include "lower/passes.h"
#include "lower/vector/join_lanes.h"
#include "lower/vector/lane_independence.h"
#include "lower/vector/vector_math.h"
#include "lower/x86/form_dot_products.h"
#include "support/ranges.h"

namespace tilewright::lower {
namespace {

int64_t power_of_two_within(int64_t n) {
  int64_t power = 1;
  while (power * 2 <= n) power *= 2;
  return power;
}

/// A reduction of the loop that becomes vectors, and what is known about it under an outer statement.
struct Reduction {
  Ref<BufferStore> store;
  ReductionStep step;
  std::vector<Stmt> inside;  ///< statements from the loop's body to the store
  size_t level = 0;          ///< the loop around which partial results live, as a position of the path
  std::vector<Ref<For>> tile;
  std::vector<Expr> guards;  ///< the result exists where they hold
  int64_t results = 1;       ///< number of results in the tile
  int64_t copies = 1;        ///< number of copies of partial results (Jam)
  int64_t width = 0;         ///< lanes of each
  Ref<Buffer> lanes;
};

/// Several iterations of a loop at a time, with partial results each.
struct Jam {
  Ref<Var> copy;
  int64_t copies = 1;
};

struct Frame {
  explicit Frame(Stmt s) : stmt(std::move(s)) {}
  Stmt stmt;
  std::vector<Reduction> ends;  ///< reductions of which this is the level
  Jam jam;                      ///< unroll-and-jam of this loop
};

class LanesOfReductions : private LoopContext {
 public:
  LanesOfReductions(const PrimFunc& func, PassContext& context)
      : LoopContext(func), target_(context.target), private_(private_memory(func, context)) {}

  Stmt run(const Stmt& body) {
    return rewrite(
        body, [&](const Ref<For>& loop, Rewriter& r) -> Stmt { return enter_loop(loop, r); },
        on<SeqStmt, IfThenElse, Allocate, AllocateConst, DeclBuffer, AttrStmt, AssertStmt, While>(
            [&](const auto& node, Rewriter& r) { return enter(node, r); }),
        [&](const Ref<LetStmt>& let, Rewriter& r) -> Stmt {
          note(*let);
          return enter(let, r);
        },
        [&](const Ref<BufferStore>& store, Rewriter&) -> Stmt { return store; });
  }

 private:
  template <class T>
  Stmt enter(const Ref<T>& node, Rewriter& r) {
    path_.emplace_back(node);
    Stmt after = r.descend(node);
    path_.pop_back();
    return after;
  }

  Stmt enter_loop(const Ref<For>& loop, Rewriter& r) {
    path_.emplace_back(loop);
    Stmt after =
        inside(*loop, [&] { return loop->kind == ForKind::kVectorized ? vectors(loop) : Stmt(r.descend(loop)); });
    Frame frame = std::move(path_.back());
    path_.pop_back();
    if (frame.jam.copies > 1) {
      Ref<For> whole = after.cast<For>();
      after = strips(whole, whole->body, frame.jam.copy, frame.jam.copies, ForKind::kUnrolled, whole->kind);
    }
    for (const Reduction& reduction : frame.ends) after = with_lanes(reduction, after);
    return after;
  }

  // ---- what is reduced, and from where to where

  /// Whether an index stays what it is while the statement runs: it may read what nothing there writes (offsets).
  static bool is_settled(const Expr& index, const Stmt& within) {
    if (effect_of(index) == Effect::kPure) return true;
    if (effect_of(index) != Effect::kReadState) return false;
    std::unordered_set<NodeRef> read;
    visit(index, [&](const Ref<BufferLoad>& load) { read.insert(load->buffer->data); });
    bool settled = !read.empty();
    visit(
        within, [&](const Ref<BufferStore>& store) { settled = settled && !read.count(store->buffer->data); },
        [&](const Ref<Call>& call) { settled = settled && effect_of(call) != Effect::kUpdateState; });
    return settled;
  }

  /// The stores to one element; false where one of them is not a step of a reduction.
  bool collect(const Stmt& s, const Ref<For>& loop, std::vector<Stmt>& inside, std::vector<Reduction>& found) {
    bool good = true;
    if (const BufferStore* store = s.as<BufferStore>()) {
      bool same = store->indices.size() == 1 && store->indices[0].dtype().is_scalar() &&
                  !uses_var(store->indices[0], loop->loop_var) && is_settled(store->indices[0], loop->body);
      if (!same) return true;
      auto step = lane_step(*store, analyzer_);
      if (step) found.push_back({s.borrow<BufferStore>(), *step, inside, 0, {}, {}, 1, 1, 0, {}});
      return step.has_value();
    }
    if (const For* nested = s.as<For>()) {
      if (nested->kind == ForKind::kVectorized) return false;
      analyzer_.bind(nested->loop_var, range(nested->min, nested->extent));
      variables_.enter(*nested);
    }
    inside.push_back(s);
    const IfThenElse* branch = s.as<IfThenElse>();
    for_each_child(s, [&](const NodeRef& child, Role) {
      if (child.sort() != Sort::kStmt) return;
      bool holds = branch && child == branch->then_case && variables_.is_decidable(branch->condition);
      auto scope = analyzer_.constraint(holds ? branch->condition : bool_imm(true));
      good = good && collect(Stmt(child), loop, inside, found);
    });
    inside.pop_back();
    if (const For* nested = s.as<For>()) variables_.leave(*nested);
    return good;
  }

  /// Describes the reduction if partial results can live through the loop at this position of the path.
  bool lives_at(size_t level, Reduction& reduction) {
    const BufferStore& step = *reduction.store;
    const Expr& index = step.indices[0];
    // For the vectorized loop itself, the user's annotation vouches that lanes do not conflict otherwise.
    bool trusted = level + 1 == path_.size();
    if (!is_alone(path_[level].stmt, step, private_, trusted)) return false;
    std::vector<Stmt> chain;
    for (size_t i = level; i < path_.size(); ++i) chain.push_back(path_[i].stmt);
    append_range(chain, reduction.inside);
    chain.push_back(reduction.store);
    reduction.tile.clear();
    reduction.guards.clear();
    reduction.results = 1;
    Bound bound;
    std::vector<Expr> atoms;
    for (size_t i = 0; i + 1 < chain.size(); ++i) {
      if (!pass_through(chain[i], chain[i + 1], level + i + 1 == path_.size(), reduction, bound, atoms)) return false;
    }
    if (uses_any_of(index, bound.others)) return false;
    if (!is_settled(index, path_[level].stmt)) return false;
    return exists(reduction, bound, atoms);
  }

  /// Variables that are bound under a level.
  struct Bound {
    std::unordered_set<NodeRef> tile, others;
    VarMap first;  ///< loops that the result does not depend on, at their first iterations
  };

  bool pass_through(const Stmt& s, const Stmt& next, bool is_vector, Reduction& reduction, Bound& bound,
                    std::vector<Expr>& atoms) {
    const Ref<Buffer>& result = reduction.store->buffer;
    switch (s.kind()) {
      case Kind::kSeqStmt: {
        const auto& all = s.as<SeqStmt>()->seq;
        return std::ranges::count(all, next) == 1;
      }
      case Kind::kFor: {
        const For& loop = *s.as<For>();
        bool plain = is_vector || loop.kind == ForKind::kSerial || loop.kind == ForKind::kUnrolled;
        if (!plain) return false;
        atoms.push_back(gt(loop.extent, 0));
        if (!uses_var(reduction.store->indices[0], loop.loop_var)) {
          bound.others.insert(loop.loop_var);
          bound.first[loop.loop_var] = substitute(loop.min, bound.first);
          return true;
        }
        auto extent = const_int(loop.extent);
        bool is_free = const_int(loop.min).has_value();
        if (!extent || !is_free || *extent < 1 || *extent > most_results()) return false;
        bound.tile.insert(loop.loop_var);
        reduction.tile.push_back(s.borrow<For>());
        reduction.results *= *extent;
        return reduction.results <= most_results();
      }
      case Kind::kIfThenElse: {
        const IfThenElse& branch = *s.as<IfThenElse>();
        if (branch.then_case == branch.else_case) return false;
        if (next == branch.then_case) {
          for (Expr& atom : conjuncts(branch.condition)) atoms.push_back(std::move(atom));
        } else {
          atoms.push_back(logical_not(branch.condition));
        }
        return true;
      }
      case Kind::kLetStmt:
        bound.others.insert(s.as<LetStmt>()->var);
        return true;
      case Kind::kAllocate:
        bound.others.insert(s.as<Allocate>()->buffer_var);
        return s.as<Allocate>()->buffer_var != result->data;
      case Kind::kDeclBuffer:
        return s.as<DeclBuffer>()->buffer != result;
      default:
        return false;
    }
  }

  /// Whether the result exists wherever the level is executed and the guards, which this finds, hold.
  bool exists(Reduction& reduction, const Bound& bound, const std::vector<Expr>& atoms) {
    bool sure = true;
    for (const Expr& atom : atoms) {
      bool pure = effect_of(atom) == Effect::kPure;
      bool steps = uses_any_of(atom, bound.others);
      if (pure && !steps) {
        if (!proves(atom)) reduction.guards.push_back(atom);
      } else {
        Expr first = substitute(atom, bound.first);
        bool known = pure && !uses_any_of(first, bound.others);
        sure = sure && known && proves(first);
      }
    }
    if (sure) return true;
    const Ref<Buffer>& result = reduction.store->buffer;
    const Expr& index = reduction.store->indices[0];
    Expr condition = bool_imm(true);
    for (const Expr& guard : reduction.guards) {
      if (variables_.is_decidable(guard)) condition = logical_and(condition, guard);
    }
    auto scope = analyzer_.constraint(condition);
    return analyzer_.can_prove(ge(index, 0)) && analyzer_.can_prove(lt(index, result->shape[0]));
  }

  bool proves(const Expr& condition) { return variables_.is_decidable(condition) && analyzer_.can_prove(condition); }

  /// Partial results are registers, next to those that hold operands.
  int64_t most_results() const { return std::max<int64_t>(1, target_.vector_registers * 3 / 4); }

  /// Moves partial results outwards from the loop, as far as they can live. Crossing a loop over results pays only if a
  /// reduction loop follows.
  bool place(Reduction& reduction) {
    size_t at = path_.size() - 1;
    Reduction best = reduction;
    if (!lives_at(at, best)) return false;
    best.level = at;
    Reduction wider = best;
    while (at-- > 0) {
      const For* loop = path_[at].stmt.as<For>();
      if (!loop) continue;
      if (!lives_at(at, wider)) break;
      if (uses_var(reduction.store->indices[0], loop->loop_var)) continue;
      best = wider;
      best.level = at;
    }
    reduction = std::move(best);
    return true;
  }

  // ---- the loop as vectors

  Stmt vectors(const Ref<For>& loop) {
    std::vector<Reduction> reductions;
    std::vector<Stmt> inside;
    if (!collect(loop->body, loop, inside, reductions) || reductions.empty()) return loop;
    if (auto extent = const_int(loop->extent); extent && *extent < 2) return loop;
    int64_t results = 0;
    for (Reduction& reduction : reductions) {
      if (!place(reduction)) return loop;
      results += reduction.results;
    }
    int64_t native = vector_lanes(target_, widest_element(loop->body)), group = 4;
    for (const Reduction& reduction : reductions) {
      group = std::min(group, reduction.step.is_sum() ? group_of(reduction.step.operand(), target_) : 1);
    }
    native *= group;
    int64_t in_flight = calls_elementary_function(loop->body) ? 1 : power_of_two_within(kCutRegisters / results);
    in_flight = std::max<int64_t>(in_flight, 1);
    auto extent = const_int(loop->extent);
    int64_t width = native * in_flight;
    if (extent) {
      while (width > 1 && width / 2 >= *extent) width /= 2;
      // Half as many in flight need no remainder.
      if (*extent % width != 0 && width > 2 * native && *extent % (width / 2) == 0) width /= 2;
    }
    Jam jam = jam_around(reductions, extent && *extent <= width ? in_flight * native / width : 1);
    if (jam.copies > 1) path_[path_.size() - 2].jam = jam;
    Ref<Var> lane = make<Var>(*loop->loop_var);
    std::unordered_map<NodeRef, Stmt> steps;
    for (Reduction& reduction : reductions) {
      const Ref<Buffer>& result = reduction.store->buffer;
      int64_t size = jam.copies * reduction.results * width;
      reduction.lanes = decl_buffer({i32(size)}, result->dtype, result->name + "_lanes", "local");
      Expr place = cell(reduction, jam.copies > 1 ? Expr(jam.copy) : Expr(i32(0)), {}) * width + lane;
      steps[reduction.store] = store(reduction.lanes, reduction.step.step(load(reduction.lanes, {place})), {place});
      reduction.copies = jam.copies;
      reduction.width = width;
      path_[reduction.level].ends.push_back(reduction);
    }
    Stmt body =
        rewrite(loop->body, [&](const Ref<BufferStore>& s, Rewriter&) -> Stmt { return find_value_or(steps, s, s); });
    if (extent && *extent <= width) return strip(loop, body, zero(lane.dtype()), lane, width, ForKind::kVectorized);
    return strips(loop, body, lane, width, ForKind::kVectorized, ForKind::kSerial);
  }

  /// Returns how to unroll and jam the loop around the vectors, so that `wanted` vectors are in flight.
  Jam jam_around(const std::vector<Reduction>& found, int64_t wanted) {
    if (wanted < 2 || path_.size() < 2) return {};
    size_t at = path_.size() - 2;
    const For* loop = path_[at].stmt.as<For>();
    if (!loop || loop->kind != ForKind::kSerial || !loop->annotations.empty()) return {};
    auto extent = const_int(loop->extent);
    bool reduces = all_of(found, [&](const Reduction& reduction) {
      return reduction.level <= at && !uses_var(reduction.store->indices[0], loop->loop_var);
    });
    if (!extent || *extent < 2 || !reduces) return {};
    return {var(loop->loop_var->name_hint + "_1", loop->loop_var.dtype()), std::min(wanted, *extent)};
  }

  /// Returns the index, in vectors, of the partial results of one result of the tile.
  static Expr cell(const Reduction& reduction, const Expr& copy, const VarMap& names) {
    Expr at = cast(DataType::int_(32), copy);
    for (const Ref<For>& loop : reduction.tile) {
      Expr position = find_value_or(names, loop->loop_var, loop->loop_var) - loop->min;
      at = at * *const_int(loop->extent) + cast(DataType::int_(32), position);
    }
    return at;
  }

  // ---- around it

  static Stmt with_lanes(const Reduction& reduction, const Stmt& inner) {
    const Ref<Buffer>& lanes = reduction.lanes;
    int64_t vectors = reduction.results * reduction.copies, width = reduction.width;
    Ref<Var> each = var("lanes"), lane = var("lane");
    Expr at = vectors == 1 ? Expr(lane) : each * width + lane;
    Stmt start = loop(lane, i32(width), store(lanes, reduction.step.identity(), {at}), ForKind::kVectorized);
    if (vectors > 1) start = loop(each, i32(vectors), start, ForKind::kUnrolled);
    Stmt all = seq({start, inner, put_together(reduction)});
    Annotations marks;
    if (reduction.step.is_sum()) marks.set(kPartialSums, i32(width));
    return make<Allocate>(
        {lanes->data, lanes->dtype, lanes->shape, bool_imm(true), make<DeclBuffer>({lanes, all}), marks});
  }

  /// The results, each with its lanes.
  static Stmt put_together(const Reduction& reduction) {
    VarMap names;
    for (const Ref<For>& loop : reduction.tile) names[loop->loop_var] = make<Var>(*loop->loop_var);
    int width = static_cast<int>(reduction.width);
    std::vector<Expr> parts;
    for (int64_t copy = 0; copy < reduction.copies; ++copy) {
      Expr start = cell(reduction, i32(copy), names) * width;
      parts.push_back(load(reduction.lanes, {width == 1 ? start : ramp(start, i32(1), width)}));
    }
    while (parts.size() > 1) {
      std::vector<Expr> pairs;
      for (size_t i = 0; i + 1 < parts.size(); i += 2) {
        pairs.push_back(reduction.step.combine(parts[i], parts[i + 1]));
      }
      if (parts.size() % 2 == 1) pairs.push_back(parts.back());
      parts = std::move(pairs);
    }
    Bindings halves;
    Expr joined =
        join_lanes(parts[0], [&](const Expr& a, const Expr& b) { return reduction.step.combine(a, b); }, halves);
    const Ref<Buffer>& result = reduction.store->buffer;
    Expr index = substitute(reduction.store->indices[0], names);
    Stmt end = store(result, reduction.step.combine(load(result, {index}), joined), {index});
    end = with_bindings(halves, end);
    for (const Expr& guard : reduction.guards) end = make<IfThenElse>({substitute(guard, names), end, {}});
    for (const Ref<For>& loop : reversed(reduction.tile)) {
      For copy = *loop;
      copy.loop_var = names.at(loop->loop_var).cast<Var>();
      copy.kind = ForKind::kUnrolled;
      copy.annotations = {};
      copy.body = end;
      end = make(std::move(copy));
    }
    return end;
  }

  const Target& target_;
  std::unordered_set<NodeRef> private_;
  std::vector<Frame> path_;
};

}  // namespace

PassResult vectorize_reductions(const Ref<PrimFunc>& func, PassContext& context) {
  if (!any_node(func->body, [](const Ref<For>& loop) { return loop->kind == ForKind::kVectorized; })) return func;
  return with_body(func, LanesOfReductions(*func, context).run(func->body));
}

}  // namespace tilewright::lower
