// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TESTS_UNIT_CUDA_FAKECUPTI_H
#define MGPU_TESTS_UNIT_CUDA_FAKECUPTI_H

// A CUPTI that is not there: it watches the driver that is not there, and keeps
// CUPTI's rules, each with the line of CUDA 13.0's headers it is from.

#include "FakeCuda.h"

#include "device/cuda/cupti/CuptiApi.h"

#include <cstdlib>

namespace mgpu::fake {

class FakeCupti {
public:
  FakeCupti() = default;
  FakeCupti(const FakeCupti &) = delete;
  /// A buffer that was not handed back goes as it would with the process.
  ~FakeCupti();
  /// A fresh one, which watches FakeCuda::instance().
  static FakeCupti &reset();
  static FakeCupti &instance();
  /// A new table each time: to CuptiSession another library.
  static std::shared_ptr<const device::CuptiApi> api();

  // What goes wrong.
  std::map<std::string, device::CuptiResult> refused; ///< by function
  size_t drops = 0;            ///< records to come that find no room
  size_t late = 0;             ///< flushes until records are finished
  bool needsForce = false;     ///< a record is never finished
  size_t twice = 0;            ///< records to come that are two of one node
  bool hasWorker = false;      ///< a thread of CUPTI's calls back, too
  bool knowsNoTimes = false;   ///< records have the times 0
  bool namesOriginals = false; ///< records have the numbers of the originals
  /// Records of these types are left out.
  std::set<CUgraphNodeType> unrecorded;

  // What happened.
  std::vector<std::string> violations;
  std::set<device::CuptiKind> enabled, wereEnabled;
  size_t buffersOut = 0; ///< buffers of ours that CUPTI has

  // The state, for the entry points.
  device::CuptiResult enter(const char *name);
  void put(device::CuptiKind kind, uint64_t node, double startMs, double endMs);
  void flush();
  /// Calls back from a thread, during a call of ours, and waits for it.
  void meanwhile(std::function<void()> callBack);

  bool isSubscribed = false;
  device::CuptiCallback callback = nullptr;
  void *callbackData = nullptr;
  bool tellsClones = false;
  device::CuptiBufferRequested requested = nullptr;
  device::CuptiBufferCompleted completed = nullptr;
  uint8_t *buffer = nullptr;
  size_t size = 0, used = 0, dropped = 0;
  std::map<uint64_t, uint64_t> originals; ///< originals of clones
  std::vector<std::thread> threads;
};

} // namespace mgpu::fake

#endif // MGPU_TESTS_UNIT_CUDA_FAKECUPTI_H
