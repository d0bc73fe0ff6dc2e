// Calls of intrinsics and functions. `T.exp(x)` where the parser derives the type of the call, the dtype first or last
// where TVM's scripts have it there, else `T.call_intrin("float32", "tir.exp", x)`.

#include "ir/build.h"
#include "script/intrinsic_spelling.h"
#include "script/printer_state.h"
#include "support/ranges.h"

namespace tilewright::script {
namespace {

bool is_constant(const NodeRef& node) { return node.is<IntImm>() || node.is<FloatImm>(); }

/// Functions of T that compute with constants instead of making a call.
bool may_fold(Intrinsic intrinsic, const std::vector<NodeRef>& args) {
  Folds folds = intrinsic_row(intrinsic).folds;
  if (folds == Folds::kNever) return false;
  if (folds == Folds::kFirst) return const_int(static_cast<const Expr&>(args[0])).has_value();
  if (all_of(args, is_constant)) return true;
  return folds == Folds::kConstantOrZero && is_const_int(static_cast<const Expr&>(args[1]), 0);
}

}  // namespace

void Printer::call_args(const Call& call, bool after_something) {
  for (const NodeRef& arg : call.args) {
    if (after_something) text(", ");
    after_something = true;
    if (const BufferRegion* region = arg.as<BufferRegion>()) {
      // A slice in an argument would be a vector load.
      Marking mark(*this, arg);
      tir("BufferRegion(");
      text(name_of(region->buffer));
      text(", [");
      list(region->region, [&](const Ref<Range>& r) { range(*r); });
      text("])");
    } else {
      inline_node(arg);
    }
  }
}

void Printer::global_var(const GlobalVar& var) {
  if (module_ && module_->get(var.name_hint).defined() && is_identifier(var.name_hint)) {
    text(options_.module_alias.empty() ? module_name() : options_.module_alias);
    out_ += '.';
    return text(var.name_hint);
  }
  text(ir_);
  text("GlobalVar(");
  string_literal(var.name_hint);
  text(")");
}

void Printer::call_function(const Call& call) {
  const GlobalVar& callee = *call.op.as<GlobalVar>();
  Func func = module_ ? module_->get(callee.name_hint) : Func();
  const PrimFunc* prim = func.as<PrimFunc>();
  const PrimType* result = prim ? prim->ret_type.as<PrimType>() : nullptr;
  DataType declared = result ? result->dtype : DataType::void_();
  bool derived = prim && call.dtype == declared;
  if (derived) {
    global_var(callee);
    text("(");
  } else {
    tir("Call(");
    dtype_string(call.dtype);
    text(", ");
    global_var(callee);
    text(", [");
  }
  if (derived) {
    call_args(call, false);
    return text(")");
  }
  without_slices([&] { call_args(call, false); });
  text("])");
}

void Printer::call(const Call& call) {
  if (call.op.is<GlobalVar>()) return call_function(call);
  const Op* op = call.op.as<Op>();
  Intrinsic intrinsic = intrinsic_of(call);
  Spelling spelling = spelling_of(intrinsic, call);
  if (spelling != Spelling::kGeneric && may_fold(intrinsic, call.args)) spelling = Spelling::kGeneric;
  if (spelling == Spelling::kGeneric) {
    tir("call_intrin(");
    dtype_string(call.dtype);
    text(", ");
    string_literal(op ? op->name : "");
    call_args(call, true);
    return text(")");
  }
  tir(intrinsic_row(intrinsic).name);
  text("(");
  if (spelling == Spelling::kDtypeFirst) dtype_string(call.dtype);
  call_args(call, spelling == Spelling::kDtypeFirst);
  if (spelling == Spelling::kDtypeLast) {
    text(call.args.empty() ? "" : ", ");
    dtype_string(call.dtype);
  }
  text(")");
}

}  // namespace tilewright::script
