// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DEVICE_TCP_SECRET_H
#define MGPU_DEVICE_TCP_SECRET_H

// The secret that the ranks of a job know and a stranger does not: a line of
// hexadecimal digits in a file that its owner alone can read.

#include "support/Bytes.h"
#include "support/Result.h"

namespace mgpu::device {

/// Random bytes of the system's. Absent where it gives none.
Result<void> fillRandomly(std::span<std::byte> bytes);

/// Writes a new secret of 256 bits to `path`, mode 0600. Invalid where there is
/// something at `path`, which stays as it is, or no file can be made.
Result<void> makeSecret(const std::string &path);

/// The secret in `path`. Invalid where the file belongs to another user, others
/// can read or change it, or it holds anything but 128 bits or more in
/// hexadecimal digits; Usage where there is no such file.
Result<Bytes> readSecret(const std::string &path);

/// That of MGPU_SECRET_FILE; empty where the variable is not set.
Result<Bytes> secretOfEnvironment();

} // namespace mgpu::device

#endif // MGPU_DEVICE_TCP_SECRET_H
