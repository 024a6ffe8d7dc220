// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_CAPTURE_RANKS_RENDEZVOUS_H
#define MGPU_CAPTURE_RANKS_RENDEZVOUS_H

#include "support/Bytes.h"
#include "support/Result.h"

namespace mgpu::capture {

/// How one rank of a program meets the others, wherever they are. All ranks
/// call meet(), largest() and exchange() in the same order.
class Rendezvous {
public:
  virtual ~Rendezvous() = default;

  /// Gives a sign of life. An error once abort() was called for any rank.
  virtual Result<void> watch() = 0;
  /// Returns once all ranks called it. Errors: as watch(); Invalid if another
  /// rank did not come in time.
  virtual Result<void> meet() = 0;
  /// The largest value that a rank gave. Errors: as meet().
  virtual Result<double> largest(double mine) = 0;
  /// What each rank gave, by rank. Errors: as meet(); Internal if `mine` is
  /// more than there is room for.
  virtual Result<std::vector<Bytes>>
  exchange(std::span<const std::byte> mine) = 0;
  /// Makes every wait of all ranks end with an error.
  virtual void abort() = 0;
};

} // namespace mgpu::capture

#endif // MGPU_CAPTURE_RANKS_RENDEZVOUS_H
