// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `mgpu-tune doctor`: what of CUDA is there, and what will therefore not work.
#include "device/cuda/CudaDriver.h"
#include "device/cuda/Libraries.h"
#include "kernels/compile/NvrtcCompiler.h"
#include "support/FileIO.h"
#include "tools/mgpu-tune/Options.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <unistd.h>
#include <vector>

extern char **environ;

namespace mgpu::tune {

using nlohmann::json;

namespace {

/// The lines printed, and the same as JSON.
struct Report {
  json out;
  std::vector<std::pair<std::string, std::string>> lines;
  std::vector<std::string> problems;

  void add(const char *key, const char *title, json value,
           const std::string &text) {
    out[key] = std::move(value);
    lines.push_back({title, text});
  }
};

/// The first line of a file of /proc, or empty.
std::string firstLine(const char *path, std::string_view with = "") {
  auto bytes = readFile(path);
  if (!bytes)
    return "";
  std::string_view text(reinterpret_cast<const char *>(bytes->data()),
                        bytes->size());
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    if (line.starts_with(with))
      return std::string(line);
    text.remove_prefix(std::min(text.size(), line.size() + 1));
  }
  return "";
}

int majorOf(const std::string &version) { return std::atoi(version.c_str()); }

void reportCards(const device::CudaMachine &machine, Report &report) {
  json cards = json::array(), peers = json::array();
  for (size_t k = 0; k < machine.cards.size(); ++k) {
    const device::CudaMachine::Card &card = machine.cards[k];
    cards.push_back({{"name", card.name},
                     {"uuid", card.uuid},
                     {"arch", card.arch},
                     {"memory_bytes", card.memoryBytes},
                     {"multiprocessors", card.multiprocessors},
                     {"compute_mode", card.computeMode}});
    report.lines.push_back(
        {fmt::format("card {}", k),
         fmt::format(
             "{}, {}, {} bytes, {} multiprocessors, compute mode {}, {}",
             card.name, card.arch, card.memoryBytes, card.multiprocessors,
             card.computeMode, card.uuid)});
    if (card.computeMode != "default")
      report.problems.push_back(
          fmt::format("card {} is in compute mode {}: other processes may keep "
                      "it from this one",
                      k, card.computeMode));
    peers.push_back(card.reaches);
    std::string reached;
    for (size_t other = 0; other < card.reaches.size(); ++other)
      if (other != k && card.reaches[other])
        reached += fmt::format("{}{}", reached.empty() ? "" : ", ", other);
    if (machine.cards.size() > 1)
      report.lines.push_back(
          {fmt::format("peers of {}", k), reached.empty() ? "none" : reached});
  }
  report.out["cards"] = std::move(cards);
  report.out["peer_access"] = std::move(peers);
}

void reportDriver(Report &report, int &driverMajor) {
  std::string module = firstLine("/proc/driver/nvidia/version");
  report.add("kernel_module", "module", module.empty() ? json() : json(module),
             module.empty() ? "not loaded (/proc/driver/nvidia is not there)"
                            : module);
  auto machine = device::inspectCuda();
  if (!machine) {
    report.add("driver", "driver", {{"error", machine.error().message}},
               "no: " + machine.error().message);
    report.problems.push_back("--target cuda: there is no usable driver");
    return;
  }
  driverMajor = majorOf(machine->driver);
  report.add("driver", "driver",
             {{"cuda", machine->driver}, {"logs", machine->logs}},
             fmt::format("knows CUDA {}{}", machine->driver,
                         machine->logs ? "" : ", does not explain errors"));
  if (machine->cards.empty())
    report.problems.push_back("--target cuda: no card is visible");
  reportCards(*machine, report);
}

void reportNvrtc(Report &report, int driverMajor) {
  std::string headers = device::cudaHeaderVersion();
  report.add("headers", "headers", headers.empty() ? json() : json(headers),
             headers.empty() ? "built without" : "built with CUDA " + headers);
  auto nvrtc = kernels::NvrtcCompiler::open();
  if (!nvrtc) {
    report.add("nvrtc", "NVRTC", {{"error", nvrtc.error().message}},
               "no: " + nvrtc.error().message);
    report.problems.push_back("--target cuda, kernels: nothing compiles the "
                              "CUDA C++ of kernels");
    return;
  }
  std::string known;
  for (int architecture : nvrtc->architectures())
    known += fmt::format("{}{}", known.empty() ? "sm_" : " ", architecture);
  report.add("nvrtc", "NVRTC",
             {{"version", nvrtc->version()},
              {"architectures", nvrtc->architectures()}},
             fmt::format("{}, for {}", nvrtc->version(), known));
  if (driverMajor > 0 && majorOf(nvrtc->version()) > driverMajor)
    report.problems.push_back(fmt::format(
        "--target cuda: NVRTC {} makes code that a driver of CUDA {} does not "
        "load: install a newer driver or an older NVRTC",
        nvrtc->version(), driverMajor));
}

void reportLibrary(Report &report, const char *key, const char *title,
                   const Result<device::FoundLibrary> &found) {
  if (found)
    report.add(key, title, {{"version", found->version}, {"path", found->path}},
               fmt::format("{} ({})", found->version, found->path));
  else
    report.add(key, title, {{"error", found.error().message}},
               "no: " + found.error().message);
}

void reportPermissions(Report &report) {
  bool control = access("/dev/nvidiactl", F_OK) == 0;
  bool usable = access("/dev/nvidiactl", R_OK | W_OK) == 0;
  std::string text = !control ? "/dev/nvidiactl is not there"
                     : usable ? "/dev/nvidiactl can be opened"
                              : "/dev/nvidiactl may not be opened";
  if (control && !usable)
    report.problems.push_back("--target cuda: this user may not open "
                              "/dev/nvidiactl");
  // "RmProfilingAdminOnly: 1" by default; tracing does not need the counters.
  std::string admin =
      firstLine("/proc/driver/nvidia/params", "RmProfilingAdminOnly");
  bool counters = admin.ends_with("0") || geteuid() == 0;
  text += counters ? "; hardware counters are permitted"
                   : "; hardware counters are for administrators";
  report.add("permissions", "permissions",
             {{"device_nodes", control},
              {"device_nodes_usable", usable},
              {"counters", counters && !admin.empty()}},
             admin.empty() && !control ? "/dev/nvidiactl is not there" : text);
}

void reportEnvironment(Report &report) {
  json variables = json::object();
  std::vector<std::string> names;
  for (char **entry = environ; *entry; ++entry) {
    std::string_view text = *entry;
    bool isOurs = false;
    for (std::string_view prefix :
         {"CUDA_", "NCCL_", "NVRTC_", "NVIDIA_", "CUPTI_"})
      isOurs |= text.starts_with(prefix);
    size_t equals = text.find('=');
    if (!isOurs || equals == std::string_view::npos)
      continue;
    variables[std::string(text.substr(0, equals))] =
        std::string(text.substr(equals + 1));
    names.emplace_back(text);
  }
  std::sort(names.begin(), names.end());
  std::string shown;
  for (const std::string &name : names)
    shown += (shown.empty() ? "" : ", ") + name;
  report.add("environment", "environment", std::move(variables),
             shown.empty() ? "nothing of CUDA's" : shown);
  auto isSet = [&](const char *name) {
    const char *value = std::getenv(name);
    return value && *value && std::string_view(value) != "0";
  };
  if (isSet("CUDA_LAUNCH_BLOCKING"))
    report.problems.push_back("CUDA_LAUNCH_BLOCKING is set: launches wait, and "
                              "times mean nothing");
  if (isSet("CUDA_DEVICE_MAX_CONNECTIONS"))
    report.problems.push_back("CUDA_DEVICE_MAX_CONNECTIONS is set: plans count "
                              "on eight hardware channels");
  if (isSet("NVRTC_APPEND_FLAGS"))
    report.problems.push_back("NVRTC_APPEND_FLAGS is set: kernels are compiled "
                              "with flags of its");
  if (const char *paths = std::getenv("LD_LIBRARY_PATH");
      paths && std::string_view(paths).find("/stubs") != std::string_view::npos)
    report.problems.push_back("LD_LIBRARY_PATH has a folder of stubs: they "
                              "stand before the driver");
}

} // namespace

Result<int> runDoctor(const Options &options) {
  Report report;
  int driverMajor = 0;
  reportDriver(report, driverMajor);
  reportNvrtc(report, driverMajor);
  reportLibrary(report, "nccl", "NCCL", device::findNccl());
  reportLibrary(report, "cupti", "CUPTI", device::findCupti());
  reportPermissions(report);
  reportEnvironment(report);
  report.problems.push_back("several cards at a time, NCCL and CUPTI: this "
                            "version does not use them (docs/limits.md)");
  report.out["will_not_work"] = report.problems;
  if (options.json) {
    fmt::print("{}\n", report.out.dump(2));
    return 0;
  }
  for (const auto &[title, text] : report.lines)
    fmt::print("{:<12} {}\n", title, text);
  fmt::print("will not work:\n");
  for (const std::string &problem : report.problems)
    fmt::print("  {}\n", problem);
  return 0;
}

} // namespace mgpu::tune
