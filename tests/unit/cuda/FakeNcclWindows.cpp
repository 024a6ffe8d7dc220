// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Memory of ncclMemAlloc, the windows that are registered of it, and what of
// them a collective may use.
#include "FakeNcclCalls.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace mgpu::fake {

using device::NcclComm;
using device::NcclResult;

namespace {

// The address of memory of ncclMemAlloc is that of pages (the guide, "Memory
// Allocator"), and it is memory of the GPU like any other.
NcclResult memAlloc(void **memory, size_t size) {
  MGPU_FAKE_NCCL_ENTER("ncclMemAlloc");
  FakeCuda &fake = FakeCuda::instance();
  if (!fake.current() || size == 0)
    return NcclResult::InvalidArgument;
  if (fake.isCapturingHere())
    ncclViolation("ncclMemAlloc within a capture");
  const size_t taken = fake.bytesTaken(fake.current());
  if (size > fake.gpuBytes || taken > fake.gpuBytes - size)
    return NcclResult::UnhandledCudaError;
  *memory = std::aligned_alloc(4096, (size + 4095) / 4096 * 4096);
  std::memset(*memory, 0xa5, size);
  fake.deviceMemory[uint64_t(uintptr_t(*memory))] = {size, fake.current()};
  nccl.memory[uint64_t(uintptr_t(*memory))] = size;
  return NcclResult::Success;
}

NcclResult memFree(void *memory) {
  FakeNccl &nccl = FakeNccl::instance();
  NcclResult entered = ncclEnter("ncclMemFree");
  const auto address = uint64_t(uintptr_t(memory));
  // "Free memory allocated by ncclMemAlloc()."
  if (!nccl.memory.erase(address)) {
    ncclViolation("ncclMemFree of what is not ncclMemAlloc's");
    return NcclResult::InvalidArgument;
  }
  if (nccl.windows.any([&](const FakeWindow &window) {
        return window.address == address && nccl.comms.find(window.comm);
      }))
    ncclViolation("ncclMemFree of a window that is registered");
  FakeCuda::instance().deviceMemory.erase(address);
  std::free(memory);
  return entered;
}

NcclResult windowRegister(NcclComm handle, void *memory, size_t size,
                          device::NcclWindow *window, int flags) {
  MGPU_FAKE_NCCL_ENTER("ncclCommWindowRegister");
  FakeComm *comm = commOf(handle, "ncclCommWindowRegister");
  if (!comm)
    return NcclResult::InvalidArgument;
  const auto address = uint64_t(uintptr_t(memory));
  // "Window address must be suitably aligned." nccl.h:61
  if (address % 4096 != 0 || size == 0)
    return NcclResult::InvalidArgument;
  // nccl.h:58-59
  if (flags != 0 && flags != 1)
    return NcclResult::InvalidArgument;
  // The guide: only of VMM-based allocators; any other fails.
  auto at = nccl.memory.find(address);
  if (at == nccl.memory.end() || size > at->second)
    return NcclResult::InvalidUsage;
  if (FakeCuda::instance().isCapturingHere())
    ncclViolation("ncclCommWindowRegister within a capture");
  // The guide: calls with memory registered more than once are undefined.
  if (nccl.windows.any([&](const FakeWindow &each) {
        return each.address == address && nccl.comms.find(each.comm);
      }))
    ncclViolation("a window registered more than once");
  if (comm->numWindows >= Meeting::maxWindows)
    return NcclResult::InternalError;
  const size_t number = comm->numWindows++;
  // Until 2.29 the guide wants one size on all ranks.
  uint64_t none = 0;
  if (!comm->meeting->windowBytes[number].compare_exchange_strong(none, size) &&
      none != size)
    ncclViolation("a window of another size than on other ranks");
  comm->filling = nccl.windows.add({comm, number, address, size});
  comm->meeting->registered[number].fetch_or(1u << comm->rank);
  comm->unfilled = window;
  comm->polls = std::max(nccl.polls, 1);
  return NcclResult::InProgress;
}

/// Local to the rank (the guide).
NcclResult windowDeregister(NcclComm handle, device::NcclWindow window) {
  FakeNccl &nccl = FakeNccl::instance();
  NcclResult entered = ncclEnter("ncclCommWindowDeregister");
  FakeComm *comm = commOf(handle, "ncclCommWindowDeregister");
  FakeWindow *object = nccl.windows.find(window);
  if (!comm || !object || object->comm != comm)
    return NcclResult::InvalidArgument;
  // The guide: it must not be accessed by any operation.
  if (isHeldByAGraph(comm))
    ncclViolation("ncclCommWindowDeregister while a graph holds calls");
  if (entered != NcclResult::Success)
    return entered;
  nccl.windows.remove(window);
  return begun(*comm);
}

} // namespace

std::optional<std::pair<size_t, uint64_t>>
inWindow(const FakeComm &comm, const void *data, size_t bytes) {
  std::optional<std::pair<size_t, uint64_t>> found;
  const auto at = uint64_t(uintptr_t(data));
  FakeNccl::instance().windows.any([&](const FakeWindow &window) {
    if (window.comm == &comm && at >= window.address &&
        at + bytes <= window.address + window.bytes)
      found = {window.number, at - window.address};
    return false;
  });
  return found;
}

std::string windowsOf(const FakeComm &comm, const Work &work, size_t sendBytes,
                      size_t recvBytes) {
  auto is = [&](const char *name) { return !std::strcmp(work.name, name); };
  auto send = inWindow(comm, work.send, sendBytes),
       recv = inWindow(comm, work.recv, recvBytes);
  if (send.has_value() != recv.has_value())
    ncclViolation(std::string(work.name) + " with one end in a window alone");
  if (!send || !recv)
    return "";
  const uint64_t rank = uint64_t(comm.rank);
  const bool isInPlace = is("ncclAllGather")
                             ? send->second == recv->second + rank * sendBytes
                         : is("ncclReduceScatter")
                             ? recv->second == send->second + rank * recvBytes
                             : false;
  auto text = [](const auto &at) {
    return "w" + std::to_string(at->first) + "+" + std::to_string(at->second);
  };
  if (is("ncclBroadcast"))
    return text(recv);
  return (isInPlace && is("ncclAllGather") ? "in place" : text(send)) + " " +
         (isInPlace && is("ncclReduceScatter") ? "in place" : text(recv));
}

void addWindowCalls(device::NcclApi &api) {
  api.MemAlloc = memAlloc;
  api.MemFree = memFree;
  api.CommWindowRegister = windowRegister;
  api.CommWindowDeregister = windowDeregister;
}

} // namespace mgpu::fake
