// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "bench/suites/cuda/StepProgram.h"

#include "kernels/abi/LaunchForm.h"
#include "planner/cost/TargetMachine.h"
#include "planner/dag/DagBuilder.h"
#include "planner/schedule/list/Schedulers.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>

namespace mgpu::bench {

using namespace planner;

static constexpr uint32_t layerWidth = 8;
static constexpr int64_t wordBytes = 4;

/// How the step is launched, but for its code.
static kernels::KernelImage stepImage() {
  kernels::KernelImage image;
  image.entry = "step";
  return image;
}

std::string stepSource() {
  return kernels::launchFormText(stepImage()) + R"cuda(
struct Launch { unsigned grid[3], first[3], base[3], end[3]; };
extern "C" __global__ void step(unsigned *out, const unsigned *a,
                                const unsigned *b, Launch launch) {
  *out = (*a > *b ? *a : *b) + 1;
}
)cuda";
}

namespace {

/// A node by the words it reads and writes.
struct Step {
  int64_t out, a, b;
};

std::vector<Step> stepsOf(const StepShape &shape, int64_t &width) {
  width = shape.kind == "layers" ? std::min(layerWidth, shape.nodes) : 1;
  std::vector<Step> steps;
  for (int64_t k = 0; k < int64_t(shape.nodes); ++k) {
    const int64_t row = k / width * width;
    steps.push_back({k + width, k, row + (k - row + 1) % width});
  }
  return steps;
}

BufferUse useOf(int64_t word, bool writes) {
  return {
      {0}, Box{word * wordBytes, {1}, {wordBytes}, wordBytes}, !writes, writes};
}

Dag dagOf(const StepShape &shape, uint32_t &depth, uint32_t &columns) {
  int64_t width = 0;
  const std::vector<Step> steps = stepsOf(shape, width);
  columns = uint32_t(width);
  depth = uint32_t((steps.size() + size_t(width) - 1) / size_t(width));
  const int64_t words = width + int64_t(steps.size());
  Dag dag;
  dag.name = shape.kind;
  dag.numDevices = 1;
  Buffer memory;
  memory.name = "words";
  memory.device = {0};
  memory.role = BufferRole::Resident;
  memory.sizeBytes = uint64_t(words * wordBytes);
  memory.elementType = ElementType::I32;
  memory.shape = {words};
  Buffer result = memory;
  result.name = "result";
  result.device = DeviceId::host();
  result.role = BufferRole::Result;
  dag.buffers = {std::move(memory), std::move(result)};
  KernelSpec kernel;
  kernel.name = kernel.hash = "step";
  kernel.block = {1, 1, 1};
  kernel.numArguments = 3;
  dag.kernels = {std::move(kernel)};
  DependencyTracker tracker(dag);
  for (const Step &step : steps) {
    DagNode node;
    node.name = fmt::format("step{}", step.out - width);
    node.devices = {{0}};
    KernelCall call{{0}, {1, 1, 1}, {}};
    for (int64_t word : {step.out, step.a, step.b})
      call.arguments.push_back({BufferId{0}, word * wordBytes});
    node.work = std::move(call);
    node.uses = {useOf(step.out, true), useOf(step.a, false)};
    if (step.b != step.a)
      node.uses.push_back(useOf(step.b, false));
    node.bytesRead = 2 * wordBytes;
    node.bytesWritten = wordBytes;
    tracker.append(std::move(node));
  }
  const Box all{0, {words}, {wordBytes}, wordBytes};
  DagNode fetch;
  fetch.name = "fetch";
  fetch.phase = Phase::Fetch;
  fetch.devices = {{0}};
  fetch.work = CopyCall{{0}, {1}, all, all};
  fetch.uses = {{{0}, all, true, false}, {{1}, all, false, true}};
  tracker.append(std::move(fetch));
  return dag;
}

} // namespace

Result<StepProgram> StepProgram::make(const StepShape &shape,
                                      std::span<const std::byte> cubin,
                                      device::Driver &driver) {
  uint32_t depth = 0, width = 0;
  const Dag dag = dagOf(shape, depth, width);
  MGPU_TRY(dag.check());
  // A stream for each column: the schedulers' model, in which a device runs one
  // kernel at a time, would make a chain of layers too.
  std::vector<OrderedStep> order;
  for (uint32_t k = 0; k < dag.nodes.size(); ++k) {
    const bool isFetch = k == shape.nodes;
    order.push_back({{k}, {{{0}, {isFetch ? 0 : k % width}}}});
  }
  MGPU_TRY_ASSIGN(Plan plan, schedule(dag, hostMachine(), {"columns", 0, width},
                                      std::move(order)));
  kernels::KernelImage object = stepImage();
  object.arch = driver.architecture();
  object.setBytes(cubin);
  const std::vector<std::byte> kernel = kernels::encodeImage(object);
  MGPU_TRY_ASSIGN(
      capture::Replayer replayer,
      capture::Replayer::create(dag, plan, std::span(&kernel, 1), driver));
  StepProgram program(std::move(replayer));
  program.result = {1};
  program.expected = depth;
  const capture::ExecutableGraph &graph = program.replayer.graph(Phase::Replay);
  if (graph.dagNodes.size() != shape.nodes)
    return fail(
        ErrorKind::Internal,
        fmt::format("{} nodes became {}", shape.nodes, graph.dagNodes.size()));
  program.edges = graph.edges;
  MGPU_TRY_ASSIGN(std::byte * memory,
                  driver.allocate({0}, dag.buffers[0].sizeBytes));
  for (NodeId id : graph.dagNodes) {
    BareLaunch launch;
    launch.offsets = {0, 8, 16, 24};
    launch.parameters.resize(24 + 12 * 4);
    size_t at = 0;
    for (const KernelArgument &argument :
         std::get<KernelCall>(dag.node(id).work).arguments) {
      const uint64_t address =
          uint64_t(uintptr_t(memory)) + uint64_t(argument.offsetBytes);
      std::memcpy(launch.parameters.data() + at, &address, sizeof address);
      at += sizeof address;
    }
    program.launches.push_back(std::move(launch));
  }
  return program;
}

Result<double> StepProgram::replaySpan() {
  MGPU_TRY_ASSIGN(std::optional<double> us, replayer.replaySpan());
  if (!us)
    return fail(ErrorKind::Internal, "a GPU has no clock");
  return *us;
}

Result<void> StepProgram::checkResult() {
  MGPU_TRY(replayer.fetch());
  const std::span<std::byte> bytes = replayer.hostBuffer(result);
  uint32_t last = 0;
  std::memcpy(&last, bytes.data() + bytes.size() - wordBytes, sizeof last);
  if (last == expected)
    return {};
  return fail(ErrorKind::Invalid, fmt::format("the last of the nodes left {}, "
                                              "not {}: not all of them ran "
                                              "in order",
                                              last, expected));
}

} // namespace mgpu::bench
