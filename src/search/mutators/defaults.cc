#include "search/mutators/defaults.h"

#include "search/rules/defaults.h"

namespace tilewright::search {

Result<std::vector<std::pair<std::shared_ptr<Mutator>, double>>> default_mutators(std::string_view kind) {
  if (kind == "c") return no_defaults(kind);
  return std::vector<std::pair<std::shared_ptr<Mutator>, double>>{};
}

}  // namespace tilewright::search
