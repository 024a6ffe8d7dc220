// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One of several processes, which run the programs of a file together and
// compare what comes of each with what one process made of it. Started by
// mpirun, or with torchrun's variables. Usage: run-cases FILE auto|tcp
#include "device/host/HostDriver.h"
#include "device/tcp/TcpChannel.h"
#include "pipeline/run/Distributed.h"
#include "support/FileIO.h"
#include "tests/distributed/Case.h"
#include "tests/unit/device/RendezvousBody.h"

#include <cstdio>
#include <random>

using namespace mgpu;
using namespace mgpu::conformance;

namespace {

/// As many devices of each rank as chance says, so that some have several and
/// some none. Rank 0, which has the host, has device 0.
std::vector<uint32_t> mixedShares(uint32_t numDevices, uint32_t numRanks,
                                  uint64_t seed) {
  std::vector<uint32_t> shares(numRanks);
  shares[0] = 1;
  std::mt19937_64 random(seed);
  for (uint32_t k = 1; k < numDevices; ++k)
    ++shares[random() % numRanks];
  return shares;
}

/// One of the plans with equal parts of the devices, the next with mixed ones.
Result<void> runCase(const Case &each, uint64_t seed,
                     device::MessageRendezvous &others) {
  MGPU_TRY_ASSIGN(
      const planner::Program program,
      planner::readProgram(each.program,
                           [&](const std::string &hash) -> Result<Bytes> {
                             return each.blobs.at(hash);
                           }));
  bool isMixed = false;
  for (const std::string &text : each.plans) {
    const device::HostPart part =
        isMixed ? device::hostPart(
                      mixedShares(program.dag.numDevices, others.count(), seed),
                      others)
                : device::hostPart(program.dag.numDevices, others);
    isMixed = !isMixed;
    MGPU_TRY_ASSIGN(const planner::Plan plan,
                    planner::parsePlan(text, program.dag));
    MGPU_TRY_ASSIGN(auto driver, device::createHostDriver(part));
    MGPU_TRY_ASSIGN(const HostData got, execute(program.dag, plan, each.kernels,
                                                each.inputs, *driver, 2));
    if (others.rank() != 0)
      continue;
    if (std::string fault = difference(each.expected, got); !fault.empty())
      return fail(ErrorKind::Internal, fault);
  }
  return {};
}

/// The number of programs that ran.
Result<size_t> runAll(const char *file, const char *how) {
  MGPU_TRY_ASSIGN(const Bytes bytes, readFile(file));
  MGPU_TRY(
      pipeline::joinRanks({.how = how, .deadline = std::chrono::seconds(60)}));
  device::MessageRendezvous &others = *pipeline::theRanks();
  device::checkExchange(others, 5000);
  device::checkLargest(others);
  if (testing::Test::HasFailure())
    return fail(ErrorKind::Internal, "the ranks do not meet as they should");
  size_t count = 0;
  for (ByteReader reader(bytes); !reader.isEmpty(); ++count) {
    const Case each = takeCase(reader);
    if (Result<void> ok = runCase(each, count, others); !ok)
      return failIn(each.name + ": ", ok.error());
  }
  MGPU_TRY(others.meet());
  return count;
}

} // namespace

int main(int argc, char **argv) {
  testing::InitGoogleTest(&argc, argv);
  if (argc != 3)
    return 2;
  Result<size_t> count = runAll(argv[1], argv[2]);
  if (!count) {
    pipeline::failRanks(count.error().message);
    std::fprintf(stderr, "%s\n", count.error().message.c_str());
  } else if (pipeline::isFirstRank()) {
    std::printf("%zu programs on %u processes\n", *count,
                pipeline::theRanks()->count());
  }
  std::fflush(stdout);
  pipeline::leaveRanks();
  return count ? 0 : 1;
}
