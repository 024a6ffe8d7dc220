// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Writes what MGPU_STAGE=1 adds to a kernel's text (StagePlan.h): tiles in
// shared memory, copies to them, and macros by which loads read there.
#include "kernels/cuda/EntryText.h"
#include "kernels/cuda/TextTemplate.h"

#include "llvm/ADT/STLExtras.h"

namespace mgpu::kernels::cuda {

using llvm::StringRef;

std::string stageMacro(StringRef name) { return "MGPU_STAGED_" + name.str(); }

/// No name of the source begins so (Names).
static std::string tileName(StringRef buffer) {
  return "mgpuTile_" + buffer.str();
}

/// Elements of a tile along an axis.
static std::string sizeOfTile(const StageTile &tile, size_t axis) {
  static constexpr const char *sizes[] = {"MGPU_BLOCK_X * MGPU_VECTOR",
                                          "MGPU_BLOCK_Y", "MGPU_BLOCK_Z"};
  return tile.along[axis] ? std::string("(") + sizes[axis] + " + " +
                                std::to_string(tile.halo[axis]) + ")"
                          : "1";
}

/// The step from one row of the tile to the next.
static std::string pitchOfTile(const StageTile &tile) {
  const std::string size = sizeOfTile(tile, tile.order[0]);
  return tile.isTransposed() ? "(" + size + " + 1)" : size;
}

/// The element of a tile that is X, Y and Z from the thread's own.
static std::string placeInTile(const StageTile &tile) {
  static constexpr const char *thread[] = {"threadIdx.x * MGPU_VECTOR + (X)",
                                           "threadIdx.y + (Y)",
                                           "threadIdx.z + (Z)"};
  auto [first, next, last] = tile.order;
  std::string row;
  if (tile.along[last])
    row = std::string("(") + thread[last] + ") * " + sizeOfTile(tile, next);
  if (tile.along[next])
    row += (row.empty() ? "" : " + ") + std::string(thread[next]);
  return row.empty()
             ? thread[first]
             : "(" + row + ") * " + pitchOfTile(tile) + " + " + thread[first];
}

std::string EntryText::stageMacros() const {
  std::string staged, otherwise;
  for (const StageTile &tile : stages->tiles) {
    const std::string &name =
        kernel.parameters[tile.buffer.getArgNumber()].name;
    std::string macro = "#define " + stageMacro(name) + "(";
    for (size_t k = 0; k < 3; ++k)
      if (tile.along[k])
        macro += std::string(1, char('X' + k)) + ", ";
    macro += "otherwise) ";
    staged += macro + "(true ? " + tileName(name) + "[" + placeInTile(tile) +
              "] : otherwise)\n";
    otherwise += macro + "otherwise\n";
  }
  return "#if MGPU_STAGE // how a load reads: from a tile, or as it is written "
         "behind it\n" +
         staged + "#else\n" + otherwise + "#endif\n";
}

std::string EntryText::stageArrays() const {
  std::string text = "#if MGPU_STAGE\n";
  for (const StageTile &tile : stages->tiles) {
    const CudaParameter &buffer = kernel.parameters[tile.buffer.getArgNumber()];
    StringRef type(buffer.type); // "const float *"
    type.consume_front("const ");
    text += "  static __shared__ __align__(16) " + type.drop_back(2).str() +
            " " + tileName(buffer.name) + "[";
    for (size_t k : {tile.order[2], tile.order[1]})
      if (tile.along[k])
        text += sizeOfTile(tile, k) + " * ";
    text += pitchOfTile(tile) + "];\n";
  }
  return text + "#endif\n";
}

std::string EntryText::stageCopy(const StageTile &tile) const {
  const std::string &name = kernel.parameters[tile.buffer.getArgNumber()].name;
  auto type = llvm::cast<mlir::MemRefType>(tile.buffer.getType());
  llvm::SmallVector<int64_t> strides;
  int64_t offset = 0;
  (void)type.getStridesAndOffset(strides, offset);
  // A block's threads, this one's number among them, and the tile's first
  // element in the buffer.
  std::string threads, number, first = std::to_string(tile.first), sizes;
  for (const Axis &axis : axes) {
    const size_t k = size_t(axis.letter - 'x');
    const std::string thread = std::string("threadIdx.") + axis.letter;
    number += number.empty() ? thread : " + " + threads + " * " + thread;
    threads += (threads.empty() ? "MGPU_BLOCK_" : " * MGPU_BLOCK_") +
               std::string(1, axis.upper);
    if (!tile.along[k])
      continue;
    first += std::string(" + (long long)(global") + axis.upper + " - " +
             thread + (k == 0 ? " * MGPU_VECTOR)" : ")") +
             (k == tile.order[0] ? "" : " * " + std::to_string(tile.stride[k]));
  }
  for (size_t k : tile.order)
    sizes += ", " + sizeOfTile(tile, k);
  for (size_t k : {tile.order[1], tile.order[2]})
    sizes += ", " + std::to_string(tile.stride[k]) + "ll";
  return fill(
      R"(    $FUNCTION$<$THREADS$>($TILE$, $BUFFER$, $FIRST$,
              $ELEMENTS$ll$SIZES$, $NUMBER$);
)",
      {{"FUNCTION", tile.isTransposed() ? "stageColumns" : "stageTile"},
       {"THREADS", threads},
       {"TILE", tileName(name)},
       {"BUFFER", name + (offset ? " + " + std::to_string(offset) : "")},
       {"FIRST", first},
       {"ELEMENTS", std::to_string(type.getNumElements())},
       {"SIZES", sizes},
       {"NUMBER", number}});
}

std::string EntryText::stageCopies() const {
  std::string copies;
  for (const StageTile &tile : stages->tiles)
    copies += stageCopy(tile);
  return fill(R"(#if MGPU_STAGE
    if (item > 0)
      __syncthreads(); // the tiles are read no more
$COPIES$    __syncthreads();
#endif
)",
              {{"COPIES", copies}});
}

} // namespace mgpu::kernels::cuda
