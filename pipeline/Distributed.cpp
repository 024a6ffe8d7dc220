// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline/Distributed.h"

#include "capture/ranks/RemoteRunner.h"
#include "device/api/Agreement.h"
#include "device/host/CpuLevel.h"
#include "device/host/HostDriver.h"
#include "device/mpi/MpiChannel.h"
#include "device/tcp/TcpChannel.h"
#include "pipeline/MakePlan.h"
#include "pipeline/Version.h"
#include "planner/dag/ContentHash.h"
#include "support/FileIO.h"
#include "support/Sha256.h"

#include <algorithm>
#include <fmt/format.h>

namespace mgpu::pipeline {

namespace {

std::unique_ptr<device::MessageRendezvous> &ranks() {
  static std::unique_ptr<device::MessageRendezvous> all;
  return all;
}

Result<std::unique_ptr<device::Channel>> openChannel(const Meeting &meeting) {
  std::string mpi =
      meeting.how == "auto" ? device::mpiOfEnvironment() : meeting.how;
  if (meeting.how != "tcp" && !mpi.empty())
    return device::joinByMpi(mpi, meeting.communicator);
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

std::string hashOf(const Prepared &prepared, const planner::Dag &dag) {
  Sha256 hash;
  hash.addField(planner::contentHash(dag));
  hash.addField(planner::toText(prepared.plan, dag));
  for (const std::vector<std::byte> &kernel : prepared.kernels)
    hash.addField(
        {reinterpret_cast<const char *>(kernel.data()), kernel.size()});
  return hash.hex();
}

/// What tells processors apart as far as code made for one of them goes.
std::string processorText() {
  auto bytes = readFile("/proc/cpuinfo");
  std::string text(bytes ? reinterpret_cast<const char *>(bytes->data()) : "",
                   bytes ? bytes->size() : 0);
  const size_t at = text.find("flags");
  return at == std::string::npos ? ""
                                 : text.substr(at, text.find('\n', at) - at);
}

/// What rank 0 tells the others: whatever decides a bit of the results.
Bytes toBytes(const Prepared &prepared, const planner::Dag &dag) {
  Bytes out;
  append(out, planner::toText(prepared.plan, dag));
  append(out, prepared.cpu);
  append(out, processorText());
  append(out, prepared.threads);
  append(out, uint64_t(prepared.kernels.size()));
  for (const std::vector<std::byte> &kernel : prepared.kernels) {
    append(out, uint64_t(kernel.size()));
    append(out, std::span<const std::byte>(kernel));
  }
  return out;
}

Result<void> checkProcessor(const std::string &cpu, const std::string &first) {
  const auto levels = device::cpuLevels();
  if (cpu == "native"
          ? first == processorText()
          : std::find(levels.begin(), levels.end(), cpu) != levels.end())
    return {};
  return fail(ErrorKind::Absent,
              fmt::format("the kernels are for the processor of rank 0 ({}), "
                          "and this one is another: give `run` a --cpu LEVEL "
                          "that all have",
                          cpu));
}

Result<Prepared> fromBytes(std::span<const std::byte> bytes,
                           planner::Dag &dag) {
  ByteReader reader(bytes);
  Prepared out;
  MGPU_TRY_ASSIGN(out.plan,
                  readPlanText("the plan of rank 0", reader.text(), dag));
  out.cpu = reader.text();
  MGPU_TRY(checkProcessor(out.cpu, reader.text()));
  out.threads = reader.take<uint32_t>();
  for (auto left = reader.take<uint64_t>(); left > 0; --left) {
    const std::string kernel = reader.text();
    const auto object = std::as_bytes(std::span(kernel));
    out.kernels.emplace_back(object.begin(), object.end());
  }
  return out;
}

/// Prepares on rank 0, and takes over what it has elsewhere.
Result<Prepared>
prepareTogether(planner::Dag &dag,
                const std::function<Result<Prepared>()> &prepareFirst,
                device::MessageRendezvous &others) {
  Prepared prepared;
  Bytes mine;
  if (others.rank() == 0) {
    MGPU_TRY_ASSIGN(prepared, prepareFirst());
    mine = toBytes(prepared, dag);
  }
  MGPU_TRY_ASSIGN(const std::vector<Bytes> all, others.exchange(mine));
  if (others.rank() != 0) {
    MGPU_TRY_ASSIGN(prepared, fromBytes(all[0], dag));
  }
  return prepared;
}

} // namespace

Result<std::unique_ptr<device::MessageRendezvous>>
meetRanks(const Meeting &meeting) {
  MGPU_TRY_ASSIGN(auto channel, openChannel(meeting));
  return std::make_unique<device::MessageRendezvous>(std::move(channel),
                                                     meeting.deadline);
}

Result<void> joinRanks(const Meeting &meeting) {
  MGPU_TRY_ASSIGN(ranks(), meetRanks(meeting));
  return {};
}

device::MessageRendezvous *theRanks() { return ranks().get(); }

bool isFirstRank() { return !ranks() || ranks()->rank() == 0; }

void failRanks(const std::string &reason) {
  if (ranks())
    ranks()->abort(reason);
}

void leaveRanks() { ranks().reset(); }

Result<std::unique_ptr<Runner>>
openDistributed(LoadedProgram &program, const PrepareOptions &options,
                device::MessageRendezvous &others, Prepared &prepared,
                const std::function<void()> &opened) {
  MGPU_TRY(targetDevices(program.from.target, program.dag.numDevices));
  opened();
  return shareDevices(
      program.dag, [&] { return prepare(program, options); }, others, prepared);
}

Result<std::unique_ptr<Runner>>
shareDevices(planner::Dag &dag,
             const std::function<Result<Prepared>()> &prepareFirst,
             device::MessageRendezvous &others, Prepared &prepared) {
  MGPU_TRY(device::agree({{"version", versionText("mgpu", "")},
                          {"program", planner::contentHash(dag)}},
                         others));
  MGPU_TRY_ASSIGN(prepared, prepareTogether(dag, prepareFirst, others));
  MGPU_TRY(device::agree({{"plan", hashOf(prepared, dag)}}, others));
  MGPU_TRY_ASSIGN(auto driver, device::createHostDriver(
                                   device::hostPart(dag.numDevices, others),
                                   prepared.threads));
  MGPU_TRY_ASSIGN(
      capture::Replayer replayer,
      capture::Replayer::create(dag, prepared.plan, prepared.kernels, *driver));
  return capture::runWithOthers(capture::runOnOneTarget(std::move(driver),
                                                        std::move(replayer),
                                                        dag, prepared.plan),
                                others);
}

} // namespace mgpu::pipeline
