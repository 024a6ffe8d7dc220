// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "bench/measure/Environment.h"

#include "support/Affinity.h"
#include "support/FileIO.h"
#include "support/Units.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <sys/utsname.h>
#include <unistd.h>

namespace mgpu::bench {

static std::string readLine(const char *path) {
  auto text = readText(path, 1 << 20);
  return text ? text->substr(0, text->find('\n')) : std::string();
}

/// The first "NAME : value" of /proc/cpuinfo.
static std::string cpuField(std::string_view text, std::string_view name) {
  for (size_t start = 0; start < text.size();) {
    size_t end = std::min(text.find('\n', start), text.size());
    std::string_view line = text.substr(start, end - start);
    start = end + 1;
    size_t colon = line.find(':');
    if (line.starts_with(name) && colon != std::string_view::npos)
      return std::string(line.substr(std::min(colon + 2, line.size())));
  }
  return {};
}

/// The word in brackets: "always [madvise] never".
static std::string chosenOf(const std::string &text) {
  size_t open = text.find('['), close = text.find(']', open);
  return open == std::string::npos || close == std::string::npos
             ? text
             : text.substr(open + 1, close - open - 1);
}

Environment readEnvironment() {
  Environment found;
  auto cpuText = readText("/proc/cpuinfo", 16 << 20);
  if (cpuText) {
    found.cpu = cpuField(*cpuText, "model name");
    if (cpuField(*cpuText, "flags").find(" hypervisor") != std::string::npos)
      found.hypervisor = "yes";
  }
  found.cores = usableCores();
  found.governor =
      readLine("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
  std::string noTurbo =
      readLine("/sys/devices/system/cpu/intel_pstate/no_turbo");
  std::string boost = readLine("/sys/devices/system/cpu/cpufreq/boost");
  if (!noTurbo.empty())
    found.turbo = noTurbo == "0" ? "on" : "off";
  else if (!boost.empty())
    found.turbo = boost == "1" ? "on" : "off";
  found.hugePages =
      chosenOf(readLine("/sys/kernel/mm/transparent_hugepage/enabled"));
  utsname name{};
  if (uname(&name) == 0)
    found.kernel = fmt::format("{} {}", name.sysname, name.release);
#ifdef __clang__
  found.compiler = fmt::format("clang {}", __clang_version__);
#else
  found.compiler = fmt::format("g++ {}", __VERSION__);
#endif
#ifdef NDEBUG
  found.build = "without assertions";
#else
  found.build = "with assertions";
#endif
  std::string load = readLine("/proc/loadavg");
  found.loadAverage = load.substr(0, load.find(' '));
  long pages = sysconf(_SC_PHYS_PAGES), pageBytes = sysconf(_SC_PAGESIZE);
  if (pages > 0 && pageBytes > 0)
    found.memoryBytes = uint64_t(pages) * uint64_t(pageBytes);
  long cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
  found.lastLevelCacheBytes = cache > 0 ? uint64_t(cache) : 0;
  return found;
}

std::vector<std::pair<std::string, std::string>>
Environment::entries(bool stableOnly) const {
  std::vector<std::pair<std::string, std::string>> list = {
      {"cpu", cpu},
      {"cores", std::to_string(cores)},
      {"governor", governor},
      {"turbo", turbo},
      {"huge_pages", hugePages},
      {"kernel", kernel},
      {"hypervisor", hypervisor},
      {"compiler", compiler},
      {"build", build},
      {"memory_bytes", memoryBytes ? std::to_string(memoryBytes) : ""},
      {"last_level_cache_bytes",
       lastLevelCacheBytes ? std::to_string(lastLevelCacheBytes) : ""}};
  if (!stableOnly) {
    list.emplace_back("load_average", loadAverage);
    list.emplace_back("pinned_cpus", pinnedCpus);
  }
  std::erase_if(list, [](const auto &entry) { return entry.second.empty(); });
  return list;
}

/// The name that all hardware threads of a core share; the CPU's own number
/// where the system does not say.
static std::string coreOf(int cpu) {
  auto text = readText(
      fmt::format("/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list",
                  cpu),
      1 << 16);
  return text && !text->empty() ? *text : std::to_string(cpu);
}

std::vector<int> cpusInOrder() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) != 0)
    return {};
  std::vector<int> allowed;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &set))
      allowed.push_back(cpu);
  // Two tuners at once are on different ones, as the system has put them.
  if (auto here = std::find(allowed.begin(), allowed.end(), sched_getcpu());
      here != allowed.end())
    std::rotate(allowed.begin(), here, allowed.end());
  std::vector<int> first, further;
  std::set<std::string> cores;
  for (int cpu : allowed)
    (cores.insert(coreOf(cpu)).second ? first : further).push_back(cpu);
  first.insert(first.end(), further.begin(), further.end());
  return first;
}

std::vector<int> cpusFor(const std::vector<int> &cpus, uint32_t threads) {
  if (cpus.size() < threads)
    return {};
  return {cpus.begin(), cpus.begin() + threads};
}

Result<std::vector<int>> cpusToPin(uint32_t threads) {
  const std::vector<int> all = cpusInOrder();
  std::vector<int> cpus = cpusFor(all, threads);
  if (cpus.empty())
    return fail(ErrorKind::Usage,
                fmt::format("pin: the program replays with {} and this process "
                            "may use {}: allow it more (taskset), take fewer "
                            "threads, or leave it out",
                            counted(threads, "thread"),
                            counted(all.size(), "CPU")));
  return cpus;
}

Result<void> pinForGood(int cpu) {
  if (pinThread(cpu))
    return {};
  return fail(ErrorKind::Usage,
              fmt::format("pin: the system does not let this process stay on "
                          "CPU {} (sched_setaffinity): leave it out",
                          cpu));
}

PinnedThread::PinnedThread(int cpu) : before(pinThread(cpu)) {}

PinnedThread::~PinnedThread() {
  if (before)
    sched_setaffinity(0, sizeof(*before), &*before);
}

std::string cpusText(const std::vector<int> &cpus) {
  return cpus.empty() ? "none" : fmt::format("{}", fmt::join(cpus, ","));
}

} // namespace mgpu::bench
