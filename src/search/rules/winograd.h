// Schedule rules for the blocks of Winograd convolutions that transform input tiles and results.
#pragma once

#include "search/rules/apply_custom_rule.h"

namespace tilewright::search {

/// Returns the rules by name, "meta_schedule.{cpu,cuda}.conv2d_{nhwc,nchw}_winograd_{data_pack,inverse}": the values of
/// the annotation "schedule_rule" in the convolutions of TVM's operators. Each rule expects the six loops that those
/// have around the block (tiles, channels, rows and columns of the transform), and fails if they differ.
std::vector<std::pair<std::string, CustomRule>> winograd_rules();

}  // namespace tilewright::search
