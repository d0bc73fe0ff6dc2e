#include "search/measure/outcome.h"

#include <iterator>

namespace tilewright::search {
namespace {

constexpr std::string_view kOutcomeNames[] = {"ok",           "build_error",  "build_timeout", "build_crash",
                                              "run_error",    "run_crash",    "run_timeout",   "out_of_memory",
                                              "wrong_result", "slow_stopped", "canceled"};
static_assert(std::size(kOutcomeNames) == kNumOutcomes);

}  // namespace

std::string_view outcome_name(Outcome outcome) { return kOutcomeNames[static_cast<int>(outcome)]; }

}  // namespace tilewright::search
