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
  return make<Module>({.functions = {{"main", Func(make(std::move(func)))}}, .attrs = {}});
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

/// The device's part of a function becomes a function of its own.
Result<Ref<Module>> split_host_and_device(const Ref<Module>& module, PassContext&) {
  Ref<PrimFunc> main = module->get("main").cast<PrimFunc>();
  PrimFunc host = *main;
  host.body = make<Evaluate>({make<Call>({DataType::int_(32), make<GlobalVar>({"main_kernel"}), {}})});
  PrimFunc device = *main;
  device.ret_type = make<PrimType>({DataType::int_(32)});
  return with_function(with_function(module, "main", make(std::move(host))), "main_kernel", make(std::move(device)));
}

PassResult note_name(const Ref<PrimFunc>& func, PassContext& context) {
  context.notes.push_back({"lower/not-vectorized", context.function, context.called ? "called" : ""});
  return func;
}

TEST(Pipeline, RowsOverModulesAddFunctions) {
  constexpr Row kRows[] = {
      {"split", split_host_and_device, TargetSet::kAll, Stage::kLowered, "first"},
      {"everywhere", note_name, TargetSet::kAll, Stage::kLowered, "sees what the module pass made"},
      {"machines", note_name, TargetSet::kMachines, Stage::kLowered, "not for the interpreter"},
  };
  auto names = [&](const Target& target) {
    LowerReport report;
    auto lowered = lower_by(kRows, module_of(make<Evaluate>({i32(0)})), target, {}, &report);
    EXPECT_TRUE(lowered.ok()) << (lowered.ok() ? "" : lowered.error().message);
    std::string all;
    for (const Note& note : report.notes) all += note.function + (note.message.empty() ? " " : "* ");
    return all;
  };
  EXPECT_EQ(names(Target::interpreter()), "main main_kernel* ");
  EXPECT_EQ(names(Target::host()), "main main_kernel* main main_kernel* ");
}

TEST(Pipeline, EachRowLeavesItsStage) {
  Stage stage = Stage::kScheduled;
  for (const Row& row : rows()) {
    EXPECT_GE(row.leaves, stage) << row.name;
    EXPECT_FALSE(row.reason.empty());
    stage = row.leaves;
  }
  EXPECT_EQ(stage, Stage::kLowered);
  constexpr Row kWrong[] = {{"nothing", note_name, TargetSet::kAll, Stage::kLowered, "leaves a block"}};
  Block root;
  root.body = make<Evaluate>({i32(0)});
  Stmt body = realized(make(std::move(root)));
  LowerOptions options;
  options.verify = true;
  auto lowered = lower_by(kWrong, module_of(body), Target::host(), options);
  ASSERT_FALSE(lowered.ok());
  EXPECT_EQ(lowered.error().code, "lower/broken");
}

}  // namespace
}  // namespace tilewright::lower
