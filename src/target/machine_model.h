// Parameters of a processor that cost estimates of schedules assume: the rows of machine_model.def.
#pragma once

namespace tilewright {

struct MachineModel {
#define TW_MACHINE(name, value) double name = value;
#include "target/machine_model.def"
#undef TW_MACHINE
};

}  // namespace tilewright
