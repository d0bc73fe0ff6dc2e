// State of a schedule: the program, the positions of handles, and the random number generator. Copying a state costs
// O(1); nothing that copies share is ever changed.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "analysis/tree.h"
#include "schedule/instruction.h"
#include "schedule/random.h"
#include "support/persistent_stack.h"
#include "support/result.h"

namespace tilewright::schedule {

using analysis::Tree;

/// A row of the table of handles. A loop is known by its variable, a block by its identity, an iteration over sparse
/// axes by one of its variables, so handles survive whatever happens around and below what they point at.
struct Handle {
  struct BlockId {
    uint64_t identity;
    std::string name;  ///< for messages, when the block is gone
    /// A variable of an iteration over sparse axes, which becomes blocks; null for a block.
    Ref<Var> variable = {};
  };
  uint32_t func = 0;  ///< number of the function, which it keeps whatever is added to the module
  std::variant<Ref<Var>, BlockId, int64_t> target;

  static Handle loop(uint32_t func, Ref<Var> loop_var) { return {func, std::move(loop_var)}; }
  static Handle block(uint32_t func, const Block& block) { return {func, BlockId{block.id.value, block.name_hint}}; }
  /// `iteration` has variables.
  static Handle iteration(uint32_t func, const SparseIteration& iteration) {
    return {func, BlockId{0, iteration.name_hint, iteration.iter_vars[0]->var}};
  }
  static Handle value(int64_t value) { return {0, value}; }
  /// Loops that no program has: what sample_compute_location() gives for "inline the block" and "leave it in place".
  static Handle inline_mark(uint32_t func);
  static Handle root_mark(uint32_t func);
  bool is_inline_mark() const;
  bool is_root_mark() const;
  /// The number of a sampled value.
  int64_t value_number() const { return std::get<int64_t>(target); }
};

/// A statement of a function, found by its handle. Borrows from the state.
struct Place {
  uint32_t func;
  const Tree* tree;
  int at;

  const For& loop() const { return tree->for_at(at); }
  const Block& block() const { return tree->block_at(at); }
  NodeRef node() const { return tree->stmt(at); }
};

/// The result of an instruction, ready to be applied without failure.
struct Plan {
  uint32_t func = 0;
  Ref<Block> root;  ///< the function's new root block; null: its body stays
  /// Functions by name: new ones, and replacements of functions with other parameters, buffers or attributes.
  std::vector<std::pair<std::string, Func>> functions{};
  std::vector<std::optional<Handle>> outputs{};  ///< empty where an output is None
  std::optional<Random> random{};                ///< the generator after sampling
  /// The instruction as it is to be recorded: with its decision, and names resolved. Empty: as it was given.
  std::optional<Instruction> recorded{};
  /// Claims of the user that are not proved, and that the meaning of the program depends on.
  std::string stated{};
};

class State {
 public:
  /// Every function with a root block can be scheduled. Loops and blocks that occur twice are made distinct first.
  /// ScheduleError "schedule/module" where there is no function at all.
  static Result<State> make(const Ref<Module>& module, Random random);

  const Ref<Module>& module() const { return module_; }
  const Random& random() const { return random_; }
  void set_random(Random random) { random_ = random; }
  size_t num_handles() const { return handles_.size(); }
  /// index < num_handles()
  const Handle& handle(uint32_t index) const { return handles_[index]; }

  /// ScheduleError "schedule/expired" when the program no longer holds it.
  Result<Place> find(LoopRV loop) const;
  Result<Place> find(BlockRV block) const;
  Result<Place> find(const BlockOrLoop& either) const;
  /// The location of a loop or a block, also if it is not a row of the table.
  Result<Place> find(const Handle& handle) const;
  int64_t value(ExprRV expr) const { return handle(expr.index).value_number(); }

  /// The function that get_block looks into by default: "main", or the only one.
  std::optional<uint32_t> working_function() const { return working_; }
  Status work_on(std::string_view name);
  /// Finds a function by its key in the module, otherwise by the name in its definition. ScheduleError
  /// "schedule/function".
  Result<uint32_t> function(std::string_view name) const;
  /// Returns its key in the module, which is its name in traces.
  const std::string& function_name(uint32_t func) const { return module_->functions[(*places_)[func]].first; }
  /// Returns the function's name for messages, as in its definition (a function without a module is "main" in the
  /// module). function() finds it by that name.
  const std::string& shown_name(uint32_t func) const;
  const Func& function_at(uint32_t func) const { return module_->functions[(*places_)[func]].second; }
  /// ScheduleError "schedule/no-root" for a function that has no blocks (already lowered, or of another dialect),
  /// "schedule/sparse" for one that still iterates over sparse axes.
  Result<const Tree*> tree(uint32_t func) const;

  /// The numbers of the new handles; LoopRV::kNone for outputs that are None.
  std::vector<uint32_t> commit(Plan plan);

 private:
  State(Ref<Module> module, Random random) : module_(std::move(module)), random_(random) {}
  std::optional<uint32_t> named(std::string_view name) const;
  void put_functions(std::vector<std::pair<std::string, Func>> functions);

  Ref<Module> module_;
  std::shared_ptr<const std::vector<uint32_t>> places_;  ///< in the module, which is sorted by name, by number
  PersistentStack<Handle> handles_;
  Random random_;
  std::optional<uint32_t> working_;
};

}  // namespace tilewright::schedule
