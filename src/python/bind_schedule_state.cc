// The statements of a scheduled program, and how the blocks of a scope depend on one another.

#include <map>

#include "analysis/block_flags.h"
#include "analysis/scope.h"
#include "ir/traverse.h"
#include "python/expired.h"
#include "python/schedule_objects.h"
#include "schedule/edit.h"
#include "support/ranges.h"

namespace tilewright::python {

using namespace schedule;

namespace {

/// A loop or a block of a schedule, followed through its changes.
struct PySRef {
  SchedulePtr owner;
  Handle target;
};
struct PyState {
  SchedulePtr owner;
};
struct PyScope {
  PySRef block;
};
enum class DepKind { RAW, WAW, WAR };
struct PyDependency {
  PySRef src, dst;
  DepKind kind;
};

bool is_same_state(const PySRef& self, const PySRef& other) {
  return self.owner == other.owner && self.target.func == other.target.func && same_row(self.target, other.target);
}

NodeRef node_at(const Tree& tree, int at) {
  return tree[at].is_block ? NodeRef(tree.block_ref(at)) : NodeRef(tree.stmt(at));
}

PySRef make_sref(const SchedulePtr& owner, uint32_t func, const Tree& tree, int at) {
  return {owner,
          tree[at].is_block ? Handle::block(func, tree.block_at(at)) : Handle::loop(func, tree.for_at(at).loop_var)};
}

/// The statement itself, not one that has taken its place.
std::optional<PySRef> find_sref(const SchedulePtr& owner, const NodeRef& stmt) {
  const State& state = owner->schedule.state();
  for (uint32_t func = 0; func < state.module()->functions.size(); ++func) {
    auto tree = state.tree(func);
    if (!tree.ok()) continue;
    int at = stmt.is<For>() ? (*tree)->loop(stmt.as<For>()->loop_var) : (*tree)->block(stmt.as<Block>()->id.value);
    if (at != Tree::kNone && node_at(**tree, at) == stmt) return make_sref(owner, func, **tree, at);
  }
  return std::nullopt;
}

void require_loop_or_block(const NodeRef& stmt) {
  if (stmt.defined() && (stmt.is<For>() || stmt.is<Block>())) return;
  fail(argument_error(
      "schedule/statement",
      "get_sref() takes a loop or a block, not a " + (stmt.defined() ? kind_name(stmt.kind()) : std::string("None")),
      "pass a LoopRV, a BlockRV, a For or a Block"));
}

std::optional<PySRef> parent_of(const PySRef& self) {
  Place place = unwrap(self.owner->schedule.state().find(self.target));
  const Tree& tree = *place.tree;
  int at = tree[place.at].parent;
  while (at != Tree::kNone && !tree[at].is_block && !tree[at].is_loop) at = tree[at].parent;
  if (at == Tree::kNone) return std::nullopt;
  return make_sref(self.owner, place.func, tree, at);
}

int64_t seq_index(const PySRef& self) {
  Place place = unwrap(self.owner->schedule.state().find(self.target));
  int parent = (*place.tree)[place.at].parent;
  if (parent == Tree::kNone || !place.tree->stmt(parent).is<SeqStmt>()) return -1;
  std::vector<int> siblings = place.tree->children(parent);
  return std::ranges::find(siblings, place.at) - siblings.begin();
}

PyScope scope_of(const PyState& self, const PySRef& block) {
  if (block.owner != self.owner || std::holds_alternative<Ref<Var>>(block.target.target)) {
    fail(argument_error("schedule/scope", "get_block_scope() takes a block of this schedule",
                        "get it by get_sref() of the same state"));
  }
  return {block};
}

analysis::BlockFlags flags_of(const PyState& self, const PySRef& block) {
  Place place = unwrap(self.owner->schedule.state().find(scope_of(self, block).block.target));
  return analysis::block_flags(*place.tree, place.at);
}

std::vector<PyDependency> dependencies(const PyScope& self, const PySRef& end, bool is_src) {
  const SchedulePtr& owner = self.block.owner;
  Place place = unwrap(owner->schedule.state().find(self.block.target));
  const analysis::Scope& scope = analysis::Scope::of(*place.tree, place.at);
  auto child = [&](int at) { return PySRef{owner, Handle::block(place.func, *scope.children()[at]->block)}; };
  std::vector<PyDependency> result;
  for (const analysis::Dependence& d : scope.dependences()) {
    PyDependency found{child(d.src), child(d.dst), static_cast<DepKind>(d.kind)};
    if (is_same_state(is_src ? found.src : found.dst, end)) result.push_back(std::move(found));
  }
  return result;
}

/// Returns the statement in which each new block has the identity of the block that it replaces, so that existing
/// references to the old block find the new one.
NodeRef with_identities(const NodeRef& target, const nb::dict& blocks) {
  std::map<const NodeBase*, Identity> identities;
  for (auto [old, replacement] : blocks) {
    NodeRef from, to;
    if (!nb::try_cast(old, from) || !nb::try_cast(replacement, to) || !from.is<Block>() || !to.is<Block>()) {
      fail(argument_error("schedule/replace", "block_sref_reuse holds something that is not a block",
                          "it says for blocks of the program which blocks replace them"));
    }
    identities[to.get()] = from.as<Block>()->id;
  }
  return rewrite(target, [&](const Ref<Block>& block, Rewriter& walk) -> Stmt {
    Ref<Block> inside = walk.descend(block);
    auto* found = find_value(identities, block.get());
    if (!found) return inside;
    return with_field(inside, &Block::id, *found);
  });
}

/// Returns the statement that stands for `target` where `place` is.
Stmt replacement_at(const Place& place, const NodeRef& target) {
  const bool is_block = (*place.tree)[place.at].is_block;
  if (is_block ? !target.is<Block>() : !target.is<For>() && !target.is<BlockRealize>()) {
    fail(argument_error("schedule/replace",
                        std::string(is_block ? "a block" : "a loop") + " cannot be replaced by a " +
                            (target.defined() ? kind_name(target.kind()) : "None"),
                        "blocks are replaced by blocks, loops by loops or a BlockRealize"));
  }
  if (!is_block) return Stmt(target);
  const BlockRealize* realize = place.tree->realize_at(place.at);
  if (!realize) return {};
  BlockRealize copy = *realize;
  copy.block = target.cast<Block>();
  return make(std::move(copy));
}

void replace(const PyState& self, const PySRef& src, NodeRef target, const std::optional<nb::dict>& reused) {
  if (src.owner != self.owner) {
    fail(argument_error("schedule/replace", "replace() takes a statement of this state",
                        "get it by get_sref() of the same state"));
  }
  State state = self.owner->schedule.state();
  const Place place = unwrap(state.find(src.target));
  if (reused && target.defined()) target = with_identities(target, *reused);
  const Stmt with = replacement_at(place, target);
  TreeEdit edit(*place.tree);
  if (with.defined()) edit.replace(place.at, with);
  state.commit({.func = place.func, .root = with.defined() ? edit.finish() : target.cast<Block>()});
  Schedule made = unwrap(Schedule::make(state.module()));
  made.seed(state.random());
  self.owner->original = made.module();
  self.owner->schedule = std::move(made);
}

void bind_sref(nb::module_& m) {
  nb::class_<PySRef>(m, "StmtSRef", "A loop or a block of a schedule, followed through its changes.")
      .def_prop_ro(
          "stmt",
          [](const PySRef& self) -> NodeRef {
            auto place = self.owner->schedule.state().find(self.target);
            return place.ok() ? node_at(*place->tree, place->at) : NodeRef();
          },
          "The For or the Block as it is now; None when it is gone.",
          nb::sig("def stmt(self) -> tilewright._core.For | tilewright._core.Block | None"))
      .def_prop_ro("parent", &parent_of, "The loop or block around it; None around the root.")
      .def_prop_ro("seq_index", &seq_index, "Its place in a sequence of statements; -1 where it stands alone.")
      .def("same_as", &is_same_state, "other"_a, "Whether it is the same statement of the same schedule.")
      .def(
          "__eq__",
          [](const PySRef& self, nb::handle other) {
            return nb::isinstance<PySRef>(other) && is_same_state(self, nb::cast<const PySRef&>(other));
          },
          nb::is_operator(), nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__hash__", [](const PySRef& self) {
        const auto* loop = std::get_if<Ref<Var>>(&self.target.target);
        return loop ? std::hash<NodeRef>()(*loop) : std::get<Handle::BlockId>(self.target.target).identity;
      });
}

void bind_scope(nb::module_& m) {
  nb::enum_<DepKind>(m, "DepKind", nb::is_arithmetic(), "How one block depends on another one before it.")
      .value("RAW", DepKind::RAW, "it reads what the other one writes")
      .value("WAW", DepKind::WAW, "it writes what the other one writes")
      .value("WAR", DepKind::WAR, "it writes what the other one reads");
  nb::class_<PyDependency>(m, "Dependency", "That one block has to run after another one.")
      .def_ro("src", &PyDependency::src, "The block that runs first.")
      .def_ro("dst", &PyDependency::dst, "The block that depends on it.")
      .def_ro("kind", &PyDependency::kind, "How.");
  nb::class_<PyScope>(m, "BlockScope", "The blocks directly inside of a block, and how they depend on one another.")
      .def(
          "get_deps_by_src", [](const PyScope& self, const PySRef& block) { return dependencies(self, block, true); },
          "block"_a, "What depends on a block, in program order.")
      .def(
          "get_deps_by_dst", [](const PyScope& self, const PySRef& block) { return dependencies(self, block, false); },
          "block"_a, "What a block depends on, in program order.");
}

}  // namespace

