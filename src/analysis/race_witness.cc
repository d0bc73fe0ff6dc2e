#include "analysis/race_witness.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "analysis/accesses.h"
#include "analysis/block_facts.h"
#include "analysis/changes.h"
#include "analysis/cover.h"
#include "analysis/independence.h"
#include "analysis/sizes.h"
#include "analysis/threads.h"
#include "analysis/witness.h"
#include "ir/build.h"
#include "ir/reduction_step.h"
#include "ir/structural.h"
#include "ir/substitute.h"
#include "ir/traverse.h"
#include "support/ranges.h"
#include "target/memory_scope.h"

namespace tilewright::analysis {
namespace {

/// The axis of a loop that is bound to blocks or threads. Virtual threads run sequentially, so they cannot race.
std::optional<ThreadAxis> device_axis(const For& loop) {
  auto axis = thread_axis(loop);
  return axis && axis->level != ThreadAxis::Level::kVirtual ? axis : std::nullopt;
}

bool runs_together(const For& loop) {
  return loop.kind == ForKind::kParallel || loop.kind == ForKind::kVectorized || device_axis(loop);
}

const NodeBase* key(const For& loop) {
  const Ref<Var>& variable = loop.loop_var;
  return variable.get();
}

/// The parallel and vectorized loops of a function, with what is allocated inside of each.
class Loops {
 public:
  explicit Loops(const Ref<PrimFunc>& func) {
    visit(func->body, [&](const Ref<For>& loop) {
      if (runs_together(*loop)) collect(loop);
    });
    if (const BlockRealize* root = func->body.as<BlockRealize>(); root && !own_.empty()) tree_ = &Tree::of(root->block);
  }

  bool empty() const { return own_.empty(); }
  std::vector<Ref<For>> all() const { return order_; }
  /// Memory of a buffer that each iteration has for itself.
  bool owns(const For& loop, const NodeRef& data) const {
    auto* found = find_value(own_, key(loop));
    return found && found->contains(data);
  }
  /// Inside of these loops their extents are not 0, nor is a factor of these.
  void assume_running(const std::vector<const For*>& loops, arith::Analyzer& analyzer) const {
    if (!tree_) return;
    assume_sizes(analyzer, *tree_);
    for (const For* loop : loops) {
      if (int at = tree_->loop(loop->loop_var); at != Tree::kNone) assume_runs(analyzer, *tree_, {at});
    }
  }
  /// Blocks say enough to prove that the iterations are independent.
  bool proved(const Ref<For>& loop) const {
    if (!tree_) return false;
    int at = tree_->loop(loop->loop_var);
    return at != Tree::kNone && !why_dependent(*tree_, at, Execution::of(*loop));
  }

 private:
  void collect(const Ref<For>& loop) {
    order_.push_back(loop);
    std::unordered_set<NodeRef>& own = own_[key(*loop)];
    visit(
        loop->body, [&](const Ref<Allocate>& allocate) { own.insert(allocate->buffer_var); },
        [&](const Ref<Block>& block) {
          for (const Ref<Buffer>& buffer : block->alloc_buffers) own.insert(buffer->data);
        });
  }

  std::vector<Ref<For>> order_;
  std::unordered_map<const NodeBase*, std::unordered_set<NodeRef>> own_;
  const Tree* tree_ = nullptr;
};

/// Returns some values from 0 to extent - 1, the first of them those at which neighbors and tiles tend to conflict.
std::vector<int64_t> some_steps(int64_t extent, size_t most) {
  std::vector<int64_t> steps;
  auto add = [&](int64_t step) {
    bool is_new = step >= 0 && step < extent && !is_contained(steps, step);
    if (is_new && steps.size() < most) steps.push_back(step);
  };
  for (int64_t step : {int64_t{0}, int64_t{1}, extent - 1, int64_t{2}, extent - 2, int64_t{3}}) add(step);
  for (int64_t step = 4; step < extent; step *= 2) add(step);
  for (int64_t step = 5; step < extent && steps.size() < most; ++step) add(step);
  return steps;
}

using Element = std::vector<int64_t>;
/// True: no more are wanted.
using OnElement = std::function<bool(const Element&, int64_t iteration, const Point&)>;

/// Walks over some iterations in which an access surely happens, the loops around `loop` at their beginnings.
class WitnessWalk {
 public:
  WitnessWalk(const Access& access, const For& loop, const std::vector<Expr>& indices, const OnElement& found)
      : access_(access), loop_(loop), indices_(indices), found_(found) {
    size_t inside = 0;
    bool below = false;
    for (const Surrounding& s : access.around) {
      inside += below && s.kind == Surrounding::Kind::kLoop;
      below |= s.node.as<For>() == &loop;
    }
    while (inside > 0 && per_loop_ > 2 && power(per_loop_, inside) > kInside) --per_loop_;
  }

