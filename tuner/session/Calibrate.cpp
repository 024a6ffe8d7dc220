// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tuner/session/Calibrate.h"

#include "bench/measure/Summary.h"
#include "support/Clock.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace mgpu::tuner {

using namespace device;

namespace {

using Nodes = std::vector<GraphNodeId>;
/// Adds one node after `after`, the `index`th of a chain.
using AddNode =
    std::function<Result<GraphNodeId>(GraphDriver &, const Nodes &after)>;

/// Work to be measured: a node, and how many of it make a chain long enough.
struct Work {
  std::string name;
  AddNode add;
};

class Calibration {
public:
  explicit Calibration(const CalibrationInput &input)
      : input(input), driver(input.driver),
        devices(driver.numDevices()), beside{int32_t(devices > 1 ? 1 : 0)} {}
  Result<Topology> run();

private:
  Result<void> load();
  Result<Work> kernelWork(const CalibrationKernel &kernel, KernelHandle handle,
                          DeviceId device,
                          std::optional<GridPart> part = std::nullopt);
  Work copyWork(std::string name, DeviceId device, std::byte *to,
                const std::byte *from, uint64_t bytes) const;
  Work collectiveWork(CollectiveKind kind, uint32_t ranks,
                      uint64_t bytes) const;

  /// Microseconds of one node in a chain.
  Result<double> usOf(const Work &work);
  Result<double> replayUs(GraphExec &exec, double seconds);
  Result<std::unique_ptr<GraphExec>> chain(const Work &work, uint32_t length);
  /// How many times as long `work` takes beside all of `others`; none: they do
  /// not run at a time.
  Result<std::optional<double>> factorOf(const Work &work,
                                         const std::vector<Work> &others);

  Result<void> measureKernels(Topology &out);
  Result<void> measureCopies(Topology &out);
  Result<void> measureCollectives(Topology &out);
  Result<void> measureContention(Topology &out);
  void say(const std::string &text) const {
    if (input.progress)
      input.progress(text);
  }

