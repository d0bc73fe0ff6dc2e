// A small change of the decisions of a good candidate.
#pragma once

#include <memory>
#include <optional>

#include "search/tune_context.h"

namespace tilewright::search {

class Mutator {
 public:
  virtual ~Mutator() = default;
  /// Called once, before the first apply().
  virtual Status initialize(const TuneContext& context) = 0;
  /// The trace, without what postprocessors did, with a decision changed; none where there is nothing to change.
  /// Depends on nothing but its arguments and what initialize() saw. Several threads may call it at once.
  virtual Result<std::optional<schedule::Trace>> apply(const schedule::Trace& trace,
                                                       schedule::Random& random) const = 0;
  virtual std::shared_ptr<Mutator> clone() const = 0;
};

}  // namespace tilewright::search
