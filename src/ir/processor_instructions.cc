#include "ir/processor_instructions.h"

#include "ir/op.h"

namespace tilewright {
namespace {

constexpr DataType u8 = DataType::uint(8), s8 = DataType::int_(8), s16 = DataType::int_(16), s32 = DataType::int_(32),
                   u32 = DataType::uint(32), f16 = DataType::float_(16), bf16 = DataType::bfloat16(),
                   f32 = DataType::float_(32);
constexpr int kLanesOfTile = 16;

constexpr ProcessorInstruction kInstructions[] = {
#define DOT(name, left, right, sums, lanes, features) \
  {name, ProcessorInstruction::kDot, features, left, right, sums, lanes},
#define TILE_DOT(name, left, right, sums, features) \
  {name, ProcessorInstruction::kTileDot, features, left, right, sums, kLanesOfTile},
#define X(name, form, features) {name, ProcessorInstruction::form, features, {}, {}, {}, 0},
#include "ir/processor_instructions.def"
};

/// Removes and returns the part of the list before the first separator.
std::string_view next(std::string_view& list, char separator) {
  const size_t end = std::min(list.find(separator), list.size());
  std::string_view part = list.substr(0, end);
  list.remove_prefix(std::min(end + 1, list.size()));
  return part;
}

bool has_all(const Target& target, std::string_view features) {
  while (!features.empty()) {
    if (!target.has(next(features, ','))) return false;
  }
  return true;
}

}  // namespace

bool ProcessorInstruction::is_on(const Target& target) const {
  std::string_view rest = features;
  do {
    if (has_all(target, next(rest, '|'))) return true;
  } while (!rest.empty());
  return false;
}

std::vector<std::string> ProcessorInstruction::first_features() const {
  std::string_view rest = features, first = next(rest, '|');
  std::vector<std::string> names;
  while (!first.empty()) names.emplace_back(next(first, ','));
  return names;
}

const ProcessorInstruction* find_instruction(std::string_view name) {
  for (const ProcessorInstruction& instruction : kInstructions) {
    if (instruction.name == name) return &instruction;
  }
  return nullptr;
}

const ProcessorInstruction* instruction_of(const Call& call) {
  const Intrinsic intrinsic = intrinsic_of(call);
  if (intrinsic != Intrinsic::k_call_llvm_intrin && intrinsic != Intrinsic::k_call_llvm_pure_intrin) return nullptr;
  const StringImm* name = call.args.empty() ? nullptr : call.args[0].as<StringImm>();
  return name ? find_instruction(name->value) : nullptr;
}

const ProcessorInstruction* dot_instruction(ProcessorInstruction::Form form, const DotTypes& types, int64_t lanes,
                                            const Target* target) {
  const ProcessorInstruction* widest = nullptr;
  for (const ProcessorInstruction& row : kInstructions) {
    if (row.form != form || row.left != types.left || row.right != types.right || row.sums != types.sums) continue;
    if (lanes % row.lanes != 0 || (widest && row.lanes < widest->lanes)) continue;
    const bool fits =
        form == ProcessorInstruction::kTileDot || !target || row.sums.bits * row.lanes <= target->vector_bits;
    if (!target || (fits && row.is_on(*target))) widest = &row;
  }
  return widest;
}

}  // namespace tilewright
