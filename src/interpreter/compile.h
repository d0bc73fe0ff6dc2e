// From the tree to code.
#pragma once

#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "analysis/memory_names.h"
#include "interpreter/code.h"
#include "interpreter/interpreter.h"
#include "ir/buffer_domain.h"
#include "ir/fragments.h"
#include "ir/op.h"
#include "ir/processor_instructions.h"
#include "ir/reduction_step.h"
#include "ir/substitute.h"

namespace tilewright::interpreter {

class Compiler {
 public:
  Compiler(const Module& module, Program& program, const InterpretOptions& options)
      : module_(module), program_(program), options_(options) {}

  /// Compiles the function and those it calls: the number of the function, or the reason why it cannot run
  /// ("interpret/undefined", "interpret/unsupported").
  Result<int> compile(const std::string& name);

 private:
  struct View {
    int data = kNone, offset = kNone;
    std::vector<int> extents;
    std::vector<int> strides;  // empty: row-major
  };
  using Place = std::unordered_map<const NodeBase*, int>;

  // functions (compile.cc)
  int declare_function(const std::string& name);
  void function(const Ref<PrimFunc>& func);
  void parameters(const PrimFunc& func);

  // emitting
  size_t emit(Insn insn) {
    code_->push_back(insn);
    return code_->size() - 1;
  }
  size_t emit(Op op, int dst = kNone, int a = kNone, int b = kNone, int c = kNone) {
    return emit(Insn{.op = op, .dst = dst, .a = a, .b = b, .c = c});
  }
  /// An instruction on values of the type.
  size_t emit(Op op, DataType type, int dst, int a = kNone, int b = kNone, int c = kNone, int extra = 0);
  /// The slot of the result.
  int computed(Op op, int a, int b) {
    int dst = take(1);
    emit(op, dst, a, b);
    return dst;
  }
  /// Whether begin <= value < end.
  int is_within(int value, int begin, int end) {
    return computed(Op::kAnd, computed(Op::kLeInt, begin, value), computed(Op::kLtInt, value, end));
  }
  /// Fails with the message unless the condition holds.
  void require(int condition, int failure) { emit({.op = Op::kAssert, .a = condition, .extra = failure}); }
  void require_equal(int a, int b, int failure) { emit({.op = Op::kCheckEqual, .a = a, .b = b, .extra = failure}); }
  /// Fails at the site of a declaration unless the condition, which is about the value at a position, holds.
  void require_declared(int condition, int position, int value, int declared) {
    emit({.op = Op::kAssume, .a = condition, .b = position, .c = value, .extra = declared});
  }
  int here() const { return static_cast<int>(code_->size()); }
  /// The instruction `jump`, a jump or a fork, continues at the next instruction.
  void jump_here(size_t jump) {
    Insn& insn = (*code_)[jump];
    const bool to_c = insn.op == Op::kJumpIfDiffer || insn.op == Op::kFork;
    (to_c ? insn.c : insn.a) = here();
  }
  int take(int lanes) {
    int slot = top_;
    top_ += lanes;
    function_->frame_size = std::max(function_->frame_size, top_);
    return slot;
  }
  int lanes_of(DataType type) const { return type.lanes * (type.scalable ? options_.vscale : 1); }
  /// Appends the item: its number.
  template <class T>
  static int append(std::vector<T>& list, std::type_identity_t<T> item) {
    list.push_back(std::move(item));
    return static_cast<int>(list.size()) - 1;
  }
  int constant(int64_t value);
  int constant(int value) { return constant(int64_t{value}); }
  int constant(double value);
  int constant(Slot value);
  int message(std::string code, std::string text, const NodeRef& node, std::string hint = {});
  int site(const NodeRef& node, const Ref<Buffer>& buffer = {}, std::string what = {});
  void fail(std::string code, std::string message, const NodeRef& node, std::string hint = {});
  /// Code that fails when it is reached.
  int unsupported(const std::string& what, const NodeRef& node);
  /// A call whose operands have no meaning (ir/call_operands.h).
  int malformed(std::string what, const NodeRef& node, const char* code = "interpret/operands");
  void define(const NodeRef& node, int slot) { slots_[node.get()] = slot; }
  int slot_of(const Ref<Var>& var, const NodeRef& user);

