// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/PipelineReport.h"

#include "support/Units.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>

namespace mgpu::planner {

namespace {

struct Span {
  double begin = 0, end = 0;
};

/// By device: when kernels and collectives run on it.
std::vector<std::vector<Span>> workOf(const Plan &plan, const Dag &dag) {
  std::vector<std::vector<Span>> work(dag.numDevices);
  for (const PlanStep &step : plan.steps)
    if (workClass(dag.node(step.node)) != WorkClass::Copy &&
        timesInReplay(dag, dag.node(step.node).phase) > 0)
      for (DeviceId device : dag.node(step.node).devices)
        work[size_t(device.value)].push_back(
            {step.startUs, step.startUs + step.durationUs});
  return work;
}

/// How much time the spans cover together.
double coveredUs(std::vector<Span> spans) {
  std::sort(spans.begin(), spans.end(),
            [](const Span &a, const Span &b) { return a.begin < b.begin; });
  double covered = 0, end = 0;
  for (const Span &span : spans) {
    covered += std::max(0.0, span.end - std::max(span.begin, end));
    end = std::max(end, span.end);
  }
  return covered;
}

const MeshDevices *meshOf(const std::vector<MeshDevices> &meshes,
                          DeviceId device) {
  for (const MeshDevices &mesh : meshes)
    if (!device.isHost() && uint32_t(device.value) - mesh.first < mesh.count)
      return &mesh;
  return nullptr;
}

void addTransfers(PipelineReport &report, const Dag &dag,
                  const std::vector<MeshDevices> &meshes) {
  std::map<std::pair<const MeshDevices *, const MeshDevices *>,
           PipelineReport::Transfer>
      found;
  for (const DagNode &node : dag.nodes) {
    auto *copy = std::get_if<CopyCall>(&node.work);
    if (!copy)
      continue;
    const uint64_t bytes =
        uint64_t(copy->sourceBox.numElements()) * copy->sourceBox.elementBytes;
    const bool isOfHost = dag.buffer(copy->source).device.isHost() !=
                          dag.buffer(copy->destination).device.isHost();
    if (isOfHost && node.phase == Phase::Replay)
      report.hostBytes += bytes;
    const MeshDevices *from = meshOf(meshes, dag.buffer(copy->source).device);
    const MeshDevices *to =
        meshOf(meshes, dag.buffer(copy->destination).device);
    if (!from || !to || from == to)
      continue;
    PipelineReport::Transfer &transfer = found[{from, to}];
    transfer.from = from->name;
    transfer.to = to->name;
    ++transfer.copies;
    transfer.bytes += bytes;
    report.transferBytes += bytes;
  }
  for (auto &[between, transfer] : found)
    report.transfers.push_back(std::move(transfer));
}

} // namespace

PipelineReport reportPipeline(const Plan &plan, const Dag &dag,
                              const std::vector<MeshDevices> &meshes) {
  PipelineReport report;
  const std::vector<std::vector<Span>> work = workOf(plan, dag);
  Span whole{plan.makespanUs, 0};
  for (const std::vector<Span> &spans : work)
    for (const Span &span : spans)
      whole = {std::min(whole.begin, span.begin),
               std::max(whole.end, span.end)};
  const double length = whole.end - whole.begin;
  auto bubbleOf = [&](double busyUs, uint32_t devices) {
    return length > 0 && devices > 0 ? 1 - busyUs / (length * devices) : 0;
  };
  double allBusyUs = 0;
  uint32_t allDevices = 0;
  for (const MeshDevices &mesh : meshes) {
    double busyUs = 0;
    uint64_t peak = 0;
    for (uint32_t d = mesh.first; d < mesh.first + mesh.count; ++d) {
      if (d >= work.size())
        break;
      busyUs += coveredUs(work[d]);
      peak = std::max(peak, plan.arenaBytes[d] + dag.residentBytes);
    }
    report.meshes.push_back({mesh.name, bubbleOf(busyUs, mesh.count), peak});
    allBusyUs += busyUs;
    allDevices += mesh.count;
  }
  report.bubble = bubbleOf(allBusyUs, allDevices);
  addTransfers(report, dag, meshes);
  return report;
}

std::string toText(const PipelineReport &report) {
  std::string out = fmt::format(
      "pipeline   {:.1f} % bubble over {}; {} bytes from mesh to mesh, {} "
      "between hosts and devices\n",
      100 * report.bubble, counted(report.meshes.size(), "mesh", "meshes"),
      report.transferBytes, report.hostBytes);
  for (const PipelineReport::Mesh &mesh : report.meshes)
    out += fmt::format("           {}: {:.1f} % bubble, {} bytes a device at "
                       "most\n",
                       mesh.name, 100 * mesh.bubble, mesh.peakBytes);
  for (const PipelineReport::Transfer &transfer : report.transfers)
    out += fmt::format("           {} to {}: {} bytes in {}\n", transfer.from,
                       transfer.to, transfer.bytes,
                       counted(transfer.copies, "copy", "copies"));
  return out;
}

} // namespace mgpu::planner
