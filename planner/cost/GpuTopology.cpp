// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/cost/GpuTopology.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <sstream>

namespace mgpu::planner {

using device::Topology;

/// A figure of the driver's is of a GPU only within these.
static Result<void> checkFacts(const GpuFacts &gpu) {
  struct Range {
    const char *what, *unit;
    uint32_t value, least, most;
  };
  for (const Range &range :
       {Range{"clock", "kHz", gpu.clockKhz, 100'000, 10'000'000},
        Range{"memory clock", "kHz", gpu.memoryClockKhz, 100'000, 40'000'000},
        Range{"memory bus", "bits", gpu.busBits, 32, 32'768},
        Range{"number of multiprocessors", "", gpu.multiprocessors, 1, 4096}})
    if (range.value < range.least || range.value > range.most)
      return fail(
          ErrorKind::Absent,
          fmt::format("the NVIDIA driver says that the {} of '{}' is {}{}{}, "
                      "by which nothing can be planned: plan for a machine "
                      "that is known or calibrated, with --target sim:NAME or "
                      "sim:FILE",
                      range.what, gpu.name, range.value, *range.unit ? " " : "",
                      range.unit));
  return {};
}

/// Whether `model`, the first word of a built-in GPU's name ("H100"), is a word
/// of the driver's name, with or without what is joined to it ("A100-SXM4").
static bool isNamed(const std::string &name, const std::string &model) {
  std::istringstream words(name);
  for (std::string word; words >> word;)
    if (word == model || word.starts_with(model + "-"))
      return true;
  return false;
}

/// Bytes that the bus moves in a second, at both edges of its clock.
static double busRate(const GpuFacts &gpu) {
  return 2.0 * gpu.memoryClockKhz * 1e3 * gpu.busBits / 8;
}

/// Whether a built-in machine has this GPU. Some share a name and differ in
/// multiprocessors or memory; a driver that does not say its bus is believed.
static bool isOf(const GpuFacts &gpu, const Topology::Device &known) {
  const std::string model = known.name.substr(0, known.name.find(' '));
  const double ratio = busRate(gpu) / known.memoryBytesPerSecond;
  return isNamed(gpu.name, model) && known.architecture == gpu.architecture &&
         known.smCount == gpu.multiprocessors &&
         (ratio == 0 || std::abs(ratio - 1) < 0.12);
}

/// Whether an architecture is of the GPUs of servers, whose tensor cores do
/// more for each operation outside of them.
static bool isOfServers(uint32_t architecture) {
  return architecture == 103 ||
         (architecture % 10 == 0 && architecture >= 70 && architecture <= 100);
}

/// The GPU of a built-in machine that is this one, or else nearest to it: for
/// servers or not as it is, of its architecture, else of the newest older one,
/// else of the oldest.
static Topology nearest(const GpuFacts &gpu, bool &isThis) {
  std::optional<Topology> best;
  auto distance = [&](const Topology &of) {
    const uint32_t architecture = of.device.architecture;
    const uint32_t other =
        isOfServers(architecture) != isOfServers(gpu.architecture) ? 10'000 : 0;
    return other + (architecture <= gpu.architecture
                        ? gpu.architecture - architecture
                        : 1000 + architecture - gpu.architecture);
  };
  isThis = false;
  for (std::string_view name : device::builtinTopologies()) {
    auto each = device::openTopology(fmt::format("sim:{}", name));
    // One that is known at a limit of power says nothing of this GPU.
    if (!each || each->rate("clock_share"))
      continue;
    if (isOf(gpu, each->device)) {
      isThis = true;
      return std::move(*each);
    }
    if (!best || distance(*each) < distance(*best))
      best = std::move(*each);
  }
  return std::move(*best);
}

Result<Topology> topologyOfGpu(const GpuFacts &gpu, uint32_t devices,
                               uint32_t devicesOnGpu) {
  bool isKnown = false;
  Topology out = nearest(gpu, isKnown);
  const std::string known = out.name;
  Topology::Device &device = out.device;
  device.name = gpu.name;
  device.memoryBytes = gpu.memoryBytes / std::max(devicesOnGpu, 1u);
  out.nodes = 1;
  out.devices = devices;
  out.nic.reset();
  if (isKnown) {
    out.name = fmt::format("{}, as in {}", gpu.name, known);
    return out;
  }
  MGPU_TRY(checkFacts(gpu));
  out.name = fmt::format("{}, scaled from {}", gpu.name, known);
  device.source = fmt::format(
      "the driver: {} multiprocessors at {} MHz, memory of {} bits at {} MHz",
      gpu.multiprocessors, gpu.clockKhz / 1000, gpu.busBits,
      gpu.memoryClockKhz / 1000);
  device.rates = device::RateSource::Scaled;
  device.architecture = gpu.architecture;
  device.smCount = gpu.multiprocessors;
  device.memoryBytesPerSecond = busRate(gpu);
  const double flops = 2.0 * device::lanesOf(gpu.architecture) *
                       gpu.multiprocessors * gpu.clockKhz * 1e3,
               ratio = flops / device.flopsPerSecond;
  device.flopsPerSecond = flops;
  device.bf16FlopsPerSecond *= ratio;
  device.tf32FlopsPerSecond *= ratio;
  return out;
}

} // namespace mgpu::planner
