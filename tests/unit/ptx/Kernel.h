// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TESTS_UNIT_PTX_KERNEL_H
#define MGPU_TESTS_UNIT_PTX_KERNEL_H

#include "kernels/ptx/Launch.h"
#include "kernels/ptx/TensorMap.h"

#include <cstring>
#include <gtest/gtest.h>

namespace mgpu::kernels::ptx {

/// Words that a kernel has, the address of which is in %rd1 before `body`, and
/// a tensor map of them, the parameter `map`.
struct Kernel {
  explicit Kernel(std::string body, std::string before = "")
      : text(".version 8.6\n.target sm_90a\n.address_size 64\n" + before +
             "\n.visible .entry k(.param .u64 out, "
             ".param .align 64 .b8 map[128]) {\n"
             ".reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<40>;\n"
             ".reg .b64 %rd<20>; .reg .f32 %f<20>; .reg .f64 %d<9>;\n"
             "ld.param.u64 %rd1, [out];\n" +
             body + "\nret;\n}\n") {
    options.block = {32, 1, 1};
  }

  /// The error's sentence, or "" and the words.
  std::string run() {
    auto module = parse(text);
    if (!module)
      return module.error().message;
    auto program = decode(std::make_shared<Module>(std::move(*module)), "k");
    if (!program)
      return program.error().message;
    Region region;
    region.at = reinterpret_cast<std::byte *>(words.data());
    region.bytes = words.size() * 4;
    region.name = "out";
    region.isSteady = isSteady;
    region.isWritable = isWritable;
    if (!written.empty())
      region.written = written.data();
    options.regions = {region};
    const auto address = reinterpret_cast<uint64_t>(words.data());
    options.parameters.resize(192);
    std::memcpy(options.parameters.data(), &address, 8);
    map.address += address;
    std::memcpy(options.parameters.data() + 64, &map, sizeof map);
    map.address -= address;
    options.print = [&](std::string_view text) { printed += text; };
    Instance instance(std::make_shared<Program>(std::move(*program)));
    auto result = ptx::run(instance, options);
    if (!result)
      return result.error().message;
    instructions = result->instructions;
    return "";
  }

  std::string text, printed;
  LaunchOptions options;
  TensorMap map{}; ///< its address is an offset in the words
  std::vector<uint32_t> words = std::vector<uint32_t>(1024);
  std::vector<uint8_t> written;
  uint64_t instructions = 0;
  bool isSteady = true, isWritable = true;
};

/// Each thread's %r1 is its number, and %rd2 the address of its word.
inline const char *const ownWord =
    "mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.s64 %rd2, %rd1, %rd2;";

} // namespace mgpu::kernels::ptx

#endif // MGPU_TESTS_UNIT_PTX_KERNEL_H
