// The schedule itself: handles, traces, replay, random streams. What primitives do is tested from Python.
#include "schedule/schedule.h"

#include <gtest/gtest.h>

#include <set>
#include <thread>

#include "ir/build.h"
#include "ir/structural.h"
#include "schedule/primitives/annotate.h"
#include "schedule/primitives/get_block.h"
#include "schedule/primitives/get_loops.h"
#include "schedule/primitives/sample_categorical.h"
#include "schedule/primitives/sample_perfect_tile.h"
#include "schedule/primitives/split.h"
#include "schedule/primitives/unannotate.h"
#include "schedule/primitives/unroll.h"
#include "schedule/test_programs.h"
#include "schedule/tiling.h"

namespace tilewright::schedule {
namespace {

Schedule start(const Ref<PrimFunc>& func, uint64_t seed = 0) {
  return Schedule::make(make<Module>({.functions = {{"main", func}}, .attrs = {}}), seed).value_or_throw();
}
template <class I>
typename I::Returns must(Schedule& sch, const I& instruction) {
  return sch.apply(instruction).value_or_throw();
}
template <class I>
std::string refusal(Schedule& sch, const I& instruction) {
  auto result = sch.apply(instruction);
  return result.ok() ? "accepted" : result.error().code;
}

/// The usual opening of a matmul space, with two sampling steps.
void tile_matmul(Schedule& sch) {
  BlockRV block = must(sch, GetBlock{"C", ""});
  std::vector<LoopRV> loops = must(sch, GetLoops{block});
  for (LoopRV loop : {loops[0], loops[1]}) {
    auto tiles = must(sch, SamplePerfectTile{loop, 3, 16, {}});
    Flat<Factor> factors;
    for (const auto& tile : tiles) factors.items.push_back(tile ? Factor(*tile) : Factor(None{}));
    must(sch, Split{loop, factors});
  }
}

TEST(PersistentStack, CopiesShareAndDiverge) {
  PersistentStack<int> a;
  for (int i = 0; i < 1000; ++i) a.push_back(i);
  PersistentStack<int> b = a;
  a.push_back(-1);
  b.push_back(-2);
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(b[i], i);
  EXPECT_EQ(a.back(), -1);
  EXPECT_EQ(b.back(), -2);
  EXPECT_EQ(a.prefix(500).back(), 499);
  EXPECT_TRUE(same(a.prefix(1000), b.prefix(1000)));
  EXPECT_EQ(*a.items()[42], 42);
}

TEST(PersistentStack, FreesLongChainsInALoop) {
  PersistentStack<int> a;
  for (int i = 0; i < 2'000'000; ++i) a.push_back(i);
  EXPECT_EQ(a[1'234'567], 1'234'567);
}

TEST(Random, StreamsArePinned) {
  // The sequence is part of what a seed promises: the same on every machine and with every compiler.
  Random random(42);
  EXPECT_EQ(random.next(), Random(42).next());
  std::set<uint64_t> firsts;
  for (uint64_t round = 0; round < 8; ++round) {
    for (uint64_t index = 0; index < 64; ++index) firsts.insert(Random::derive(7, round, index).next());
  }
  EXPECT_EQ(firsts.size(), 8u * 64u);
}

TEST(Random, CategoricalFollowsTheWeights) {
  Random random(1);
  double weights[] = {1, 0, 3};
  int counts[3] = {};
  for (int i = 0; i < 40000; ++i) ++counts[random.categorical(weights)];
  EXPECT_EQ(counts[1], 0);
  EXPECT_NEAR(counts[0], 10000, 400);
}

TEST(Tiling, IsUniformOverAllLists) {
  // 24 = 2^3 * 3 in 3 factors, the last at most 4: 8 + 6 + 4 + 4 lists, by the last factor 1, 2, 3, 4.
  Random random(3);
  std::map<std::vector<int64_t>, int> seen;
  for (int i = 0; i < 22000; ++i) ++seen[sample_tiling(random, 24, 3, 4)];
  EXPECT_EQ(seen.size(), 22u);
  for (const auto& [factors, count] : seen) {
    EXPECT_EQ(factors[0] * factors[1] * factors[2], 24);
    EXPECT_LE(factors[2], 4);
    EXPECT_NEAR(count, 1000, 160);
  }
}

TEST(Tiling, HasNoTrouble) {
  Random random(0);
  EXPECT_EQ(sample_tiling(random, 1, 4, 1), (std::vector<int64_t>{1, 1, 1, 1}));
  EXPECT_EQ(sample_tiling(random, 97, 2, 16), (std::vector<int64_t>{97, 1}));
  EXPECT_EQ(sample_tiling(random, 12, 1, 12), (std::vector<int64_t>{12}));
  int64_t prime = 2147483647;
  EXPECT_EQ(sample_tiling(random, prime, 2, 16), (std::vector<int64_t>{prime, 1}));
}

TEST(Tiling, DivisorsAreAllAndAscending) {
  for (int64_t n : {1, 2, 97, 360, 4096}) {
    std::vector<int64_t> expected;
    for (int64_t d = 1; d <= n; ++d) {
      if (n % d == 0) expected.push_back(d);
    }
    EXPECT_EQ(divisors(n), expected) << n;
  }
  const int64_t prime = (int64_t{1} << 31) - 1;
  EXPECT_EQ(divisors(prime), (std::vector<int64_t>{1, prime}));
  EXPECT_EQ(divisors(int64_t{1} << 62).size(), 63u);
}

TEST(Instructions, EveryParameterIsDocumented) {
  for (const KindInfo& info : all_kinds()) {
    for (const Param& param : info.params) {
      std::string entry = (param.star ? "    *" : "    ") + std::string(param.name) + ":";
      EXPECT_NE(info.doc.find(entry), std::string_view::npos) << info.method << " does not explain " << param.name;
    }
    bool gives = info.returns != Shape::kNothing;
    EXPECT_EQ(gives, info.doc.find("Returns:") != std::string_view::npos) << info.method;
  }
}

/// A kind that no schedule has, and that does what a primitive must not: its nodes are refused while they are made.
struct Overlooks {
  using Returns = None;
};
}  // namespace
template <>
const KindInfo& kind_of<Overlooks>() {
  static const KindInfo info = [] {
    KindInfo made{};
    made.method = "overlooks";
    made.family = Family::kTransform;
    made.plan = [](const State&, const Instruction&) -> Result<Plan> {
      throw Exception(argument_error("ir/float-dtype", "a number of floats is none"));
    };
    made.for_each_handle = [](const Instruction&, const ReadHandle&) {};
    return made;
  }();
  return info;
}
namespace {

TEST(Schedules, AGapInAPrimitiveIsADefectAndChangesNothing) {
  Schedule sch = start(test::matmul(4));
  Ref<Module> before = sch.module();
  auto refused = sch.apply(Instruction(Overlooks{}));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, "schedule/plan");
  EXPECT_EQ(refused.error().blame, Blame::kInternal);
  EXPECT_EQ(sch.module(), before);
  EXPECT_EQ(sch.trace().size(), 0u);
}

TEST(Instructions, ValuesRoundTrip) {
  Split split{LoopRV{3}, {{None{}, int64_t{4}, ExprRV{7}}}, false, true};
  Instruction instruction = split;
  const KindInfo& info = kind_info(instruction);
  std::vector<Value> values = values_of(instruction);
  std::vector<std::optional<Value>> given(values.begin(), values.end());
  EXPECT_EQ(values_of(info.build(info, given).value_or_throw()), values);
  EXPECT_EQ(
      info.signature(),
      "def split(self, loop: LoopRV, factors: Sequence[int | ExprRV | Expr | None], preserve_unit_iters: bool = True, "
      "disable_predication: bool = False) -> list[LoopRV]");
  given[1] = Value{3.5};
  EXPECT_EQ(info.build(info, given).error().code, "schedule/argument");
}

TEST(Schedule, CopiesAreIndependent) {
  Schedule a = start(test::matmul(64));
  BlockRV block = must(a, GetBlock{"C", ""});
  std::vector<LoopRV> loops = must(a, GetLoops{block});
  Schedule b = a.fork();
  must(b, Split{loops[0], {{None{}, int64_t{8}}}});
  EXPECT_EQ(must(a, GetLoops{block}).size(), 3u);
  EXPECT_EQ(must(b, GetLoops{block}).size(), 4u);
  EXPECT_EQ(refusal(b, Split{loops[0], {{None{}, int64_t{8}}}}), "schedule/expired");
  must(a, Split{loops[0], {{None{}, int64_t{8}}}});
}

TEST(Schedule, RefusalsChangeNothing) {
  Schedule sch = start(test::matmul(64));
  std::vector<LoopRV> loops = must(sch, GetLoops{must(sch, GetBlock{"C", ""})});
  Ref<Module> before = sch.module();
  EXPECT_EQ(refusal(sch, Split{loops[0], {{int64_t{3}, int64_t{3}}}}), "split/P5");
  EXPECT_EQ(sch.module(), before);
  EXPECT_EQ(sch.trace().size(), 2u);
}

TEST(Schedule, ForeignHandlesAreRefused) {
  Schedule sch = start(test::matmul(64));
  EXPECT_EQ(refusal(sch, GetLoops{BlockRV{0}}), "schedule/handle");
  BlockRV block = must(sch, GetBlock{"C", ""});
  EXPECT_EQ(refusal(sch, Unroll{LoopRV{block.index}}), "schedule/handle");
}

TEST(Schedule, RepeatedStatementsBecomeDistinct) {
  Ref<PrimFunc> f = test::matmul(8);
  Ref<Module> twice = make<Module>({.functions = {{"f", f}, {"g", f}}, .attrs = {}});
  Schedule sch = Schedule::make(twice).value_or_throw();
  std::vector<LoopRV> in_f = must(sch, GetLoops{must(sch, GetBlock{"C", "f"})});
  std::vector<LoopRV> in_g = must(sch, GetLoops{must(sch, GetBlock{"C", "g"})});
  must(sch, Unroll{in_g[0]});
  EXPECT_EQ(must(sch, GetLoops{must(sch, GetBlock{"C", "f"})}).size(), 3u);
  EXPECT_TRUE(structural_equal(sch.module()->get("f"), f));
  EXPECT_FALSE(structural_equal(sch.module()->get("g"), f));
  EXPECT_EQ(refusal(sch, GetBlock{"C", ""}), "get_block/P1");
}

TEST(Trace, PrintsAsTvmDoes) {
  Schedule sch = start(test::matmul(64));
  std::vector<LoopRV> loops = must(sch, GetLoops{must(sch, GetBlock{"C", ""})});
  must(sch, SampleCategorical{{4, 8}, {0.5, 0.5}, {1}});
  must(sch, Split{loops[0], {{None{}, ExprRV{4}}}});
  must(sch, Annotate{loops[1], "k", Value{std::string("v")}});
  EXPECT_EQ(sch.trace().as_python(),
            (std::vector<std::string>{
                "b0 = sch.get_block(name=\"C\", func_name=\"main\")", "l1, l2, l3 = sch.get_loops(block=b0)",
                "v4 = sch.sample_categorical(candidates=[4, 8], probs=[0.5, 0.5], decision=1)",
                "l5, l6 = sch.split(loop=l1, factors=[None, v4], preserve_unit_iters=True, disable_predication=False)",
                "sch.annotate(block_or_loop=l2, ann_key=\"k\", ann_val=\"v\")"}));
  EXPECT_EQ(
      sch.trace().as_json(),
      R"([[["GetBlock",[],["C","main"],["b0"]],["GetLoops",["b0"],[],["l1","l2","l3"]],)"
      R"(["SampleCategorical",[],[[4,8],[0.5,0.5]],["v4"]],["Split",["l1","None","v4"],[true,false],["l5","l6"]],)"
      R"(["Annotate",["l2","\"v\""],["k"],[]]],[[2,1]]])");
}

