// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Completion, hover and diagnostics in editors for programs in our dialects and
// StableHLO. MLIR's language server does the work, in a process of its own, and
// `mgpu-tune check` finds what only the whole program shows.
#include "tools/mgpu-lsp-server/Server.h"

#include "dialect/mgpu/MgpuDialect.h"
#include "dialect/mpmd/MpmdDialect.h"
#include "dialect/sdy/SdyDialect.h"
#include "dialect/spmd/SpmdDialect.h"
#include "dialect/stablehlo/Companions.h"
#include "tools/mgpu-lsp-server/Proxy.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/Tools/mlir-lsp-server/MlirLspServerMain.h"

#include <csignal>
#include <cstdio>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace mgpu::tools::lsp {

static int serve(int argc, char **argv) {
  mlir::DialectRegistry registry;
  registry.insert<mgpu::ir::MgpuDialect, mgpu::mpmd::MpmdDialect,
                  mgpu::sdy::SdyDialect, mgpu::spmd::SpmdDialect>();
  mgpu::stablehlo::registerDialects(registry);
  mlir::registerAllDialects(registry);
  mlir::registerAllExtensions(registry);
  return mlir::failed(mlir::MlirLspServerMain(argc, argv, registry));
}

int runServer(int argc, char **argv) {
  // -lit-test is of tests: messages are delimited, and the answers pretty.
  bool isTest = false;
  std::vector<char *> others;
  for (int k = 0; k < argc; ++k) {
    const std::string word = argv[k];
    if (word == "-lit-test" || word == "--lit-test")
      isTest = true;
    else
      others.push_back(argv[k]);
    if (word == "--help" || word == "--version")
      return serve(argc, argv);
  }
  int questions[2], answers[2];
  if (::pipe2(questions, O_CLOEXEC) != 0 || ::pipe2(answers, O_CLOEXEC) != 0) {
    std::perror("mgpu-lsp-server");
    return 4;
  }
  std::signal(SIGPIPE, SIG_IGN);
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(questions[0], 0);
    ::dup2(answers[1], 1);
    for (int fd : {questions[0], questions[1], answers[0], answers[1]})
      ::close(fd);
    return serve(int(others.size()), others.data());
  }
  ::close(questions[0]);
  ::close(answers[1]);
  if (child < 0) {
    std::perror("mgpu-lsp-server");
    return 4;
  }
  Proxy(questions[1], answers[0], isTest).run();
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 4;
}

} // namespace mgpu::tools::lsp
