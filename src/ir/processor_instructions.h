// Instructions of processors that programs call by name: what they compute and which targets have them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/expr.h"
#include "target/target.h"

namespace tilewright {

/// A row of ir/processor_instructions.def.
struct ProcessorInstruction {
  enum Form : uint8_t { kOther, kDot, kTileDot, kTileLoad };
  std::string_view name;  ///< name of LLVM's intrinsic
  Form form;
  std::string_view features;
  DataType left, right, sums;  ///< element types, of kDot and kTileDot
  int lanes = 0;               ///< sums of one instruction, of a tile in one row

  bool is_on(const Target& target) const;
  /// Feature names of the first alternative.
  std::vector<std::string> first_features() const;
  /// Products that one sum takes.
  int group() const { return sums.bits / left.bits; }
};

/// Null if the table has none of that name.
const ProcessorInstruction* find_instruction(std::string_view name);
/// The instruction that T.call_llvm_intrin or T.call_llvm_pure_intrin names; null for all other calls.
const ProcessorInstruction* instruction_of(const Call& call);

struct DotTypes {
  DataType left, right, sums;
};
/// The widest instruction of that form whose lanes divide `lanes`; null if there is none. With a target: that it has,
/// and that fills no more than its vectors.
const ProcessorInstruction* dot_instruction(ProcessorInstruction::Form form, const DotTypes& types, int64_t lanes,
                                            const Target* target);

}  // namespace tilewright
