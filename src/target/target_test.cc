#include "target/target.h"

#include <gtest/gtest.h>

#include <cstring>

#include "target/cpu_models.h"

namespace tilewright {
namespace {

Target parse(std::string_view text) {
  Result<Target> result = Target::parse(text);
  EXPECT_TRUE(result.ok()) << text << ": " << (result.ok() ? "" : result.error().render());
  return result.ok() ? *result : Target{};
}

std::string failure(std::string_view text) {
  Result<Target> result = Target::parse(text);
  if (result.ok()) return "accepted as " + result->str();
  EXPECT_EQ(result.error().blame, Blame::kArgument);
  return result.error().code + ": " + result.error().message;
}

TEST(Target, HostIsWhatTheMachineHas) {
  Target host = Target::host();
  EXPECT_EQ(host.kind, TargetKind::kCpu);
  EXPECT_NE(target::find_cpu_model(host.cpu), nullptr) << host.cpu;
  EXPECT_EQ(host.num_cores, tw_count_cores());
  EXPECT_GT(host.l1_bytes, 0);
  for (auto& name : host.feature_names()) {
    int feature = tw_cpu_feature_from_name(name.data(), static_cast<int>(name.size()));
    EXPECT_TRUE(tw_has_cpu_feature(tw_host_cpu_features(), feature)) << name;
  }
  EXPECT_EQ(host.vector_bits, host.has("avx512f") ? 512 : host.has("avx") ? 256 : 128);
  EXPECT_EQ(parse("native"), host);
  EXPECT_EQ(parse("llvm -mcpu=native"), host);
  EXPECT_EQ(parse(R"({"kind": "native"})"), host);
}

TEST(Target, TextIsReadBack) {
  const char* texts[] = {"native",
                         "interpreter",
                         "llvm -mcpu=skylake-avx512 -num-cores=2",
                         "llvm -mcpu=znver3 -mattr=-avx2 -num-cores=1",
                         "llvm -mcpu=x86-64 -mattr=+avx512vl,+avx512bw -num-cores=3",
                         "llvm -mcpu=sapphirerapids -num-cores=8 -vector-width=256",
                         "llvm -mcpu=haswell -num-cores=4 -l1-bytes=16384 -l2-bytes=131072 -l3-bytes=0",
                         "llvm",
                         "c -mcpu=haswell -num-cores=2",
                         "llvm -mtriple=aarch64-linux-gnu -mattr=+neon,+dotprod -num-cores=4",
                         "llvm -mcpu=neoverse-v1 -mattr=-sve",
                         "cuda",
                         "hexagon -mcpu=hexagonv69 -num-cores=4 -vtcm-capacity=4194304",
                         "cuda -arch=sm_80 -max_threads_per_block=512 -l2_cache_size_bytes=1024",
                         "nvidia"
                         "/nvidia-a100",
                         R"({"kind": "cuda", "arch": "sm_90a", "host": {"kind": "llvm", "mcpu": "znver3"}})",
                         R"({"kind": "cuda", "host": "llvm -mcpu=haswell -num-cores=3"})"};
  for (const char* text : texts) {
    Target target = parse(text);
    EXPECT_EQ(parse(target.str()), target) << target.str();
    EXPECT_EQ(parse(target.json()), target) << target.json();
    EXPECT_EQ(parse(target.str()).hash(), target.hash());
  }
  // The text of a target is its identity: written once, it stays as it is.
  EXPECT_EQ(parse("llvm -mcpu=skylake-avx512 -num-cores=2").str(), "llvm -mcpu=skylake-avx512 -num-cores=2");
  EXPECT_EQ(parse("  llvm   -num-cores=2  --mcpu=znver3 ").str(), "llvm -mcpu=znver3 -num-cores=2");
  EXPECT_EQ(parse("interpreter").str(), "interpreter");
  EXPECT_EQ(parse("interpreter").kind, TargetKind::kInterpreter);
  EXPECT_EQ(parse(R"({"kind": "interpreter"})"), Target::interpreter());
}

TEST(Target, SpellingsOfTvmAreRead) {
  Target target = parse(
      R"({"kind": "llvm", "tag": "", "keys": ["cpu"], "mcpu": "icelake-server", "num-cores": 16,
          "mattr": ["+amx-int8", "-avx512vnni"]})");
  EXPECT_EQ(target.cpu, "icelake-server");
  EXPECT_EQ(target.num_cores, 16);
  EXPECT_TRUE(target.has("amx-int8") && target.has("amx-tile"));
  EXPECT_FALSE(target.has("avx512vnni"));
  EXPECT_TRUE(target.has("avx512vbmi2"));
  EXPECT_EQ(parse("llvm -keys=cpu -mcpu=haswell"), parse("llvm -mcpu=haswell"));
  EXPECT_EQ(parse("llvm -mcpu haswell --num-cores 3"), parse("llvm -mcpu=haswell -num-cores=3"));
}

TEST(Target, KeysStandBeforeThoseOfTheKind) {
  using Keys = std::vector<std::string>;
  Target arm = parse("llvm -keys=arm_cpu,cpu -mcpu=haswell -num-cores=2");
  EXPECT_EQ(arm.keys(), (Keys{"arm_cpu", "cpu"}));
  EXPECT_EQ(arm.str(), "llvm -keys=arm_cpu,cpu -mcpu=haswell -num-cores=2");
  EXPECT_EQ(parse(arm.json()), arm);
  EXPECT_EQ(parse(arm.json()).str(), arm.str());
  EXPECT_EQ(parse("llvm -keys=arm_cpu -mcpu=haswell -num-cores=2"), arm);
  EXPECT_EQ(parse("llvm -device=arm_cpu -mcpu=haswell -num-cores=2"), arm);
  EXPECT_EQ(parse("llvm -keys=cpu,mine,cpu").keys(), (Keys{"cpu", "mine"}));
  EXPECT_EQ(parse("llvm -keys=cpu,mine,cpu -device=x").keys(), (Keys{"cpu", "mine", "x"}));
  EXPECT_EQ(parse("cuda -keys=mine").keys(), (Keys{"mine", "cuda", "gpu"}));
  EXPECT_EQ(parse("cuda -keys=gpu").keys(), (Keys{"gpu", "cuda"}));
  EXPECT_EQ(arm.with_num_cores(3).keys(), arm.keys());
  Target plain = parse("llvm -mcpu=haswell -num-cores=2");
  EXPECT_FALSE(arm == plain);
  EXPECT_FALSE(arm.hash() == plain.hash());
  EXPECT_EQ(failure(R"({"kind": "llvm", "keys": ["two words"]})"),
            "target/value: target option keys is 'two words', which is not a word");
}

TEST(Target, RegistersFollowFromTheProcessor) {
  struct Row {
    const char* text;
    int bits, registers;
  };
  const Row rows[] = {{"llvm", 128, 16},
                      {"llvm -mcpu=haswell", 256, 16},
                      {"llvm -mcpu=skylake-avx512", 512, 32},
                      {"llvm -mcpu=skylake-avx512 -vector-width=256", 256, 32},
                      {"llvm -mcpu=knl -vector-width=256", 256, 16},
                      {"llvm -mcpu=skylake-avx512 -mattr=-avx512f", 256, 16},
                      {"llvm -mcpu=haswell -mattr=+avx512f", 512, 32},
                      {"llvm -mcpu=haswell -mattr=+avx512vl,-evex512", 256, 32},
                      {"llvm -mcpu=haswell -mattr=-avx", 128, 16}};
  for (auto& row : rows) {
    EXPECT_EQ(parse(row.text).vector_bits, row.bits) << row.text;
    EXPECT_EQ(parse(row.text).vector_registers, row.registers) << row.text;
  }
}

TEST(Target, FeaturesBringWhatTheyNeedAndTakeWhatNeedsThem) {
  Target added = parse("llvm -mattr=+avx512fp16");
  for (const char* name :
       {"avx512bw", "avx512dq", "avx512vl", "avx512f", "avx2", "fma", "f16c", "avx", "sse4.2", "sse3"}) {
    EXPECT_TRUE(added.has(name)) << name;
  }
  EXPECT_FALSE(added.has("avx512vnni"));
  Target removed = parse("llvm -mcpu=sapphirerapids -mattr=-avx2,-amx-tile");
  for (const char* name : {"avx512f", "avx512vl", "avxvnni", "vaes", "amx-int8", "amx-bf16"}) {
    EXPECT_FALSE(removed.has(name)) << name;
  }
  EXPECT_TRUE(removed.has("avx") && removed.has("fma"));
  // The last word counts.
  EXPECT_FALSE(parse("llvm -mattr=+avx2,-avx2").has("avx2"));
  EXPECT_TRUE(parse("llvm -mattr=avx2").has("avx2"));
}

TEST(Target, TellsLlvmEverything) {
  std::string list = "," + parse("llvm -mcpu=haswell").llvm_features() + ",";
  EXPECT_NE(list.find(",+avx2,"), std::string::npos);
  EXPECT_NE(list.find(",-avx512f,"), std::string::npos);
  int of_x86 = 0;
  for (int i = 0; i < TW_NUM_CPU_FEATURES; ++i) of_x86 += !tw_is_arm_feature(i);
  EXPECT_EQ(std::count(list.begin(), list.end(), ','), of_x86 + 1);
}

TEST(Target, ComparesAndHashesAllFields) {
  Target base = parse("llvm -mcpu=haswell -num-cores=2");
  EXPECT_EQ(base, parse("llvm -num-cores=2 -mcpu=haswell"));
  for (const char* other :
       {"llvm -mcpu=haswell -num-cores=3", "llvm -mcpu=broadwell -num-cores=2",
        "llvm -mcpu=haswell -num-cores=2 -mattr=-fma", "llvm -mcpu=haswell -num-cores=2 -l1-bytes=2048",
        "llvm -mcpu=haswell -num-cores=2 -l2-bytes=2048", "llvm -mcpu=haswell -num-cores=2 -l3-bytes=2048",
        "llvm -mcpu=haswell -num-cores=2 -vector-width=128", "c -mcpu=haswell -num-cores=2"}) {
    EXPECT_FALSE(base == parse(other)) << other;
    EXPECT_FALSE(base.hash() == parse(other).hash()) << other;
  }
  Target gpu = parse("cuda");
  for (const char* option : {"-arch=sm_80", "-max_threads_per_block=2", "-max_num_threads=2", "-thread_warp_size=2",
                             "-max_shared_memory_per_block=2", "-registers_per_block=2", "-l2_cache_size_bytes=2"}) {
    Target other = parse("cuda " + std::string(option));
    EXPECT_FALSE(gpu == other) << option;
    EXPECT_FALSE(gpu.hash() == other.hash()) << option;
    EXPECT_EQ(other.str(), "cuda " + std::string(option));
  }
  EXPECT_EQ(base.with_num_cores(3), parse("llvm -mcpu=haswell -num-cores=3"));
  EXPECT_FALSE(Target::host() == Target::interpreter());
}

TEST(Target, HasAPartForItsKindAndAHost) {
  Target gpu = parse("cuda -arch=sm_86 -max_shared_memory_per_block=101376");
  EXPECT_EQ(gpu.kind, TargetKind::kCuda);
  EXPECT_EQ(gpu.str(), "cuda -arch=sm_86 -max_shared_memory_per_block=101376");
  EXPECT_EQ(gpu.keys(), (std::vector<std::string>{"cuda", "gpu"}));
  EXPECT_TRUE(gpu.is_in(TargetSet::kGpu) && gpu.is_in(TargetSet::kMachines) && !gpu.is_in(TargetSet::kCpu));
  EXPECT_EQ(gpu.max_shared_memory_per_block, 101376);
  EXPECT_EQ(gpu.thread_warp_size, 32);
  EXPECT_EQ(gpu.launcher, nullptr);
  Target launched = *gpu.with_host(parse("llvm -mcpu=haswell -num-cores=2"));
  EXPECT_EQ(launched.launcher->cpu, "haswell");
  EXPECT_FALSE(launched == gpu);
  EXPECT_FALSE(launched.hash() == gpu.hash());
  EXPECT_FALSE(launched == *gpu.with_host(parse("llvm -mcpu=haswell -num-cores=3")));
  EXPECT_EQ(parse("nvidia"
                  "/nvidia-a100")
                .arch,
            "sm_80");
  for (const std::string& tag : known_target_tags()) {
    EXPECT_EQ(parse(tag).kind, tag.starts_with("aws/cpu/") ? TargetKind::kCpu : TargetKind::kCuda) << tag;
  }
  for (const std::string& kind : known_target_kinds()) EXPECT_EQ(parse(kind).kind_name(), kind);
  EXPECT_TRUE(parse("llvm").is_in(TargetSet::kCpu) && parse("hexagon").is_in(TargetSet::kCpu));
  EXPECT_FALSE(Target::interpreter().is_in(TargetSet::kMachines));
  EXPECT_TRUE(Target::interpreter().is_in(TargetSet::kAll));
  EXPECT_TRUE(parse("llvm").check_has_code().ok());
  EXPECT_TRUE(gpu.check_has_code().ok());
  EXPECT_EQ(parse("hexagon").check_has_code().error().code, "target/no-code");
}

TEST(Target, SaysWhatIsWrong) {
  EXPECT_EQ(failure(""), "target/kind: target kind (empty) is unknown");
  EXPECT_EQ(failure("metal -arch=sm_90"), "target/kind: target kind metal is unknown");
  EXPECT_EQ(failure(R"({"kind": "metal"})"), "target/kind: target kind metal is unknown");
  EXPECT_EQ(failure("cuda -mcpu=haswell"), "target/option: target option mcpu is unknown");
  EXPECT_EQ(failure("llvm -arch=sm_80"), "target/option: target option arch is unknown");
  EXPECT_EQ(failure("cuda -thread_warp_size=0"),
            "target/value: target option thread_warp_size is 0, which is not an integer from 1 to 1024");
  EXPECT_EQ(failure("nvidia"
                    "/Voodoo-2"),
            "target/tag: there is no target named nvidia"
            "/Voodoo-2");
  EXPECT_EQ(failure(R"({"kind": "llvm", "host": "cuda"})"), "target/host: a target of kind cuda cannot be a host");
  EXPECT_EQ(failure("llvm mcpu=haswell"), "target/option: target llvm does not take mcpu=haswell");
  EXPECT_EQ(failure("llvm -mcpu"), "target/option: target llvm does not take -mcpu");
  EXPECT_EQ(failure("llvm -"), "target/option: target llvm does not take -");
  EXPECT_EQ(failure("interpreter -num-cores=2"), "target/option: target interpreter does not take -num-cores=2");
  EXPECT_EQ(failure("native -mcpu=haswell"), "target/option: target native does not take -mcpu=haswell");
  EXPECT_EQ(failure("llvm -march=x86-64"), "target/option: target option march is unknown");
  EXPECT_EQ(failure("llvm -mcpu=pentium5"), "target/cpu: processor pentium5 is unknown");
  EXPECT_EQ(failure("llvm -mattr=+avx3"), "target/feature: instruction set avx3 is unknown");
  EXPECT_EQ(failure("llvm -mattr=-neon"), "target/feature: instruction set neon is none of x86_64-linux-gnu");
  EXPECT_EQ(failure("llvm -mtriple=aarch64-linux-gnu -mattr=+avx2"),
            "target/feature: instruction set avx2 is none of aarch64-linux-gnu");
  EXPECT_EQ(failure("llvm -mtriple=aarch64-linux-gnu -mcpu=haswell"),
            "target/triple: processor haswell is none of aarch64-linux-gnu");
  EXPECT_EQ(failure("llvm -mtriple=riscv64-linux-gnu"), "target/triple: there is no code for riscv64-linux-gnu");
  EXPECT_EQ(failure("llvm -mtriple=aarch64-apple-darwin"), "target/triple: there is no code for aarch64-apple-darwin");
  for (const char* other :
       {"aarch64_be-linux-gnu", "x86_64-linux-gnux32", "x86_64h-linux-gnu", "aarch64-linux-gnu_ilp32"}) {
    EXPECT_EQ(failure(std::string("llvm -mtriple=") + other),
              std::string("target/triple: there is no code for ") + other);
  }
  EXPECT_TRUE(failure(std::string("llvm -num-cores=2\0", 18)).starts_with("target/value: "));
  EXPECT_EQ(failure("llvm -num-cores=0"),
            "target/value: target option num-cores is 0, which is not an integer from 1 to 4096");
  EXPECT_EQ(failure("llvm -num-cores="),
            "target/value: target option num-cores is empty, which is not an integer from 1 to 4096");
  EXPECT_EQ(failure("llvm -num-cores=99999999999999999999"),
            "target/value: target option num-cores is 99999999999999999999, which is not an integer from 1 to 4096");
  EXPECT_EQ(failure("llvm -num-cores=2x"),
            "target/value: target option num-cores is 2x, which is not an integer from 1 to 4096");
  EXPECT_EQ(failure("llvm -mcpu=haswell -vector-width=512"),
            "target/value: target option vector-width is 512, but the processor has registers of up to 256 bits");
  EXPECT_EQ(failure("llvm -mcpu=haswell -vector-width=200"),
            "target/value: target option vector-width is 200, but the processor has registers of up to 256 bits");
  EXPECT_EQ(failure("{\"kind\": "), "target/json: the target looks like JSON but is not a JSON object");
  EXPECT_EQ(failure(R"({"mcpu": "haswell"})"), "target/json: the target has no \"kind\"");
  EXPECT_EQ(failure(R"({"kind": "llvm", "num-cores": 1.5})"), "target/json: target option num-cores is 1.5");
  EXPECT_EQ(failure(R"({"kind": "llvm", "num-cores": ["2", 3]})"), "target/json: target option num-cores is [\"2\",3]");
  const std::string nested = std::string(200'000, '[') + std::string(200'000, ']');
  EXPECT_EQ(failure(R"({"kind": "llvm", "num-cores": )" + nested + "}"),
            "target/json: target option num-cores is a nested array");
  EXPECT_EQ(failure(R"({"kind": "llvm", "cores": 4})"), "target/option: target option cores is unknown");
}

TEST(Target, Arm) {
  Target target = parse("llvm -mtriple=aarch64-unknown-linux-gnu -mattr=+v8.2a,+dotprod -num-cores=2");
  EXPECT_TRUE(target.is_arm());
  EXPECT_EQ(target.str(), "llvm -mtriple=aarch64-linux-gnu -mcpu=generic -mattr=+crc,+lse,+rdm,+dotprod -num-cores=2");
  EXPECT_TRUE(target.has("neon") && target.has("fp-armv8") && !target.has("sve"));
  EXPECT_EQ(target.vector_bits, 128);
  EXPECT_EQ(target.vector_registers, 32);
  EXPECT_EQ(target.llvm_features().find("avx"), std::string::npos);
  Target wide = parse("llvm -mcpu=neoverse-v1");
  EXPECT_TRUE(wide.has("sve") && wide.has("fullfp16") && wide.has("i8mm"));
  EXPECT_FALSE(parse("llvm -mcpu=haswell").is_arm());
  EXPECT_EQ(parse("llvm -mcpu=haswell").llvm_features().find("neon"), std::string::npos);
  EXPECT_NE(target.runs_here(), parse("native").is_arm() != target.is_arm());
}

TEST(CpuModels, NamesByNumber) {
  auto name = [](const char* vendor, int family, int model, int stepping = 0, const char* features = "") {
    tw_host_cpu cpu = {};
    std::strcpy(cpu.vendor, vendor);
    cpu.family = family;
    cpu.model = model;
    cpu.stepping = stepping;
    tw_cpu_features set = {};
    for (std::string_view list = features; !list.empty();) {
      size_t comma = std::min(list.find(','), list.size());
      EXPECT_TRUE(target::enable_feature(set, list.substr(0, comma)));
      list.remove_prefix(std::min(comma + 1, list.size()));
    }
    return target::cpu_name(cpu, set);
  };
  EXPECT_EQ(name("AuthenticAMD", 0x19, 0x01), "znver3");
  EXPECT_EQ(name("AuthenticAMD", 0x19, 0x11), "znver4");
  EXPECT_EQ(name("AuthenticAMD", 0x17, 0x31), "znver2");
  EXPECT_EQ(name("AuthenticAMD", 0x1a, 0x02), "znver5");
  EXPECT_EQ(name("HygonGenuine", 0x18, 0x01), "znver1");
  EXPECT_EQ(name("GenuineIntel", 6, 0x55, 4), "skylake-avx512");
  EXPECT_EQ(name("GenuineIntel", 6, 0x55, 7), "cascadelake");
  EXPECT_EQ(name("GenuineIntel", 6, 0x55, 11), "cooperlake");
  EXPECT_EQ(name("GenuineIntel", 6, 0x8f), "sapphirerapids");
  EXPECT_EQ(name("GenuineIntel", 6, 0x3c), "haswell");
  // Unknown ones go by what they can do.
  EXPECT_EQ(name("GenuineIntel", 6, 0xfe), "x86-64");
  EXPECT_EQ(name("CentaurHauls", 7, 1, 0, "sse4.2,cx16,popcnt,sahf,crc32"), "x86-64-v2");
  EXPECT_EQ(name("AuthenticAMD", 0x2a, 1, 0, "avx2,bmi,bmi2,f16c,fma,lzcnt,movbe,xsave,cx16,popcnt,sahf,crc32"),
            "x86-64-v3");
}

TEST(CpuModels, AreConsistent) {
  for (auto& model : target::cpu_models()) {
    EXPECT_EQ(target::find_cpu_model(model.name), &model) << "twice: " << model.name;
    tw_cpu_features closed = model.features;
    target::drop_unsupported_features(closed);
    EXPECT_TRUE(target::operator==(closed, model.features)) << model.name;
    EXPECT_GT(model.l1_bytes, 0);
    EXPECT_GT(model.l2_bytes, model.l1_bytes);
  }
}

TEST(CpuModels, DropsWhatIsNotWhole) {
  tw_cpu_features set;
  const char* unknown;
  ASSERT_EQ(tw_parse_features("sse3,ssse3,sse4.1,sse4.2,avx,avx512f,avx512vl,amx-int8", &set, &unknown), 0);
  target::drop_unsupported_features(set);
  EXPECT_TRUE(tw_has_cpu_feature(&set, TW_CPU_avx));
  EXPECT_FALSE(tw_has_cpu_feature(&set, TW_CPU_avx512f));
  EXPECT_FALSE(tw_has_cpu_feature(&set, TW_CPU_avx512vl));
  EXPECT_FALSE(tw_has_cpu_feature(&set, TW_CPU_amx_int8));
}

}  // namespace
}  // namespace tilewright