void bind_schedule_state(nb::module_& m, nb::class_<PySchedule>& cls) {
  bind_sref(m);
  bind_scope(m);
  nb::class_<analysis::BlockFlags>(m, "BlockFlags", "Facts of a block of a schedule; a primitive asks finer ones.")
      .def_ro("affine_binding", &analysis::BlockFlags::affine_binding,
              "The axes are a surjective, affine function of the loops around the block.")
      .def_ro("region_cover", &analysis::BlockFlags::region_cover,
              "What it reads of other blocks of its scope is written by then.")
      .def_ro("stage_pipeline", &analysis::BlockFlags::stage_pipeline,
              "All blocks directly inside are so covered, and none overwrites what an earlier one reads.");
  nb::class_<PyState>(m, "ScheduleState", "What a schedule knows of its program.")
      .def_prop_ro(
          "mod", [](const PyState& self) { return self.owner->schedule.module(); }, "The program as it is now.")
      .def(
          "get_sref",
          [](const PyState& self, const NodeRef& stmt) {
            require_loop_or_block(stmt);
            return find_sref(self.owner, stmt);
          },
          "stmt"_a, "The reference of a For or a Block; None when the program does not hold it.")
      .def("get_block_scope", &scope_of, "block_sref"_a, "The blocks directly inside of a block.")
      .def("replace", &replace, "src_sref"_a, "tgt_stmt"_a, "block_sref_reuse"_a = nb::none(),
           "Put another statement where a reference is: a block for a block, a loop or a BlockRealize for a loop.\n\n"
           "Nothing is proved, and a schedule begins anew: its trace is empty, and its handles are gone. References\n"
           "stay. Blocks of the program that are keys of `block_sref_reuse` are referred to as their values from now "
           "on.")
      .def("get_block_flags", &flags_of, "block_sref"_a, "What is known of a block as TVM's schedules state it.");
  cls.def_prop_ro("state", [](const SchedulePtr& self) { return PyState{self}; }, "Its statements by reference.");
  auto of_handle = [](const SchedulePtr& self, const auto& handle) {
    auto rv = own(*self, handle, "get_sref");
    place_of(*self, rv);
    return PySRef{self, self->schedule.state().handle(rv.index)};
  };
  const char* doc = "A reference that follows a loop or a block through the changes of the program.";
  cls.def(
      "get_sref", [=](const SchedulePtr& self, const PyLoop& rv) { return of_handle(self, rv); }, "rand_var_or_stmt"_a,
      doc);
  cls.def(
      "get_sref", [=](const SchedulePtr& self, const PyBlock& rv) { return of_handle(self, rv); },
      "rand_var_or_stmt"_a);
  cls.def(
      "get_sref",
      [](const SchedulePtr& self, const NodeRef& stmt) {
        require_loop_or_block(stmt);
        auto found = find_sref(self, stmt);
        if (!found) {
          fail(argument_error("schedule/statement", "the program does not hold this statement",
                              "pass a statement of its present mod: each step replaces what it changes"));
        }
        return *found;
      },
      "rand_var_or_stmt"_a);
  cls.def(
      "get", [](const SchedulePtr&, const PySRef& sref) -> nb::object { return nb::cast(sref).attr("stmt"); },
      "handle"_a, nb::sig("def get(self, handle: StmtSRef) -> tilewright._core.For | tilewright._core.Block | None"));
}

}  // namespace tilewright::python
