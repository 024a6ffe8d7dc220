// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/api/GraphDriver.h"

#include <cstring>

namespace mgpu::device {

// The vtables live here, once.
GraphExec::~GraphExec() = default;
GraphDriver::~GraphDriver() = default;
Driver::~Driver() = default;

Result<void> GraphExec::launchTimed(std::vector<NodeTiming> &timings) {
  timings.clear();
  return fail(ErrorKind::Unsupported,
              "this backend does not time single nodes of a graph: profile "
              "with the vendor's tool instead");
}

Result<void> GraphExec::observe(NodeObserver *) {
  return fail(ErrorKind::Unsupported,
              "single nodes are observed on the host alone");
}

Result<void> GraphExec::enqueue(void *, std::span<const HostValue>) {
  return fail(ErrorKind::Unsupported,
              "this target has no streams of the caller's: replay and wait");
}

Result<void> GraphExec::captureInto(void *) {
  return fail(ErrorKind::Unsupported,
              "this target has no streams that are captured: replay it beside "
              "the caller's graph");
}

Result<void> GraphExec::launchNext(std::span<const HostValue>) {
  return fail(ErrorKind::Unsupported,
              "this target queues no launches: replay and wait");
}

Result<void> GraphDriver::instantiateOver(std::unique_ptr<GraphExec> &exec) {
  MGPU_TRY_ASSIGN(exec, instantiate());
  return {};
}

Result<std::optional<double>> GraphExec::launchSpan() {
  MGPU_TRY(launch());
  return std::optional<double>();
}

static tl::unexpected<Error> notOneOfSeveral() {
  return fail(ErrorKind::Unsupported,
              "this backend does not share a program with other processes");
}

Result<GroupId> Driver::makeGroupId() { return notOneOfSeveral(); }

Result<void> Driver::join(std::span<const DeviceGroup>) {
  return notOneOfSeveral();
}

Result<void> Driver::transfer(std::byte *to, const std::byte *from,
                              uint64_t bytes) {
  if (bytes != 0)
    std::memcpy(to, from, bytes);
  return {};
}

Result<void> Driver::adoptHost(std::span<std::byte>, bool) {
  return notOneOfSeveral();
}

} // namespace mgpu::device
