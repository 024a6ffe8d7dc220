// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Calls of collectives that cut a buffer into a slice for each rank. The DAG
// knows no axes: slices there are equal parts of a box in row-major order, so a
// view is recorded with its slices one after the other.
#include "planner/record/Recorder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace mgpu::planner {

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
