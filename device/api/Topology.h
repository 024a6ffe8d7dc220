// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DEVICE_API_TOPOLOGY_H
#define MGPU_DEVICE_API_TOPOLOGY_H

// A machine as data: what `--target sim:NAME|FILE` plans for. The text form,
// "mgpu-topology/1" (device/api/topologies/ holds the ones built in):
//   {"format":"mgpu-topology/1","name":S,"nodes":N,"devices":N,
//    "device":{"name":S,"architecture":N,"memory_bytes":B,
//              "memory_bytes_per_second":R,"sm_count":N,
//              "flops_per_second":R,"bf16_flops_per_second":R,
//              "tf32_flops_per_second":R,"source":S},
//    "link":{"kind":"nvlink|pcie","bytes_per_second":R,"source":S},
//    "host_link":{"bytes_per_second":R,"source":S},
//    "nic":{"count":N,"bytes_per_second":R,"source":S}}
// "devices" counts those of all nodes, which have equally many; devices are
// numbered node by node. "nodes" is 1 where absent; "nic", of each node, may be
// absent where there is one. "architecture" is 90 for compute capability 9.0.
// Rates of links are per device or NIC and one direction; of arithmetic,
// without sparsity: FP32 outside tensor cores, BF16 and TF32 inside. A source
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
    uint32_t architecture = 0; ///< 90: compute capability 9.0
    uint64_t memoryBytes = 0;
    double memoryBytesPerSecond = 0;
    uint32_t smCount = 0;
    double flopsPerSecond = 0;     ///< FP32, outside tensor cores
    double bf16FlopsPerSecond = 0; ///< tensor cores, dense
    double tf32FlopsPerSecond = 0; ///< tensor cores, dense
  };
  struct Link {
    LinkKind kind = LinkKind::NvLink;
    double bytesPerSecond = 0;
    std::string source;
  };
  struct HostLink {
    double bytesPerSecond = 0;
    std::string source;
  };
  struct Nic {
    uint32_t count = 0;
    double bytesPerSecond = 0;
    std::string source;
  };
  std::string name;
  uint32_t nodes = 1;
  uint32_t devices = 0; ///< of all nodes
  Device device;
  Link link;
  HostLink hostLink;
  std::optional<Nic> nic; ///< of each node

  uint32_t devicesPerNode() const { return devices / nodes; }
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
