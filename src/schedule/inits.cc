#include "schedule/inits.h"

#include "analysis/skipped_init.h"

namespace tilewright::schedule {

Status require_inits_run(const Place& block, const char* code) {
  auto skipped = analysis::find_skipped_init(block.tree->stmt(0), &block.block());
  if (!skipped) return Ok{};
  return refuse(code, skipped->what + ": " + skipped->why, {block.node(), skipped->block}, skipped->hint);
}

}  // namespace tilewright::schedule
