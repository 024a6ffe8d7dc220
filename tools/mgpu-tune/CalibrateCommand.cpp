// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `mgpu-tune calibrate`: a target as a topology, measured.
#include "pipeline/tune/CalibrateTarget.h"
#include "support/Descriptor.h"
#include "support/FileIO.h"
#include "support/TerminalLine.h"
#include "tools/mgpu-tune/FileUses.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <fcntl.h>
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
  fmt::print("written to {}: --target sim:{}{}\n", path,
             path.find('/') == std::string::npos && !path.ends_with(".json")
                 ? "./"
                 : "",
             path);
}

} // namespace

Result<int> runCalibrate(const CalibrateOptions &options) {
  MGPU_TRY(filesRead(options.load).write("-o", options.output));
  MGPU_TRY(joinAsked(options));
  // Several GPUs' processes write what they say themselves to nowhere.
  const Descriptor words(fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3));
  TerminalLine line(words.value);
  const auto start = std::chrono::steady_clock::now();
  auto progress = [&](const std::string &text) {
    if (line.isTerminal())
      line.show(fmt::format("{}, {:%M:%S} so far", text,
                            std::chrono::floor<std::chrono::seconds>(
                                std::chrono::steady_clock::now() - start)));
    else
      dprintf(words.value, "mgpu-tune: %s\n", text.c_str());
  };
  MGPU_TRY_ASSIGN(
      const device::Topology measured,
      calibrateTarget(options.load, options, options.output, progress));
  if (!isFirstRank())
    return 0;
  line.clear();
  const std::string text = device::topologyText(measured);
  // The text that is written must be one that can be read.
  MGPU_TRY(device::parseTopology(text, options.output));
  MGPU_TRY(writeFileAtomic(options.output, text));
  if (options.json)
    fmt::print("{}", text);
  else
    print(measured, options.output);
  return 0;
}

} // namespace mgpu::tools
