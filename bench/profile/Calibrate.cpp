// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "bench/profile/Calibrate.h"

#include <algorithm>
#include <fmt/format.h>

namespace mgpu::bench {

using namespace device;

namespace {

using Work = TimedWork;
using Nodes = TimedWork::Nodes;
using Members = std::vector<uint32_t>; ///< devices, by rank

constexpr uint64_t smallestBytes = 4096;
constexpr uint64_t smallestOnHost = 64;             ///< of collectives
constexpr uint64_t copiedBytes = uint64_t(1) << 26; ///< more than caches hold

/// The first device of a process that has some of several.
std::optional<DeviceId> firstDeviceOf(const Driver &driver) {
  const auto part = driver.part();
  return part ? std::optional(DeviceId{int32_t(part->first)}) : std::nullopt;
}

class Calibration {
public:
  explicit Calibration(const CalibrationInput &input)
      : input(input), driver(input.driver), only(firstDeviceOf(driver)),
        devices(only ? input.about.devices : driver.numDevices()),
        here(only.value_or(DeviceId{0})),
        beside(only ? *only : DeviceId{int32_t(devices > 1 ? 1 : 0)}),
        times(driver, input.secondsPerFigure, input.largest, input.progress,
              !input.host.empty()) {}
  Result<Topology> run();

private:
  Result<void> load();
  Result<Work> kernelWork(const CalibrationKernel &kernel, KernelHandle handle,
                          DeviceId device,
                          std::optional<GridPart> part = std::nullopt);
  Work copyWork(std::string name, DeviceId device, std::byte *to,
                const std::byte *from, uint64_t bytes) const;
  Work collectiveWork(CollectiveKind kind, const Members &members,
                      uint64_t bytes) const;
  Result<double> sendUs(uint32_t from, uint32_t to, uint64_t bytes);
  /// The time of the slowest send to a neighbour on the same machine, or on
  /// another.
  Result<double> slowestSendUs(uint64_t bytes, bool isFar);
  Result<void> measureLinks(Topology &out);
  Result<void> measurePairs(Topology &out);

  Result<Topology> pass();
  Result<void> measureHost(Topology &out);
  Result<void> measureKernels(Topology &out);
  Result<void> measureCopies(Topology &out);
  Result<void> measureCollectives(Topology &out);
  Result<void> measureContention(Topology &out);
  /// `kernel` beside one that keeps k multiprocessors of a GPU busy with k
  /// blocks; where devices are threads, beside k of those.
  Result<void> measureBesideKernel(const Work &kernel, Topology &out);

  bool isHere(DeviceId device) const {
    const auto part = driver.part();
    return !part || part->holds(device);
  }
  uint32_t nodeOf(uint32_t device) const {
    return input.nodes.empty() ? 0 : input.nodes[device];
  }
  std::byte *sendOf(DeviceId device) const {
    return send[size_t(device.value)];
  }
  std::byte *recvOf(DeviceId device) const {
    return recv[size_t(device.value)];
  }

