// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TOOLS_LSP_SERVER_H
#define MGPU_TOOLS_LSP_SERVER_H

namespace mlir {
class DialectRegistry;
}

namespace mgpu::tools::lsp {

/// The program mgpu-lsp-server: serves an editor at the standard input and
/// output, of programs in `dialects`, until it closes them. Returns the exit
/// code.
int runServer(int argc, char **argv, mlir::DialectRegistry &dialects);

} // namespace mgpu::tools::lsp

#endif // MGPU_TOOLS_LSP_SERVER_H
