#include "codegen/tile_loads.h"

#include <algorithm>
#include <optional>

#include "ir/build.h"
#include "ir/processor_instructions.h"
#include "ir/strides.h"
#include "ir/traverse.h"

namespace tilewright::codegen {
namespace {

constexpr double kTileBytes = 1024;
/// Times that a byte is loaded which pay for the copy.
constexpr double kOften = 4;

/// T.call_llvm_intrin(type, name, tile, pointer, bytes from row to row)
bool is_tile_load(const Call& call) {
  const ProcessorInstruction* instruction = instruction_of(call);
  return instruction && instruction->form == ProcessorInstruction::kTileLoad && call.args.size() == 4;
}

/// The value of a product of constants, as intrinsics have them.
std::optional<int64_t> value_of(const Expr& e) {
  if (const Cast* cast = e.as<Cast>()) return value_of(cast->value);
  const Mul* product = e.as<Mul>();
  if (!product) return const_int(e);
  auto a = value_of(product->a), b = value_of(product->b);
  return a && b ? std::optional(*a * *b) : std::nullopt;
}

}  // namespace

std::unordered_map<NodeRef, double> bytes_of_tile_loads(const Stmt& body) {
  std::unordered_map<NodeRef, double> bytes;
  double trips = 1;
  visit(
      body,
      [&](const Ref<For>& loop, Visitor& v) {
        const double outer = trips;
        trips *= static_cast<double>(std::max<int64_t>(const_int(loop->extent).value_or(1), 0));
        v(loop->body);
        trips = outer;
      },
      [&](const Ref<Call>& call, Visitor& v) {
        v.descend(call);
        if (!is_tile_load(*call)) return;
        const Call* pointer = call->args[2].as<Call>();
        auto step = value_of(call->arg(3));
        if (!pointer || intrinsic_of(*pointer) != Intrinsic::k_tvm_access_ptr || pointer->args.size() < 2) return;
        if (step && *step % kLineBytes == 0) bytes[pointer->args[1]] += trips * kTileBytes;
      });
  return bytes;
}

int64_t bytes_worth_aligning(const Buffer& buffer, double loaded) {
  auto bytes = known_product(buffer.dtype.bytes(), buffer.shape);
  const bool compact = buffer.strides.empty() && (!buffer.elem_offset.defined() || const_int(buffer.elem_offset) == 0);
  return bytes && compact && loaded >= kOften * static_cast<double>(*bytes) ? *bytes : 0;
}

}  // namespace tilewright::codegen