TEST(Trace, JsonRoundTripsAndReplays) {
  Schedule sch = start(test::matmul(64), 5);
  tile_matmul(sch);
  Trace read = Trace::from_json(sch.trace().as_json()).value_or_throw();
  EXPECT_EQ(read.as_python(), sch.trace().as_python());
  Schedule again = start(test::matmul(64), 99);
  ASSERT_TRUE(replay(read, again).ok());
  EXPECT_TRUE(structural_equal(again.module(), sch.module()));
  EXPECT_EQ(again.trace().as_python(), sch.trace().as_python());
}

TEST(Trace, RefusesOtherJson) {
  for (const char* text :
       {"", "{}", "[]", "[[],[],[]]", "[[[\"Nothing\",[],[],[]]],[]]", "[[[\"GetLoops\",[\"b0\"],[],[]]],[]]",
        "[[[\"GetBlock\",[],[3,\"main\"],[\"b0\"]]],[]]", "[[],[[0,1]]]", "[[[\"GetBlock\",[],[\"x\"],[\"q0\"]]],[]]",
        "[[[\"GetBlock\",[],[\"x\",\"y\",\"z\"],[\"b0\"]]],[]]"}) {
    auto result = Trace::from_json(text);
    ASSERT_FALSE(result.ok()) << text;
    EXPECT_EQ(result.error().code, "trace/json") << text;
  }
  std::string deep(100000, '[');
  EXPECT_FALSE(Trace::from_json("[[[\"Annotate\",[" + deep).ok());
  EXPECT_FALSE(Trace::from_json("[[[\"Annotate\",[" + deep + std::string(100000, ']') + "],[],[]]],[]]").ok());
}

