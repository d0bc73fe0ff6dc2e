// Estimates the time of a program with loops bound to blocks and threads on a GPU, from its limits: bytes that warps
// fetch from main memory, accesses of shared memory, arithmetic, and whether there are enough threads to hide
// latencies.
//
// The rates are typical ones: the model ranks schedules of one program, so only ratios between them matter.
// Nothing of a processor enters, such as vector registers, caches or strides of pages.
#pragma once

#include "ir/stmt.h"

namespace tilewright::search {

/// Where the time of a program goes, in seconds.
struct DeviceCost {
  double memory = 0;       ///< main memory
  double shared = 0;       ///< shared memory
  double compute = 0;      ///< arithmetic
  double utilization = 1;  ///< utilization of the device by the blocks and threads of the launch
  double seconds = 0;
};

DeviceCost estimate_device_cost(const Ref<Module>& module);

}  // namespace tilewright::search
