// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DEVICE_API_RENDEZVOUS_H
#define MGPU_DEVICE_API_RENDEZVOUS_H

#include "support/Bytes.h"
#include "support/Result.h"

namespace mgpu::device {

/// How one rank of a program meets the others, wherever they are: threads or
/// processes of one machine (capture/ranks/RankMemory.h), or processes of
/// several (MessageRendezvous). All ranks call meet(), largest() and exchange()
/// in the same order, each from one thread at a time. No wait is longer than
/// the deadline that the rendezvous was made with.
class Rendezvous {
public:
  virtual ~Rendezvous() = default;

  virtual uint32_t rank() const = 0;  ///< from 0 on
  virtual uint32_t count() const = 0; ///< of ranks, at least 1

  /// Gives a sign of life. An error once abort() was called for any rank.
  virtual Result<void> watch() = 0;
  /// Returns once all ranks called it. Errors: as watch(); one that names the
  /// rank that did not come in time.
  virtual Result<void> meet() = 0;
  /// The largest value that a rank gave. Errors: as meet().
  virtual Result<double> largest(double mine) = 0;
  /// The bytes that each rank gave, by rank. Errors: as meet(); Internal if
  /// `mine` is more than there is room for.
  virtual Result<std::vector<Bytes>>
  exchange(std::span<const std::byte> mine) = 0;
  /// Makes every wait of all ranks end with an error. `reason` is told to them
  /// where there are means to.
  virtual void abort(const std::string &reason = "") = 0;
};

/// Facts that all ranks must have alike, by their names in errors.
using Facts = std::vector<std::pair<std::string, std::string>>;

/// All ranks call it with facts of the same names in the same order. Absent,
/// with the same words on all ranks, where one has another fact than rank 0.
/// Errors: as Rendezvous::exchange().
Result<void> agree(const Facts &facts, Rendezvous &others);

} // namespace mgpu::device

#endif // MGPU_DEVICE_API_RENDEZVOUS_H
