// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PIPELINE_TORCH_SIZESYMBOLS_H
#define MGPU_PIPELINE_TORCH_SIZESYMBOLS_H

// Sizes as SymPy writes them: "Mul(Integer(4), Symbol('s77', positive=True))",
// and as people do: "4*s77".

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mgpu::pipeline::torch {

/// The names of the symbols in an expression, in their order.
std::vector<std::string> symbolsOf(std::string_view expression);

/// Its value, which must be whole; none where it has another form, a symbol
/// without a value, or overflows.
std::optional<int64_t> evaluate(std::string_view expression,
                                const std::map<std::string, int64_t> &symbols);

} // namespace mgpu::pipeline::torch

#endif // MGPU_PIPELINE_TORCH_SIZESYMBOLS_H
