// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "bench/measure/Environment.h"

#include "support/Affinity.h"
#include "support/FileIO.h"

#include <algorithm>
#include <fmt/format.h>
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

} // namespace mgpu::bench
