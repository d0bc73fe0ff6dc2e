// A function that checks what another one declares of the arrays that it is given.
//
//   def spmm(P, J, ...):                                      def spmm_validate(P, J, ...):
//     T.assume_buffer_domain(P, [0, nnz + 1], ...)              for i in range(m + 1):
//     T.assume_buffer_domain(J, [0, n], ...)                      assert 0 <= P[i] and P[i] < nnz + 1, "P[", i, "] ..."
//     ...                                                         if i > 0: assert P[i - 1] <= P[i], ...
//                                                               for i in range(nnz): ...
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/stmt.h"

namespace tilewright::analysis {

/// Suffix of the names of such functions.
inline constexpr const char* kValidateSuffix = "_validate";

/// The annotation of the root block: a List of Lists of a condition over the variables of the parameters, the message
/// for calls that do not meet it, and its hint (analysis/size_limits.h).
inline constexpr const char* kRequiredSizes = "required_sizes";

/// Checks of what the root block declares of parameters, in the order in which they run.
struct DeclaredChecks {
  std::vector<Stmt> checks;
  std::vector<Def<Buffer>> allocated;  ///< memory that they use
};
DeclaredChecks declared_checks(const PrimFunc& func);

/// The function for the declarations of the root block, with the same parameters; nothing where it declares nothing of
/// them. It names the first position of an array that breaks a declaration. Arrays of offsets are checked before those
/// whose segments they are, so that nothing is read outside of arrays.
std::optional<Ref<PrimFunc>> validator_of(const Ref<PrimFunc>& func);

}  // namespace tilewright::analysis
