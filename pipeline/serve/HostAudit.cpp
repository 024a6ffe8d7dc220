// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline/serve/Audit.h"

#include "device/host/HostDriver.h"
#include "support/Clock.h"
#include "support/Random.h"
#include "tuner/candidate/Guards.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <fmt/format.h>
#include <thread>

namespace mgpu::pipeline::serve {

using namespace planner;
using capture::addBox, capture::isReplayed;

namespace {

/// Hashes what each node writes, and may hold nodes up.
class NodeHashes final : public capture::ReplayObserver {
public:
  explicit NodeHashes(const Dag &dag) : dag(dag), hashes(dag.nodes.size()) {}
  bool begin(NodeId node, uint32_t queue) override;
  void end(NodeId node, uint32_t queue) override;
  void clear() { hashes.assign(hashes.size(), 0); }

  const Dag &dag;
  /// An eighth of the nodes wait before they begin, together so long. In eight
  /// rounds each does, and in the next eight beside others.
  double delayUs = 0; ///< 0: none
  uint64_t round = 0;
  std::atomic<bool> isAlone{true}; ///< one thread runs all, so none is held up
  std::vector<std::byte *> places; ///< by BufferId
  std::vector<uint64_t> hashes;    ///< by NodeId
};

class HostAudit final : public Audit {
public:
  HostAudit(const Dag &dag, const Plan &plan, capture::Runner &runner);
  Result<void> start(std::span<const std::vector<std::byte>> kernels);

  Result<void> load() override;
  Result<std::optional<Difference>> replay(double &us) override;
  Result<void> replayReference(double &us) override;
  Result<void> takeReference() override {
    copy(written, true);
    return {};
  }

private:
  /// Replays the reference from what the runner began with, in memory that is
  /// filled with a byte where nothing lives on.
  Result<void> runReference(std::byte fill);
  /// Copies these buffers from the runner's memory to the reference's, or back.
  void copy(const std::vector<BufferId> &which, bool isBack);
  /// Says what differs, by what nodes wrote; and, where it is memory that no
  /// node writes, that.
  std::optional<Difference> differsBy() const, difference() const;

