// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_CAPTURE_RANKS_CARDMEMORY_H
#define MGPU_CAPTURE_RANKS_CARDMEMORY_H

// What the ranks of a program on several cards share: a SharedControl, and the
// host buffers.

#include "capture/ranks/SharedControl.h"
#include "planner/dag/Dag.h"

namespace mgpu::capture {

class CardMemory {
public:
  /// Fresh, with the program's constants. Unsupported for more cards than a
  /// SharedControl has ranks.
  static Result<CardMemory> make(const planner::Dag &dag);
  CardMemory() = default;

  SharedControl &control() const {
    return *reinterpret_cast<SharedControl *>(memory.bytes().data());
  }
  /// By hostLayout().
  std::span<std::byte> host() const;
  /// As Replayer::hostBuffer().
  std::span<std::byte> hostBuffer(planner::BufferId id) const {
    return id.value < buffers.size() ? buffers[id.value]
                                     : std::span<std::byte>();
  }
  bool isEmpty() const { return memory.bytes().empty(); }
  /// It is never freed: a card that is lost may still write it.
  void keep() { memory.keep(); }

private:
  SharedMemory memory;
  std::vector<std::span<std::byte>> buffers; ///< by BufferId
};

} // namespace mgpu::capture

#endif // MGPU_CAPTURE_RANKS_CARDMEMORY_H
