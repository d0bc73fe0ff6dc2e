// The printer. Text is appended to one string. Text that belongs to an earlier position, such as the declaration of a
// free variable, is recorded as an insertion and moved there at the end (printer_text.h).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "ir/infix.h"
#include "ir/stmt.h"
#include "script/printer.h"
#include "script/printer_names.h"
#include "script/printer_text.h"
#include "support/ranges.h"

namespace tilewright::script {

using enum Infix::Precedence;

class Printer {
 public:
  explicit Printer(const PrintOptions& options);
  /// Prints the root and finishes the text.
  std::string run(const NodeRef& root);

 private:
  // ---- text (printer.cc)
  void begin_line();
  void end_line() { out_ += '\n'; }
  void text(std::string_view s) { out_ += s; }
  void number(int64_t value);
  void string_literal(std::string_view value);
  /// "T." + name
  void tir(std::string_view name) {
    out_ += tir_;
    out_ += name;
  }
  /// Items separated by ", ".
  template <class Items, class F>
  void list(const Items& items, F&& item) {
    bool first = true;
    for (const auto& x : items) {
      if (!first) out_ += ", ";
      first = false;
      item(x);
    }
  }

  // ---- marks: ranges of the text to underline or annotate
  /// Records the range of text printed during its lifetime, if `node` is to be marked.
  class Marking {
   public:
    Marking(Printer& printer, const NodeRef& node) : printer_(printer) {
      if (printer.tracking_) printer.open_mark(node, *this);
    }
    ~Marking() {
      if (printer_.tracking_) printer_.close_mark(*this);
    }
    Marking(const Marking&) = delete;
    Marking& operator=(const Marking&) = delete;
    /// Drops this mark: the node prints in several ranges, each with its own mark.
    void forget() {
      if (!printer_.tracking_) return;
      for (size_t i : indices_of(progress_)) printer_.targets_[i].reached = progress_[i];
      requests_.clear();
    }
    /// Ends the range here, before the end of the node (a loop: after its header).
    void end_here() {
      if (printer_.tracking_) ended_ = printer_.out_.size();
    }

   private:
    friend class Printer;
    Printer& printer_;
    size_t begin_ = 0, ended_ = 0;
    std::vector<std::pair<bool, std::string>> requests_;  // underline, note
    std::vector<size_t> progress_;                        // progress in each path, to restore
  };
  struct Target {
    std::vector<const NodeBase*> chain;  // path from the root to the node; for an object: the object alone
    size_t reached = 0;                  // nodes of the chain that are being printed now
    bool underline;
    std::string note;
  };
  void add_targets(const NodeRef& root);
  void open_mark(const NodeRef& node, Marking& marking);
  void close_mark(Marking& marking);

  // ---- scopes and names
  struct Entry {
    std::string text;
    int frame = 0;
  };
  struct Undo {
    const NodeBase* node;
    std::optional<Entry> before;
    std::string name;
  };
  struct Frame {
    size_t body;  // position where declarations for this scope are inserted
    int indent;
    std::vector<Undo> undo;
  };
  void push_frame();
  void pop_frame();
  /// Sets the position for declarations of the innermost scope: before the text that is printed from here on.
  void mark_body() { frames_.back() = {out_.size(), indent_, std::move(frames_.back().undo)}; }
  void define(const NodeRef& node, std::string text, std::string name, int frame);
  const std::string& define_var(const Ref<Var>& var);
  /// A name for the buffer; its data variable becomes `name.data` unless it is defined already.
  const std::string& define_buffer(const Ref<Buffer>& buffer);
  bool is_defined(const NodeRef& node) const { return entries_.contains(node.get()); }
  const std::string& name_of(const Ref<Var>& var);
  const std::string& name_of(const Ref<Buffer>& buffer);
  void declare_free(const Ref<Var>& var);
  void declare_free(const Ref<Buffer>& buffer);
  /// A definition in its own line in front of the one being printed, for variables that the line defines.
  void declare_before_line(const Ref<Var>& var);
  std::string with_address(std::string_view hint, const NodeRef& node) const;
  void insert_line(size_t at, int indent, const std::string& line);
  /// The innermost frame that the free variables of the node live in.
  int frame_of(const NodeRef& node);
  /// Returns the output of `print` as a separate string.
  template <class F>
  std::string captured(F&& print) {
    std::string outer = std::exchange(out_, {});
    bool tracking = std::exchange(tracking_, false);
    print();
    tracking_ = tracking;
    return std::exchange(out_, std::move(outer));
  }

