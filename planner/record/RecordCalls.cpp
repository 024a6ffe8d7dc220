// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One rank's call of a collective: whose it is, on which queue, of which
// bytes. CollectiveMatcher puts the calls together.
#include "planner/record/Recorder.h"

#include <fmt/format.h>

#include <algorithm>

namespace mgpu::planner {

Result<uint32_t> Recorder::createCommunicator(std::vector<DeviceId> devices,
                                              Place place) {
  for (size_t k = 0; k < devices.size(); ++k) {
    if (devices[k].isHost())
      return findings.callError(place, "the host cannot be a member");
    if (std::find(devices.begin(), devices.begin() + k, devices[k]) !=
        devices.begin() + k)
      return findings.callError(
          place, fmt::format("device {} is listed twice", devices[k].value));
  }
  return matcher.addCommunicator({std::move(devices), place});
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

/// `inPlace` is the part of the result that may be sent as it lies there.
Result<void> Recorder::checkOverlap(const CollectiveCallSite &call,
                                    const View &inPlace) {
  uint32_t bytes = sizeBytes(call.elementType);
  Box sent = boxOf(call.send, bytes);
  if (call.send.buffer != call.recv.buffer || sent == boxOf(inPlace, bytes) ||
      overlap(sent, boxOf(call.recv, bytes)) != Overlap::Yes)
    return {};
  return findings.callError(
      call.place,
      fmt::format("sends a part of buffer '{}' that overlaps the part it "
                  "receives into; send {}, or another buffer",
                  dag().buffer(call.recv.buffer).name,
                  call.kind == CollectiveKind::AllGather
                      ? "the rank's own slice of the result"
                      : "just what is received"));
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
  MGPU_TRY(checkOverlap(call, recv));
  call.reduction = reduction;
  return matcher.call(std::move(call));
}

Result<void> Recorder::allGather(uint32_t communicator, const View &sent,
                                 const View &recv, CallSite site) {
  MGPU_TRY_ASSIGN(CollectiveCallSite call, startCall(CollectiveKind::AllGather,
                                                     communicator, sent, site));
  MGPU_TRY(receiveInto(call, recv));
  auto refuse = [&](std::string text) {
    return findings.callError(site.place, std::move(text));
  };
  int64_t ranks = int64_t(matcher.communicator(communicator).devices.size());
  View &send = call.send;
  if (send.sizes.empty() || recv.sizes.size() != send.sizes.size())
    return refuse("needs buffers of equal rank, at least 1");
  if (send.sizes == recv.sizes && ranks > 1) {
    // Both as long as the result: rank i contributes slice i (in place).
    if (send.sizes[0] % ranks != 0)
      return refuse(
          fmt::format("dimension 0 of {} does not divide among {} ranks",
                      send.sizes[0], ranks));
    send.sizes[0] /= ranks;
    send.offset += int64_t(call.rank) * send.sizes[0] * send.strides[0];
  } else if (recv.sizes[0] != ranks * send.sizes[0]) {
    return refuse(
        fmt::format("receives {} along dimension 0; {} ranks send {} each",
                    recv.sizes[0], ranks, send.sizes[0]));
  }
  if (!std::equal(send.sizes.begin() + 1, send.sizes.end(),
                  recv.sizes.begin() + 1))
    return refuse("send and receive buffers differ in a dimension after the "
                  "first");
  View slice = recv;
  slice.sizes[0] /= ranks;
  slice.offset += int64_t(call.rank) * slice.sizes[0] * slice.strides[0];
  MGPU_TRY(checkOverlap(call, slice));
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
