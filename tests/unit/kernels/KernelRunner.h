// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TESTS_UNIT_KERNELS_KERNELRUNNER_H
#define MGPU_TESTS_UNIT_KERNELS_KERNELRUNNER_H

#include "kernels/space/KernelSpace.h"
#include "planner/dag/Dag.h"
#include "support/Result.h"
#include "support/Types.h"

#include "kernels/abi/HostKernelAbi.h"

#include <bit>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

namespace mgpu::kernels {

/// A kernel compiled from MLIR text and loaded into this process.
class LoadedKernel {
public:
  static Result<std::unique_ptr<LoadedKernel>>
  fromText(const std::string &text, Dim3 block,
           const std::string &cpu = "native",
           std::optional<KernelConfig> config = {});
  ~LoadedKernel();

  /// Runs the object's blocks first..last of a launch of `part` of `grid`
  /// blocks of the source.
  void run(Dim3 grid, std::vector<uint64_t> arguments, uint64_t first,
           uint64_t last, std::optional<GridPart> part = {}) const;
  void run(Dim3 grid, std::vector<uint64_t> arguments,
           std::optional<GridPart> part = {}) const {
    Dim3 count = part ? part->count : grid;
    run(grid, std::move(arguments), 0,
        blocksAlong(shape, 0, count.x) * blocksAlong(shape, 1, count.y) *
            blocksAlong(shape, 2, count.z),
        part);
  }
  /// The same blocks, as up to eight launches: two parts along each axis.
  void runParts(Dim3 grid, const std::vector<uint64_t> &arguments) const;

private:
  int file = -1;
  void *library = nullptr;
  HostKernelEntry entry = nullptr;
  HostKernelShape shape{};
};

/// fromText, or null and a failure of the test.
std::unique_ptr<LoadedKernel> load(const std::string &text, Dim3 block,
                                   const std::string &cpu = "native",
                                   std::optional<KernelConfig> config = {});

/// What the importer would say of a kernel given as text.
planner::KernelSpec specOf(const std::string &text, Dim3 block);

/// Arguments as the host ABI takes them.
template <typename T>
uint64_t arg(std::vector<T> &buffer) {
  return reinterpret_cast<uint64_t>(buffer.data());
}
/// Buffers as arguments, in their order.
inline std::vector<uint64_t>
args(std::vector<std::vector<std::byte>> &buffers) {
  std::vector<uint64_t> words;
  for (std::vector<std::byte> &buffer : buffers)
    words.push_back(arg(buffer));
  return words;
}
inline uint64_t arg(float value) { return std::bit_cast<uint32_t>(value); }
inline uint64_t arg(int64_t value) { return uint64_t(value); }

template <typename T>
bool sameBits(const std::vector<T> &a, const std::vector<T> &b) {
  return a.size() == b.size() &&
         std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

/// Numbers between -8 and 8.
std::vector<float> randomFloats(size_t count, uint32_t seed);

/// Wraps the body of @entry into a module.
std::string module(const std::string &arguments, const std::string &body,
                   const std::string &others = "");

/// The order of gpu.all_reduce (docs/numerics.md): neighbouring threads, then
/// neighbouring pairs, up to 32; then those one after the other.
template <typename T, typename Combine>
T reducedInOrder(std::vector<T> values, Combine combine) {
  for (size_t step = 1; step < 32; step *= 2)
    for (size_t k = 0; k + step < values.size(); k += 2 * step)
      values[k] = combine(values[k], values[k + step]);
  for (size_t k = 32; k < values.size(); k += 32)
    values[0] = combine(values[0], values[k]);
  return values[0];
}

} // namespace mgpu::kernels

#endif // MGPU_TESTS_UNIT_KERNELS_KERNELRUNNER_H
