// Default schedule rules, which make the space of a program.
#pragma once

#include <string>
#include <string_view>

#include "search/rules/schedule_rule.h"

namespace tilewright::search {

/// Returns the name of a target's default rules: "llvm", "avx512", "vnni", "avxvnni", "asimd", "dotprod", "cuda",
/// "cuda-tensorcore"; "c" has none.
std::string rule_kind(const Target& target);
/// The kinds that rule_kind() gives, and "neon", another name of "asimd". ArgumentError "space/no-defaults" for any
/// other.
Result<std::vector<std::shared_ptr<ScheduleRule>>> default_schedule_rules(std::string_view kind);

/// No list of rules, postprocessors or mutators is known for the kind.
Diagnostic no_defaults(std::string_view kind);

}  // namespace tilewright::search
