// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The part of CudaState for programs of several GPUs, of which this driver has
// one.
#include "device/cuda/graph/CudaState.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>

namespace mgpu::device {

std::string CudaState::devicesText() const {
  return options.only
             ? fmt::format("{} alone in this process", options.only->value)
             : fmt::format("0 to {}", numDevices - 1);
}

void CudaState::giveUp(const std::string &reason) {
  if (communicators)
    communicators->abort();
  setLost(reason);
}

static tl::unexpected<Error> notARank() {
  return fail(ErrorKind::Usage, "this target is a GPU of its own, not one of "
                                "several");
}

Result<GroupId> CudaState::makeGroupId() {
  if (!nccl || !options.only)
    return notARank();
  MGPU_TRY_ASSIGN(NcclId id, Communicators::makeId(*nccl));
  GroupId out;
  static_assert(sizeof out == sizeof id);
  std::memcpy(&out, &id, sizeof out);
  return out;
}

Result<void> CudaState::join(std::span<const DeviceGroup> groups) {
  if (!nccl || !options.only)
    return notARank();
  if (communicators)
    return fail(ErrorKind::Usage, "this target has joined the others already");
  MGPU_TRY(checkAlive());
  MGPU_TRY(checkNcclMixing());
  if (options.nccl.windows &&
      (nccl->version < ncclWithWindows || !nccl->MemAlloc || !nccl->MemFree ||
       !nccl->CommWindowRegister || !nccl->CommWindowDeregister))
    return fail(ErrorKind::Absent,
                fmt::format("NCCL {} has no windows: install 2.27 or later, or "
                            "leave out windows",
                            ncclVersionText(nccl->version)));
  if (options.nccl.windows &&
      (groups.empty() ||
       std::find(groups[0].members.begin(), groups[0].members.end(),
                 *options.only) == groups[0].members.end()))
    return fail(ErrorKind::Usage, "windows are of the first group, which has "
                                  "all devices");
  Current current(*this);
  MGPU_TRY(current.entered);
  communicators = std::make_unique<Communicators>(
      nccl, options.watch, options.deadline, where(), options.nccl);
  for (const DeviceGroup &group : groups) {
    auto at =
        std::find(group.members.begin(), group.members.end(), *options.only);
    if (at == group.members.end()) {
      communicators->skip(group.members);
      continue;
    }
    NcclId id;
    std::memcpy(&id, &group.id, sizeof id);
    MGPU_TRY(communicators->join(id, uint32_t(at - group.members.begin()),
                                 group.members));
  }
  return {};
}

Result<std::byte *> CudaState::allocateArena(DeviceId device,
                                             uint64_t sizeBytes,
                                             uint64_t mostBytes) {
  MGPU_TRY_ASSIGN(std::byte * out, makeArena(device, sizeBytes, mostBytes));
  arenas.push_back({out, size_t(sizeBytes)});
  return out;
}

Result<std::byte *> CudaState::makeArena(DeviceId device, uint64_t sizeBytes,
                                         uint64_t mostBytes) {
  // Nobody has anything: so say all.
  if (!options.nccl.windows || !isHere(device) || mostBytes == 0)
    return allocate(device, sizeBytes, memoryOf(device));
  if (!communicators)
    return fail(ErrorKind::Usage,
                "the arena of a GPU is a window of NCCL's: join the others "
                "first");
  MGPU_TRY(checkAlive());
  Current current(*this);
  MGPU_TRY(current.entered);
  // The arena is as large on every rank, because old versions want it so.
  const uint64_t bytes =
      (std::max(sizeBytes, mostBytes) + ncclWindowAlignment - 1) /
      ncclWindowAlignment * ncclWindowAlignment;
  std::byte *out = nullptr;
  Result<bool> made = communicators->makeWindow(bytes, out);
  if (out)
    windows.push_back(out);
  MGPU_TRY(made);
  if (!*made)
    warnOnce(fmt::format("NCCL {} registers no windows {}: its collectives are "
                         "what they are without",
                         ncclVersionText(nccl->version), where()));
  MGPU_TRY(fill(CUdeviceptr(uintptr_t(out)), 0, bytes));
  memory.add(out, sizeBytes, device);
  return out;
}

Result<void> CudaState::adoptHost(std::span<std::byte> memory, bool isPinned) {
  MGPU_TRY(checkAlive());
  if (memory.empty())
    return {};
  int sameAddress = 0;
  MGPU_TRY(check(
      api->cuDeviceGetAttribute(
          &sameAddress,
          CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, device),
      "cuDeviceGetAttribute", where()));
  if (!sameAddress)
    return fail(ErrorKind::Absent,
                fmt::format("{} ({}) cannot reach host memory that GPUs "
                            "share by its address, which several of them need",
                            where(), gpuName));
  if (!isPinned) { // portable, so for all contexts (cuda.h 9474)
    Current current(*this);
    MGPU_TRY(current.entered);
    CUresult code = api->cuMemHostRegister(memory.data(), memory.size(),
                                           CU_MEMHOSTREGISTER_PORTABLE |
                                               CU_MEMHOSTREGISTER_DEVICEMAP);
    if (code == CUDA_ERROR_OUT_OF_MEMORY)
      return fail(ErrorKind::Absent,
                  fmt::format("cannot pin the {} bytes of host buffers {}: use "
                              "smaller buffers or raise the limit of locked "
                              "memory",
                              memory.size(), where()));
    MGPU_TRY(check(code, "cuMemHostRegister", where()));
    adopted.push_back(memory.data());
  }
  this->memory.add(memory.data(), memory.size(), DeviceId::host());
  return {};
}

Result<void> CudaState::warmUp(const NcclCall &call, std::string_view name) {
  // The key is equal on every rank, or one would wait for a call another leaves
  // out. Who sends to whom counts: a pair connects one way.
  std::string key =
      fmt::format("{} {} {} {} {} {} {}", call.group, toString(call.kind),
                  uint32_t(call.type), uint32_t(call.reduction), call.count,
                  call.root, toString(call.pairs));
  if (!warm.insert(key).second)
    return {};
  MGPU_TRY(checkAlive());
  Current current(*this);
  MGPU_TRY(current.entered);
  const auto run = [&]() -> Result<void> {
    MGPU_TRY(communicators->issue(call, stream, name));
    return wait(stream, fmt::format("the first run of '{}'", name));
  };
  const uint64_t bytes = call.bytesWritten();
  const bool isInArena = std::ranges::any_of(arenas, [&](auto arena) {
    return call.recv >= arena.data() && call.recv < arena.data() + arena.size();
  });
  if (isInArena || bytes == 0)
    return run();
  // An argument on the device may have its value already.
  CUdeviceptr kept = 0;
  MGPU_TRY(check(api->cuMemAlloc(&kept, bytes), "cuMemAlloc", where()));
  auto *copy = reinterpret_cast<std::byte *>(uintptr_t(kept));
  Result<void> done = transfer(copy, call.recv, bytes);
  if (done)
    done = run();
  if (done)
    done = transfer(call.recv, copy, bytes);
  api->cuMemFree(kept);
  return done;
}

} // namespace mgpu::device