  void run() {
    with_stack_for(static_cast<uint32_t>(access_.around.size()), [&] { step(0, false); });
  }

 private:
  /// Iterations of the loop that are tried, and iterations below it for each of these.
  static constexpr size_t kIterations = 20, kInside = 24;

  static size_t power(size_t base, size_t exponent) {
    size_t result = 1;
    for (; exponent > 0 && result <= kInside; --exponent) result *= base;
    return result;
  }

  /// Returns true when this iteration of the loop was sampled enough.
  bool step(size_t at, bool below) {
    for (; at < access_.around.size(); ++at) {
      const Surrounding& s = access_.around[at];
      switch (s.kind) {
        case Surrounding::Kind::kLoop:
          return each(at, *s.node.as<For>(), below);
        case Surrounding::Kind::kLet:
        case Surrounding::Kind::kAxis:
          if (auto value = s.set.is_point() ? evaluate(s.set.min, point_) : std::nullopt) point_.set(s.var, *value);
          break;
        case Surrounding::Kind::kCondition:
        case Surrounding::Kind::kAssertion:
          if (evaluate(s.condition, point_).value_or(0) == 0) return false;
          break;
        case Surrounding::Kind::kWhile:
          return over_ = true;
        case Surrounding::Kind::kBlock:
        case Surrounding::Kind::kDeclaration:
          break;
      }
    }
    return arrive();
  }

  bool each(size_t at, const For& loop, bool below) {
    auto min = evaluate(loop.min, point_), extent = evaluate(loop.extent, point_);
    if (!min || !extent) return over_ = true;
    bool is_it = &loop == &loop_;
    size_t most = is_it ? kIterations : below ? per_loop_ : 1;
    for (int64_t value : some_steps(*extent, most)) {
      Point before = point_;
      point_.set(loop.loop_var, *min + value);
      if (is_it) iteration_ = *min + value, points_ = 0;
      bool enough = step(at + 1, below || is_it);
      point_ = std::move(before);
      if (over_ || (enough && !is_it)) return true;
    }
    return false;
  }

  bool arrive() {
    if (++points_ > kInside) return true;
    if (access_.in_init) {
      for (const Ref<IterVar>& axis : innermost_block(access_.around)->iter_vars) {
        if (axis->iter_type != IterType::kCommReduce) continue;
        auto value = evaluate(axis->var, point_), first = evaluate(axis->dom->min, point_);
        if (!value || value != first) return false;
      }
    }
    Element element;
    for (const Expr& index : indices_) {
      auto value = evaluate(index, point_);
      if (!value) return over_ = true;
      element.push_back(*value);
    }
    return over_ = found_(element, iteration_, point_);
  }

