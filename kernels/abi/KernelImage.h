// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_ABI_KERNELIMAGE_H
#define MGPU_KERNELS_ABI_KERNELIMAGE_H

// A kernel for NVIDIA GPUs and how to launch one entry of it: as CUDA C++ when
// an emitter made it, as a cubin when a driver loads it. The emitter, the
// caches, the bundle and the driver hold the same struct.

#include "kernels/abi/MatrixProduct.h"
#include "support/Types.h"

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mgpu {
class JsonFields;
} // namespace mgpu

namespace mgpu::kernels {

// How many blocks a compiled kernel runs for a launch of the source's.

/// Along one axis: `count` blocks of the source have `source` threads each, and
/// one block of the compiled kernel covers `covers` of them.
constexpr uint64_t blocksAlong(uint64_t count, uint64_t source,
                               uint64_t covers) {
  return (count * source + covers - 1) / covers;
}

/// A dimension may exceed what CUDA takes in one launch.
struct LaunchBlocks {
  uint64_t x = 0, y = 0, z = 0;
};

/// The last cluster along each axis is made whole.
constexpr LaunchBlocks launchBlocks(Dim3 grid, Dim3 source, Dim3 covers,
                                    Dim3 cluster) {
  auto whole = [](uint64_t blocks, uint64_t each) {
    return (blocks + each - 1) / each * each;
  };
  return {whole(blocksAlong(grid.x, source.x, covers.x), cluster.x),
          whole(blocksAlong(grid.y, source.y, covers.y), cluster.y),
          whole(blocksAlong(grid.z, source.z, covers.z), cluster.z)};
}

/// An array in a device's memory as a GPU's tensor copies (TMA) see it, and the
/// box that one copy brings to shared memory; what a kernel takes in place of
/// the array's address, or behind all arguments (a CUtensorMap). In the box,
/// each 16 bytes of a row lie where the swizzle of as many bytes puts them
/// (CU_TENSOR_MAP_SWIZZLE_128B). Elements outside of the array are read as 0.
struct TensorMap {
  uint32_t argument = 0;    ///< the launch's argument that is the address
  uint64_t offsetBytes = 0; ///< from there to the array
  ElementType type = ElementType::F16;
  std::array<uint64_t, 5> sizes{};       ///< elements, the fastest first
  std::array<uint64_t, 4> strideBytes{}; ///< strides of sizes[1] and so on
  std::array<uint32_t, 5> box{};         ///< elements
  uint32_t swizzleBytes = 128;           ///< of a row; 0: none
  bool isAdded = false; ///< a parameter behind those for the arguments
  /// At least 3: an array of fewer dimensions has some of size 1.
  uint32_t rank() const { return sizes[3] == 0 ? 3 : sizes[4] == 0 ? 4 : 5; }
  bool operator==(const TensorMap &) const = default;
};

/// The size of a CUtensorMap (cuda.h), a kernel's parameter.
inline constexpr uint32_t tensorMapBytes = 128;

/// The alignment that cuTensorMapEncodeTiled (cuda.h) asks of an address and of
/// strides.
inline constexpr uint32_t tensorMapAlignment = 16;

/// A launch of G blocks of the source's `sourceBlock` threads runs blocksOf(G)
/// blocks of `block` threads. The kernel's parameters are the source's, then,
/// if it takes its part, an MgpuLaunch: G, the first block of this chunk and
/// the part of G that runs (kernels/cuda writes such kernels). One that does
/// not take its part is launched whole.
struct KernelImage {
  std::string entry; ///< the function's name in the blob
  /// The architecture a cubin is compiled for, "sm_90"; the one architecture
  /// whose instructions a text uses, "sm_90a", or empty for a text of any.
  std::string arch;
  Dim3 sourceBlock, block;
  Dim3 covers;  ///< threads of the source that one block computes
  Dim3 cluster; ///< blocks of a cluster
  bool takesPart = true;
  uint32_t dynamicSharedBytes = 0;
  /// A cubin waits for the kernel its launch follows before it does anything
  /// (griddepcontrol.wait): the launch may begin before that has ended. A text
  /// is to be compiled so, where that can be: awaitsOn() of kernels/compile.
  bool awaits = false;
  /// The size of each parameter but the MgpuLaunch. A cubin knows its own.
  std::vector<uint32_t> parameterBytes;
  /// By parameter: the launch's argument is a multiple of it. The code accesses
  /// a buffer in pieces of so many bytes without asking for its address; 1 asks
  /// for nothing, as does a parameter beyond the last of these.
  std::vector<uint32_t> argumentAlignment;
  /// Parameters of tensorMapBytes each: maps of the arrays whose addresses the
  /// launch gives as these arguments. Added parameters are zeros on a GPU
  /// before sm_90, whose code has no use for them.
  std::vector<TensorMap> tensorMaps;
  /// The text has products of warpgroups where it is compiled for sm_90a, as it
  /// is for GPUs of sm_90, and what they mean elsewhere.
  bool hasWarpgroups = false;
  /// The product that a launch computes, where a library may compute it in its
  /// place.
  std::optional<MatrixProduct> product;
  std::optional<SparseProduct> sparse; ///< the same, with a sparse matrix
  /// The device memory the library may use for it: a launch has its address as
  /// one more argument, which the entry does not take. 0: none, and no such
  /// argument.
  uint64_t workspaceBytes = 0;
  std::string blob; ///< CUDA C++ or a cubin; empty where it is kept elsewhere
  bool operator==(const KernelImage &) const = default;

  LaunchBlocks blocksOf(Dim3 grid) const {
    return launchBlocks(grid, sourceBlock, covers, cluster);
  }
  std::span<const std::byte> bytes() const {
    return std::as_bytes(std::span(blob));
  }
  void setBytes(std::span<const std::byte> bytes) {
    blob.assign(reinterpret_cast<const char *>(bytes.data()), bytes.size());
  }
};

/// All but the blob: the JSON header of an encoded image, and part of what a
/// bundle and the cache of texts keep (kernels/compile/CudaText.h). Reading
/// refuses figures that no GPU takes.
void fields(JsonFields &f, KernelImage &image);

/// For a matrix product by cuBLASLt. NVIDIA's cuBLAS guide recommends 32 MiB on
/// Hopper, and less elsewhere ("cublasSetWorkspace").
inline constexpr uint64_t productWorkspaceBytes = uint64_t(32) << 20;

/// JSON and the blob that it describes, as one run of bytes.
std::vector<std::byte> frameBytes(std::string_view header,
                                  std::string_view blob);
/// The header and the blob; Invalid for what frameBytes() did not make.
Result<std::pair<std::string_view, std::string_view>>
unframeBytes(std::span<const std::byte> bytes);

/// Encodes it for Driver::loadKernel of the CUDA target.
std::vector<std::byte> encodeImage(const KernelImage &image);
/// `name` is for errors. Invalid for bytes that encodeImage() did not make.
Result<KernelImage> decodeImage(std::string_view name,
                                std::span<const std::byte> bytes);
/// KernelImage::workspaceBytes of such bytes. 0 for others: the host's.
uint64_t workspaceBytesOf(std::span<const std::byte> object);

} // namespace mgpu::kernels

#endif // MGPU_KERNELS_ABI_KERNELIMAGE_H
