// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/record/BufferTable.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace mgpu::planner {

BufferId BufferTable::add(Buffer buffer) {
  if (uint32_t &used = names[buffer.name]; used++ > 0) {
    std::string numbered;
    for (; names.count(numbered = buffer.name + "." + std::to_string(used));)
      ++used;
    names[numbered] = 1;
    buffer.name = std::move(numbered);
  }
  // A size past int64_t is as good as any other that no machine has.
  int64_t bytes = sizeBytes(buffer.elementType);
  for (int64_t size : buffer.shape)
    if (__builtin_mul_overflow(bytes, size, &bytes))
      bytes = std::numeric_limits<int64_t>::max();
  if (std::ranges::count(buffer.shape, 0) > 0)
    bytes = 0;
  buffer.sizeBytes = uint64_t(bytes);
  dag.buffers.push_back(std::move(buffer));
  lives.emplace_back();
  return BufferId{uint32_t(dag.buffers.size() - 1)};
}

Result<void> BufferTable::checkLive(BufferId buffer, Place place) const {
  const std::optional<Place> &freedAt = lives[buffer.value].freedAt;
  if (!freedAt)
    return {};
  Finding finding;
  finding.place = place;
  finding.text = fmt::format("uses buffer '{}' after it was freed",
                             dag.buffer(buffer).name);
  finding.isAboutCall = true;
  finding.notes.push_back({"it is freed here", *freedAt});
  return findings.error(std::move(finding));
}

Result<void> BufferTable::free(BufferId id, std::optional<DeviceId> named,
                               Place place) {
  MGPU_TRY(checkLive(id, place));
  const Buffer &buffer = dag.buffer(id);
  auto refuse = [&](const std::string &why) {
    return findings.callError(
        place, fmt::format("frees buffer '{}'{}", buffer.name, why));
  };
  if (named && *named != buffer.device)
    return refuse(fmt::format(" of device {} on device {}", buffer.device.value,
                              named->value));
  if (buffer.role == BufferRole::Argument ||
      buffer.role == BufferRole::Constant)
    return refuse(", which the program did not allocate");
  Life &life = lives[id.value];
  for (uint32_t c = 1; c < order.numChains(); ++c)
    if (life.lastUses[c] > order.hostClock()[c])
      return refuse(" while work on it may still run; sync its stream first");
  life.freedAt = place;
  return {};
}

} // namespace mgpu::planner
