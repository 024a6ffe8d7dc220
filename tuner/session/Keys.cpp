// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tuner/session/Keys.h"

#include "support/Sha256.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace mgpu::tuner {

using namespace planner;

namespace {

/// Collects numbers and texts of a DAG, each with its end marked.
class Writer {
public:
  template <typename T>
  requires std::is_arithmetic_v<T> || std::is_enum_v<T> Writer &add(T value) {
    if constexpr (std::is_enum_v<T>)
      hash.addField(std::to_string(int64_t(value)));
    else
      hash.addField(fmt::format("{}", value));
    return *this;
  }
  Writer &add(std::string_view text) {
    hash.addField(text);
    return *this;
  }
  Writer &add(const Box &box) {
    add(box.offset).add(box.elementBytes).add(box.sizes.size());
    for (size_t k = 0; k < box.sizes.size(); ++k)
      add(box.sizes[k]).add(k < box.strides.size() ? box.strides[k] : 0);
    return *this;
  }
  std::string hex() { return hash.hex(); }

private:
  Sha256 hash;
};

void addWork(Writer &out, const Dag &dag, const DagNode &node) {
  out.add(node.work.index());
  if (auto *kernel = std::get_if<KernelCall>(&node.work)) {
    out.add(dag.kernels[kernel->kernel.value].hash);
    out.add(kernel->grid.x).add(kernel->grid.y).add(kernel->grid.z);
    if (const auto &part = kernel->part) {
      out.add(part->first.x).add(part->first.y).add(part->first.z);
      out.add(part->count.x).add(part->count.y).add(part->count.z);
    }
    for (const KernelArgument &argument : kernel->arguments) {
      out.add(argument.value.index()).add(argument.offsetBytes);
      if (auto *buffer = std::get_if<BufferId>(&argument.value))
        out.add(buffer->value);
      else
        out.add(std::get<uint64_t>(argument.value));
    }
  } else if (auto *copy = std::get_if<CopyCall>(&node.work)) {
    out.add(copy->source.value).add(copy->destination.value);
    out.add(copy->sourceBox).add(copy->destinationBox);
  } else if (auto *call = std::get_if<CollectiveCall>(&node.work)) {
    out.add(call->kind).add(call->reduction).add(call->elementType);
    out.add(call->root).add(call->communicator);
    for (const CollectiveMember &member : call->members) {
      out.add(member.device.value).add(member.send.value);
      out.add(member.recv.value).add(member.sendBox).add(member.recvBox);
    }
  } else if (auto *opaque = std::get_if<OpaqueCall>(&node.work)) {
    out.add(uint8_t(opaque->isCollective)).add(opaque->kind);
    out.add(opaque->bytes).add(node.durationUs.value_or(-1));
  }
}

std::string shapeText(std::span<const int64_t> shape, ElementType type) {
  std::string text;
  for (int64_t size : shape)
    text += fmt::format("{}x", size);
  return text + std::string(toString(type));
}

std::string architecture() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f"))
    return "x86-64-v4";
  return __builtin_cpu_supports("avx2") ? "x86-64-v3" : "x86-64-v2";
#else
  return "unknown";
#endif
}

db::Problem commonProblem(const KeyInput &input) {
  db::Problem problem;
  if (input.target) {
    problem.device = input.target->device;
    problem.architecture = input.target->architecture;
  } else {
    problem.device = fmt::format("host: {}", input.environment.cpu);
    problem.architecture = architecture();
  }
  problem.policy = policyText(input.coldCaches);
  db::Pairs environment;
  for (auto &[name, value] : input.environment.entries(true))
    if (name != "cpu" || input.target)
      environment[name] = value;
  environment["devices"] = std::to_string(input.devices);
  problem.environment = db::pairsText(environment);
  return problem;
}

std::string softwareOf(const KeyInput &input) {
  std::string text = "mgpu " + input.version;
  if (input.target && !input.target->software.empty())
    text += ", " + input.target->software;
  return text;
}

std::string driverOf(const KeyInput &input,
                     std::span<const KernelObject> compiled) {
  Sha256 hash;
  for (const KernelObject &object : compiled)
    hash.add(std::span<const std::byte>(*object));
  return fmt::format("{}, kernels {}", softwareOf(input), hash.hex());
}

} // namespace

std::string contentHash(const Dag &dag) {
  Writer out;
  out.add(dag.numDevices).add(uint8_t(dag.spmd)).add(dag.residentBytes);
  out.add(dag.loop.trips);
  for (const Induction &induction : dag.loop.inductions)
    out.add(induction.buffer.value).add(induction.first).add(induction.step);
  for (const Buffer &buffer : dag.buffers) {
    out.add(buffer.device.value).add(buffer.role).add(buffer.index);
    out.add(buffer.sizeBytes).add(buffer.elementType);
    if (!buffer.contents.empty())
      out.add(Sha256().add(std::span<const std::byte>(buffer.contents)).hex());
  }
  for (const DagNode &node : dag.nodes) {
    out.add(node.phase).add(node.devices.size());
    for (DeviceId device : node.devices)
      out.add(device.value);
    addWork(out, dag, node);
  }
  for (const DepEdge &edge : dag.edges)
    out.add(edge.from.value).add(edge.to.value);
  return out.hex();
}

std::string policyText(bool coldCaches) {
  return fmt::format("{} caches, median of one replay beside the default's in "
                     "turn",
                     coldCaches ? "cold" : "hot");
}

db::Problem machineProblem(const KeyInput &input) {
  db::Problem problem = commonProblem(input);
  problem.driver = softwareOf(input);
  return problem;
}

db::Problem programProblem(const KeyInput &input) {
  const Dag &dag = input.dag;
  db::Problem problem = commonProblem(input);
  // What stays when sizes change: the steps and the kernels by name.
  Writer structure;
  structure.add(dag.numDevices);
  for (const KernelSpec &kernel : dag.kernels)
    structure.add(kernel.name);
  for (const DagNode &node : dag.nodes)
    structure.add(node.work.index()).add(node.devices.size());
  problem.program = structure.hex();
  db::Pairs shape{{"content", contentHash(dag)}};
  for (const Buffer &buffer : dag.buffers)
    if (buffer.device.isHost() && (buffer.role == BufferRole::Argument ||
                                   buffer.role == BufferRole::Result))
      shape[buffer.name] = shapeText(buffer.shape, buffer.elementType);
  problem.shape = db::pairsText(shape);
  problem.driver = driverOf(input, input.compiled);
  return problem;
}

db::Problem decisionProblem(const KeyInput &input) {
  db::Problem problem = programProblem(input);
  problem.policy += decidedSuffix;
  return problem;
}

db::Problem kernelProblem(const KeyInput &input, KernelId kernel,
                          Dim3 largestGrid) {
  db::Problem problem = commonProblem(input);
  problem.program = kernelPrefix + input.dag.kernels[kernel.value].hash;
  problem.shape =
      db::pairsText({{"grid", fmt::format("{}x{}x{}", largestGrid.x,
                                          largestGrid.y, largestGrid.z)}});
  problem.driver = driverOf(input, input.compiled.subspan(kernel.value, 1));
  problem.policy += "; sum of the kernel's nodes";
  return problem;
}

} // namespace mgpu::tuner
