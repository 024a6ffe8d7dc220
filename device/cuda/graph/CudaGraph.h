// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DEVICE_CUDA_GRAPH_CUDAGRAPH_H
#define MGPU_DEVICE_CUDA_GRAPH_CUDAGRAPH_H

#include "device/api/CollectiveSteps.h"
#include "device/cuda/api/DeviceKernels.h"
#include "device/cuda/graph/CudaState.h"
#include "device/cuda/graph/GraphSpec.h"

namespace mgpu::device {

/// Builds one graph of a GPU. A node of the plan is one node of CUDA's, or
/// several that end in one: parts of a launch that is too large for one, the
/// steps of a collective, a copy by way of a staging buffer.
/// A contiguous copy within the GPU is a kernel up to this size: a copy node
/// begins 2 to 4 us after a kernel, and no kernel may begin early behind it.
inline constexpr uint64_t smallCopyBytes = uint64_t(1) << 20;

class CudaGraph final : public GraphDriver {
public:
  explicit CudaGraph(std::shared_ptr<CudaState> state)
      : state(std::move(state)), spec(std::make_shared<GraphSpec>()) {}

  Result<GraphNodeId>
  addKernel(const KernelNodeParams &params,
            std::span<const GraphNodeId> dependencies) override;
  Result<GraphNodeId>
  addCopy(const CopyNodeParams &params,
          std::span<const GraphNodeId> dependencies) override;
  Result<GraphNodeId>
  addCollective(const CollectiveNodeParams &params,
                std::span<const GraphNodeId> dependencies) override;
  /// Once per graph: the executable takes the nodes with it.
  Result<std::unique_ptr<GraphExec>> instantiate() override;
  Result<void> instantiateOver(std::unique_ptr<GraphExec> &exec) override;

private:
  using Specs = std::vector<uint32_t>;

  Result<void> checkNode(std::string_view name, DeviceId device,
                         bool hostAllowed,
                         std::span<const GraphNodeId> dependencies) const;
  Specs endsOf(std::span<const GraphNodeId> dependencies) const;
  uint32_t append(NodeWork work, Specs dependencies);
  /// Lets the move kernels among the specs from `first` on, whose one
  /// dependency is the kernel `after`, begin before that has ended.
  void beginEarly(uint32_t first, const Specs &after);
  /// One spec that comes after all of them: the only one, or a new empty one.
  uint32_t join(Specs specs, const Specs &otherwise);
  /// The last spec ends the node, or `end`.
  GraphNodeId finish(const std::string &name, DeviceId device, uint32_t first,
                     std::optional<uint32_t> end = std::nullopt);
  /// Takes back the specs of a node that cannot be made.
  void rollBack(uint32_t first) { spec->nodes.resize(first); }

  Result<void> checkParameters(const KernelNodeParams &params,
                               const LoadedKernel &kernel) const;
  /// `workspace` is for the library of a product, and is not in `params`.
  Result<GraphNodeId> addLaunch(const KernelNodeParams &params,
                                const LoadedKernel &kernel,
                                std::byte *workspace,
                                std::span<const GraphNodeId> dependencies);
  /// Adds a library's call in the kernel's place, if one computes it.
  Result<std::optional<GraphNodeId>>
  addLibraryCall(const KernelNodeParams &params, const LoadedKernel &kernel,
                 std::byte *workspace, const GridPart &part,
                 std::span<const GraphNodeId> dependencies);
  /// A matrix product by cuBLASLt (ProductNodes.cpp); none where there is no
  /// cuBLASLt, or it has no algorithm, which the user is told: the kernel
  /// itself is launched then.
  Result<std::optional<GraphNodeId>>
  addProduct(const KernelNodeParams &params, const LoadedKernel &kernel,
             std::byte *workspace, const GridPart &part,
             std::span<const GraphNodeId> dependencies);
  /// Adds cuSPARSE's call of a product with a sparse matrix.
  Result<std::optional<GraphNodeId>>
  addSparse(const KernelNodeParams &params, const LoadedKernel &kernel,
            std::span<const GraphNodeId> dependencies);
  Result<uint32_t> addMove(const BoxMove &move, const Specs &after);
  Result<void> addNest(const CopyNest &nest, const Specs &after, Specs &made);
  void addRows(const CopyNest &nest, const Specs &after, Specs &made);
  Result<uint32_t> addMoves(std::span<const BoxMove> moves, const Specs &after);
  Result<uint32_t> addMoveKernel(std::span<const DeviceMove> moves,
                                 const Specs &after);
  Result<uint32_t> addReduction(const CollectiveNodeParams &params,
                                const CollectiveSteps &steps,
                                const Specs &after);
  /// Memory that the graph and its executable keep.
  Result<std::byte *> stage(uint64_t bytes, std::string_view purpose);

  /// A collective among ranks (NcclNodes.cpp).
  struct Planned {
    NcclCall call;
    std::optional<BoxMove> packing, unpacking;
  };
  Result<GraphNodeId> addNccl(const CollectiveNodeParams &params,
                              std::span<const GraphNodeId> dependencies);
  /// How many elements an end has on this GPU, once it is checked.
  Result<int64_t> elementsAt(const std::byte *base, const Box &box,
                             ElementType type) const;
  /// Adds the part of a permute that stays on the rank, after the call: a copy
  /// to itself, or zeros.
  Result<void> keepInside(const CollectiveNodeParams &params, uint32_t rank,
                          Planned &out);
  Result<Planned> planNccl(const CollectiveNodeParams &params, uint32_t rank);
  /// By way of memory in which the box is contiguous.
  Result<void> pack(const std::byte *from, const Box &box, Planned &out);
  Result<void> unpack(std::byte *to, const Box &box, Planned &out);
  Result<uint32_t *> nextMark();
  /// Adds the calls that a call of a group must follow beside those it depends
  /// on.
  void addNcclOrder(size_t group, Specs &after) const;

  std::shared_ptr<CudaState> state;
  std::shared_ptr<GraphSpec> spec;
  bool spent = false;
  std::map<size_t, uint32_t> lastNccl; ///< the last spec of each group
  uint32_t *markWords = nullptr;       ///< not taken yet
  uint32_t markWordsLeft = 0;
};

} // namespace mgpu::device

#endif // MGPU_DEVICE_CUDA_GRAPH_CUDAGRAPH_H
