// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/emit/cuda/Matmul.h"

#include "kernels/emit/cuda/CudaText.h"
#include "kernels/emit/cuda/CudaTypes.h"
#include "kernels/emit/cuda/MatmulShape.h"

#include "llvm/Support/MathExtras.h"

#include <optional>

using namespace mlir;

namespace mgpu::kernels {

using P = planner::KernelParameter;

namespace {

/// The product, if it is of a type that the text is for.
std::optional<cuda::MatmulShape> productOf(ModuleOp kernel) {
  auto product = cuda::matmulShapeOf(kernel);
  if (!product)
    return std::nullopt;
  Type element = product->c.element;
  if ((!element.isF32() && !element.isF64()) || product->a.element != element ||
      product->b.element != element)
    return std::nullopt;
  return product;
}

/// Elements of a thread along an axis, where a block has 16 threads along it.
uint32_t tileOf(int64_t extent) {
  constexpr int64_t threads = 16, most = 4;
  return uint32_t(std::clamp<int64_t>(
      int64_t(llvm::PowerOf2Ceil(llvm::divideCeil(extent, threads))), 1, most));
}

constexpr uint32_t defaultThreads = 16, defaultDepth = 16;
constexpr const char *depthName = "MGPU_DEPTH";

} // namespace

bool isMatmul(ModuleOp kernel) { return productOf(kernel).has_value(); }

planner::KernelSpace matmulSpace(ModuleOp kernel, Dim3 block, Dim3 maxGrid) {
  cuda::MatmulShape product = *productOf(kernel);
  planner::KernelSpace space;
  space.target = planner::KernelTarget::Cuda;
  space.block = block;
  space.maxGrid = maxGrid;
  space.reshapable = true;
  space.reason = "is a matrix product, in tiles of shared memory";
  space.stagedBytes = cuda::widthOf(product.a.element) / 8;
  space.tunables.push_back({depthName, {defaultDepth, 8, 32}});
  planner::KernelConfig &defaults = space.defaults;
  defaults.tunables[defaults.numTunables++] = defaultDepth;
  defaults[P::BlockX] = defaults[P::BlockY] = defaultThreads;
  defaults[P::Vector] = 1;
  defaults[P::TileX] = tileOf(product.n());
  defaults[P::TileY] = tileOf(product.m());
  for (size_t k = 0; k < planner::numKernelParameters; ++k)
    space.choices.push_back({P(k), {defaults[P(k)]}, space.reason});
  auto offer = [&](P parameter, std::vector<uint32_t> values) {
    space.choices[size_t(parameter)] = {parameter, std::move(values), ""};
  };
  offer(P::BlockX, {8, 16, 32});
  offer(P::BlockY, {4, 8, 16});
  offer(P::TileX, {1, 2, 4, 8});
  offer(P::TileY, {1, 2, 4, 8});
  offer(P::MinBlocks, {1, 2, 3, 4});
  return space;
}

CudaKernel emitMatmul(ModuleOp module, const CudaEmitOptions &options) {
  cuda::MatmulShape product = *productOf(module);
  planner::KernelSpace space =
      matmulSpace(module, options.block, options.maxGrid);
  const planner::KernelConfig &defaults = space.defaults;
  CudaKernel kernel;
  cuda::Names names;
  kernel.name = kernel.entry = names.fresh(options.name);
  kernel.block = options.block;
  kernel.reshapable = true;
  kernel.reason = space.reason;
  kernel.vectorReason = "has tiles instead";
  std::string type = cuda::cType(product.a.element), parameters;
  for (const char *each :
       {"batch",   "firstRow", "firstColumn", "sums",    "tileA",
        "tileB",   "launch",   "thread",      "threads", "rows",
        "columns", "endRow",   "endColumn",   "k",       "step",
        "i",       "j",        "row",         "column",  "at"})
    names.reserve(each);
  std::vector<std::string> argument(3);
  for (unsigned k = 0; k < 3; ++k) {
    StringRef wish = cuda::sourceName(product.entry.getArgument(k).getLoc());
    argument[k] = names.fresh(wish.empty() ? "x" : wish);
    std::string pointer =
        (k == product.c.position ? "" : "const ") + type + " *";
    kernel.parameters.push_back({argument[k], pointer});
    kernel.parameterBytes.push_back(8);
    parameters += pointer + argument[k] + ", ";
  }
  std::string a = argument[product.a.position],
              b = argument[product.b.position],
              c = argument[product.c.position];
  // Threads of the source's block, in which the part of the grid is given.
  std::string x = std::to_string(options.block.x),
              y = std::to_string(options.block.y);
  std::string m = std::to_string(product.m()), n = std::to_string(product.n()),
              k = std::to_string(product.k());
  std::string text =
      "// " + kernel.name +
      (options.location.empty() ? "" : ": the launch at " + options.location) +
      ".\n// " + c + " += " + a + " * " + b + ": " +
      (product.c.batch > 1 ? std::to_string(product.c.batch) + " times " : "") +
      m + " x " + k + " and " + k + " x " + n +
      ", tiled through shared memory.\n"
      "// CUDA C++ that includes nothing, for NVRTC. Each element adds in "
      "order of k, so\n"
      "// that with --fmad=false the bits are those of the source under all "
      "macros (-D):\n"
      "//   MGPU_BLOCK_X, _Y   threads of a block along columns and rows\n"
      "//   MGPU_TILE_X, _Y    elements of one thread along them\n"
      "//   MGPU_DEPTH         steps of k in shared memory at a time\n"
      "//   MGPU_MIN_BLOCKS    blocks that must fit one multiprocessor\n"
      "// Launch with a block for each MGPU_BLOCK_X * MGPU_TILE_X columns "
      "along "
      "x, for\n"
      "// each MGPU_BLOCK_Y * MGPU_TILE_Y rows along y, for each product along "
      "z. A part\n"
      "// of them is a launch of fewer blocks from block first on, or of the "
      "source's\n// blocks base to end.\n";
  auto macro = [&](const std::string &name, uint32_t value) {
    text += "#ifndef " + name + "\n#define " + name + " " +
            std::to_string(value) + "\n#endif\n";
  };
  macro("MGPU_BLOCK_X", defaults[P::BlockX]);
  macro("MGPU_BLOCK_Y", defaults[P::BlockY]);
  macro("MGPU_TILE_X", defaults[P::TileX]);
  macro("MGPU_TILE_Y", defaults[P::TileY]);
  macro(depthName, defaultDepth);
  macro("MGPU_MIN_BLOCKS", 1);
  text +=
      "\nstruct MgpuLaunch { // the grid of the source, and where this launch "
      "begins\n  unsigned gridX, gridY, gridZ, firstX, firstY, firstZ;\n"
      "  unsigned baseX, baseY, baseZ, endX, endY, endZ; // of the part that "
      "runs\n};\n\n"
      "extern \"C\" __global__ void\n"
      "__launch_bounds__(MGPU_BLOCK_X * MGPU_BLOCK_Y, MGPU_MIN_BLOCKS)\n" +
      kernel.name + "(" + parameters +
      "const MgpuLaunch launch) {\n"
      "  const int rows = MGPU_BLOCK_Y * MGPU_TILE_Y, columns = MGPU_BLOCK_X * "
      "MGPU_TILE_X;\n"
      "  const int threads = MGPU_BLOCK_X * MGPU_BLOCK_Y;\n"
      "  static __shared__ " +
      type +
      " tileA[MGPU_DEPTH][MGPU_BLOCK_Y * MGPU_TILE_Y + 1]; // + 1: a column is "
      "in all banks\n"
      "  static __shared__ " +
      type +
      " tileB[MGPU_DEPTH][MGPU_BLOCK_X * MGPU_TILE_X];\n"
      "  const int thread = (int)(threadIdx.y * MGPU_BLOCK_X + threadIdx.x);\n"
      "  const int firstRow = (int)launch.baseY * " +
      y +
      " + (int)(blockIdx.y + launch.firstY) * rows;\n"
      "  const int firstColumn = (int)launch.baseX * " +
      x +
      " + (int)(blockIdx.x + launch.firstX) * columns;\n"
      "  const int endRow = launch.endY * " +
      y + "u < " + m + "u ? (int)launch.endY * " + y + " : " + m +
      ";\n  const int endColumn = launch.endX * " + x + "u < " + n +
      "u ? (int)launch.endX * " + x + " : " + n + ";\n";
  if (product.c.batch > 1)
    text += "  const int batch = (int)(launch.baseZ + blockIdx.z + "
            "launch.firstZ);\n";
  // The element of C that belongs to (i, j) of this thread, inside or not.
  std::string forEach =
      "#pragma unroll\n"
      "  for (int i = 0; i < MGPU_TILE_Y; ++i)\n"
      "#pragma unroll\n"
      "    for (int j = 0; j < MGPU_TILE_X; ++j) {\n"
      "      const int row = firstRow + i * MGPU_BLOCK_Y + (int)threadIdx.y;\n"
      "      const int column = firstColumn + j * MGPU_BLOCK_X + "
      "(int)threadIdx.x;\n";
  std::string isInside = "row < endRow && column < endColumn";
  text +=
      "  " + type + " sums[MGPU_TILE_Y][MGPU_TILE_X];\n" + forEach +
      "      sums[i][j] = " + isInside + " ? " +
      product.c.at(c, "row", "column") + " : 0;\n    }\n" +
      "  for (int k = 0; k < " + k +
      "; k += MGPU_DEPTH) {\n"
      "    for (int at = thread; at < rows * MGPU_DEPTH; at += threads) {\n"
      "      const int row = at / MGPU_DEPTH, step = at % MGPU_DEPTH;\n"
      "      tileA[step][row] = firstRow + row < endRow && k + step < " +
      k + " ? " + product.a.at(a, "firstRow + row", "k + step") +
      " : 0;\n    }\n"
      "    for (int at = thread; at < columns * MGPU_DEPTH; at += threads) {\n"
      "      const int step = at / columns, column = at % columns;\n"
      "      tileB[step][column] = firstColumn + column < endColumn && k + "
      "step < " +
      k + " ? " + product.b.at(b, "k + step", "firstColumn + column") +
      " : 0;\n    }\n"
      "    __syncthreads();\n"
      "#pragma unroll\n"
      "    for (int step = 0; step < MGPU_DEPTH; ++step) {\n"
      "      if (" +
      k + " % MGPU_DEPTH != 0 && k + step >= " + k +
      ") // no zeros are added: they would change -0\n"
      "        break;\n"
      "#pragma unroll\n"
      "      for (int i = 0; i < MGPU_TILE_Y; ++i)\n"
      "#pragma unroll\n"
      "        for (int j = 0; j < MGPU_TILE_X; ++j)\n"
      "          sums[i][j] += tileA[step][i * MGPU_BLOCK_Y + threadIdx.y] * "
      "tileB[step][j * MGPU_BLOCK_X + threadIdx.x];\n"
      "    }\n"
      "    __syncthreads(); // before the tiles are filled again\n"
      "  }\n" +
      forEach + "      if (" + isInside + ")\n        " +
      product.c.at(c, "row", "column") + " = sums[i][j];\n    }\n}\n";
  kernel.source = std::move(text);
  return kernel;
}

} // namespace mgpu::kernels
