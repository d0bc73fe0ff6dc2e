#include "interpreter/compile.h"

#include "analysis/size_limits.h"
#include "analysis/team.h"
#include "ir/build.h"
#include "ir/refuse_at.h"
#include "ir/sizes.h"
#include "support/deep_stack.h"
#include "support/ranges.h"

namespace tilewright::interpreter {

Result<int> Compiler::compile(const std::string& name) {
  int number = declare_function(name);
  while (!pending_.empty() && !failure_) {
    std::string next = std::move(pending_.back());
    pending_.pop_back();
    Ref<PrimFunc> func = module_.get(next).cast<PrimFunc>();
    function_ = program_.functions[program_.by_name.at(next)].get();
    function_->func = func;
    with_stack_for(func.depth(), [&] { function(func); });
  }
  if (failure_) return std::move(*failure_);
  return number;
}

int Compiler::declare_function(const std::string& name) {
  if (auto* found = find_value(program_.by_name, name)) return *found;
  if (!module_.get(name).is<PrimFunc>()) {
    fail("interpret/no-function", "the module has no function '" + name + "'", {});
    return 0;
  }
  int number = static_cast<int>(program_.functions.size());
  program_.by_name.emplace(name, number);
  program_.functions.push_back(std::make_unique<Function>());
  program_.functions.back()->name = name;
  pending_.push_back(name);
  return number;
}

void Compiler::function(const Ref<PrimFunc>& func) {
  code_ = &function_->code;
  top_ = 0;
  constant_slots_.clear();
  slots_.clear();
  views_.clear();
  domains_.clear();
  has_structure_.clear();
  block_ = {};
  bound_.clear();
  team_ = 0;
  together_ = true;
  has_implicit_barriers_ = analysis::has_implicit_barriers(*func);
  shown_ = analysis::MemoryNames::of_views(func->body);
  varying_.clear();
  data_.clear();
  fragments_.emplace(func->body);
  parameters(*func);
  for (const analysis::SizeLimit& limit : analysis::size_limits(*func)) {
    int number = message("interpret/extent", limit.message, limit.node, limit.hint);
    require(expr(limit.holds), number);
  }
  require_structure(*func);
  stmt(func->body);
  emit(Op::kReturn);
}

void Compiler::parameters(const PrimFunc& func) {
  for (const Ref<Var>& param : func.params) {
    int slot = take(1);
    function_->param_slots.push_back(slot);
    define(param, slot);
    if (param.dtype().is_integral()) data_.insert(param.get());
  }
  // Plain variables first: other dimensions may be expressions of them.
  auto each_buffer = [&](auto&& work) {
    for (size_t i : indices_of(func.params)) {
      Ref<Buffer> buffer = func.buffer_of(func.params[i]);
      if (buffer.defined()) work(static_cast<int>(i), buffer);
    }
  };
  auto each_extent = [&](const Buffer& buffer, auto&& work) {
    for (size_t d : indices_of(buffer.shape)) work(buffer.shape[d], ArgCheck::What::kDimension, d);
    for (size_t d : indices_of(buffer.strides)) work(buffer.strides[d], ArgCheck::What::kStride, d);
  };
  each_buffer([&](int arg, const Ref<Buffer>& buffer) {
    define(buffer->data, function_->param_slots[arg]);
    for_each_size(*buffer, [&](const Size& size) {
      if (slots_.contains(size.var.get())) return;
      // The data pointer refers to element (0, ..., 0), at any offset in the allocation.
      if (size.what == Size::Of::kOffset) return define(size.var, constant(0));
      int slot = take(1);
      Op op = size.what == Size::Of::kExtent ? Op::kArgDimension : Op::kArgStride;
      emit(op, slot, arg, static_cast<int>(size.dimension));
      define(size.var, slot);
    });
  });
  each_buffer([&](int arg, const Ref<Buffer>& buffer) {
    each_extent(*buffer, [&](const Expr& e, ArgCheck::What what, size_t d) {
      emit(Op::kCheckArg, kNone, append(program_.arg_checks, {arg, what, static_cast<int>(d), expr(e)}));
    });
    if (buffer->elem_offset.defined() && !is_const_int(buffer->elem_offset, 0)) {
      int zero = message("interpret/unsupported", "parameter '" + buffer->name + "' has an element offset other than 0",
                         buffer);
      require_equal(expr(buffer->elem_offset), constant(0), zero);
    }
    views_[buffer.get()] = declare(buffer, function_->param_slots[arg]);
  });
}

// ---- emitting --------------------------------------------------------------------------------------------------

size_t Compiler::emit(Op op, DataType type, int dst, int a, int b, int c, int extra) {
  bool plain_float = type.code == TypeCode::kFloat && type.bits != 16;
  return emit({.op = op,
               .bits = type.bits,
               .is_unsigned = type.is_float() ? !plain_float : type.is_uint(),
               .code = type.code,
               .lanes = lanes_of(type),
               .dst = dst,
               .a = a,
               .b = b,
               .c = c,
               .extra = extra});
}

int Compiler::constant(Slot value) {
  auto [it, fresh] = constant_slots_.try_emplace(value.i, -1 - static_cast<int>(function_->constants.size()));
  if (fresh) function_->constants.push_back(value);
  return it->second;
}
int Compiler::constant(int64_t value) { return constant(Slot{.i = value}); }
int Compiler::constant(double value) { return constant(Slot{.f = value}); }

int Compiler::site(const NodeRef& node, const Ref<Buffer>& buffer, std::string what) {
  return append(program_.sites, {node, block_, buffer, std::move(what), in_init_ ? Site::kInit : 0, lanes_});
}

int Compiler::message(std::string code, std::string text, const NodeRef& node, std::string hint) {
  return append(program_.messages, {std::move(code), std::move(text), site(node), std::move(hint)});
}

void Compiler::fail(std::string code, std::string message, const NodeRef& node, std::string hint) {
  if (!failure_) failure_ = refuse_at(node, std::move(code), std::move(message), std::move(hint));
}

int Compiler::unsupported(const std::string& what, const NodeRef& node) {
  return malformed("the interpreter does not know " + what, node, "interpret/unsupported");
}

int Compiler::malformed(std::string what, const NodeRef& node, const char* code) {
  emit({.op = Op::kFail, .extra = message(code, std::move(what), node)});
  return constant(0);
}

int Compiler::slot_of(const Ref<Var>& var, const NodeRef& user) {
  if (auto* slot = find_value(slots_, var.get())) return *slot;
  fail("interpret/undefined", "variable '" + var->name_hint + "' is used and defined nowhere around", user,
       "bind it in the program, or make it a parameter");
  return constant(0);
}

}  // namespace tilewright::interpreter
