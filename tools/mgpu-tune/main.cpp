// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// mgpu-tune: parse the command line, call the command, print what it says.
// LLVM takes longer to load than `--help` or `db` to answer, so these are
// answered by a program without it, which starts the one with the compiler for
// whatever takes a program.
#include "kernels/compile/NvrtcCompiler.h"
#include "pipeline/program/Version.h"
#include "pipeline/run/Distributed.h"
#include "support/Progress.h"
#include "tools/mgpu-tune/CommonOptions.h"
#include "tools/mgpu-tune/JsonOutput.h"
#include "tools/options/OptionTable.h"
#ifdef MGPU_TUNE_COMPILES
#include "pipeline/compiler/MlirCompiler.h"
#include "tools/mgpu-lsp-server/Server.h"

#include "mlir/IR/DialectRegistry.h"
#endif
#ifndef MGPU_LLVM // the build says it where there is one
#define MGPU_LLVM ""
#endif

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <new>
#include <system_error>
#include <unistd.h>

using namespace mgpu;

#ifdef MGPU_JEMALLOC
/// Import makes many small objects: large pages, and none given back, save it a
/// tenth of its time. The environment's MALLOC_CONF is read after this.
extern "C" const char *malloc_conf =
    "thp:always,dirty_decay_ms:-1,muzzy_decay_ms:-1";
#endif

namespace {

constexpr const char *lostOutput =
    "cannot write to the standard output; the result is lost";

int report(ErrorKind kind, std::string message) {
  // A file's contents may be part of it, and a terminal obeys such bytes.
  for (char &c : message)
    if ((c >= 0 && c < ' ' && c != '\n' && c != '\t') || c == '\x7f')
      c = '?';
  std::fprintf(stderr, "mgpu-tune: error: %s\n", message.c_str());
  return int(kind);
}

/// Whether the command that was given is to print JSON.
bool wantsJson(const CLI::App &app) {
  const CLI::App *last = &app;
  while (!last->get_subcommands().empty())
    last = last->get_subcommands().front();
  const CLI::Option *json = last->get_option_no_throw("--json");
  return json && json->count() > 0;
}

/// The exit code; errors are reported, on stdout too where JSON is wanted.
int runCommand(const std::function<Result<int>()> &command, bool asJson) {
  Result<int> code;
  try {
    code = command();
  } catch (const std::system_error &) { // fmt::print's only complaint
    return report(ErrorKind::Invalid, lostOutput);
  } catch (const std::bad_alloc &) {
    return report(ErrorKind::Absent, "out of memory");
  }
  if (!code)
    pipeline::failRanks(code.error().message);
  if (!code && asJson && pipeline::isFirstRank())
    tools::printJsonError(code.error());
  bool written = std::fflush(stdout) == 0 && !std::ferror(stdout);
  if (!code)
    return report(code.error().kind, code.error().message);
  return written ? *code : report(ErrorKind::Invalid, lostOutput);
}

const pipeline::Compiler &theCompiler() {
#ifdef MGPU_TUNE_COMPILES
  return pipeline::mlirCompiler();
#else
  return pipeline::noCompiler();
#endif
}

#ifdef MGPU_TUNE_STARTS_COMPILER
/// The rest of the work, in mgpu-tune-compiler: in a build it lies beside this
/// program, as installed in lib/mgpu. Returns where it cannot be started.
int startCompiler(char **argv) {
  std::error_code error;
  const auto here =
      std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  for (const char *place :
       {"mgpu-tune-compiler", "../lib/mgpu/mgpu-tune-compiler"})
    ::execv((here / place).c_str(), argv);
  return report(ErrorKind::Absent,
                "its part with the compiler, 'mgpu-tune-compiler', cannot be "
                "started from '" +
                    here.string() + "': " + std::strerror(errno) +
                    "; install mgpu anew");
}
#endif

} // namespace

int main(int argc, char **argv) {
  if (argc > 0 &&
      std::filesystem::path(argv[0]).filename() == "mgpu-lsp-server") {
#if defined(MGPU_TUNE_COMPILES)
    mlir::DialectRegistry dialects = pipeline::programDialects();
    return tools::lsp::runServer(argc, argv, dialects);
#elif defined(MGPU_TUNE_STARTS_COMPILER)
    return startCompiler(argv);
#else
    return report(ErrorKind::Unsupported,
                  "the language server needs the compiler, without which this "
                  "mgpu-tune was built");
#endif
  }
  CLI::App app("Checks, plans and replays multi-GPU programs as prebuilt "
               "graphs.",
               "mgpu-tune");
  Progress::enable();
  tools::setHelp(app);
  app.require_subcommand(1);
  app.set_version_flag("--version",
                       pipeline::versionText("mgpu-tune", MGPU_LLVM));
  tools::CommandLine line{app, theCompiler(), {}};
  tools::addCommands(line);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    if (error.get_exit_code() != 0) {
      const std::string what = tools::usageError(app, error, argc, argv);
      if (std::find(argv, argv + argc, std::string_view("--json")) !=
          argv + argc)
        tools::printJsonError({ErrorKind::Usage, what});
      return report(ErrorKind::Usage, what);
    }
    app.exit(error, std::cout, std::cerr); // --help, --version
    std::cout.flush();
    return std::cout ? 0 : report(ErrorKind::Invalid, lostOutput);
  }
#ifdef MGPU_TUNE_STARTS_COMPILER
  if (line.needsCompiler)
    return startCompiler(argv);
#endif
  // A limit on the size of files is an error of write(), not the end.
  std::signal(SIGXFSZ, SIG_IGN);
  kernels::compileInProcesses(); // commands fork what uses GPUs
  const int exitCode = runCommand(line.chosen, wantsJson(app));
  pipeline::leaveRanks();
  return exitCode;
}
