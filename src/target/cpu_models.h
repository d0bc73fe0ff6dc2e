// Facts about processors by LLVM's name, and the name of the processor in this machine.
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

/// All of them, in the order of cpus.def.
const std::vector<CpuModel>& cpu_models();
const CpuModel* find_cpu_model(std::string_view name);

/// The name for a processor with this vendor, family, model and features: that of its model, or of the highest level of
/// x86-64 (x86-64-v2, ...) that it has, or "generic" of Arm.
std::string cpu_name(const tw_host_cpu& cpu, const tw_cpu_features& features);

/// Adds a feature and all it builds on; removes one and all that build on it. False: no such feature.
bool enable_feature(tw_cpu_features& set, std::string_view name);
bool disable_feature(tw_cpu_features& set, std::string_view name);

/// Removes what builds on something that is not there, as hypervisors with masks of their own produce it.
void drop_unsupported_features(tw_cpu_features& set);

bool operator==(const tw_cpu_features& a, const tw_cpu_features& b);

}  // namespace tilewright::target
