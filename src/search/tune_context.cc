#include "search/tune_context.h"

#include "search/space/space_generator.h"
#include "search/strategy/search_strategy.h"

namespace tilewright::search {

Status TuneContext::initialize() {
  if (space_generator) TW_RETURN_IF_ERROR(space_generator->initialize(*this));
  if (search_strategy) TW_RETURN_IF_ERROR(search_strategy->initialize(*this));
  return Ok{};
}

}  // namespace tilewright::search
