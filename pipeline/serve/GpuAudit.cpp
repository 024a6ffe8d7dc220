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

/// Ranges of bytes of one buffer.
class FetchedBytes {
public:
  /// A box is added whole or, where it has very many runs, not at all.
  void add(const Box &box) {
    if (isDense(box))
      runs.push_back(box.byteRange());
    else if (box.numElements() <= mostElements)
      capture::visitRuns(box, [&](int64_t first, int64_t last) {
        runs.emplace_back(first, last);
      });
  }
  /// Joins what was added. Before has().
  void join() {
    std::ranges::sort(runs);
    std::vector<std::pair<int64_t, int64_t>> joined;
    for (const auto &[first, last] : runs)
      if (joined.empty() || joined.back().second < first)
        joined.emplace_back(first, last);
      else
        joined.back().second = std::max(joined.back().second, last);
    runs = std::move(joined);
  }
  bool has(const Box &box) const {
    if (box.numElements() == 0)
      return true;
    if (isDense(box) || box.numElements() > mostElements) {
      const auto [first, last] = box.byteRange();
      return has(first, last);
    }
    bool out = true;
    capture::visitRuns(box, [&](int64_t first, int64_t last) {
      out = out && has(first, last);
    });
    return out;
  }

private:
  static constexpr int64_t mostElements = 1 << 22;
  /// Whether a box has all bytes of its range, in whatever order.
  static bool isDense(const Box &box) {
    std::vector<std::pair<int64_t, int64_t>> axes; // stride, size
    for (size_t k = 0; k < box.sizes.size(); ++k)
      if (box.sizes[k] != 1)
        axes.emplace_back(box.strides[k], box.sizes[k]);
    std::ranges::sort(axes);
    int64_t expected = box.elementBytes;
    for (const auto &[stride, size] : axes) {
      if (stride != expected)
        return false;
      expected *= size;
    }
    return true;
  }
  bool has(int64_t first, int64_t last) const {
    auto after = std::ranges::upper_bound(runs, first, {},
                                          &std::pair<int64_t, int64_t>::first);
    return after != runs.begin() && std::prev(after)->second >= last;
  }
  std::vector<std::pair<int64_t, int64_t>> runs;
};

/// Whether `load` puts back all that `fetch` takes, and where it was.
bool restores(const CopyCall &load, const CopyCall &fetch) {
  if (load.source != fetch.destination || load.destination != fetch.source)
    return false;
  const Box &host = fetch.destinationBox, &device = fetch.sourceBox;
  if (load.sourceBox == host && load.destinationBox == device)
    return true;
  // The load moves a range by a distance, and the fetch each byte of a part of
  // it by the same distance.
  const bool isMoved =
      (host.sizes == device.sizes && host.strides == device.strides &&
       host.elementBytes == device.elementBytes) ||
      (host.isContiguous() && device.isContiguous());
  const auto [first, last] = host.byteRange();
  const auto [loadFirst, loadLast] = load.sourceBox.byteRange();
  return isMoved && load.sourceBox.isContiguous() &&
         load.destinationBox.isContiguous() && loadFirst <= first &&
         last <= loadLast &&
         device.byteRange().first - first ==
             load.destinationBox.byteRange().first - loadFirst;
}

/// Whether a fetch writes all that replays write of a resident, and where the
/// load reads it.
bool isFetched(const Dag &dag, BufferId resident) {
  auto copies = [&](Phase phase) {
    std::vector<const CopyCall *> out;
    for (const DagNode &node : dag.nodes)
      if (const auto *copy = std::get_if<CopyCall>(&node.work);
          copy && node.phase == phase)
        out.push_back(copy);
    return out;
  };
  const std::vector<const CopyCall *> loads = copies(Phase::Load);
  FetchedBytes fetched;
  for (const CopyCall *fetch : copies(Phase::Fetch))
    if (fetch->source == resident &&
        std::ranges::any_of(loads, [&](const CopyCall *load) {
          return restores(*load, *fetch);
        }))
      fetched.add(fetch->sourceBox);
  fetched.join();
  return std::ranges::all_of(dag.nodes, [&](const DagNode &node) {
    return !isReplayed(node) ||
           std::ranges::all_of(node.uses, [&](const BufferUse &use) {
             return use.buffer != resident || !use.writes ||
                    fetched.has(use.box);
           });
  });
}

Result<void> GpuAudit::start(const Open &open) {
  for (BufferId id : residents)
    if (!isFetched(dag, id))
      return fail(ErrorKind::Unsupported,
                  fmt::format("'{}' is state that stays on the GPU, all or a "
                              "part of it, which an audit's reference cannot "
                              "begin with: make it a resident argument that is "
                              "fetched whole, or audit the program on the host",
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
