// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Finds the libraries, permissions and variables of CUDA.
#include "pipeline/target/Doctor.h"

#include "bench/measure/Environment.h"
#include "device/cuda/CudaDriver.h"
#include "device/cuda/api/Libraries.h"
#include "kernels/compile/NvrtcCompiler.h"
#include "support/FileIO.h"

#include <algorithm>
#include <cstdlib>
#include <fmt/format.h>
#include <string_view>
#include <unistd.h>
#include <vector>

extern char **environ;

namespace mgpu::pipeline {

using nlohmann::json;

namespace {

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

void reportDriver(MachineReport &report, int &driverMajor) {
  std::string module = firstLine("/proc/driver/nvidia/version");
  report.add("kernel_module", "module", module.empty() ? json() : json(module),
             module.empty() ? "not loaded (/proc/driver/nvidia is not there)"
                            : module);
  reportMachine(device::inspectCuda(), report, driverMajor);
}

/// Where the libraries are looked for after the loader's own places.
void reportToolkit(MachineReport &report) {
  json found = json::array();
  std::string text;
  for (const char *variable : {"CUDA_HOME", "CUDA_PATH", ""}) {
    const char *home = *variable ? std::getenv(variable) : "/usr/local/cuda";
    if (!home || !*home || access(home, F_OK) != 0)
      continue;
    if (std::find(found.begin(), found.end(), home) != found.end())
      continue;
    found.push_back(home);
    text += (text.empty() ? "" : ", ") + std::string(home);
  }
  report.add("toolkit", "toolkit", std::move(found),
             text.empty() ? "none at CUDA_HOME, CUDA_PATH or /usr/local/cuda"
                          : text);
}

void reportNvrtc(MachineReport &report, int driverMajor) {
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
  report.add(
      "nvrtc", "NVRTC",
      {{"version", nvrtc->version()},
       {"path", nvrtc->path()},
       {"architectures", nvrtc->architectures()}},
      fmt::format("{} ({}), for {}", nvrtc->version(), nvrtc->path(), known));
  if (driverMajor > 0 && std::atoi(nvrtc->version().c_str()) > driverMajor)
    report.problems.push_back(fmt::format(
        "--target cuda: NVRTC {} makes code that a driver of CUDA {} does not "
        "load: install a newer driver or an older NVRTC",
        nvrtc->version(), driverMajor));
}

void reportLibrary(MachineReport &report, const char *key, const char *title,
                   const Result<device::FoundLibrary> &found) {
  if (found)
    report.add(key, title, {{"version", found->version}, {"path", found->path}},
               fmt::format("{} ({})", found->version, found->path));
  else
    report.add(key, title, {{"error", found.error().message}},
               "no: " + found.error().message);
}

void reportPermissions(MachineReport &report) {
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

void reportEnvironment(MachineReport &report) {
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
  if (isSet("NCCL_GRAPH_MIXING_SUPPORT"))
    report.problems.push_back("NCCL_GRAPH_MIXING_SUPPORT is set: on several "
                              "GPUs it is 0, whatever it says");
  if (isSet("NCCL_COMM_BLOCKING"))
    report.problems.push_back("NCCL_COMM_BLOCKING is set: a rank that waits "
                              "for a dead one cannot give up by itself, and is "
                              "killed");
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

MachineReport inspectMachine() {
  MachineReport report;
  int driverMajor = 0;
  reportHost(report);
  reportDriver(report, driverMajor);
  reportToolkit(report);
  reportNvrtc(report, driverMajor);
  auto nccl = device::findNccl();
  reportLibrary(report, "nccl", "NCCL", nccl);
  if (!nccl)
    report.problems.push_back("--target cuda:K,L: " + nccl.error().message);
  auto products = device::findCublasLt();
  reportLibrary(report, "cublaslt", "cuBLASLt", products);
  if (!products)
    report.problems.push_back("matrix products of f16 and bf16 by cuBLASLt: " +
                              products.error().message +
                              "; they run by mgpu's own kernels");
  auto cupti = device::findCupti();
  reportLibrary(report, "cupti", "CUPTI", cupti);
  if (!cupti)
    report.problems.push_back("times of nodes by CUPTI, in place of events: " +
                              cupti.error().message);
  reportPermissions(report);
  reportEnvironment(report);
  report.problems.push_back(severalGpusNote);
  report.facts["will_not_work"] = report.problems;
  return report;
}

using nlohmann::json;

static void reportGpus(const device::CudaMachine &machine,
                       MachineReport &report) {
  json gpus = json::array(), peers = json::array();
  std::string apart;
  for (size_t k = 0; k < machine.gpus.size(); ++k) {
    const device::CudaMachine::Gpu &gpu = machine.gpus[k];
    gpus.push_back({{"name", gpu.name},
                    {"uuid", gpu.uuid},
                    {"arch", gpu.arch},
                    {"memory_bytes", gpu.memoryBytes},
                    {"multiprocessors", gpu.multiprocessors},
                    {"clock_khz", gpu.clockKhz},
                    {"memory_clock_khz", gpu.memoryClockKhz},
                    {"compute_mode", gpu.computeMode}});
    report.lines.push_back(
        {fmt::format("GPU {}", k),
         fmt::format("{}, {}, {} bytes, {} multiprocessors, {} MHz, memory {} "
                     "MHz, compute mode {}, {}",
                     gpu.name, gpu.arch, gpu.memoryBytes, gpu.multiprocessors,
                     gpu.clockKhz / 1000, gpu.memoryClockKhz / 1000,
                     gpu.computeMode, gpu.uuid)});
    if (gpu.computeMode != "default")
      report.problems.push_back(
          fmt::format("GPU {} is in compute mode {}: other processes may keep "
                      "it from this one",
                      k, gpu.computeMode));
    if (gpu.arch != machine.gpus[0].arch)
      report.problems.push_back(fmt::format(
          "GPUs 0 and {} are of {} and {}: no --target cuda:K,L of both", k,
          machine.gpus[0].arch, gpu.arch));
    peers.push_back(gpu.reaches);
    std::string reached;
    for (size_t other = 0; other < gpu.reaches.size(); ++other) {
      if (other != k && gpu.reaches[other])
        reached += fmt::format("{}{}", reached.empty() ? "" : ", ", other);
      if (other > k && !gpu.reaches[other])
        apart +=
            fmt::format("{}{} and {}", apart.empty() ? "" : ", ", k, other);
    }
    if (machine.gpus.size() > 1)
      report.lines.push_back(
          {fmt::format("peers of {}", k), reached.empty() ? "none" : reached});
  }
  if (!apart.empty())
    report.problems.push_back(
        fmt::format("fast collectives of GPUs {}: they do not reach each "
                    "other's memory, and NCCL goes through the host's",
                    apart));
  report.facts["gpus"] = std::move(gpus);
  report.facts["peer_access"] = std::move(peers);
}

void reportMachine(const Result<device::CudaMachine> &machine,
                   MachineReport &report, int &driverMajor) {
  if (!machine) {
    report.add("driver", "driver", {{"error", machine.error().message}},
               "no: " + machine.error().message);
    report.problems.push_back("--target cuda: there is no usable driver");
    return;
  }
  driverMajor = std::atoi(machine->driver.c_str());
  report.add("driver", "driver",
             {{"cuda", machine->driver}, {"logs", machine->logs}},
             fmt::format("knows CUDA {}{}", machine->driver,
                         machine->logs ? "" : ", does not explain errors"));
  if (machine->gpus.empty())
    report.problems.push_back("--target cuda: no GPU is visible");
  reportGpus(*machine, report);
}

// Finds what `doctor` says of the machine that the host target measures on.

void reportHost(MachineReport &report) {
  const bench::Environment host = bench::readEnvironment();
  nlohmann::json facts = nlohmann::json::object();
  for (const auto &[name, value] : host.entries())
    facts[name] = value;
  auto orUnknown = [](const std::string &text) {
    return text.empty() ? std::string("not known") : text;
  };
  report.add("host", "host", std::move(facts),
             fmt::format("{}, {} CPUs for this process, {} GiB, hypervisor: {}",
                         orUnknown(host.cpu), host.cores,
                         host.memoryBytes >> 30, orUnknown(host.hypervisor)));
  report.lines.push_back(
      {"clock", fmt::format("governor: {}, turbo: {}, load {} (one minute)",
                            orUnknown(host.governor), orUnknown(host.turbo),
                            orUnknown(host.loadAverage))});
  if (!host.governor.empty() && host.governor != "performance")
    report.problems.push_back(
        fmt::format("steady times: the governor '{}' changes the clock; "
                    "`cpupower frequency-set -g performance` keeps it",
                    host.governor));
  if (host.hypervisor == "yes")
    report.problems.push_back("steady times: this is a virtual machine, and "
                              "others may run on its processors");
  if (std::atof(host.loadAverage.c_str()) > 0.5 * host.cores)
    report.problems.push_back(
        fmt::format("steady times: the load is {} on {} CPUs", host.loadAverage,
                    host.cores));
}

} // namespace mgpu::pipeline
