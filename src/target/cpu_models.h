// A table of processors by LLVM's names (cpus.def): their features and cache sizes. Also finds the name of the host's
// processor.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "support/host_cpu.h"

namespace tilewright::target {

struct CpuModel {
  std::string name;
  tw_cpu_features features;
  int64_t l1_bytes, l2_bytes, l3_bytes;
};

/// Returns all rows, in the order of cpus.def.
const std::vector<CpuModel>& cpu_models();
const CpuModel* find_cpu_model(std::string_view name);

/// Returns LLVM's name for a processor with this vendor, family, model and features: that of its model, else the
/// highest level of x86-64 that it supports (x86-64-v2, ...), or "generic" for Arm.
std::string cpu_name(const tw_host_cpu& cpu, const tw_cpu_features& features);

/// Adds a feature with all features that it implies, or removes a feature with all that imply it. Returns false if
/// there is no such feature.
bool enable_feature(tw_cpu_features& set, std::string_view name);
bool disable_feature(tw_cpu_features& set, std::string_view name);

/// Removes features whose implied features are missing. Hypervisors that mask CPUID bits report such sets.
void drop_unsupported_features(tw_cpu_features& set);

bool operator==(const tw_cpu_features& a, const tw_cpu_features& b);

}  // namespace tilewright::target