  const Dag &dag;
  const Plan spread; ///< the plan with a place for each buffer
  capture::Runner &runner;
  std::unique_ptr<device::Driver> driver;
  std::optional<capture::Replayer> reference;
  NodeHashes found, expected;
  /// By NodeId: false where the hash is also of what the node does not write.
  std::vector<bool> isSteady;
  std::vector<NodeId> order; ///< nodes of a replay, as planned
  /// Buffers that live on from replay to replay, of those the ones that
  /// replays write, those that nothing writes once they are loaded, and those
  /// that replays alone use.
  std::vector<BufferId> kept, written, pinned, passing;
  std::vector<std::vector<std::byte>> before; ///< of `written`
  uint64_t numAudits = 0;
};

bool NodeHashes::begin(NodeId node, uint32_t queue) {
  if (queue > 0)
    isAlone.store(false, std::memory_order_relaxed);
  constexpr uint64_t parts = 8;
  const uint64_t seed = uint64_t(node.value) << 32 | round / parts;
  if (delayUs == 0 || isAlone.load(std::memory_order_relaxed) ||
      Random(seed).below(parts) != round % parts)
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

HostAudit::HostAudit(const Dag &dag, const Plan &plan, capture::Runner &runner)
    : dag(dag), spread(tuner::spreadSerially(plan, dag)), runner(runner),
      found(dag), expected(dag), isSteady(dag.nodes.size(), true) {
  const std::vector<bool> isWritten = capture::replayWrites(dag);
  for (const PlanStep &step : plan.steps)
    if (isReplayed(dag.node(step.node)))
      order.push_back(step.node);
  for (uint32_t k = 0; k < dag.buffers.size(); ++k) {
    const BufferRole role = dag.buffers[k].role;
    if (dag.buffers[k].sizeBytes == 0)
      continue;
    if (role == BufferRole::Temporary)
      passing.push_back({k});
    else if (isWritten[k])
      written.push_back({k});
    else if (role == BufferRole::Resident || role == BufferRole::Constant)
      pinned.push_back({k});
    if (role != BufferRole::Temporary && role != BufferRole::Constant &&
        (role != BufferRole::Resident || isWritten[k]))
      kept.push_back({k});
  }
  for (BufferId id : written)
    before.emplace_back(dag.buffer(id).sizeBytes);
}

Result<void> HostAudit::start(std::span<const std::vector<std::byte>> kernels) {
  MGPU_TRY(runner.observe(nullptr)); // is it one that can be observed?
  MGPU_TRY_ASSIGN(driver, device::createHostDriver(dag.numDevices, 1));
  MGPU_TRY_ASSIGN(reference,
                  capture::Replayer::create(dag, spread, kernels, *driver));
  MGPU_TRY(reference->observe(&expected));
  reference->findPlaces(dag, spread, expected.places);
  return {};
}

void HostAudit::copy(const std::vector<BufferId> &which, bool isBack) {
  for (BufferId id : which) {
    std::byte *ours = found.places[id.value], *its = expected.places[id.value];
    if (ours && its)
      std::memcpy(isBack ? ours : its, isBack ? its : ours,
                  dag.buffer(id).sizeBytes);
  }
}

Result<void> HostAudit::load() {
  runner.findPlaces(found.places);
  copy(kept, false);
  return reference->load();
}

Result<void> HostAudit::runReference(std::byte fill) {
  copy(kept, false);
  for (size_t k = 0; k < written.size(); ++k)
    if (std::byte *its = expected.places[written[k].value])
      std::memcpy(its, before[k].data(), before[k].size());
  // Nothing may depend on these bytes: another filling finds what does.
  for (BufferId id : passing)
    if (std::byte *its = expected.places[id.value])
      std::memset(its, int(fill), dag.buffer(id).sizeBytes);
  expected.clear();
  const Clock::time_point start = Clock::now();
  MGPU_TRY(reference->replay());
  totalSerialUs += microsecondsSince(start);
  return {};
}

std::optional<Difference> HostAudit::difference() const {
  const std::optional<Difference> differs = differsBy();
  if (!differs)
    return differs;
  // Others' memory is read where it is: the cause may be outside the program.
  for (BufferId id : pinned)
    if (const std::byte *ours = found.places[id.value],
        *its = expected.places[id.value];
        ours && its && std::memcmp(ours, its, dag.buffer(id).sizeBytes) != 0)
      return Difference{fmt::format(
          "'{}' is not as it was loaded, though no node writes it; {}",
          dag.buffer(id).name, differs->what)};
  return differs;
}

std::optional<Difference> HostAudit::differsBy() const {
  for (NodeId id : order)
    if (isSteady[id.value] &&
        found.hashes[id.value] != expected.hashes[id.value]) {
      const DagNode &node = dag.node(id);
      return Difference{fmt::format(
          "{} wrote something else than in the reference", nameOf(node))};
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

Result<std::optional<Difference>> HostAudit::replay(double &us) {
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
          fmt::format("the reference differs from itself, first in {}: the "
                      "results depend on more than the inputs",
                      nameOf(dag.node(id))),
          false};
    isSteady[id.value] = false;
  }
  return difference();
}

Result<void> HostAudit::replayReference(double &us) {
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

} // namespace

Audit::~Audit() = default;

std::string nameOf(const DagNode &node) {
  return fmt::format("node '{}'{}", node.name,
                     node.location.empty() ? "" : " (" + node.location + ")");
}

Result<std::unique_ptr<Audit>>
Audit::onHost(const Dag &dag, const Plan &plan,
              std::span<const std::vector<std::byte>> kernels,
              capture::Runner &runner) {
  auto out = std::make_unique<HostAudit>(dag, plan, runner);
  MGPU_TRY(out->start(kernels));
  return std::unique_ptr<Audit>(std::move(out));
}

} // namespace mgpu::pipeline::serve
