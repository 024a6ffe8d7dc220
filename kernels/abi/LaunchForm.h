// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_ABI_LAUNCHFORM_H
#define MGPU_KERNELS_ABI_LAUNCHFORM_H

// How a compiled kernel says itself that it is to be launched. An emitted text
// has a constant beside its entry that is made of the macros it is compiled
// with; an image that would launch the entry in another form is refused, when
// it is made and when it is loaded.

#include "kernels/abi/CubinElf.h"
#include "kernels/abi/KernelImage.h"

namespace mgpu::kernels {

/// The constant's name is this, and the entry's behind it.
inline constexpr std::string_view launchFormPrefix = "mgpu_form_";

/// The constant: so many words of 32 bits.
struct LaunchForm {
  static constexpr uint32_t firstVersion = 1;
  uint32_t version = firstVersion;
  Dim3 block;                      ///< threads of a block
  Dim3 covers;                     ///< threads of the source that it computes
  Dim3 cluster;                    ///< blocks of a cluster
  uint32_t dynamicSharedBytes = 0; ///< that it is launched with
  uint32_t awaits = 0; ///< 1: it waits for the kernel that it follows
  bool operator==(const LaunchForm &) const = default;
};

/// How `image` launches its entry.
LaunchForm launchFormOf(const KernelImage &image);

/// An entry's launch form, in words of its text, which has macros for the block
/// and for whether it waits.
struct LaunchFormWords {
  std::string coversX, coversY, coversZ; ///< threads of the source, of a block
  std::string cluster = "1, 1, 1";
  std::string sharedBytes = "0"; ///< dynamic
  std::string block = "MGPU_BLOCK_X, MGPU_BLOCK_Y, MGPU_BLOCK_Z";
  std::string awaits = "MGPU_PDL";
};
/// The constant beside `entry`, as CUDA C++. It is made of the macros that the
/// body is made of, and not of the space.
std::string launchFormText(const std::string &entry,
                           const LaunchFormWords &words);
/// The constant for an entry that is written by hand, in numbers.
std::string launchFormText(const KernelImage &image);

/// Compares that with what the cubin says of the entry. Invalid, with both
/// forms, where they differ, and for an emitted kernel whose cubin says nothing
/// (KernelImage::takesPart). Passes for code that is no cubin, and for an entry
/// that a user wrote. `name` is the kernel's, for the error.
Result<void> checkLaunchForm(std::string_view name, const KernelImage &image,
                             const Cubin &cubin);

} // namespace mgpu::kernels

#endif // MGPU_KERNELS_ABI_LAUNCHFORM_H
