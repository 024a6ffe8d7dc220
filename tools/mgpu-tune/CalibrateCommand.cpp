// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `mgpu-tune calibrate`: a target as a topology, measured.
#include "bench/measure/Environment.h"
#include "pipeline/target/OpenMachine.h"
#include "pipeline/target/Target.h"
#include "pipeline/target/TheRanks.h"
#include "pipeline/tune/CalibrateTarget.h"
#include "support/FileIO.h"
#include "support/Progress.h"
#include "tools/mgpu-tune/FileUses.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <unistd.h>

namespace mgpu::tools {

namespace {

void print(const device::Topology &t, const std::string &path) {
  fmt::print("{}, {} device{}\n", t.device.name, t.devices,
             t.devices == 1 ? "" : "s");
  fmt::print("memory      {:.3f} GB/s\nFP32        {:.3f} GFLOP/s\n"
             "BF16        {:.3f} GFLOP/s\n",
             t.device.memoryBytesPerSecond / 1e9, t.device.flopsPerSecond / 1e9,
             t.device.bf16FlopsPerSecond / 1e9);
  fmt::print("link        {:.3f} GB/s\nhost link   {:.3f} GB/s\n",
             t.link.bytesPerSecond / 1e9, t.hostLink.bytesPerSecond / 1e9);
  const device::Topology::Calibration &c = *t.calibration;
  fmt::print("launch      {:.3f} us\ncopy from   {:.3f} us\n", c.launchUs,
             c.copyLatencyUs);
  fmt::print("{} times of collectives, {} of products\n", c.collectives.size(),
             c.matmuls.size());
  for (const auto &each : c.contention)
    fmt::print("{} beside {}: {:.2f} times as long\n", each.work, each.beside,
               each.factor);
  for (const auto &each : c.besideKernel)
    fmt::print(
        "kernel beside one of {} multiprocessors: {:.2f} times as long\n",
        each.multiprocessors, each.factor);
  if (!path.empty())
    fmt::print("written to {}: --target sim:{}{}\n", path,
               path.find('/') == std::string::npos && !path.ends_with(".json")
                   ? "./"
                   : "",
               path);
}

/// The host's rates, to where plans for it look for them. A warning where that
/// fails and they are written elsewhere, too.
Result<void> keepHostRates(const std::string &text, const std::string &database,
                           bool isElsewhereToo) {
  MGPU_TRY_ASSIGN(const std::string path, pipeline::hostRatesPath(database));
  if (database.empty()) { // the default folder, which nobody may have made yet
    std::error_code ignored;
    std::filesystem::create_directories(
        std::filesystem::path(path).parent_path(), ignored);
  }
  if (auto written = writeFileAtomic(path, text); !written) {
    if (!isElsewhereToo)
      return written;
    fmt::print(stderr,
               "mgpu-tune: warning: plans for this host do not use "
               "these rates: {}\n",
               written.error().message);
    return {};
  }
  fmt::print(stderr, "mgpu-tune: plans for this host use {}\n", path);
  return {};
}

/// A warning of what else runs.
void warnOfLoad() {
  const bench::Environment here = bench::readEnvironment();
  const double load = std::atof(here.loadAverage.c_str());
  if (load > 0.5 * std::max(here.cores, 1u))
    fmt::print(stderr,
               "mgpu-tune: warning: the load of this machine is {:.1f} on {} "
               "cores: what is measured may be too slow\n",
               load, here.cores);
}

} // namespace

Result<int> runCalibrate(const CalibrateOptions &options) {
  if (!options.output.empty())
    MGPU_TRY(filesRead(options.load).write("-o", options.output));
  MGPU_TRY(joinAsked(options));
  // Several GPUs' processes write what they say themselves to nowhere.
  const Descriptor words(fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3));
  TerminalLine line(words.get());
  const auto start = std::chrono::steady_clock::now();
  auto progress = [&](const std::string &text) {
    if (line.isTerminal())
      line.show(fmt::format("{}, {:%M:%S} so far", text,
                            std::chrono::floor<std::chrono::seconds>(
                                std::chrono::steady_clock::now() - start)));
    else
      dprintf(words.get(), "mgpu-tune: %s\n", text.c_str());
  };
  const bool isGpu = isCudaTarget(options.load.target);
  if (options.output.empty() && (isGpu || theRanks()))
    return fail(ErrorKind::Usage, "-o FILE is where the topology goes");
  if (options.output.empty() && !options.load.file.empty())
    return fail(ErrorKind::Usage,
                "-o FILE is where the topology goes: plans for this host use "
                "what is measured without a FILE of kernels");
  if (!isGpu)
    warnOfLoad();
  MGPU_TRY_ASSIGN(
      const device::Topology measured,
      calibrateTarget(options.load, options,
                      options.output.empty() ? "host" : options.output,
                      progress));
  if (!isFirstRank())
    return 0;
  line.clear();
  const std::string text = device::topologyText(measured);
  // The text that is written must be one that can be read.
  MGPU_TRY(device::parseTopology(text, options.output));
  if (!options.output.empty())
    MGPU_TRY(writeFileAtomic(options.output, text));
  if (!measured.calibration->host.empty())
    MGPU_TRY(
        keepHostRates(text, options.load.database, !options.output.empty()));
  if (options.json)
    fmt::print("{}", text);
  else
    print(measured, options.output);
  return 0;
}

} // namespace mgpu::tools
