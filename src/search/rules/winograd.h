// The rules of blocks that transform pixels and results of Winograd's convolutions.
#pragma once

#include "search/rules/apply_custom_rule.h"

namespace tilewright::search {

/// By their whole names, "meta_schedule.{cpu,cuda}.conv2d_{nhwc,nchw}_winograd_{data_pack,inverse}": the names that
/// convolutions of TVM's operators carry as "schedule_rule". Each expects the block's loops as those make them (six:
/// tiles, channels, the transform's rows and columns), and fails with what it misses.
std::vector<std::pair<std::string, CustomRule>> winograd_rules();

}  // namespace tilewright::search
