// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Launches, copies and fills: which bytes they touch, and on which queue.
#include "planner/record/Recorder.h"

#include <fmt/format.h>

#include <algorithm>

namespace mgpu::planner {

/// A buffer that no machine has; finish() refuses it.
static bool isTooLarge(const Buffer &buffer) {
  return buffer.sizeBytes >= uint64_t(1) << 62;
}

static std::string ownerOf(const Buffer &buffer) {
  return buffer.device.isHost() ? "the host"
                                : fmt::format("device {}", buffer.device.value);
}

//===----------------------------------------------------------------------===//
// Shared
//===----------------------------------------------------------------------===//

Result<void> Recorder::enqueue(RecordedNode entry, uint32_t chain,
                               CallSite site) {
  VectorClock before = order.clockAt(chain);
  SourcePoint point = order.enqueue(chain);
  entry.node.location = findings.textOf(site.place);
  entry.node.part = findings.partOf(site.place);
  for (const BufferUse &use : entry.node.uses)
    buffers.noteUse(use.buffer, point);
  entry.calls.push_back({point, std::move(before), site.place});
  matcher.checkUses(entry);
  bool isOpen = matcher.isBehindOpenCall(entry);
  nodes.record(std::move(entry), isOpen);
  return site.stream ? Result<void>() : hostWaits(chain, site.place);
}

Result<Box> Recorder::boxOfView(const View &view, Place place) {
  const Buffer &buffer = dag().buffer(view.buffer);
  Box box = boxOf(view, sizeBytes(buffer.elementType));
  if (isTooLarge(buffer))
    return box;
  if (auto ok = checkBox(box); !ok)
    return findings.callError(place,
                              fmt::format("names a part of buffer '{}' "
                                          "that is none: {}",
                                          buffer.name, ok.error().message));
  auto [low, high] = box.byteRange();
  if (low < high && (low < 0 || uint64_t(high) > buffer.sizeBytes))
    return findings.callError(
        place, fmt::format("reaches outside buffer '{}': bytes {} to {} of {}",
                           buffer.name, low, high, buffer.sizeBytes));
  return box;
}

Result<void> Recorder::checkDistinct(const View &written, Place place) {
  const std::string &name = dag().buffer(written.buffer).name;
  switch (areDistinct(written)) {
  case Distinct::Yes:
    break;
  case Distinct::No:
    for (size_t k = 0; k < written.sizes.size(); ++k)
      if (written.sizes[k] > 1 && written.strides[k] == 0)
        return findings.callError(
            place, fmt::format("writes {} elements to one place of buffer '{}'",
                               written.sizes[k], name));
    break;
  case Distinct::Unknown:
    return findings.callError(
        place,
        fmt::format("writes a view of buffer '{}' of which several elements "
                    "may lie in one place",
                    name),
        ErrorKind::Unsupported);
  }
  return {};
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

Result<void> Recorder::checkLaunchShape(DeviceId device, Dim3 grid, Dim3 block,
                                        Place place) {
  if (device.isHost())
    return findings.callError(place, "cannot run on the host");
  constexpr uint32_t mostBlocks = INT32_MAX, mostBeside = 65535;
  if (grid.x > mostBlocks || grid.y > mostBeside || grid.z > mostBeside)
    return findings.callError(
        place, fmt::format("a grid of {} x {} x {} blocks; CUDA allows at most "
                           "{} along x and {} along y and z",
                           grid.x, grid.y, grid.z, mostBlocks, mostBeside));
  // Each size is checked as well: the volume may pass 64 bits.
  constexpr uint32_t most = 1024, mostAlongZ = 64;
  if (block.z > mostAlongZ && block.volume() <= most)
    return findings.callError(
        place, fmt::format("a block of {} x {} x {} threads; CUDA allows at "
                           "most {} along z: use x or y",
                           block.x, block.y, block.z, mostAlongZ));
  if (std::max({block.x, block.y, block.z}) > most || block.volume() > most)
    return findings.callError(
        place, fmt::format("a block of {} x {} x {} threads; CUDA allows at "
                           "most {}",
                           block.x, block.y, block.z, most));
  return {};
}

Result<void> Recorder::addUse(RecordedNode &entry, LaunchUse launchUse,
                              DeviceId device, Place place) {
  BufferUse &use = launchUse.use;
  MGPU_TRY(checkLive(use.buffer, place));
  const Buffer &buffer = dag().buffer(use.buffer);
  if (buffer.device != device)
    return findings.callError(
        place,
        fmt::format("kernel on device {} uses buffer '{}' of {}{}",
                    device.value, buffer.name, ownerOf(buffer),
                    buffer.device.isHost()
                        ? fmt::format("; copy it to memory of device {} first",
                                      device.value)
                        : ""));
  auto [low, high] = use.box.byteRange();
  if (launchUse.isExact && (low < 0 || uint64_t(high) > buffer.sizeBytes))
    return findings.callError(
        place, fmt::format("kernel reaches outside buffer '{}': bytes {} to {} "
                           "of {}",
                           buffer.name, low, high, buffer.sizeBytes));
  // A guard keeps the rest of such a box from being touched.
  if (low < high && (low < 0 || uint64_t(high) > buffer.sizeBytes)) {
    low = std::max<int64_t>(low, 0);
    high = std::max(low, std::min(high, int64_t(buffer.sizeBytes)));
    use.box = Box::flat(low, high - low);
    use.blockSteps = {};
  }
  const uint64_t bytes =
      std::min(uint64_t(use.box.numElements()) * use.box.elementBytes,
               launchUse.mostBytes);
  entry.node.bytesRead += use.reads ? bytes : 0;
  entry.node.bytesWritten += use.writes ? bytes : 0;
  entry.node.uses.push_back(std::move(use));
  entry.inexact.push_back(!launchUse.isExact);
  if (launchUse.sets) {
    entry.sets.resize(entry.node.uses.size());
    entry.sets.back() = std::move(launchUse.sets);
  }
  return {};
}

Result<void> Recorder::launch(LaunchSpec launch, CallSite site) {
  const KernelSpec &kernel = dag().kernels[launch.kernel.value];
  MGPU_TRY(
      checkLaunchShape(launch.device, launch.grid, kernel.block, site.place));
  if (launch.arguments.size() != kernel.numArguments)
    return findings.callError(
        site.place,
        fmt::format("passes {} arguments to kernel '{}', which takes {}",
                    launch.arguments.size(), kernel.name, kernel.numArguments));
  RecordedNode entry;
  DagNode &node = entry.node;
  node.name =
      fmt::format("{}_{}", launch.name.empty() ? kernel.name : launch.name,
                  dag().nodes.size());
  node.devices = {launch.device};
  node.flops = launch.flops;
  node.asks = launch.asks;
  node.isMatmul = launch.onTensorCores;
  node.durationUs = launch.durationUs;
  for (const LaunchRaceSpec &race : launch.races)
    nodes.reportWithin(race);
  node.uses.reserve(launch.uses.size());
  for (LaunchUse &use : launch.uses)
    MGPU_TRY(addUse(entry, std::move(use), launch.device, site.place));
  node.work =
      KernelCall{launch.kernel, launch.grid, std::move(launch.arguments)};
  MGPU_TRY_ASSIGN(uint32_t chain,
                  chainOf(site.stream, launch.device, site.place));
  if (order.deviceOf(chain) != launch.device)
    return findings.callError(
        site.place,
        fmt::format("launches on device {} with a stream of device {}",
                    launch.device.value, order.deviceOf(chain).value));
  return enqueue(std::move(entry), chain, site);
}

Result<BufferId> Recorder::parameterOn(DeviceId device, BufferId scalar,
                                       Place place) {
  auto [at, isNew] = parameters.try_emplace({device, scalar});
  if (!isNew)
    return at->second;
  // A value that stays the same is copied once, before the loop.
  if (inLoop && !findInduction(scalar))
    rolled->hoisted.push_back({uint32_t(dag().nodes.size())});
  Buffer source = dag().buffer(scalar);
  BufferId target = at->second =
      addBuffer(source.name + ".parameter", device, BufferRole::Temporary,
                source.elementType, {});
  RecordedNode entry;
  DagNode &node = entry.node;
  Box box = Box::flat(0, int64_t(source.sizeBytes));
  node.name =
      fmt::format("{}_{}", dag().buffer(target).name, dag().nodes.size());
  node.devices = {device};
  node.bytesRead = node.bytesWritten = source.sizeBytes;
  node.uses = {{scalar, box, true, false}, {target, box, false, true}};
  node.work = CopyCall{scalar, target, box, box};
  // The program has no such call: it stands before all of them, on no queue.
  entry.calls.push_back({SourcePoint{}, VectorClock(), place});
  nodes.record(std::move(entry), /*isOpen=*/false);
  return target;
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

Result<void> Recorder::copy(const CopySpec &spec, CallSite site) {
  auto [target, source, name] = spec;
  auto refuse = [&](std::string text, ErrorKind kind = ErrorKind::Invalid) {
    return findings.callError(site.place, std::move(text), kind);
  };
  MGPU_TRY(checkLive(target.buffer, site.place));
  MGPU_TRY(checkLive(source.buffer, site.place));
  const Buffer &to = dag().buffer(target.buffer);
  const Buffer &from = dag().buffer(source.buffer);
  if (to.role == BufferRole::Constant)
    return refuse(fmt::format("writes global '{}', whose initial value every "
                              "run starts from; copy it first and write the "
                              "copy",
                              to.name),
                  ErrorKind::Unsupported);
  if (to.elementType != from.elementType)
    return refuse(fmt::format("copies elements of type {} into {}",
                              toString(from.elementType),
                              toString(to.elementType)));
  CopyCall work{source.buffer, target.buffer, {}, {}};
  MGPU_TRY_ASSIGN(work.sourceBox, boxOfView(source, site.place));
  MGPU_TRY_ASSIGN(work.destinationBox, boxOfView(target, site.place));
  const int64_t count = work.sourceBox.numElements();
  if (count != work.destinationBox.numElements())
    return refuse(fmt::format("copies {} elements into {}", count,
                              work.destinationBox.numElements()));
  MGPU_TRY(checkDistinct(target, site.place));
  if (source.buffer == target.buffer && work.sourceBox != work.destinationBox &&
      overlap(work.sourceBox, work.destinationBox) == Overlap::Yes)
    return refuse(fmt::format("copies between two parts of buffer '{}' that "
                              "overlap; copy through another buffer",
                              from.name));
  RecordedNode entry;
  DagNode &node = entry.node;
  node.name = fmt::format("{}_{}", name, dag().nodes.size());
  node.bytesRead = node.bytesWritten =
      uint64_t(count) * sizeBytes(from.elementType);
  for (DeviceId device :
       {std::min(from.device, to.device), std::max(from.device, to.device)})
    if (!device.isHost() &&
        (node.devices.empty() || node.devices.front() != device))
      node.devices.push_back(device);
  node.uses.push_back({source.buffer, work.sourceBox, true, false});
  node.uses.push_back({target.buffer, work.destinationBox, false, true});
  node.work = std::move(work);
  MGPU_TRY_ASSIGN(uint32_t chain,
                  chainOf(site.stream,
                          to.device.isHost() ? from.device : to.device,
                          site.place));
  // It follows all that both devices have to do, as cudaMemcpyPeer does.
  if (!site.stream && !from.device.isHost() && !to.device.isHost())
    order.waitFor(chain, order.defaultChain(from.device));
  return enqueue(std::move(entry), chain, site);
}

Result<void> Recorder::fill(const View &view, std::vector<std::byte> element,
                            CallSite site) {
  ElementType type = dag().buffer(view.buffer).elementType;
  if (element.size() != sizeBytes(type))
    return findings.callError(
        site.place, fmt::format("fills elements of type {} with {} bytes",
                                toString(type), element.size()));
  BufferId value = addBuffer("fill", DeviceId::host(), BufferRole::Constant,
                             type, {}, std::move(element));
  View source = view;
  source.buffer = value;
  source.offset = 0;
  std::ranges::fill(source.strides, 0);
  return copy({view, std::move(source), "fill"}, site);
}

} // namespace mgpu::planner
