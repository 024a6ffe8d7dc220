// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/ptx/BulkCopies.h"
#include "kernels/ptx/TensorMap.h"

#include <algorithm>

// Boxes of tensors as tensor maps say them, in tiled mode (ISA 9.0, sections
// 5.5.1 to 5.5.7).

namespace mgpu::kernels::ptx {

namespace {

Scalar typeOf(uint32_t dataType);

bool readMap(Warp &warp, uint32_t lane, const Box &box, TensorMap &map) {
  std::byte *at = nullptr;
  const bool isOther = box.map & windowMask;
  if (box.map % 64 ||
      !(isOther
            ? warp.reachOther(box.map, sizeof map, Touch::Read, lane, &at)
            : warp.reachGlobal(box.map, sizeof map, Touch::Read, lane, &at))) {
    warp.fail("a tensor map is not aligned to 64 bytes", int(lane));
    return false;
  }
  std::memcpy(&map, at, sizeof map);
  if (map.magic != TensorMap::theMagic || map.rank < 1 || map.rank > 5) {
    warp.fail("a copy of a tensor names what is no tensor map", int(lane));
    return false;
  }
  if (map.rank != box.rank) {
    warp.fail(fmt::format("a copy of a tensor of {} dimensions by a tensor map "
                          "of {}",
                          box.rank, map.rank),
              int(lane));
    return false;
  }
  // A kernel may have written the map: nothing of it is believed. The limits
  // are those of cuTensorMapEncodeTiled.
  constexpr uint64_t mostBox = 256, mostBytes = 1 << 20;
  uint64_t bytes = map.elementBytes;
  bool isBox = map.elementBytes == bytesOf(typeOf(map.dataType));
  for (uint32_t d = 0; d < map.rank && isBox; ++d) {
    isBox = map.box[d] >= 1 && map.box[d] <= mostBox && map.sizes[d] >= 1 &&
            map.sizes[d] <= uint64_t(1) << 32;
    bytes *= map.box[d];
    isBox &= bytes <= mostBytes;
  }
  if (!isBox || uint64_t(map.box[0]) * map.elementBytes % 16) {
    warp.fail("a tensor map's box is none", int(lane));
    return false;
  }
  if (map.swizzleBytes && map.box[0] * map.elementBytes != map.swizzleBytes) {
    warp.fail("a box whose rows have other bytes than its swizzle spans",
              int(lane), ErrorKind::Unsupported);
    return false;
  }
  return true;
}

/// The type that a CUtensorMapDataType (cuda.h) stands for.
Scalar typeOf(uint32_t dataType) {
  using S = Scalar;
  constexpr S types[] = {S::U8,  S::U16,  S::U32, S::S32, S::U64,
                         S::S64, S::F16,  S::F32, S::F64, S::BF16,
                         S::F32, S::TF32, S::TF32};
  return dataType < std::size(types) ? types[dataType] : S::B8;
}

/// Bits 4 to 6 of an address are combined with bits 7 to 9, or with fewer of
/// them (section 5.5.6).
uint32_t swizzled(uint32_t address, uint32_t span) {
  return span ? address ^ (address >> 7 & (span / 16 - 1)) << 4 : address;
}

/// Adds bytes that lie apart from the last ones on one side.
void add(std::vector<BulkCopy::Piece> &pieces, BulkCopy::Piece piece) {
  if (!pieces.empty() && piece.bytes) {
    BulkCopy::Piece &last = pieces.back();
    const bool isNext = last.outside && piece.outside
                            ? last.outside + last.bytes == piece.outside
                            : !last.outside && !piece.outside;
    if (isNext && last.offset + last.bytes == piece.offset) {
      last.bytes += piece.bytes;
      return;
    }
  }
  if (piece.bytes)
    pieces.push_back(piece);
}

} // namespace

bool boxPieces(Warp &warp, uint32_t lane, Box &box, uint32_t tile, Touch touch,
               std::vector<BulkCopy::Piece> &pieces) {
  TensorMap map;
  if (!readMap(warp, lane, box, map))
    return false;
  box.type = typeOf(map.dataType);
  const auto each = int64_t(map.elementBytes);
  const int64_t rowBytes = int64_t(map.box[0]) * each;
  // The bytes of a row that are inside of the array.
  const int64_t first =
      std::clamp<int64_t>(-int64_t(box.at[0]) * each, 0, rowBytes);
  const int64_t end = std::clamp<int64_t>(
      (int64_t(map.sizes[0]) - box.at[0]) * each, first, rowBytes);
  uint32_t rows = 1;
  for (uint32_t d = 1; d < map.rank; ++d)
    rows *= map.box[d];
  for (uint32_t row = 0; row < rows; ++row) {
    bool isInside = first < end;
    uint64_t place = map.address + uint64_t(int64_t(box.at[0]) * each);
    for (uint32_t d = 1, rest = row; d < map.rank; rest /= map.box[d++]) {
      const int64_t at = box.at[d] + int64_t(rest % map.box[d]);
      isInside &= at >= 0 && uint64_t(at) < map.sizes[d];
      place += uint64_t(at) * map.strideBytes[d - 1];
    }
    std::byte *outside = nullptr;
    if (isInside &&
        !warp.reachGlobal(place + uint64_t(first), uint32_t(end - first), touch,
                          lane, &outside))
      return false;
    const int64_t last = isInside ? end : 0, begin = isInside ? first : 0;
    for (int64_t part = 0; part < rowBytes; part += 16) {
      const uint32_t to =
          swizzled(tile + uint32_t(row * rowBytes + part), map.swizzleBytes);
      const int64_t from = std::clamp<int64_t>(begin - part, 0, 16);
      const int64_t until = std::clamp<int64_t>(last - part, from, 16);
      add(pieces, {nullptr, to, uint32_t(from)});
      add(pieces, {outside ? outside + (part + from - begin) : nullptr,
                   to + uint32_t(from), uint32_t(until - from)});
      add(pieces, {nullptr, to + uint32_t(until), uint32_t(16 - until)});
    }
  }
  return true;
}

} // namespace mgpu::kernels::ptx
