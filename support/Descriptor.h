// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A file descriptor that is closed where it goes out of scope.
#ifndef MGPU_SUPPORT_DESCRIPTOR_H
#define MGPU_SUPPORT_DESCRIPTOR_H

#include <unistd.h>

namespace mgpu {

class Descriptor {
public:
  /// Negative: none, as open() fails.
  explicit Descriptor(int value) : value(value) {}
  ~Descriptor() {
    if (value >= 0)
      close(value);
  }
  Descriptor(const Descriptor &) = delete;
  Descriptor &operator=(const Descriptor &) = delete;
  const int value;
};

} // namespace mgpu

#endif // MGPU_SUPPORT_DESCRIPTOR_H