TEST(Trace, SimplifiedDropsWhatNothingUses) {
  Schedule sch = start(test::matmul(64));
  BlockRV block = must(sch, GetBlock{"C", ""});
  std::vector<LoopRV> loops = must(sch, GetLoops{block});
  must(sch, GetLoops{block});
  must(sch, SampleCategorical{{1}, {1}, {}});
  must(sch, Unroll{loops[2]});
  EXPECT_EQ(sch.trace().simplified().size(), 3u);
  Schedule again = start(test::matmul(64));
  ASSERT_TRUE(replay(sch.trace().simplified(), again).ok());
  EXPECT_TRUE(structural_equal(again.module(), sch.module()));
}

TEST(Trace, FreshReplayFollowsTheSeed) {
  Schedule sch = start(test::matmul(512), 1);
  tile_matmul(sch);
  std::set<std::string> programs;
  for (uint64_t index = 0; index < 20; ++index) {
    Schedule first = start(test::matmul(512)), second = start(test::matmul(512));
    first.seed(Random::derive(11, 0, index));
    second.seed(Random::derive(11, 0, index));
    ASSERT_TRUE(replay(sch.trace(), first, {.fresh = true}).ok());
    ASSERT_TRUE(replay(sch.trace(), second, {.fresh = true}).ok());
    EXPECT_TRUE(structural_equal(first.module(), second.module()));
    programs.insert(structural_hash(first.module()).hex());
  }
  EXPECT_GT(programs.size(), 15u);
}