  // expressions (compile_expr.cc): the slot of the value, which must not be written to
  int expr(const Expr& e);
  /// An index, or the start or extent of a loop (`what`): data in it must not leave its type, since kernels
  /// compute it in 64 bits. Sizes are asked about when the function is called.
  int index(const Expr& e, const char* what, const NodeRef& node);
  int binary(Kind kind, const Expr& a, const Expr& b, DataType result);
  int logic(const Expr& e, bool is_and, const Expr& a, const Expr& b);
  int cast(const Cast& cast);
  int load(const Expr& e);
  int shuffle(const Shuffle& shuffle);
  int call(const Expr& e);
  int fragment_step(const Expr& e);
  int async_step(const Expr& e);
  // warp_steps.cc
  int warp_step(const Expr& e);
  int lane_exchange(const Expr& e);
  void emit_warp(WarpSite site, int results, int given);
  Expr lane() const;
  void load_registers(const Registers& registers, int dst);
  void store_registers(const Registers& registers, int values, const Expr& e);
  int call_function(const Expr& e, const std::string& name);
  int if_then_else(const Call& call, DataType type);
  int math(Intrinsic intrinsic, const Call& call, DataType type);
  int lane_mask(const Expr& base, const Expr& limit, int lanes);
  int vector_part(const Call& call, DataType type, Intrinsic intrinsic);
  int dot_product(const Call& call, DataType type, const ProcessorInstruction& instruction);
  /// Adds products of elements to sums, `group` of them to each.
  int sums_of_products(DataType type, int a, int b, int group, const Expr& sums);
  int print(const Call& call);
  void begin_step(const BufferStore& store);
  /// The access is part of the step.
  void note_step(int access) {
    Site& site = program_.sites[program_.accesses[access].site];
    site.operation = step_->operation();
    site.is_atomic = is_atomic_;
  }
  int atomic(const Expr& e);
  int access(const Ref<Buffer>& buffer, const std::vector<Expr>& indices, const Expr& predicate, const NodeRef& node);
  View view_of(const Ref<Buffer>& buffer, const NodeRef& user);
  View declare(const Ref<Buffer>& buffer, int data);
  /// Row-major strides of a view, computed where they are not given.
  std::vector<int> strides_of(const View& view);
  int product(const std::vector<int>& factors);
  int arithmetic(Op op, int a, int b);

  // statements (compile_stmt.cc)
  void stmt(const Stmt& s);
  void for_loop(const Ref<For>& loop);
  void while_loop(const While& loop);
  /// A loop over [start, start + extent); loop_site: of a parallel one, else kNone.
  void iterate(const Ref<Var>& var, int start, int extent, int loop_site, const Stmt& body);
  void threads(const NodeRef& node, const Ref<Var>& var, const std::string& tag, const Expr& min, const Expr& extent,
               const Stmt& body);
  bool has_collective(const Stmt& body) const;
  void sequence(const Ref<SeqStmt>& sequence);
  /// The threads of a team come here together, and wait where the order of statements matters.
  bool is_ordered() const { return has_implicit_barriers_ && team_ > 0 && together_; }
  void wait(const NodeRef& node);
  /// All threads of the team find the same value.
  bool is_uniform(const Expr& e) const;
  /// Code that `work` emits is executed if the conditions hold, or as often as they say.
  template <class F>
  void under(std::initializer_list<Expr> conditions, F&& work) {
    bool outer = together_;
    for (const Expr& condition : conditions) together_ = together_ && is_uniform(condition);
    work();
    together_ = outer;
  }
  /// The variable's value follows from these.
  void define_value(const Ref<Var>& var, std::initializer_list<Expr> values) {
    for (const Expr& value : values) {
      if (!is_uniform(value)) varying_.insert(var.get());
    }
    if (std::set<int> threads = threads_in(values); !threads.empty()) threads_of_[var.get()] = std::move(threads);
  }
  /// Whether the value comes from memory or from a scalar that the caller passes.
  bool is_data(const Expr& e) const {
    const Effect effect = effect_of(e);
    if (effect != Effect::kPure) return effect == Effect::kReadState;
    return uses_any_var(e, [&](const Ref<Var>& v) { return data_.contains(v.get()); });
  }
  void note_data(const Ref<Var>& var, const Expr& value) {
    if (is_data(value)) data_.insert(var.get());
  }
  /// The loops over threads, by number, that decide the values.
  std::set<int> threads_in(const std::vector<Expr>& values) const;
  template <class F>
  void scoped(F&& work) {
    int top = top_;
    work();
    top_ = top;
  }
  /// `node` has the slot while `work` is compiled.
  template <class F>
  void with_definition(const NodeRef& node, int slot, F&& work) {
    auto [it, fresh] = slots_.try_emplace(node.get(), slot);
    int outer = std::exchange(it->second, slot);
    work();
    if (fresh) {
      slots_.erase(node.get());
    } else {
      slots_[node.get()] = outer;
    }
  }
  void block(const BlockRealize& realize, const NodeRef& node);
  /// Checks that the declaration of a block about a buffer holds (compile_domain.cc).
  void declare_domain(const BufferDomain& domain, const NodeRef& node);
  void check_domain(const BufferDomain& domain, const NodeRef& node);
  void check_order(const BufferDomain& domain, const NodeRef& node);
  void check_longest(const BufferDomain& domain, const NodeRef& node);
  void check_distinct(const BufferDomain& domain, const NodeRef& node);
  void check_disjoint(const DisjointBuffers& group, const NodeRef& node);
  void check_absent(const Ref<Buffer>& one, const Ref<Buffer>& other, int declared, const NodeRef& node);
  Ref<Buffer> array_of(const Ref<Buffer>& buffer);
  /// A loop over the positions from `begin` to before `end`.
  template <class F>
  void each_position(int begin, int end, F&& work);
  void axes(const BlockRealize& realize, const NodeRef& node);
  void match_buffer(const MatchBufferRegion& match, const NodeRef& node);
  void init(const Block& block);
  int allocate(const Ref<Buffer>& buffer);
  int allocate(const Allocate& allocation);
  int allocate(const NodeRef& node, const std::string& name, DataType type, const std::vector<Expr>& extents,
               const std::string& scope);
  void release(int pointer, int site);
  void store(const BufferStore& store, const std::vector<Expr>& indices, int value, const NodeRef& node);
  void attribute(const AttrStmt& attr, const NodeRef& node);
  void assertion(const AssertStmt& assertion);

