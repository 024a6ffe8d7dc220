// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TESTS_UNIT_KERNELS_MACHINECODE_MACHINECODE_H
#define MGPU_TESTS_UNIT_KERNELS_MACHINECODE_MACHINECODE_H

// What ptxas makes of an emitted kernel: its instructions and their widths,
// read from the cubin. The form of a cubin is not documented. The opcodes below
// are the low nine bits of an instruction, the width of an access the bits 9 to
// 11 of its upper half, as sm_80 to sm_90 have them. An LDG that leaves nothing
// in the first cache has ".NA" behind its width, and one that takes what it
// reads for a constant (ld.global.nc) ends in ".NC".

#include "support/Result.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mgpu::kernels {

struct MachineCode {
  /// In order, without padding: "LDG.128", "FADD"; "?" for one without a name
  /// here.
  std::vector<std::string> instructions;
  uint32_t registers = 0; ///< of a thread
  uint64_t blocks = 0;    ///< of the source, in the largest launch
  uint64_t threads = 0;   ///< of a block

  /// Instructions of this name, or of all widths of it: "LDG" counts LDG.32.
  size_t count(std::string_view name) const;
  /// Loads that take what they read for a constant.
  size_t constants() const;
  /// Bits of all accesses of this name: 64 for two LDG.32.
  size_t bits(std::string_view name) const;
  /// The position of the first one; the number of instructions where there is
  /// none.
  size_t first(std::string_view name) const;
  /// The instructions in front of the first one of this name.
  MachineCode before(std::string_view name) const;
  /// "LDG.128 3, STG.128 1, ..." for messages.
  std::string text() const;
};

/// The machine code of an entry of a cubin.
Result<MachineCode> readMachineCode(std::span<const std::byte> cubin,
                                    const std::string &entry);

/// The kernels that a program launches, as they are emitted for these launches
/// and compiled for sm_90 with --fmad=false. `config` is as
/// kernels::toText(KernelConfig) writes it, and changes the defaults
/// of the first `configured` kernels. Fails where one has no such
/// configuration.
Result<std::vector<MachineCode>> machineCodeOf(const std::string &program,
                                               const std::string &config,
                                               bool awaits = false,
                                               size_t configured = SIZE_MAX);

/// The same in the default configurations, compiled together, as a program that
/// nobody tuned is. The codes have instructions and registers alone.
Result<std::vector<MachineCode>> codeOfAll(const std::string &program);

/// A program that allocates buffers of these types on one device, %b0, %b1 and
/// so on, all copied from and back to the host, and runs `body` between.
std::string programOn(const std::vector<std::string> &types,
                      const std::string &body);

} // namespace mgpu::kernels

#endif // MGPU_TESTS_UNIT_KERNELS_MACHINECODE_MACHINECODE_H