TEST(Trace, MutationStartsAtTheFirstChange) {
  Schedule sch = start(test::matmul(64), 1);
  tile_matmul(sch);
  Value decision{Value::List{{int64_t{8}}, {int64_t{4}}, {int64_t{2}}}};
  Schedule mutated = sch.with_decisions({{1, decision}}).value_or_throw();
  EXPECT_EQ(mutated.trace().decisions()[0], sch.trace().decisions()[0]);
  EXPECT_EQ(mutated.trace().decisions()[1], decision);
  // The steps before the change are the very same objects.
  EXPECT_EQ(mutated.trace().steps()[3], sch.trace().steps()[3]);
  EXPECT_NE(mutated.trace().steps()[4], sch.trace().steps()[4]);
  Schedule again = start(test::matmul(64));
  ASSERT_TRUE(replay(mutated.trace(), again).ok());
  EXPECT_TRUE(structural_equal(again.module(), mutated.module()));
  EXPECT_EQ(sch.with_decisions({{2, decision}}).error().code, "schedule/decision");
  EXPECT_EQ(sch.with_decisions({{0, Value{int64_t{1}}}}).error().code, "schedule/decision");
}

/// Steps of both that are the very same objects, from the first on.
size_t shared_steps(const Schedule& a, const Schedule& b) {
  size_t count = 0;
  while (count < a.trace().size() && count < b.trace().size() && &a.trace()[count] == &b.trace()[count]) ++count;
  return count;
}