  // sparse programs (compile_sparse.cc)
  struct Position {
    Ref<Axis> axis;
    Expr position;  ///< through all of the axis
    Expr coordinate;
  };
  /// Structure read at an index that is known.
  Expr element_of(const Ref<Buffer>& structure, Expr index);
  /// Where the positions of the axis below one of its parent's begin and end.
  std::pair<Expr, Expr> positions_below(const Axis& axis, const Expr& parent);
  /// Checks what the axes of the function declare of their structure, wherever it is given.
  void require_structure(const PrimFunc& func);
  /// One loop over the positions of an axis below one of its parent's. What the axis declares is checked there, unless
  /// that has been done.
  void each_coordinate(const Ref<Axis>& of, const Expr& parent, const NodeRef& node,
                       const std::function<void(const Expr& position, int coordinate)>& work);
  void sparse_iteration(const SparseIteration& iteration, const NodeRef& node);
  void iterate_axes(const std::vector<Ref<SpIterVar>>& iters, size_t next, const Stmt& body, const NodeRef& node);
  /// Fails with the message where a coordinate is outside of [0, length).
  void require_inside(int coordinate, const Expr& length, int outside);
  void require_all_positions(const Axis& axis, const NodeRef& node);
  void prefer_iterated(const Ref<Axis>& axis, const Expr& coordinate, int begin, int end, int at);
  /// Emits the search for the element at these coordinates: its indices in the array, and the jumps, still without a
  /// target, that are taken where the buffer does not hold it.
  std::vector<Expr> locate(const Ref<Buffer>& buffer, const std::vector<Expr>& coordinates, const NodeRef& node,
                           std::vector<size_t>& absent);
  int sparse_load(const BufferLoad& load, const NodeRef& node);
  void sparse_store(const BufferStore& store, int value, const NodeRef& node);
  /// A variable for the value, for expressions that the compiler makes.
  Expr named(int slot, DataType type);
  std::vector<NodeRef> kept_;                  // variables that slots are known by
  std::vector<BufferDomain> declared_;         // by blocks around
  std::vector<Position> positions_;            // positions of the variables of sparse iterations around
  std::unordered_set<NodeRef> has_structure_;  // axes whose structure is checked where the function begins

  const Module& module_;
  Program& program_;
  const InterpretOptions& options_;
  Function* function_ = nullptr;
  std::vector<Insn>* code_ = nullptr;
  int top_ = 0;
  std::unordered_map<int64_t, int> constant_slots_;
  Place slots_;
  std::unordered_map<const NodeBase*, View> views_;
  Ref<Block> block_;
  bool in_init_ = false;
  int lanes_ = kNone;                  // lanes of Site
  std::optional<ReductionStep> step_;  // the store being compiled
  bool is_atomic_ = false;             // the step, in an atomic block
  /// Domain of each loop variable, where it is known to hold.
  std::unordered_map<const NodeBase*, std::pair<Expr, Expr>> domains_;
  // The enclosing thread bindings: their axes, whether all threads reach this statement together, the variables that
  // differ between threads, and the number of barriers so far.
  struct Bound {
    std::string tag;
    Ref<Var> var;
    int start, count;
  };
  std::vector<Bound> bound_;
  std::optional<Fragments> fragments_;  ///< fragments of the function
  bool in_background_ = false;          ///< stores arrive when their group is waited for
  /// Whether a thread is the one that stores for its warp; null where there is but one thread along x.
  Expr stores_of_warp() const;
  int team_ = 0;  // loops over threads
  bool together_ = true;
  bool has_implicit_barriers_ = false;  // the function
  analysis::MemoryNames shown_;         // its views
  std::unordered_set<const NodeBase*> varying_;
  std::unordered_set<const NodeBase*> data_;  // variables that hold values of memory or scalars of the caller
  std::unordered_map<const NodeBase*, std::set<int>> threads_of_;  // variables whose values depend on threads
  int waits_ = 0;
  std::vector<std::string> pending_;
  std::optional<Diagnostic> failure_;
};

template <class F>
void Compiler::each_position(int begin, int end, F&& work) {
  int position = take(1);
  emit(Op::kMove, position, begin);
  size_t skip = emit(Op::kJumpIfZero, computed(Op::kLtInt, position, end));
  int top = here();
  work(position);
  emit(Op::kLoop, position, end, top);
  jump_here(skip);
}

}  // namespace tilewright::interpreter
