// Requirements of a function on its arguments, derived from its parameters: the contents of the tw_signature table.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ir/stmt.h"
#include "runtime/abi.h"
#include "support/result.h"

namespace tilewright::codegen {

struct Signature {
  /// A dimension, stride or offset, as tw_dim.
  struct Dim {
    int32_t kind = TW_DIM_CONSTANT;
    int64_t value = 0;
  };
  struct Param {
    std::string name;
    Ref<Var> var;        ///< for a tensor: its parameter; for a scalar: the scalar itself
    Ref<Buffer> buffer;  ///< null for scalars
    std::vector<Dim> shape, strides;
    Dim elem_offset;
    bool written = false;
    bool in_place = false;     ///< may be the tensor of the written parameter, or of an input (in_place.h)
    int64_t alignment = 0;     ///< in bytes; 0: of the element type
    int64_t aligned_copy = 0;  ///< bytes to copy if they are not aligned to a cache line; 0: never (tile_loads.h)
    int symbol = -1;           ///< scalars: the slot
    int position = 0;          ///< number among the tensors, or among the scalars
  };
  struct Symbol {
    Ref<Var> var;  ///< null for the slot of an expression
    std::string name;
    int bits = 64;
  };
  /// Slot `slot`, bound by dimension `dim` of tensor `tensor`, has to equal `value`. `dim` counts as in tw_fail_dim:
  /// the dimensions, the strides, then the element offset.
  struct Check {
    int tensor = 0, dim = 0, slot = 0;
    Expr value;
    std::string text;
  };
  std::string name;
  std::vector<Param> params;
  std::vector<Symbol> symbols;
  std::vector<Check> checks;
  int num_tensors = 0, num_scalars = 0;

  /// Returns the slots that are not scalar parameters: the body's arguments after its parameters, in this order.
  std::vector<int> shape_slots() const;
};

/// Returns the signature of a function; ScriptError "codegen/..." for parameters that no caller could pass. `module`:
/// contains the kernels that the function launches, whose stores show which parameters are written.
Result<Signature> signature_of(const Ref<PrimFunc>& func, const std::string& name, const Ref<Module>& module = {});

/// Spellings of variables in C.
struct NamesInC {
  std::function<std::string(const Expr&)> name_of;
  /// Whether a variable may be negative. If this is set, the text is exact C: quotients round towards minus infinity,
  /// as in programs. Otherwise it is for messages: quotients are written as for nonnegative operands, without casts.
  std::function<bool(const Ref<Var>&)> may_be_negative = {};
};

/// Returns index arithmetic as C text: "n + 1". Nothing for other expressions.
std::optional<std::string> infix_text(const Expr& e, const NamesInC& names);

/// Returns the type as a DLPack type; bool is kDLBool.
DLDataType dlpack_type(DataType type);

}  // namespace tilewright::codegen