Ref<Module> from_scratch(const Trace& trace) {
  Schedule again = start(test::matmul(64));
  replay(trace, again).value_or_throw();
  return again.module();
}

TEST(Replay, RewoundIsWhatItWas) {
  Schedule sch = start(test::matmul(64), 1);
  std::vector<Ref<Module>> programs = {sch.module()};
  auto keep = [&] {
    while (programs.size() <= sch.trace().size()) programs.push_back(sch.module());
  };
  BlockRV block = must(sch, GetBlock{"C", ""});
  LoopRV loop = must(sch, GetLoops{block})[0];
  keep();
  for (int i = 0; i < 20; ++i) {
    must(sch, Annotate{loop, "step", Value{int64_t{i}}});
    keep();
    if (i == 4) must(sch, SampleCategorical{{1, 2}, {0.5, 0.5}, {}});
    keep();
    must(sch, Unannotate{loop, "step"});
    keep();
  }
  for (size_t steps = 0; steps <= sch.trace().size(); ++steps) {
    Schedule then = sch.rewound(steps);
    EXPECT_EQ(then.trace().size(), steps);
    EXPECT_TRUE(structural_equal(then.module(), programs[steps])) << steps;
    EXPECT_GE(shared_steps(then, sch) + 8, steps);
  }
}

TEST(Replay, StartsAtTheEditedStep) {
  Schedule sch = start(test::matmul(64), 1);
  tile_matmul(sch);
  std::vector<size_t> samples = sch.trace().sampling_steps();
  ASSERT_EQ(samples, (std::vector<size_t>{2, 4}));
  Value tile{Value::List{{int64_t{8}}, {int64_t{4}}, {int64_t{2}}}};
  Instruction sampled = with_decision(sch.trace()[4].instruction, tile).value_or_throw();
  Schedule other = sch.replay_from(4, {{4, sampled}}).value_or_throw();
  EXPECT_EQ(shared_steps(other, sch), 4u);
  EXPECT_EQ(other.trace().decisions()[1], tile);
  EXPECT_TRUE(structural_equal(other.module(), from_scratch(other.trace())));

  // One step is removed and one is replaced: the splits use the handles that exist.
  Schedule shorter = sch.replay_from(5, {{5, std::nullopt}}).value_or_throw();
  EXPECT_EQ(shorter.trace().size(), 5u);
  EXPECT_TRUE(structural_equal(shorter.module(), from_scratch(shorter.trace())));
  EXPECT_EQ(sch.replay_from(2, {{2, std::nullopt}}).error().code, "trace/handle");
  EXPECT_EQ(sch.replay_from(5, {{4, sampled}}).error().code, "trace/step");
  EXPECT_EQ(sch.replay_from(0, {{6, sampled}}).error().code, "trace/step");
  EXPECT_EQ(sch.replay_from(0, {{4, sampled}, {4, sampled}}).error().code, "trace/step");
  EXPECT_EQ(sch.replay_from(7, {}).error().code, "trace/step");
  EXPECT_EQ(sch.replay_from(6, {}).value_or_throw().module(), sch.module());
}

TEST(Replay, DrawsAnewFromAStepOn) {
  Schedule sch = start(test::matmul(512), 1);
  tile_matmul(sch);
  std::set<std::string> programs;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    ReplayOptions options{.fresh = true, .random = Random(seed)};
    Schedule other = sch.replay_from(4, {}, options).value_or_throw();
    EXPECT_EQ(shared_steps(other, sch), 4u);
    programs.insert(structural_hash(other.module()).hex());
  }
  EXPECT_GT(programs.size(), 5u);
}

