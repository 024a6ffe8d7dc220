// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_CUDA_SOURCETEXT_H
#define MGPU_KERNELS_CUDA_SOURCETEXT_H

#include "mlir/IR/Location.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/StringSet.h"

#include <cstdint>
#include <map>
#include <string>

namespace mgpu::kernels::cuda {

/// The name the source gave the value, empty where none is known.
llvm::StringRef sourceName(mlir::Location location);

/// Lines of C++, indented, each with the line of the source it comes from.
class Text {
public:
  /// Whose source the next lines are; #line is written where the running
  /// count of lines is not it already.
  void at(mlir::Location location);
  /// The next lines are this text's own.
  void atNowhere() { wanted = {}; }
  void line(const llvm::Twine &text);
  void raw(llvm::StringRef lines); ///< whole lines, not indented
  /// Puts `head` before the lines written since `begin`, a position in `text`:
  /// before one line, or before a block of several.
  void headLines(size_t begin, llvm::StringRef head);
  void open(const llvm::Twine &text) {
    line(text + " {");
    ++depth;
  }
  void close(const llvm::Twine &text = "") {
    --depth;
    line("}" + text);
  }
  unsigned depth = 0;
  std::string text;

private:
  struct Place {
    std::string file;
    unsigned line = 0;
    bool operator==(const Place &) const = default;
  };
  Place wanted; ///< line 0: none
  Place now;    ///< place of the next line, as the compiler counts
};

/// A text whose lines that stand for "#line N FILE" of itself say so.
std::string withOwnLines(const std::string &text, const std::string &file);
/// Such a line.
inline constexpr llvm::StringRef ownLine = "#line own\n";

/// Hands out identifiers that are not in use and not words of C++ or CUDA.
class Names {
public:
  /// `wish`, made an identifier and unique.
  std::string fresh(llvm::StringRef wish);
  void reserve(llvm::StringRef name) { used.insert(name); }

private:
  llvm::StringSet<> used;
  llvm::StringMap<unsigned> next; ///< the last number given to a name
};

/// The parts between a text's $NAME$.
using Substitutions = std::map<std::string, std::string>;

/// `text` with each $NAME$ replaced by its word, which must exist.
std::string fill(std::string text, const Substitutions &words);

/// A macro's value where none is given with -D.
std::string macroDefault(const std::string &name, uint32_t value);

/// The type of an entry's last argument.
inline constexpr const char *launchType =
    R"(struct MgpuLaunch { // the grid of the source, and where this launch begins
  unsigned gridX, gridY, gridZ, firstX, firstY, firstZ;
  unsigned baseX, baseY, baseZ, endX, endY, endZ; // of the part that runs
};
)";

/// With MGPU_PDL: a function that waits for the kernel the launch follows,
/// which need not have ended, and its call, the first statement of an entry.
/// Only then the next kernel may begin: so no more than two of a chain are on
/// the GPU at once. CudaShim.h replaces the function by defining
/// MGPU_AWAIT_GRIDS. PTX ISA, "griddepcontrol".
inline constexpr const char *awaitFunction =
    R"(#if MGPU_PDL && !defined MGPU_AWAIT_GRIDS
// Until the kernel before has ended and what it wrote can be read; then the next one may begin.
__device__ __forceinline__ void mgpuAwaitGrids() {
  asm volatile("griddepcontrol.wait;" : : : "memory");
  asm volatile("griddepcontrol.launch_dependents;" : : : "memory");
}
#endif
)";
/// With MGPU_PDL: what nothing writes in a replay comes to the second cache
/// while the kernel before still runs. That changes no result, whatever is
/// fetched, as all of a GPU sees its memory through that cache. PTX ISA,
/// "cp.async.bulk.prefetch".
inline constexpr const char *fetchFunction =
    R"(#if MGPU_PDL && !defined MGPU_AWAIT_GRIDS
// To the second cache, by each block a share, in parts of 16 bytes.
__device__ __forceinline__ void mgpuFetchAhead(const void *from, unsigned long long bytes) {
  if (threadIdx.x != 0 || threadIdx.y != 0 || threadIdx.z != 0)
    return;
  const unsigned long long begin = ((unsigned long long)from + 15) / 16, end = ((unsigned long long)from + bytes) / 16;
  const unsigned blocks = gridDim.x * gridDim.y * gridDim.z, share = ((unsigned)(end - begin) + blocks - 1) / blocks;
  const unsigned long long first = begin + (unsigned long long)share * (blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z));
  if (first < end)
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" : : "l"(first * 16), "r"((share < end - first ? share : (unsigned)(end - first)) * 16));
}
#endif
)";
inline constexpr const char *awaitCall = "#if MGPU_PDL\n"
                                         "  mgpuAwaitGrids();\n"
                                         "#endif\n";

} // namespace mgpu::kernels::cuda

#endif // MGPU_KERNELS_CUDA_SOURCETEXT_H
