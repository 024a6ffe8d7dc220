// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/cuda/EntryText.h"

#include "kernels/cuda/TextTemplate.h"

#include "llvm/ADT/STLExtras.h"

namespace mgpu::kernels::cuda {

using llvm::StringRef;

std::string dims(Dim3 d) {
  return std::to_string(d.x) + " x " + std::to_string(d.y) + " x " +
         std::to_string(d.z);
}

LaunchShape launchShapeOf(mlir::ModuleOp module, Dim3 block) {
  LaunchShape shape = kernels::launchShapeOf(module, block);
  if (shape.cluster && shape.reshapable) {
    shape.reshapable = false;
    shape.reason = "keeps its block: its launch has clusters of blocks";
  }
  return shape;
}

EntryText::EntryText(const CudaKernel &kernel, const CudaEmitOptions &options)
    : kernel(kernel), options(options) {
  auto add = [&](char letter, uint64_t block, uint64_t grid) {
    if (letter == 'x' || block * grid > 1)
      axes.push_back({letter, char(letter - 'a' + 'A'), block, block * grid});
  };
  add('x', options.block.x, options.maxGrid.x);
  add('y', options.block.y, options.maxGrid.y);
  add('z', options.block.z, options.maxGrid.z);
  // With room for a last block of any size and items that is not full.
  count = llvm::all_of(axes, [](const Axis &a) { return a.extent < 1u << 30; })
              ? "unsigned"
              : "unsigned long long";
}

/// What MGPU_VECTOR is, and MGPU_ALIGN where it may be more than 1.
std::string EntryText::vectorComment() const {
  if (!vectorForm)
    return "//   MGPU_VECTOR           1: the kernel " + kernel.vectorReason +
           "\n";
  return "//   MGPU_VECTOR           neighbours along x that one thread is, "
         "computed together\n"
         "//                         and loaded and stored at once where their "
         "place is known\n"
         "//                         to allow it; a divisor of " +
         std::to_string(options.block.x) +
         "\n"
         "//   MGPU_ALIGN            bytes that the addresses of all buffers "
         "are "
         "multiples of: no\n"
         "//                         access is wider\n";
}

/// What the text is, and its macros in words.
std::string EntryText::comment() const {
  std::string text = "// " + kernel.name;
  if (!options.location.empty())
    text += ": the launch at " + options.location;
  text += ".\n// CUDA C++ that includes nothing, for NVRTC; a block of the "
          "source has " +
          dims(options.block) +
          " threads.\n//\n"
          "// Compile with --fmad=false for the results of the source, bit for "
          "bit;\n"
          "// --fmad=true lets a * b + c be one operation. Macros (-D):\n";
  if (kernel.reshapable)
    text += "//   MGPU_BLOCK_X, _Y, _Z  threads of a block; any: the kernel\n"
            "//                         " +
            kernel.reason +
            "\n"
            "//   MGPU_ITEMS            threads of the source, a block apart "
            "along x, that one\n"
            "//                         thread is\n";
  else
    text +=
        std::string("//   MGPU_BLOCK_X, _Y, _Z  threads of a block; ") +
        (vectorForm ? "MGPU_BLOCK_X * MGPU_VECTOR is fixed" : "fixed") +
        ": the kernel\n"
        "//                         " +
        kernel.reason +
        (mayLieBeside ? ".\n"
                        "//                         MGPU_BLOCK_Y blocks of "
                        "the source, along x, lie beside each\n"
                        "//                         other where MGPU_BLOCK_X "
                        "is 32"
                      : "") +
        "\n"
        "//   MGPU_ITEMS            blocks of the source, along x, that "
        "one block is\n";
  text += vectorComment();
  if (kernel.hasUnroll)
    text += "//   MGPU_UNROLL           how often the innermost loops are "
            "unrolled; 0: as the\n"
            "//                         compiler likes\n";
  if (stages)
    text +=
        "//   MGPU_STAGE            1: a block copies what its threads read of "
        "some buffers, and\n"
        "//                         what lies around it, to shared memory "
        "first\n";
  text += "//   MGPU_MIN_BLOCKS       blocks that must fit one multiprocessor "
          "(__launch_bounds__)\n"
          "//   MGPU_CLUSTER_X        blocks of a cluster, along x, of which a "
          "launch has whole\n"
          "//                         ones alone; more than 1 from sm_90 on\n"
          "//   MGPU_FAST_MATH        1: the fast forms of exp, log, sin, "
          "division, ...\n"
          "//   MGPU_PDL              1: may be launched to begin before the "
          "kernel it follows has\n"
          "//                         ended, for which it waits; from sm_90 "
          "on\n"
          "// Launch with the grid, in blocks of the source, in `launch`, and "
          "with\n//   ";
  text += kernel.reshapable
              ? "ceil(gridX * " + std::to_string(options.block.x) +
                    " / (MGPU_BLOCK_X * MGPU_ITEMS * MGPU_VECTOR))"
              : "ceil(gridX / MGPU_ITEMS)";
  text += " blocks along x. A part of the grid is a launch of\n// fewer blocks "
          "from block first on, or of the source's blocks base to end.\n";
  return text;
}

/// Defaults of the macros, and errors for values that they cannot have.
std::string EntryText::macros() const {
  std::string text;
  auto macro = [&](const std::string &name, const std::string &value) {
    text +=
        "#ifndef " + name + "\n#define " + name + " " + value + "\n#endif\n";
  };
  macro("MGPU_BLOCK_X", std::to_string(options.block.x));
  macro("MGPU_BLOCK_Y", std::to_string(options.block.y));
  macro("MGPU_BLOCK_Z", std::to_string(options.block.z));
  macro("MGPU_ITEMS", "1");
  macro("MGPU_VECTOR", "1");
  if (vectorForm)
    macro("MGPU_ALIGN", std::to_string(options.alignment));
  if (kernel.hasUnroll)
    macro("MGPU_UNROLL", "0");
  if (stages)
    macro("MGPU_STAGE", "0");
  macro("MGPU_MIN_BLOCKS", "1");
  macro("MGPU_CLUSTER_X", "1");
  macro("MGPU_FAST_MATH", "0");
  macro("MGPU_PDL", "0");
  if (!kernel.reshapable)
    text += std::string("#if MGPU_BLOCK_X") +
            (vectorForm ? " * MGPU_VECTOR" : "") +
            " != " + std::to_string(options.block.x) +
            (mayLieBeside
                 ? " || (MGPU_BLOCK_X != 32 && MGPU_BLOCK_Y != 1)"
                 : " || MGPU_BLOCK_Y != " + std::to_string(options.block.y)) +
            " || MGPU_BLOCK_Z != " + std::to_string(options.block.z) +
            "\n#error \"" + kernel.name + " " + kernel.reason + "\"\n#endif\n";
  if (vectorForm && !kernel.reshapable)
    text += mayLieBeside
                ? "#if MGPU_BLOCK_Y > 1 // a block of the source is a warp\n"
                  "#define MGPU_MEET() __syncwarp(0xffffffffu)\n"
                  "#else\n"
                  "#define MGPU_MEET() __syncthreads()\n"
                  "#endif\n"
                : "#define MGPU_MEET() __syncthreads()\n";
  if (kernel.cluster)
    text += "#if MGPU_ITEMS != 1 || MGPU_CLUSTER_X != 1\n#error \"" +
            kernel.name + " has clusters of its own\"\n#endif\n";
  if (vectorForm)
    text += "#if MGPU_VECTOR < 1 || " + std::to_string(options.block.x) +
            " % MGPU_VECTOR != 0\n#error \"MGPU_VECTOR must divide " +
            std::to_string(options.block.x) +
            "\"\n#endif\n"
            "#define MGPU_PARTS _Pragma(\"unroll\") for (int part = 0; part < "
            "MGPU_VECTOR; ++part)\n";
  else
    text += "#if MGPU_VECTOR != 1\n#error \"" + kernel.name + " " +
            kernel.vectorReason + "\"\n#endif\n";
  if (kernel.hasUnroll) // a preprocessor may leave macros in pragmas alone
    text += "enum { mgpuUnroll = MGPU_UNROLL };\n";
  if (stages)
    text += stageMacros();
  return text;
}

std::string EntryText::header() const {
  std::string text =
      comment() + macros() +
      "\nstruct MgpuLaunch { // the grid of the source, and where this "
      "launch begins\n"
      "  unsigned gridX, gridY, gridZ, firstX, firstY, firstZ;\n"
      "  unsigned baseX, baseY, baseZ, endX, endY, endZ; // of the part "
      "that runs\n"
      "};\n";
  if (hasThread)
    text += "struct MgpuThread { // ids and sizes as the source sees them\n"
            "  int blockX, blockY, blockZ, threadX, threadY, threadZ, gridX, "
            "gridY, gridZ;\n"
            "};\n";
  return text + "\n";
}

std::string stageMacro(StringRef name) { return "MGPU_STAGED_" + name.str(); }

/// Elements of a tile along an axis.
static std::string sizeOfTile(const StageTile &tile, size_t axis) {
  if (!tile.along[axis])
    return "1";
  std::string size = axis == 0   ? "MGPU_BLOCK_X * MGPU_VECTOR"
                     : axis == 1 ? "MGPU_BLOCK_Y"
                                 : "MGPU_BLOCK_Z";
  return "(" + size + " + " + std::to_string(tile.halo[axis]) + ")";
}

/// The same from one row of the tile to the next.
static std::string pitchOfTile(const StageTile &tile) {
  const std::string size = sizeOfTile(tile, tile.order[0]);
  return tile.isTransposed() ? "(" + size + " + 1)" : size;
}

/// No name of the source begins so (Names).
static std::string tileName(StringRef buffer) {
  return "mgpuTile_" + buffer.str();
}

std::string EntryText::stageMacros() const {
  std::string text = "#if MGPU_STAGE // how a load reads: from a tile, or as "
                     "it is written behind it\n";
  for (bool staged : {true, false}) {
    if (!staged)
      text += "#else\n";
    for (const StageTile &tile : stages->tiles) {
      const std::string &name =
          kernel.parameters[tile.buffer.getArgNumber()].name;
      const std::string thread[] = {"threadIdx.x * MGPU_VECTOR + (X)",
                                    "threadIdx.y + (Y)", "threadIdx.z + (Z)"};
      auto [first, next, last] = tile.order;
      std::string parameters, at = thread[first], row;
      for (size_t k = 0; k < 3; ++k)
        if (tile.along[k])
          parameters += std::string(1, char('X' + k)) + ", ";
      if (tile.along[last])
        row = "(" + thread[last] + ") * " + sizeOfTile(tile, next);
      if (tile.along[next])
        row += (row.empty() ? "" : " + ") + thread[next];
      if (!row.empty())
        at = "(" + row + ") * " + pitchOfTile(tile) + " + " + at;
      text +=
          "#define " + stageMacro(name) + "(" + parameters + "otherwise) " +
          (staged ? "(true ? " + tileName(name) + "[" + at + "] : otherwise)"
                  : "otherwise") +
          "\n";
    }
  }
  return text + "#endif\n";
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

std::pair<std::string, std::string> EntryText::threads() const {
  std::string count, number;
  for (const Axis &axis : axes) {
    std::string u(1, axis.upper), l(1, axis.letter);
    number +=
        number.empty() ? "threadIdx." + l : " + " + count + " * threadIdx." + l;
    count += (count.empty() ? "" : " * ") + ("MGPU_BLOCK_" + u);
  }
  return {count, number};
}

std::string EntryText::stageCopies() const {
  auto [count, number] = threads();
  std::string text = "#if MGPU_STAGE\n"
                     "    if (item > 0)\n"
                     "      __syncthreads(); // the tiles are read no more\n";
  for (const StageTile &tile : stages->tiles) {
    const std::string &name =
        kernel.parameters[tile.buffer.getArgNumber()].name;
    auto type = llvm::cast<mlir::MemRefType>(tile.buffer.getType());
    llvm::SmallVector<int64_t> strides;
    int64_t offset = 0;
    (void)type.getStridesAndOffset(strides, offset);
    std::string first = std::to_string(tile.first), sizes;
    for (const Axis &axis : axes) {
      const size_t k = size_t(axis.letter - 'x');
      if (!tile.along[k])
        continue;
      std::string u(1, axis.upper), l(1, axis.letter);
      std::string begin = "(long long)(global" + u + " - threadIdx." + l +
                          (k == 0 ? " * MGPU_VECTOR)" : ")");
      first +=
          " + " + begin +
          (k == tile.order[0] ? "" : " * " + std::to_string(tile.stride[k]));
    }
    for (size_t k : tile.order)
      sizes += ", " + sizeOfTile(tile, k);
    for (size_t k : {tile.order[1], tile.order[2]})
      sizes += ", " + std::to_string(tile.stride[k]) + "ll";
    text += (tile.isTransposed() ? "    stageColumns<" : "    stageTile<") +
            count + ">(" + tileName(name) + ", " + name +
            (offset ? " + " + std::to_string(offset) : "") + ", " + first +
            ",\n              " + std::to_string(type.getNumElements()) + "ll" +
            sizes + ", " + number + ");\n";
  }
  return text + "    __syncthreads();\n#endif\n";
}

bool handsOnThread(StringRef body) {
  return body.contains("(at,") || body.contains("(at)");
}

/// Those fields of `at` that `body` asks for: either the ones that are the same
/// for all items, or the others.
std::string EntryText::ids(const std::string &indent, const std::string &body,
                           bool inLoop) const {
  bool all = handsOnThread(body);
  std::string text;
  auto set = [&](const std::string &field, const std::string &value) {
    if (all || StringRef(body).contains("at." + field))
      text += indent + "at." + field + " = (int)" + value + ";\n";
  };
  for (char upper : {'X', 'Y', 'Z'}) {
    std::string u(1, upper), l(1, char(upper - 'A' + 'a'));
    bool isX = upper == 'X';
    if (!inLoop)
      set("grid" + u, "launch.grid" + u);
    if (kernel.reshapable) {
      if (inLoop != isX)
        continue;
      const Axis *axis = llvm::find_if(
          axes, [&](const Axis &each) { return each.upper == upper; });
      if (axis == axes.end()) {
        set("block" + u, "0");
        set("thread" + u, "0");
        continue;
      }
      std::string size = std::to_string(axis->block);
      set("block" + u, "(global" + u + " / " + size + ")");
      set("thread" + u, "(global" + u + " % " + size + ")");
    } else if (!inLoop) {
      set("thread" + u, isX && vectorForm ? "threadIdx.x * MGPU_VECTOR"
                        : upper == 'Y' && mayLieBeside ? "0"
                                                       : "threadIdx." + l);
      if (!isX)
        set("block" + u, "(launch.base" + u + " + blockIdx." + l +
                             " + launch.first" + u + ")");
    } else if (isX) {
      set("blockX", "sourceX");
    }
  }
  if (!inLoop && hasThread)
    text = indent + "MgpuThread at;\n" + text;
  return text;
}

/// What is fetched before the wait, or "".
std::string EntryText::fetchCalls() const {
  std::string calls;
  for (size_t k = 0; k < kernel.parameters.size(); ++k)
    if (k < options.steadyBytes.size() && options.steadyBytes[k] > 0 &&
        StringRef(kernel.parameters[k].type).contains('*'))
      calls += "  mgpuFetchAhead(" + kernel.parameters[k].name + ", " +
               std::to_string(options.steadyBytes[k]) + ");\n";
  return calls.empty() ? ""
                       : "#if MGPU_PDL && !defined MGPU_AWAIT_GRIDS\n" + calls +
                             "#endif\n";
}

std::string EntryText::entry(const std::string &body) const {
  std::string parameters;
  for (const CudaParameter &each : kernel.parameters)
    parameters += each.type + (each.isUnwritten ? "__restrict__ " : "") +
                  each.name + ", ";
  const std::string clusters =
      kernel.cluster ? "#if __CUDA_ARCH__ >= 900 // ids do not depend on it\n"
                       "__cluster_dims__(" +
                           std::to_string(kernel.cluster->x) + ", " +
                           std::to_string(kernel.cluster->y) + ", " +
                           std::to_string(kernel.cluster->z) + ")\n"
                     : "#if MGPU_CLUSTER_X > 1\n"
                       "__cluster_dims__(MGPU_CLUSTER_X, 1, 1)\n";
  const std::string ahead = fetchCalls();
  const std::string head =
      std::string(awaitFunction) + (ahead.empty() ? "" : fetchFunction) +
      "extern \"C\" __global__ void\n" + clusters +
      "#endif\n"
      "__launch_bounds__(MGPU_BLOCK_X * MGPU_BLOCK_Y * MGPU_BLOCK_Z, "
      "MGPU_MIN_BLOCKS)\n" +
      kernel.name + "(" + parameters + "const MgpuLaunch launch) {\n" + ahead +
      awaitCall;
  return head + (kernel.reshapable ? anyBlocks(body) : fixedBlocks(body)) +
         "}\n";
}

/// The body for blocks of the source's size, each of which is several.
std::string EntryText::fixedBlocks(const std::string &body) const {
  std::string text =
      ids("  ", body, /*inLoop=*/false) +
      "  for (unsigned item = 0; item < MGPU_ITEMS; ++item) {\n"
      "    const unsigned sourceX = launch.baseX + " +
      (mayLieBeside ? "((blockIdx.x + launch.firstX) * MGPU_ITEMS + item) * "
                      "MGPU_BLOCK_Y + threadIdx.y;\n"
                    : "(blockIdx.x + launch.firstX) * MGPU_ITEMS + item;\n") +
      "    if (sourceX >= launch.endX) // for all threads of it alike\n"
      "      break;\n" +
      ids("    ", body, /*inLoop=*/true);
  if (usesShared)
    text += std::string("    if (item > 0)\n      ") +
            (vectorForm ? "MGPU_MEET" : "__syncthreads") +
            "(); // shared memory is used again\n";
  return text + body + ownLine.str() + "  }\n";
}

/// Threads along an axis that the launch does not have leave.
std::string EntryText::leaveWithoutAxis() const {
  std::string noAxis, blocks;
  for (char upper : {'Y', 'Z'})
    if (llvm::none_of(axes, [&](const Axis &a) { return a.upper == upper; })) {
      std::string u(1, upper), l(1, char(upper - 'A' + 'a'));
      noAxis += (noAxis.empty() ? "" : " || ") + ("threadIdx." + l + " != 0");
      blocks += (blocks.empty() ? "" : " * ") + ("MGPU_BLOCK_" + u);
    }
  if (noAxis.empty())
    return "";
  return "#if " + blocks + " > 1\n  if (" + noAxis + ")\n    return;\n#endif\n";
}

/// Whether a thread is in the launch, where blocks hang over.
std::string EntryText::insideLaunch() const {
  std::string inside;
  for (const Axis &axis : axes) {
    std::string u(1, axis.upper), size = std::to_string(axis.block);
    // A launch has no more clusters than it takes to cover its grid: where they
    // divide a block of the source, none hangs over.
    std::string unit = "MGPU_BLOCK_" + u;
    if (axis.upper == 'X')
      unit = "(" + unit + " * MGPU_ITEMS * MGPU_VECTOR * MGPU_CLUSTER_X)";
    if (!inside.empty())
      inside += " && ";
    inside += "(" + size + " % " + unit + " == 0 || global" + u + " < (" +
              count + ")launch.end" + u + " * " + size + ")";
  }
  return inside;
}

/// The body for blocks of any size, whose threads know their global index.
std::string EntryText::anyBlocks(const std::string &body) const {
  std::string text = (stages ? stageArrays() : "") + leaveWithoutAxis();
  for (const Axis &axis : llvm::drop_begin(axes)) {
    std::string l(1, axis.letter), u(1, axis.upper),
        size = std::to_string(axis.block);
    text += "  const " + count + " global" + u + " = (" + count +
            ")launch.base" + u + " * " + size + " + (" + count + ")(blockIdx." +
            l + " + launch.first" + u + ") * MGPU_BLOCK_" + u +
            " + threadIdx." + l + ";\n";
  }
  text += ids("  ", body, /*inLoop=*/false);
  std::string size = std::to_string(options.block.x);
  text += "#if MGPU_ITEMS == 1\n"
          "  const unsigned item = 0;\n"
          "  {\n"
          "#else\n"
          "  for (unsigned item = 0; item < MGPU_ITEMS; ++item) {\n"
          "#endif\n"
          "    const " +
          count + " globalX = (" + count + ")launch.baseX * " + size +
          (vectorForm ? " + (((" : " + ((") + count +
          ")(blockIdx.x + launch.firstX) * MGPU_ITEMS + item) * MGPU_BLOCK_X + "
          "threadIdx.x" +
          (vectorForm ? ") * MGPU_VECTOR;\n" : ";\n") +
          ids("    ", body, /*inLoop=*/true) + (stages ? stageCopies() : "") +
          "    if (" + insideLaunch() + ") {\n" + body + ownLine.str() +
          "    }\n  }\n";
  return text;
}

std::string withOwnLines(const std::string &text, const std::string &file) {
  std::string out;
  size_t number = 0;
  for (size_t at = 0; at < text.size();) {
    size_t end = text.find('\n', at) + 1;
    StringRef line(text.data() + at, end - at);
    ++number;
    out += line == ownLine
               ? "#line " + std::to_string(number + 1) + " \"" + file + "\"\n"
               : line.str();
    at = end;
  }
  return out;
}

} // namespace mgpu::kernels::cuda