TEST(Replay, AnotherTraceSharesItsBeginning) {
  Schedule sch = start(test::matmul(64), 1);
  tile_matmul(sch);
  Value tile{Value::List{{int64_t{8}}, {int64_t{4}}, {int64_t{2}}}};
  Trace changed = sch.trace().with_decision(4, tile).value_or_throw();
  EXPECT_EQ(sch.trace().with_decision(1, tile).error().code, "schedule/decision");
  EXPECT_EQ(sch.trace().with_decision(6, tile).error().code, "trace/step");
  // Its handles may have other numbers, as those of a trace that was read have.
  for (const Trace& trace : {changed, changed.shifted(100), Trace::from_json(changed.as_json()).value_or_throw()}) {
    Schedule other = sch.with_trace(trace).value_or_throw();
    EXPECT_EQ(shared_steps(other, sch), 4u);
    EXPECT_EQ(other.trace().decisions()[1], tile);
    EXPECT_TRUE(structural_equal(other.module(), from_scratch(changed)));
  }
  EXPECT_EQ(sch.with_trace(sch.trace()).value_or_throw().module(), sch.module());
  EXPECT_EQ(sch.with_trace(Trace()).value_or_throw().trace().size(), 0u);
  size_t asked = 0;
  ReplayOptions options;
  options.decide = [&](size_t sample, const Step&, const Instruction&) {
    asked = sample;
    return Value{None{}};
  };
  ASSERT_TRUE(sch.with_trace(changed, options).ok());
  EXPECT_EQ(asked, 1u);  // numbers count all sampling steps of the trace
}

TEST(State, PlansReplaceAndAddFunctions) {
  Ref<PrimFunc> func = test::matmul(8);
  State state = State::make(as_module(func), Random(0)).value_or_throw();
  const Tree& tree = *state.tree(0).value_or_throw();
  Plan first;
  first.outputs = {Handle::block(0, tree.block_at(tree.blocks().back()))};
  uint32_t block = state.commit(std::move(first)).front();

  // The output loses its place to a wider parameter list, and a function comes that sorts before the old one.
  PrimFunc changed = *func;
  Ref<Buffer> bias = decl_buffer({i32(8)}, DataType::float_(32), "bias");
  changed.params.push_back(var("bias_handle", DataType::handle()));
  changed.buffer_map.emplace_back(changed.params.back(), bias);
  changed.attrs.set("tir.noalias", bool_imm(true));
  Plan plan;
  plan.functions = {{"a_helper", Func(test::matmul(4, "D"))}, {"main", Func(make(std::move(changed)))}};
  plan.root = tree.block_ref(0);
  plan.outputs = {Handle::block(1, tree.block_at(tree.blocks().back()))};
  const State before = state;
  state.commit(std::move(plan));
  EXPECT_EQ(state.module()->functions.size(), 2u);
  EXPECT_EQ(state.module()->functions[0].first, "a_helper");
  EXPECT_EQ(state.function_name(0), "main");
  EXPECT_EQ(state.function("a_helper").value_or_throw(), 1u);
  EXPECT_EQ(state.function_at(0).as<PrimFunc>()->params.size(), 4u);
  EXPECT_TRUE(state.function_at(0).as<PrimFunc>()->attrs.get("tir.noalias").defined());
  EXPECT_EQ(state.find(BlockRV{block}).value_or_throw().block().name_hint, "C");
  EXPECT_EQ(state.working_function(), 0u);
  EXPECT_EQ((*state.tree(1))->block_at((*state.tree(1))->blocks().back()).name_hint, "D");
  EXPECT_EQ(before.module()->functions.size(), 1u);
  EXPECT_EQ(before.function_name(0), "main");
}

TEST(Trace, ReplayNamesTheStepThatFails) {
  Schedule sch = start(test::matmul(64), 1);
  tile_matmul(sch);
  Schedule other = start(test::matmul(64, "D"));
  auto result = replay(sch.trace(), other);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, "get_block/P2");
  EXPECT_NE(result.error().message.find("step 0 of the trace, get_block()"), std::string::npos);
}

TEST(Schedule, ThreadsShareOneOriginal) {
  Schedule sch = start(test::matmul(256), 1);
  tile_matmul(sch);
  const Schedule original = start(test::matmul(256));
  std::vector<std::string> texts(4);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < texts.size(); ++t) {
    threads.emplace_back([&, t] {
      for (uint64_t index = 0; index < 50; ++index) {
        Schedule candidate = original;
        candidate.seed(Random::derive(1, 2, index));
        if (!replay(sch.trace(), candidate, {.fresh = true}).ok()) return;
        texts[t] += structural_hash(candidate.module()).hex();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& text : texts) EXPECT_EQ(text, texts[0]);
  EXPECT_EQ(texts[0].size(), 50u * 32u);
}

}  // namespace
}  // namespace tilewright::schedule
