// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_PTX_LAUNCH_H
#define MGPU_KERNELS_PTX_LAUNCH_H

// Runs a launch of a kernel given as PTX. Every access is checked; what a GPU
// would do at random, or not report, is an error with its place.

#include "kernels/ptx/PtxProgram.h"
#include "support/Types.h"

#include <functional>
#include <span>

namespace mgpu::kernels::ptx {

/// Memory that a launch may touch, by its address in this process.
struct Region {
  std::byte *at = nullptr;
  uint64_t bytes = 0;
  /// The address that the kernel knows; 0: its address in this process.
  uint64_t address = 0;
  bool isWritable = true;
  /// Which of its bytes have been written, a byte each; null: all. Writes are
  /// added.
  uint8_t *written = nullptr;
  std::string name; ///< for messages
  /// Nothing writes it from the launch before on (griddepcontrol.wait).
  bool isSteady = true;
  bool isRead = false, isWrote = false; ///< set by the launch
};

struct LaunchOptions {
  Dim3 grid{1, 1, 1}, block{1, 1, 1}, cluster{1, 1, 1};
  uint32_t sharedBytes = 0; ///< dynamic
  /// The parameters one behind the other, each aligned to its size.
  std::vector<std::byte> parameters;
  std::vector<Region> regions;
  /// Order of warps and blocks; 0: as they come.
  uint64_t seed = 0;
  /// Instructions of warps after which a launch is given up.
  uint64_t mostInstructions = uint64_t(1) << 36;
  /// Approximate functions err by all that PTX allows: to -1 or to 1; 0: not.
  int approximation = 0;
  /// Asynchronous copies are done when they are issued, not when waited for.
  bool isEarly = false;
  std::function<void(std::string_view)> print; ///< of printf; null: stdout
  /// Called by the first griddepcontrol.wait, before it is over.
  std::function<void()> awaitGrids;
  /// Called for each access of a lane outside of its block, with the bytes that
  /// it reads or writes; an atomic one is both. It makes accesses slower.
  std::function<void(uint64_t address, uint32_t bytes, bool writes)> onTouch;
};

struct LaunchResult {
  uint64_t instructions = 0;   ///< of warps
  std::vector<Region> regions; ///< as merged, and what was touched
};

/// Memory of a module on one device: its variables keep their values from
/// launch to launch.
struct Instance {
  explicit Instance(std::shared_ptr<const Program> program)
      : program(std::move(program)), variables(this->program->variables) {}
  std::shared_ptr<const Program> program;
  std::vector<std::byte> variables;
};

/// Invalid, with the lines and the thread, for what a check finds; what the
/// kernel wrote until then stays.
Result<LaunchResult> run(Instance &instance, const LaunchOptions &options);

} // namespace mgpu::kernels::ptx

#endif // MGPU_KERNELS_PTX_LAUNCH_H
