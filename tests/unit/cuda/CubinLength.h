// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TESTS_UNIT_CUDA_CUBINLENGTH_H
#define MGPU_TESTS_UNIT_CUDA_CUBINLENGTH_H

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <elf.h>
#include <span>

namespace mgpu::fake {

/// All of a cubin: the driver is not told its length, but its headers say it.
/// Empty for what NVRTC did not make.
inline std::span<const std::byte> wholeCubin(const void *code) {
  Elf64_Ehdr header;
  std::memcpy(&header, code, sizeof header);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
    return {};
  size_t end = header.e_shoff + size_t(header.e_shnum) * header.e_shentsize;
  end = std::max<size_t>(end, header.e_phoff +
                                  size_t(header.e_phnum) * header.e_phentsize);
  return {static_cast<const std::byte *>(code), end};
}

} // namespace mgpu::fake

#endif // MGPU_TESTS_UNIT_CUDA_CUBINLENGTH_H
