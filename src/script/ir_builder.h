// Builds programs frame by frame; the parser of scripts calls it, and C++ code can.
//
//   IRBuilder builder;
//   {
//     With in_builder(builder);
//     With function(prim_func());
//     func_name("twice");
//     Ref<Buffer> A = arg("A", make_buffer({.shape = {i32(8)}, .dtype = DataType::float_(32)}));
//     With loop(serial(i32(0), i32(8)));
//     Expr i = loop.value<Var>(0);
//     buffer_store(A, load(A, {i}) * load(A, {i32(2)}), {i});
//   }
//   Ref<PrimFunc> func = builder.get().value_or_throw().cast<PrimFunc>();
//
// A frame is a scope that is open: it collects the statements made inside, and builds its own statement when it is
// closed, after checking what it closes. `With` opens a frame for a C++ scope; a frame opened by `open()` (concise
// scoping) stays open until the frame around it is closed.
//
// The functions throw Exception (ScriptError "builder/...", "ir/..."): their callers are the user's own code. What a
// destructor finds is kept in the builder, and get() returns it.
//
// Objects made here may get their name later, by name(): until they have one they belong to the builder alone, and
// names take no part in equality.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "ir/build.h"
#include "ir/literal.h"
#include "support/ranges.h"
#include "support/result.h"

namespace tilewright::script {

enum class FrameKind : uint8_t {
  kModule,
  kPrimFunc,
  kBlock,
  kBlockInit,
  kFor,
  kWhile,
  kIf,
  kThen,
  kElse,
  kLet,
  kAttr,
  kAssert,
  kAllocate,
  kAllocateConst,
  kDeclBuffer,
  kRealize,
  kLaunchThread,
  kSparseIteration,
  kDiscard,
};
/// Returns the name that users write: "T.block", "T.If", ...
std::string frame_name(FrameKind kind);

class IRBuilder;

class Frame {
 public:
  explicit Frame(FrameKind kind) : kind(kind), span(current_span()) {}
  virtual ~Frame() = default;
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;

  const FrameKind kind;
  const SpanId span;        ///< text that made the frame; becomes the span of its node
  std::vector<Stmt> stmts;  ///< finished statements inside
  /// Values that `with ... as` binds: loop variables, the buffer, the variable. Empty for most kinds.
  std::vector<NodeRef> values;
  /// Whether `with ... as x` binds x to the only value instead of a tuple.
  bool single_value = false;

 protected:
  friend class IRBuilder;
  /// Refuses a place where the frame makes no sense.
  virtual void check_place(IRBuilder&) {}
  /// Builds the node and hands it to the frame around, which is now the innermost.
  virtual void finish(IRBuilder& builder) = 0;
  /// The statements inside, kept as they are: an explicit no-op of the script stays.
  Stmt body();

 private:
  enum class State : uint8_t { kFresh, kOpen, kClosed };
  State state_ = State::kFresh;
  bool concise_ = false;
};
using FramePtr = std::shared_ptr<Frame>;

struct ModuleFrame;
struct PrimFuncFrame;
struct BlockFrame;

class IRBuilder {
 public:
  IRBuilder() = default;
  IRBuilder(const IRBuilder&) = delete;
  IRBuilder& operator=(const IRBuilder&) = delete;

  /// The one entered last on this thread, null when there is none.
  static IRBuilder* current();
  /// The current one; throws when there is none. `caller` is what the user called, for the message.
  static IRBuilder& require(std::string_view caller);

  void enter();
  /// Drops what is open. Returns whether this thread had entered the builder.
  bool leave();

  /// Opens the frame inside the innermost one. A concise frame is closed together with the one around it.
  void open(const FramePtr& frame, bool concise);
  /// Closes the frame, after the concise ones inside it.
  void close(const FramePtr& frame);
  /// Drops the frame and all inside it without building anything: an exception is propagating.
  void abandon(const FramePtr& frame);

  /// Appends to the innermost frame; without a frame the statement is the result.
  void add(Stmt stmt);
  void set_result(NodeRef result);
  /// Returns the finished node, or the first failure.
  Result<NodeRef> get() const;
  void fail(const Diagnostic& diagnostic);

  Frame* innermost() const { return frames_.empty() ? nullptr : frames_.back().get(); }
  const std::vector<FramePtr>& frames() const { return frames_; }
  /// The innermost frame of type F, null when there is none.
  template <class F>
  F* find() const {
    for (const FramePtr& open : reversed(frames_)) {
      if (F* frame = dynamic_cast<F*>(open.get())) return frame;
    }
    return nullptr;
  }

  /// Remembers an object that name() may still name.
  void adopt(const NodeRef& unnamed) { unnamed_.insert(unnamed); }
  bool is_unnamed(const NodeRef& node) const { return unnamed_.contains(node); }
  /// Gives a variable or buffer made here its name; one that already has a name keeps it.
  void name(const std::string& text, const NodeRef& node);

