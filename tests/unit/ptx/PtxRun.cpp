// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Runs one kernel of a PTX file with an input and an output buffer, for
// scripts:
//   ptx-run FILE ENTRY THREADS INPUT OUTPUT_BYTES
// INPUT is hexadecimal, or "-" where the kernel takes the output twice. Prints
// the output in hexadecimal; exits as the product does where there is none.
#include "kernels/ptx/Launch.h"
#include "support/FileIO.h"

#include <fmt/format.h>

using namespace mgpu;
using namespace mgpu::kernels;

static Result<std::string> launch(char **words) {
  MGPU_TRY_ASSIGN(std::string text, readText(words[1], 64 << 20));
  MGPU_TRY_ASSIGN(ptx::Module module, ptx::parse(std::move(text)));
  const bool isNarrow = module.addressBits == 32;
  MGPU_TRY_ASSIGN(
      ptx::Program program,
      ptx::decode(std::make_shared<ptx::Module>(std::move(module)), words[2]));
  ptx::LaunchOptions options;
  options.block.x = uint32_t(std::stoul(words[3]));
  options.sharedBytes = 1024;
  const std::string hex = words[4];
  std::vector<std::byte> input, output(std::stoul(words[5]));
  for (size_t k = 0; hex != "-" && k + 1 < hex.size(); k += 2)
    input.push_back(std::byte(std::stoul(hex.substr(k, 2), nullptr, 16)));
  uint64_t next = 0x10000;
  auto add = [&](std::vector<std::byte> &bytes, const char *name) {
    ptx::Region region;
    region.at = bytes.data();
    region.bytes = bytes.size();
    region.address = next;
    region.name = name;
    const auto *at = reinterpret_cast<const std::byte *>(&next);
    options.parameters.insert(options.parameters.end(), at,
                              at + (isNarrow ? 4 : 8));
    options.regions.push_back(region);
    next += 0x100000;
  };
  if (hex != "-")
    add(input, "the input");
  add(output, "the output");
  if (hex == "-") {
    const std::vector<std::byte> first = options.parameters;
    options.parameters.insert(options.parameters.end(), first.begin(),
                              first.end());
  }
  options.mostInstructions = 1 << 22;
  ptx::Instance instance(std::make_shared<ptx::Program>(std::move(program)));
  MGPU_TRY(ptx::run(instance, options));
  std::string result;
  for (std::byte each : output)
    result += fmt::format("{:02x}", uint8_t(each));
  return result;
}

int main(int count, char **words) {
  if (count != 6)
    return 2;
  const Result<std::string> result = launch(words);
  fmt::print(result ? stdout : stderr, "{}\n",
             result ? *result : result.error().message);
  return result ? 0 : int(result.error().kind);
}
