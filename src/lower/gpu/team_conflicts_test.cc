#include "lower/gpu/team_conflicts.h"

#include <gtest/gtest.h>

#include "ir/build.h"

namespace tilewright::lower {
namespace {

TEST(TeamConflicts, DecidesNothingAfterALimit) {
  IterVar axis;
  axis.iter_type = IterType::kThreadIndex;
  axis.thread_tag = "threadIdx.x";
  axis.var = var("thread", DataType::int_(32));
  For loop;
  loop.loop_var = var("tx", DataType::int_(32));
  loop.min = i32(0);
  loop.extent = i32(32);
  loop.kind = ForKind::kThreadBinding;
  loop.thread_binding = make<IterVar>(std::move(axis));
  loop.body = make<Evaluate>({i32(0)});
  const Ref<For> threads = make<For>(std::move(loop));
  const KernelLoops kernel{{threads}, threads->body};
  const LoopRanges loops{{threads->loop_var.get(), threads}};
  arith::Analyzer analyzer;
  TeamConflicts conflicts(kernel, loops, analyzer);

  const Ref<Var> memory = var("memory", DataType::handle());
  const TeamAccess write{memory, threads->loop_var * 4, 4, true, {}, {}};
  const TeamAccess own{memory, threads->loop_var * 4, 4, false, {}, {}};
  const TeamAccess next{memory, threads->loop_var * 4 + 4, 4, false, {}, {}};
  EXPECT_EQ(conflicts.meet(write, own, {}), TeamConflicts::Answer::kNever);
  EXPECT_EQ(conflicts.meet(write, next, {}), TeamConflicts::Answer::kMeet);
  int more = 0;
  while (more < 1 << 17 && conflicts.meet(write, own, {}) == TeamConflicts::Answer::kNever) ++more;
  EXPECT_EQ(conflicts.meet(write, own, {}), TeamConflicts::Answer::kUndecided);
  EXPECT_GT(more, 1000);
}

}  // namespace
}  // namespace tilewright::lower
