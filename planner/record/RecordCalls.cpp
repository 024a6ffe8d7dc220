// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One rank's call of a collective: whose it is, on which queue, of which
// bytes. CollectiveMatcher puts the calls together.
#include "planner/record/Recorder.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace mgpu::planner {

Result<uint32_t> Recorder::createCommunicator(std::vector<DeviceId> devices,
                                              Place place, CallsOf callers) {
  for (size_t k = 0; k < devices.size(); ++k) {
    if (devices[k].isHost())
      return findings.callError(place, "the host cannot be a member");
    if (std::find(devices.begin(), devices.begin() + k, devices[k]) !=
        devices.begin() + k)
      return findings.callError(
          place, fmt::format("device {} is listed twice", devices[k].value));
  }
  return matcher.addCommunicator({std::move(devices), place, callers});
}

Result<CollectiveCallSite> Recorder::startCall(CollectiveKind kind,
                                               uint32_t communicator,
                                               const View &view,
                                               CallSite site) {
  auto refuse = [&](std::string text) {
    return findings.callError(site.place, std::move(text));
  };
  MGPU_TRY(checkLive(view.buffer, site.place));
  const Communicator &group = matcher.communicator(communicator);
  const Buffer &buffer = dag().buffer(view.buffer);
  DeviceId device = buffer.device;
  if (device.isHost())
    return refuse(fmt::format("buffer '{}' lives on the host; a collective "
                              "works on device buffers",
                              buffer.name));
  auto rank = std::ranges::find(group.devices, device);
  if (rank == group.devices.end()) {
    Finding finding;
    finding.place = site.place;
    finding.text = fmt::format("device {}, which owns buffer '{}', is not in "
                               "the communicator",
                               device.value, buffer.name);
    finding.isAboutCall = true;
    finding.notes.push_back({"it is created here", group.place});
    return findings.error(std::move(finding));
  }
  MGPU_TRY_ASSIGN(uint32_t chain, chainOf(site.stream, device, site.place));
  if (order.deviceOf(chain) != device)
    return refuse(fmt::format("buffer of device {} with a stream of device {}",
                              device.value, order.deviceOf(chain).value));
  MGPU_TRY(boxOfView(view, site.place));
  CollectiveCallSite call;
  call.place = site.place;
  call.kind = kind;
  call.elementType = buffer.elementType;
  call.communicator = communicator;
  call.rank = uint32_t(rank - group.devices.begin());
  call.send = call.recv = view;
  call.before = order.clockAt(chain);
  call.reach = order.reachAt(chain);
  call.point = order.enqueue(chain);
  buffers.noteUse(view.buffer, call.point);
  return call;
}

Result<void> Recorder::receiveInto(CollectiveCallSite &call, const View &recv) {
  MGPU_TRY(checkLive(recv.buffer, call.place));
  const Buffer &to = dag().buffer(recv.buffer);
  if (to.device != dag().buffer(call.send.buffer).device)
    return findings.callError(call.place,
                              "send and receive buffers live on two devices");
  if (to.elementType != call.elementType)
    return findings.callError(
        call.place,
        fmt::format("sends elements of type {} and receives {}",
                    toString(call.elementType), toString(to.elementType)));
  call.recv = recv;
  buffers.noteUse(recv.buffer, call.point);
  MGPU_TRY(boxOfView(recv, call.place));
  return checkDistinct(recv, call.place);
}

Result<void> Recorder::checkOverlap(const CollectiveCallSite &call,
                                    bool isInPlace, std::string_view advice) {
  uint32_t bytes = sizeBytes(call.elementType);
  if (isInPlace || call.send.buffer != call.recv.buffer ||
      overlap(boxOf(call.send, bytes), boxOf(call.recv, bytes)) != Overlap::Yes)
    return {};
  return findings.callError(
      call.place,
      fmt::format("sends a part of buffer '{}' that overlaps the part it "
                  "receives into; {}, or another buffer",
                  dag().buffer(call.recv.buffer).name, advice));
}

Result<void> Recorder::allReduce(uint32_t communicator, ReductionKind reduction,
                                 const View &send, const View &recv,
                                 CallSite site) {
  MGPU_TRY_ASSIGN(CollectiveCallSite call, startCall(CollectiveKind::AllReduce,
                                                     communicator, send, site));
  MGPU_TRY(receiveInto(call, recv));
  if (send.sizes != recv.sizes)
    return findings.callError(
        site.place, "send and receive buffers must have the same shape; "
                    "of these dynamic types the sizes differ");
  MGPU_TRY(checkOverlap(call, send == recv, "send just what is received"));
  call.reduction = reduction;
  return matcher.call(std::move(call));
}

