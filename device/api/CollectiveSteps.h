// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DEVICE_API_COLLECTIVESTEPS_H
#define MGPU_DEVICE_API_COLLECTIVESTEPS_H

// Defines each collective, for backends whose members share an address space.
// Ranks are combined in rank order, so results are bitwise reproducible.
//   all_reduce      recv_i = send_0 op send_1 op ...
//   reduce_scatter  recv_i = slice i of that; send has n x recv elements
//   all_gather      slice i of every recv = send_i; or, where send and recv are
//                   of equal size, = slice i of send_i (in place)
//   all_to_all      slice j of recv_i = slice i of send_j
//   broadcast       recv_i = send_root; other sends are not looked at
//   send_recv       recv_1 = send_0; the other two boxes are not looked at
//   permute         recv_t = send_s for each pair (s, t), and zeros where t is
//                   the target of none; other sends are not looked at
// Slices are equal parts in row-major order. All sends are read as they were
// before the collective, however sends and receives overlap.
// The arithmetic, on every backend:
//   integers   wrap around; min and max are signed (index too)
//   i1         sum and max are "or", prod and min are "and"; any non-zero byte
//              counts as 1
//   f32, f64   IEEE; f16, bf16 and f8 are computed in float and rounded to
//              nearest even after every step
//   min, max   of floats: NaN if either is NaN (its payload is unspecified),
//              and -0 below +0: MLIR's minimumf and maximumf

#include "device/api/CopyNest.h"
#include "device/api/GraphDriver.h"

#include <functional>
#include <optional>

namespace mgpu::device {

struct BoxMove {
  std::byte *destination = nullptr;
  Box destinationBox;
  const std::byte *source = nullptr;
  Box sourceBox;
};

/// Zeros for all elements of the box. `zeros` has as many bytes as an element,
/// all of them 0.
BoxMove zeroMove(std::byte *base, const Box &box, const std::byte *zeros);

/// outputs[*][i] = inputs[0][i] op inputs[1][i] op ..., all contiguous. An
/// output may be an input, but overlaps none otherwise.
struct ElementwiseReduction {
  std::vector<const std::byte *> inputs;
  std::vector<std::byte *> outputs;
  size_t count = 0;
};

/// Each list after the one before it. Within a list nothing depends on order,
/// but a move's own two boxes may overlap: it is as if all its elements were
/// read before any is written.
struct CollectiveSteps {
  std::vector<BoxMove> stageIn;
  std::vector<ElementwiseReduction> reductions;
  std::vector<BoxMove> moves;
};

struct CollectiveSpace {
  /// Memory for so many bytes that the steps may use, aligned to 16.
  std::function<Result<std::byte *>(uint64_t)> stage;
  /// 8 bytes of zeros, for a permute.
  const std::byte *zeros = nullptr;
  /// Whether reductions must have their elements at multiples of their size.
  bool isAligned = false;
};

/// The steps of a collective. Errors: Invalid for members that do not fit
/// together, Unsupported for slices that are not boxes, and those of stage.
Result<CollectiveSteps> collectiveSteps(const CollectiveNodeParams &params,
                                        const CollectiveSpace &space);

/// The bytes that one member sends and another receives.
struct MemberMove {
  std::optional<uint32_t> from; ///< none: zeros
  Box source;                   ///< of the sender's `send`
  uint32_t to = 0;
  Box destination; ///< of the receiver's `recv`
};

/// All of a collective that does not reduce, wherever its members are, in an
/// order that is the same everywhere: what has one source follows each other.
/// Errors: as collectiveSteps().
Result<std::vector<MemberMove>>
collectiveMoves(const CollectiveNodeParams &params);

/// The steps of moves in any order, all read as they were before.
Result<CollectiveSteps> stepsOf(std::vector<BoxMove> moves,
                                const CollectiveSpace &space);

} // namespace mgpu::device

#endif // MGPU_DEVICE_API_COLLECTIVESTEPS_H