  // ---- nodes
  /// Any node on its own: an expression as it would stand in a program, a statement as lines.
  void root(const NodeRef& node);
  void inline_node(const NodeRef& node);

  // expressions (printer_expr.cc)
  void expr(const Expr& e, int min_precedence = kLowest);
  void exprs(const std::vector<Expr>& items) {
    list(items, [&](const Expr& e) { expr(e); });
  }
  void tuple(const std::vector<Expr>& items);
  void int_imm(DataType dtype, int64_t value);
  void float_imm(DataType dtype, double value);
  void binary(Kind kind, const Expr& a, const Expr& b, int min_precedence);
  void binary_call(std::string_view name, const Expr& a, const Expr& b);
  void logic(const Expr& e, int min_precedence);
  void access_indices(const std::vector<Expr>& indices);
  /// Runs `print` for the items of a list: there A[0:4] would be a region, so vector loads print their ramp.
  template <class F>
  void without_slices(F&& print) {
    bool outer = std::exchange(slices_, false);
    print();
    slices_ = outer;
  }
  void load(const BufferLoad& load);
  void let(const Let& let);
  void comm_reducer(const CommReducer& reducer);
  void dtype_name(DataType dtype);
  /// Vectors of bool as TVM spells them.
  void dtype_string(DataType dtype) {
    std::string name = dtype.str();
    string_literal(dtype.is_bool() && !dtype.is_scalar() ? "uint1" + name.substr(std::string_view("bool").size())
                                                         : name);
  }

  // calls (printer_call.cc)
  void call(const Call& call);
  void call_function(const Call& call);
  void call_args(const Call& call, bool after_something);
  void global_var(const GlobalVar& var);

  // types, ranges, annotations, constants (printer_value.cc)
  void type(const Type& type);
  void var_creation(const Ref<Var>& var);
  void range(const Range& range);
  /// min, the separator, min + extent.
  void bounds(const Expr& min, const Expr& extent, std::string_view separator);
  void region(const BufferRegion& region);
  void region_bounds(const std::vector<Ref<Range>>& region);
  void iter_var(const IterVar& iter_var);
  void index_map(const IndexMap& map);
  void annotations(const Annotations& attrs);
  void tensor_data(const Ref<TensorData>& data);
  void string_value(const Ref<StringImm>& value);
  /// metadata["key"][i] of a value that does not fit into the text.
  void metadata(std::string_view key, const NodeRef& value);
  std::string metadata_lines() const;

  // buffers (printer_buffer.cc)
  /// How a buffer comes into being decides what prints, and which variables it defines.
  enum class BufferRole { kMatch, kParam, kAlloc, kDecl, kFree };
  struct BufferCall {
    std::string_view function;  // "match_buffer"
    std::string first;          // argument in front of the shape; may be empty
    BufferRole role;
  };
  void buffer_line(const Ref<Buffer>& buffer, const BufferCall& how);
  void buffer_call(const Ref<Buffer>& buffer, const std::string& name, const BufferCall& how, bool omit_data = false);
  void shape(const Buffer& buffer, BufferRole role);
  void strides(const Ref<Buffer>& buffer, const std::string& name, BufferRole role);
  void elem_offset(const Ref<Buffer>& buffer, const std::string& name, BufferRole role);
  bool defines_inline(const Expr& e, const Buffer& buffer) const;
  static bool is_simple(const Buffer& buffer);
  static bool has_default_data(const Buffer& buffer);

