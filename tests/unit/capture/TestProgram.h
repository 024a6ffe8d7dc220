// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TESTS_UNIT_CAPTURE_TESTPROGRAM_H
#define MGPU_TESTS_UNIT_CAPTURE_TESTPROGRAM_H

// y += a * x on two devices, by hand: x is resident (uploaded at load), y is
// uploaded, added to and downloaded in the replay, all_reduced into a result
// at fetch. The kernel is tests/unit/device/HostKernel.cpp.

#include "planner/dag/Dag.h"
#include "planner/plan/Plan.h"

#include <bit>
#include <cstring>
#include <fstream>
#include <iterator>

namespace mgpu::capture {

inline constexpr int64_t half = 6; ///< elements per device

struct TestProgram {
  enum : uint32_t { ArgX, ArgY, Out, Bias, X0, X1, Y0, Y1, Sum };
  planner::Dag dag;
  planner::Plan plan;
  std::vector<std::vector<std::byte>> kernels;
};

inline TestProgram makeTestProgram(const char *kernelPath) {
  using namespace planner;
  TestProgram program;
  Dag &dag = program.dag;
  dag.name = "axpy";
  dag.numDevices = 2;
  auto buffer = [&](const char *name, int32_t device, BufferRole role,
                    uint64_t elements) {
    Buffer made;
    made.name = name;
    made.device = {device};
    made.role = role;
    made.sizeBytes = elements * 4;
    made.elementType = ElementType::F32;
    made.shape = {int64_t(elements)};
    dag.buffers.push_back(made);
  };
  buffer("x", -1, BufferRole::Argument, 2 * half);
  buffer("y", -1, BufferRole::Argument, 2 * half);
  buffer("out", -1, BufferRole::Result, half);
  buffer("bias", -1, BufferRole::Constant, half);
  std::vector<float> bias(half, 0.5f);
  dag.buffers.back().contents.resize(half * 4);
  std::memcpy(dag.buffers.back().contents.data(), bias.data(), half * 4);
  buffer("x0", 0, BufferRole::Resident, half);
  buffer("x1", 1, BufferRole::Resident, half);
  buffer("y0", 0, BufferRole::Temporary, half);
  buffer("y1", 1, BufferRole::Resident, half);
  buffer("sum", 0, BufferRole::Resident, half);
  dag.kernels.push_back({"axpy", "hash", {}, "a.mlir:1:1", {4, 1, 1}, 4, {}});

  Box all{0, {half}, {4}, 4}, second{half * 4, {half}, {4}, 4};
  auto node = [&](const char *name, Phase phase, std::vector<DeviceId> devices,
                  auto work, std::vector<uint32_t> after) {
    DagNode made;
    made.name = name;
    made.location = "a.mlir:2:3";
    made.phase = phase;
    made.devices = std::move(devices);
    made.work = std::move(work);
    NodeId id{uint32_t(dag.nodes.size())};
    dag.nodes.push_back(std::move(made));
    for (uint32_t from : after)
      dag.edges.push_back({{from}, id, DepKind::Data});
    PlanStep step;
    step.node = id;
    for (DeviceId device : dag.nodes.back().devices)
      step.streams.push_back({device, {id.value % 2}});
    if (step.streams.empty())
      step.streams.push_back({DeviceId::host(), {0}});
    for (uint32_t from : after)
      step.waits.push_back({from}); // superfluous within a stream, and harmless
    program.plan.steps.push_back(step);
  };
  auto copy = [](uint32_t from, Box fromBox, uint32_t to, Box toBox) {
    return CopyCall{{from}, {to}, fromBox, toBox};
  };
  auto axpy = [](uint32_t y, uint32_t x) {
    KernelCall call;
    call.kernel = {0};
    call.grid = {2, 1, 1};
    call.arguments = {{BufferId{y}, 0},
                      {BufferId{x}, 0},
                      {uint64_t(std::bit_cast<uint32_t>(2.0f)), 0},
                      {uint64_t(half), 0}};
    return call;
  };
  using P = TestProgram;
  node("load_x0", Phase::Load, {{0}}, copy(P::ArgX, all, P::X0, all), {});
  node("load_x1", Phase::Load, {{1}}, copy(P::ArgX, second, P::X1, all), {});
  node("up_y0", Phase::Replay, {{0}}, copy(P::ArgY, all, P::Y0, all), {});
  node("up_y1", Phase::Replay, {{1}}, copy(P::ArgY, second, P::Y1, all), {});
  node("axpy0", Phase::Replay, {{0}}, axpy(P::Y0, P::X0), {0, 2});
  node("axpy1", Phase::Replay, {{1}}, axpy(P::Y1, P::X1), {1, 3});
  node("down_y0", Phase::Replay, {{0}}, copy(P::Y0, all, P::ArgY, all), {4});
  node("down_y1", Phase::Replay, {{1}}, copy(P::Y1, all, P::ArgY, second), {5});
  CollectiveCall reduce;
  reduce.kind = CollectiveKind::AllReduce;
  reduce.members = {{{0}, {P::Y0}, {P::Sum}, all, all},
                    {{1}, {P::Y1}, {P::Y1}, all, all}};
  node("reduce", Phase::Replay, {{0}, {1}}, reduce, {6, 7});
  node("fetch", Phase::Fetch, {{0}}, copy(P::Sum, all, P::Out, all), {8});

  Plan &plan = program.plan;
  plan.numDevices = 2;
  plan.streamsPerDevice = 2;
  plan.placements = {{{P::X0}, 0},
                     {{P::X1}, 0},
                     {{P::Y0}, 256},
                     {{P::Y1}, 256},
                     {{P::Sum}, 512}};
  plan.arenaBytes = {768, 512};

  std::ifstream file(kernelPath, std::ios::binary);
  std::vector<char> text{std::istreambuf_iterator<char>(file), {}};
  program.kernels.emplace_back(text.size());
  std::memcpy(program.kernels[0].data(), text.data(), text.size());
  return program;
}

} // namespace mgpu::capture

#endif // MGPU_TESTS_UNIT_CAPTURE_TESTPROGRAM_H
