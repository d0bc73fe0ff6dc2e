#include "schedule/state.h"

#include <algorithm>
#include <numeric>
#include <unordered_set>

#include "ir/build.h"
#include "ir/substitute.h"
#include "ir/traverse.h"

namespace tilewright::schedule {
namespace {

/// Loops and blocks of a module met so far.
struct Known {
  std::unordered_set<NodeRef> loops;
  std::unordered_set<uint64_t> blocks;
};

bool has_repetition(const Ref<Module>& module) {
  Known known;
  return any_node(
      module, [&](const Ref<For>& loop) { return !known.loops.insert(loop->loop_var).second; },
      [&](const Ref<Block>& block) { return !known.blocks.insert(block->id.value).second; });
}

/// A statement that stands in two places would give two loops one handle: the second occurrence becomes a copy.
Ref<Module> make_distinct(const Ref<Module>& module) {
  if (!has_repetition(module)) return module;
  Known known;
  return rewrite(
      module,
      [&](const Ref<For>& loop, Rewriter& walk) -> Stmt {
        if (known.loops.insert(loop->loop_var).second) return walk.descend(loop);
        return walk(renew_defs(loop));
      },
      [&](const Ref<BlockRealize>& realize, Rewriter& walk) -> Stmt {
        if (known.blocks.insert(realize->block->id.value).second) return walk.descend(realize);
        return walk(renew_defs(realize));
      });
}

/// The name of its definition; null where it has none.
const std::string* symbol_of(const Func& func) {
  const PrimFunc* prim = func.as<PrimFunc>();
  const NodeRef symbol = prim ? prim->attrs.get("global_symbol") : NodeRef();
  const StringImm* name = symbol.as<StringImm>();
  return name && !name->value.empty() ? &name->value : nullptr;
}

// The memory of nodes may be gone before objects with static storage are destroyed: these never are.
const Ref<Var>& mark_for_inline() {
  static const auto* mark = new Ref<Var>(var("inline"));
  return *mark;
}
const Ref<Var>& mark_for_root() {
  static const auto* mark = new Ref<Var>(var("root"));
  return *mark;
}

}  // namespace

Handle Handle::inline_mark(uint32_t func) { return loop(func, mark_for_inline()); }
Handle Handle::root_mark(uint32_t func) { return loop(func, mark_for_root()); }
bool Handle::is_inline_mark() const {
  const Ref<Var>* loop_var = std::get_if<Ref<Var>>(&target);
  return loop_var && *loop_var == mark_for_inline();
}
bool Handle::is_root_mark() const {
  const Ref<Var>* loop_var = std::get_if<Ref<Var>>(&target);
  return loop_var && *loop_var == mark_for_root();
}

Result<State> State::make(const Ref<Module>& module, Random random) {
  if (module->functions.empty()) {
    return schedule_error("schedule/module", "the module has no function to schedule",
                          "pass a function made with @T.prim_func, or a module that holds one");
  }
  State state(make_distinct(module), random);
  const auto& functions = state.module_->functions;
  std::vector<uint32_t> places(functions.size());
  std::iota(places.begin(), places.end(), 0);
  state.places_ = std::make_shared<const std::vector<uint32_t>>(std::move(places));
  if (functions.size() == 1) state.working_ = 0;
  for (uint32_t i = 0; i < functions.size(); ++i) {
    if (functions[i].first == "main") state.working_ = i;
  }
  return state;
}

std::optional<uint32_t> State::named(std::string_view name) const {
  for (uint32_t i = 0; i < places_->size(); ++i) {
    if (function_name(i) == name) return i;
  }
  std::optional<uint32_t> found;
  for (uint32_t i = 0; i < places_->size(); ++i) {
    const std::string* symbol = symbol_of(function_at(i));
    if (!symbol || *symbol != name) continue;
    if (found) return std::nullopt;
    found = i;
  }
  return found;
}

const std::string& State::shown_name(uint32_t func) const {
  const std::string* symbol = symbol_of(function_at(func));
  return symbol && named(*symbol) == func ? *symbol : function_name(func);
}

Result<uint32_t> State::function(std::string_view name) const {
  if (const std::optional<uint32_t> found = named(name)) return *found;
  std::string names;
  for (uint32_t place = 0; place < places_->size(); ++place) {
    const auto number = std::find(places_->begin(), places_->end(), place) - places_->begin();
    names += (names.empty() ? "" : ", ") + shown_name(static_cast<uint32_t>(number));
  }
  return schedule_error("schedule/function", "the module has no function '" + std::string(name) + "'",
                        "its functions are: " + names);
}

Status State::work_on(std::string_view name) {
  TW_TRY(func, function(name));
  working_ = func;
  return Ok{};
}

Result<const Tree*> State::tree(uint32_t func) const {
  const PrimFunc* prim = function_at(func).as<PrimFunc>();
  const BlockRealize* realize = prim ? prim->body.as<BlockRealize>() : nullptr;
  if (prim && !prim->axes.empty()) {
    return schedule_error("schedule/sparse", "function '" + shown_name(func) + "' iterates over sparse axes",
                          "make blocks and loops of its iterations first: sch.lower_sparse_iter()");
  }
  if (!realize || !realize->block->iter_vars.empty()) {
    return schedule_error("schedule/no-root",
                          "function '" + shown_name(func) + "' cannot be scheduled: its body is not a root block",
                          "schedule a function before it is lowered");
  }
  return &Tree::of(realize->block);
}

Result<Place> State::find(const Handle& row) const {
  const Ref<Var>* loop_var = std::get_if<Ref<Var>>(&row.target);
  auto found = tree(row.func);
  if (found.ok()) {
    const Tree& tree = **found;
    int at = loop_var ? tree.loop(*loop_var) : tree.block(std::get<Handle::BlockId>(row.target).identity);
    if (at != Tree::kNone) return Place{row.func, &tree, at};
  } else if (found.error().code == "schedule/sparse") {
    return std::move(found.error());
  }
  if (row.is_inline_mark() || row.is_root_mark()) {
    return schedule_error("schedule/mark",
                          std::string("this is not a loop but the mark for ") +
                              (row.is_inline_mark() ? "inlining a block" : "leaving a block where it is"),
                          "pass what sample_compute_location() gives to compute_at or reverse_compute_at only");
  }
  if (loop_var) {
    return schedule_error(
        "schedule/expired", "loop '" + (*loop_var)->name_hint + "' is no longer in the program",
        "a step since has replaced it (split, fuse, compute_at, ...); use the handles which that step "
        "gave, or get_loops again");
  }
  return schedule_error("schedule/expired",
                        "block '" + std::get<Handle::BlockId>(row.target).name + "' is no longer in the program",
                        "a step since has removed it (compute_inline, ...)");
}

Result<Place> State::find(LoopRV loop) const { return find(handle(loop.index)); }
Result<Place> State::find(BlockRV block) const { return find(handle(block.index)); }
Result<Place> State::find(const BlockOrLoop& either) const {
  return std::visit([&](auto rv) { return find(handle(rv.index)); }, either);
}

void State::put_functions(std::vector<std::pair<std::string, Func>> functions) {
  Module module = *module_;
  std::vector<std::string> names;  // by number
  for (uint32_t i = 0; i < places_->size(); ++i) names.push_back(function_name(i));
  for (auto& [name, func] : functions) {
    auto known = std::ranges::find(names, name);
    if (known != names.end()) {
      module.functions[(*places_)[known - names.begin()]].second = std::move(func);
    } else {
      names.push_back(name);
      module.functions.emplace_back(name, std::move(func));
    }
  }
  module_ = tilewright::make(std::move(module), module_.span());
  if (names.size() == places_->size()) return;
  std::vector<uint32_t> places(names.size());
  for (uint32_t at = 0; at < names.size(); ++at) {
    places[std::ranges::find(names, module_->functions[at].first) - names.begin()] = at;
  }
  places_ = std::make_shared<const std::vector<uint32_t>>(std::move(places));
}

std::vector<uint32_t> State::commit(Plan plan) {
  if (!plan.functions.empty()) put_functions(std::move(plan.functions));
  if (plan.root.defined()) {
    Module module = *module_;
    Func& func = module.functions[(*places_)[plan.func]].second;
    PrimFunc prim = *func.as<PrimFunc>();
    BlockRealize realize = *prim.body.as<BlockRealize>();
    realize.block = std::move(plan.root);
    prim.body = tilewright::make(std::move(realize), prim.body.span());
    func = tilewright::make(std::move(prim), func.span());
    module_ = tilewright::make(std::move(module), module_.span());
  }
  if (plan.random) random_ = *plan.random;
  std::vector<uint32_t> numbers;
  numbers.reserve(plan.outputs.size());
  for (std::optional<Handle>& output : plan.outputs) {
    numbers.push_back(output ? static_cast<uint32_t>(handles_.size()) : LoopRV::kNone);
    if (output) handles_.push_back(std::move(*output));
  }
  return numbers;
}

}  // namespace tilewright::schedule