Result<void> Recorder::broadcast(uint32_t communicator, int64_t root,
                                 const View &buffer, CallSite site) {
  MGPU_TRY_ASSIGN(
      CollectiveCallSite call,
      startCall(CollectiveKind::Broadcast, communicator, buffer, site));
  size_t ranks = matcher.communicator(communicator).devices.size();
  if (root < 0 || size_t(root) >= ranks)
    return findings.callError(
        site.place, fmt::format("root rank {} is outside a communicator of {}",
                                root, ranks));
  MGPU_TRY(checkDistinct(buffer, site.place));
  call.root = uint32_t(root);
  return matcher.call(std::move(call));
}

Result<void> Recorder::permute(uint32_t communicator,
                               std::vector<RankPair> pairs, const View &send,
                               const View &recv, CallSite site) {
  MGPU_TRY_ASSIGN(CollectiveCallSite call,
                  startCall(CollectiveKind::Permute, communicator, send, site));
  MGPU_TRY(receiveInto(call, recv));
  if (send.sizes != recv.sizes)
    return findings.callError(
        site.place, "send and receive buffers must have the same shape; "
                    "of these dynamic types the sizes differ");
  size_t ranks = matcher.communicator(communicator).devices.size();
  if (Result<void> ok = checkPairs(pairs, ranks); !ok)
    return findings.callError(site.place, std::move(ok.error().message));
  MGPU_TRY(checkOverlap(call, send == recv, "send just what is received"));
  std::ranges::sort(pairs);
  call.pairs = std::move(pairs);
  return matcher.call(std::move(call));
}

Result<void> Recorder::pointToPoint(uint32_t communicator, int64_t peer,
                                    const View &buffer, CallSite site,
                                    bool isSend) {
  MGPU_TRY_ASSIGN(
      CollectiveCallSite call,
      startCall(CollectiveKind::SendRecv, communicator, buffer, site));
  size_t ranks = matcher.communicator(communicator).devices.size();
  if (peer < 0 || size_t(peer) >= ranks)
    return findings.callError(
        site.place,
        fmt::format("rank {} is outside a communicator of {}", peer, ranks));
  if (uint32_t(peer) == call.rank)
    return findings.callError(
        site.place, fmt::format("rank {} names the caller itself", peer));
  if (!isSend)
    MGPU_TRY(checkDistinct(buffer, site.place));
  call.peer = uint32_t(peer);
  call.isSend = isSend;
  return matcher.call(std::move(call));
}

Result<void> Recorder::send(uint32_t communicator, int64_t peer,
                            const View &buffer, CallSite site) {
  return pointToPoint(communicator, peer, buffer, site, /*isSend=*/true);
}

Result<void> Recorder::receive(uint32_t communicator, int64_t peer,
                               const View &buffer, CallSite site) {
  return pointToPoint(communicator, peer, buffer, site, /*isSend=*/false);
}

// Calls of collectives that cut a buffer into a slice for each rank. The DAG
// knows no axes: slices there are equal parts of a box in row-major order, so a
// view is recorded with its slices one after the other.

/// Whether `whole` is `count` times `part`.
static bool isTimes(int64_t whole, int64_t count, int64_t part) {
  return whole % count == 0 && whole / count == part;
}

/// Whether the views have the same sizes but along the axis.
static bool agreeBeside(const View &a, const View &b, size_t axis) {
  for (size_t k = 0; k < a.sizes.size(); ++k)
    if (k != axis && a.sizes[k] != b.sizes[k])
      return false;
  return true;
}

Result<CollectiveCallSite>
Recorder::startSliced(CollectiveKind kind, uint32_t communicator,
                      SliceAxes axes, const View &send, const View &recv,
                      CallSite site) {
  MGPU_TRY_ASSIGN(CollectiveCallSite call,
                  startCall(kind, communicator, send, site));
  MGPU_TRY(receiveInto(call, recv));
  call.axes = axes;
  auto rank = int64_t(send.sizes.size());
  if (rank == 0 || recv.sizes.size() != send.sizes.size())
    return findings.callError(site.place,
                              "needs buffers of equal rank, at least 1");
  for (int64_t axis : {axes.split, axes.concat})
    if (axis < 0 || axis >= rank)
      return findings.callError(
          site.place,
          fmt::format("axis {} is outside of buffers of rank {}", axis, rank));
  return call;
}