  const CalibrationInput &input;
  Driver &driver;
  const std::optional<DeviceId> only; ///< the first here; none: all are here
  const uint32_t devices;
  const DeviceId here;
  const DeviceId beside; ///< where what runs beside that of `here` runs
  ChainTimes times;
  KernelHandle memoryKernel, arithmeticKernel;
  std::vector<Work> hostWorks, matmulWorks;
  std::byte *copiedFrom = nullptr, *copiedTo = nullptr; ///< of copiedBytes
  /// By device, of largestBytes, in its arena in this order; null elsewhere.
  std::vector<std::byte *> send, recv;
  std::byte *host = nullptr;
};

Result<void> Calibration::load() {
  MGPU_TRY_ASSIGN(memoryKernel,
                  driver.loadKernel(input.memory.name, input.memory.object));
  MGPU_TRY_ASSIGN(arithmeticKernel, driver.loadKernel(input.arithmetic.name,
                                                      input.arithmetic.object));
  for (const CalibrationMatmul &matmul : input.matmuls) {
    MGPU_TRY_ASSIGN(
        KernelHandle handle,
        driver.loadKernel(matmul.kernel.name, matmul.kernel.object));
    MGPU_TRY_ASSIGN(Work work, kernelWork(matmul.kernel, handle, here));
    matmulWorks.push_back(std::move(work));
  }
  for (const HostKernel &each : input.host) {
    MGPU_TRY_ASSIGN(KernelHandle handle,
                    driver.loadKernel(each.kernel.name, each.kernel.object));
    MGPU_TRY_ASSIGN(Work work, kernelWork(each.kernel, handle, here));
    hostWorks.push_back(std::move(work));
  }
  if (!input.host.empty()) {
    MGPU_TRY_ASSIGN(copiedTo, driver.allocate(here, copiedBytes));
    MGPU_TRY_ASSIGN(copiedFrom, driver.allocate(DeviceId::host(), copiedBytes));
  }
  for (int32_t k = 0; k < int32_t(devices); ++k) {
    std::byte *arena = nullptr;
    const uint64_t bytes = 2 * input.largestBytes;
    if (isHere({k})) {
      MGPU_TRY_ASSIGN(arena, driver.allocateArena({k}, bytes, bytes));
    }
    send.push_back(arena);
    recv.push_back(arena ? arena + input.largestBytes : nullptr);
  }
  MGPU_TRY_ASSIGN(host, driver.allocate(DeviceId::host(), input.largestBytes));
  return {};
}

Result<Work> Calibration::kernelWork(const CalibrationKernel &kernel,
                                     KernelHandle handle, DeviceId device,
                                     std::optional<GridPart> part) {
  KernelNodeParams params{kernel.name, device, handle, kernel.grid, {}, part};
  for (const CalibrationKernel::Argument &argument : kernel.arguments) {
    uint64_t value = argument.bits;
    if (argument.memoryBytes > 0) {
      MGPU_TRY_ASSIGN(std::byte * memory,
                      driver.allocate(device, argument.memoryBytes));
      value += uint64_t(uintptr_t(memory));
    }
    params.arguments.push_back(value);
  }
  return Work{kernel.name, [params](GraphDriver &graph, const Nodes &after) {
                return graph.addKernel(params, after);
              }};
}

Work Calibration::copyWork(std::string name, DeviceId device, std::byte *to,
                           const std::byte *from, uint64_t bytes) const {
  const Box box = Box::flat(0, int64_t(bytes));
  CopyNodeParams params{name, device, to, from, box, box};
  return {std::move(name), [params](GraphDriver &graph, const Nodes &after) {
            return graph.addCopy(params, after);
          }};
}

/// No more than `bytes`, and as many elements for each rank.
static uint64_t evenBytes(uint64_t bytes, uint64_t ranks) {
  return bytes / (4 * ranks) * (4 * ranks);
}

Work Calibration::collectiveWork(CollectiveKind kind, const Members &members,
                                 uint64_t bytes) const {
  CollectiveNodeParams params;
  params.name =
      fmt::format("{} of {} x {} bytes", toString(kind), members.size(), bytes);
  if (kind == CollectiveKind::SendRecv)
    params.name += fmt::format(", {} to {}", members[0], members[1]);
  params.kind = kind;
  params.elementType = ElementType::F32;
  const uint64_t all = bytes / 4, slice = all / members.size();
  uint64_t sends = all, receives = all;
  if (kind == CollectiveKind::AllGather)
    sends = slice;
  if (kind == CollectiveKind::ReduceScatter)
    receives = slice;
  auto box = [](uint64_t elements) {
    Box out = Box::flat(0, int64_t(elements));
    out.elementBytes = 4;
    out.strides = {4};
    return out;
  };
  bool hasPart = false;
  for (uint32_t k : members) {
    const DeviceId device{int32_t(k)};
    params.members.push_back({device, sendOf(device), recvOf(device),
                              box(sends), box(receives), 0,
                              input.largestBytes});
    hasPart |= isHere(device);
  }
  if (!hasPart)
    return {params.name, nullptr};
  return {params.name, [params](GraphDriver &graph, const Nodes &after) {
            return graph.addCollective(params, after);
          }};
}

Result<void> Calibration::measureKernels(Topology &out) {
  MGPU_TRY_ASSIGN(Work memory, kernelWork(input.memory, memoryKernel, here));
  MGPU_TRY_ASSIGN(double memoryUs, times.usOf(memory));
  out.device.memoryBytesPerSecond = input.memory.bytes / memoryUs * 1e6;
  MGPU_TRY_ASSIGN(Work arithmetic,
                  kernelWork(input.arithmetic, arithmeticKernel, here));
  MGPU_TRY_ASSIGN(double arithmeticUs, times.usOf(arithmetic));
  out.device.flopsPerSecond = input.arithmetic.flops / arithmeticUs * 1e6;
  MGPU_TRY_ASSIGN(Work tiny, kernelWork(input.memory, memoryKernel, here,
                                        GridPart{{0, 0, 0}, {1, 1, 1}}));
  tiny.name = "a launch";
  MGPU_TRY_ASSIGN(out.calibration->launchUs, times.usOf(tiny));
  double best = 0, bf16 = 0;
  for (size_t k = 0; k < input.matmuls.size(); ++k) {
    const CalibrationMatmul &matmul = input.matmuls[k];
    MGPU_TRY_ASSIGN(double us, times.usOf(matmulWorks[k]));
    out.calibration->matmuls.push_back(
        {matmul.type, matmul.m, matmul.n, matmul.k, us, matmul.isTurned});
    double rate = 2.0 * matmul.m * matmul.n * matmul.k / us * 1e6;
    (matmul.type == "bf16" ? bf16 : best) =
        std::max(matmul.type == "bf16" ? bf16 : best, rate);
  }
  out.device.bf16FlopsPerSecond = bf16 > 0 ? bf16 : out.device.flopsPerSecond;
  out.device.tf32FlopsPerSecond = best > 0 ? best : out.device.flopsPerSecond;
  out.device.source = fmt::format(
      "{}memory by y = a x + y over {} bytes, FP32 by chains of fused "
      "multiply-adds, BF16 {}, TF32 {}",
      input.source, uint64_t(input.memory.bytes),
      bf16 > 0 ? "by products of bf16" : "as FP32: no product was given",
      best > 0 ? "by products of f32, as this target has no TF32"
               : "as FP32: no product was given");
  return {};
}

/// Kernels by what they do, and copies by their bytes.
Result<void> Calibration::measureHost(Topology &out) {
  if (input.host.empty())
    return {};
  auto add = [&](std::map<std::string, double> counts, double bytes,
                 double us) {
    out.calibration->host.push_back({std::move(counts), bytes, us});
  };
  for (size_t k = 0; k < input.host.size(); ++k) {
    double bytes = 0;
    for (const auto &argument : input.host[k].kernel.arguments)
      bytes += double(argument.memoryBytes);
    MGPU_TRY_ASSIGN(const double us, times.usOf(hostWorks[k]));
    add(input.host[k].counts, std::max(bytes, 1.0), us);
  }
  for (uint64_t bytes :
       {uint64_t(64), uint64_t(1) << 12, uint64_t(1) << 15, uint64_t(1) << 18,
        uint64_t(1) << 22, uint64_t(1) << 23, copiedBytes}) {
    MGPU_TRY_ASSIGN(const double us,
                    times.usOf(copyWork(fmt::format("copy of {} bytes", bytes),
                                        here, copiedTo, copiedFrom, bytes)));
    add({{"copy", double(bytes)}}, 2 * double(bytes), us);
  }
  return {};
}

/// The rate of what the smallest array does not take; a start that was measured
/// too long takes no more than a hundredth off.
static double rateOf(uint64_t largest, double us, double smallestUs) {
  return double(largest - smallestBytes) / std::max(us - smallestUs, us / 100) *
         1e6;
}

Result<void> Calibration::measureCopies(Topology &out) {
  const uint64_t largest = input.largestBytes;
  MGPU_TRY_ASSIGN(double latency,
                  times.usOf(copyWork("copy of 4096 bytes from the host", here,
                                      sendOf(here), host, smallestBytes)));
  MGPU_TRY_ASSIGN(double up, times.usOf(copyWork("copy from the host", here,
                                                 sendOf(here), host, largest)));
  MGPU_TRY_ASSIGN(double down,
                  times.usOf(copyWork("copy to the host", here, host,
                                      sendOf(here), largest)));
  out.calibration->copyLatencyUs = latency;
  // The slower direction: a plan has one figure for both.
  out.hostLink.bytesPerSecond = rateOf(largest, std::max(up, down), latency);
  out.hostLink.source = fmt::format(
      "{}copies of {} bytes, the slower direction", input.source, largest);
  if (only)
    return {}; // the link is by sends, with the collectives
  if (devices > 1) {
    MGPU_TRY_ASSIGN(double us,
                    times.usOf(copyWork("copy to the next device", here,
                                        recv[1], send[0], largest)));
    out.link.bytesPerSecond = rateOf(largest, us, latency);
    out.link.source = fmt::format("{}copies of {} bytes from device 0 to 1",
                                  input.source, largest);
    return {};
  }
  out.link.bytesPerSecond = out.hostLink.bytesPerSecond;
  out.link.source = fmt::format(
      "{}there is no second device, so the rate to the host", input.source);
  return {};
}

Result<double> Calibration::sendUs(uint32_t from, uint32_t to, uint64_t bytes) {
  return times.usOf(
      collectiveWork(CollectiveKind::SendRecv, {from, to}, bytes));
}

/// 0 where there are no such neighbours.
Result<double> Calibration::slowestSendUs(uint64_t bytes, bool isFar) {
  double slowest = 0;
  for (uint32_t from = 0; from < (only ? devices : 1); ++from) {
    const uint32_t to = (from + 1) % devices;
    if ((nodeOf(from) != nodeOf(to)) != isFar)
      continue;
    MGPU_TRY_ASSIGN(const double us, sendUs(from, to, bytes));
    slowest = std::max(slowest, us);
  }
  return slowest;
}

/// Measures, for several processes, the links within a machine and between
/// machines.
Result<void> Calibration::measureLinks(Topology &out) {
  const uint64_t bytes = input.largestBytes;
  MGPU_TRY_ASSIGN(const double start, slowestSendUs(smallestBytes, false));
  MGPU_TRY_ASSIGN(const double us, slowestSendUs(bytes, false));
  MGPU_TRY_ASSIGN(const double farStart, slowestSendUs(smallestBytes, true));
  MGPU_TRY_ASSIGN(const double farUs, slowestSendUs(bytes, true));
  const double far = farUs > 0 ? rateOf(bytes, farUs, farStart) : 0;
  out.link.bytesPerSecond = us > 0 ? rateOf(bytes, us, start) : far;
  out.link.source = fmt::format(
      "{}sends of {} bytes to the next device{}, the slowest", input.source,
      bytes, us > 0 ? "" : " of another machine, as each has one");
  if (far > 0)
    out.nic = Topology::Nic{
        1, far,
        fmt::format("{}sends of {} bytes to the next device of another "
                    "machine, the slowest",
                    input.source, bytes)};
  return {};
}

/// Each pair of devices, where they are few.
Result<void> Calibration::measurePairs(Topology &out) {
  constexpr uint32_t mostDevices = 16;
  if (devices > mostDevices)
    return {};
  const uint64_t bytes = input.largestBytes;
  for (uint32_t from = 0; from < devices; ++from)
    for (uint32_t to = 0; to < devices; ++to) {
      if (from == to)
        continue;
      MGPU_TRY_ASSIGN(const double start, sendUs(from, to, smallestBytes));
      MGPU_TRY_ASSIGN(const double us, sendUs(from, to, bytes));
      const double rate = rateOf(bytes, us, start);
      out.calibration->pairs.push_back(
          {from, to,
           std::max(start - double(smallestBytes) / rate * 1e6, start / 100),
           rate});
    }
  return {};
}

Result<void> Calibration::measureCollectives(Topology &out) {
  auto add = [&](CollectiveKind kind, uint32_t ranks, uint64_t bytes,
                 double us) {
    out.calibration->collectives.push_back(
        {std::string(toString(kind)), ranks, bytes, us});
  };
  Members members;
  for (uint32_t ranks : calibratedRanks(devices)) {
    while (members.size() < ranks)
      members.push_back(uint32_t(members.size()));
    for (CollectiveKind kind :
         {CollectiveKind::AllReduce, CollectiveKind::AllGather,
          CollectiveKind::ReduceScatter, CollectiveKind::AllToAll,
          CollectiveKind::Broadcast})
      for (uint64_t most = input.host.empty() ? smallestBytes : smallestOnHost;
           most <= input.largestBytes; most *= 16) {
        const uint64_t bytes = evenBytes(most, ranks);
        MGPU_TRY_ASSIGN(double us,
                        times.usOf(collectiveWork(kind, members, bytes)));
        add(kind, ranks, bytes, us);
      }
  }
  if (devices < 2)
    return {};
  double startUs = 0, us = 0;
  uint64_t bytes = input.host.empty() ? smallestBytes : smallestOnHost;
  for (uint64_t next = bytes; next <= input.largestBytes; next *= 16) {
    bytes = next;
    MGPU_TRY_ASSIGN(us, slowestSendUs(bytes, false));
    if (us == 0)
      break; // each is on a machine of its own
    startUs = startUs > 0 ? startUs : us;
    add(CollectiveKind::SendRecv, 2, bytes, us);
  }
  if (!only)
    return {};
  MGPU_TRY(measureLinks(out));
  return measurePairs(out);
}

Result<void> Calibration::measureContention(Topology &out) {
  if (only && input.about.device.smCount == 1)
    return {}; // processes of the host: what is beside has threads of its own
  const uint64_t bytes = input.largestBytes;
  struct Named {
    const char *name;
    Work here, there;
  };
  MGPU_TRY_ASSIGN(Work kernelHere,
                  kernelWork(input.memory, memoryKernel, here));
  MGPU_TRY_ASSIGN(Work kernelThere,
                  kernelWork(input.memory, memoryKernel, beside));
  std::vector<Named> works{
      {"kernel", kernelHere, kernelThere},
      {"copy", copyWork("copy", here, sendOf(here), host, bytes),
       copyWork("copy", beside, recvOf(beside), host, bytes)}};
  // A collective of two devices takes both, and leaves none to be beside. With
  // several GPUs it takes all, as each looks at its own.
  if (devices > 2 || (devices == 2 && input.about.device.smCount > 1)) {
    Members members{0, 1};
    while (only && members.size() < devices)
      members.push_back(uint32_t(members.size()));
    const Work work = collectiveWork(CollectiveKind::AllReduce, members,
                                     evenBytes(bytes, members.size()));
    works.push_back({"collective", work, work});
  }
  auto add = [&](const Named &mine, const char *other,
                 const Work &runs) -> Result<void> {
    MGPU_TRY_ASSIGN(auto factor, times.factorOf(mine.here, {runs}));
    if (factor)
      out.calibration->contention.push_back({mine.name, other, *factor});
    times.say(factor ? fmt::format("{} beside {}: {:.3f} times", mine.name,
                                   other, *factor)
                     : fmt::format("{} beside {}: never at a time", mine.name,
                                   other));
    return {};
  };
  // Where devices are threads, beside a collective of 0 and 1 is device 2.
  const bool isGpu = input.about.device.smCount > 1;
  for (const Named &mine : works)
    for (const Named &other : works) {
      if (std::string_view(mine.name) == other.name)
        continue;
      const bool meets = std::string_view(mine.name) == "collective" ||
                         std::string_view(other.name) == "collective";
      if (!meets || isGpu) {
        MGPU_TRY(add(mine, other.name, other.there));
        continue;
      }
      Named moved = mine;
      Work runs = other.here;
      for (bool isMine : {true, false}) {
        const Named &which = isMine ? mine : other;
        Work &into = isMine ? moved.here : runs;
        if (std::string_view(which.name) == "kernel") {
          MGPU_TRY_ASSIGN(into, kernelWork(input.memory, memoryKernel, {2}));
        } else if (std::string_view(which.name) == "copy") {
          into = copyWork("copy", {2}, recv[2], host, bytes);
        }
      }
      MGPU_TRY(add(moved, other.name, runs));
    }
  return measureBesideKernel(kernelHere, out);
}

Result<void> Calibration::measureBesideKernel(const Work &kernel,
                                              Topology &out) {
  const bool isGpu = input.about.device.smCount > 1;
  const uint32_t count = isGpu ? input.about.device.smCount : devices;
  for (uint32_t k = isGpu ? std::max(1u, count / 8) : 1;
       k <= (isGpu ? count / 2 : count - 1); k *= 2) {
    std::vector<Work> others;
    if (isGpu) {
      GridPart part{{0, 0, 0},
                    {std::min(k, input.arithmetic.grid.x),
                     input.arithmetic.grid.y, input.arithmetic.grid.z}};
      MGPU_TRY_ASSIGN(Work work, kernelWork(input.arithmetic, arithmeticKernel,
                                            beside, part));
      others.push_back(std::move(work));
    } else {
      for (uint32_t device = 1; device <= k; ++device) {
        MGPU_TRY_ASSIGN(
            Work work,
            kernelWork(input.arithmetic, arithmeticKernel, {int32_t(device)}));
        others.push_back(std::move(work));
      }
    }
    MGPU_TRY_ASSIGN(auto factor, times.factorOf(kernel, others));
    if (factor)
      out.calibration->besideKernel.push_back({k, *factor});
    times.say(
        factor ? fmt::format("kernel beside one of {} multiprocessors: {:.3f} "
                             "times",
                             k, *factor)
               : fmt::format("kernel beside one of {} multiprocessors: never "
                             "at a time",
                             k));
  }
  return {};
}

Result<Topology> Calibration::pass() {
  Topology out = input.about;
  out.devices = devices;
  out.calibration.emplace();
  out.calibration->source = fmt::format(
      "{}{} of chains in graphs; contention of nodes that others covered{}",
      input.source, input.host.empty() ? "medians" : "least times",
      only ? "; all ranks at once, of each figure the slowest rank's" : "");
  MGPU_TRY(measureKernels(out));
  MGPU_TRY(measureHost(out));
  MGPU_TRY(measureCopies(out));
  MGPU_TRY(measureCollectives(out));
  return out;
}

Result<Topology> Calibration::run() {
  MGPU_TRY(load());
  MGPU_TRY_ASSIGN(Topology out, pass());
  if (input.host.empty()) {
    MGPU_TRY(measureContention(out));
    return out;
  }
  std::vector<Topology::Calibration> passes{std::move(*out.calibration)};
  size_t refused = 0;
  while (passes.size() < 2 || (refused > 0 && passes.size() < 3)) {
    times.say(fmt::format("pass {}", passes.size() + 1));
    MGPU_TRY_ASSIGN(Topology next, pass());
    for (auto rate : {&Topology::Device::memoryBytesPerSecond,
                      &Topology::Device::flopsPerSecond,
                      &Topology::Device::bf16FlopsPerSecond,
                      &Topology::Device::tf32FlopsPerSecond})
      out.device.*rate = std::max(out.device.*rate, next.device.*rate);
    auto raise = [](double &rate, double other) {
      rate = std::max(rate, other);
    };
    raise(out.link.bytesPerSecond, next.link.bytesPerSecond);
    raise(out.hostLink.bytesPerSecond, next.hostLink.bytesPerSecond);
    passes.push_back(std::move(*next.calibration));
    refused = 0;
    out.calibration = agreed(passes, refused);
  }
  const size_t measured = passes[0].host.size() + passes[0].matmuls.size() +
                          passes[0].collectives.size();
  if (refused == 0)
    return out;
  const std::string sentence = fmt::format(
      "of {} figures {} differ between passes by more than {} times", measured,
      refused, agreement);
  if (refused * 2 > measured)
    return fail(ErrorKind::Absent,
                sentence +
                    ": the machine is busy; calibrate it when it is not");
  times.say(sentence + " and are left out");
  return out;
}

} // namespace

std::vector<uint32_t> calibratedRanks(uint32_t devices) {
  std::vector<uint32_t> out;
  for (uint32_t ranks = 2; ranks < devices; ranks *= 2)
    out.push_back(ranks);
  if (devices > 1)
    out.push_back(devices);
  return out;
}

Topology::Calibration agreed(std::span<const Topology::Calibration> passes,
                             size_t &refused) {
  Topology::Calibration out = passes.front();
  auto merge = [&](auto member) {
    auto &rows = out.*member;
    size_t kept = 0;
    for (size_t k = 0; k < rows.size(); ++k) {
      std::vector<double> us;
      for (const Topology::Calibration &pass : passes)
        us.push_back((pass.*member)[k].us);
      std::ranges::sort(us);
      // The least that two passes agree on; the clock's steps are no
      // contradiction.
      auto two = std::ranges::adjacent_find(us, [](double less, double more) {
        return more <= less * agreement || more - less < 0.02;
      });
      if (two == us.end())
        continue;
      rows[k].us = *two;
      rows[kept++] = rows[k];
    }
    refused += rows.size() - kept;
    rows.resize(kept);
  };
  merge(&Topology::Calibration::host);
  merge(&Topology::Calibration::matmuls);
  merge(&Topology::Calibration::collectives);
  for (const Topology::Calibration &pass : passes) {
    out.launchUs = std::min(out.launchUs, pass.launchUs);
    out.copyLatencyUs = std::min(out.copyLatencyUs, pass.copyLatencyUs);
  }
  return out;
}

Result<Topology> calibrate(const CalibrationInput &input) {
  return Calibration(input).run();
}

} // namespace mgpu::bench
