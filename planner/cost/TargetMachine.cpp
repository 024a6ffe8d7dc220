// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/cost/TargetMachine.h"

#include "planner/cost/CollectiveTable.h"
#include "planner/cost/MatmulModel.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <set>

namespace mgpu::planner {

/// The rates of a GPU whose topology does not say them.
static const std::vector<device::Topology::Rate> &defaultRates() {
  static const std::vector<device::Topology::Rate> rates{
      {"launch_us", 1.3, 1.3, 1.3, "1.3",
       "https://mlops.substack.com/p/one-megakernel-to-rule-llama-1b",
       "measurements on an H100 showed launch costs of about 1.3 microseconds "
       "per kernel",
       ""},
      {"memory_share", 0.85, 0.78, 0.92, "", "", "",
       "what kernels reach of the data sheet: 78 % by one kernel for a whole "
       "model on an H100, 92 % by copies of 1 GB"},
      {"flops_share", 0.6, 0.5, 0.8, "", "", "",
       "what kernels written by hand reach of the data sheet"}};
  return rates;
}
// Assumed: the share of a link's data-sheet rate that a copy engine reaches,
// and how long it takes to start.
static constexpr double copyShare = 0.8, copyLatencyUs = 2.5;
// Assumed: how long a load of device memory takes while memory is busy; the
// threads that a multiprocessor holds; what it gets from the second cache.
static constexpr double loadUs = 0.8, residentThreads = 2048,
                        sectorBytesPerClock = 32;

/// One process differs as much from the next (docs/benchmarks.md#prediction).
static constexpr double ofMeasuredNodes = 0.2;

LatencyEstimator::~LatencyEstimator() = default;

Origin LatencyEstimator::origin(const Dag &dag, NodeId node) const {
  return dag.node(node).durationUs ? Origin::Given : Origin::Assumed;
}

Machine::Machine(device::Topology topology,
                 std::shared_ptr<const CollectiveTable> table,
                 bool choosesAlgorithms)
    : about(std::move(topology)), table(std::move(table)),
      choosesAlgorithms(choosesAlgorithms) {
  if (isHost() && about.calibration && !about.calibration->host.empty())
    hostRates = std::make_shared<const HostRates>(*about.calibration);
  if (!isHost() && !about.calibration)
    for (const device::Topology::Rate &rate : defaultRates())
      if (!about.rate(rate.name))
        about.rates.push_back(rate);
}

Machine Machine::withTimes(NodeTimes measured) const {
  Machine out = *this;
  out.times = std::move(measured);
  if (out.numMeasured() == 0)
    out.times.clear();
  return out;
}

size_t Machine::numMeasured() const {
  return size_t(std::ranges::count_if(
      times, [](const auto &us) { return us.has_value(); }));
}

/// The rates of the roofline and copies: the topology's rates where the machine
/// was not calibrated, measured where it was. `clock` is what a limit of power
/// leaves of the rates of arithmetic.
struct Machine::Shares {
  double launchUs, memory, flops, copy, copyLatencyUs, clock = 1, startUs = 0;
};

Machine::Shares Machine::shares() const {
  if (const auto &measured = about.calibration)
    return {measured->launchUs, 1, 1, 1, measured->copyLatencyUs};
  auto rate = [&](const char *name, double otherwise) {
    const device::Topology::Rate *known = about.rate(name);
    return known ? known->value : otherwise;
  };
  return {rate("launch_us", 0),   rate("memory_share", 1),
          rate("flops_share", 1), copyShare,
          copyLatencyUs,          rate("clock_share", 1),
          rate("start_us", 0)};
}

/// Interpolates the rows measured for one operation and number of ranks, by
/// straight lines in the logarithms. The smallest row holds below it, the rate
/// of the largest one beyond it. Nothing without such rows.
static std::optional<double>
measuredUs(const device::Topology::Calibration &measured, CollectiveKind kind,
           double bytes, uint32_t ranks) {
  std::map<double, double> rows;
  for (const auto &row : measured.collectives)
    if (row.op == toString(kind) && row.ranks == ranks)
      rows[double(row.bytes)] = row.us;
  if (rows.empty())
    return std::nullopt;
  auto above = rows.lower_bound(bytes);
  if (above == rows.begin())
    return above->second;
  auto below = std::prev(above);
  if (above == rows.end())
    return below->second * bytes / below->first;
  double t =
      std::log(bytes / below->first) / std::log(above->first / below->first);
  return std::exp((1 - t) * std::log(below->second) +
                  t * std::log(above->second));
}

/// The rate of products of `flops`, by those measured: straight lines in the
/// logarithm of the operations.
static std::optional<double>
measuredFlopsPerUs(const device::Topology::Calibration &measured,
                   std::string_view type, double flops) {
  std::map<double, double> rows;
  for (const auto &row : measured.matmuls)
    if (row.type == type) {
      double each = 2.0 * row.m * row.n * row.k;
      rows[each] = std::max(rows[each], each / row.us);
    }
  if (rows.empty())
    return std::nullopt;
  auto above = rows.lower_bound(flops);
  if (above == rows.begin())
    return above->second;
  auto below = std::prev(above);
  if (above == rows.end())
    return below->second;
  double t =
      std::log(flops / below->first) / std::log(above->first / below->first);
  return (1 - t) * below->second + t * above->second;
}

std::string Machine::name() const {
  std::string model = about.name;
  if (table)
    model += ", collectives by the table given";
  return times.empty() ? model
                       : fmt::format("measured: {} of {} nodes; {}",
                                     numMeasured(), times.size(), model);
}

/// The origin of the device's figures.
static Origin ratesOrigin(const device::Topology &topology) {
  if (topology.calibration)
    return Origin::Measured;
  switch (topology.device.rates) {
  case device::RateSource::DataSheet:
    return Origin::Published;
  case device::RateSource::Scaled:
    return Origin::Scaled;
  case device::RateSource::Assumed:
    return Origin::Assumed;
  }
  return Origin::Assumed;
}

std::vector<Coefficient> Machine::coefficients() const {
  if (isHost())
    return hostCoefficients();
  const device::Topology &t = about;
  const Origin rates = ratesOrigin(t),
               sheet = rates == Origin::Scaled ? Origin::Published : rates;
  std::vector<Coefficient> list{
      {"memory", "bytes/s", t.device.memoryBytesPerSecond, rates,
       t.device.source},
      {"flops.fp32", "1/s", t.device.flopsPerSecond, rates, t.device.source},
      {"flops.bf16", "1/s", t.device.bf16FlopsPerSecond, rates,
       t.device.source},
      {"link", "bytes/s", t.link.bytesPerSecond, sheet, t.link.source},
      {"host_link", "bytes/s", t.hostLink.bytesPerSecond, sheet,
       t.hostLink.source},
      {"kernel.full_from", "blocks", double(t.device.smCount), Origin::Assumed,
       "fewer blocks leave multiprocessors idle, at no gain for the others"},
  };
  const std::vector<Coefficient> uncalibrated{
      {"copy.share", "", copyShare, Origin::Assumed,
       "copy engines, of the link's data sheet"},
      {"copy.latency", "us", copyLatencyUs, Origin::Assumed, "start of a copy"},
  };
  for (auto [name, unit, value, source] :
       {std::tuple{"kernel.load", "us", loadUs,
                   "a load of device memory while memory is busy"},
        std::tuple{"kernel.resident", "threads", residentThreads,
                   "what a multiprocessor holds"},
        std::tuple{"kernel.sectors", "bytes/clock", sectorBytesPerClock,
                   "from the second cache to a multiprocessor"}})
    list.push_back({name, unit, value, Origin::Assumed, source});
  if (const auto &measured = t.calibration) {
    list.push_back({"kernel.launch", "us", measured->launchUs, Origin::Measured,
                    measured->source});
    list.push_back({"copy.latency", "us", measured->copyLatencyUs,
                    Origin::Measured, measured->source});
  } else {
    list.insert(list.end(), uncalibrated.begin(), uncalibrated.end());
  }
  for (const device::Topology::Rate &rate : t.rates)
    list.push_back({"rate." + rate.name, "", rate.value,
                    rate.assumed.empty() ? Origin::Published : Origin::Assumed,
                    rate.source()});
  if (t.nic)
    list.push_back({"nic", "bytes/s", t.nic->bytesPerSecond, Origin::Published,
                    t.nic->source});
  return list;
}

uint32_t Machine::nodeOf(DeviceId device) const {
  return uint32_t(std::max(device.value, 0)) /
         std::max(about.devicesPerNode(), 1u);
}

uint32_t Machine::nodesOf(const std::vector<DeviceId> &devices) const {
  std::set<uint32_t> nodes;
  for (DeviceId device : devices)
    nodes.insert(nodeOf(device));
  return std::max(1u, uint32_t(nodes.size()));
}

static std::optional<CollectiveOp> opOf(CollectiveKind kind) {
  switch (kind) {
  case CollectiveKind::AllReduce:
    return CollectiveOp::AllReduce;
  case CollectiveKind::AllGather:
    return CollectiveOp::AllGather;
  case CollectiveKind::ReduceScatter:
    return CollectiveOp::ReduceScatter;
  case CollectiveKind::AllToAll:
    return CollectiveOp::AllToAll;
  case CollectiveKind::Permute:
    return CollectiveOp::PermuteRing;
  case CollectiveKind::SendRecv:
    return CollectiveOp::PermutePairs;
  case CollectiveKind::Broadcast:
    return std::nullopt;
  }
  return std::nullopt;
}

/// The links the curves were measured on, bytes per second.
static double measuredLink(uint32_t architecture) {
  return architecture >= 100 ? 900e9 : 450e9;
}

/// A small all-reduce by one kernel in which each device reads what the others
/// have, from a half of them through another device where not all are joined.
static std::optional<double> oneShotUs(const device::Topology &topology,
                                       double bytes, uint32_t ranks) {
  const auto *start = topology.rate("one_shot_us");
  if (!start)
    return std::nullopt;
  const auto *relay = topology.rate("relay_us"),
             *linked = topology.rate("linked_devices");
  return start->value +
         (relay && linked && ranks > linked->value ? relay->value : 0) +
         bytes * (ranks - 1) / (topology.link.bytesPerSecond / 1e6);
}

Estimate Machine::collective(CollectiveKind kind, double bytes, uint32_t ranks,
                             uint32_t nodes) const {
  Key key{kind, bytes, ranks, nodes};
  if (auto it = known.find(key); it != known.end())
    return it->second;
  Estimate result;
  if (about.calibration && nodes == 1)
    if (auto us = measuredUs(*about.calibration, kind, bytes, ranks)) {
      result = {*us, Origin::Measured,
                fmt::format("calibrated {} of {}", toString(kind), ranks)};
      known.emplace(key, result);
      return result;
    }
  uint32_t architecture = about.device.architecture;
  std::optional<CollectiveOp> op = opOf(kind);
  std::optional<CollectiveCurve> curve;
  // A pair exchanges as the pairs did that were measured, of 8 devices.
  uint32_t listed = kind == CollectiveKind::SendRecv ? 8 : ranks;
  if (op && nodes == 1 && about.link.kind == device::LinkKind::NvLink)
    curve = shippedCurve(architecture, *op, listed);
  double factor = about.link.bytesPerSecond / measuredLink(architecture);
  std::optional<double> tabled;
  if (curve && table)
    tabled = table->us(architecture, *op, listed, bytes);
  if (tabled) {
    double carried = curve->usOnLinks(bytes, factor) / curve->us(bytes);
    result = {*tabled * carried, Origin::Measured,
              fmt::format("table given, {} of {}", toString(*op), ranks)};
  } else if (curve) {
    result = {curve->usOnLinks(bytes, factor), Origin::Measured,
              fmt::format("curve fitted to sm_{} {} of {}", architecture,
                          toString(*op), ranks)};
  } else {
    std::vector<NcclTime> times =
        ncclEstimates(about, kind, bytes, ranks, nodes);
    NcclTime taken = times.front();
    for (const NcclTime &time : times)
      if (!choosesAlgorithms && time.algorithm == CollectiveAlgorithm())
        taken = time;
    result = {taken.us, Origin::Published,
              fmt::format("NCCL's estimate, {} {}",
                          toString(taken.algorithm.shape),
                          toString(taken.algorithm.protocol))};
  }
  if (auto us = oneShotUs(about, bytes, ranks);
      us && *us < result.us && kind == CollectiveKind::AllReduce && nodes == 1)
    result = {*us, Origin::Published,
              "one kernel, in which each reads from all"};
  known.emplace(key, result);
  return result;
}

static double boxBytes(const Box &box) {
  return double(box.numElements()) * box.elementBytes;
}

std::optional<Estimate> Machine::sendBetween(DeviceId from, DeviceId to,
                                             double bytes) const {
  const auto *pair = about.pair(uint32_t(from.value), uint32_t(to.value));
  if (!pair)
    return std::nullopt;
  return Estimate{pair->startUs + bytes / (pair->bytesPerSecond / 1e6),
                  Origin::Measured, "calibrated sends of these two devices"};
}

Estimate Machine::copy(const Dag &dag, const CopyCall &call) const {
  double bytes = boxBytes(call.sourceBox);
  DeviceId from = dag.buffer(call.source).device,
           to = dag.buffer(call.destination).device;
  const Shares share = shares();
  const Origin origin = about.calibration ? Origin::Measured : Origin::Assumed;
  if (from == to && !from.isHost()) // reads and writes each byte
    return {share.launchUs +
                2 * bytes /
                    (about.device.memoryBytesPerSecond / 1e6 * share.memory),
            origin, "copy inside a device's memory"};
  bool host = from.isHost() || to.isHost();
  if (!host)
    if (auto sent = sendBetween(from, to, bytes))
      return *sent;
  // Between GPUs a copy is a send, whose start is not a copy engine's.
  if (about.calibration && !host && nodeOf(from) == nodeOf(to))
    if (auto us =
            measuredUs(*about.calibration, CollectiveKind::SendRecv, bytes, 2))
      return {*us, Origin::Measured, "calibrated send_recv of 2"};
  bool far = !host && nodeOf(from) != nodeOf(to) && about.nic;
  double rate =
      host  ? about.hostLink.bytesPerSecond
      : far ? std::min(about.nic->bytesPerSecond, about.link.bytesPerSecond)
            : about.link.bytesPerSecond;
  return {share.copyLatencyUs + bytes / (rate / 1e6 * share.copy), origin,
          host  ? "copy over the host's link"
          : far ? "copy over a NIC"
                : "copy over a link"};
}

/// The product of bf16 matrices that a node without a kernel is: a DAG file has
/// no more than counts of it. m n = out / 2, k = flops / (2 m n), and m and n
/// have the sum in / (2 k). Nothing where that has no solution.
static std::optional<Product> productOfCounts(double flops, double in,
                                              double out) {
  double product = out / 2, k = product > 0 ? flops / (2 * product) : 0;
  if (!(k >= 1))
    return std::nullopt;
  double sum = in / (2 * k), square = sum * sum - 4 * product;
  if (square < 0 && square > -1e-3 * sum * sum)
    square = 0;
  double m = (sum + std::sqrt(std::max(square, 0.0))) / 2, n = product / m;
  if (square < 0 || n < 1)
    return std::nullopt;
  return Product{m, n, k, 1, ElementType::BF16, ElementType::BF16};
}

/// The part of a kernel's product that a launch computes: blocks along x are
/// columns of C, along y rows, along z matrices.
static Product partOf(Product product, const KernelCall &call) {
  if (const auto &part = call.part) {
    product.n *= double(part->count.x) / call.grid.x;
    product.m *= double(part->count.y) / call.grid.y;
    product.batch *= double(part->count.z) / call.grid.z;
  }
  return product;
}

/// The time of a launch on all multiprocessors for its instructions, of which
/// each of four schedulers starts one for a subgroup in a clock; for its lines,
/// one in a clock; and for what its blocks get from the second cache.
static double askedUs(const device::Topology::Device &device,
                      const LaunchWork &asks, double flopsShare,
                      double memoryShare) {
  constexpr double issuedLanes = 128;
  const double clocksPerUs =
      device.flopsPerSecond / 2 / device::lanesOf(device.architecture) / 1e6;
  return std::max({asks.instructions / issuedLanes / flopsShare,
                   asks.lines / memoryShare,
                   asks.movedBytes / sectorBytesPerClock / memoryShare}) /
         clocksPerUs;
}

/// The time that threads wait for their loads: what is asked for and not there
/// yet is the rate times what a load takes (Little's law).
static double awaitedUs(const device::Topology::Device &device, double threads,
                        const LaunchWork &asks, double bytesRead) {
  const double held = std::min(threads, residentThreads * device.smCount);
  return bytesRead / std::max(held * asks.flightBytes / loadUs, 1.0);
}

/// The product that a library computes on tensor cores, as products of f16 and
/// bf16 are where it is not known what a form of ours asks for.
static std::optional<Product> libraryProductOf(const Dag &dag,
                                               const DagNode &node) {
  if (node.asks)
    return std::nullopt;
  auto *call = std::get_if<KernelCall>(&node.work);
  const Product *product =
      call ? dag.kernels[call->kernel.value].product() : nullptr;
  if (product && product->isNarrow())
    return partOf(*product, *call);
  return node.isMatmul ? productOfCounts(node.flops, double(node.bytesRead),
                                         double(node.bytesWritten))
                       : std::nullopt;
}

/// The share of the memory's rate that a kernel of so many bytes reaches.
static double memoryShareOf(const device::Topology &topology, double bytes,
                            double otherwise) {
  for (auto [below, name] : {std::pair(1e6, "memory_share_below_1mb"),
                             std::pair(1e7, "memory_share_below_10mb"),
                             std::pair(1e8, "memory_share_below_100mb")})
    if (const auto *rate = topology.rate(name); rate && bytes < below)
      return rate->value;
  return otherwise;
}

Estimate Machine::kernel(const Dag &dag, const DagNode &node) const {
  const device::Topology::Device &device = about.device;
  double in = double(node.bytesRead), out = double(node.bytesWritten);
  Shares share = shares();
  if (!about.calibration)
    share.memory = memoryShareOf(about, in + out, share.memory);
  const std::optional<Product> product = libraryProductOf(dag, node);
  const bool onTensorCores = node.isMatmul || product;
  if (const auto &measured = about.calibration;
      measured && onTensorCores && !node.asks)
    if (auto rate = measuredFlopsPerUs(*measured, "bf16", node.flops))
      return {share.launchUs + node.flops / *rate, Origin::Measured,
              "matrix product, calibrated"};
  if (product) {
    const MatmulModel *model = MatmulModel::shipped(device.architecture, true);
    bool own = model != nullptr;
    if (!own)
      model = MatmulModel::shipped(90, true);
    MatmulRates rates{device.bf16FlopsPerSecond / 1e6 * share.clock,
                      device.memoryBytesPerSecond / 1e6,
                      double(device.smCount)};
    // The most that any product was measured to reach.
    const auto *most = about.rate("product_share");
    if (model)
      return {std::max(model->us(*product, rates),
                       most ? product->flops() / rates.flopsPerUs / most->value
                            : 0),
              own ? Origin::Measured : Origin::Assumed,
              fmt::format("matrix product, fit of sm_{}",
                          own ? device.architecture : 90)};
  }
  double rate = share.clock * (onTensorCores ? device.bf16FlopsPerSecond
                                             : device.flopsPerSecond);
  double busy = 1, asked = 0, awaited = 0;
  if (auto *call = std::get_if<KernelCall>(&node.work)) {
    uint64_t blocks =
        call->part ? call->part->count.volume() : call->grid.volume();
    const double own =
        node.asks && node.asks->blocks > 0 ? node.asks->blocks : double(blocks);
    if (own > 0 && own < device.smCount)
      busy = own / device.smCount;
    if (node.asks) {
      const double threads =
          double(blocks) *
          double(dag.kernels[call->kernel.value].block.volume());
      asked = askedUs(device, *node.asks, share.flops, share.memory);
      awaited = awaitedUs(device, threads, *node.asks, in);
    }
  }
  const double full = std::max(
      {node.flops / (rate / 1e6 * share.flops), asked,
       (in + out) / (device.memoryBytesPerSecond / 1e6 * share.memory)});
  return {share.launchUs + std::max(full / busy, awaited) + share.startUs,
          about.calibration ? Origin::Measured : Origin::Assumed,
          about.calibration ? "roofline of measured rates" : "roofline"};
}

Estimate Machine::estimate(const Dag &dag, NodeId id) const {
  const DagNode &node = dag.node(id);
  if (id.value < times.size() && times[id.value])
    return {*times[id.value], Origin::Measured, "of this node here",
            ofMeasuredNodes};
  if (node.durationUs)
    return {*node.durationUs, Origin::Given, "given"};
  Estimate result = hostRates  ? onMeasuredHost(dag, node)
                    : isHost() ? onHost(dag, node)
                               : unscaled(dag, node);
  result.us *= node.timeFactor;
  if (about.device.rates == device::RateSource::Scaled)
    result.origin = Origin::Scaled;
  return result;
}

Estimate Machine::unscaled(const Dag &dag, const DagNode &node) const {
  if (auto *call = std::get_if<CopyCall>(&node.work))
    return copy(dag, *call);
  std::optional<Asked> call = asked(dag, node);
  if (!call)
    return kernel(dag, node);
  if (auto *written = std::get_if<CollectiveCall>(&node.work);
      written && written->kind == CollectiveKind::SendRecv &&
      written->members.size() == 2)
    if (auto sent = sendBetween(written->members[0].device,
                                written->members[1].device, call->bytes))
      return *sent;
  if (call->ranks < 2)
    return {shares().launchUs +
                2 * call->bytes /
                    (about.device.memoryBytesPerSecond / 1e6 * shares().memory),
            about.calibration ? Origin::Measured : Origin::Assumed,
            "collective of one: a copy"};
  return collective(call->kind, call->bytes, call->ranks, call->nodes);
}

std::optional<Machine::Asked> Machine::asked(const Dag &dag,
                                             const DagNode &node) const {
  Asked result;
  std::vector<DeviceId> devices = node.devices;
  if (auto *call = std::get_if<CollectiveCall>(&node.work)) {
    result.kind = call->kind;
    result.ranks = uint32_t(call->members.size());
    for (const CollectiveMember &member : call->members)
      result.bytes = std::max(
          {result.bytes, boxBytes(member.sendBox), boxBytes(member.recvBox)});
  } else if (auto *call = std::get_if<OpaqueCall>(&node.work);
             call && call->isCollective) {
    result.kind = call->kind;
    result.bytes = double(call->bytes);
    result.ranks = call->group ? call->group
                   : dag.spmd  ? dag.numDevices
                               : uint32_t(devices.size());
    for (uint32_t d = 0; dag.spmd && d < result.ranks; ++d)
      devices.push_back(DeviceId{int32_t(d)});
  } else {
    return std::nullopt;
  }
  result.nodes = nodesOf(devices);
  return result;
}

std::vector<NcclTime> Machine::algorithms(const Dag &dag, NodeId id) const {
  std::optional<Asked> call = asked(dag, dag.node(id));
  if (isHost() || !call || call->ranks < 2 || !hasAlgorithms(call->kind))
    return {};
  return ncclEstimates(about, call->kind, call->bytes, call->ranks,
                       call->nodes);
}

double Machine::durationUs(const Dag &dag, NodeId node) const {
  return estimate(dag, node).us;
}

Origin Machine::origin(const Dag &dag, NodeId node) const {
  return estimate(dag, node).origin;
}

} // namespace mgpu::planner
