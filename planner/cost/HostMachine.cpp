// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Times on the virtual devices of the host, by a roofline of assumed rates.
// They order plans sensibly; they are not a claim about a machine.
#include "planner/cost/TargetMachine.h"

#include <algorithm>
#include <cmath>

namespace mgpu::planner {

static constexpr double startUs = 0.1, meetingUs = 0.5;
/// The error of assumed rates: an order of magnitude.
static constexpr double ofAssumed = 0.9;

/// Arithmetic in products that the host computes by packed panels, a second,
/// by the type of the sums, rounded down (docs/benchmarks.md#products).
static constexpr double ofF32 = 9e10, ofF64 = 4.5e10;
static constexpr const char *ofProducts =
    "bench-products: one core of an AMD EPYC (Zen 4), x86-64-v3 or v4";

static double productRate(ElementType sums, double otherwise) {
  return sums == ElementType::F32   ? ofF32
         : sums == ElementType::F64 ? ofF64
                                    : otherwise;
}

Machine hostMachine(uint32_t devices) {
  const char *source = "assumed: one core of a current server";
  device::Topology host;
  host.name = "host roofline";
  host.devices = devices;
  host.device = {.name = "host",
                 .source = source,
                 .memoryBytes = uint64_t(INT64_MAX), // the host is what it is
                 .memoryBytesPerSecond = 8e9,
                 .smCount = 1,
                 .flopsPerSecond = 8e9,
                 .rates = device::RateSource::Assumed};
  // A copy reads and writes each byte.
  host.link = {device::LinkKind::Memory, 4e9, source};
  host.hostLink = {4e9, source};
  return Machine(std::move(host));
}

std::vector<Coefficient> Machine::hostCoefficients() const {
  if (const auto &measured = about.calibration) {
    const auto rate = [](const char *name, const char *unit, double value,
                         const std::string &source) {
      return Coefficient{name, unit, value, Origin::Measured, source};
    };
    return {
        rate("memory", "bytes/s", about.device.memoryBytesPerSecond,
             about.device.source),
        rate("flops.fp32", "1/s", about.device.flopsPerSecond,
             about.device.source),
        rate("link", "bytes/s", about.link.bytesPerSecond, about.link.source),
        rate("host_link", "bytes/s", about.hostLink.bytesPerSecond,
             about.hostLink.source),
        rate("kernel.launch", "us", measured->launchUs, measured->source),
        rate("kernel.error", "", hostRates ? hostRates->fitError() : 0,
             "mean error of the kernels measured, by rates fitted to them")};
  }
  const auto assumed = [](const char *name, const char *unit, double value,
                          const std::string &source) {
    return Coefficient{name, unit, value, Origin::Assumed, source};
  };
  const device::Topology::Device &device = about.device;
  return {
      assumed("memory", "bytes/s", device.memoryBytesPerSecond, device.source),
      assumed("flops.fp32", "1/s", device.flopsPerSecond, device.source),
      assumed("product.f32", "1/s", ofF32, ofProducts),
      assumed("product.f64", "1/s", ofF64, ofProducts),
      assumed("link", "bytes/s", about.link.bytesPerSecond, about.link.source),
      assumed("host_link", "bytes/s", about.hostLink.bytesPerSecond,
              about.hostLink.source),
      assumed("kernel.launch", "us", startUs, "a node for a worker"),
      assumed("collective.step", "us", meetingUs, "two workers meet")};
}

// Bytes over a rank's link per byte of payload, and steps of the algorithm, for
// n ranks. Payload is the larger side of the operation, as nccl-tests counts
// it: the traffic factors are its busbw/algbw factors (nccl-tests
// doc/PERFORMANCE.md: all_reduce 2(n-1)/n; all_gather, reduce_scatter and
// all_to_all (n-1)/n; broadcast and send/recv 1). Steps are those of the ring.
static std::pair<double, double> ringCost(CollectiveKind kind, double n) {
  switch (kind) {
  case CollectiveKind::AllReduce:
    return {2 * (n - 1) / n, 2 * (n - 1)};
  case CollectiveKind::AllGather:
  case CollectiveKind::ReduceScatter:
  case CollectiveKind::AllToAll:
    return {(n - 1) / n, n - 1};
  case CollectiveKind::Broadcast:
    return {1, n - 1};
  case CollectiveKind::Permute:
  case CollectiveKind::SendRecv:
    return {1, 1};
  }
  return {1, 1};
}

/// Kernels by the roofline (Williams, Waterman, Patterson 2009), the slower of
/// arithmetic, for which products have a rate of their own, and memory traffic;
/// collectives by Hockney's alpha-beta model along the ring (Thakur,
/// Rabenseifner, Gropp 2005).
Estimate Machine::onHost(const Dag &dag, const DagNode &node) const {
  const double memory = about.device.memoryBytesPerSecond / 1e6,
               link = about.link.bytesPerSecond / 1e6;
  auto assumed = [](double us, const char *how) {
    return Estimate{us, Origin::Assumed, how, ofAssumed};
  };
  if (auto *copy = std::get_if<CopyCall>(&node.work)) {
    const double bytes =
        double(copy->sourceBox.numElements()) * copy->sourceBox.elementBytes;
    const DeviceId from = dag.buffer(copy->source).device,
                   to = dag.buffer(copy->destination).device;
    if (from == to) // it reads and writes each byte
      return assumed(startUs + 2 * bytes / memory, "copy within a device");
    const double rate = from.isHost() || to.isHost()
                            ? about.hostLink.bytesPerSecond / 1e6
                            : link;
    return assumed(startUs + meetingUs + bytes / rate, "copy between devices");
  }
  if (const std::optional<Asked> call = asked(dag, node)) {
    if (call->ranks < 2) // a copy inside one memory
      return assumed(startUs + call->bytes / memory,
                     "collective of one: a copy");
    const auto [factor, steps] = ringCost(call->kind, call->ranks);
    return assumed(startUs + steps * meetingUs + call->bytes * factor / link,
                   "collective along a ring");
  }
  const double bytes = double(node.bytesRead) + double(node.bytesWritten);
  const double rate = about.device.flopsPerSecond;
  double seconds = node.flops / rate;
  if (const std::optional<Product> product = hostProduct(dag, node)) {
    const double flops = std::min(node.flops, product->flops());
    seconds =
        flops / productRate(product->sums, rate) + (node.flops - flops) / rate;
  }
  return assumed(startUs + std::max(seconds * 1e6, bytes / memory), "roofline");
}

/// Collectives of a number of ranks that was not measured take as long as those
/// of the nearest number, times the bytes of all ranks.
Estimate Machine::onMeasuredHost(const Dag &dag, const DagNode &node) const {
  const double footprint = footprintOf(dag);
  const auto measured = [](HostTime time, const char *how) {
    return Estimate{time.us, Origin::Measured, how, time.error};
  };
  if (auto *copy = std::get_if<CopyCall>(&node.work))
    return measured(hostRates->copy(double(copy->sourceBox.numElements()) *
                                        copy->sourceBox.elementBytes,
                                    footprint),
                    "copy, calibrated");
  const std::optional<Asked> call = asked(dag, node);
  if (!call)
    return measured(hostRates->kernel(dag, node, footprint),
                    "its work, by calibrated rates");
  if (call->ranks < 2)
    return measured(hostRates->copy(call->bytes, footprint),
                    "collective of one: a copy");
  uint32_t nearest = 0;
  for (const auto &row : about.calibration->collectives)
    if (row.op == toString(call->kind) &&
        (nearest == 0 || std::abs(double(row.ranks) - call->ranks) <
                             std::abs(double(nearest) - call->ranks)))
      nearest = row.ranks;
  if (nearest == 0) {
    Estimate out = onHost(dag, node);
    out.error = 0.9; // nothing is known of it
    return out;
  }
  Estimate out = collective(call->kind, call->bytes, nearest, 1);
  out.us *= double(call->ranks) / nearest;
  out.error = nearest == call->ranks ? 0.3 : 0.4;
  return out;
}

} // namespace mgpu::planner
