#include "search/postprocs/defaults.h"

#include <algorithm>

#include "search/postprocs/postprocs.h"
#include "search/rules/defaults.h"

namespace tilewright::search {

Result<std::vector<std::shared_ptr<Postproc>>> default_postprocs(std::string_view kind) {
  std::vector<std::shared_ptr<Postproc>> list = {std::make_shared<DisallowDynamicLoop>()};
  auto add = [&]<class... Kinds>(std::shared_ptr<Kinds>... postprocs) { (list.push_back(std::move(postprocs)), ...); };
  if (kind == "cuda" || kind == "cuda-tensorcore") {
    add(std::make_shared<RewriteCooperativeFetch>(), std::make_shared<RewriteUnboundBlock>(),
        std::make_shared<RewriteParallelVectorizeUnroll>(), std::make_shared<RewriteReductionBlock>(),
        std::make_shared<VerifyGPUCode>());
    // Behind the verifier, as published: what an intrinsic stands for needs no check of its own.
    if (kind == "cuda-tensorcore") add(std::make_shared<RewriteTensorize>());
    return list;
  }
  constexpr std::string_view kWithIntrinsics[] = {"vnni", "avxvnni", "avx512", "asimd", "neon", "dotprod"};
  const bool tensorizes = std::ranges::find(kWithIntrinsics, kind) != std::end(kWithIntrinsics);
  if (!tensorizes && kind != "llvm" && kind != "hexagon") return no_defaults(kind);
  add(std::make_shared<RewriteParallelVectorizeUnroll>(), std::make_shared<RewriteReductionBlock>());
  if (tensorizes) add(std::make_shared<RewriteTensorize>(RewriteTensorizeOptions{true}));
  add(std::make_shared<RewriteLayout>());
  if (kind == "hexagon") add(std::make_shared<VerifyVTCMLimit>());
  return list;
}

}  // namespace tilewright::search