  const Access& access_;
  const For& loop_;
  const std::vector<Expr>& indices_;
  const OnElement& found_;
  Point point_;
  size_t per_loop_ = kInside;
  int64_t iteration_ = 0;
  size_t points_ = 0;
  bool over_ = false;
};

/// Elements of a buffer that is no view: the indices of each.
struct Elements {
  Ref<Buffer> buffer;
  std::vector<std::vector<Expr>> indices;
};

/// Between the lanes of a vector index; nothing where they are no constants apart.
std::optional<int64_t> step_of_lanes(const Expr& index) {
  const Ramp* ramp = index.as<Ramp>();
  auto stride = ramp ? const_int(ramp->stride) : std::nullopt;
  return stride && *stride != 0 ? std::optional(std::abs(*stride)) : std::nullopt;
}

/// Returns the elements of an access: one for each lane of a vector.
std::optional<Elements> elements_of(const Access& access) {
  constexpr int64_t kMostLanes = 64;
  const bool is_element = access.form == Access::Form::kElement || access.is_atomic;
  if (!is_element || access.mask().defined()) return std::nullopt;
  Ref<BufferRegion> region = access.region();
  const std::vector<Expr>* said = access.indices();
  Elements elements{region->buffer, {{}}};
  for (size_t d : indices_of(region->region)) {
    const Range& range = *region->region[d];
    auto extent = const_int(range.extent);
    if (!extent) return std::nullopt;
    int64_t step = 1;
    if (*extent != 1) {
      auto lanes = said && said->size() == region->region.size() ? step_of_lanes((*said)[d]) : std::nullopt;
      if (!lanes) return std::nullopt;
      step = *lanes;
    }
    std::vector<std::vector<Expr>> longer;
    for (int64_t at = 0; at < *extent; at += step) {
      for (std::vector<Expr> indices : elements.indices) {
        indices.push_back(range.min + at);
        longer.push_back(std::move(indices));
      }
    }
    if (static_cast<int64_t>(longer.size()) > kMostLanes) return std::nullopt;
    elements.indices = std::move(longer);
  }
  return elements;
}

/// The indices of an access in terms of loops.
std::vector<Expr> by_loops(const Access& access, std::vector<Expr> indices) {
  for (const Surrounding& s : reversed(access.around)) {
    bool bound = s.kind == Surrounding::Kind::kAxis || s.kind == Surrounding::Kind::kLet;
    if (!bound || !s.set.is_point()) continue;
    for (Expr& index : indices) index = substitute(index, VarMap{{s.var, s.set.min}});
  }
  return indices;
}

class Finder {
 public:
  Finder(const Ref<PrimFunc>& func, const Loops& loops, const std::string& name) : loops_(loops), name_(name) {
    visit(func->body, [&](const Ref<BufferStore>& store) {
      auto step = ReductionStep::of(*store);
      if (step) steps_[store.get()] = steps_[step->element().get()] = step->operation();
    });
  }

  void look(const Access& access) {
    if (race) return;
    auto elements = elements_of(access);
    if (!elements) return;
    for (const Surrounding& s : access.around) {
      const For* loop = s.node.as<For>();
      if (!loop || !runs_together(*loop) || loops_.owns(*loop, elements->buffer->data)) continue;
      Ref<For> ref = s.node.cast<For>();
      auto [proved, is_new] = proved_.try_emplace(key(*loop), false);
      if (is_new) proved->second = loops_.proved(ref);
      if (proved->second) continue;
      if (!may_meet(access, *loop, elements->buffer)) continue;
      for (const std::vector<Expr>& indices : elements->indices) {
        look_below(access, ref, elements->buffer, indices);
        if (race) return;
      }
    }
  }

  std::optional<RaceWitness> race;

 private:
  struct Touch {
    int64_t iteration;
    bool writes, is_atomic;
    int step;  ///< number of the operation of a reduction step, else 0
    NodeRef site;
    std::string where;
    Expr value;  ///< stored by the access, if the loop is bound to blocks or threads
  };
  using Touched = std::map<Element, std::vector<Touch>>;

  /// Whether an access can take part in a race of the loop. Threads of different blocks never synchronize. Threads of
  /// one block synchronize between statements (wait_between_blocks) and combine reductions, so only the stores of one
  /// statement can race.
  bool may_meet(const Access& access, const For& loop, const Ref<Buffer>& buffer) const {
    auto axis = device_axis(loop);
    if (!axis) return true;
    if (!memory_scope(buffer->scope()).is_shared_by(*axis) || runs_again(access, loop, *axis)) return false;
    if (!axis->in_team()) return true;
    const BufferStore* store = access.site.as<BufferStore>();
    const Block* block = innermost_block(access.around);
    bool reduces =
        access.in_init || (block && any_of(block->iter_vars, [](const auto& axis) { return is_reduction_axis(axis); }));
    return access.writes && store && !reduces;
  }

