// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_DAG_COLLECTIVEALGORITHM_H
#define MGPU_PLANNER_DAG_COLLECTIVEALGORITHM_H

// How NCCL does a collective: its words for it (NCCL_ALGO, NCCL_PROTO).

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace mgpu::planner {

struct CollectiveAlgorithm {
  enum Shape : uint8_t { Ring, Tree, Nvls };
  enum Protocol : uint8_t { LL, LL128, Simple };
  Shape shape = Ring;
  Protocol protocol = Simple;
  bool operator==(const CollectiveAlgorithm &) const = default;
};

inline constexpr std::array<std::string_view, 3> collectiveShapes = {
    "ring", "tree", "nvls"};
inline constexpr std::array<std::string_view, 3> collectiveProtocols = {
    "LL", "LL128", "Simple"};

constexpr std::string_view toString(CollectiveAlgorithm::Shape shape) {
  return collectiveShapes[shape];
}
constexpr std::string_view toString(CollectiveAlgorithm::Protocol protocol) {
  return collectiveProtocols[protocol];
}
/// Reads the two words; nothing where one is unknown.
constexpr std::optional<CollectiveAlgorithm>
parseCollectiveAlgorithm(std::string_view shape, std::string_view protocol) {
  for (uint8_t s = 0; s < collectiveShapes.size(); ++s)
    for (uint8_t p = 0; p < collectiveProtocols.size(); ++p)
      if (collectiveShapes[s] == shape && collectiveProtocols[p] == protocol)
        return CollectiveAlgorithm{CollectiveAlgorithm::Shape(s),
                                   CollectiveAlgorithm::Protocol(p)};
  return std::nullopt;
}

} // namespace mgpu::planner

#endif // MGPU_PLANNER_DAG_COLLECTIVEALGORITHM_H
