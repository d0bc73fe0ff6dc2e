#include "search/mutators/defaults.h"

#include "search/mutators/mutators.h"
#include "search/rules/defaults.h"

namespace tilewright::search {

Result<std::vector<std::pair<std::shared_ptr<Mutator>, double>>> default_mutators(std::string_view kind) {
  std::vector<std::pair<std::shared_ptr<Mutator>, double>> list = {{std::make_shared<MutateTileSize>(), 0.9}};
  if (kind == "cuda" || kind == "cuda-tensorcore") {
    list.emplace_back(std::make_shared<MutateUnroll>(), 0.08);
    list.emplace_back(std::make_shared<MutateThreadBinding>(), 0.02);
    return list;
  }
  for (std::string_view known : {"llvm", "vnni", "avxvnni", "avx512", "asimd", "neon", "dotprod", "hexagon"}) {
    if (kind != known) continue;
    list.emplace_back(std::make_shared<MutateComputeLocation>(), 0.05);
    list.emplace_back(std::make_shared<MutateUnroll>(), 0.03);
    list.emplace_back(std::make_shared<MutateParallel>(), 0.02);
    return list;
  }
  return no_defaults(kind);
}

}  // namespace tilewright::search
