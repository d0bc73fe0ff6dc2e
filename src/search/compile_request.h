// What a build helper is asked to do with a lowered module, as text on the wire.
#pragma once

#include <string>
#include <string_view>

#include "codegen/codegen.h"
#include "support/result.h"
#include "target/target.h"

namespace tilewright::search {

struct CompileRequest {
  Target target;
  codegen::Effort effort = codegen::Effort::kTuning;

  std::string to_json() const;
  static Result<CompileRequest> from_json(std::string_view text);
};

/// The compile function of the build helper: a lowered module (to_json of ir/json.h) and a request, to object code.
Result<std::string> compile_request(std::string_view module, std::string_view request);

}  // namespace tilewright::search
