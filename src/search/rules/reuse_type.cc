#include "search/rules/reuse_type.h"

namespace tilewright::search {

Result<ReuseType::Requirement> ReuseType::parse(const std::string& text) {
  if (text == "no") return Requirement::kNo;
  if (text == "may") return Requirement::kMay;
  if (text == "must") return Requirement::kMust;
  return argument_error("reuse/requirement", "'" + text + "' does not say whether there is a copy",
                        "write \"no\", \"may\" or \"must\"");
}

}  // namespace tilewright::search
