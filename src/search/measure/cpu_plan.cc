#include "search/measure/cpu_plan.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>

namespace tilewright::search {

CpuPlan plan_cpus(std::vector<Processor> processors, int threads) {
  std::ranges::sort(processors, [](const Processor& a, const Processor& b) { return a.cpu > b.cpu; });
  // Stable, by how many of the same core came before: first one processor of each core, then their siblings.
  std::map<int32_t, int> seen;
  std::vector<std::pair<int, Processor>> ranked;
  for (const Processor& processor : processors) ranked.emplace_back(seen[processor.core]++, processor);
  std::ranges::stable_sort(ranked, [](const auto& a, const auto& b) { return a.first < b.first; });

  CpuPlan plan;
  std::set<int32_t> busy_cores;
  std::vector<Processor> rest;
  for (const auto& [rank, processor] : ranked) {
    if (static_cast<int>(plan.measure.size()) < std::max(threads, 1)) {
      plan.measure.push_back(processor.cpu);
      busy_cores.insert(processor.core);
    } else {
      rest.push_back(processor);
    }
  }
  for (const Processor& processor : rest) {
    if (!busy_cores.contains(processor.core)) plan.build.push_back(processor.cpu);
  }
  if (plan.build.empty()) {
    for (const Processor& processor : rest) plan.build.push_back(processor.cpu);
  }
  plan.exclusive = plan.build.empty();
  if (plan.exclusive) plan.build = plan.measure;
  std::ranges::sort(plan.measure);
  std::ranges::sort(plan.build);
  return plan;
}

std::vector<Processor> usable_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<Processor> processors;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return {{0, 0}};
  for (int32_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &set)) continue;
    // The first of the siblings names the core; unknown: a core of its own.
    int32_t core = cpu;
    std::ifstream(fmt::format("/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list", cpu)) >> core;
    processors.push_back({cpu, core});
  }
  return processors;
}

}  // namespace tilewright::search