  /// The value stored at a point, with constants for all loop variables. Null if it reads memory private to an
  /// iteration, such as shared memory of a block: equal expressions may then have different values.
  Expr stored(const Access& access, const For& loop, const ThreadAxis& axis, const Point& point) const {
    const BufferStore* store = access.site.as<BufferStore>();
    if (!store) return {};
    const bool own = any_node(store->value, [&](const Ref<BufferLoad>& load) {
      return !axis.in_team() &&
             (loops_.owns(loop, load->buffer->data) || !memory_scope(load->buffer->scope()).is_shared_by(axis));
    });
    if (own) return {};
    VarMap values;
    for (const Surrounding& s : access.around) {
      auto value = s.kind == Surrounding::Kind::kLoop ? point.get(s.var) : std::nullopt;
      if (value) values.emplace(s.var, int_imm(s.var.dtype(), *value));
    }
    return arith::Analyzer().simplify(substitute(by_loops(access, {store->value})[0], values));
  }

  /// Whether another loop around the access is bound to the same axis, and thus runs on the same threads.
  static bool runs_again(const Access& access, const For& loop, const ThreadAxis& axis) {
    return any_of(access.around, [&](const Surrounding& s) {
      const For* other = s.node.as<For>();
      return other && other != &loop && thread_axis(*other) == axis;
    });
  }

  void look_below(const Access& access, const Ref<For>& loop, const Ref<Buffer>& buffer,
                  const std::vector<Expr>& indices) {
    // Lanes put the steps of a reduction together.
    int reduces = 0;
    if (loop->kind == ForKind::kVectorized) {
      if (access.in_init || (access.writes && is_same_for_all(access, *loop, indices))) return;
      reduces = find_value_or(steps_, access.site.get(), 0);
    }
    auto axis = device_axis(*loop);
    const Block* block = innermost_block(access.around);
    std::string where =
        block && !block->name_hint.empty() ? "block '" + block->name_hint + "'" : "function '" + name_ + "'";
    Touched& touched = touched_[{key(*loop), buffer.get()}];
    OnElement found = [&](const Element& element, int64_t iteration, const Point& point) {
      std::vector<Touch>& before = touched[element];
      Expr value = axis && access.writes ? stored(access, *loop, *axis, point) : Expr();
      size_t same = 0;
      for (const Touch& touch : before) {
        same += touch.writes == access.writes && touch.is_atomic == access.is_atomic;
        if (touch.iteration == iteration || !(touch.writes || access.writes)) continue;
        if (touch.is_atomic && access.is_atomic) continue;
        if (reduces && touch.step == reduces) continue;
        // Storing the same value twice is no race.
        if (value.defined() && touch.value.defined() && structural_equal(value, touch.value)) continue;
        if (axis && axis->in_team() && touch.site != access.site) continue;
        report(access, loop, buffer, element, iteration, where, touch);
        return true;
      }
      if (same < 2) before.push_back({iteration, access.writes, access.is_atomic, reduces, access.site, where, value});
      return false;
    };
    WitnessWalk(access, *loop, indices, found).run();
  }

  /// Whatever the lane; other elements in the loops around it.
  static bool is_same_for_all(const Access& access, const For& loop, const std::vector<Expr>& indices) {
    std::optional<Element> first;
    std::optional<int64_t> last;
    bool same = true;
    OnElement compare = [&](const Element& element, int64_t iteration, const Point&) {
      if (iteration == last) return false;  // the first point of each iteration
      last = iteration;
      if (!first) first = element;
      same = element == *first;
      return !same;
    };
    WitnessWalk(access, loop, indices, compare).run();
    return same;
  }

