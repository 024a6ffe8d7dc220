// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DEVICE_CUDA_CUDADRIVER_H
#define MGPU_DEVICE_CUDA_CUDADRIVER_H

// The CUDA target: one NVIDIA card as one or several logical devices, whose
// plan is one CUDA graph. Needs libcuda at run time only; without the headers
// at build time every call here says so (NoCuda.cpp).

#include "device/api/GraphDriver.h"

#include <chrono>
#include <functional>

namespace mgpu::device {

/// Compiles a program of the target's own (DeviceKernels.h) to a cubin for
/// "sm_90". `name` is what messages call it.
using CudaCompile = std::function<Result<std::vector<std::byte>>(
    const std::string &source, const std::string &name,
    const std::string &arch)>;

/// How NCCL's communicators are made and used.
struct NcclOptions {
  enum class Ctas : uint8_t { Default, Efficiency, Zero };

  /// Collectives whose communicators share at most one rank may run at once;
  /// else all of a card follow each other.
  bool overlaps = false;
  /// Thread blocks of a collective, at least and at most; 0: as NCCL likes.
  uint32_t leastCtas = 0, mostCtas = 0;
  Ctas ctas = Ctas::Default; ///< NCCL's CTAPolicy
  /// The arenas are windows of NCCL's: memory of ncclMemAlloc, registered as
  /// symmetric. Calls whose ends are not at equal places in them go by way of
  /// other memory.
  bool windows = false;

  bool setsCtas() const {
    return leastCtas || mostCtas || ctas != Ctas::Default;
  }
};

struct CudaOptions {
  int card = 0;
  uint32_t numDevices = 1; ///< on that card, each with memory of its own
  /// Of every replay; after it the driver and its graphs answer with an error
  /// only, because CUDA has no way to stop a kernel. Zero is none.
  std::chrono::milliseconds deadline{120'000};
  CudaCompile compile;
  /// Times are wanted: CUPTI's, where it can be had, of a card alone.
  bool profiles = false;
  /// The device of the program that this card is, where other processes have
  /// the others: `numDevices` is then 1, and collectives are NCCL's.
  std::optional<DeviceId> only;
  NcclOptions nccl;
  /// Asked while a replay or another rank is waited for: an error ends the
  /// wait, and the target is lost.
  std::function<Result<void>()> watch;
  /// Told what the user should know and is no error, each sentence once.
  std::function<void(const std::string &sentence)> warn;
};

/// Opens the card. Errors: Usage for a number of devices that cannot be;
/// Absent, with what to do, for a driver or card that is not there.
Result<std::unique_ptr<Driver>> createCudaDriver(const CudaOptions &options);

/// The most logical devices of one card.
inline constexpr uint32_t maxDevicesOnCard = 32;

/// What the driver says of this machine, for `doctor` and `devices`. Creates no
/// context.
struct CudaMachine {
  struct Card {
    std::string name, uuid, arch; ///< "NVIDIA H100", "GPU-...", "sm_90"
    uint64_t memoryBytes = 0;
    uint32_t multiprocessors = 0;
    /// As the driver states them, not as they are now.
    uint32_t clockKhz = 0, memoryClockKhz = 0;
    std::string computeMode;   ///< "default", "prohibited", "exclusive"
    std::vector<bool> reaches; ///< by card: peer access is possible
  };
  std::string driver; ///< "13.0": the newest CUDA it knows
  bool logs = false;  ///< it explains its errors
  std::vector<Card> cards;
};
Result<CudaMachine> inspectCuda();

/// The version of the headers built with, "13.0"; empty: none.
std::string cudaHeaderVersion();

} // namespace mgpu::device

#endif // MGPU_DEVICE_CUDA_CUDADRIVER_H
