#include "search/measure/outcome.h"

#include <iterator>

namespace tilewright::search {
namespace {

constexpr std::string_view kNames[] = {"ok",           "build_error",  "build_timeout", "build_crash",
                                       "run_error",    "run_crash",    "run_timeout",   "out_of_memory",
                                       "wrong_result", "slow_stopped", "canceled"};
static_assert(std::size(kNames) == kNumOutcomes);

}  // namespace

std::string_view outcome_name(Outcome outcome) { return kNames[static_cast<int>(outcome)]; }

}  // namespace tilewright::search