  // statements (printer_stmt.cc)
  /// `concise`: nothing follows in the enclosing block, so scopes may last to its end without `with`.
  void stmt(const Stmt& s, bool concise);
  void body(const Stmt& s);
  void for_loop(const Ref<For>& loop);
  bool grid(const Ref<For>& loop);
  void loop_header(const For& loop);
  void let_stmt(const LetStmt& let, bool concise);
  void attr_stmt(const AttrStmt& attr, bool concise);
  bool launch_thread(const AttrStmt& attr, bool concise);
  void assert_stmt(const AssertStmt& assertion, bool concise);
  void buffer_store(const BufferStore& store);
  /// `storage` is what an attribute around it says, null without one.
  void realize(const BufferRealize& realize, const StringImm* storage, bool concise);
  void prefetch(const Prefetch& prefetch);
  void allocate(const Allocate& allocate, bool concise);
  bool allocate_buffer(const Allocate& allocate, bool concise);
  void end_allocation(const Annotations& values);
  void allocate_const(const AllocateConst& allocate, bool concise);
  void decl_buffer(const DeclBuffer& decl, bool concise);
  void if_then_else(const IfThenElse& branch);
  void while_loop(const While& loop);
  /// `lhs = call` in front of the rest of the block, or `with call as name:` around it. The caller has opened the
  /// frame; `bind` enters what the header defines.
  template <class Call, class Bind>
  void scope(bool concise, std::string_view lhs, std::string_view name, Call&& call, Bind&& bind, const Stmt& rest);
  /// Ends the line of a statement's header. Marks of the statement end here.
  void end_header();

  // blocks (printer_block.cc)
  void block(const Ref<Block>& block, const BlockRealize* realize);
  void axes(const Block& block, const BlockRealize* realize);
  void axis(const IterVar& iter_var, const Expr* binding);
  bool is_remapped(const IterVar& iter_var, const Expr& binding) const;
  void buffer_domains(const Block& block);
  void block_regions(std::string_view name, const std::vector<Ref<BufferRegion>>& regions);
  void block_buffers(const Block& block);

  // sparse programs (printer_sparse.cc)
  void axis_line(const Ref<Axis>& axis);
  void axis_call(const Ref<Axis>& axis);
  void axis_name(const Ref<Axis>& axis);
  void structure(const Ref<Buffer>& buffer);
  void axes(const std::vector<Ref<Axis>>& axes);
  void sparse_buffer_call(const Buffer& buffer, const BufferCall& how);
  void find_structures(const Ref<PrimFunc>& func);
  void sparse_iteration(const SparseIteration& iteration);
  /// Whether the buffer holds structure, and only axes name it: the parameter stands for it.
  bool is_plain_structure(const Ref<Buffer>& buffer) const { return structures_.contains(buffer.get()); }

  // functions (printer_func.cc)
  void prim_func(const Ref<PrimFunc>& func, const std::string& name);
  bool prim_func_once(const Ref<PrimFunc>& func, const std::string& name);
  void func_header(const Ref<PrimFunc>& func, const std::string& name);
  bool is_sugared_param(const Ref<Var>& param, const Ref<Buffer>& buffer) const;
  void func_body(const PrimFunc& func);
  const Block* implicit_root(const Stmt& body) const;
  std::string module_name() const;
  void module(const Ref<Module>& module);
  std::string func_name(const PrimFunc& func) const;

  const PrintOptions& options_;
  std::string tir_, ir_;
  std::optional<DataType> buffer_dtype_, int_dtype_, float_dtype_;
  std::string out_;
  int indent_ = 0;
  size_t line_start_ = 0;
  std::vector<Insertion> insertions_;

  bool tracking_ = false;
  std::vector<Target> targets_;
  std::vector<Mark> marks_;
  Marking* statement_mark_ = nullptr;

  NameTable names_;
  std::unordered_map<const NodeBase*, Entry> entries_;
  std::vector<Frame> frames_;
  int base_frame_ = 0;  ///< depth of frames where the printed function starts; free variables are declared there
  /// Loops around, by their variable: what T.axis.remap may refer to.
  std::unordered_map<const NodeBase*, const For*> loops_;
  const Module* module_ = nullptr;
  bool in_function_ = false;  ///< only there `return` means something
  bool slices_ = true;

  /// Parameters of the function being printed whose sugar hides the handle, and those that were needed after all.
  std::unordered_set<const NodeBase*> hidden_params_, shown_params_;
  /// Thread variables launched by tag: used again outside, they need a declaration of their own.
  std::unordered_set<const NodeBase*> launched_, env_threads_;
  /// Buffers that only axes name, and their parameters.
  std::unordered_map<const NodeBase*, Ref<Var>> structures_;
  bool needs_reprint_ = false;  ///< a hidden parameter or thread variable was used: print the function again with its
                                ///< declaration

  std::vector<std::pair<std::string, std::vector<NodeRef>>> metadata_;
};

}  // namespace tilewright::script
