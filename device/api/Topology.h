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
//    "link":{"kind":"nvlink|pcie|memory","bytes_per_second":R,"source":S},
//    "host_link":{"bytes_per_second":R,"source":S},
//    "nic":{"count":N,"bytes_per_second":R,"source":S},
//    "calibration":{"launch_us":R,"copy_latency_us":R,"source":S,
//      "collectives":[{"op":S,"ranks":N,"bytes":B,"us":R},...],
//      "matmuls":[{"type":"f32|f64|bf16","m":N,"n":N,"k":N,"us":R,
//                  "turned":B},...],
//      "host":[{"counts":{S:R,...},"bytes":R,"us":R},...],
//      "contention":[{"work":W,"beside":W,"factor":R},...],
//      "kernel_beside_kernel":[{"multiprocessors":N,"factor":R},...],
//      "pairs":[{"from":N,"to":N,"start_us":R,"bytes_per_second":R},...]},
//    "rates":[{"name":S,"value":R,"low":R,"high":R,"from":S,"url":S,"quote":S}
//             or {"name":S,"value":R,"low":R,"high":R,"assumed":S},...]}
// "devices" counts those of all nodes, which have equally many; devices are
// numbered node by node. "nodes" is 1 where absent; "nic", each node's, may be
// absent where there is one. "architecture" is 90 for compute capability 9.0.
// Rates of links are per device or NIC and one direction. Rates of arithmetic
// are without sparsity: FP32 outside tensor cores, BF16 and TF32 inside. A
// source says where the figures of its object come from; it must not be empty.
// GB are 10^9 bytes, as on the data sheets. Unknown fields are errors.
//
// "calibration", which `mgpu-tune calibrate` writes, may be absent. With it,
// the rates above are what was reached on the machine, not data sheets', and
// nothing is taken off them. "op" is all_reduce, all_gather, ...; "bytes" the
// larger side of the operation; each W is kernel, copy or collective; a
// "factor" says how many times as long the work takes while the other runs on
// one of its devices, or while a kernel has so many of their multiprocessors.
// "host", of devices that are threads and share one memory, has what kernels
// and copies took there: how often each did what, and the bytes of its buffers.
// It may be absent, and so may "turned", which says that B lies as n x k.
// "pairs" says what a send from one device to another takes, where that was
// measured of each; it may be absent.
//
// "rates" may be absent. A rate is one of rateNames() with the words that hold
// it: "from" is arithmetic on numbers that stand in "quote", which "url" has. A
// rate that nobody states is "assumed", for a reason, and has a range. "low"
// and "high" may be absent in one that is quoted. One named as a field above is
// its source, with its value and no range. Shares are 0.001 to 1.

#include "support/Result.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mgpu::device {

/// Devices that share one Memory are the host's.
enum class LinkKind : uint8_t { NvLink, Pcie, Memory };

/// The origin of a device's rates where nothing was measured. The rates of a
/// text are a data sheet's.
enum class RateSource : uint8_t { DataSheet, Scaled, Assumed };

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
    RateSource rates = RateSource::DataSheet;
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
  struct Calibration {
    double launchUs = 0;      ///< from kernel to kernel in a graph
    double copyLatencyUs = 0; ///< time of the smallest copy
    std::string source;
    struct Collective {
      std::string op; ///< as toString(CollectiveKind)
      uint32_t ranks = 0;
      uint64_t bytes = 0;
      double us = 0;
    };
    struct Matmul {
      std::string type; ///< "f32", "bf16"
      uint32_t m = 0, n = 0, k = 0;
      double us = 0;
      bool isTurned = false; ///< B is n x k
    };
    /// A kernel or copy of the host, by what it does
    /// (planner/cost/HostRates.h).
    struct HostWork {
      std::map<std::string, double> counts;
      double bytes = 0; ///< of its buffers together
      double us = 0;
    };
    struct Beside {
      std::string work, beside; ///< "kernel", "copy", "collective"
      double factor = 1;
    };
    struct BesideKernel {
      uint32_t multiprocessors = 0;
      double factor = 1;
    };
    struct Pair {
      uint32_t from = 0, to = 0; ///< devices
      double startUs = 0, bytesPerSecond = 0;
    };
    std::vector<Pair> pairs; ///< ascending
    std::vector<Collective> collectives;
    std::vector<Matmul> matmuls;
    std::vector<Beside> contention;
    std::vector<BesideKernel> besideKernel;
    std::vector<HostWork> host; ///< of a host's devices, which share its memory
  };
  /// A share that work reaches of a figure above, a time that it takes, or the
  /// source of such a figure.
  struct Rate {
    std::string name;
    double value = 0, low = 0, high = 0;
    std::string from, url, quote; ///< empty where it is assumed
    std::string assumed;          ///< the reason; else empty
    bool isRange() const { return low < high; }
    std::string source() const;
  };
  std::string name;
  uint32_t nodes = 1;
  uint32_t devices = 0; ///< all nodes' together
  Device device;
  Link link;
  HostLink hostLink;
  std::optional<Nic> nic; ///< of each node
  std::optional<Calibration> calibration;
  std::vector<Rate> rates;

  /// Null where the machine does not say it.
  const Rate *rate(std::string_view name) const;
  /// With each rate at the end of its range where work takes longest, or least.
  Topology atEnd(bool slow) const;
  bool hasRanges() const;

  /// The measured sends between two devices; null: none were measured.
  const Calibration::Pair *pair(uint32_t from, uint32_t to) const;
  uint32_t devicesPerNode() const { return devices / nodes; }
};

/// Additions or products of f32 that a multiprocessor of an architecture (90:
/// compute capability 9.0) does in a clock, by NVIDIA's programming guide.
inline double lanesOf(uint32_t architecture) {
  return architecture <= 80 ? 64 : 128;
}

/// The rates that are no field: shares that kernels reach of the memory's rate
/// and of arithmetic, the share of the clock that a power limit leaves, the
/// time from kernel to kernel in a graph, that until a kernel's loads arrive,
/// that of a small all-reduce by one kernel in which each device reads from all
/// others, and that between two replays. Times end in _us.
std::vector<std::string_view> rateNames();

/// `source` names the text in errors.
Result<Topology> parseTopology(std::string_view text, std::string_view source);

/// The text form, which parseTopology() gives the same topology for.
std::string topologyText(const Topology &topology);

/// The names built in, sorted.
std::vector<std::string_view> builtinTopologies();

/// The topology of "sim:NAME", built in, or "sim:FILE", which has a '/' or ends
/// in ".json". Usage errors list the names.
Result<Topology> openTopology(std::string_view target);

} // namespace mgpu::device

#endif // MGPU_DEVICE_API_TOPOLOGY_H
