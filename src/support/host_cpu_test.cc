#include "support/host_cpu.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace {

namespace fs = std::filesystem;

TEST(HostCpu, FeaturesAgreeWithTheSystem) {
  std::ifstream file("/proc/cpuinfo");
  std::string line, flags;
  while (std::getline(file, line)) {
    if (line.rfind("flags", 0) == 0) {
      flags = line.substr(line.find(':') + 1) + " ";
      break;
    }
  }
  if (flags.empty()) GTEST_SKIP() << "no flags in /proc/cpuinfo";
  // Ours and Linux's spelling.
  const std::pair<const char*, const char*> names[] = {{"sse4.2", "sse4_2"},
                                                       {"avx", "avx"},
                                                       {"avx2", "avx2"},
                                                       {"fma", "fma"},
                                                       {"f16c", "f16c"},
                                                       {"bmi2", "bmi2"},
                                                       {"avx512f", "avx512f"},
                                                       {"avx512vl", "avx512vl"},
                                                       {"avx512vnni", "avx512_vnni"},
                                                       {"avx512bf16", "avx512_bf16"},
                                                       {"avxvnni", "avx_vnni"},
                                                       {"amx-tile", "amx_tile"},
                                                       {"amx-int8", "amx_int8"},
                                                       {"lzcnt", "abm"}};
  for (auto [ours, theirs] : names) {
    int feature = tw_cpu_feature_from_name(ours, static_cast<int>(std::string(ours).size()));
    ASSERT_GE(feature, 0) << ours;
    bool listed = flags.find(" " + std::string(theirs) + " ") != std::string::npos;
    EXPECT_EQ(tw_has_cpu_feature(tw_host_cpu_features(), feature) != 0, listed) << ours;
  }
}

TEST(HostCpu, NamesAndNumbersOfFeaturesAgree) {
  for (int i = 0; i < TW_NUM_CPU_FEATURES; ++i) {
    std::string name = tw_cpu_feature_name(i);
    EXPECT_EQ(tw_cpu_feature_from_name(name.data(), static_cast<int>(name.size())), i) << name;
  }
  EXPECT_EQ(tw_cpu_feature_name(-1), nullptr);
  EXPECT_EQ(tw_cpu_feature_name(TW_NUM_CPU_FEATURES), nullptr);
  EXPECT_EQ(tw_cpu_feature_from_name("avx", 2), -1);
}

TEST(HostCpu, ReadsListsOfFeatures) {
  tw_cpu_features set;
  const char* unknown = nullptr;
  ASSERT_EQ(tw_parse_features("avx2,+fma,,amx-tile", &set, &unknown), 0);
  int count = 0;
  for (int i = 0; i < TW_NUM_CPU_FEATURES; ++i) count += tw_has_cpu_feature(&set, i);
  EXPECT_EQ(count, 3);
  EXPECT_TRUE(tw_has_cpu_feature(&set, TW_CPU_avx2) && tw_has_cpu_feature(&set, TW_CPU_fma) &&
              tw_has_cpu_feature(&set, TW_CPU_amx_tile));
  ASSERT_EQ(tw_parse_features("", &set, &unknown), 0);
  EXPECT_EQ(set.words[0] | set.words[1], 0u);
  EXPECT_EQ(tw_parse_features("avx2,mmix,fma", &set, &unknown), 4);
  EXPECT_EQ(std::string(unknown, 4), "mmix");
}

TEST(HostCpu, CachesArePlausible) {
  const tw_host_cpu* cpu = tw_host_cpu_info();
  EXPECT_GE(cpu->l1_bytes, 8 << 10);
  EXPECT_LE(cpu->l1_bytes, 1 << 20);
  EXPECT_TRUE(cpu->l2_bytes == 0 || cpu->l2_bytes > cpu->l1_bytes);
  EXPECT_TRUE(cpu->l3_bytes == 0 || cpu->l3_sharers >= 1);
  EXPECT_GE(cpu->line_bytes, 16);
}

TEST(HostCpu, CountsAreWithinOneAnother) {
  EXPECT_GE(tw_count_cores(), 1);
  EXPECT_GE(tw_count_processors(), tw_count_cores());
  int cpus[2] = {-1, -1};
  int cores = tw_list_cores(cpus, 2);
  EXPECT_GE(cores, tw_count_cores());
  EXPECT_GE(cpus[0], 0);
  EXPECT_NE(cpus[0], cpus[1]);
}

// A file system of control groups in a temporary folder.
class Cgroups : public testing::Test {
 protected:
  void SetUp() override {
    char pattern[] = "/tmp/cgroups-XXXXXX";
    ASSERT_NE(mkdtemp(pattern), nullptr);
    root = pattern;
  }
  void TearDown() override { fs::remove_all(root); }
  void write(const std::string& path, const std::string& text) {
    fs::create_directories((root / path).parent_path());
    std::ofstream(root / path) << text;
  }
  double quota() { return tw_cgroup_quota((root / "self").c_str(), root.c_str()); }
  fs::path root;
};

TEST_F(Cgroups, VersionTwo) {
  write("self", "0::/user/job\n");
  EXPECT_EQ(quota(), 0);
  write("user/job/cpu.max", "max 100000\n");
  EXPECT_EQ(quota(), 0);
  write("user/job/cpu.max", "150000 100000\n");
  EXPECT_DOUBLE_EQ(quota(), 1.5);
}

TEST_F(Cgroups, TheTightestGroupAboveCounts) {
  write("self", "0::/user/job\n");
  write("user/job/cpu.max", "400000 100000\n");
  write("user/cpu.max", "300000 100000\n");
  write("cpu.max", "800000 100000\n");
  EXPECT_DOUBLE_EQ(quota(), 3);
}

TEST_F(Cgroups, VersionOne) {
  write("self", "5:memory:/x\n4:cpu,cpuacct:/docker/abc\n1:name=systemd:/\n");
  // In a container the group's own folder is the mount itself.
  write("cpu/cpu.cfs_quota_us", "250000\n");
  write("cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_DOUBLE_EQ(quota(), 2.5);
  write("cpu/cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(quota(), 0);
}

TEST_F(Cgroups, MissingOrStrangeFilesMeanNoLimit) {
  EXPECT_EQ(quota(), 0);
  write("self", "nonsense\n0:\n" + std::string(5000, 'x'));
  EXPECT_EQ(quota(), 0);
  write("self", "0::/\n");
  write("cpu.max", "lots\n");
  EXPECT_EQ(quota(), 0);
}

}  // namespace
