// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_ABI_CUBINELF_H
#define MGPU_KERNELS_ABI_CUBINELF_H

// Reads a cubin's ELF, whose NVIDIA sections are undocumented: a second
// opinion on what the log says, and what an entry takes.

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace mgpu::kernels {

struct CubinParameter {
  uint32_t offset, bytes;
  bool operator==(const CubinParameter &) const = default;
};

struct CubinEntry {
  uint32_t registers = 0;
  /// The largest block, by __launch_bounds__ or its like; 0: what a GPU takes.
  uint32_t maxThreads = 0;
  uint32_t sharedBytes = 0; ///< size of the section, the reserved 1024 included
  std::vector<CubinParameter> parameters; ///< in order
  /// The words of the constant that says how it is launched (LaunchForm.h);
  /// none where there is no such constant.
  std::vector<uint32_t> launchForm;
};

struct Cubin {
  uint32_t architecture = 0; ///< 90
  uint32_t toolkit = 0; ///< major release of CUDA that made it; 0: not said
  std::map<std::string, CubinEntry> entries;
};

/// An empty Cubin for bytes that are none.
Cubin readCubin(std::span<const std::byte> bytes);

} // namespace mgpu::kernels

#endif // MGPU_KERNELS_ABI_CUBINELF_H
