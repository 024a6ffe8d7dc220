// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/cuda/TextTemplate.h"

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

} // namespace mgpu::kernels::cuda
