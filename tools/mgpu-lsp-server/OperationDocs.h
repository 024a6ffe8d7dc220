// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TOOLS_LSP_OPERATIONDOCS_H
#define MGPU_TOOLS_LSP_OPERATIONDOCS_H

#include <string>
#include <string_view>

namespace mgpu::tools::lsp {

/// The section of the dialects' documents on an operation ("mgpu.all_reduce"),
/// as Markdown; empty where they have none of that name.
std::string documentOf(const std::string &operation);

/// The name with dots in it at a place of a text (LSP's line and character);
/// empty where there is none.
std::string nameAt(std::string_view text, size_t line, size_t character);

} // namespace mgpu::tools::lsp

#endif // MGPU_TOOLS_LSP_OPERATIONDOCS_H
