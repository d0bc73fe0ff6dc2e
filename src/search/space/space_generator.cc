#include "search/space/space_generator.h"

#include "search/mutators/defaults.h"
#include "search/postprocs/defaults.h"
#include "search/rules/defaults.h"

namespace tilewright::search {

Status SpaceGenerator::fill_in(std::string_view kind) {
  if (!schedule_rules) {
    TW_TRY(rules, default_schedule_rules(kind));
    schedule_rules = std::move(rules);
  }
  if (!postprocs) {
    TW_TRY(known, default_postprocs(kind));
    postprocs = std::move(known);
  }
  if (!mutators) {
    TW_TRY(known, default_mutators(kind));
    mutators = std::move(known);
  }
  return Ok{};
}

Status SpaceGenerator::initialize(const TuneContext& context) {
  random_ = Random(context.seed);
  // Without a target there are no defaults: omitted parts stay empty.
  if (context.target && (!schedule_rules || !postprocs || !mutators)) {
    TW_RETURN_IF_ERROR(fill_in(rule_kind(*context.target)));
  }
  for (const auto& rule : schedule_rules.value_or(ScheduleRules())) TW_RETURN_IF_ERROR(rule->initialize(context));
  for (const auto& postproc : postprocs.value_or(Postprocs())) TW_RETURN_IF_ERROR(postproc->initialize(context));
  for (const auto& [mutator, probability] : mutators.value_or(Mutators())) {
    TW_RETURN_IF_ERROR(mutator->initialize(context));
  }
  return Ok{};
}

void SpaceGenerator::clone_parts() {
  if (schedule_rules) {
    for (auto& rule : *schedule_rules) rule = rule->clone();
  }
  if (postprocs) {
    for (auto& postproc : *postprocs) postproc = postproc->clone();
  }
  if (mutators) {
    for (auto& [mutator, probability] : *mutators) mutator = mutator->clone();
  }
}

}  // namespace tilewright::search
