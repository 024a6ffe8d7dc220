// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernel nodes, and what all kinds share. Copies are in CopyNodes.cpp,
// collectives in NcclNodes.cpp.
#include "device/cuda/graph/CudaGraph.h"

#include "device/cuda/graph/CudaExec.h"

#include <algorithm>
#include <cstddef>
#include <fmt/format.h>

namespace mgpu::device {

/// A kernel gets for one argument of a launch its bits, or the map of the array
/// at the address it is.
using KernelArgument = std::variant<uint64_t, CUtensorMap>;

static_assert(sizeof(CUtensorMap) == kernels::tensorMapBytes);

static Result<CUtensorMapDataType> dataTypeOf(ElementType type) {
  switch (type) {
  case ElementType::F16:
    return CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
  case ElementType::BF16:
    return CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
  case ElementType::F32:
    return CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
  default:
    return fail(
        ErrorKind::Unsupported,
        fmt::format("tensor maps of {} are not supported", toString(type)));
  }
}

static CUtensorMapSwizzle swizzleOf(const kernels::TensorMap &map) {
  switch (map.swizzleBytes) {
  case 0:
    return CU_TENSOR_MAP_SWIZZLE_NONE;
  case 32:
    return CU_TENSOR_MAP_SWIZZLE_32B;
  case 64:
    return CU_TENSOR_MAP_SWIZZLE_64B;
  default:
    return CU_TENSOR_MAP_SWIZZLE_128B;
  }
}

static Result<CUtensorMap> encode(CudaState &state,
                                  const kernels::TensorMap &map,
                                  uint64_t address, std::string_view name) {
  const uint64_t begin = address + map.offsetBytes;
  if (begin % kernels::tensorMapAlignment != 0)
    return fail(ErrorKind::Invalid,
                fmt::format("argument {} begins at {:#x}, no multiple of the "
                            "{} bytes that its kernel's tensor copies take: {}",
                            map.argument, begin, kernels::tensorMapAlignment,
                            map.isAdded ? "give the memory a start that is one"
                                        : "choose another form with "
                                          "--variant mma"));
  MGPU_TRY_ASSIGN(CUtensorMapDataType type, dataTypeOf(map.type));
  const cuuint32_t steps[] = {1, 1, 1, 1, 1};
  CUtensorMap encoded{}; // aligned as CUDA asks
  MGPU_TRY(state.check(state.api->cuTensorMapEncodeTiled(
                           &encoded, type, map.rank(),
                           reinterpret_cast<void *>(uintptr_t(begin)),
                           map.sizes.data(), map.strideBytes.data(),
                           map.box.data(), steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
                           swizzleOf(map), CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
                           CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
                       "cuTensorMapEncodeTiled",
                       fmt::format("for argument {} of '{}' {}", map.argument,
                                   name, state.where())));
  return encoded;
}

/// The arguments of a node, as many as the kernel takes, and behind them the
/// maps that are added. Invalid, with what to do, where an array is not where a
/// map can be made of it.
static Result<std::vector<KernelArgument>>
kernelArguments(CudaState &state, const LoadedKernel &kernel,
                const KernelNodeParams &params) {
  std::vector<KernelArgument> out(params.arguments.begin(),
                                  params.arguments.end());
  if (kernel.launch.tensorMaps.empty())
    return out;
  CudaState::Current current(state);
  MGPU_TRY(current.entered);
  constexpr int firstWithMaps = 9; // of compute capability
  for (const kernels::TensorMap &map : kernel.launch.tensorMaps) {
    if (map.isAdded && state.major < firstWithMaps) {
      out.push_back(CUtensorMap{});
      continue;
    }
    auto made = encode(state, map, params.arguments[map.argument], params.name);
    if (!made)
      return failIn(fmt::format("node '{}': ", params.name), made.error());
    if (map.isAdded)
      out.push_back(*made);
    else
      out[map.argument] = *made;
  }
  return out;
}

/// The largest grid of one launch, on every GPU (CUDA C++ Programming Guide,
/// "Technical Specifications per Compute Capability").
static constexpr uint64_t maxGridX = 2147483647, maxGridYZ = 65535;

/// So many launches that a grid is taken for a mistake.
static constexpr uint64_t maxParts = 4096;

Result<void>
CudaGraph::checkNode(std::string_view name, DeviceId device, bool hostAllowed,
                     std::span<const GraphNodeId> dependencies) const {
  MGPU_TRY(state->checkAlive());
  if (spent)
    return fail(ErrorKind::Usage,
                fmt::format("node '{}' comes after the graph was instantiated: "
                            "start a new graph",
                            name));
  if (device.isHost() ? !hostAllowed : !state->isHere(device))
    return fail(ErrorKind::Invalid,
                fmt::format("node '{}' is on device {}, but the devices are {}",
                            name, device.value, state->devicesText()));
  for (GraphNodeId dependency : dependencies)
    if (dependency.value >= spec->ranges.size())
      return fail(ErrorKind::Invalid,
                  fmt::format("node '{}' depends on node {}, which does not "
                              "exist yet: create it first",
                              name, dependency.value));
  return {};
}

CudaGraph::Specs
CudaGraph::endsOf(std::span<const GraphNodeId> dependencies) const {
  Specs ends;
  for (GraphNodeId dependency : dependencies)
    ends.push_back(spec->ranges[dependency.value].end);
  // CUDA refuses a dependency that is named twice.
  std::sort(ends.begin(), ends.end());
  ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
  return ends;
}

uint32_t CudaGraph::append(NodeWork work, Specs dependencies) {
  spec->nodes.push_back({std::move(work), std::move(dependencies)});
  return uint32_t(spec->nodes.size() - 1);
}

uint32_t CudaGraph::join(Specs specs, const Specs &otherwise) {
  if (specs.size() == 1)
    return specs.front();
  return append(EmptyNode{}, specs.empty() ? otherwise : std::move(specs));
}

GraphNodeId CudaGraph::finish(const std::string &name, DeviceId device,
                              uint32_t first, std::optional<uint32_t> end) {
  auto last = uint32_t(spec->nodes.size());
  spec->ranges.push_back({first, last, end.value_or(last - 1), device, name});
  return {uint32_t(spec->ranges.size() - 1)};
}

namespace {

/// After the arguments: the grid, this launch's first block, and the part of
/// the grid that runs, in blocks of the source. Kernels of older bundles take
/// the first two alone.
struct Launch {
  uint32_t grid[3], first[3], base[3], end[3];
};
constexpr size_t wholeGridsOnly = offsetof(Launch, base);

} // namespace

Result<void> CudaGraph::checkParameters(const KernelNodeParams &params,
                                        const LoadedKernel &kernel) const {
  const std::vector<size_t> &sizes = kernel.parameterSizes;
  const bool takesPart = kernel.launch.takesPart;
  const size_t numAdded = size_t(std::ranges::count_if(
      kernel.launch.tensorMaps, &kernels::TensorMap::isAdded));
  bool fits = sizes.size() == params.arguments.size() + numAdded + takesPart &&
              (!takesPart || sizes.back() == sizeof(Launch) ||
               sizes.back() == wholeGridsOnly);
  std::vector<bool> isMap(params.arguments.size());
  for (const kernels::TensorMap &map : kernel.launch.tensorMaps)
    if (map.argument >= isMap.size())
      fits = false;
    else if (!map.isAdded)
      isMap[map.argument] = true;
  if (kernel.launch.product)
    for (const kernels::MatrixProduct::Matrix &matrix :
         kernel.launch.product->matrices)
      fits &= matrix.argument < isMap.size();
  if (const std::optional<kernels::SparseProduct> &sparse =
          kernel.launch.sparse)
    for (const kernels::SparseProduct::Operand *operand :
         {&sparse->positions, &sparse->index, &sparse->values, &sparse->first,
          &sparse->second})
      fits &= operand->argument < isMap.size();
  for (size_t k = 0; fits && k < isMap.size(); ++k)
    fits = isMap[k] ? sizes[k] == kernels::tensorMapBytes
                    : sizes[k] <= sizeof(uint64_t);
  for (size_t k = 0; fits && k < numAdded; ++k)
    fits = sizes[isMap.size() + k] == kernels::tensorMapBytes;
  if (fits)
    return {};
  return fail(ErrorKind::Invalid,
              fmt::format("node '{}' calls kernel {} with {} arguments{}, "
                          "but it was compiled with {} parameters "
                          "or others: compile it again",
                          params.name, kernel.launch.entry,
                          params.arguments.size(),
                          takesPart ? " and its grid" : "", sizes.size()));
}

Result<GraphNodeId>
CudaGraph::addKernel(const KernelNodeParams &params,
                     std::span<const GraphNodeId> dependencies) {
  MGPU_TRY(checkNode(params.name, params.device, false, dependencies));
  if (params.kernel.value >= state->kernels.size())
    return fail(ErrorKind::Invalid,
                fmt::format("node '{}' calls kernel {}, but {} are loaded",
                            params.name, params.kernel.value,
                            state->kernels.size()));
  const LoadedKernel &kernel = state->kernels[params.kernel.value];
  if (kernel.launch.workspaceBytes == 0 || params.arguments.empty())
    return addLaunch(params, kernel, nullptr, dependencies);
  KernelNodeParams own = params;
  auto *workspace =
      reinterpret_cast<std::byte *>(uintptr_t(own.arguments.back()));
  own.arguments.pop_back();
  return addLaunch(own, kernel, workspace, dependencies);
}

/// Whether the code may access its buffers as it does.
static Result<void> checkAlignment(const KernelNodeParams &params,
                                   const LoadedKernel &kernel) {
  const std::vector<uint32_t> &asked = kernel.launch.argumentAlignment;
  for (size_t k = 0; k < std::min(asked.size(), params.arguments.size()); ++k)
    if (params.arguments[k] % asked[k] != 0)
      return fail(ErrorKind::Invalid,
                  fmt::format("node '{}': argument {} begins at {:#x}, and "
                              "kernel {} reads and writes {} bytes at once: "
                              "give it memory that begins at a multiple of "
                              "{} bytes",
                              params.name, k, params.arguments[k],
                              kernel.launch.entry, asked[k], asked[k]));
  return {};
}

/// Whether so many blocks can be launched, in parts if need be.
static Result<void> checkBlocks(const KernelNodeParams &params,
                                const LoadedKernel &kernel,
                                const kernels::LaunchBlocks &blocks) {
  auto parts = [](uint64_t count, uint64_t most) {
    return (count + most - 1) / most;
  };
  if (parts(blocks.x, maxGridX) > maxParts ||
      parts(blocks.y, maxGridYZ) * parts(blocks.z, maxGridYZ) > maxParts ||
      blocks.x > UINT32_MAX || blocks.y > UINT32_MAX || blocks.z > UINT32_MAX)
    return fail(ErrorKind::Unsupported,
                fmt::format("node '{}' has a grid of {} x {} x {} blocks, more "
                            "than a few thousand launches of a GPU take",
                            params.name, blocks.x, blocks.y, blocks.z));
  if (!kernel.launch.takesPart &&
      (blocks.x > maxGridX || blocks.y > maxGridYZ || blocks.z > maxGridYZ))
    return fail(ErrorKind::Invalid,
                fmt::format("node '{}' has a grid of {} x {} x {} blocks, and "
                            "its kernel {} cannot be launched in parts: CUDA "
                            "takes {} x {} x {}",
                            params.name, blocks.x, blocks.y, blocks.z,
                            kernel.launch.entry, maxGridX, maxGridYZ,
                            maxGridYZ));
  return {};
}

Result<std::optional<GraphNodeId>>
CudaGraph::addLibraryCall(const KernelNodeParams &params,
                          const LoadedKernel &kernel, std::byte *workspace,
                          const GridPart &part,
                          std::span<const GraphNodeId> dependencies) {
  if (kernel.launch.product)
    return addProduct(params, kernel, workspace, part, dependencies);
  if (kernel.launch.sparse && part == GridPart::whole(params.grid))
    return addSparse(params, kernel, dependencies);
  return std::optional<GraphNodeId>();
}

Result<GraphNodeId>
CudaGraph::addLaunch(const KernelNodeParams &params, const LoadedKernel &kernel,
                     std::byte *workspace,
                     std::span<const GraphNodeId> dependencies) {
  MGPU_TRY(checkParameters(params, kernel));
  const std::vector<size_t> &sizes = kernel.parameterSizes;
  const bool takesPart = kernel.launch.takesPart;
  GridPart part = params.part.value_or(GridPart::whole(params.grid));
  bool wholeOnly = !takesPart || sizes.back() == wholeGridsOnly;
  if (!part.fits(params.grid) ||
      (wholeOnly && part != GridPart::whole(params.grid)))
    return fail(ErrorKind::Invalid,
                fmt::format("node '{}' runs blocks outside its grid, or a part "
                            "of it with a kernel that was compiled for whole "
                            "grids: compile it again",
                            params.name));
  MGPU_TRY_ASSIGN(
      auto node, addLibraryCall(params, kernel, workspace, part, dependencies));
  if (node)
    return *node;
  kernels::LaunchBlocks blocks = kernel.launch.blocksOf(part.count);
  MGPU_TRY(checkBlocks(params, kernel, blocks));
  MGPU_TRY(checkAlignment(params, kernel));
  MGPU_TRY_ASSIGN(std::vector<KernelArgument> arguments,
                  kernelArguments(*state, kernel, params));
  Specs after = endsOf(dependencies), made;
  uint32_t first = uint32_t(spec->nodes.size());
  // A step may have become other nodes than a kernel, or several: those are
  // ended first.
  const bool isEarly =
      params.mayBeginEarly && state->awaits(kernel) && after.size() == 1 &&
      std::holds_alternative<KernelLaunch>(spec->nodes[after[0]].work);
  const Dim3 &block = kernel.launch.block;
  const Dim3 &cluster = kernel.launch.cluster; // a chunk has whole ones alone
  const uint64_t mostX = maxGridX / cluster.x * cluster.x,
                 mostY = maxGridYZ / cluster.y * cluster.y,
                 mostZ = maxGridYZ / cluster.z * cluster.z;
  // Where a dimension is 0 there is nothing to launch, and no loop runs.
  for (uint64_t z = 0; z < blocks.z; z += mostZ)
    for (uint64_t y = 0; y < blocks.y; y += mostY)
      for (uint64_t x = 0; x < blocks.x; x += mostX) {
        KernelLaunch launch;
        launch.kernel = kernel.kernel;
        launch.grid = {uint32_t(std::min(blocks.x - x, mostX)),
                       uint32_t(std::min(blocks.y - y, mostY)),
                       uint32_t(std::min(blocks.z - z, mostZ))};
        launch.block = {block.x, block.y, block.z};
        launch.sharedBytes = kernel.launch.dynamicSharedBytes;
        for (const KernelArgument &argument : arguments)
          std::visit(
              [&](const auto &value) {
                launch.addParameter(&value, sizeof value);
              },
              argument);
        Launch chunk{{params.grid.x, params.grid.y, params.grid.z},
                     {uint32_t(x), uint32_t(y), uint32_t(z)},
                     {part.first.x, part.first.y, part.first.z},
                     {part.first.x + part.count.x, part.first.y + part.count.y,
                      part.first.z + part.count.z}};
        if (takesPart)
          launch.addParameter(&chunk, sizes.back());
        made.push_back(append(std::move(launch), after));
        spec->nodes.back().isEarly = isEarly;
      }
  join(std::move(made), after);
  return finish(params.name, params.device, first);
}

Result<std::byte *> CudaGraph::stage(uint64_t bytes, std::string_view purpose) {
  MGPU_TRY_ASSIGN(auto lent,
                  state->borrow(state->firstDevice(), bytes, purpose));
  spec->staging.push_back(std::move(lent));
  return spec->staging.back().get();
}

Result<void> CudaGraph::instantiateOver(std::unique_ptr<GraphExec> &exec) {
  auto *old = dynamic_cast<CudaExec *>(exec.get());
  if (spent || !old || !old->isOf(*state)) {
    MGPU_TRY_ASSIGN(exec, instantiate());
    return {};
  }
  MGPU_TRY(state->checkAlive());
  Result<bool> updated = old->update(spec);
  if (updated && *updated) {
    spent = true;
    return {};
  }
  // Changed in part, it is of no use; and what cannot be changed is made anew.
  if (!updated)
    exec.reset();
  MGPU_TRY(state->checkAlive());
  MGPU_TRY_ASSIGN(exec, instantiate());
  return {};
}

Result<std::unique_ptr<GraphExec>> CudaGraph::instantiate() {
  if (spent)
    return fail(ErrorKind::Usage, "this graph was instantiated already: "
                                  "start a new graph");
  MGPU_TRY(state->checkAlive());
  spent = true;
  return CudaExec::create(state, spec);
}

} // namespace mgpu::device
