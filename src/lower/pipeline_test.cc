#include "lower/pipeline.h"

#include <gtest/gtest.h>

#include "ir/build.h"
#include "support/interruption.h"

namespace tilewright::lower {
namespace {

/// A function whose body is `body`.
Ref<Module> module_of(Stmt body) {
  PrimFunc func;
  func.ret_type = make<TupleType>({});
  func.body = std::move(body);
  return make<Module>({.functions = {{"main", Func(make<PrimFunc>(std::move(func)))}}, .attrs = {}});
}

TEST(Pipeline, ABrokenProgramIsTheDefectOfThePass) {
  Stmt fine = make<Evaluate>({i32(0)});
  EXPECT_TRUE(check_pass(module_of(fine), "unroll_loops", Stage::kLowered).ok());
  Status status = check_pass(module_of(make<Evaluate>({var("nowhere")})), "unroll_loops", Stage::kLowered);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, "lower/broken");
  EXPECT_EQ(status.error().blame, Blame::kInternal);
  EXPECT_NE(status.error().message.find("pass unroll_loops broke a program"), std::string::npos);
}

TEST(Pipeline, EndsBetweenPassesWhenInterrupted) {
  Target target = Target::host();
  Ref<Module> module = module_of(make<Evaluate>({i32(0)}));
  static int asked = 0;
  InterruptionScope scope([] { return ++asked > 3; });
  LowerReport report;
  auto lowered = lower(module, target, {}, &report);
  ASSERT_FALSE(lowered.ok());
  EXPECT_EQ(lowered.error().code, "compile/interrupted");
  EXPECT_EQ(report.times.size(), 3u);
}

}  // namespace
}  // namespace tilewright::lower
