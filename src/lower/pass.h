// What all lowering passes share. A pass is a free function from function to function.
#pragma once

#include <string>
#include <vector>

#include "ir/stmt.h"
#include "support/result.h"
#include "target/target.h"

namespace tilewright::lower {

/// What became of a buffer of scope "local": the search refuses candidates whose tiles do not live in registers.
struct Promotion {
  std::string function, buffer;
  bool promoted = false;
  int registers = 0;   ///< vector registers that its values occupy at once, if promoted
  std::string reason;  ///< why not
};

/// Beside the program: what passes may look at, and what they report.
struct PassContext {
  const Target& target;
  std::string function;  ///< name of the function being lowered
  std::vector<Promotion> promotions;
};

using PassResult = Result<Ref<PrimFunc>>;

/// The function with another body.
Ref<PrimFunc> with_body(const Ref<PrimFunc>& func, Stmt body);

}  // namespace tilewright::lower
