// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/problem/PhaseProblem.h"

#include <fmt/format.h>
#include <map>
#include <set>

namespace mgpu::planner {

/// By buffer: whether its bytes may serve others before and after. The bytes of
/// buffers that another phase touches may not.
static std::vector<bool> sharedBuffers(const Dag &dag) {
  std::vector<bool> isUsed(dag.buffers.size()), isShared(dag.buffers.size());
  for (size_t b = 0; b < isShared.size(); ++b)
    isShared[b] = !dag.buffers[b].device.isHost() &&
                  dag.buffers[b].role == BufferRole::Temporary;
  for (const DagNode &node : dag.nodes)
    for (const BufferUse &use : node.uses) {
      isUsed[use.buffer.value] = true;
      if (node.phase != Phase::Replay)
        isShared[use.buffer.value] = false;
    }
  for (size_t b = 0; b < isShared.size(); ++b)
    isShared[b] = isShared[b] && isUsed[b];
  return isShared;
}

namespace {

class PhaseMaker {
public:
  PhaseMaker(const Dag &dag, std::span<const double> durations,
             uint64_t memoryBytes)
      : dag(dag), durations(durations), isShared(sharedBuffers(dag)),
        numbers(dag.nodes.size()) {
    std::vector<uint64_t> resident(dag.numDevices, dag.residentBytes);
    for (size_t b = 0; b < dag.buffers.size(); ++b)
      if (isInArena(dag.buffers[b]) && !isShared[b])
        resident[size_t(dag.buffers[b].device.value)] +=
            dag.buffers[b].sizeBytes;
    for (uint64_t bytes : resident)
      devices.push_back({bytes, memoryBytes});
  }

  Result<std::vector<PhaseProblem>> run() {
    std::vector<PhaseProblem> out;
    for (Phase phase : allPhases) {
      PhaseProblem made;
      made.phase = phase;
      made.times = timesInReplay(dag, phase);
      for (uint32_t i = 0; i < dag.nodes.size(); ++i)
        if (dag.nodes[i].phase == phase) {
          numbers[i] = uint32_t(made.nodes.size());
          made.nodes.push_back(NodeId{i});
        }
      if (made.nodes.empty())
        continue;
      MGPU_TRY_ASSIGN(made.problem, Problem::create(describe(made)));
      out.push_back(std::move(made));
    }
    return out;
  }

private:
  Problem::Description describe(const PhaseProblem &made) const {
    Problem::Description description;
    description.devices = devices;
    std::map<std::pair<DeviceId, WorkClass>, uint32_t> resources;
    std::map<BufferId, uint32_t> buffers;
    for (uint32_t i = 0; i < made.nodes.size(); ++i) {
      const DagNode &node = dag.node(made.nodes[i]);
      description.durations.push_back(durations[made.nodes[i].value]);
      for (DeviceId device : streamDevices(node)) {
        auto [at, isNew] = resources.try_emplace({device, workClass(node)},
                                                 uint32_t(resources.size()));
        if (isNew)
          description.resources.push_back(nameOf(device, workClass(node)));
        description.uses.push_back({i, {at->second, 1}});
      }
      std::set<BufferId> mine;
      for (const BufferUse &use : node.uses)
        if (isShared[use.buffer.value] && mine.insert(use.buffer).second) {
          const Buffer &buffer = dag.buffer(use.buffer);
          auto [at, isNew] =
              buffers.try_emplace(use.buffer, uint32_t(buffers.size()));
          if (isNew)
            description.buffers.push_back(
                {uint32_t(buffer.device.value), buffer.sizeBytes, false});
          description.users.push_back({at->second, i});
        }
    }
    for (const DepEdge &edge : dag.edges)
      if (dag.node(edge.from).phase == made.phase &&
          dag.node(edge.to).phase == made.phase)
        description.precedences.push_back(
            {numbers[edge.from.value], numbers[edge.to.value]});
    return description;
  }

  static std::string nameOf(DeviceId device, WorkClass work) {
    const char *what = work == WorkClass::Kernel ? "kernels"
                       : work == WorkClass::Copy ? "copies"
                                                 : "collectives";
    return device.isHost() ? fmt::format("{} of the host", what)
                           : fmt::format("{} of device {}", what, device.value);
  }

  const Dag &dag;
  std::span<const double> durations;
  std::vector<bool> isShared;    ///< by buffer
  std::vector<uint32_t> numbers; ///< by node of the DAG: its place in its phase
  std::vector<ProblemDevice> devices;
};

} // namespace

Result<std::vector<PhaseProblem>>
phaseProblems(const Dag &dag, std::span<const double> durations,
              uint64_t memoryBytes) {
  return PhaseMaker(dag, durations, memoryBytes).run();
}

} // namespace mgpu::planner
