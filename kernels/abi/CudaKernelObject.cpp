// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/abi/CudaKernelObject.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>

namespace mgpu::device {

/// The first eight bytes; the last one counts the versions of the form.
static constexpr char magic[9] = "MGPUCUK\5";

/// After the magic: the fixed fields, the tensor maps, the two strings with
/// their lengths before them, and the cubin to the end.
struct Fixed {
  uint32_t sourceBlock[3], block[3], covers[3], clusterX;
  uint32_t takesPart, dynamicSharedBytes;
  uint32_t entryLength, archLength, numMaps, hasProduct, awaits;
};
struct FixedMap {
  uint64_t offsetBytes, sizes[3], strideBytes[2];
  uint32_t box[3], argument, type, unused;
};

/// After the maps, where there is one.
struct FixedProduct {
  uint64_t m, n, k, batch, workspaceBytes, offset[3], rowStride[3],
      batchStride[3];
  uint32_t argument[3], factors, sums, unused;
};

/// So long a name no compiler makes.
static constexpr uint32_t maxName = 4096;
/// So many parameters no kernel has.
static constexpr uint32_t maxMaps = 4096 / tensorMapBytes;

CudaKernelObject::Blocks CudaKernelObject::blocksOf(Dim3 grid) const {
  auto blocks = [](uint64_t grid, uint64_t source, uint64_t covered) {
    return (grid * source + covered - 1) / covered;
  };
  const uint64_t x = blocks(grid.x, sourceBlock.x, covers.x);
  return {(x + clusterX - 1) / clusterX * clusterX,
          blocks(grid.y, sourceBlock.y, covers.y),
          blocks(grid.z, sourceBlock.z, covers.z)};
}

std::vector<std::byte> encodeCudaKernel(const CudaKernelObject &kernel) {
  const Dim3 &source = kernel.sourceBlock, &block = kernel.block,
             &covers = kernel.covers;
  Fixed fixed{{source.x, source.y, source.z},
              {block.x, block.y, block.z},
              {covers.x, covers.y, covers.z},
              kernel.clusterX,
              kernel.takesPart,
              kernel.dynamicSharedBytes,
              uint32_t(kernel.entry.size()),
              uint32_t(kernel.arch.size()),
              uint32_t(kernel.tensorMaps.size()),
              kernel.product.has_value(),
              kernel.awaits};
  std::vector<std::byte> out;
  auto put = [&](const void *data, size_t size) {
    const auto *bytes = static_cast<const std::byte *>(data);
    out.insert(out.end(), bytes, bytes + size);
  };
  put(magic, 8);
  put(&fixed, sizeof fixed);
  for (const TensorMap &map : kernel.tensorMaps) {
    FixedMap each{};
    each.offsetBytes = map.offsetBytes;
    std::copy(map.sizes.begin(), map.sizes.end(), each.sizes);
    std::copy(map.strideBytes.begin(), map.strideBytes.end(), each.strideBytes);
    std::copy(map.box.begin(), map.box.end(), each.box);
    each.argument = map.argument;
    each.type = uint32_t(map.type);
    put(&each, sizeof each);
  }
  if (const auto &product = kernel.product) {
    FixedProduct each{};
    each.m = product->m;
    each.n = product->n;
    each.k = product->k;
    each.batch = product->batch;
    each.workspaceBytes = kernel.workspaceBytes;
    each.factors = uint32_t(product->factors);
    each.sums = uint32_t(product->sums);
    for (size_t k = 0; k < 3; ++k) {
      const MatrixProduct::Matrix &matrix = product->matrices[k];
      each.offset[k] = matrix.offset;
      each.rowStride[k] = matrix.rowStride;
      each.batchStride[k] = matrix.batchStride;
      each.argument[k] = matrix.argument;
    }
    put(&each, sizeof each);
  }
  put(kernel.entry.data(), kernel.entry.size());
  put(kernel.arch.data(), kernel.arch.size());
  put(kernel.cubin.data(), kernel.cubin.size());
  return out;
}

Result<CudaKernelObject> decodeCudaKernel(std::string_view name,
                                          std::span<const std::byte> bytes) {
  auto damaged = [&](const char *how) {
    return fail(ErrorKind::Invalid,
                fmt::format("kernel {}: {}: compile it again", name, how));
  };
  if (bytes.size() < 8 || std::memcmp(bytes.data(), magic, 8) != 0)
    return damaged("what is to be loaded is no CUDA kernel of this version");
  bytes = bytes.subspan(8);
  Fixed fixed;
  if (bytes.size() < sizeof fixed)
    return damaged("its object is cut off");
  std::memcpy(&fixed, bytes.data(), sizeof fixed);
  bytes = bytes.subspan(sizeof fixed);
  if (fixed.numMaps > maxMaps ||
      bytes.size() < fixed.numMaps * sizeof(FixedMap))
    return damaged("its object is cut off");
  CudaKernelObject kernel;
  for (uint32_t k = 0; k < fixed.numMaps; ++k) {
    FixedMap each;
    std::memcpy(&each, bytes.data(), sizeof each);
    bytes = bytes.subspan(sizeof each);
    if (each.type > uint32_t(ElementType::F64))
      return damaged("its object has an array of no type");
    TensorMap map;
    map.argument = each.argument;
    map.offsetBytes = each.offsetBytes;
    map.type = ElementType(each.type);
    std::copy(each.sizes, each.sizes + 3, map.sizes.begin());
    std::copy(each.strideBytes, each.strideBytes + 2, map.strideBytes.begin());
    std::copy(each.box, each.box + 3, map.box.begin());
    kernel.tensorMaps.push_back(map);
  }
  if (fixed.hasProduct) {
    FixedProduct each;
    if (bytes.size() < sizeof each)
      return damaged("its object is cut off");
    std::memcpy(&each, bytes.data(), sizeof each);
    bytes = bytes.subspan(sizeof each);
    if (each.factors > uint32_t(ElementType::F64) ||
        each.sums > uint32_t(ElementType::F64))
      return damaged("its object has an array of no type");
    MatrixProduct &product = kernel.product.emplace();
    product.m = each.m;
    product.n = each.n;
    product.k = each.k;
    product.batch = each.batch;
    kernel.workspaceBytes = each.workspaceBytes;
    product.factors = ElementType(each.factors);
    product.sums = ElementType(each.sums);
    for (size_t k = 0; k < 3; ++k)
      product.matrices[k] = {each.argument[k], each.offset[k],
                             each.rowStride[k], each.batchStride[k]};
  }
  if (fixed.entryLength > maxName || fixed.archLength > maxName ||
      bytes.size() < size_t(fixed.entryLength) + fixed.archLength)
    return damaged("its object is cut off");
  auto dim = [](const uint32_t *d) { return Dim3{d[0], d[1], d[2]}; };
  kernel.sourceBlock = dim(fixed.sourceBlock);
  kernel.block = dim(fixed.block);
  kernel.covers = dim(fixed.covers);
  kernel.clusterX = fixed.clusterX;
  kernel.takesPart = fixed.takesPart != 0;
  kernel.dynamicSharedBytes = fixed.dynamicSharedBytes;
  kernel.awaits = fixed.awaits != 0;
  // 1024 is the most of every compute capability (DeviceProfile.h).
  constexpr uint64_t maxThreads = 1024;
  constexpr uint32_t mostClusterBlocks = 16; // of any card, if asked for
  auto isBlock = [&](Dim3 d) {
    return d.x && d.y && d.z && d.x <= maxThreads && d.y <= maxThreads &&
           d.z <= maxThreads && d.volume() <= maxThreads;
  };
  if (!isBlock(kernel.block) || !isBlock(kernel.sourceBlock) ||
      !kernel.covers.x || !kernel.covers.y || !kernel.covers.z ||
      kernel.clusterX == 0 || kernel.clusterX > mostClusterBlocks)
    return damaged("its object has a block that no card takes");
  const char *text = reinterpret_cast<const char *>(bytes.data());
  kernel.entry.assign(text, fixed.entryLength);
  kernel.arch.assign(text + fixed.entryLength, fixed.archLength);
  bytes = bytes.subspan(size_t(fixed.entryLength) + fixed.archLength);
  if (kernel.entry.empty() || bytes.empty())
    return damaged("its object has no code");
  kernel.cubin.assign(bytes.begin(), bytes.end());
  return kernel;
}

} // namespace mgpu::device
