#include "script/ir_builder.h"

#include <algorithm>
#include <exception>

#include "script/ir_builder_frames.h"
#include "support/diagnostic.h"
#include "support/ranges.h"

namespace tilewright::script {
namespace {

thread_local std::vector<IRBuilder*> entered;

/// Names are settled while the builder still owns the object alone (see the head of ir_builder.h).
template <class T>
T& under_construction(const Ref<T>& node) {
  return const_cast<T&>(*node);
}

}  // namespace

void refuse(const char* code, std::string message, std::string hint) {
  throw Exception(script_error(code, std::move(message), std::move(hint)));
}

std::string frame_name(FrameKind kind) {
  switch (kind) {
    case FrameKind::kModule:
      return "I.ir_module";
    case FrameKind::kPrimFunc:
      return "T.prim_func";
    case FrameKind::kBlock:
      return "T.block";
    case FrameKind::kBlockInit:
      return "T.init";
    case FrameKind::kFor:
      return "a loop";
    case FrameKind::kWhile:
      return "T.While";
    case FrameKind::kIf:
      return "T.If";
    case FrameKind::kThen:
      return "T.Then";
    case FrameKind::kElse:
      return "T.Else";
    case FrameKind::kLet:
      return "T.LetStmt";
    case FrameKind::kAttr:
      return "T.attr";
    case FrameKind::kAssert:
      return "T.Assert";
    case FrameKind::kAllocate:
      return "T.allocate";
    case FrameKind::kAllocateConst:
      return "T.allocate_const";
    case FrameKind::kDeclBuffer:
      return "T.decl_buffer";
    case FrameKind::kRealize:
      return "T.realize";
    case FrameKind::kLaunchThread:
      return "T.launch_thread";
    case FrameKind::kSparseIteration:
      return "T.sp.iteration";
    case FrameKind::kDiscard:
      return "a statement that failed";
  }
  return "a frame";
}

Stmt Frame::body() {
  if (stmts.empty()) return nop();
  if (stmts.size() == 1) return stmts[0];
  return make<SeqStmt>({std::move(stmts)});
}

IRBuilder* IRBuilder::current() { return entered.empty() ? nullptr : entered.back(); }

IRBuilder& IRBuilder::require(std::string_view caller) {
  if (entered.empty()) {
    refuse("builder/none", std::string(caller) + " is called outside of a script and of an IRBuilder",
           "use it inside a function under @T.prim_func, or inside `with IRBuilder():`");
  }
  return *entered.back();
}

void IRBuilder::enter() { entered.push_back(this); }

bool IRBuilder::leave() {
  auto it = std::find(entered.rbegin(), entered.rend(), this);
  const bool was_entered = it != entered.rend();
  if (was_entered) entered.erase(std::next(it).base());
  for (const FramePtr& frame : frames_) frame->state_ = Frame::State::kClosed;
  frames_.clear();
  unnamed_.clear();
  return was_entered;
}

void IRBuilder::open(const FramePtr& frame, bool concise) {
  if (frame->state_ != Frame::State::kFresh) {
    refuse("builder/reopened", frame_name(frame->kind) + " is opened a second time", "make a new one for each scope");
  }
  frame->check_place(*this);
  frame->state_ = Frame::State::kOpen;
  frame->concise_ = concise;
  frames_.push_back(frame);
}

void IRBuilder::close_innermost() {
  FramePtr frame = std::move(frames_.back());
  frames_.pop_back();
  frame->state_ = Frame::State::kClosed;
  SpanScope at(frame->span ? frame->span : current_span());
  frame->finish(*this);
}

void IRBuilder::close(const FramePtr& frame) {
  if (frame->state_ != Frame::State::kOpen) {
    refuse("builder/closed", frame_name(frame->kind) + " is closed without being open",
           "open it with `with`, which closes it, too");
  }
  if (!is_contained(frames_, frame)) {
    refuse("builder/order", frame_name(frame->kind) + " is closed inside of a builder that did not open it",
           "leave the frames of a builder before another one is entered");
  }
  while (frames_.back() != frame) {
    if (!frames_.back()->concise_) {
      refuse(
          "builder/order",
          frame_name(frame->kind) + " is closed while " + frame_name(frames_.back()->kind) + " inside it is still open",
          "frames close in the opposite order; `with` does that");
    }
    close_innermost();
  }
  close_innermost();
}

void IRBuilder::abandon(const FramePtr& frame) {
  auto it = std::ranges::find(frames_, frame);
  if (it == frames_.end()) return;
  for (auto dropped = it; dropped != frames_.end(); ++dropped) (*dropped)->state_ = Frame::State::kClosed;
  frames_.erase(it, frames_.end());
}

void IRBuilder::add(Stmt stmt) {
  if (frames_.empty()) {
    set_result(std::move(stmt));
    return;
  }
  Frame& frame = *frames_.back();
  if (frame.kind == FrameKind::kModule || frame.kind == FrameKind::kIf) {
    refuse("builder/place", "a statement is made directly inside " + frame_name(frame.kind),
           frame.kind == FrameKind::kIf ? "put it inside T.Then() or T.Else()" : "put it inside a function");
  }
  frame.stmts.push_back(std::move(stmt));
}

void IRBuilder::set_result(NodeRef result) {
  if (result_.defined()) {
    refuse("builder/second-result", "a builder builds one thing, and this one has built it already",
           "put several functions into I.ir_module, several statements into T.prim_func");
  }
  result_ = std::move(result);
}

Result<NodeRef> IRBuilder::get() const {
  if (failure_) return *failure_;
  if (!frames_.empty()) {
    return script_error("builder/open", frame_name(frames_.back()->kind) + " is still open",
                        "leave its `with` before the result is asked for");
  }
  if (!result_.defined())
    return script_error("builder/empty", "nothing was built",
                        "build a function or a module inside of `with IRBuilder()`");
  return result_;
}

void IRBuilder::fail(const Diagnostic& diagnostic) {
  if (!failure_) failure_ = diagnostic;
}

void IRBuilder::name(const std::string& text, const NodeRef& node) {
  if (unnamed_.erase(node) == 0) return;
  if (node.is<Var>()) {
    under_construction(node.borrow<Var>()).name_hint = text;
  } else if (node.is<Buffer>()) {
    Buffer& buffer = under_construction(node.borrow<Buffer>());
    buffer.name = text;
    if (unnamed_.contains(buffer.data)) name(text, buffer.data);
    if (buffer.elem_offset.defined()) name(text + "_elem_offset", buffer.elem_offset);
    for (size_t i : indices_of(buffer.strides)) name(text + "_s" + std::to_string(i), buffer.strides[i]);
    for (size_t i : indices_of(buffer.shape)) name(text + "_d" + std::to_string(i), buffer.shape[i]);
  } else if (node.is<Axis>()) {
    under_construction(node.borrow<Axis>()).name = text;
  }
}

With::With(IRBuilder& builder) : builder_(&builder), exceptions_(std::uncaught_exceptions()) { builder.enter(); }

With::With(FramePtr frame)
    : builder_(&IRBuilder::require(frame_name(frame->kind))),
      frame_(std::move(frame)),
      exceptions_(std::uncaught_exceptions()) {
  builder_->open(frame_, false);
}

With::~With() {
  bool failing = std::uncaught_exceptions() > exceptions_;
  if (!frame_) {
    if (!failing && builder_->innermost() != nullptr) builder_->fail(builder_->get().error());
    builder_->leave();
    return;
  }
  if (failing) {
    builder_->abandon(frame_);
    return;
  }
  try {
    builder_->close(frame_);
  } catch (const Exception& e) {
    builder_->fail(e.diagnostic());
    builder_->abandon(frame_);
  }
}

FramePtr open(FramePtr frame) {
  IRBuilder::require(frame_name(frame->kind)).open(frame, true);
  return frame;
}

// ---- modules and functions -------------------------------------------------------------------------------------

void ModuleFrame::check_place(IRBuilder& builder) {
  if (builder.innermost()) refuse("builder/place", "I.ir_module inside another frame", "a module is outermost");
}

void ModuleFrame::finish(IRBuilder& builder) {
  for (const auto& [name, ret] : declared) {
    if (!result->get(name).defined()) {
      refuse("builder/undefined-function", "function '" + name + "' is declared and never defined",
             "define it, or leave its declaration out");
    }
  }
  builder.set_result(result);
}

FramePtr module() { return std::make_shared<ModuleFrame>(); }

namespace {

ModuleFrame& module_frame(std::string_view caller) {
  auto* frame = IRBuilder::require(caller).find<ModuleFrame>();
  if (frame == nullptr)
    refuse("builder/place", std::string(caller) + " belongs inside I.ir_module",
           "open `with I.ir_module():` around it");
  return *frame;
}

}  // namespace

void module_attrs(const Annotations& attrs) {
  auto& frame = expect_inside<ModuleFrame>("I.module_attrs", FrameKind::kModule);
  if (frame.has_attrs) refuse("builder/twice", "I.module_attrs is given twice", "put all attributes into one call");
  frame.has_attrs = true;
  for (const auto& [name, value] : attrs.entries()) module_attr(name, value, false);
}

void module_attr(const std::string& name, NodeRef value, bool overwrite) {
  ModuleFrame& frame = module_frame("I.module_set_attr");
  if (frame.result->attrs.has(name) && !overwrite) {
    refuse("builder/twice", "the attribute '" + name + "' of the module is given twice",
           "allow_overwrite=True of I.module_set_attr replaces it");
  }
  Module changed = *frame.result;
  changed.attrs.set(name, std::move(value));
  frame.result = make(std::move(changed));
}

const Annotations& module_attributes() { return module_frame("I.module_get_attrs").result->attrs; }

Ref<GlobalVar> decl_function(const std::string& name, const Type& result) {
  auto& frame = expect_inside<ModuleFrame>("I.decl_function", FrameKind::kModule);
  bool known = any_of(frame.declared, [&](const auto& d) { return d.first == name; });
  if (known) {
    refuse("builder/same-name", "two functions of the module are called '" + name + "'", "rename one of them");
  }
  frame.declared.emplace_back(name, result);
  return make<GlobalVar>({name});
}

Expr call_function(const Ref<GlobalVar>& callee, std::vector<NodeRef> args) {
  IRBuilder* builder = IRBuilder::current();
  auto* frame = builder ? builder->find<ModuleFrame>() : nullptr;
  DataType dtype = DataType::void_();
  if (frame != nullptr) {
    for (const auto& [name, result] : frame->declared) {
      const PrimType* prim = result.as<PrimType>();
      if (prim && name == callee->name_hint) dtype = prim->dtype;
    }
  }
  // A function takes the buffer's data pointer. The callee would not know strides or an offset, so those are refused.
  for (NodeRef& arg : args) {
    const Buffer* buffer = arg.as<Buffer>();
    if (!buffer) continue;
    if (!buffer->strides.empty() || !is_const_int(buffer->elem_offset, 0)) {
      refuse("builder/call",
             "'" + buffer->name + "' has strides or an offset, of which '" + callee->name_hint + "' would not know",
             "pass the .data of a buffer without them");
    }
    arg = buffer->data;
  }
  return make<Call>({dtype, callee, std::move(args)});
}

void def_function(const std::string& name, const Func& func) {
  ModuleFrame& frame = module_frame("I.def_function");
  if (frame.result->get(name).defined()) {
    refuse("builder/same-name", "two functions of the module are called '" + name + "'", "rename one of them");
  }
  frame.result = with_function(frame.result, name, func);
}

void PrimFuncFrame::check_place(IRBuilder& builder) {
  Frame* around = builder.innermost();
  if (around && around->kind != FrameKind::kModule && around->kind != FrameKind::kDiscard) {
    refuse("builder/place", "T.prim_func inside " + frame_name(around->kind),
           "a function stands in a module, or alone");
  }
}

bool PrimFuncFrame::is_param(const Ref<Var>& v) const {
  return any_of(params, [&](const Ref<Var>& p) { return p == v; });
}

void PrimFuncFrame::finish(IRBuilder& builder) {
  Annotations all = attrs.value_or(Annotations{});
  if (name && !is_private && !all.has("global_symbol")) all.set("global_symbol", string_imm(*name));
  Type ret = ret_type.defined() ? ret_type : make<TupleType>({});
  Ref<PrimFunc> func =
      make<PrimFunc>({.params = std::move(params),
                      .buffer_map = std::move(buffer_map),
                      .ret_type = std::move(ret),
                      .attrs = std::move(all),
                      .body = complete_root(body(), root_alloc_buffers, root_annotations, without_axes),
                      .axes = std::move(axes)});
  if (builder.innermost() && builder.innermost()->kind == FrameKind::kModule) {
    if (!name) refuse("builder/no-name", "a function of a module has no name", "call T.func_name");
    def_function(*name, func);
  } else if (!builder.innermost()) {
    builder.set_result(func);
  }
}

FramePtr prim_func(bool is_private) { return std::make_shared<PrimFuncFrame>(is_private); }

namespace {

PrimFuncFrame& function_frame(std::string_view caller) {
  return expect_inside<PrimFuncFrame>(caller, FrameKind::kPrimFunc);
}

Ref<Var> add_param(PrimFuncFrame& frame, const std::string& name, const Ref<Var>& variable) {
  if (frame.is_param(variable)) {
    refuse("builder/same-param", "the variable '" + variable->name_hint + "' is used for two parameters",
           "make one for each parameter");
  }
  IRBuilder::current()->name(name, variable);
  frame.params.emplace_back(variable);
  return variable;
}

}  // namespace

void func_name(const std::string& name) {
  PrimFuncFrame& frame = function_frame("T.func_name");
  if (frame.name)
    refuse("builder/twice", "the function already has the name '" + *frame.name + "'", "call T.func_name once");
  frame.name = name;
}

void func_attr(const Annotations& attrs) {
  PrimFuncFrame& frame = function_frame("T.func_attr");
  if (frame.attrs) refuse("builder/twice", "T.func_attr is given twice", "put all attributes into one call");
  if (frame.is_private && attrs.has("global_symbol")) {
    refuse("builder/private-symbol", "a private function has no global_symbol",
           "remove private=True, or the attribute");
  }
  frame.attrs = attrs;
}

void func_ret(Type type) {
  PrimFuncFrame& frame = function_frame("T.func_ret");
  if (frame.ret_type.defined())
    refuse("builder/twice", "the type of the function's result is given twice", "call T.func_ret once");
  frame.ret_type = std::move(type);
}

Ref<Var> arg(const std::string& name, const Ref<Var>& variable) {
  return add_param(function_frame("T.arg"), name, variable);
}

Ref<Buffer> arg(const std::string& name, const Ref<Buffer>& buffer) {
  PrimFuncFrame& frame = function_frame("T.arg");
  IRBuilder& builder = *IRBuilder::current();
  Ref<Buffer> own = buffer;
  if (!builder.is_unnamed(buffer)) {
    Buffer copy = *buffer;
    copy.name = name;
    copy.data = pointer_var(name, copy.dtype.is_bool() ? DataType::int_(8) : copy.dtype, buffer->scope());
    own = make(std::move(copy));
  }
  builder.name(name, own);
  Ref<Var> handle = add_param(frame, name + "_handle", var(name + "_handle", DataType::handle()));
  frame.buffer_map.emplace_back(handle, own);
  return own;
}

}  // namespace tilewright::script
