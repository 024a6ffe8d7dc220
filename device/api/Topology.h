// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DEVICE_API_TOPOLOGY_H
#define MGPU_DEVICE_API_TOPOLOGY_H

// A machine as data: what `--target sim:NAME|FILE` plans for. The text form,
// "mgpu-topology/1" (device/api/topologies/ holds the ones built in):
//   {"format":"mgpu-topology/1","name":S,"devices":N,
//    "device":{"name":S,"memory_bytes":B,"memory_bytes_per_second":R,
//              "sm_count":N,"source":S},
//    "link":{"kind":"nvlink|pcie","bytes_per_second":R,"source":S},
//    "nic":{"count":N,"bytes_per_second":R,"source":S}}
// "nic" may be absent. Rates are per device or NIC and one direction. A source
// says where the figures of its object come from; it must not be empty. GB are
// 10^9 bytes, as on the data sheets. Unknown fields are errors.

#include "support/Result.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mgpu::device {

enum class LinkKind : uint8_t { NvLink, Pcie };

struct Topology {
  struct Device {
    std::string name, source;
    uint64_t memoryBytes = 0;
    double memoryBytesPerSecond = 0;
    uint32_t smCount = 0;
  };
  struct Link {
    LinkKind kind = LinkKind::NvLink;
    double bytesPerSecond = 0;
    std::string source;
  };
  struct Nic {
    uint32_t count = 0;
    double bytesPerSecond = 0;
    std::string source;
  };
  std::string name;
  uint32_t devices = 0;
  Device device;
  Link link;
  std::optional<Nic> nic;
};

/// `source` names the text in errors.
Result<Topology> parseTopology(std::string_view text, std::string_view source);

/// The names built in, sorted.
std::vector<std::string_view> builtinTopologies();

/// The topology of "sim:NAME", built in, or "sim:FILE", which has a '/' or ends
/// in ".json". Usage errors list the names.
Result<Topology> openTopology(std::string_view target);

} // namespace mgpu::device

#endif // MGPU_DEVICE_API_TOPOLOGY_H
