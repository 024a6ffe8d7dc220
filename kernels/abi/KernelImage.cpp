// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/abi/KernelImage.h"

#include "support/JsonFields.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <fmt/format.h>

namespace mgpu::kernels {

/// The first eight bytes; the last one counts the versions of the form. After
/// it the length of the header as a uint64_t, the header, and the blob to the
/// end.
static constexpr std::string_view magic("MGPUIMG\1", 8);

static constexpr uint64_t maxThreads = 1024;      // of a block, of every GPU
static constexpr uint32_t mostClusterBlocks = 16; // of any GPU, if asked for
static constexpr size_t maxName = 4096;           // no compiler's is so long
static constexpr size_t maxParameterBytes = 4096; // of a kernel
static constexpr uint32_t maxAlignment = 256;     // of a buffer in an arena

/// A list of what three dimensions have, and one of what those behind them
/// have, which older versions did not write.
template <size_t First, typename List>
static void dimensions(JsonFields &f, const char *name, const char *behind,
                       List &all) {
  std::array<typename List::value_type, First> first{};
  std::array<typename List::value_type, 2> others{};
  static_assert(std::tuple_size_v<List> == First + 2);
  std::copy_n(all.begin(), First, first.begin());
  std::copy_n(all.begin() + First, 2, others.begin());
  f(name, first);
  f.added(behind, others);
  std::ranges::copy(others, std::ranges::copy(first, all.begin()).out);
}

void fields(JsonFields &f, TensorMap &map) {
  f("argument", map.argument);
  f("offset_bytes", map.offsetBytes);
  f("type", map.type);
  dimensions<3>(f, "sizes", "outer_sizes", map.sizes);
  dimensions<2>(f, "stride_bytes", "outer_stride_bytes", map.strideBytes);
  dimensions<3>(f, "box", "outer_box", map.box);
  f.added("swizzle_bytes", map.swizzleBytes);
  f.added("added", map.isAdded);
}

void fields(JsonFields &f, MatrixProduct::Matrix &matrix) {
  f("argument", matrix.argument);
  f("offset", matrix.offset);
  f("row_stride", matrix.rowStride);
  f("batch_stride", matrix.batchStride);
}

void fields(JsonFields &f, MatrixProduct &product) {
  f("factors", product.factors);
  f("sums", product.sums);
  for (auto [name, size] : {std::pair("m", &product.m),
                            {"n", &product.n},
                            {"k", &product.k},
                            {"batch", &product.batch}}) {
    f(name, *size);
    f.require(*size > 0, name);
  }
  f("overwrites", product.overwrites);
  f("turned", product.isTurned);
  f("matrices", product.matrices);
  f.added("choice", product.choice);
  f.require(product.choice < mostProductChoices, "choice");
}

void fields(JsonFields &f, SparseProduct::Operand &operand) {
  f("argument", operand.argument);
  f("offset", operand.offset);
}

void fields(JsonFields &f, SparseProduct &product) {
  f("kind", product.kind);
  f.require(product.kind <= SparseProduct::Sampled, "kind");
  f("first_turned", product.isFirstTurned);
  f("second_turned", product.isSecondTurned);
  f("indices", product.indices);
  f("factors", product.factors);
  f("sums", product.sums);
  for (auto [name, size] : {std::pair("rows", &product.rows),
                            {"columns", &product.columns},
                            {"entries", &product.entries},
                            {"breadth", &product.breadth}}) {
    f(name, *size);
    f.require(*size <= uint64_t(INT64_MAX), name);
  }
  for (auto [name, operand] : {std::pair("positions", &product.positions),
                               {"index", &product.index},
                               {"values", &product.values},
                               {"first", &product.first},
                               {"second", &product.second}})
    f(name, *operand);
}

static bool isBlock(Dim3 block) {
  return block.x && block.y && block.z && block.x <= maxThreads &&
         block.y <= maxThreads && block.z <= maxThreads &&
         block.volume() <= maxThreads;
}

static bool isCluster(Dim3 cluster) {
  return cluster.x && cluster.y && cluster.z &&
         cluster.x <= mostClusterBlocks && cluster.y <= mostClusterBlocks &&
         cluster.z <= mostClusterBlocks &&
         cluster.volume() <= mostClusterBlocks;
}

void fields(JsonFields &f, KernelImage &image) {
  f("entry", image.entry);
  f.require(image.entry.size() <= maxName, "entry");
  f("arch", image.arch);
  f.require(image.arch.size() <= maxName, "arch");
  f("source_block", image.sourceBlock);
  f.require(isBlock(image.sourceBlock), "source_block");
  f("block", image.block);
  f.require(isBlock(image.block), "block");
  f("covers", image.covers);
  f.require(image.covers.x && image.covers.y && image.covers.z, "covers");
  f("cluster_x", image.cluster.x);
  f.added("cluster_y", image.cluster.y);
  f.added("cluster_z", image.cluster.z);
  f.require(isCluster(image.cluster), "cluster_x");
  f("takes_part", image.takesPart);
  f("dynamic_shared_bytes", image.dynamicSharedBytes);
  f("awaits", image.awaits);
  f("parameter_bytes", image.parameterBytes);
  f.added("argument_alignment", image.argumentAlignment);
  f.require(std::ranges::all_of(image.argumentAlignment,
                                [](uint32_t each) {
                                  return std::has_single_bit(each) &&
                                         each <= maxAlignment;
                                }),
            "argument_alignment");
  f("tensor_maps", image.tensorMaps);
  f.require(image.tensorMaps.size() <= maxParameterBytes / tensorMapBytes,
            "tensor_maps");
  f.added("has_warpgroups", image.hasWarpgroups);
  f("product", image.product);
  f.added("sparse", image.sparse);
  f("workspace_bytes", image.workspaceBytes);
}

std::vector<std::byte> frameBytes(std::string_view header,
                                  std::string_view blob) {
  const uint64_t length = header.size();
  std::vector<std::byte> out(magic.size() + sizeof length + length +
                             blob.size());
  std::byte *at = out.data();
  auto put = [&](const void *from, size_t size) {
    if (size > 0)
      std::memcpy(at, from, size);
    at += size;
  };
  put(magic.data(), magic.size());
  put(&length, sizeof length);
  put(header.data(), header.size());
  put(blob.data(), blob.size());
  return out;
}

Result<std::pair<std::string_view, std::string_view>>
unframeBytes(std::span<const std::byte> bytes) {
  std::string_view rest(reinterpret_cast<const char *>(bytes.data()),
                        bytes.size());
  if (!rest.starts_with(magic))
    return fail(ErrorKind::Invalid,
                "what is to be loaded is not a CUDA kernel of this version");
  rest.remove_prefix(magic.size());
  uint64_t length = 0;
  if (rest.size() < sizeof length)
    return fail(ErrorKind::Invalid, "its object is cut off");
  std::memcpy(&length, rest.data(), sizeof length);
  rest.remove_prefix(sizeof length);
  if (rest.size() < length)
    return fail(ErrorKind::Invalid, "its object is cut off");
  return std::pair(rest.substr(0, length), rest.substr(length));
}

std::vector<std::byte> encodeImage(const KernelImage &image) {
  return frameBytes(JsonFields::text(image), image.blob);
}

Result<KernelImage> decodeImage(std::string_view name,
                                std::span<const std::byte> bytes) {
  auto damaged = [&](std::string_view how) {
    return fail(ErrorKind::Invalid,
                fmt::format("kernel {}: {}: compile it again", name, how));
  };
  auto parts = unframeBytes(bytes);
  if (!parts)
    return damaged(parts.error().message);
  auto image = JsonFields::read<KernelImage>("its object", parts->first);
  if (!image)
    return damaged(image.error().message);
  if (image->entry.empty() || parts->second.empty())
    return damaged("its object has no code");
  image->blob = parts->second;
  return image;
}

uint64_t workspaceBytesOf(std::span<const std::byte> object) {
  const auto parts = unframeBytes(object);
  if (!parts)
    return 0;
  const auto image = JsonFields::read<KernelImage>("", parts->first);
  return image ? image->workspaceBytes : 0;
}

} // namespace mgpu::kernels
