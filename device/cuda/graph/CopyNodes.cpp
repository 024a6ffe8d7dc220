// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Copies: the copy engine where it can, else a kernel of our own.
#include "device/cuda/graph/CudaGraph.h"

#include <algorithm>
#include <fmt/format.h>

namespace mgpu::device {

namespace {

/// The rows of one copy node. A pitch may be at most CU_DEVICE_ATTRIBUTE_
/// MAX_PITCH, 2^31 - 1 on every GPU, and is never less than the width.
constexpr int64_t maxRowBytes = int64_t(1) << 30;

void setEnds(CUDA_MEMCPY3D &copy, const AddressMap &memory,
             std::byte *destination, const std::byte *source) {
  auto typeOf = [&](const std::byte *address) {
    const DeviceId *owner = memory.ownerOf(address);
    return !owner
               ? CU_MEMORYTYPE_UNIFIED
               : (owner->isHost() ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE);
  };
  copy.srcMemoryType = typeOf(source);
  copy.dstMemoryType = typeOf(destination);
  if (copy.srcMemoryType == CU_MEMORYTYPE_HOST)
    copy.srcHost = source;
  else
    copy.srcDevice = CUdeviceptr(uintptr_t(source));
  if (copy.dstMemoryType == CU_MEMORYTYPE_HOST)
    copy.dstHost = destination;
  else
    copy.dstDevice = CUdeviceptr(uintptr_t(destination));
}

/// Whether a copy node can do the nest: rows at one pitch, planes of rows.
bool isPitched(const CopyNest &nest) {
  size_t rank = nest.dims.size();
  if (rank == 0 || rank > 2 || nest.rowBytes > maxRowBytes)
    return false;
  const CopyNest::Dim &row = nest.dims.back();
  auto isPitch = [&](int64_t stride) {
    return stride >= nest.rowBytes && stride <= INT32_MAX;
  };
  if (!isPitch(row.destinationStride) || !isPitch(row.sourceStride))
    return false;
  if (rank == 1)
    return true;
  const CopyNest::Dim &plane = nest.dims.front();
  auto isPlane = [&](int64_t stride, int64_t pitch) {
    return stride % pitch == 0 && stride / pitch >= row.size;
  };
  return isPlane(plane.destinationStride, row.destinationStride) &&
         isPlane(plane.sourceStride, row.sourceStride);
}

CUDA_MEMCPY3D pitchedCopy(const CopyNest &nest) {
  CUDA_MEMCPY3D copy{};
  const CopyNest::Dim &row = nest.dims.back();
  copy.WidthInBytes = size_t(nest.rowBytes);
  copy.Height = size_t(row.size);
  copy.Depth = 1;
  copy.dstPitch = size_t(row.destinationStride);
  copy.srcPitch = size_t(row.sourceStride);
  copy.dstHeight = copy.srcHeight = copy.Height;
  if (nest.dims.size() == 2) {
    const CopyNest::Dim &plane = nest.dims.front();
    copy.Depth = size_t(plane.size);
    copy.dstHeight = size_t(plane.destinationStride / row.destinationStride);
    copy.srcHeight = size_t(plane.sourceStride / row.sourceStride);
  }
  return copy;
}

/// The nest as the move kernel takes it, or false if it has too many
/// dimensions.
bool toDeviceMove(const CopyNest &nest, DeviceMove &move) {
  move = {};
  move.destination = uint64_t(uintptr_t(nest.destination));
  move.source = uint64_t(uintptr_t(nest.source));
  uint64_t bits = move.destination | move.source | uint64_t(nest.rowBytes);
  for (const CopyNest::Dim &dim : nest.dims)
    bits |= uint64_t(dim.destinationStride) | uint64_t(dim.sourceStride);
  move.unitBytes = uint32_t(std::min<uint64_t>(bits & (0 - bits), 16));
  std::vector<CopyNest::Dim> dims = nest.dims;
  int64_t perRow = nest.rowBytes / move.unitBytes;
  if (perRow > 1)
    dims.push_back({perRow, move.unitBytes, move.unitBytes});
  if (dims.size() > maxMoveRank)
    return false;
  move.units = 1;
  for (const CopyNest::Dim &dim : dims) {
    move.size[move.rank] = dim.size;
    move.destinationStride[move.rank] = dim.destinationStride;
    move.sourceStride[move.rank] = dim.sourceStride;
    move.units *= uint64_t(dim.size);
    ++move.rank;
  }
  return true;
}

Result<DeviceMove> deviceMove(const CopyNest &nest) {
  DeviceMove move;
  if (!toDeviceMove(nest, move))
    return fail(ErrorKind::Unsupported,
                fmt::format("a copy between views of {} dimensions is not "
                            "supported on the CUDA target: make one end "
                            "contiguous",
                            nest.dims.size()));
  return move;
}

} // namespace

Result<uint32_t> CudaGraph::addMoveKernel(std::span<const DeviceMove> moves,
                                          const Specs &after) {
  bool isOne = moves.size() == 1;
  MGPU_TRY_ASSIGN(CUkernel kernel,
                  state->deviceKernel(isOne ? "mgpu_move_1" : "mgpu_move_16",
                                      moveKernelSource()));
  uint64_t most = 0;
  for (const DeviceMove &move : moves)
    most = std::max(most, move.units);
  KernelLaunch launch;
  launch.kernel = kernel;
  launch.isUrgent = true;
  launch.block = {deviceKernelThreads, 1, 1};
  // Enough to fill the GPU; each thread then strides over the rest.
  uint64_t blocks = (most + deviceKernelThreads - 1) / deviceKernelThreads;
  launch.grid = {
      uint32_t(std::clamp<uint64_t>(blocks, 1, 8u * state->multiprocessors)),
      uint32_t(moves.size()), 1};
  if (isOne) {
    launch.addParameter(&moves[0], sizeof(DeviceMove));
  } else {
    DeviceMove padded[maxMovesPerKernel] = {};
    std::copy(moves.begin(), moves.end(), padded);
    launch.addParameter(padded, sizeof padded);
  }
  return append(std::move(launch), after);
}

void CudaGraph::addRows(const CopyNest &nest, const Specs &after, Specs &made) {
  // One row of many bytes: rows of 2^30 without gaps, and what is left.
  auto add = [&](int64_t first, int64_t width, int64_t rows) {
    if (rows == 0)
      return;
    CopyLaunch launch;
    setEnds(launch.copy, state->memory, nest.destination + first,
            nest.source + first);
    launch.copy.WidthInBytes = launch.copy.dstPitch = launch.copy.srcPitch =
        size_t(width);
    launch.copy.Height = launch.copy.dstHeight = launch.copy.srcHeight =
        size_t(rows);
    launch.copy.Depth = 1;
    made.push_back(append(launch, after));
  };
  int64_t whole = nest.rowBytes / maxRowBytes * maxRowBytes;
  add(0, maxRowBytes, whole / maxRowBytes);
  add(whole, nest.rowBytes - whole, nest.rowBytes > whole);
}

Result<void> CudaGraph::addNest(const CopyNest &nest, const Specs &after,
                                Specs &made) {
  if (nest.rowBytes == 0)
    return {};
  // Memory of the caller's is the host's.
  auto isHost = [&](const std::byte *address) {
    const DeviceId *owner = state->memory.ownerOf(address);
    return !owner || owner->isHost();
  };
  const bool crossesBus = isHost(nest.destination) || isHost(nest.source);
  if (nest.dims.empty() &&
      (crossesBus || uint64_t(nest.rowBytes) > smallCopyBytes)) {
    addRows(nest, after, made);
    return {};
  }
  // Inside the GPU a kernel is faster than the copy engine at short rows;
  // across the bus the engine is, and leaves the multiprocessors alone.
  if (crossesBus && isPitched(nest)) {
    CopyLaunch launch{pitchedCopy(nest)};
    setEnds(launch.copy, state->memory, nest.destination, nest.source);
    made.push_back(append(launch, after));
    return {};
  }
  // The kernel would fault on memory that is not pinned.
  for (const std::byte *address :
       {static_cast<const std::byte *>(nest.destination), nest.source})
    if (!state->memory.ownerOf(address))
      return fail(ErrorKind::Unsupported,
                  "its memory is the caller's, and no copy of planes of rows: "
                  "copy into the memory that the target has for it");
  MGPU_TRY_ASSIGN(DeviceMove move, deviceMove(nest));
  MGPU_TRY_ASSIGN(uint32_t kernel, addMoveKernel({&move, 1}, after));
  made.push_back(kernel);
  return {};
}

Result<uint32_t> CudaGraph::addMove(const BoxMove &move, const Specs &after) {
  MGPU_TRY(checkCopy(move.destination, move.destinationBox, move.source,
                     move.sourceBox));
  Specs made;
  if (move.sourceBox.numElements() == 0)
    return join({}, after);
  if (!overlaps(move.destination, move.destinationBox, move.source,
                move.sourceBox))
    if (auto nest = makeNest(move.destination, move.destinationBox, move.source,
                             move.sourceBox)) {
      MGPU_TRY(addNest(*nest, after, made));
      return join(std::move(made), after);
    }
  // By way of a packed buffer, which has a common refinement with any box.
  Box middle = packedBox(move.sourceBox);
  MGPU_TRY_ASSIGN(std::byte * held,
                  stage(uint64_t(middle.sizes[0]) * middle.elementBytes,
                        "a copy's staging buffer"));
  MGPU_TRY(addNest(*makeNest(held, middle, move.source, move.sourceBox), after,
                   made));
  Specs staged{join(std::move(made), after)};
  made.clear();
  MGPU_TRY(
      addNest(*makeNest(move.destination, move.destinationBox, held, middle),
              staged, made));
  return join(std::move(made), staged);
}

Result<uint32_t> CudaGraph::addMoves(std::span<const BoxMove> moves,
                                     const Specs &after) {
  Specs made;
  if (moves.size() == 1)
    return addMove(moves[0], after);
  std::vector<DeviceMove> batch;
  auto flush = [&]() -> Result<void> {
    if (batch.empty())
      return {};
    MGPU_TRY_ASSIGN(uint32_t kernel, addMoveKernel(batch, after));
    made.push_back(kernel);
    batch.clear();
    return {};
  };
  for (const BoxMove &move : moves) {
    MGPU_TRY(checkCopy(move.destination, move.destinationBox, move.source,
                       move.sourceBox));
    if (move.sourceBox.numElements() == 0)
      continue;
    std::optional<CopyNest> nest;
    if (!overlaps(move.destination, move.destinationBox, move.source,
                  move.sourceBox))
      nest = makeNest(move.destination, move.destinationBox, move.source,
                      move.sourceBox);
    DeviceMove device;
    if (!nest || !toDeviceMove(*nest, device)) {
      MGPU_TRY_ASSIGN(uint32_t alone, addMove(move, after));
      made.push_back(alone);
      continue;
    }
    batch.push_back(device);
    if (batch.size() == maxMovesPerKernel)
      MGPU_TRY(flush());
  }
  MGPU_TRY(flush());
  return join(std::move(made), after);
}

void CudaGraph::beginEarly(uint32_t first, const Specs &after) {
  if (after.size() != 1 ||
      !std::holds_alternative<KernelLaunch>(spec->nodes[after[0]].work))
    return;
  for (uint32_t k = first; k < spec->nodes.size(); ++k)
    spec->nodes[k].isEarly =
        std::holds_alternative<KernelLaunch>(spec->nodes[k].work) &&
        spec->nodes[k].dependencies == after;
}

Result<GraphNodeId>
CudaGraph::addCopy(const CopyNodeParams &params,
                   std::span<const GraphNodeId> dependencies) {
  MGPU_TRY(checkNode(params.name, params.device, true, dependencies));
  BoxMove move{params.destination, params.destinationBox, params.source,
               params.sourceBox};
  uint32_t first = uint32_t(spec->nodes.size());
  auto add = [&]() -> Result<void> {
    MGPU_TRY(checkBox(move.destinationBox));
    MGPU_TRY(checkBox(move.sourceBox));
    MGPU_TRY(state->memory.check(move.destination, move.destinationBox));
    MGPU_TRY(state->memory.check(move.source, move.sourceBox));
    const Specs after = endsOf(dependencies);
    MGPU_TRY(addMove(move, after));
    if (params.mayBeginEarly && state->hasEarlyLaunches())
      beginEarly(first, after);
    return {};
  };
  if (Result<void> ok = add(); !ok) {
    rollBack(first);
    return failIn(fmt::format("node '{}': ", params.name), ok.error());
  }
  return finish(params.name, params.device, first);
}

} // namespace mgpu::device
