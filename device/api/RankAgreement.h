// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DEVICE_API_RANKAGREEMENT_H
#define MGPU_DEVICE_API_RANKAGREEMENT_H

#include "device/api/Rendezvous.h"

namespace mgpu::device {

/// Facts that all ranks must have alike, by their names in errors.
using Facts = std::vector<std::pair<std::string, std::string>>;

/// All ranks call it with facts of the same names in the same order. Absent,
/// with the same words on all ranks, where one has another fact than rank 0.
/// Errors: as Rendezvous::exchange().
Result<void> agree(const Facts &facts, Rendezvous &others);

} // namespace mgpu::device

#endif // MGPU_DEVICE_API_RANKAGREEMENT_H
