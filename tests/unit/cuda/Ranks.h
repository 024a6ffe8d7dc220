// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TESTS_UNIT_CUDA_RANKS_H
#define MGPU_TESTS_UNIT_CUDA_RANKS_H

// One process, or thread, for each rank, over the driver and the NCCL that are
// not there.

#include "FakeNccl.h"
#include "FakeTarget.h"

#include <cstdlib>
#include <functional>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

namespace mgpu::fake {

/// The options of rank `rank`, in a process or with a GPU of its own.
inline device::CudaOptions rankOptions(uint32_t rank, int gpu = 0) {
  device::CudaOptions options = fakeOptions(1);
  options.gpu = gpu;
  options.only = DeviceId{int32_t(rank)};
  return options;
}

/// The same, in a thread: the environment is as it should be.
inline Result<std::unique_ptr<device::Driver>>
openThread(const device::CudaOptions &options) {
  auto api = std::make_shared<device::CudaApi>(*FakeCuda::api());
  MGPU_TRY(device::initializeCuda(*api));
  return device::createCudaDriver(std::move(api), options, FakeNccl::api());
}

inline Result<std::unique_ptr<device::Driver>>
openRank(const device::CudaOptions &options) {
  setenv("NCCL_GRAPH_MIXING_SUPPORT", "0", 1);
  return openThread(options);
}

/// Groups with ids of this world.
inline std::vector<device::DeviceGroup>
groupsOf(const std::vector<std::vector<DeviceId>> &members) {
  std::vector<device::DeviceGroup> groups;
  for (const auto &each : members) {
    device::DeviceGroup group{each, {}};
    device::NcclId id;
    FakeNccl::api()->GetUniqueId(&id);
    std::memcpy(&group.id, &id, sizeof id);
    groups.push_back(group);
  }
  return groups;
}

/// Whether the node is a collective's last one: a word to the host.
inline bool isMark(const Node &node) {
  const CUDA_MEMCPY3D &copy = node.params.memcpy.copyParams;
  return node.params.type == CU_GRAPH_NODE_TYPE_MEMCPY &&
         copy.dstMemoryType == CU_MEMORYTYPE_HOST && copy.WidthInBytes == 4;
}

inline std::vector<DeviceId> firstDevices(uint32_t count) {
  std::vector<DeviceId> devices;
  for (uint32_t k = 0; k < count; ++k)
    devices.push_back({int32_t(k)});
  return devices;
}

/// What each rank said; one that died or is late says so.
inline std::vector<std::string>
forkRanks(uint32_t count, const std::function<std::string(uint32_t)> &body) {
  std::vector<int> ends;
  std::vector<pid_t> children;
  for (uint32_t rank = 0; rank < count; ++rank) {
    int pipes[2];
    if (pipe(pipes) != 0)
      std::abort();
    fflush(nullptr);
    pid_t child = fork();
    if (child == 0) {
      alarm(60);
      std::string said = body(rank);
      ssize_t written = write(pipes[1], said.data(), said.size());
      _exit(written == ssize_t(said.size()) ? 0 : 1);
    }
    close(pipes[1]);
    ends.push_back(pipes[0]);
    children.push_back(child);
  }
  std::vector<std::string> out;
  for (uint32_t rank = 0; rank < count; ++rank) {
    std::string said;
    char buffer[4096];
    for (ssize_t got; (got = read(ends[rank], buffer, sizeof buffer)) > 0;)
      said.append(buffer, size_t(got));
    close(ends[rank]);
    int status = 0;
    waitpid(children[rank], &status, 0);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
      said += "(ended with status " + std::to_string(status) + ")";
    out.push_back(said);
  }
  return out;
}

/// What a rank has to complain of, once nothing of it may be left.
inline std::string rankComplaints() {
  const FakeCuda &fake = FakeCuda::instance();
  if (!fake.violations.empty())
    return fake.violations.front();
  if (!fake.leaks().empty())
    return "left: " + fake.leaks().front();
  if (FakeNccl::instance().comms.size())
    return "left: communicators";
  return "";
}

} // namespace mgpu::fake

#endif // MGPU_TESTS_UNIT_CUDA_RANKS_H
