// Single elements of what a program computes, at the cost of what they depend on.
//
//   TW_TRY(values, interpret_at(module, "main", args, {{2, {7, 9}}}, options));   // C[7, 9] of main(A, B, C)
//
// Each element is the result of a slice of the program (slice.h), executed by the reference interpreter with the same
// checks. Where a program cannot be sliced, all of it runs, once for all elements.
#pragma once

#include <optional>
#include <vector>

#include "interpreter/interpreter.h"

namespace tilewright {

/// An element of the tensor that is passed for a parameter.
struct ElementOfArgument {
  size_t param = 0;
  std::vector<int64_t> index;
};

/// Returns the values of elements after a call; the arguments are not changed. The time limit of the options is for all
/// elements together: elements that it does not suffice for have no value.
Result<std::vector<std::optional<ScalarArg>>> interpret_at(const Ref<Module>& module, std::string_view name,
                                                           const std::vector<InterpretArg>& args,
                                                           const std::vector<ElementOfArgument>& elements,
                                                           const InterpretOptions& options = {});

}  // namespace tilewright
