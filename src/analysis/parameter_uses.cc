#include "analysis/parameter_uses.h"

#include "arith/analyzer.h"
#include "ir/build.h"
#include "ir/op.h"
#include "ir/substitute.h"
#include "ir/traverse.h"
#include "support/ranges.h"

namespace tilewright::analysis {
namespace {

const Ref<Buffer>& memory_of(const ParameterUse& param) {
  return param.buffer.defined() ? param.buffer : param.pointee;
}

Ref<Var> pointer_of(const ParameterUse& param) {
  return param.buffer.defined() ? Ref<Var>(param.buffer->data) : Ref<Var>(param.param);
}

Expr number_of_elements(const Buffer& buffer) {
  Expr product = i64(1);
  for (const Expr& extent : buffer.shape) product = product * cast(DataType::int_(64), extent);
  return product;
}

/// Whether a parameter of the callee has as many elements as the caller's parameter that is passed for it.
bool is_all_of(const ParameterUse& use, const VarMap& arguments, const ParameterUse& param) {
  const Ref<Buffer>& inner = memory_of(use);
  const Ref<Buffer>& outer = memory_of(param);
  if (!inner.defined() || !outer.defined()) return false;
  return arith::Analyzer().can_prove_equal(substitute(number_of_elements(*inner), arguments),
                                           number_of_elements(*outer));
}

void note_early_read(ParameterUse& param, std::string reader) {
  if (!param.read_before_written) param.reader = std::move(reader);
  param.read_before_written = true;
}

}  // namespace

void ParameterUses::enter_loop(const For& loop, bool surely_iterates) {
  around_.always_runs &= surely_iterates;
  written_before_.enter_loop(loop, surely_iterates);
}

void ParameterUses::enter_block(const BlockRealize& realize, bool covers_domain, bool is_conditional) {
  const bool is_sure = covers_domain && !is_conditional;
  around_.always_runs &= is_sure;
  around_.block = &*realize.block;
  written_before_.enter_block(realize, is_sure);
}

void ParameterUses::enter_condition() {
  around_.always_runs = false;
  written_before_.enter_condition();
}

ParameterUse* ParameterUses::find(const Ref<Buffer>& buffer) const {
  if (around_.in_contract) return nullptr;
  const Ref<Buffer> source = written_before_.source_of(buffer);
  for (ParameterUse& param : params_) {
    if (param.buffer == source || pointer_of(param) == source->data) return &param;
  }
  return nullptr;
}

void ParameterUses::load(ParameterUse& param, const BufferLoad& load) {
  note_read(param, written_before_.part(load.buffer, load.indices));
}

void ParameterUses::store(ParameterUse& param, const BufferStore& store) {
  param.written = true;
  const WrittenBefore::Part part = written_before_.part(store.buffer, store.indices);
  if (!store.predicate.defined() && part.buffer == memory_of(param)) note_write(param, part);
}

void ParameterUses::read_region(ParameterUse& param, const BufferRegion& region) {
  note_read(param, {region.buffer, region.region});
}

void ParameterUses::write_region(ParameterUse& param, const BufferRegion& region) {
  param.written = true;
  if (param.buffer == region.buffer) note_write(param, {region.buffer, region.region});
}

void ParameterUses::declare(const Ref<Buffer>& buffer) {
  for (ParameterUse& param : params_) {
    if (!memory_of(param).defined() && buffer->data == param.param) param.pointee = buffer;
  }
}

void ParameterUses::pass_pointers(const Call& call) {
  if (intrinsic_of(call) == Intrinsic::k_tvm_access_ptr) {
    if (call.args.size() != 5) return;
    const auto mask = const_int(call.arg(4));
    pass_to_call(call.args[1], !mask || (*mask & 1) != 0, !mask || (*mask & 2) != 0, "a call");
    return;
  }
  const GlobalVar* name = call.op.as<GlobalVar>();
  const std::string callee = name ? "a call of '" + name->name_hint + "'" : "a call";
  for (const NodeRef& arg : call.args) pass_to_call(arg, true, true, callee);
}

void ParameterUses::pass_pointers(const Call& call, const PrimFunc& callee, const std::vector<ParameterUse>& inside) {
  VarMap arguments;
  for (size_t i : indices_of(call.args)) {
    if (call.args[i].sort() == Sort::kExpr) arguments[callee.params[i]] = call.arg(i);
  }
  const std::string name = "function '" + call.op.as<GlobalVar>()->name_hint + "'";
  for (size_t i : indices_of(call.args)) {
    const ParameterUse& use = inside[i];
    const bool reads = use.read_before_written || (use.read && !use.written);
    ParameterUse* param = pass_to_call(call.args[i], reads, use.written, name);
    if (!param || !use.written_in_full || !is_all_of(use, arguments, *param)) continue;
    written_before_.write(WrittenBefore::all_of(memory_of(*param)));
    if (around_.always_runs) param->written_in_full = true;
  }
}

ParameterUse* ParameterUses::pass_to_call(const NodeRef& pointer, bool reads, bool writes, const std::string& callee) {
  if (around_.in_contract || !pointer.is<Var>()) return nullptr;
  for (ParameterUse& param : params_) {
    if (pointer_of(param) != pointer || !Expr(pointer).dtype().is_handle()) continue;
    const Ref<Buffer>& memory = memory_of(param);
    if (reads && !(memory.defined() && written_before_.has(WrittenBefore::all_of(memory)))) {
      note_early_read(param, "it is passed to " + callee + ", which may read it");
    }
    param.read |= reads;
    param.written |= writes;
    return &param;
  }
  return nullptr;
}

bool ParameterUses::is_number(const Ref<Var>& var) const {
  const bool is_parameter = any_of(params_, [&](const ParameterUse& param) { return param.param == var; });
  return is_parameter && none_of(params_, [&](const ParameterUse& param) {
           const Ref<Buffer>& memory = memory_of(param);
           return memory.defined() && any_of(memory->shape, [&](const Expr& extent) { return uses_var(extent, var); });
         });
}

void ParameterUses::note_read(ParameterUse& param, const WrittenBefore::Part& part) {
  param.read = true;
  if (!written_before_.has(part)) note_early_read(param, reader());
}

void ParameterUses::note_write(ParameterUse& param, const WrittenBefore::Part& part) {
  written_before_.write(part);
  if (around_.always_runs && written_before_.writes_whole_buffer(part)) param.written_in_full = true;
}

std::string ParameterUses::reader() const {
  return around_.block ? "block '" + around_.block->name_hint + "' reads it" : std::string("the program reads it");
}

}  // namespace tilewright::analysis
