// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline/serve/Audit.h"

#include "tuner/candidate/Guards.h"

#include <algorithm>
#include <fmt/format.h>

namespace mgpu::pipeline::serve {

using namespace planner;
using capture::OutputHashes, capture::isReplayed;

namespace {

class GpuAudit final : public Audit {
public:
  GpuAudit(const Dag &dag, const Plan &plan, capture::Runner &runner);
  Result<void> start(const Open &open);

  Result<void> load() override;
  Result<std::optional<Difference>> replay(double &us) override;
  Result<void> replayReference(double &us) override;
  Result<void> takeReference() override { return give(*reference, runner); }

private:
  /// Copies what lives on from one to the other, which then goes on from it.
  Result<void> give(capture::Runner &from, capture::Runner &to) {
    MGPU_TRY(take(from));
    return put(to);
  }
  Result<void> take(capture::Runner &from);
  Result<void> put(capture::Runner &to);
  bool differs(const OutputHashes &one, const OutputHashes &other) const;
  Difference difference(const OutputHashes &found,
                        const OutputHashes &expected) const;
  std::string gone(NodeId from) const;

  const Dag &dag;
  const Plan serial;
  capture::Runner &runner;
  std::unique_ptr<capture::Runner> reference;
  /// By NodeId: the output is there when a replay has ended.
  const std::vector<bool> lasts;
  /// By NodeId: false where the hash is also of what the node does not write.
  std::vector<bool> isSteady;
  std::vector<NodeId> order;       ///< nodes of a replay, as planned
  std::vector<BufferId> residents; ///< that replays write
  /// Buffers that the caller has, and their bytes where a replay began.
  std::vector<BufferId> kept;
  std::vector<std::vector<std::byte>> values;
};

GpuAudit::GpuAudit(const Dag &dag, const Plan &plan, capture::Runner &runner)
    : dag(dag), serial(tuner::spreadSerially(plan, dag)), runner(runner),
      lasts(capture::lastingOutputs(dag, plan)),
      isSteady(dag.nodes.size(), true) {
  const std::vector<bool> isWritten = capture::replayWrites(dag);
  for (const PlanStep &step : plan.steps)
    if (isReplayed(dag.node(step.node)))
      order.push_back(step.node);
  for (uint32_t k = 0; k < dag.buffers.size(); ++k) {
    const Buffer &buffer = dag.buffers[k];
    if (buffer.role == BufferRole::Resident && isWritten[k])
      residents.push_back({k});
    else if (!isInArena(buffer) && buffer.role != BufferRole::Constant &&
             buffer.sizeBytes > 0)
      kept.push_back({k});
  }
  for (BufferId id : kept)
    values.emplace_back(dag.buffer(id).sizeBytes);
}

/// Whether a fetch writes a resident where the load reads it.
bool isFetched(const Dag &dag, BufferId resident) {
  auto others = [&](Phase phase, bool writesIt) {
    std::vector<BufferId> out;
    for (const DagNode &node : dag.nodes)
      if (node.phase == phase &&
          std::ranges::any_of(node.uses, [&](const BufferUse &use) {
            return use.buffer == resident && use.writes == writesIt;
          }))
        for (const BufferUse &use : node.uses)
          if (use.writes != writesIt)
            out.push_back(use.buffer);
    return out;
  };
  const std::vector<BufferId> fetched = others(Phase::Fetch, false);
  return std::ranges::any_of(others(Phase::Load, true), [&](BufferId id) {
    return std::ranges::find(fetched, id) != fetched.end();
  });
}

Result<void> GpuAudit::start(const Open &open) {
  for (BufferId id : residents)
    if (!isFetched(dag, id))
      return fail(ErrorKind::Unsupported,
                  fmt::format("'{}' is state that stays on the GPU, which an "
                              "audit's reference cannot begin with: make it a "
                              "resident argument, or audit the program on the "
                              "host",
                              dag.buffer(id).name));
  MGPU_TRY_ASSIGN(reference, open(serial));
  return {};
}

Result<void> GpuAudit::take(capture::Runner &from) {
  if (!residents.empty())
    MGPU_TRY(from.fetch());
  for (size_t k = 0; k < kept.size(); ++k)
    MGPU_TRY(from.read(kept[k], values[k]));
  return {};
}

Result<void> GpuAudit::put(capture::Runner &to) {
  for (size_t k = 0; k < kept.size(); ++k)
    MGPU_TRY(to.write(kept[k], values[k]));
  return residents.empty() ? Result<void>() : to.load();
}

Result<void> GpuAudit::load() {
  for (size_t k = 0; k < kept.size(); ++k) {
    MGPU_TRY(runner.read(kept[k], values[k]));
    MGPU_TRY(reference->write(kept[k], values[k]));
  }
  return reference->load();
}

bool GpuAudit::differs(const OutputHashes &one,
                       const OutputHashes &other) const {
  return one.buffers != other.buffers;
}

/// ", or an earlier one whose output is gone: 'x', 'y'", of what a node needs.
std::string GpuAudit::gone(NodeId from) const {
  std::vector<bool> isReached(dag.nodes.size());
  isReached[from.value] = true;
  std::string names;
  size_t count = 0;
  for (auto id = order.rbegin(); id != order.rend(); ++id)
    if (isReached[id->value] && (*id == from || !lasts[id->value])) {
      for (const DepEdge &edge : dag.edges)
        if (edge.to == *id)
          isReached[edge.from.value] = true;
      if (*id != from && ++count <= 8)
        names +=
            fmt::format("{}'{}'", count > 1 ? ", " : "", dag.node(*id).name);
    }
  if (count == 0)
    return "";
  return fmt::format(", or one before it whose output is gone: {}{}", names,
                     count > 8 ? fmt::format(" and {} more", count - 8) : "");
}

/// The first node whose output is still there and differs.
Difference GpuAudit::difference(const OutputHashes &found,
                                const OutputHashes &expected) const {
  for (NodeId id : order)
    if (lasts[id.value] && isSteady[id.value] &&
        found.nodes[id.value] != expected.nodes[id.value])
      return {fmt::format("{} wrote something else than in the reference{}",
                          nameOf(dag.node(id)), gone(id))};
  for (NodeId id : order)
    for (const BufferUse &use : dag.node(id).uses)
      if (use.writes &&
          found.buffers[use.buffer.value] != expected.buffers[use.buffer.value])
        return {fmt::format("'{}', which {} writes, is not as in the "
                            "reference{}",
                            dag.buffer(use.buffer).name, nameOf(dag.node(id)),
                            gone(id))};
  return {};
}

Result<std::optional<Difference>> GpuAudit::replay(double &us) {
  MGPU_TRY(give(runner, *reference));
  MGPU_TRY(runner.replay({&us, 1}));
  MGPU_TRY_ASSIGN(const OutputHashes found, runner.hashOutputs());
  double serialUs = 0;
  MGPU_TRY(reference->replay({&serialUs, 1}));
  totalSerialUs += serialUs;
  MGPU_TRY_ASSIGN(const OutputHashes expected, reference->hashOutputs());
  if (!differs(found, expected)) {
    // A node may declare more than it writes, by its data.
    for (NodeId id : order)
      if (lasts[id.value] && found.nodes[id.value] != expected.nodes[id.value])
        isSteady[id.value] = false;
    return std::nullopt;
  }
  MGPU_TRY(put(*reference));
  MGPU_TRY(reference->replay());
  MGPU_TRY_ASSIGN(const OutputHashes again, reference->hashOutputs());
  if (differs(expected, again))
    return Difference{"the reference differs from itself: the results depend "
                      "on more than the inputs",
                      false};
  return difference(found, expected);
}

Result<void> GpuAudit::replayReference(double &us) {
  MGPU_TRY(give(runner, *reference));
  MGPU_TRY(reference->replay({&us, 1}));
  return give(*reference, runner);
}

} // namespace

Result<std::unique_ptr<Audit>> Audit::onGpus(const Dag &dag, const Plan &plan,
                                             capture::Runner &runner,
                                             const Open &open) {
  auto out = std::make_unique<GpuAudit>(dag, plan, runner);
  MGPU_TRY(out->start(open));
  return std::unique_ptr<Audit>(std::move(out));
}

} // namespace mgpu::pipeline::serve
