// Frames of loops, branches and the other statements with a body.

#include "ir/numeric.h"
#include "script/interval.h"
#include "script/ir_builder.h"
#include "script/ir_builder_frames.h"
#include "support/ranges.h"

namespace tilewright::script {
namespace {

struct WhileFrame final : Frame {
  WhileFrame() : Frame(FrameKind::kWhile) {}
  Expr condition;
  void finish(IRBuilder& builder) override { builder.add(make<While>({condition, body()})); }
};

struct IfFrame final : Frame {
  IfFrame() : Frame(FrameKind::kIf) {}
  Expr condition;
  Stmt then_case, else_case;
  void finish(IRBuilder& builder) override {
    if (!then_case.defined()) refuse("builder/no-then", "T.If without T.Then()", "put the statements into T.Then()");
    builder.add(make<IfThenElse>({condition, then_case, else_case}));
  }
};

struct BranchFrame final : Frame {
  explicit BranchFrame(FrameKind kind) : Frame(kind) {}
  Stmt& branch(IRBuilder& builder) const {
    auto* parent = dynamic_cast<IfFrame*>(builder.innermost());
    if (parent == nullptr) {
      refuse("builder/place", frame_name(kind) + " belongs directly inside T.If",
             "with T.If(condition): with T.Then(): ...");
    }
    return kind == FrameKind::kThen ? parent->then_case : parent->else_case;
  }
  void check_place(IRBuilder& builder) override {
    if (branch(builder).defined())
      refuse("builder/twice", frame_name(kind) + " is given twice", "T.If has one T.Then and at most one T.Else");
  }
  void finish(IRBuilder& builder) override { branch(builder) = body(); }
};

struct LetFrame final : Frame {
  LetFrame() : Frame(FrameKind::kLet) {}
  Expr value;
  void finish(IRBuilder& builder) override { builder.add(make<LetStmt>({values[0].cast<Var>(), value, body()})); }
};

struct AttrFrame final : Frame {
  AttrFrame() : Frame(FrameKind::kAttr) {}
  NodeRef node, value;
  std::string key;
  void finish(IRBuilder& builder) override { builder.add(make<AttrStmt>({node, key, value, body()})); }
};

struct AssertFrame final : Frame {
  AssertFrame() : Frame(FrameKind::kAssert) {}
  Expr condition;
  std::string message;
  void finish(IRBuilder& builder) override { builder.add(make<AssertStmt>({condition, string_imm(message), body()})); }
};

struct LaunchThreadFrame final : Frame {
  LaunchThreadFrame() : Frame(FrameKind::kLaunchThread) {}
  Ref<IterVar> axis;
  Expr extent;
  void finish(IRBuilder& builder) override {
    builder.add(
        make<AttrStmt>({axis, axis->thread_tag == "vthread" ? "virtual_thread" : "thread_extent", extent, body()}));
  }
};

Expr need_condition(Expr condition, const char* what) {
  if (!condition.defined())
    refuse("builder/condition", std::string(what) + " without a condition", "give an expression of type bool");
  condition = as_condition(std::move(condition));
  if (!condition.dtype().is_bool()) {
    refuse("builder/condition", "the condition of " + std::string(what) + " is " + condition.dtype().str(),
           "it must be bool, or one number");
  }
  return condition;
}

/// min and extent in the wider of both types; extents that are constants stay constants.
ForFrame::Loop make_loop(Expr start, Expr stop) {
  for (Expr* bound : {&start, &stop}) {
    if (!(*bound).dtype().is_integral() || !(*bound).dtype().is_scalar() || (*bound).dtype().is_bool()) {
      refuse("builder/loop-dtype", "a loop over a range of " + (*bound).dtype().str(), "bounds of loops are integers");
    }
    *bound = as_index(*bound);
  }
  promote(start, stop);
  Expr extent = extent_of(start, stop);
  DataType dtype = start.dtype();
  ForFrame::Loop loop;
  loop.var = var("v", dtype);
  loop.min = cast(dtype, start);
  loop.extent = cast(dtype, extent);
  return loop;
}

FramePtr nest(std::vector<ForFrame::Loop> loops) {
  auto frame = std::make_shared<ForFrame>();
  IRBuilder* builder = IRBuilder::current();
  for (const ForFrame::Loop& loop : loops) {
    frame->values.push_back(loop.var);
    if (builder) builder->adopt(loop.var);
  }
  frame->loops = std::move(loops);
  return frame;
}

FramePtr one_loop(Expr start, Expr stop, ForKind kind, Annotations annotations, std::string thread = {}) {
  ForFrame::Loop loop = make_loop(std::move(start), std::move(stop));
  loop.kind = kind;
  loop.annotations = std::move(annotations);
  loop.thread = std::move(thread);
  FramePtr frame = nest({std::move(loop)});
  frame->single_value = true;
  return frame;
}

}  // namespace

void ForFrame::finish(IRBuilder& builder) {
  Stmt result = body();
  for (const Loop& loop : reversed(loops)) {
    Ref<IterVar> binding;
    if (loop.kind == ForKind::kThreadBinding) {
      Ref<Var> axis = var("", loop.var.dtype());
      binding = make<IterVar>({{}, axis, IterType::kThreadIndex, loop.thread});
    }
    result = make<For>({loop.var, loop.min, loop.extent, loop.kind, binding, loop.annotations, result});
  }
  builder.add(std::move(result));
}

FramePtr serial(Expr start, Expr stop, Annotations annotations) {
  return one_loop(std::move(start), std::move(stop), ForKind::kSerial, std::move(annotations));
}
FramePtr parallel(Expr start, Expr stop, Annotations annotations) {
  return one_loop(std::move(start), std::move(stop), ForKind::kParallel, std::move(annotations));
}
FramePtr vectorized(Expr start, Expr stop, Annotations annotations) {
  return one_loop(std::move(start), std::move(stop), ForKind::kVectorized, std::move(annotations));
}
FramePtr unroll(Expr start, Expr stop, Annotations annotations) {
  return one_loop(std::move(start), std::move(stop), ForKind::kUnrolled, std::move(annotations));
}
FramePtr thread_binding(Expr start, Expr stop, const std::string& thread, Annotations annotations) {
  if (thread.empty()) {
    refuse("builder/thread", "T.thread_binding without a thread axis", "add thread=\"threadIdx.x\"");
  }
  return one_loop(std::move(start), std::move(stop), ForKind::kThreadBinding, std::move(annotations), thread);
}

FramePtr grid(const std::vector<Expr>& extents) {
  std::vector<ForFrame::Loop> loops;
  for (const Expr& extent : extents) {
    if (!extent.defined()) refuse("builder/loop", "an extent of T.grid is None", "extents are integers");
    loops.push_back(make_loop(zero(extent.dtype()), extent));
  }
  FramePtr frame = nest(std::move(loops));
  frame->single_value = extents.size() == 1;  // `for i in T.grid(n)` is one variable, as `for i in range(n)`
  return frame;
}

FramePtr while_(Expr condition) {
  auto frame = std::make_shared<WhileFrame>();
  frame->condition = need_condition(std::move(condition), "'while'");
  return frame;
}

FramePtr if_(Expr condition) {
  auto frame = std::make_shared<IfFrame>();
  frame->condition = need_condition(std::move(condition), "'if'");
  return frame;
}
FramePtr then_() { return std::make_shared<BranchFrame>(FrameKind::kThen); }
FramePtr else_() { return std::make_shared<BranchFrame>(FrameKind::kElse); }

FramePtr assert_(Expr condition, const std::string& message) {
  auto frame = std::make_shared<AssertFrame>();
  frame->condition = need_condition(std::move(condition), "'assert'");
  frame->message = message;
  return frame;
}

/// Whether the value, as a `type`, is in general another one. Integers become floating-point numbers silently, as in
/// all arithmetic.
static bool loses_values(const Expr& value, DataType type) {
  DataType from = value.dtype();
  if (from.is_float() && !type.is_float()) return true;
  if (const IntImm* number = value.as<IntImm>()) {
    return type.is_integral() && wrap_int(type, number->value) != number->value;
  }
  return from.is_integral() && type.is_integral() && type.bits < from.bits;
}

FramePtr let(const Operand& given, Ref<Var> variable) {
  auto frame = std::make_shared<LetFrame>();
  bool is_float = given.is_number && variable.defined() && variable.dtype().is_float();
  Expr value = is_float ? cast(variable.dtype(), given) : settled(given);
  IRBuilder* builder = IRBuilder::current();
  if (!variable.defined()) {
    if (value.dtype().is_void())
      refuse("builder/let-void", "a value without a type cannot be bound to a variable",
             "call it as a statement: T.evaluate(...)");
    variable = var("v", value.dtype());
    if (builder) builder->adopt(variable);
  } else if (variable.dtype() != value.dtype() && !value.dtype().is_handle()) {
    if (loses_values(value, variable.dtype())) {
      refuse("builder/let-dtype",
             "a value of type " + value.dtype().str() + " is bound to a variable of type " + variable.dtype().str(),
             "say how: T.Cast(\"" + variable.dtype().str() + "\", ...)");
    }
    value = cast(variable.dtype(), std::move(value));
  }
  frame->values = {variable};
  frame->single_value = true;
  frame->value = std::move(value);
  return frame;
}

FramePtr attr(NodeRef node, const std::string& key, NodeRef value) {
  auto frame = std::make_shared<AttrFrame>();
  frame->node = std::move(node);
  frame->key = key;
  frame->value = std::move(value);
  return frame;
}

Ref<Var> env_thread(const std::string& tag, DataType dtype) {
  auto* function = IRBuilder::require("T.env_thread").find<PrimFuncFrame>();
  if (function == nullptr)
    refuse("builder/place", "T.env_thread belongs inside T.prim_func",
           "name threads in the function that launches them");
  Ref<Var> variable = var("v", dtype);
  IRBuilder::current()->adopt(variable);
  function->env_threads.push_back(make<IterVar>({{}, variable, IterType::kThreadIndex, tag}));
  return variable;
}

FramePtr launch_thread(const Ref<Var>& variable, Expr extent) {
  auto* function = IRBuilder::require("T.launch_thread").find<PrimFuncFrame>();
  if (function == nullptr)
    refuse("builder/place", "T.launch_thread belongs inside T.prim_func", "launch threads in a function");
  auto it = find_if(function->env_threads, [&](const Ref<IterVar>& axis) { return axis->var == variable; });
  if (it == function->env_threads.end()) {
    refuse("builder/thread", "T.launch_thread of '" + variable->name_hint + "', which is not a thread axis",
           "make it with T.env_thread(\"threadIdx.x\")");
  }
  extent = cast(variable.dtype(), std::move(extent));
  if (!(*it)->dom.defined()) {
    *it = make<IterVar>({range_of(extent), variable, IterType::kThreadIndex, (*it)->thread_tag});
  } else if (auto known = const_int((*it)->dom->extent); known && const_int(extent) && *known != *const_int(extent)) {
    refuse("builder/thread",
           (*it)->thread_tag + " is launched with " + std::to_string(*known) + " and with " +
               std::to_string(*const_int(extent)) + " threads",
           "all launches of one axis in a kernel have as many threads");
  }
  auto frame = std::make_shared<LaunchThreadFrame>();
  frame->axis = *it;
  frame->extent = std::move(extent);
  frame->values = {variable};
  frame->single_value = true;
  return frame;
}

FramePtr launch_thread(const std::string& tag, Expr extent) {
  DataType dtype = extent.dtype();
  return launch_thread(env_thread(tag, dtype), std::move(extent));
}

void evaluate(Expr value) { IRBuilder::require("T.evaluate").add(make<Evaluate>({std::move(value)})); }

void prefetch(const Ref<BufferRegion>& region) { IRBuilder::require("T.prefetch").add(make<Prefetch>({region})); }

Ref<Var> fresh_var(Type type, bool is_size) {
  Ref<Var> variable = make<Var>({"v", std::move(type), is_size});
  if (IRBuilder* builder = IRBuilder::current()) builder->adopt(variable);
  return variable;
}

}  // namespace tilewright::script