 private:
  void close_innermost();
  std::vector<FramePtr> frames_;
  std::unordered_set<NodeRef> unnamed_;
  NodeRef result_;
  std::optional<Diagnostic> failure_;
};

/// A builder entered, or a frame opened, for the rest of a C++ scope.
class With {
 public:
  explicit With(IRBuilder& builder);
  explicit With(FramePtr frame);
  ~With();
  With(const With&) = delete;
  With& operator=(const With&) = delete;

  template <class T>
  Ref<T> value(size_t i = 0) const {
    return frame_->values.at(i).cast<T>();
  }
  const std::vector<NodeRef>& values() const { return frame_->values; }

 private:
  IRBuilder* builder_;
  FramePtr frame_;
  int exceptions_;
};

/// Opens the frame until the frame around it is closed (concise scoping).
FramePtr open(FramePtr frame);

// ---- modules and functions -------------------------------------------------------------------------------------

FramePtr module();
void module_attrs(const Annotations& attrs);
/// One more attribute; a value that is there already is replaced or refused.
void module_attr(const std::string& name, NodeRef value, bool overwrite);
/// Those given so far.
const Annotations& module_attributes();
/// Declares a function that others may call before it is defined; `result` (null: nothing) is what it returns.
Ref<GlobalVar> decl_function(const std::string& name, const Type& result);
/// A call of a function of the module, with the type of its declared result.
Expr call_function(const Ref<GlobalVar>& callee, std::vector<NodeRef> args);
void def_function(const std::string& name, const Func& func);

FramePtr prim_func(bool is_private = false);
void func_name(const std::string& name);
void func_attr(const Annotations& attrs);
void func_ret(Type type);
Ref<Var> arg(const std::string& name, const Ref<Var>& variable);
/// A parameter `<name>_handle` with the buffer on it. A buffer that already serves elsewhere is copied.
Ref<Buffer> arg(const std::string& name, const Ref<Buffer>& buffer);

// ---- buffers ---------------------------------------------------------------------------------------------------

/// Arguments of T.Buffer, T.match_buffer, T.alloc_buffer and T.decl_buffer.
struct BufferSpec {
  std::vector<Expr> shape;
  DataType dtype = DataType::float_(32);
  Ref<Var> data = {};              ///< null: a fresh pointer
  std::vector<Expr> strides = {};  ///< empty: compact
  Expr elem_offset = {};           ///< null: 0, or a fresh variable where offset_factor is given
  std::string scope = "global";
  int64_t align = 0;          ///< bytes; 0 or less: 64
  int64_t offset_factor = 0;  ///< 0: 1
  BufferKind buffer_type = BufferKind::kDefault;
  std::vector<int64_t> axis_separators = {};
};
Ref<Buffer> make_buffer(const BufferSpec& spec, const std::string& name = "buffer");
/// The buffer behind a parameter of the function.
Ref<Buffer> match_buffer(const Ref<Var>& param, const BufferSpec& spec);
/// A view of a region, in the innermost block.
Ref<Buffer> match_buffer(const Ref<BufferRegion>& source, const BufferSpec& spec);
/// A new parameter with the name `name_hint` whose buffer is one that exists already.
void match_existing(const std::string& name_hint, const Ref<Buffer>& buffer);
/// A buffer of the innermost block, or of the function's root block.
Ref<Buffer> alloc_buffer(const BufferSpec& spec);
/// Allocates a buffer that exists already.
void alloc_existing(const Ref<Buffer>& buffer);
/// A buffer of one dimension over all elements behind a pointer that a buffer or an allocation around has.
Ref<Buffer> buffer_at(const Ref<Var>& data);
/// Gives the parameter that has this buffer another one.
void replace_parameter(const Ref<Buffer>& buffer, const Ref<Buffer>& by);
FramePtr decl_buffer(const BufferSpec& spec);
FramePtr allocate(std::vector<Expr> extents, DataType dtype, const std::string& scope = "global", Expr condition = {},
                  Annotations annotations = {});
FramePtr allocate_const(Ref<TensorData> data, DataType dtype, std::vector<Expr> extents, Annotations annotations = {});
/// With a scope, under an attribute that says it.
FramePtr realize(const Ref<BufferRegion>& region, std::optional<std::string> scope, Expr condition = {});

// ---- loops and control flow ------------------------------------------------------------------------------------

FramePtr serial(Expr start, Expr stop, Annotations annotations = {});
FramePtr parallel(Expr start, Expr stop, Annotations annotations = {});
FramePtr vectorized(Expr start, Expr stop, Annotations annotations = {});
FramePtr unroll(Expr start, Expr stop, Annotations annotations = {});
FramePtr thread_binding(Expr start, Expr stop, const std::string& thread, Annotations annotations = {});
FramePtr grid(const std::vector<Expr>& extents);
FramePtr while_(Expr condition);
FramePtr if_(Expr condition);
FramePtr then_();
FramePtr else_();
FramePtr assert_(Expr condition, const std::string& message);
/// Binds `variable`, or a fresh one when null, to the value.
FramePtr let(const Operand& value, Ref<Var> variable = {});
FramePtr attr(NodeRef node, const std::string& key, NodeRef value);
/// The variable of a thread axis, to be launched by launch_thread.
Ref<Var> env_thread(const std::string& tag, DataType dtype = DataType::int_(32));
FramePtr launch_thread(const Ref<Var>& variable, Expr extent);
FramePtr launch_thread(const std::string& tag, Expr extent);

// ---- blocks ----------------------------------------------------------------------------------------------------

/// Regions that are not given by reads() and writes() are computed when the function is complete.
FramePtr block(const std::string& name = "", bool no_realize = false);
FramePtr init();
void where(Expr predicate);
void reads(std::vector<Ref<BufferRegion>> regions);
void writes(std::vector<Ref<BufferRegion>> regions);
void block_attr(const Annotations& attrs);
/// Declares what values the buffer has, of the innermost block or of the function's root block. `order`: "" or that of
/// ir/buffer_domain.h; `segments`: null, a buffer of offsets, or an expression, the length of each segment.
/// `longest`: null, or the length that no segment of these offsets exceeds.
void assume_buffer_domain(const Ref<Buffer>& buffer, Expr min, Expr end, const std::string& order = {},
                          const NodeRef& segments = {}, Expr longest = {});
/// Declares that no value of one of these buffers is a value of another one.
void assume_disjoint(const std::vector<Ref<Buffer>>& buffers);
/// An axis of the innermost block over `dom`, bound to `binding` (may be null in a block without realize).
Ref<Var> axis(IterType type, const Ref<Range>& dom, Expr binding, DataType dtype = DataType::int_(32));
/// Axes over the domains of loop variables: one letter each, S or R.
std::vector<Ref<Var>> remap(std::string_view kinds, const std::vector<Expr>& loop_vars);

// ---- sparse programs -------------------------------------------------------------------------------------------

/// A root axis.
Ref<Axis> dense_fixed_axis(Expr length, DataType idtype);
/// An axis below `parent`. `indptr` and `indices` are parameters of type handle or buffers, null where the axis has
/// none; one of `nnz` and `nnz_cols` is null: a variable axis counts all of its positions, a fixed one those below each
/// of the parent's.
Ref<Axis> axis_below(const Ref<Axis>& parent, Expr length, Expr nnz, Expr nnz_cols, const NodeRef& indptr,
                     const NodeRef& indices, DataType idtype, bool sorted);
/// The positions of `axis` below the coordinates that an iteration over `parent` takes.
Ref<Axis> attached_axis(const Ref<Axis>& axis, const Ref<Axis>& parent);
/// A root that numbers the elements over `axes`. `nnz`: how many there are, or null. `offsets`: parameters or buffers
/// with the structure of these axes, which may be named once more.
Ref<Axis> flattened_axis(const std::vector<Ref<Axis>>& axes, const Expr& nnz, const std::vector<NodeRef>& offsets,
                         DataType idtype);
/// The elements of a sparse buffer behind a parameter; `default_value` null: 0.
Ref<Buffer> match_sparse_buffer(const Ref<Var>& param, std::vector<Ref<Axis>> axes, DataType dtype, Expr extra_storage,
                                const Operand& default_value);
/// A sparse buffer of the function's own.
Ref<Buffer> alloc_sparse_buffer(std::vector<Ref<Axis>> axes, DataType dtype, const std::string& scope,
                                const Operand& default_value);
/// `fused` says which axes run in one loop with the one before.
FramePtr sparse_iteration(const std::vector<Ref<Axis>>& axes, const std::vector<bool>& fused, std::string_view kinds,
                          const std::string& name);
void sparse_iteration_attr(const Annotations& attrs);

// ---- statements and values -------------------------------------------------------------------------------------

/// Casts the value where nothing can be lost but precision; refuses to store a float as an integer.
/// Values are cast to the type of the buffer.
Stmt store_node(const Ref<Buffer>& buffer, const Operand& value, std::vector<Expr> indices, Expr predicate = {});
void buffer_store(const Ref<Buffer>& buffer, const Operand& value, std::vector<Expr> indices, Expr predicate = {});
void evaluate(Expr value);
void prefetch(const Ref<BufferRegion>& region);
/// A fresh variable, to be named by name().
Ref<Var> fresh_var(Type type, bool is_size = false);
/// T.NAME(args): operands of two-sided ones are brought to one type, the result's type follows from the arguments.
Expr intrinsic(std::string_view name, std::vector<Operand> args);
/// Converts a number to the condition that it is not 0. Other values are returned unchanged.
Expr as_condition(Expr value);
/// The operator's node as it is, without folding; operands of different types are cast.
Expr operator_node(Kind kind, const Operand& left, const Operand& right);
Expr select_node(Expr condition, const Operand& true_value, const Operand& false_value);
/// The node Cast; of a number that its own type does not hold, the constant.
Expr cast_node(DataType type, const Operand& value);
/// [start, stop); the extent is a constant where it can be.
Ref<Range> range_between(Expr start, Expr stop);
/// The region one access touches: points have extent 1, ramps their length.
Ref<BufferRegion> region_of(const Ref<BufferLoad>& load);
Ref<BufferRegion> region_of(const Ref<Buffer>& buffer);

}  // namespace tilewright::script
