// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline/run/Distributed.h"

#include "capture/graph/Communication.h"
#include "capture/ranks/Ranks.h"
#include "capture/replay/Workspaces.h"
#include "db/FileSystem.h"
#include "device/cuda/api/Libraries.h"
#include "device/host/CpuLevel.h"
#include "device/host/HostDriver.h"
#include "pipeline/plan/ProgramPlan.h"
#include "pipeline/program/Version.h"
#include "pipeline/target/Target.h"
#include "planner/dag/ContentHash.h"
#include "support/Escape.h"
#include "support/FileIO.h"
#include "support/Sha256.h"
#include "support/Units.h"

#include <algorithm>
#include <fmt/format.h>

namespace mgpu::pipeline {

namespace {

/// More than anything measures at once.
constexpr uint64_t mostSubjects = 1 << 16;

std::string hashOf(const Prepared &prepared, const planner::Dag &dag) {
  Sha256 hash;
  hash.addField(planner::contentHash(dag));
  hash.addField(planner::toText(prepared.plan, dag));
  for (const std::vector<std::byte> &kernel : prepared.kernels)
    hash.addField(
        {reinterpret_cast<const char *>(kernel.data()), kernel.size()});
  hash.addField(prepared.nccl);
  return hash.hex();
}

/// Tells processors apart as far as code made for one of them goes.
std::string processorText() {
  auto bytes = readFile("/proc/cpuinfo");
  std::string text(bytes ? reinterpret_cast<const char *>(bytes->data()) : "",
                   bytes ? bytes->size() : 0);
  const size_t at = text.find("flags");
  return at == std::string::npos ? ""
                                 : text.substr(at, text.find('\n', at) - at);
}

/// The message of rank 0 to the others: whatever decides a bit of the results.
Bytes toBytes(const Prepared &prepared, const planner::Dag &dag) {
  Bytes out;
  append(out, planner::toText(prepared.plan, dag));
  append(out, prepared.cpu);
  append(out, processorText());
  append(out, prepared.nccl);
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

Result<Prepared> fromBytes(std::span<const std::byte> bytes, planner::Dag &dag,
                           KernelsFor what) {
  ByteReader reader(bytes);
  Prepared out;
  MGPU_TRY_ASSIGN(out.plan, readPlan("the plan of rank 0", dag, reader.text()));
  out.cpu = reader.text();
  const std::string first = reader.text();
  out.nccl = reader.text();
  out.threads = reader.take<uint32_t>();
  const auto count = reader.take<uint64_t>();
  if (count > reader.rest().size() / sizeof(uint64_t))
    return fail(
        ErrorKind::Absent,
        fmt::format("rank 0 announces {} kernels and sends fewer", count));
  if (count > 0 && what == KernelsFor::Processor)
    MGPU_TRY(checkProcessor(out.cpu, first));
  for (uint64_t k = 0; k < count; ++k) {
    const std::string kernel = reader.text();
    const auto object = std::as_bytes(std::span(kernel));
    out.kernels.emplace_back(object.begin(), object.end());
  }
  return out;
}

/// Passes on what other ranks make of rank 0's plan and kernels: a fault is of
/// what it sent, which the words may quote.
template <typename T>
Result<T> madeOfPlan(Result<T> made, const device::MessageRendezvous &others) {
  if (made || others.rank() == 0)
    return made;
  return fail(ErrorKind::Absent, escaped(made.error().message));
}

} // namespace

device::Facts factsOf(const LoadOptions &from, device::Facts more) {
  auto path = db::databasePath(from.database);
  more.emplace_back("database", path ? *path : "");
  return more;
}

Result<void> agreeOnProgram(const planner::Dag &dag,
                            device::MessageRendezvous &others,
                            const device::Facts &more) {
  device::Facts facts{{"version", versionText("mgpu", "")},
                      {"library", others.library()},
                      {"program", planner::contentHash(dag)}};
  facts.insert(facts.end(), more.begin(), more.end());
  return device::agree(facts, others);
}

Result<void> sharePrepared(planner::Dag &dag, Prepared &prepared,
                           device::MessageRendezvous &others, KernelsFor what) {
  const Bytes mine = others.rank() == 0 ? toBytes(prepared, dag) : Bytes();
  MGPU_TRY_ASSIGN(const std::vector<Bytes> all, others.exchange(mine));
  if (others.rank() != 0) {
    MGPU_TRY_ASSIGN(prepared, madeOfPlan(fromBytes(all[0], dag, what), others));
  }
  MGPU_TRY(device::agree({{"plan", hashOf(prepared, dag)}}, others));
  capture::addWorkspaces(dag, prepared.plan, prepared.kernels);
  return {};
}

Result<void> shareSubjects(planner::Dag &dag,
                           std::vector<bench::ProfileSubject> &subjects,
                           std::vector<Bytes> &kernels,
                           device::MessageRendezvous &others) {
  Bytes mine;
  append(mine, uint64_t(subjects.size()));
  MGPU_TRY_ASSIGN(const std::vector<Bytes> counts, others.exchange(mine));
  const auto count = ByteReader(counts[0]).take<uint64_t>();
  if (count > mostSubjects)
    return fail(ErrorKind::Absent,
                fmt::format("rank 0 wants to measure {} plans", count));
  subjects.resize(size_t(count));
  planner::Dag changed = dag;
  for (bench::ProfileSubject &subject : subjects) {
    changed = dag;
    Prepared prepared;
    prepared.plan = subject.plan;
    prepared.threads = subject.threads;
    prepared.kernels = kernels;
    MGPU_TRY(sharePrepared(changed, prepared, others));
    subject = {std::move(prepared.plan), prepared.threads};
    if (others.rank() != 0)
      kernels.swap(prepared.kernels);
  }
  dag = std::move(changed);
  return {};
}

Result<std::unique_ptr<Runner>>
openDistributed(LoadedProgram &program, const PrepareOptions &options,
                device::MessageRendezvous &others, Prepared &prepared,
                const std::function<void()> &opened) {
  MGPU_TRY(targetDevices(program.from.target, program.dag.numDevices));
  opened();
  return shareDevices(
      program.dag, [&] { return prepare(program, options); }, others, prepared,
      factsOf(program.from));
}

Result<std::unique_ptr<Runner>>
shareDevices(planner::Dag &dag,
             const std::function<Result<Prepared>()> &prepareFirst,
             device::MessageRendezvous &others, Prepared &prepared,
             const device::Facts &more) {
  MGPU_TRY(agreeOnProgram(dag, others, more));
  if (others.rank() == 0) {
    MGPU_TRY_ASSIGN(prepared, prepareFirst());
  }
  MGPU_TRY(sharePrepared(dag, prepared, others));
  MGPU_TRY_ASSIGN(auto driver, device::createHostDriver(
                                   device::hostPart(dag.numDevices, others),
                                   prepared.threads));
  MGPU_TRY_ASSIGN(capture::Replayer replayer,
                  madeOfPlan(capture::Replayer::create(
                                 dag, prepared.plan, prepared.kernels, *driver),
                             others));
  return capture::runWithOthers(capture::runOnOneTarget(std::move(driver),
                                                        std::move(replayer),
                                                        dag, prepared.plan),
                                others);
}

Result<std::string> agreeOnGpus(const planner::Dag &dag, const RankGpus &here,
                                const device::Facts &more) {
  MGPU_TRY(capture::checkAcrossGpus(dag)); // before all others are asked
  MGPU_TRY_ASSIGN(std::string arch, device::architectureOf(here.gpus));
  MGPU_TRY_ASSIGN(const device::FoundLibrary nccl, device::findNccl());
  device::Facts facts = more;
  facts.emplace_back("architecture of its GPU", arch);
  facts.emplace_back("NCCL", nccl.version);
  MGPU_TRY(agreeOnProgram(dag, *here.part.others, facts));
  return arch;
}

Result<std::unique_ptr<Runner>>
shareGpus(planner::Dag &dag, const RankGpus &here, const OpenGpus &open,
          const std::function<Result<Prepared>(const std::string &arch)>
              &prepareFirst,
          Prepared &prepared, const device::Facts &more) {
  device::MessageRendezvous &others = *here.part.others;
  MGPU_TRY_ASSIGN(const std::string arch, agreeOnGpus(dag, here, more));
  if (others.rank() == 0) {
    MGPU_TRY_ASSIGN(prepared, prepareFirst(arch));
  }
  MGPU_TRY(sharePrepared(dag, prepared, others, KernelsFor::Gpu));
  MGPU_TRY_ASSIGN(RanksToOpen opening, madeOfPlan(open(prepared), others));
  return madeOfPlan(capture::runGpusWithOthers(
                        dag, prepared.plan, prepared.kernels, here.part,
                        std::move(opening.open), std::move(opening.how)),
                    others);
}

} // namespace mgpu::pipeline
