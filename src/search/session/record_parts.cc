#include "search/session/record_parts.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "search/measure/outcome.h"
#include "support/json_nesting.h"

namespace tilewright::search {

RunnerResult result_of(const Record& record) {
  RunnerResult result;
  if (record.outcome == "ok" || record.outcome == outcome_name(Outcome::kSlowStopped)) result.run_secs = record.seconds;
  for (double& seconds : result.run_secs) seconds *= record.host_factor();
  if (result.run_secs.empty()) result.error_msg = record.outcome + ": " + record.error;
  return result;
}

std::string decisions_json(const std::string& trace) {
  // The second half of [[instructions], [[step, decision], ...]].
  if (nests_too_deep(trace)) return "[]";
  auto json = nlohmann::json::parse(trace, nullptr, false);
  return json.is_array() && json.size() == 2 ? json[1].dump() : "[]";
}

std::string tolerances_json(const Arguments& arguments) {
  std::string text;
  for (size_t i = 0; i < arguments.specs().size(); ++i) {
    const ArgumentSpec& spec = arguments.specs()[i];
    if (spec.role == ArgumentRole::kInput) continue;
    text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", nlohmann::json(spec.name).dump(),
                        arguments.tolerance(i).to_json());
  }
  return text;
}

}  // namespace tilewright::search
