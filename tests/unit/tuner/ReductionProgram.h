// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TESTS_UNIT_TUNER_REDUCTIONPROGRAM_H
#define MGPU_TESTS_UNIT_TUNER_REDUCTIONPROGRAM_H

// Sums over two devices, each y += 2 x and then an all_reduce in place, that do
// not depend on each other: what transforms find something in.

#include "planner/dag/DagBuilder.h"
#include "tests/unit/tuner/TestSubject.h"

#include <fmt/format.h>

namespace mgpu::tuner {

/// `parts`: the kernels say which bytes each block touches, so that they can be
/// cut in two (the test's kernel object takes no parts).
inline planner::Dag makeReductions(bool parts, int sums = 2) {
  using namespace planner;
  constexpr int64_t count = 8; // elements; four to a block
  Dag dag;
  dag.name = "reductions";
  dag.numDevices = 2;
  dag.kernels.push_back({"axpy", "hash", {}, "r.mlir:1:1", {4, 1, 1}, 4, {}});
  auto buffer = [&](std::string name, int32_t device, BufferRole role) {
    Buffer made;
    made.name = std::move(name);
    made.device = {device};
    made.role = role;
    made.sizeBytes = count * 4;
    made.elementType = ElementType::F32;
    made.shape = {count};
    dag.buffers.push_back(made);
    return BufferId{uint32_t(dag.buffers.size() - 1)};
  };
  const Box all{0, {count}, {4}, 4};
  std::vector<DagNode> nodes;
  auto node = [&](std::string name, std::vector<DeviceId> devices, auto work,
                  std::vector<BufferUse> uses) {
    DagNode made;
    made.name = std::move(name);
    made.location = "r.mlir:2:3";
    made.devices = std::move(devices);
    made.work = std::move(work);
    made.uses = std::move(uses);
    nodes.push_back(std::move(made));
  };
  auto copy = [&](const char *name, DeviceId device, BufferId from,
                  BufferId to) {
    node(fmt::format("{}_{}", name, dag.buffer(to).name), {device},
         CopyCall{from, to, all, all},
         {{from, all, true, false}, {to, all, false, true}});
  };
  BufferId x = buffer("x", -1, BufferRole::Argument);
  BufferId y = buffer("y", -1, BufferRole::Argument);
  for (int sum = 0; sum < sums; ++sum) {
    BufferId out = buffer(fmt::format("out{}", sum), -1, BufferRole::Result);
    CollectiveCall reduce;
    reduce.kind = CollectiveKind::AllReduce;
    std::vector<BufferUse> reduced;
    for (int32_t d = 0; d < 2; ++d) {
      BufferId from =
          buffer(fmt::format("x{}_{}", sum, d), d, BufferRole::Temporary);
      BufferId to =
          buffer(fmt::format("y{}_{}", sum, d), d, BufferRole::Temporary);
      copy("up", {d}, x, from);
      copy("up", {d}, y, to);
      KernelCall call;
      call.kernel = {0};
      call.grid = {2, 1, 1};
      call.arguments = {
          {to, 0},
          {from, 0},
          {uint64_t(std::bit_cast<uint32_t>(float(2 + sum + d))), 0},
          {uint64_t(count), 0}};
      BufferUse writes{to, all, true, true}, reads{from, all, true, false};
      if (parts)
        writes.blockSteps[0] = reads.blockSteps[0] = 16;
      node(fmt::format("axpy{}_{}", sum, d), {{d}}, call, {writes, reads});
      reduce.members.push_back({{d}, to, to, all, all});
      reduced.push_back({to, all, true, true});
    }
    node(fmt::format("reduce{}", sum), {{0}, {1}}, reduce, reduced);
    copy("down", {0}, reduce.members[0].recv, out);
  }
  DependencyTracker tracker(dag);
  for (DagNode &each : nodes)
    tracker.append(std::move(each));
  return dag;
}

struct ReductionSubject {
  planner::Dag dag;
  std::unique_ptr<ProgramData> data;
  std::vector<kernels::KernelSpace> spaces;

  explicit ReductionSubject(bool parts = false) : dag(makeReductions(parts)) {
    std::vector<ProgramInput> inputs;
    for (uint32_t id : {0, 1}) {
      std::vector<float> values(8);
      for (size_t k = 0; k < values.size(); ++k)
        values[k] = float(k + id * 100) / 7;
      auto bytes = std::as_bytes(std::span(values));
      inputs.push_back({{id}, ElementType::F32, {bytes.begin(), bytes.end()}});
    }
    data = std::make_unique<ProgramData>(dag, std::move(inputs));
    kernels::KernelSpace &space = spaces.emplace_back();
    space.block = {4, 1, 1};
    space.maxGrid = {2, 1, 1};
    space.defaults[kernels::KernelParameter::BlockX] = 4;
    space.offerDefaults("");
  }
  ReductionSubject(const ReductionSubject &) = delete;

  TuningSubject subject() const {
    return {dag,
            *data,
            spaces,
            [](uint32_t, const kernels::KernelConfig &,
               uint32_t) -> Result<Bytes> { return kernelWithFault(0); },
            TestSubject::open,
            2};
  }
};

} // namespace mgpu::tuner

#endif // MGPU_TESTS_UNIT_TUNER_REDUCTIONPROGRAM_H