  const CalibrationInput &input;
  Driver &driver;
  const uint32_t devices;
  const DeviceId beside; ///< where what runs beside device 0's work runs
  KernelHandle memoryKernel, arithmeticKernel;
  std::vector<KernelHandle> matmulKernels;
  std::vector<std::byte *> send, recv; ///< by device, of largestBytes
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
    matmulKernels.push_back(handle);
  }
  for (uint32_t k = 0; k < devices; ++k)
    for (auto *into : {&send, &recv}) {
      MGPU_TRY_ASSIGN(std::byte * memory,
                      driver.allocate({int32_t(k)}, input.largestBytes));
      into->push_back(memory);
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

Work Calibration::collectiveWork(CollectiveKind kind, uint32_t ranks,
                                 uint64_t bytes) const {
  CollectiveNodeParams params;
  params.name =
      fmt::format("{} of {} x {} bytes", toString(kind), ranks, bytes);
  params.kind = kind;
  params.elementType = ElementType::F32;
  const uint64_t all = bytes / 4, slice = all / ranks;
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
  for (uint32_t k = 0; k < ranks; ++k)
    params.members.push_back(
        {{int32_t(k)}, send[k], recv[k], box(sends), box(receives)});
  return {params.name, [params](GraphDriver &graph, const Nodes &after) {
            return graph.addCollective(params, after);
          }};
}

Result<std::unique_ptr<GraphExec>> Calibration::chain(const Work &work,
                                                      uint32_t length) {
  auto graph = driver.createGraph();
  Nodes last;
  for (uint32_t k = 0; k < length; ++k) {
    MGPU_TRY_ASSIGN(GraphNodeId node, work.add(*graph, last));
    last = {node};
  }
  return graph->instantiate();
}

Result<double> Calibration::replayUs(GraphExec &exec, double seconds) {
  constexpr size_t least = 3, most = 101;
  MGPU_TRY(exec.launch());
  std::vector<double> samples;
  const Clock::time_point start = Clock::now();
  while (samples.size() < least ||
         (samples.size() < most && microsecondsSince(start) < seconds * 1e6)) {
    const Clock::time_point begin = Clock::now();
    MGPU_TRY_ASSIGN(std::optional<double> us, exec.launchSpan());
    samples.push_back(us ? *us : microsecondsSince(begin));
  }
  return bench::median(std::move(samples));
}

Result<double> Calibration::usOf(const Work &work) {
  MGPU_TRY_ASSIGN(auto one, chain(work, 1));
  MGPU_TRY_ASSIGN(double shorter, replayUs(*one, input.secondsPerFigure / 4));
  // As many as take a millisecond or two beside what the launch takes.
  const uint32_t length =
      uint32_t(std::clamp(2000 / std::max(shorter, 0.01), 2.0, 200.0)) + 1;
  MGPU_TRY_ASSIGN(auto many, chain(work, length));
  MGPU_TRY_ASSIGN(double longer, replayUs(*many, input.secondsPerFigure));
  MGPU_TRY_ASSIGN(double again, replayUs(*one, input.secondsPerFigure / 4));
  double us = (longer - std::min(shorter, again)) / (length - 1);
  // A machine that was disturbed meanwhile: then with the launch.
  if (!(us > 0))
    us = longer / length;
  if (!(us > 0))
    return fail(ErrorKind::Internal,
                fmt::format("{}: no time was measured", work.name));
  say(fmt::format("{}: {:.3f} us", work.name, us));
  return us;
}

Result<std::optional<double>>
Calibration::factorOf(const Work &work, const std::vector<Work> &others) {
  using None = std::optional<double>;
  constexpr uint32_t length = 3;
  constexpr size_t rounds = 7;
  auto lengthsOf = [](const std::vector<NodeTiming> &timings, uint32_t first,
                      uint32_t count) {
    double us = 0;
    for (const NodeTiming &timing : timings)
      if (timing.node.value >= first && timing.node.value < first + count)
        us += timing.endUs - timing.startUs;
    return us;
  };
  auto timed = [](GraphExec &exec) -> Result<std::vector<NodeTiming>> {
    std::vector<NodeTiming> timings;
    MGPU_TRY(exec.launchTimed(timings));
    return timings;
  };
  MGPU_TRY_ASSIGN(auto alone, chain(work, length));
  std::vector<uint32_t> lengths;
  MGPU_TRY_ASSIGN(auto first, timed(*alone));
  const double aloneUs = lengthsOf(first, 0, length);
  for (const Work &other : others) {
    MGPU_TRY_ASSIGN(auto exec, chain(other, 1));
    MGPU_TRY(exec->launch());
    MGPU_TRY_ASSIGN(auto timings, timed(*exec));
    // Long enough to last, though they slow each other down.
    lengths.push_back(uint32_t(std::clamp(
        4 * aloneUs / std::max(lengthsOf(timings, 0, 1), 0.01), 2.0, 300.0)));
  }
  auto graph = driver.createGraph();
  uint32_t count = 0;
  for (size_t k = 0; k < others.size(); ++k) {
    Nodes last;
    for (uint32_t j = 0; j < lengths[k]; ++j, ++count) {
      MGPU_TRY_ASSIGN(GraphNodeId node, others[k].add(*graph, last));
      last = {node};
    }
  }
  Nodes last;
  for (uint32_t k = 0; k < length; ++k) {
    MGPU_TRY_ASSIGN(GraphNodeId node, work.add(*graph, last));
    last = {node};
  }
  MGPU_TRY_ASSIGN(auto together, graph->instantiate());
  std::vector<double> factors;
  for (size_t round = 0; round < rounds; ++round) {
    MGPU_TRY_ASSIGN(auto apart, timed(*alone));
    MGPU_TRY_ASSIGN(auto timings, timed(*together));
    // Of those nodes that others covered on each of their queues.
    double begin = 0, end = INFINITY, us = 0;
    uint32_t from = 0;
    for (uint32_t each : lengths) {
      double starts = INFINITY, ends = 0;
      for (const NodeTiming &timing : timings)
        if (timing.node.value >= from && timing.node.value < from + each) {
          starts = std::min(starts, timing.startUs);
          ends = std::max(ends, timing.endUs);
        }
      begin = std::max(begin, starts);
      end = std::min(end, ends);
      from += each;
    }
    uint32_t covered = 0;
    for (const NodeTiming &timing : timings)
      if (timing.node.value >= count && timing.startUs >= begin &&
          timing.endUs <= end) {
        us += timing.endUs - timing.startUs;
        ++covered;
      }
    // Nodes of one queue cover each other's span, but never run at a time.
    bool overlaps = false;
    for (const NodeTiming &mine : timings)
      for (const NodeTiming &theirs : timings)
        overlaps |= mine.node.value >= count && theirs.node.value < count &&
                    mine.startUs < theirs.endUs && theirs.startUs < mine.endUs;
    const double aloneNow = lengthsOf(apart, 0, length) / length;
    if (covered > 0 && overlaps && aloneNow > 0)
      factors.push_back(us / covered / aloneNow);
  }
  if (factors.size() <= rounds / 2)
    return None();
  // Less than 1 is noise: nothing is helped by what runs beside it.
  return None(std::clamp(bench::median(std::move(factors)), 1.0, 1000.0));
}

Result<void> Calibration::measureKernels(Topology &out) {
  MGPU_TRY_ASSIGN(Work memory, kernelWork(input.memory, memoryKernel, {0}));
  MGPU_TRY_ASSIGN(double memoryUs, usOf(memory));
  out.device.memoryBytesPerSecond = input.memory.bytes / memoryUs * 1e6;
  MGPU_TRY_ASSIGN(Work arithmetic,
                  kernelWork(input.arithmetic, arithmeticKernel, {0}));
  MGPU_TRY_ASSIGN(double arithmeticUs, usOf(arithmetic));
  out.device.flopsPerSecond = input.arithmetic.flops / arithmeticUs * 1e6;
  MGPU_TRY_ASSIGN(Work tiny, kernelWork(input.memory, memoryKernel, {0},
                                        GridPart{{0, 0, 0}, {1, 1, 1}}));
  tiny.name = "a launch";
  MGPU_TRY_ASSIGN(out.calibration->launchUs, usOf(tiny));
  double best = 0, bf16 = 0;
  for (size_t k = 0; k < input.matmuls.size(); ++k) {
    const CalibrationMatmul &matmul = input.matmuls[k];
    MGPU_TRY_ASSIGN(Work work,
                    kernelWork(matmul.kernel, matmulKernels[k], {0}));
    MGPU_TRY_ASSIGN(double us, usOf(work));
    out.calibration->matmuls.push_back(
        {matmul.type, matmul.m, matmul.n, matmul.k, us});
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

Result<void> Calibration::measureCopies(Topology &out) {
  constexpr uint64_t smallest = 4096;
  const uint64_t largest = input.largestBytes;
  MGPU_TRY_ASSIGN(double latency,
                  usOf(copyWork("copy of 4096 bytes from the host", {0},
                                send[0], host, smallest)));
  MGPU_TRY_ASSIGN(double up, usOf(copyWork("copy from the host", {0}, send[0],
                                           host, largest)));
  MGPU_TRY_ASSIGN(double down, usOf(copyWork("copy to the host", {0}, host,
                                             send[0], largest)));
  out.calibration->copyLatencyUs = latency;
  // The slower direction: a plan has one figure for both.
  auto rate = [&](double us) {
    return double(largest - smallest) / std::max(us - latency, us / 100) * 1e6;
  };
  out.hostLink.bytesPerSecond = rate(std::max(up, down));
  out.hostLink.source = fmt::format(
      "{}copies of {} bytes, the slower direction", input.source, largest);
  if (devices > 1) {
    MGPU_TRY_ASSIGN(double us, usOf(copyWork("copy to the next device", {0},
                                             recv[1], send[0], largest)));
    out.link.bytesPerSecond = rate(us);
    out.link.source = fmt::format("{}copies of {} bytes from device 0 to 1",
                                  input.source, largest);
    return {};
  }
  out.link.bytesPerSecond = out.hostLink.bytesPerSecond;
  out.link.source = fmt::format(
      "{}there is no second device, so the rate to the host", input.source);
  return {};
}

Result<void> Calibration::measureCollectives(Topology &out) {
  for (uint32_t ranks = 2; ranks <= devices; ranks *= 2)
    for (CollectiveKind kind :
         {CollectiveKind::AllReduce, CollectiveKind::AllGather,
          CollectiveKind::ReduceScatter, CollectiveKind::AllToAll,
          CollectiveKind::Broadcast})
      for (uint64_t bytes = 4096; bytes <= input.largestBytes; bytes *= 16) {
        MGPU_TRY_ASSIGN(double us, usOf(collectiveWork(kind, ranks, bytes)));
        out.calibration->collectives.push_back(
            {std::string(toString(kind)), ranks, bytes, us});
      }
  return {};
}

Result<void> Calibration::measureContention(Topology &out) {
  const uint64_t bytes = input.largestBytes;
  struct Named {
    const char *name;
    Work here, there;
  };
  MGPU_TRY_ASSIGN(Work kernelHere, kernelWork(input.memory, memoryKernel, {0}));
  MGPU_TRY_ASSIGN(Work kernelThere,
                  kernelWork(input.memory, memoryKernel, beside));
  std::vector<Named> works{
      {"kernel", kernelHere, kernelThere},
      {"copy", copyWork("copy", {0}, send[0], host, bytes),
       copyWork("copy", beside, recv[size_t(beside.value)], host, bytes)}};
  // Of two devices a collective takes both, and leaves none to be beside.
  if (devices > 2 || (devices == 2 && input.about.device.smCount > 1))
    works.push_back({"collective",
                     collectiveWork(CollectiveKind::AllReduce, 2, bytes),
                     collectiveWork(CollectiveKind::AllReduce, 2, bytes)});
  auto add = [&](const Named &mine, const char *other,
                 const Work &runs) -> Result<void> {
    MGPU_TRY_ASSIGN(auto factor, factorOf(mine.here, {runs}));
    if (factor)
      out.calibration->contention.push_back({mine.name, other, *factor});
    say(factor
            ? fmt::format("{} beside {}: {:.3f} times", mine.name, other,
                          *factor)
            : fmt::format("{} beside {}: never at a time", mine.name, other));
    return {};
  };
  // Where devices are threads, beside a collective of 0 and 1 is device 2.
  const bool isCard = input.about.device.smCount > 1;
  for (const Named &mine : works)
    for (const Named &other : works) {
      if (std::string_view(mine.name) == other.name)
        continue;
      const bool meets = std::string_view(mine.name) == "collective" ||
                         std::string_view(other.name) == "collective";
      if (!meets || isCard) {
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
  // A kernel beside one that keeps k multiprocessors busy: of a card k blocks,
  // where devices are threads k of those.
  const uint32_t count = isCard ? input.about.device.smCount : devices;
  for (uint32_t k = isCard ? std::max(1u, count / 8) : 1;
       k <= (isCard ? count / 2 : count - 1); k *= 2) {
    std::vector<Work> others;
    if (isCard) {
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
    MGPU_TRY_ASSIGN(auto factor, factorOf(kernelHere, others));
    if (factor)
      out.calibration->besideKernel.push_back({k, *factor});
    say(factor ? fmt::format("kernel beside one of {} multiprocessors: {:.3f} "
                             "times",
                             k, *factor)
               : fmt::format("kernel beside one of {} multiprocessors: never "
                             "at a time",
                             k));
  }
  return {};
}

Result<Topology> Calibration::run() {
  Topology out = input.about;
  out.devices = devices;
  out.calibration.emplace();
  out.calibration->source = fmt::format(
      "{}medians of chains in graphs; contention of nodes that others covered",
      input.source);
  MGPU_TRY(load());
  MGPU_TRY(measureKernels(out));
  MGPU_TRY(measureCopies(out));
  MGPU_TRY(measureCollectives(out));
  MGPU_TRY(measureContention(out));
  return out;
}

} // namespace

Result<Topology> calibrate(const CalibrationInput &input) {
  return Calibration(input).run();
}

} // namespace mgpu::tuner
