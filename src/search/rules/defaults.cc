#include "search/rules/defaults.h"

#include <charconv>

#include "search/rules/add_rfactor.h"
#include "search/rules/apply_custom_rule.h"
#include "search/rules/auto_bind.h"
#include "search/rules/auto_inline.h"
#include "search/rules/cross_thread_reduction.h"
#include "search/rules/inline_constant_scalars.h"
#include "search/rules/multi_level_tiling_tensor_core.h"
#include "search/rules/multi_level_tiling_wide_vector.h"
#include "search/rules/multi_level_tiling_with_intrin.h"
#include "search/rules/parallelize_vectorize_unroll.h"
#include "search/rules/random_compute_location.h"

namespace tilewright::search {
namespace {

using Rules = std::vector<std::shared_ptr<ScheduleRule>>;
using Requirement = ReuseType::Requirement;

/// Parameters in which the default rules of processors differ.
struct CpuNumbers {
  int64_t jobs_per_core, rfactor_innermost, tile_innermost, vector_extent;
  std::vector<int64_t> unroll_steps;
};
const CpuNumbers kX86 = {16, 64, 64, 64, {0, 16, 64, 512}};
const CpuNumbers kArm = {8, 32, 32, 32, {0, 8, 32, 256}};

AutoInlineOptions inline_of_processors() { return {.disallow_op = {"tir.exp"}}; }

MultiLevelTilingOptions tiles_of_processors(const CpuNumbers& numbers) {
  return {.structure = "SSRSRS",
          .max_innermost_factor = numbers.tile_innermost,
          .reuse_write = {Requirement::kMay, {1, 2}, "global"}};
}

Rules cpu_rules(const CpuNumbers& numbers, const std::vector<std::string>& intrins) {
  Rules rules = {std::make_shared<ApplyCustomRule>(), std::make_shared<InlineConstantScalars>(),
                 std::make_shared<AutoInline>(inline_of_processors()),
                 std::make_shared<AddRFactor>(AddRFactorOptions{numbers.jobs_per_core, numbers.rfactor_innermost})};
  for (const std::string& intrin : intrins) {
    rules.push_back(std::make_shared<MultiLevelTilingWithIntrin>(
        MultiLevelTilingWithIntrinOptions{tiles_of_processors(numbers), intrin}));
  }
  rules.push_back(std::make_shared<MultiLevelTiling>(tiles_of_processors(numbers)));
  rules.push_back(std::make_shared<ParallelizeVectorizeUnroll>(ParallelizeVectorizeUnrollOptions{
      numbers.jobs_per_core, numbers.vector_extent, numbers.unroll_steps, /*unroll_explicit=*/true}));
  rules.push_back(std::make_shared<RandomComputeLocation>());
  return rules;
}

/// Returns all rules except custom ones.
Rules rest_of_cuda_rules() {
  return {std::make_shared<MultiLevelTiling>(
              MultiLevelTilingOptions{.structure = "SSSRRSRS",
                                      .tile_binds = {"blockIdx.x", "vthread.x", "threadIdx.x"},
                                      .max_innermost_factor = 64,
                                      .vector_load_lens = {1, 2, 3, 4, 8, 16},
                                      .reuse_read = {Requirement::kMust, {4}, "shared"},
                                      .reuse_write = {Requirement::kMust, {3}, "local"}}),
          std::make_shared<InlineConstantScalars>(),
          std::make_shared<AutoInline>(AutoInlineOptions{.into_producer = true,
                                                         .disallow_if_then_else = false,
                                                         .require_injective = false,
                                                         .require_ordered = false,
                                                         .disallow_op = {}}),
          std::make_shared<CrossThreadReduction>(CrossThreadReductionOptions{{4, 8, 16, 32, 64, 128, 256, 512}}),
          std::make_shared<ParallelizeVectorizeUnroll>(
              ParallelizeVectorizeUnrollOptions{-1, -1, {0, 16, 64, 512, 1024}, /*unroll_explicit=*/true}),
          std::make_shared<AutoBind>()};
}

Rules cuda_rules() {
  Rules rules = rest_of_cuda_rules();
  rules.insert(rules.begin(), std::make_shared<ApplyCustomRule>());
  return rules;
}

/// Intrinsics of 16x16x16 products whose operands come from shared memory with a size known at launch.
std::vector<TensorCoreIntrins> wmma_groups() {
  std::vector<TensorCoreIntrins> groups;
  const std::pair<std::string, std::string> types[] = {{"f16", "f32"}, {"f16", "f16"}, {"s8", "s32"}};
  for (const auto& [in, out] : types) {
    for (const std::string trans : {"", "_trans"}) {
      const std::string size = "16x16x16_", load = "wmma_load_" + size + in, scope = "_shared_dyn";
      groups.push_back({.init = "wmma_fill_" + size + out,
                        .load_a = load + "_a" + scope,
                        .load_b = load + "_b" + trans + scope,
                        .compute = "wmma_sync_" + size + in + in + out + trans,
                        .store = "wmma_store_" + size + out + scope});
    }
  }
  return groups;
}

/// Products of 16x8 by 8x8 elements in registers, whose results are stored from there.
std::vector<TensorCoreIntrins> m16n8k8_groups() {
  std::vector<TensorCoreIntrins> groups;
  for (const std::string out : {"f16", "f32"}) {
    groups.push_back({.init = "mma_init_m16n8k8_" + out,
                      .load_a = "mma_load_m16n8k8_f16_A_shared_dyn",
                      .load_b = "mma_load_m16n8k8_f16_B_shared_dyn",
                      .compute = "mma_sync_m16n8k8_f16f16" + out,
                      .store = "mma_store_m16n8k8_" + out + "_global"});
  }
  return groups;
}

/// The rules for GPUs with tensor cores. The second rule tiles what the first one leaves.
Rules tensor_core_rules() {
  Rules rules = rest_of_cuda_rules();
  MultiLevelTilingOptions tiles = {.structure = "SSSRRSRS",
                                   .tile_binds = {"blockIdx.y", "blockIdx.x", "threadIdx.y"},
                                   .max_innermost_factor = 4,
                                   .vector_load_lens = {1, 2, 3, 4, 8, 16},
                                   .reuse_read = {Requirement::kMust, {4}, "shared.dyn"},
                                   .reuse_write = {Requirement::kMust, {2}, "shared.dyn"}};
  MultiLevelTilingOptions direct = tiles;
  direct.reuse_write = {Requirement::kNo, {}, "shared.dyn"};
  Rules first = {
      std::make_shared<ApplyCustomRule>(),
      std::make_shared<MultiLevelTilingTensorCore>(MultiLevelTilingTensorCoreOptions{std::move(tiles), wmma_groups()}),
      std::make_shared<MultiLevelTilingTensorCore>(
          MultiLevelTilingTensorCoreOptions{std::move(direct), m16n8k8_groups(), /*use_software_pipeline=*/true})};
  rules.insert(rules.begin(), first.begin(), first.end());
  return rules;
}

Rules hexagon_rules() {
  MultiLevelTilingOptions tiles = {
      .structure = "SRSRS", .max_innermost_factor = 128, .reuse_write = {Requirement::kMay, {1, 2}, "global"}};
  return {std::make_shared<ApplyCustomRule>(), std::make_shared<InlineConstantScalars>(),
          std::make_shared<AutoInline>(inline_of_processors()),
          std::make_shared<MultiLevelTilingWideVector>(MultiLevelTilingWideVectorOptions{std::move(tiles), 1024}),
          std::make_shared<ParallelizeVectorizeUnroll>(
              ParallelizeVectorizeUnrollOptions{16, 128, {0, 16, 64, 512}, /*unroll_explicit=*/true})};
}

/// The number of "sm_86"; 0 for other names.
int cuda_generation(std::string_view arch) {
  int number = 0;
  if (arch.starts_with("sm_")) std::from_chars(arch.data() + 3, arch.data() + arch.size(), number);
  return number;
}

}  // namespace

std::string rule_kind(const Target& target) {
  switch (target.kind) {
    case TargetKind::kC:
      return "c";
    case TargetKind::kCuda:
    case TargetKind::kOpenCl:
      return cuda_generation(target.arch) >= 75 ? "cuda-tensorcore" : "cuda";
    case TargetKind::kHexagon:
      return "hexagon";
    case TargetKind::kInterpreter:
      return "llvm";
    case TargetKind::kCpu:
      break;
  }
  if (target.has("avx512vnni")) return "vnni";
  if (target.has("avxvnni")) return "avxvnni";
  if (target.has("avx512f") && target.has("avx512bw")) return "avx512";
  if (target.has("dotprod")) return "dotprod";
  if (target.has("neon")) return "asimd";
  return "llvm";
}

Diagnostic no_defaults(std::string_view kind) {
  return argument_error("space/no-defaults", "Unsupported kind: " + std::string(kind),
                        "name the rules, postprocessors and mutators yourself");
}

Result<Rules> default_schedule_rules(std::string_view kind) {
  if (kind == "llvm") return cpu_rules(kX86, {});
  if (kind == "avx512") return cpu_rules(kX86, {"dot_16x4_avx512"});
  if (kind == "vnni") return cpu_rules(kX86, {"dot_16x4_vnni"});
  if (kind == "avxvnni") return cpu_rules(kX86, {"dot_16x4_avxvnni"});
  if (kind == "asimd" || kind == "neon") return cpu_rules(kArm, {"dot_4x4_i8i8s32_neon"});
  if (kind == "dotprod") {
    return cpu_rules(kArm, {"dot_4x4_i8i8s32_sdot", "dot_4x4_u8u8u32_udot", "dot_4x4_u8u8i32_hdot"});
  }
  if (kind == "cuda") return cuda_rules();
  if (kind == "cuda-tensorcore") return tensor_core_rules();
  if (kind == "hexagon") return hexagon_rules();
  return no_defaults(kind);
}

}  // namespace tilewright::search
