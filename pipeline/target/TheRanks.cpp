// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline/target/TheRanks.h"

#include "device/mpi/MpiChannel.h"
#include "support/Units.h"

#include <algorithm>
#include <cstdlib>
#include <fmt/format.h>
#include <unistd.h>

namespace mgpu::pipeline {

namespace {

struct Joined {
  std::unique_ptr<device::MessageRendezvous> all;
  std::string how;
};

Joined &joined() {
  static Joined ranks;
  return ranks;
}

/// "openmpi", "mpich" or "tcp".
std::string howToMeet(const Meeting &meeting) {
  if (meeting.how != "auto")
    return meeting.how;
  const std::string mpi = device::mpiOfEnvironment();
  return mpi.empty() ? "tcp" : mpi;
}

Result<std::unique_ptr<device::Channel>> openChannel(const Meeting &meeting) {
  const std::string how = howToMeet(meeting);
  if (how != "tcp")
    return device::joinByMpi(how, meeting.deadline, meeting.communicator);
  if (meeting.place)
    return device::joinByTcp(*meeting.place, meeting.deadline);
  MGPU_TRY_ASSIGN(const auto place, device::tcpPlaceOfEnvironment());
  if (!place)
    return fail(ErrorKind::Usage,
                "nothing says which of several processes this "
                "is: start them by mpirun or srun, or set MASTER_ADDR, "
                "MASTER_PORT, RANK and WORLD_SIZE");
  return device::joinByTcp(*place, meeting.deadline);
}

std::string nodeName() {
  if (const char *name = std::getenv("MGPU_NODE"))
    return name;
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return name;
}

} // namespace

Result<std::unique_ptr<device::MessageRendezvous>>
meetRanks(const Meeting &meeting) {
  MGPU_TRY_ASSIGN(auto channel, openChannel(meeting));
  auto others = std::make_unique<device::MessageRendezvous>(std::move(channel),
                                                            meeting.deadline);
  MGPU_TRY(others->tellNode(nodeName()));
  return others;
}

Result<void> joinRanks(const Meeting &meeting) {
  Joined &ranks = joined();
  MGPU_TRY_ASSIGN(ranks.all, meetRanks(meeting));
  ranks.how = howToMeet(meeting);
  return {};
}

device::MessageRendezvous *theRanks() { return joined().all.get(); }

bool isFirstRank() { return !theRanks() || theRanks()->rank() == 0; }

void failRanks(const std::string &reason) {
  if (theRanks())
    theRanks()->abort(reason);
}

void leaveRanks() { joined().all.reset(); }

uint32_t numRanksHere() {
  if (!theRanks())
    return 1;
  const std::vector<uint32_t> &nodes = theRanks()->nodeOf();
  return uint32_t(std::ranges::count(nodes, nodes[theRanks()->rank()]));
}

uint32_t numRankNodes() {
  return theRanks() ? std::ranges::max(theRanks()->nodeOf()) + 1 : 1;
}

uint32_t mostDevicesOfRank(uint32_t devices) {
  const uint32_t count = theRanks() ? theRanks()->count() : 1;
  return (devices + count - 1) / count;
}

std::string ranksText() {
  if (!theRanks())
    return "";
  return fmt::format("{} on {} by {}", theRanks()->count(),
                     counted(numRankNodes(), "node"), joined().how);
}

Result<RankGpus> gpusOfRank(const std::string &target, uint32_t numDevices,
                            device::MessageRendezvous &others) {
  MGPU_TRY_ASSIGN(CudaTarget cuda, parseCudaTarget(target));
  if (cuda.devicesOnGpu > 1 || numDevices < others.count())
    return fail(
        ErrorKind::Unsupported,
        fmt::format("target '{}': GPUs of several processes are one for each "
                    "device, and the program of {} has {}: start as many or "
                    "fewer, with cuda or cuda:K,L for the GPUs of a machine",
                    target, counted(numDevices, "device"),
                    counted(others.count(), "process", "processes")));
  device::HostPart part = device::hostPart(numDevices, others);
  RankGpus out;
  out.part = {uint32_t(part.here.first), part.here.count, std::move(part.ranks),
              &others};
  const std::vector<uint32_t> &nodes = others.nodeOf();
  const auto before = std::span(out.part.rankOf).first(out.part.first);
  const auto first = size_t(std::ranges::count_if(before, [&](uint32_t rank) {
    return nodes[rank] == nodes[others.rank()];
  }));
  if (target != "cuda" && first + out.part.count > cuda.gpus.size())
    return fail(ErrorKind::Absent,
                fmt::format("target '{}' is {} of each machine, and rank {} "
                            "has device {} of its own: name more, or start "
                            "fewer processes there",
                            target, counted(cuda.gpus.size(), "GPU"),
                            others.rank(), first + out.part.count));
  for (size_t k = first; k < first + out.part.count; ++k)
    out.gpus.push_back(target == "cuda" ? int(k) : cuda.gpus[k]);
  return out;
}

} // namespace mgpu::pipeline