Result<void> Recorder::allGather(uint32_t communicator, int64_t axis,
                                 const View &sent, const View &recv,
                                 CallSite site) {
  MGPU_TRY_ASSIGN(CollectiveCallSite call,
                  startSliced(CollectiveKind::AllGather, communicator,
                              {axis, axis}, sent, recv, site));
  auto refuse = [&](std::string text) {
    return findings.callError(site.place, std::move(text));
  };
  int64_t ranks = int64_t(matcher.communicator(communicator).devices.size());
  if (sent.sizes == recv.sizes && ranks > 1) {
    // Both as long as the result: rank i contributes slice i (in place).
    if (sent.sizes[axis] % ranks != 0)
      return refuse(
          fmt::format("dimension {} of {} does not divide among {} ranks", axis,
                      sent.sizes[axis], ranks));
    call.send = sliceOf(sent, axis, call.rank, ranks);
  } else if (!isTimes(recv.sizes[axis], ranks, sent.sizes[axis])) {
    return refuse(
        fmt::format("receives {} along dimension {}; {} ranks send {} each",
                    recv.sizes[axis], axis, ranks, sent.sizes[axis]));
  }
  if (!agreeBeside(sent, recv, axis))
    return refuse(fmt::format("send and receive buffers differ in a dimension "
                              "other than {}",
                              axis));
  MGPU_TRY(checkOverlap(call,
                        call.send == sliceOf(recv, axis, call.rank, ranks),
                        "send the rank's own slice of the result"));
  call.recv = bySlices(recv, axis, ranks);
  return matcher.call(std::move(call));
}

Result<void> Recorder::reduceScatter(uint32_t communicator,
                                     ReductionKind reduction, int64_t axis,
                                     const View &send, const View &recv,
                                     CallSite site) {
  MGPU_TRY_ASSIGN(CollectiveCallSite call,
                  startSliced(CollectiveKind::ReduceScatter, communicator,
                              {axis, axis}, send, recv, site));
  int64_t ranks = int64_t(matcher.communicator(communicator).devices.size());
  if (!isTimes(send.sizes[axis], ranks, recv.sizes[axis]))
    return findings.callError(
        site.place,
        fmt::format("sends {} along dimension {}; {} ranks receive {} each",
                    send.sizes[axis], axis, ranks, recv.sizes[axis]));
  if (!agreeBeside(send, recv, axis))
    return findings.callError(
        site.place,
        fmt::format("send and receive buffers differ in a dimension "
                    "other than {}",
                    axis));
  MGPU_TRY(checkOverlap(call, recv == sliceOf(send, axis, call.rank, ranks),
                        "receive into the rank's own slice of what is sent"));
  call.reduction = reduction;
  call.send = bySlices(send, axis, ranks);
  return matcher.call(std::move(call));
}

Result<void> Recorder::allToAll(uint32_t communicator, int64_t splitAxis,
                                int64_t concatAxis, const View &send,
                                const View &recv, CallSite site) {
  MGPU_TRY_ASSIGN(CollectiveCallSite call,
                  startSliced(CollectiveKind::AllToAll, communicator,
                              {splitAxis, concatAxis}, send, recv, site));
  int64_t ranks = int64_t(matcher.communicator(communicator).devices.size());
  if (send.sizes[splitAxis] % ranks != 0)
    return findings.callError(
        site.place,
        fmt::format("dimension {} of {} does not divide among {} ranks",
                    splitAxis, send.sizes[splitAxis], ranks));
  const bool isOneAxis = splitAxis == concatAxis;
  bool fits = true;
  for (int64_t k = 0; k < int64_t(send.sizes.size()); ++k)
    fits &= isOneAxis || (k != splitAxis && k != concatAxis)
                ? recv.sizes[k] == send.sizes[k]
            : k == splitAxis ? isTimes(send.sizes[k], ranks, recv.sizes[k])
                             : isTimes(recv.sizes[k], ranks, send.sizes[k]);
  if (!fits)
    return findings.callError(
        site.place,
        fmt::format("receives a buffer of shape [{}]; it does not hold what {} "
                    "ranks cut from [{}] each along axis {}, joined along axis "
                    "{}",
                    fmt::join(recv.sizes, ", "), ranks,
                    fmt::join(send.sizes, ", "), splitAxis, concatAxis));
  MGPU_TRY(checkOverlap(call, isOneAxis && send == recv,
                        "send just what is received, along one axis"));
  call.send = bySlices(send, splitAxis, ranks);
  call.recv = bySlices(recv, concatAxis, ranks);
  return matcher.call(std::move(call));
}

} // namespace mgpu::planner
