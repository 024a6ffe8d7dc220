// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/cuda/TextTemplate.h"

#include "kernels/abi/LaunchForm.h"

namespace mgpu::kernels::cuda {

std::string fill(std::string text, const Substitutions &words) {
  for (size_t at = 0; (at = text.find('$', at)) != std::string::npos;) {
    size_t end = text.find('$', at + 1);
    const std::string &word = words.at(text.substr(at + 1, end - at - 1));
    text.replace(at, end + 1 - at, word);
    at += word.size();
  }
  return text;
}

std::string macroDefault(const std::string &name, uint32_t value) {
  return "#ifndef " + name + "\n#define " + name + " " + std::to_string(value) +
         "\n#endif\n";
}

std::string launchFormText(const std::string &name,
                           const LaunchFormWords &words) {
  constexpr const char *text =
      R"(// How the entry is to be launched, for whoever loads it.
extern "C" __constant__ const unsigned $PREFIX$$NAME$[] = {
    $VERSION$, MGPU_BLOCK_X, MGPU_BLOCK_Y, MGPU_BLOCK_Z,
    $X$, $Y$, $Z$,
    $CLUSTER$, $SHARED$, MGPU_PDL};
)";
  return fill(text, {{"PREFIX", std::string(launchFormPrefix)},
                     {"NAME", name},
                     {"VERSION", std::to_string(LaunchForm::firstVersion)},
                     {"X", words.coversX},
                     {"Y", words.coversY},
                     {"Z", words.coversZ},
                     {"CLUSTER", words.cluster},
                     {"SHARED", words.sharedBytes}});
}

} // namespace mgpu::kernels::cuda