  void report(const Access& access, const Ref<For>& loop, const Ref<Buffer>& buffer, const Element& element,
              int64_t iteration, const std::string& where, const Touch& other) {
    std::string place = buffer->name + "[";
    for (size_t i : indices_of(element)) place += (i ? ", " : "") + std::to_string(element[i]);
    place += "]";
    const std::string& var = loop->loop_var->name_hint;
    std::string kind = loop->kind == ForKind::kParallel ? "a parallel loop" : "a vectorized loop";
    if (device_axis(*loop)) kind = "a loop bound to " + std::string(loop->thread_binding->thread_tag);
    race = RaceWitness{loop,
                       where + (access.writes ? " writes " : " reads ") + place + " in iteration " + var + " = " +
                           std::to_string(iteration) + " of " + kind + ", and " + other.where +
                           (other.writes ? " writes" : " reads") + " it in iteration " + var + " = " +
                           std::to_string(other.iteration) + "; nothing says which comes first",
                       access.site, other.site};
  }

  const Loops& loops_;
  const std::string& name_;
  std::unordered_map<const NodeBase*, bool> proved_;
  std::unordered_map<const NodeBase*, int> steps_;  ///< stores and their own loads
  std::map<std::pair<const NodeBase*, const NodeBase*>, Touched> touched_;
};

bool returns_early(const Ref<PrimFunc>& func) {
  return any_node(func->body, [&](const Ref<Call>& call) { return intrinsic_of(*call) == Intrinsic::k_ret; });
}

/// Checks that accesses below a loop to written buffers are at one element for each iteration, and at different ones.
class OwnElements {
 public:
  OwnElements(const Loops& loops, const Ref<For>& loop) : loops_(loops), loop_(loop) {}

  void look(const Access& access) {
    bool below = any_of(access.around, [&](const Surrounding& s) { return s.node.as<For>() == loop_.operator->(); });
    // Accesses through a view are reported separately.
    if (!below || !why.empty() || access.form == Access::Form::kView) return;
    Ref<Buffer> buffer = access.named.defined() ? access.region()->buffer : Ref<Buffer>();
    if (!buffer.defined()) {
      why = "what it does behind a pointer is not known";
      return;
    }
    if (loops_.owns(*loop_, buffer->data)) return;
    auto axis = device_axis(*loop_);
    if (axis && !(memory_scope(buffer->scope()).is_shared_by(*axis) && access.writes && is_chosen_by_data(access))) {
      return;
    }
    Used& used = used_[buffer->data.get()];
    used.name = buffer->name;
    used.writes |= access.writes;
    if (access.is_atomic) {  // atomic operations do not race with one another
      used.has_atomics = true;
      return;
    }
    used.has_others = true;
    auto elements = elements_of(access);
    bool is_one = elements && elements->indices.size() == 1;
    std::vector<Expr> indices = is_one ? by_loops(access, elements->indices[0]) : std::vector<Expr>();
    bool same = is_one && (used.indices.empty() || same_exprs(indices, used.indices));
    if (!same || !(is_own(access, indices) || is_own_by_axes(access, elements->indices[0]))) used.shared = true;
    used.indices = std::move(indices);
  }

  std::string conclude() {
    for (const auto& [data, used] : used_) {
      const bool meets = used.shared || (used.has_atomics && used.has_others);
      if (used.writes && meets && why.empty()) why = "iterations may meet in '" + used.name + "'";
    }
    return why;
  }

 private:
  struct Used {
    std::string name;
    bool writes = false, shared = false;
    bool has_atomics = false, has_others = false;
    std::vector<Expr> indices;
  };

  static bool is_chosen_by_data(const Access& access) {
    Ref<BufferRegion> region = access.region();
    std::vector<Expr> firsts;
    for (const Ref<Range>& range : region->region) firsts.push_back(range->min);
    firsts = by_loops(access, std::move(firsts));
    return any_of(firsts, reads_memory);
  }

