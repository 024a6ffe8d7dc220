// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TUNER_RECORD_OUTPUTAGREEMENT_H
#define MGPU_TUNER_RECORD_OUTPUTAGREEMENT_H

#include <string>

namespace mgpu::tuner {

/// How a candidate's outputs agree with the reference's.
struct Agreement {
  /// The distance from f64 over the tolerance, for the element that is furthest
  /// off; 0 if all bits are the reference's.
  double share = 0;

  bool isSameBits() const { return share == 0; }
  void add(const Agreement &other) {
    share = share > other.share ? share : other.share;
  }
};
/// "the same bits", "within 12 % of the tolerance".
std::string toText(const Agreement &agreement);

} // namespace mgpu::tuner

#endif // MGPU_TUNER_RECORD_OUTPUTAGREEMENT_H
