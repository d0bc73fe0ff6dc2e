// From the coordinates of an access to the position of the element.
//
// The position along an axis is found in one of three ways:
//   1. The coordinate is the loop variable of the same axis below the same parent: the position is that of the loop.
//   2. A dense axis: the position is begin + coordinate, and the element is stored if it is in range.
//   3. A sparse axis: the coordinate is searched for in the array of coordinates.
// A search runs before the outermost iteration, in a loop nest over the variables that it uses, and stores the
// positions to an array. Equal searches share one array. The conditions around an access guard its search as well.
// Where that is not possible, it runs just in front of the statement with the access: below attached axes and pairs of
// elements of one row, in loops whose extent is not known before the iteration, and for coordinates that it computes.
#include <algorithm>

#include "ir/build.h"
#include "ir/sparse.h"
#include "ir/structural.h"
#include "ir/traverse.h"
#include "sparse/lowering.h"
#include "support/ranges.h"

namespace tilewright::sparse {
namespace {

bool same(const Expr& a, const Expr& b) {
  return a.defined() == b.defined() && (!a.defined() || structural_equal(a, b));
}

/// Whether two positions are equal, apart from their types: axes of one chain may have coordinates of int32 and int64.
bool same_position(Expr a, Expr b) {
  for (Expr* e : {&a, &b}) {
    for (const Cast* cast = e->as<Cast>(); cast; cast = e->as<Cast>()) *e = Expr(cast->value);
  }
  return same(a, b);
}

/// Binary search in [low, high) for the first coordinate that is not less; linear search for an equal one if the axis
/// is not sorted.
Stmt search_loop(const Axis& axis, const Ref<Buffer>& low, const Ref<Buffer>& high, const Expr& coordinate) {
  const Expr index = zero(DataType::int_(32)), begin = load(low, {index}), end = load(high, {index});
  if (!axis.sorted) {
    Expr differs = ne(load(axis.indices, {begin}), coordinate);
    return make<While>({if_then_else(lt(begin, end), differs, bool_imm(false)), store(low, begin + 1, {index})});
  }
  Ref<Var> middle = var("middle", axis.idtype);
  Stmt step = make<IfThenElse>({lt(load(axis.indices, {middle}), coordinate), store(low, Expr(middle) + 1, {index}),
                                store(high, middle, {index})});
  return make<While>({lt(begin, end), make<LetStmt>({middle, begin + floordiv(end - begin, 2), step})});
}

/// The axes above one, and itself, innermost first.
std::vector<Ref<Axis>> chain_of(Ref<Axis> axis) {
  std::vector<Ref<Axis>> chain;
  for (; axis.defined(); axis = axis->parent) chain.push_back(axis);
  return chain;
}

/// Whether two axes stand below one axis, and neither below the other.
bool are_side_by_side(const Ref<Axis>& a, const Ref<Axis>& b) {
  const std::vector<Ref<Axis>> above_a = chain_of(a), above_b = chain_of(b);
  const bool is_chain = a != b && (is_contained(above_a, b) || is_contained(above_b, a));
  return !is_chain && above_a.back() == above_b.back();
}

std::vector<const Frame*> pointers_to(const std::vector<Frame>& frames) {
  std::vector<const Frame*> result;
  for (const Frame& frame : frames) result.push_back(&frame);
  return result;
}

}  // namespace

Expr both(const Expr& first, const Expr& then) {
  if (!first.defined()) return then;
  if (!then.defined()) return first;
  return if_then_else(first, then, bool_imm(false));
}

Lowering::Element Lowering::locate(const Ref<Buffer>& buffer, const std::vector<Expr>& coordinates,
                                   const NodeRef& where) {
  const std::vector<Ref<Axis>>& axes = buffer->axes;
  std::vector<Expr> positions, relatives, conditions;
  for (size_t i : indices_of(axes)) {
    const Axis& axis = *axes[i];
    Expr parent, present;
    if (axis.parent.defined()) {
      auto above = std::find(axes.begin(), axes.begin() + static_cast<std::ptrdiff_t>(i), axis.parent) - axes.begin();
      parent = positions[above];
      present = conditions[above];
    }
    const Frame* frame = coordinates[i].is<Var>() ? nest_.find(coordinates[i].cast<Var>()) : nullptr;
    if (frame && axis.parent.defined() && structure_of(frame->iter->axis) == structure_of(axes[i]) &&
        same_position(frame->parent, parent)) {
      positions.push_back(frame->position);
      relatives.push_back(frame->relative);
      conditions.push_back(present);
      continue;
    }
    const Expr coordinate = lower(coordinates[i]);
    if (!axis.parent.defined()) {
      positions.push_back(coordinate);
      relatives.push_back(coordinate);
      conditions.emplace_back();
      continue;
    }
    auto [begin, end] = positions_below(axis, parent);
    if (axis.is_sparse()) {
      // Unsorted coordinates may repeat: the variable of an iteration over the axis is the one at its own position.
      const bool is_iterated = frame && structure_of(frame->iter->axis) == structure_of(axes[i]);
      const Expr own = is_iterated && !axis.sorted ? cast(axis.idtype, frame->position) : Expr();
      Expr found = search({structure_of(axes[i]), parent, coordinate, own, {}, {}}, present, where);
      if (failure) return {};
      positions.push_back(found);
      relatives.push_back(found - begin);
      conditions.push_back(ge(found, 0));
    } else {
      positions.push_back(begin + coordinate);
      relatives.push_back(coordinate);
      const Expr inside = both(frame ? Expr() : ge(coordinate, 0), lt(coordinate, end - begin));
      conditions.push_back(both(present, inside));
    }
  }
  Element element;
  for (const StoredDimension& dimension : stored_dimensions(axes)) {
    const bool is_flat = axes[dimension.axis]->is_variable();
    element.indices.push_back(is_flat ? positions[dimension.axis] : relatives[dimension.axis]);
  }
  // The condition of an axis includes that of its parent, so conditions of the last axes suffice.
  for (size_t i = 0; i < axes.size(); ++i) {
    const bool has_child = any_of(axes, [&](const Ref<Axis>& a) { return a->parent == axes[i]; });
    if (!has_child) element.present = both(element.present, conditions[i]);
  }
  return element;
}

bool Lowering::is_same(const Search& a, const Search& b) {
  return a.axis == b.axis && same(a.parent, b.parent) && same(a.coordinate, b.coordinate) && same(a.own, b.own) &&
         same(a.guard, b.guard);
}

Expr Lowering::search(const Search& here, const Expr& present, const NodeRef& where) {
  const std::string what = "coordinates of axis '" + here.axis->name + "' are searched for ";
  if (!in_iteration_) {
    fail("sparse/search", what + "outside of all iterations", where, "access the buffer inside of T.sp.iteration");
    return {};
  }
  const VarMap names = lets_from(outermost_);
  const auto without_lets = [&](const Expr& e) { return e.defined() ? substitute(e, names) : e; };
  Search search = here;
  for (Expr* e : {&search.parent, &search.coordinate, &search.own}) *e = without_lets(*e);
  search.guard = without_lets(both(guard_of(search), present));
  for (const Search& known : searches_) {
    if (is_same(known, search)) return known.position;
  }
  std::string changed;
  const std::vector<size_t> needed = frames_for(search, changed);
  if (!can_run_ahead(needed, changed)) {
    const auto outermost = static_cast<std::ptrdiff_t>(outermost_);
    // The buffers of a search are those of the block: iterations of a loop in it that run at the same time share them.
    const bool is_shared = std::any_of(nest_.frames.begin() + outermost, nest_.frames.end(), [](const Frame& frame) {
      return frame.loop.defined() && frame.loop->kind != ForKind::kSerial && frame.loop->kind != ForKind::kUnrolled;
    });
    if (place_ && !is_shared) return search_in_place(here, present);
    fail("sparse/search",
         what + (place_ ? "in a loop that is not serial" : "in the condition of a loop") +
             ", and cannot be ahead of the iteration",
         where,
         place_ ? "make the loop serial: schedules make loops of the iteration parallel"
                : "set a buffer of one element in front of the loop and at the end of its body, and test it instead");
    return {};
  }
  add_search_nest(search, needed);
  searches_.push_back(search);
  return search.position;
}

/// Whether a search that depends on these frames can run ahead of the iteration. `changed`: a buffer that it reads and
/// the iteration writes.
bool Lowering::can_run_ahead(const std::vector<size_t>& needed, const std::string& changed) const {
  if (!changed.empty()) return false;
  std::vector<Ref<Axis>> variable;
  for (size_t i : needed) {
    const Frame& frame = nest_.frames[i];
    if (frame.loop.defined() && !is_known_at_entry(frame.loop->extent)) return false;
    if (!frame.is_axis()) continue;
    const Ref<Axis>& axis = frame.iter->axis;
    // Positions below an attached axis are not numbered, so there is no array of results.
    if (axis->attached.defined()) return false;
    if (!axis->is_variable()) continue;
    // The array would have an element for each pair of positions of two variable axes, also of different rows.
    if (any_of(variable, [&](const Ref<Axis>& other) { return are_side_by_side(other, axis); })) return false;
    variable.push_back(axis);
  }
  return true;
}

Expr Lowering::search_in_place(Search search, const Expr& present) {
  const VarMap names = lets_from(place_->first_frame);
  for (size_t i = place_->first_frame; i < nest_.frames.size(); ++i) {
    const Frame& frame = nest_.frames[i];
    if (frame.kind == Frame::Kind::kCondition) search.guard = both(search.guard, frame.condition);
  }
  search.guard = both(search.guard, present);
  for (Expr* e : {&search.parent, &search.coordinate, &search.own, &search.guard}) {
    if (e->defined()) *e = substitute(*e, names);
  }
  for (const Search& known : place_->known) {
    if (is_same(known, search)) return known.position;
  }
  const Axis& axis = *search.axis;
  const auto scalar = [&](const char* name) { return decl_buffer({i32(1)}, axis.idtype, name); };
  const SearchBuffers buffers{scalar("low"), scalar("high"), scalar("position")};
  place_->searches.push_back(search_body(search, {}, buffers, {i32(0)}));
  for (const Ref<Buffer>& each : {buffers.low, buffers.high, buffers.positions}) buffers_in_place_.emplace_back(each);
  // Searches that depend on this position cannot run ahead of the iteration either.
  written_.insert(buffers.positions->data.get());
  written_by_function_.insert(buffers.positions->data.get());
  search.position = load(buffers.positions, {i32(0)});
  place_->known.push_back(search);
  return search.position;
}

VarMap Lowering::lets_from(size_t first) const {
  VarMap names;
  for (size_t i = first; i < nest_.frames.size(); ++i) {
    const Frame& frame = nest_.frames[i];
    if (frame.kind == Frame::Kind::kLet) names[frame.let] = substitute(frame.value, names);
  }
  return names;
}

bool Lowering::is_known_at_entry(const Expr& extent) const {
  bool is_known = true;
  visit(
      substitute(extent, lets_from(0)),
      [&](const Ref<Var>& v) {
        is_known &= none_of(nest_.frames, [&](const Frame& frame) { return frame.counter() == v; });
      },
      [&](const Ref<BufferLoad>& load, Visitor& walk) {
        is_known &= !written_by_function_.contains(load->buffer->data.get()) && !is_contained(allocated_, load->buffer);
        for (const Expr& index : load->indices) walk(index);
      });
  return is_known;
}

/// The conditions in the outermost iteration on which the access that needs the search is reached, from the outside in:
/// those of statements and expressions around it, and that loops have iterations. Loops over axes whose number of
/// iterations needs more variables than the search do not count.
Expr Lowering::guard_of(const Search& search) const {
  std::string ignored;
  const std::vector<size_t> needed = frames_for(search, ignored);
  const std::vector<Frame>& frames = nest_.frames;
  Expr guard;
  for (size_t i = outermost_; i < frames.size(); ++i) {
    const Frame& frame = frames[i];
    if (frame.kind == Frame::Kind::kCondition) guard = both(guard, frame.condition);
    if (!frame.counter().defined() || is_contained(needed, i)) continue;
    const Expr& extent = frame.loop.defined() ? frame.loop->extent : frame.axis->dom->extent;
    if (const_int(extent).value_or(0) > 0) continue;
    if (frame.is_axis()) {
      size_t used = 0, known = 0;
      for (size_t k = outermost_; k < i; ++k) {
        const Ref<Var> counter = frames[k].counter();
        if (!counter.defined() || !uses_var(extent, counter)) continue;
        ++used;
        known += is_contained(needed, k);
      }
      if (is_published_ || used == 0 || known < used) continue;
    }
    guard = both(guard, gt(extent, 0));
  }
  return guard;
}

/// Returns the frames of the outermost iteration that the search depends on. Sets `changed` to the name of a buffer
/// that the search reads and the iteration writes.
std::vector<size_t> Lowering::frames_for(const Search& search, std::string& changed) const {
  std::unordered_set<const NodeBase*> used;
  auto look = [&](const Expr& e) {
    if (!e.defined()) return;
    visit(
        e, [&](const Ref<Var>& v) { used.insert(v.get()); },
        [&](const Ref<BufferLoad>& load, Visitor& walk) {
          if (written_.contains(load->buffer->data.get())) changed = load->buffer->name;
          for (const Expr& index : load->indices) walk(index);
        });
  };
  const std::vector<Frame>& frames = nest_.frames;
  look(positions_below(*search.axis, search.parent).second);  // uses all variables that the begin uses
  look(search.coordinate);
  look(search.own);
  look(search.guard);
  std::vector<bool> needed(frames.size(), false);
  for (size_t i = frames.size(); i-- > outermost_;) {
    const Frame& frame = frames[i];
    const Ref<Var> counter = frame.counter();
    const bool is_used = counter.defined() && used.contains(counter.get());
    if (!is_used && !needed[i]) continue;
    needed[i] = true;
    if (frame.in_group) needed[i - 1] = true;
    if (frame.loop.defined()) {
      look(frame.loop->min);
      look(frame.loop->extent);
      continue;
    }
    if (frame.axis.defined()) look(frame.axis->dom->extent);
    // The array of positions has one dimension for a chain of axes, so the frame of the parent is needed.
    for (size_t k = outermost_; k < i; ++k) {
      if (frames[k].is_axis() && frames[k].iter->axis == frame.iter->axis->parent) needed[k] = true;
    }
  }
  std::vector<size_t> result;
  for (size_t i = outermost_; i < frames.size(); ++i) {
    if (needed[i]) result.push_back(i);
  }
  return result;
}

/// Opens a loop nest before the outermost iteration, with copies of these frames of it.
Lowering::SearchNest Lowering::clone_frames(const std::vector<Frame>& sources) {
  std::vector<Ref<SpIterVar>> iters;
  for (const Frame& source : sources) {
    if (source.is_axis()) iters.push_back(source.iter);
  }
  const std::vector<Frame> enclosing = nest_.frames;
  nest_.frames.resize(outermost_);
  SearchNest nest;
  nest.levels = nest_.open(iters, true);
  const std::vector<Frame> axes(nest_.frames.begin() + static_cast<std::ptrdiff_t>(outermost_), nest_.frames.end());
  nest_.frames = enclosing;
  size_t next_axis = 0;
  for (const Frame& source : sources) {
    if (source.is_axis()) {
      const Frame& copy = nest.frames.emplace_back(axes[next_axis++]);
      if (source.axis.defined()) nest.values[source.axis->var] = copy.axis->var;
      continue;
    }
    For loop = *source.loop;
    const Ref<Var> counter = loop.loop_var, variable = var("v" + counter->name_hint, counter.dtype());
    nest.levels.back().axes.push_back(make<IterVar>({range_of(loop.extent), variable, IterType::kDataPar, ""}));
    nest.levels.back().loops.push_back(var(counter->name_hint, counter.dtype()));
    nest.values[counter] = substitute(loop.min, nest.values) + Expr(variable);
    loop.loop_var = variable;
    loop.min = zero(counter.dtype());
    nest.frames.push_back({.kind = Frame::Kind::kLoop, .loop = make(std::move(loop))});
  }
  return nest;
}

/// Emits a loop nest over the frames `needed` that stores the positions found to an array; sets `search.position`.
void Lowering::add_search_nest(Search& search, const std::vector<size_t>& needed) {
  std::vector<Frame> sources;
  for (size_t i : needed) sources.push_back(nest_.frames[i]);
  const SearchNest nest = clone_frames(sources);
  const Axis& axis = *search.axis;
  Placement use = locate_element(pointers_to(sources)), definition = locate_element(pointers_to(nest.frames));
  if (use.shape.empty()) use = definition = {{i32(1)}, {i32(0)}};
  const VarMap names = lets_from(0);
  for (Expr& extent : definition.shape) extent = substitute(extent, names);  // of the array, which the root allocates
  const std::string number = std::to_string(num_searches_++);
  const Ref<Buffer> positions =
      decl_buffer(definition.shape, axis.idtype, is_published_ ? "mid_" + number : axis.name + "_position");
  const Ref<Buffer> low = decl_buffer({i32(1)}, axis.idtype, "low"), high = decl_buffer({i32(1)}, axis.idtype, "high");
  Stmt body = search_body(search, nest.values, {low, high, positions}, definition.indices);
  const std::string name = "binary_search_block_" + number + "_";
  for (size_t i = nest.levels.size(); i-- > 0;) {
    std::vector<Def<Buffer>> allocated;
    if (i + 1 == nest.levels.size()) allocated = {low, high};
    body = make_block_nest(nest.levels[i], name + std::to_string(i), preprocess(), {}, body, std::move(allocated));
  }
  hoisted_.push_back(std::move(body));
  allocated_.emplace_back(positions);
  search.position = load(positions, use.indices);
}

/// Searches for one coordinate and stores its position, or -1. `values`: variables of the search in terms of the nest.
Stmt Lowering::search_body(const Search& search, const VarMap& values, const SearchBuffers& buffers,
                           const std::vector<Expr>& indices) {
  const auto in_nest = [&](const Expr& e) { return e.defined() ? substitute(e, values) : e; };
  const Axis& axis = *search.axis;
  auto [begin, end] = positions_below(axis, in_nest(search.parent));
  const Expr first = load(buffers.low, {i32(0)}), coordinate = in_nest(search.coordinate);
  const Expr absent = constant(axis.idtype, -1), own = in_nest(search.own);
  // A linear search finds the coordinate where it starts.
  const Expr start = own.defined() ? if_then_else(both(ge(own, begin), lt(own, end)), own, begin) : begin;
  const Expr is_equal = eq(load(axis.indices, {first}), coordinate);
  const Expr result = if_then_else(lt(first, end), if_then_else(is_equal, first, absent), absent);
  const Stmt body =
      seq({store(buffers.low, start, {i32(0)}), store(buffers.high, end, {i32(0)}),
           search_loop(axis, buffers.low, buffers.high, coordinate), store(buffers.positions, result, indices)});
  if (!search.guard.defined()) return body;
  return make<IfThenElse>({in_nest(search.guard), body, store(buffers.positions, absent, indices)});
}

}  // namespace tilewright::sparse
