// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_EMIT_CUDA_TEXTTEMPLATE_H
#define MGPU_KERNELS_EMIT_CUDA_TEXTTEMPLATE_H

#include <cstdint>
#include <map>
#include <string>

namespace mgpu::kernels::cuda {

/// What is between a text's $NAME$.
using Words = std::map<std::string, std::string>;

/// `text` with each $NAME$ replaced by its word, which must exist.
std::string fill(std::string text, const Words &words);

/// A macro's value where none is given with -D.
std::string macroDefault(const std::string &name, uint32_t value);

} // namespace mgpu::kernels::cuda

#endif // MGPU_KERNELS_EMIT_CUDA_TEXTTEMPLATE_H
