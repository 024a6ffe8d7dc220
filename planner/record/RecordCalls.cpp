// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One rank's call of a collective: whose it is, on which queue, of which
// bytes. CollectiveMatcher puts the calls together. Collectives that cut
// buffers along an axis are in RecordSlices.cpp.
#include "planner/record/Recorder.h"

#include <fmt/format.h>

#include <algorithm>

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

} // namespace mgpu::planner
