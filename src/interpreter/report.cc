// Messages for errors of a running program.
#include "interpreter/machine.h"

#include "support/ranges.h"

namespace tilewright::interpreter {

/// "block 'C'", or the function outside of blocks.
std::string Machine::where(int site) const {
  const Ref<Block>& block = program_.sites[site].block;
  if (block.defined() && block->name_hint != "root") return "block '" + block->name_hint + "'";
  return current_ && !current_->frames.empty() ? "function '" + current_->frames.back().function->name + "'"
                                               : "the program";
}

std::string Machine::element(const Access& access, const Slot* r, int lane) const {
  std::string text = program_.sites[access.site].buffer->name + "[";
  for (const Access::Dimension& d : access.dimensions) {
    if (&d != access.dimensions.data()) text += ", ";
    text += std::to_string(r[d.vector ? d.index + lane : d.index].i);
  }
  return text + "]";
}

bool Machine::fail(std::string code, std::string message, int site, std::string hint) {
  return fail(script_error(std::move(code), std::move(message), std::move(hint)), site);
}

bool Machine::fail(Diagnostic failure, int site) {
  failure_ = std::move(failure);
  const NodeRef& node = program_.sites[site].node;
  if (node.defined()) {
    failure_->span = node.span();
    failure_->nodes.push_back(keep(node));
  }
  return false;
}

bool Machine::fail_assumption(const Insn& in, const Slot* r) {
  if (in.b == kNone) {
    return fail("interpret/assumption", where(in.extra) + ": what T.assume states does not hold", in.extra);
  }
  return fail("interpret/assumption",
              where(in.extra) + " declares that " + program_.sites[in.extra].what + ", but the value at position " +
                  std::to_string(r[in.b].i) + " is " + std::to_string(r[in.c].i),
              in.extra, "correct the data, or what the block declares");
}

bool Machine::fail_bounds(const Access& access, const Slot* r, int lane) {
  std::string shape, wrong;
  for (size_t i : indices_of(access.dimensions)) {
    const Access::Dimension& d = access.dimensions[i];
    int64_t index = r[d.vector ? d.index + lane : d.index].i, extent = r[d.extent].i;
    shape += (i ? ", " : "") + std::to_string(extent);
    if (wrong.empty() && (index < 0 || index >= extent)) {
      wrong = "index " + std::to_string(i) + " is " + std::to_string(index);
    }
  }
  const Site& site = program_.sites[access.site];
  bool writes = site.node.is<BufferStore>();
  return fail("interpret/out-of-bounds",
              where(access.site) + (writes ? " writes " : " reads ") + element(access, r, lane) + ": " + wrong +
                  ", and the shape of '" + site.buffer->name + "' is (" + shape + ")",
              access.site, "guard it with T.where, or check the extents of the loops");
}

bool Machine::fail_unwritten(const Allocation& allocation, int64_t byte, const Access& access, const Slot* r,
                             int lane) {
  std::string reads = where(access.site) + " reads " + element(access, r, lane);
  auto left = freed_writes_.find(allocation.site);
  auto granule = static_cast<size_t>(byte / allocation.granule);
  bool known = left != freed_writes_.end() && granule < left->second.size() && !current_->levels.empty();
  if (const LoopLevel* level = known ? unordered(left->second[granule]) : nullptr) {
    const LoopSite& loop = program_.loops[level->fork->site];
    const std::string& name = program_.sites[access.site].buffer->name;
    auto iteration = [&](int64_t index) { return loop.var->name_hint + " = " + std::to_string(index); };
    return fail("interpret/race",
                reads + " in iteration " + iteration(level->index) + " of a " + loop.kind + " loop, which iteration " +
                    iteration(level->fork->index_at(left->second[granule])) + " has written and this one has not; '" +
                    name + "' is used inside of the loop only, so each has its own",
                access.site, "leave this loop serial, or let each iteration write all that it reads");
  }
  return fail("interpret/uninitialized", reads + ", which nothing has written", access.site,
              "write it first; a reduction starts from T.init()");
}

bool Machine::fail_warp(const Insn& in) {
  const WarpSite& step = program_.warp_steps[in.extra];
  const int site = step.site;
  if (step.shuffle || (!step.product && !step.load)) {
    return fail("interpret/warp",
                where(site) +
                    ": the threads that the mask names execute this instruction together, and not all of them "
                    "come to it",
                site, "let the mask name only threads that come here, such as T.tvm_warp_activemask() does");
  }
  return fail(
      "interpret/warp",
      where(site) + ": the 32 threads of a warp execute this instruction together, and not all of them come to it",
      site, "bind a loop of 32 iterations to threadIdx.x around it, with no condition that differs between them");
}

bool Machine::fail_mask(int site) {
  return fail("interpret/warp-mask",
              where(site) +
                  ": a thread executes this instruction whose mask does not name it, or "
                  "whose mask differs from that of other threads of its warp",
              site, "give all threads that take part one mask with a bit for each of them");
}

bool Machine::fail_lane(int site, int64_t lane, int64_t source) {
  return fail("interpret/warp-lane",
              where(site) + ": lane " + std::to_string(lane) + " shuffles from lane " + std::to_string(source) +
                  ", which does not take part",
              site, "shuffle within segments whose threads all take part: lower the width");
}

bool Machine::fail_pending_store(const Access& access, const Slot* r, int lane) {
  return fail("interpret/async-copy",
              where(access.site) + " reads " + element(access, r, lane) +
                  ", which an asynchronous copy writes that nobody has waited for",
              access.site,
              "close the group of the copy with T.ptx_commit_group(), and wait for it with "
              "T.ptx_wait_group(n), where n groups were closed later");
}

/// `does`: "reads", "writes", "updates".
bool Machine::fail_race(const LoopLevel& level, uint32_t stamp, int other_site, const char* other_does,
                        const Access& access, const char* does, const Slot* r, int lane) {
  const LoopSite& loop = program_.loops[level.fork->site];
  auto iteration = [&](int64_t index) { return loop.var->name_hint + " = " + std::to_string(index); };
  int64_t other = level.fork->index_at(stamp);
  std::string place = element(access, r, lane);
  std::string message = where(access.site) + " " + does + " " + place + " in iteration " + iteration(level.index) +
                        " of a " + loop.kind + " loop, and " + where(other_site) + " " + other_does +
                        " it in iteration " + iteration(other) + "; nothing says which comes first";
  bool thread = loop.is_thread;
  fail("interpret/race", std::move(message), access.site,
       thread ? "put T.tvm_storage_sync between them, or let each thread have its own elements"
              : "leave this loop serial, or let each iteration have its own elements");
  if (program_.sites[other_site].node != program_.sites[access.site].node) {
    failure_->nodes.push_back(keep(program_.sites[other_site].node));
  }
  return false;
}

}  // namespace tilewright::interpreter