  bool is_own(const Access& access, const std::vector<Expr>& indices) {
    arith::Analyzer analyzer;
    arith::IterDomains inputs;
    bool below = false, uses_loop = false;
    std::vector<const For*> around;
    for (const Surrounding& s : access.around) {
      const For* loop = s.node.as<For>();
      if (!loop) continue;
      around.push_back(loop);
      below |= loop == loop_.operator->();
      analyzer.bind(loop->loop_var, range(loop->min, loop->extent));
      bool used = any_of(indices, [&](const Expr& index) { return uses_var(index, loop->loop_var); });
      if (!below || !used) continue;
      uses_loop |= loop == loop_.operator->();
      inputs.emplace_back(loop->loop_var, range(loop->min, loop->extent));
    }
    loops_.assume_running(around, analyzer);
    arith::IterMapResult map;
    return uses_loop && is_one_to_one(indices, inputs, bool_imm(true), analyzer, &map);
  }

  /// Whether the axes of the block identify elements and iterations: then what a condition keeps within an axis (i * 16
  /// + j < 116) is one digit of an element.
  bool is_own_by_axes(const Access& access, const std::vector<Expr>& indices) {
    arith::Analyzer analyzer;
    std::vector<const For*> around;
    for (const Surrounding& s : access.around) {
      if (const For* loop = s.node.as<For>()) {
        around.push_back(loop);
        analyzer.bind(loop->loop_var, range(loop->min, loop->extent));
      }
      if (s.kind == Surrounding::Kind::kCondition) assume_all(by_loops(access, {s.condition})[0], analyzer);
    }
    loops_.assume_running(around, analyzer);
    arith::IterDomains axes;
    std::vector<Expr> values;
    for (const Surrounding& s : access.around) {
      const IterVar* axis = s.kind == Surrounding::Kind::kAxis ? s.node.as<IterVar>() : nullptr;
      bool used = axis && any_of(indices, [&](const Expr& index) { return uses_var(index, axis->var); });
      if (!used) continue;
      Expr value = by_loops(access, {axis->var})[0];
      if (!axis->dom.defined()) return false;
      Expr step = value - axis->dom->min;
      bool within = analyzer.can_prove_greater_equal(step, 0) && analyzer.can_prove(lt(step, axis->dom->extent));
      if (!within) return false;
      axes.emplace_back(axis->var, axis->dom);
      values.push_back(std::move(value));
    }
    arith::Analyzer of_axes;
    for (const auto& [axis, domain] : axes) of_axes.bind(axis, domain);
    arith::IterMapResult map;
    return !axes.empty() && is_one_to_one(indices, axes, bool_imm(true), of_axes, &map) && is_own(access, values);
  }

  const Loops& loops_;
  const Ref<For>& loop_;
  std::map<const NodeBase*, Used> used_;
  std::string why;
};

}  // namespace

std::optional<RaceWitness> find_race(const Ref<PrimFunc>& func, const std::string& name) {
  Loops loops(func);
  // Statements behind a return may not run.
  if (loops.empty() || returns_early(func)) return std::nullopt;
  Finder finder(func, loops, name);
  for_each_access(func->body, Nested::kEnter, [&](const Access& access) { finder.look(access); });
  return std::move(finder.race);
}

std::vector<UnprovedLoop> unproved_parallel_loops(const Ref<PrimFunc>& func) {
  Loops loops(func);
  std::vector<UnprovedLoop> unproved;
  std::unordered_set<NodeRef> reported;  // loops of devices
  for (const Ref<For>& loop : loops.all()) {
    bool on_device = device_axis(*loop).has_value();
    if (!(on_device || loop->kind == ForKind::kParallel) || reported.contains(loop)) continue;
    if (is_const_int(loop->extent, 1) || loops.proved(loop)) continue;
    OwnElements own(loops, loop);
    for_each_access(func->body, Nested::kEnter, [&](const Access& access) { own.look(access); });
    if (std::string why = own.conclude(); !why.empty()) {
      unproved.push_back({loop, std::move(why)});
      if (on_device) visit(loop->body, [&](const Ref<For>& inner) { reported.insert(inner); });
    }
  }
  return unproved;
}

}  // namespace tilewright::analysis
