#include "target/cpu_models.h"

#include <algorithm>
#include <utility>

#include "support/diagnostic.h"

namespace tilewright::target {
namespace {

int feature_number(std::string_view name) {
  return tw_cpu_feature_from_name(name.data(), static_cast<int>(name.size()));
}

void set_bit(tw_cpu_features& set, int feature, bool value) {
  uint64_t bit = uint64_t{1} << (feature % 64);
  uint64_t& word = set.words[feature / 64];
  word = value ? word | bit : word & ~bit;
}

template <class F>
void for_each_in_list(std::string_view list, F f) {
  while (!list.empty()) {
    size_t comma = std::min(list.find(','), list.size());
    if (comma > 0) f(list.substr(0, comma));
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
}

/// Pairs of a feature and a feature that it directly implies.
const std::vector<std::pair<int, int>>& implications() {
  static const auto pairs = [] {
    std::vector<std::pair<int, int>> result;
    auto add = [&](std::string_view feature, std::string_view needs) {
      for_each_in_list(needs, [&](std::string_view need) {
        TW_CHECK(feature_number(feature) >= 0 && feature_number(need) >= 0, std::string(feature));
        result.emplace_back(feature_number(feature), feature_number(need));
      });
    };
#define TW_IMPLIES(feature, needs) add(feature, needs);
#include "target/implied_features.def"
#undef TW_IMPLIES
    return result;
  }();
  return pairs;
}

bool contains(const tw_cpu_features& set, const tw_cpu_features& subset) {
  for (int i = 0; i < TW_CPU_FEATURE_WORDS; ++i) {
    if (subset.words[i] & ~set.words[i]) return false;
  }
  return true;
}

struct ModelNumber {
  int family, first, last;  // family, and the range of model numbers
  const char* name;
};

// Family 6 of Intel and families 16 to 26 of AMD, with the names that LLVM gives them.
constexpr ModelNumber kIntel[] = {
    {6, 0x1a, 0x1a, "nehalem"},
    {6, 0x1e, 0x1f, "nehalem"},
    {6, 0x2e, 0x2e, "nehalem"},
    {6, 0x25, 0x25, "westmere"},
    {6, 0x2c, 0x2c, "westmere"},
    {6, 0x2f, 0x2f, "westmere"},
    {6, 0x2a, 0x2a, "sandybridge"},
    {6, 0x2d, 0x2d, "sandybridge"},
    {6, 0x3a, 0x3a, "ivybridge"},
    {6, 0x3e, 0x3e, "ivybridge"},
    {6, 0x3c, 0x3c, "haswell"},
    {6, 0x3f, 0x3f, "haswell"},
    {6, 0x45, 0x46, "haswell"},
    {6, 0x3d, 0x3d, "broadwell"},
    {6, 0x47, 0x47, "broadwell"},
    {6, 0x4f, 0x4f, "broadwell"},
    {6, 0x56, 0x56, "broadwell"},
    {6, 0x4e, 0x4e, "skylake"},
    {6, 0x5e, 0x5e, "skylake"},
    {6, 0x8e, 0x8e, "skylake"},
    {6, 0x9e, 0x9e, "skylake"},
    {6, 0xa5, 0xa6, "skylake"},
    {6, 0x55, 0x55, "skylake-avx512"},
    {6, 0x66, 0x66, "cannonlake"},
    {6, 0x7d, 0x7e, "icelake-client"},
    {6, 0xa7, 0xa7, "rocketlake"},
    {6, 0x6a, 0x6a, "icelake-server"},
    {6, 0x6c, 0x6c, "icelake-server"},
    {6, 0x8c, 0x8d, "tigerlake"},
    {6, 0x8f, 0x8f, "sapphirerapids"},
    {6, 0xcf, 0xcf, "emeraldrapids"},
    {6, 0xad, 0xad, "graniterapids"},
    {6, 0xae, 0xae, "graniterapids-d"},
    {6, 0x97, 0x97, "alderlake"},
    {6, 0x9a, 0x9a, "alderlake"},
    {6, 0xbe, 0xbe, "gracemont"},
    {6, 0xb7, 0xb7, "raptorlake"},
    {6, 0xba, 0xba, "raptorlake"},
    {6, 0xbf, 0xbf, "raptorlake"},
    {6, 0xaa, 0xaa, "meteorlake"},
    {6, 0xac, 0xac, "meteorlake"},
    {6, 0xaf, 0xaf, "sierraforest"},
    {6, 0xb6, 0xb6, "grandridge"},
    {6, 0xb5, 0xb5, "arrowlake"},
    {6, 0xc5, 0xc5, "arrowlake"},
    {6, 0xc6, 0xc6, "arrowlake-s"},
    {6, 0xbd, 0xbd, "lunarlake"},
    {6, 0xcc, 0xcc, "pantherlake"},
    {6, 0xdd, 0xdd, "clearwaterforest"},
    {6, 0x57, 0x57, "knl"},
    {6, 0x85, 0x85, "knm"},
    {6, 0x37, 0x37, "silvermont"},
    {6, 0x4a, 0x4d, "silvermont"},
    {6, 0x5a, 0x5a, "silvermont"},
    {6, 0x5d, 0x5d, "silvermont"},
    {6, 0x5c, 0x5c, "goldmont"},
    {6, 0x5f, 0x5f, "goldmont"},
    {6, 0x7a, 0x7a, "goldmont-plus"},
    {6, 0x86, 0x86, "tremont"},
    {6, 0x8a, 0x8a, "tremont"},
    {6, 0x96, 0x96, "tremont"},
    {6, 0x9c, 0x9c, "tremont"},
};
constexpr ModelNumber kAmd[] = {
    {0x10, 0, 255, "amdfam10"},   {0x14, 0, 255, "btver1"},     {0x15, 0, 0x01, "bdver1"}, {0x15, 0x02, 0x1f, "bdver2"},
    {0x15, 0x30, 0x3f, "bdver3"}, {0x15, 0x60, 0x7f, "bdver4"}, {0x16, 0, 255, "btver2"},  {0x17, 0, 0x2f, "znver1"},
    {0x17, 0x30, 0xff, "znver2"}, {0x18, 0, 255, "znver1"},     {0x19, 0, 0x0f, "znver3"}, {0x19, 0x10, 0x1f, "znver4"},
    {0x19, 0x20, 0x5f, "znver3"}, {0x19, 0x60, 0xaf, "znver4"}, {0x1a, 0, 255, "znver5"},
};

std::string name_of_model(const tw_host_cpu& cpu) {
  auto search = [&](const auto& table) -> std::string {
    for (const ModelNumber& entry : table) {
      if (cpu.family == entry.family && cpu.model >= entry.first && cpu.model <= entry.last) return entry.name;
    }
    return "";
  };
  std::string_view vendor = cpu.vendor;
  if (vendor == "AuthenticAMD" || vendor == "HygonGenuine") return search(kAmd);
  if (vendor != "GenuineIntel") return "";
  std::string name = search(kIntel);
  if (name == "skylake-avx512" && cpu.stepping >= 10) return "cooperlake";
  if (name == "skylake-avx512" && cpu.stepping >= 5) return "cascadelake";
  return name;
}

/// Calls `mend(user, needed)` for features whose needed feature is missing, until there are none. It takes at most as
/// many rounds as the longest chain of implications.
template <class Mend>
void mend_implications(const tw_cpu_features& set, const Mend& mend) {
  for (bool changed = true; changed;) {
    changed = false;
    for (auto [user, needed] : implications()) {
      if (!tw_has_cpu_feature(&set, user) || tw_has_cpu_feature(&set, needed)) continue;
      mend(user, needed);
      changed = true;
    }
  }
}

}  // namespace

bool operator==(const tw_cpu_features& a, const tw_cpu_features& b) { return contains(a, b) && contains(b, a); }

bool enable_feature(tw_cpu_features& set, std::string_view name) {
  int feature = feature_number(name);
  if (feature < 0) return false;
  set_bit(set, feature, true);
  mend_implications(set, [&](int, int needed) { set_bit(set, needed, true); });
  return true;
}

void drop_unsupported_features(tw_cpu_features& set) {
  mend_implications(set, [&](int user, int) { set_bit(set, user, false); });
}

bool disable_feature(tw_cpu_features& set, std::string_view name) {
  int feature = feature_number(name);
  if (feature < 0) return false;
  set_bit(set, feature, false);
  drop_unsupported_features(set);
  return true;
}

const std::vector<CpuModel>& cpu_models() {
  static const auto models = [] {
    std::vector<CpuModel> result;
    auto add = [&](std::string name, std::string_view base, std::string_view more, int64_t l1, int64_t l2, int64_t l3) {
      CpuModel model{std::move(name), {}, l1 << 10, l2 << 10, l3 << 20};
      for (auto& other : result) {
        if (other.name == base) model.features = other.features;
      }
      for_each_in_list(more, [&](std::string_view feature) {
        bool known = enable_feature(model.features, feature);
        TW_CHECK(known, std::string(feature));
      });
      result.push_back(std::move(model));
    };
#define TW_CPU_MODEL(name, base, more, l1, l2, l3) add(name, base, more, l1, l2, l3);
#include "target/cpus.def"
#undef TW_CPU_MODEL
    return result;
  }();
  return models;
}

const CpuModel* find_cpu_model(std::string_view name) {
  for (auto& model : cpu_models()) {
    if (model.name == name) return &model;
  }
  return nullptr;
}

std::string cpu_name(const tw_host_cpu& cpu, const tw_cpu_features& features) {
  std::string name = name_of_model(cpu);
  if (!name.empty()) return name;
  if (tw_has_cpu_feature(&features, TW_CPU_neon)) return "generic";
  name = "x86-64";
  for (const char* level : {"x86-64-v2", "x86-64-v3", "x86-64-v4"}) {
    if (contains(features, find_cpu_model(level)->features)) name = level;
  }
  return name;
}

}  // namespace tilewright::target
