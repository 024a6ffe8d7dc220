// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "bench/profile/CalibrateRanks.h"

#include "planner/cost/TargetMachine.h"
#include "planner/schedule/list/Schedulers.h"

#include <fmt/format.h>

namespace mgpu::bench {

using namespace planner;

namespace {

/// A program that has a communicator for each number of GPUs that is measured:
/// a sum among so many.
Dag connectingProgram(uint32_t devices) {
  Dag dag;
  dag.name = "calibrate";
  dag.numDevices = devices;
  const Box one{0, {1}, {4}, 4};
  for (uint32_t k = 0; k < devices; ++k) {
    Buffer buffer;
    buffer.name = fmt::format("sum{}", k);
    buffer.device = {int32_t(k)};
    buffer.sizeBytes = 4;
    buffer.elementType = ElementType::F32;
    buffer.shape = {1};
    dag.buffers.push_back(std::move(buffer));
  }
  for (uint32_t ranks : calibratedRanks(devices)) {
    DagNode node;
    node.name = fmt::format("a sum among {} GPUs", ranks);
    node.location = "calibrate";
    CollectiveCall call;
    for (uint32_t k = 0; k < ranks; ++k) {
      const DeviceId device{int32_t(k)};
      node.devices.push_back(device);
      node.uses.push_back({{k}, one, true, true});
      call.members.push_back({device, {k}, {k}, one, one});
    }
    node.work = std::move(call);
    const auto id = uint32_t(dag.nodes.size());
    if (id > 0)
      dag.edges.push_back({{id - 1}, {id}, DepKind::Data});
    dag.nodes.push_back(std::move(node));
  }
  dag.normalize();
  return dag;
}

} // namespace

Result<device::Topology>
calibrateRanks(uint32_t devices, capture::RankJob::Open open,
               capture::Ranks::Options options, MakeCalibration make,
               std::optional<capture::RemotePart> part) {
  if (part) // the drivers are in threads, as runGpusWithOthers() has them
    options.policy = capture::RankPolicy::Threads;

  const Dag dag = connectingProgram(devices);
  MGPU_TRY_ASSIGN(const Plan plan, schedule(dag, hostMachine(), {"serial"}));
  // All find the same, so one of them tells.
  options.work = [make](uint32_t number,
                        capture::Rank &rank) -> Result<std::string> {
    MGPU_TRY_ASSIGN(CalibrationInput input, make(rank.target()));
    input.largest = [&rank](double mine) {
      return rank.others().largest(mine);
    };
    if (rank.others().rank() != 0)
      input.progress = nullptr;
    MGPU_TRY_ASSIGN(device::Topology measured, calibrate(input));
    return number == 0 ? device::topologyText(measured) : "";
  };
  MGPU_TRY_ASSIGN(auto ranks,
                  capture::Ranks::start(dag, plan, {}, std::move(open),
                                        std::move(options), std::move(part)));
  MGPU_TRY_ASSIGN(std::vector<std::string> said,
                  ranks->work("the calibration"));
  MGPU_TRY(ranks->close());
  return device::parseTopology(said.front(), "what the GPUs measured");
}

} // namespace mgpu::bench
