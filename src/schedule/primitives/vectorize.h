#pragma once

#include "schedule/instruction_fields.h"

namespace tilewright::schedule {

struct Vectorize {
  LoopRV loop;
  using Members = Fields<&Vectorize::loop>;
  using Returns = None;
  static constexpr std::string_view kDoc = R"(Let the iterations of a loop run as the lanes of vector instructions.

A loop that goes through the values of a sum, product, minimum, maximum, conjunction or disjunction gives each lane a
partial result; these are put together at the end. Sums and products of floats are rounded in another order then.

Args:
    loop: a loop whose iterations are independent of one another, or the steps of such a reduction.)";
};

}  // namespace tilewright::schedule
