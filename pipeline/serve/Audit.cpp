// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline/serve/Audit.h"

#include "device/host/HostDriver.h"
#include "support/Clock.h"
#include "support/Random.h"
#include "support/WordHash.h"
#include "tuner/candidate/Guards.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <thread>

namespace mgpu::pipeline::serve {

using namespace planner;

namespace {

void addBox(WordHash &hash, const std::byte *base, const Box &box,
            size_t axis = 0) {
  if (axis == 0 && box.isContiguous()) {
    const auto [first, last] = box.byteRange();
    return hash.add(base + first, size_t(last - first));
  }
  if (axis == box.sizes.size())
    return hash.add(base, box.elementBytes);
  const std::byte *at = base + (axis == 0 ? box.offset : 0);
  if (axis + 1 == box.sizes.size() && box.strides[axis] == box.elementBytes)
    return hash.add(at, size_t(box.sizes[axis]) * box.elementBytes);
  for (int64_t k = 0; k < box.sizes[axis]; ++k)
    addBox(hash, at + k * box.strides[axis], box, axis + 1);
}

bool isReplayed(const DagNode &node) {
  return node.phase != Phase::Load && node.phase != Phase::Fetch;
}

} // namespace

bool NodeHashes::begin(NodeId node, uint32_t queue) {
  if (queue > 0)
    isAlone.store(false, std::memory_order_relaxed);
  constexpr uint64_t parts = 16;
  if (delayUs == 0 || isAlone.load(std::memory_order_relaxed) ||
      Random(node.value).below(parts) != round % parts)
    return true;
  const double us = delayUs / double(1 + dag.nodes.size() / parts);
  // Asleep, so that the others run where there are fewer CPUs than threads.
  std::this_thread::sleep_for(std::chrono::duration<double, std::micro>(us));
  return true;
}

void NodeHashes::end(NodeId node, uint32_t) {
  WordHash hash;
  for (const BufferUse &use : dag.node(node).uses)
    if (const std::byte *base = places[use.buffer.value]; use.writes && base)
      addBox(hash, base, use.box);
  // A node of a rolled loop runs in each trip.
  uint64_t &all = hashes[node.value];
  all = (all ^ (all >> 31)) * 0xbf58476d1ce4e5b9 + hash.value();
}

Audit::Audit(const Dag &dag, const Plan &plan, capture::Runner &runner)
    : dag(dag), spread(tuner::spreadBuffers(plan, dag)), runner(runner),
      found(dag), expected(dag), isSteady(dag.nodes.size(), true) {
  std::vector<bool> isWritten(dag.buffers.size());
  for (const PlanStep &step : plan.steps)
    if (const DagNode &node = dag.node(step.node); isReplayed(node)) {
      order.push_back(step.node);
      for (const BufferUse &use : node.uses)
        if (use.writes)
          isWritten[use.buffer.value] = true;
    }
  for (uint32_t k = 0; k < dag.buffers.size(); ++k) {
    const BufferRole role = dag.buffers[k].role;
    if (dag.buffers[k].sizeBytes == 0)
      continue;
    if (role == BufferRole::Temporary)
      passing.push_back({k});
    else if (isWritten[k])
      written.push_back({k});
    if (role != BufferRole::Temporary && role != BufferRole::Constant &&
        (role != BufferRole::Resident || isWritten[k]))
      kept.push_back({k});
  }
  for (BufferId id : written)
    before.emplace_back(dag.buffer(id).sizeBytes);
}

Result<std::unique_ptr<Audit>>
Audit::create(const Dag &dag, const Plan &plan,
              std::span<const std::vector<std::byte>> kernels,
              capture::Runner &runner) {
  std::unique_ptr<Audit> out(new Audit(dag, plan, runner));
  MGPU_TRY(runner.observe(nullptr)); // is it one that can be observed?
  MGPU_TRY_ASSIGN(out->driver, device::createHostDriver(dag.numDevices, 1));
  MGPU_TRY_ASSIGN(out->reference, capture::Replayer::create(
                                      dag, out->spread, kernels, *out->driver));
  MGPU_TRY(out->reference->observe(&out->expected));
  out->reference->findPlaces(dag, out->spread, out->expected.places);
  return out;
}

void Audit::copy(const std::vector<BufferId> &which, bool isBack) {
  for (BufferId id : which) {
    std::byte *ours = found.places[id.value], *its = expected.places[id.value];
    if (ours && its)
      std::memcpy(isBack ? ours : its, isBack ? its : ours,
                  dag.buffer(id).sizeBytes);
  }
}

Result<void> Audit::load() {
  runner.findPlaces(found.places);
  copy(kept, false);
  return reference->load();
}

Result<void> Audit::runReference(std::byte fill) {
  copy(kept, false);
  for (size_t k = 0; k < written.size(); ++k)
    if (std::byte *its = expected.places[written[k].value])
      std::memcpy(its, before[k].data(), before[k].size());
  // Nothing may depend on these bytes: another filling finds what does.
  for (BufferId id : passing)
    if (std::byte *its = expected.places[id.value])
      std::memset(its, int(fill), dag.buffer(id).sizeBytes);
  expected.clear();
  return reference->replay();
}

std::optional<Difference> Audit::difference() const {
  for (NodeId id : order)
    if (isSteady[id.value] &&
        found.hashes[id.value] != expected.hashes[id.value]) {
      const DagNode &node = dag.node(id);
      return Difference{fmt::format(
          "node '{}'{} wrote something else than in the reference", node.name,
          node.location.empty() ? "" : " (" + node.location + ")")};
    }
  for (BufferId id : written)
    if (const std::byte *ours = found.places[id.value];
        ours && std::memcmp(ours, expected.places[id.value],
                            dag.buffer(id).sizeBytes) != 0)
      return Difference{fmt::format(
          "'{}' was changed after all nodes that write it had ended",
          dag.buffer(id).name)};
  return std::nullopt;
}

Result<std::optional<Difference>> Audit::replay(double &us) {
  runner.findPlaces(found.places); // they move with mgt_bind()
  for (size_t k = 0; k < written.size(); ++k)
    if (const std::byte *ours = found.places[written[k].value])
      std::memcpy(before[k].data(), ours, before[k].size());
  found.clear();
  found.round = ++numAudits;
  // A thread of the host may take so long to come.
  found.delayUs = std::clamp(us, 300.0, 2000.0);
  // Values of the replay before would hide that a node came too early.
  const auto fill = std::byte(numAudits);
  for (BufferId id : passing)
    if (std::byte *ours = found.places[id.value])
      std::memset(ours, int(fill), dag.buffer(id).sizeBytes);
  MGPU_TRY(runner.observe(&found));
  const Result<void> replayed = runner.replay({&us, 1});
  MGPU_TRY(runner.observe(nullptr));
  MGPU_TRY(replayed);
  MGPU_TRY(runReference(fill));
  std::optional<Difference> differs = difference();
  if (!differs)
    return differs;
  // A node may declare more than it writes, by its data: where the reference
  // differs from itself in other memory, it is no judge.
  const std::vector<uint64_t> first = expected.hashes;
  std::vector<std::vector<std::byte>> results;
  for (BufferId id : written) {
    const std::byte *its = expected.places[id.value];
    results.emplace_back(its, its + (its ? dag.buffer(id).sizeBytes : 0));
  }
  MGPU_TRY(runReference(~fill));
  bool isReproducible = true;
  for (size_t k = 0; k < written.size(); ++k)
    isReproducible &=
        std::memcmp(results[k].data(), expected.places[written[k].value],
                    results[k].size()) == 0;
  for (NodeId id : order) {
    if (first[id.value] == expected.hashes[id.value])
      continue;
    if (!isReproducible)
      return Difference{
          fmt::format("the reference differs from itself, first in node '{}': "
                      "the results depend on more than the inputs",
                      dag.node(id).name),
          false};
    isSteady[id.value] = false;
  }
  return difference();
}

Result<void> Audit::replayReference(double &us) {
  runner.findPlaces(found.places);
  for (size_t k = 0; k < written.size(); ++k)
    if (const std::byte *ours = found.places[written[k].value])
      std::memcpy(before[k].data(), ours, before[k].size());
  const Clock::time_point start = Clock::now();
  MGPU_TRY(runReference(std::byte{0}));
  copy(written, true);
  us = microsecondsSince(start);
  return {};
}

} // namespace mgpu::pipeline::serve
