// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Weights that several programs of a process read lie in one memory.
#include "capture/replay/Replayer.h"

#include <algorithm>
#include <cstring>

namespace mgpu::capture {

using namespace planner;

namespace {

/// Lent memory that is read where it lies begins so: at a cache line, as the
/// weights do that PyTorch saves.
constexpr uintptr_t lentAlignment = 64;

/// Says how the nodes of a program use a buffer.
struct Uses {
  bool any = false, writes = false; ///< in any phase
  bool outsideLoad = false, writesOutsideLoad = false;
  bool updatesInLoad = false; ///< reads and writes, as a sum does
  uint32_t writers = 0;
  const DagNode *writer = nullptr; ///< the last
};

std::vector<Uses> usesOf(const Dag &dag) {
  std::vector<Uses> all(dag.buffers.size());
  for (const DagNode &node : dag.nodes)
    for (const BufferUse &use : node.uses) {
      Uses &of = all[use.buffer.value];
      const bool isLoad = node.phase == Phase::Load;
      of.any = true;
      of.writes |= use.writes;
      of.outsideLoad |= !isLoad;
      of.writesOutsideLoad |= use.writes && !isLoad;
      of.updatesInLoad |= use.reads && use.writes && isLoad;
      if (use.writes)
        ++of.writers, of.writer = &node;
    }
  return all;
}

bool isWhole(const Box &box, uint64_t bytes) {
  const auto [first, last] = box.byteRange();
  return box.isContiguous() && first == 0 && uint64_t(last) == bytes;
}

/// The host buffer that mgt_load() copies whole into a resident one.
const Buffer *originOf(const Dag &dag, const Buffer &resident, const Uses &uses,
                       BufferId &id) {
  const auto *copy =
      uses.writers == 1 ? std::get_if<CopyCall>(&uses.writer->work) : nullptr;
  if (!copy || !isWhole(copy->destinationBox, resident.sizeBytes))
    return nullptr;
  const Buffer &source = dag.buffer(copy->source);
  if (!source.device.isHost() || source.sizeBytes != resident.sizeBytes ||
      !isWhole(copy->sourceBox, source.sizeBytes))
    return nullptr;
  id = copy->source;
  return &source;
}

bool isSharedOnHost(const Buffer &buffer, const Uses &uses) {
  const bool isRead =
      buffer.role == BufferRole::Constant ||
      (buffer.role == BufferRole::Argument && !uses.outsideLoad);
  return isRead && buffer.device.isHost() && uses.any && !uses.writes &&
         buffer.sizeBytes >= SharedBytes::least;
}

bool isSharedOnDevice(const Buffer &buffer, const Uses &uses) {
  return buffer.role == BufferRole::Resident && uses.outsideLoad &&
         !uses.writesOutsideLoad && !uses.updatesInLoad &&
         buffer.sizeBytes >= SharedBytes::least;
}

} // namespace

bool Replayer::mayShare() const {
  return isComplete && !driver->part() && driver->architecture().empty();
}

/// The bytes of a buffer lie there from here on, in every phase but that which
/// loads a device's. Whether that is elsewhere than before.
bool Replayer::moveTo(BufferId id, std::span<const std::byte> memory,
                      std::shared_ptr<const SharedBytes> keeps) {
  auto *data = const_cast<std::byte *>(memory.data()); // which nobody writes
  Borrowed &of = borrowed[id.value];
  of.keeps = std::move(keeps);
  if (addresses.own[id.value] == data)
    return false;
  if (devices[id.value].isHost()) {
    if (of.before.empty())
      of.before = own[id.value];
    own[id.value] = {data, memory.size()};
  }
  addresses.own[id.value] = data;
  return true;
}

Result<void> Replayer::shareReads(const Dag &dag, const Plan &plan) {
  if (!mayShare())
    return {};
  const std::vector<Uses> uses = usesOf(dag);
  std::vector<BufferId> moved;
  for (uint32_t k = 0; k < dag.buffers.size(); ++k) {
    if (!isSharedOnHost(dag.buffers[k], uses[k]) || isExposed[k] ||
        borrowed.contains(k))
      continue;
    const std::span<std::byte> before = own[k];
    if (auto shared = SharedBytes::of(before)) {
      moveTo({k}, shared->bytes(), shared);
      moved.push_back({k});
      releasePages(before);
    }
  }
  std::vector<std::byte *> places; // in the arenas
  findPlaces(dag, plan, places, Phase::Load);
  for (uint32_t k = 0; k < dag.buffers.size(); ++k) {
    const Buffer &buffer = dag.buffers[k];
    if (!isSharedOnDevice(buffer, uses[k]) || !places[k])
      continue;
    const std::span<std::byte> loaded(places[k], size_t(buffer.sizeBytes));
    BufferId from;
    const auto at = originOf(dag, buffer, uses[k], from)
                        ? borrowed.find(from.value)
                        : borrowed.end();
    std::shared_ptr<const SharedBytes> keeps;
    std::span<const std::byte> memory;
    if (at != borrowed.end() &&
        uintptr_t(own[from.value].data()) % lentAlignment == 0) {
      keeps = at->second.keeps;
      memory = own[from.value];
    } else if ((keeps = SharedBytes::of(loaded))) {
      memory = keeps->bytes();
    } // else it stays in, or goes back to, its arena
    if (moveTo({k}, memory, std::move(keeps)))
      moved.push_back({k});
    if (!memory.empty())
      releasePages(loaded);
  }
  return moved.empty() ? Result<void>() : rebuild(dag, plan, moved);
}

Result<void> Replayer::lend(const Dag &dag, const Plan &plan, BufferId id,
                            std::span<const std::byte> memory) {
  const Rebinding lent[] = {
      {id, {const_cast<std::byte *>(memory.data()), memory.size()}}};
  MGPU_TRY(checkRebind(dag, lent));
  const Uses uses = usesOf(dag)[id.value];
  if (!mayShare() || uses.writes || uses.outsideLoad) {
    MGPU_TRY(write(dag, id, memory));
    return {};
  }
  const BufferId moved[] = {id};
  if (moveTo(id, memory, nullptr))
    MGPU_TRY(rebuild(dag, plan, moved));
  releasePages(borrowed[id.value].before); // the program's own, not the last
  return {};
}

Result<void> Replayer::makeOwn(const Dag &dag, const Plan &plan, BufferId id,
                               bool exposes) {
  const auto at = borrowed.find(id.value);
  isExposed[id.value] = isExposed[id.value] || exposes;
  if (at == borrowed.end() || at->second.before.empty())
    return {};
  const std::span<std::byte> memory = at->second.before;
  std::copy_n(own[id.value].begin(), memory.size(), memory.begin());
  own[id.value] = memory;
  addresses.own[id.value] = memory.data();
  const auto keeps = std::move(at->second.keeps); // until no graph has it
  borrowed.erase(at);
  const BufferId moved[] = {id};
  return rebuild(dag, plan, moved);
}

} // namespace mgpu::capture
