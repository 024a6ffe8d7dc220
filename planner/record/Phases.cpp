// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/record/Phases.h"

#include "planner/dag/IntervalIndex.h"

#include <algorithm>
#include <unordered_map>

namespace mgpu::planner {

/// Whether the copies into a host buffer write all of its bytes. Boxes that
/// meet in part count as no: that is rare, and `both` is then safe.
static bool isWhollyWritten(const Dag &dag, BufferId buffer) {
  std::vector<const Box *> boxes;
  for (const DagNode &node : dag.nodes)
    for (const BufferUse &use : node.uses)
      if (use.writes && use.buffer == buffer &&
          std::none_of(boxes.begin(), boxes.end(),
                       [&](auto *box) { return *box == use.box; })) {
        constexpr size_t mostBoxes = 1024; // pairs are compared below
        if (boxes.size() == mostBoxes)
          return false;
        boxes.push_back(&use.box);
      }
  uint64_t written = 0;
  for (size_t a = 0; a < boxes.size(); ++a) {
    written += uint64_t(boxes[a]->numElements()) * boxes[a]->elementBytes;
    if (written >= dag.buffer(buffer).sizeBytes && a == 0)
      return true;
    for (size_t b = 0; b < a; ++b)
      if (overlap(*boxes[a], *boxes[b]) != Overlap::None)
        return false;
  }
  return written == dag.buffer(buffer).sizeBytes;
}

// Defaults: only read = input, only and wholly written = output, else both:
// what the program does not write must keep the value it came with.
void inferRoles(Program &program, const std::vector<bool> &isGiven) {
  std::vector<uint8_t> access(program.dag.buffers.size(), 0);
  for (const DagNode &node : program.dag.nodes)
    for (const BufferUse &use : node.uses)
      access[use.buffer.value] |= (use.reads ? 1 : 0) | (use.writes ? 2 : 0);
  for (size_t k = 0; k < program.arguments.size(); ++k) {
    ProgramArgument &argument = program.arguments[k];
    if (!argument.buffer || isGiven[k])
      continue;
    uint8_t mask = access[argument.buffer->value];
    argument.role = mask == 3 ? ArgumentRole::InOut
                    : mask == 2
                        ? (isWhollyWritten(program.dag, *argument.buffer)
                               ? ArgumentRole::Output
                               : ArgumentRole::InOut)
                        : ArgumentRole::Input;
  }
}

namespace {
/// The writes to those device buffers that memory of the host is copied to.
class Uploads {
public:
  explicit Uploads(const Dag &dag) : dag(dag) {
    for (uint32_t n = 0; n < dag.nodes.size(); ++n)
      if (const BufferUse *target = targetOf(n))
        writes[target->buffer.value];
    for (uint32_t n = 0; n < dag.nodes.size(); ++n)
      for (const BufferUse &use : dag.nodes[n].uses)
        if (auto of = writes.find(use.buffer.value);
            use.writes && of != writes.end()) {
          auto [begin, end] = use.box.byteRange();
          of->second.insert(begin, end, {n, &use.box});
        }
  }

  /// Whether another node, too, brings bytes from the host to where `n` does.
  bool isContested(uint32_t n) {
    return isMet(n, [&](uint32_t other) { return targetOf(other) != nullptr; });
  }
  /// Whether another node writes to where `n` brings bytes from the host.
  bool isOverwritten(uint32_t n) {
    return isMet(n, [](uint32_t) { return true; });
  }

private:
  struct Write {
    uint32_t node;
    const Box *box;
  };

  template <typename Counts>
  bool isMet(uint32_t n, Counts counts) {
    const BufferUse *target = targetOf(n);
    if (!target)
      return false;
    bool found = false;
    auto [begin, end] = target->box.byteRange();
    writes[target->buffer.value].meet(
        begin, end, [&](int64_t, int64_t, const Write &write) {
          found |= write.node != n && counts(write.node) &&
                   overlap(*write.box, target->box) != Overlap::None;
          return true;
        });
    return found;
  }

  const BufferUse *targetOf(uint32_t n) const {
    auto *copy = std::get_if<CopyCall>(&dag.nodes[n].work);
    if (!copy || !dag.buffer(copy->source).device.isHost() ||
        dag.buffer(copy->destination).device.isHost())
      return nullptr;
    for (const BufferUse &use : dag.nodes[n].uses)
      if (use.writes)
        return &use;
    return nullptr;
  }

  const Dag &dag;
  std::unordered_map<uint32_t, IntervalIndex<Write>> writes;
};
} // namespace

// A copy from a resident argument to a device happens once, at load; a copy
// back to one happens once, after the replays; unless replayed work comes
// before the one or after the other. A device's results may replace the bytes
// of an upload, as the next state; bytes from the host may not: then the place
// on the device is only on the way, and each replay uploads again. A copy of a
// constant happens once, too, where nothing else writes its bytes on the
// device: a constant is the same in each replay, so nothing replaces it.
void assignPhases(Program &program) {
  Dag &dag = program.dag;
  std::vector<Phase> home;
  for (const DagNode &node : dag.nodes)
    home.push_back(node.phase);
  bool isRolled = dag.loop.trips > 1;
  std::vector<bool> resident(dag.buffers.size(), false);
  for (const ProgramArgument &argument : program.arguments)
    if (argument.buffer && argument.role == ArgumentRole::Resident)
      resident[argument.buffer->value] = true;
  Uploads uploads(dag);
  for (uint32_t n = 0; n < dag.nodes.size(); ++n) {
    DagNode &node = dag.nodes[n];
    auto *copy = std::get_if<CopyCall>(&node.work);
    if (!copy || (isRolled && node.phase == Phase::Replay))
      continue;
    // The caller may put other memory in the place of his own on a device.
    bool toDevice = isInArena(dag.buffer(copy->destination));
    if (toDevice &&
        (resident[copy->source.value]
             ? !uploads.isContested(n)
             : dag.buffer(copy->source).role == BufferRole::Constant &&
                   !uploads.isOverwritten(n)))
      node.phase = Phase::Load;
    else if (resident[copy->destination.value])
      node.phase = Phase::Fetch;
  }
  // Edges are sorted by target, so one sweep each way settles both rules.
  for (const DepEdge &edge : dag.edges)
    if (dag.node(edge.from).phase != Phase::Load &&
        dag.node(edge.to).phase == Phase::Load)
      dag.nodes[edge.to.value].phase = home[edge.to.value];
  Successors successors(dag);
  for (uint32_t n = uint32_t(dag.nodes.size()); n-- > 0;)
    if (dag.nodes[n].phase == Phase::Fetch)
      for (NodeId to : successors.of({n}))
        if (dag.node(to).phase != Phase::Fetch)
          dag.nodes[n].phase = home[n];
  // A buffer that crosses phases outlives a replay.
  for (const DagNode &node : dag.nodes)
    if (node.phase != Phase::Replay)
      for (const BufferUse &use : node.uses)
        if (Buffer &buffer = dag.buffers[use.buffer.value];
            buffer.role == BufferRole::Temporary)
          buffer.role = BufferRole::Resident;
}

} // namespace mgpu::planner
