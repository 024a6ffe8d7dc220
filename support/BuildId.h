// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_SUPPORT_BUILDID_H
#define MGPU_SUPPORT_BUILDID_H

#include <string>

namespace mgpu {

/// The build id of the program or library that `address` is loaded from, where
/// a function or a constant lies: what the linker made of its contents
/// (NT_GNU_BUILD_ID), in hexadecimal. So it changes when anything that was
/// linked changes. Empty where it has none.
std::string buildIdOf(const void *address);

} // namespace mgpu

#endif // MGPU_SUPPORT_BUILDID_H
