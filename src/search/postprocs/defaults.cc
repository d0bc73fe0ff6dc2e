#include "search/postprocs/defaults.h"

#include "search/rules/defaults.h"

namespace tilewright::search {

Result<std::vector<std::shared_ptr<Postproc>>> default_postprocs(std::string_view kind) {
  if (kind == "c") return no_defaults(kind);
  return std::vector<std::shared_ptr<Postproc>>{};
}

}  // namespace tilewright::search
