#pragma once

#include "schedule/instruction_fields.h"

namespace tilewright::schedule {

struct Unannotate {
  BlockOrLoop block_or_loop;
  std::string ann_key;
  using Members = Fields<&Unannotate::block_or_loop, &Unannotate::ann_key>;
  using Returns = None;
  static constexpr int kRequired = 2;
  static constexpr Family kFamily = Family::kTransform;
  static constexpr std::string_view kDoc = R"(Remove an annotation.

Args:
    block_or_loop: what was annotated.
    ann_key: the key.)";
};

Result<Plan> plan(const State& state, const Unannotate& instruction);

}  // namespace tilewright::schedule
