#include "ir/async_copy.h"

#include "ir/build.h"
#include "ir/fragments.h"

namespace tilewright {
std::optional<AsyncCopy> AsyncCopy::of(const Expr& value) {
  const Call* call = value.as<Call>();
  if (!call || intrinsic_of(*call) != Intrinsic::k_ptx_cp_async) return {};
  if (call->args.size() != 5 && call->args.size() != 6) return {};
  for (const NodeRef& argument : call->args) {
    if (argument.sort() != Sort::kExpr) return {};
  }
  auto bytes = const_int(call->arg(4));
  if (!call->args[0].is<Var>() || !call->args[2].is<Var>() || !bytes || !call->dtype.is_scalar()) return {};
  if (*bytes <= 0 || call->dtype.bytes() <= 0 || *bytes % call->dtype.bytes() != 0) return {};
  AsyncCopy copy{
      call->args[0].cast<Var>(), call->args[2].cast<Var>(), call->dtype, call->arg(1), call->arg(3), *bytes, {}};
  if (call->args.size() == 6) copy.condition = call->arg(5);
  return copy;
}

Stmt AsyncCopy::call() const {
  std::vector<NodeRef> args = {to, to_place, from, from_place, i32(bytes)};
  if (condition.defined()) args.push_back(condition);
  return make<Evaluate>({tilewright::call(dtype, "tir.ptx_cp_async", std::move(args))});
}

Stmt AsyncCopy::as_loop() const {
  Ref<Var> i = var("i");
  const Expr from_index = from_place + i, to_index = to_place + i;
  Ref<Buffer> source = flat_view(from, dtype, from_place + elements()),
              target = flat_view(to, dtype, to_place + elements());
  Expr value = load(source, {from_index});
  if (condition.defined()) {
    const bool holds = condition.dtype().is_bool();
    value = if_then_else(holds ? condition : ne(condition, 0), value, zero(dtype));
  }
  Stmt body = loop(i, i32(elements()), store(target, value, {to_index}));
  return make<DeclBuffer>({source, make<DeclBuffer>({target, std::move(body)})});
}

bool is_wait_for_copies(const Expr& value) {
  const Call* call = value.as<Call>();
  return call && intrinsic_of(*call) == Intrinsic::k_ptx_wait_group;
}

std::optional<int64_t> running_behind(const Expr& value) {
  if (!is_wait_for_copies(value)) return std::nullopt;
  const Call& wait = *value.as<Call>();
  if (wait.args.size() != 1 || wait.args[0].sort() != Sort::kExpr) return std::nullopt;
  const auto running = const_int(wait.arg(0));
  return running && *running >= 0 ? running : std::nullopt;
}

bool closes_group(const Expr& value) {
  const Call* call = value.as<Call>();
  return call && intrinsic_of(*call) == Intrinsic::k_ptx_commit_group;
}

bool is_async_step(const Expr& value) {
  const Call* call = value.as<Call>();
  if (!call) return false;
  const Intrinsic intrinsic = intrinsic_of(*call);
  return intrinsic == Intrinsic::k_ptx_cp_async || intrinsic == Intrinsic::k_ptx_commit_group ||
         intrinsic == Intrinsic::k_ptx_wait_group;
}

Stmt commit_group() { return make<Evaluate>({call(DataType::void_(), "tir.ptx_commit_group", {})}); }

Stmt wait_group(int64_t running) {
  return make<Evaluate>({call(DataType::void_(), "tir.ptx_wait_group", {i32(running)})});
}

}  // namespace tilewright
