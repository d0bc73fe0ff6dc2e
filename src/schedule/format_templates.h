// Formats that schedules know by name. Python (tilewright/sparse/) implements the effect of a format on a program, and
// registers one function for all formats.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ir/stmt.h"
#include "support/result.h"

namespace tilewright::schedule {

struct FormatRequest {
  Ref<PrimFunc> func;
  std::string buffer, format;
  std::vector<int64_t> parameters;  ///< parameters of the format
  int64_t count;                    ///< number of rules; 0: as many as the format has
};

/// A program over the format, and the names of the iterations that run over its rules, in order.
struct FormatDecomposition {
  Ref<PrimFunc> func;
  std::vector<std::string> iterations;
};

using FormatTemplates = std::function<Result<FormatDecomposition>(const FormatRequest&)>;

void set_format_templates(FormatTemplates templates);
/// ScheduleError "decompose_format/P2" where nothing is registered.
Result<FormatDecomposition> decompose_by_template(const FormatRequest& request);

}  // namespace tilewright::schedule
